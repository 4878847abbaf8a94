#include "make_halves.h"

#include "copy_nodes.h"
#include "joint_error.h"
#include "split.h"
#include <aot/assert.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

struct jg_halves {
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const aot_host_t *host;
  aot_graph_t joint, forward, backward;
  jg_joint_t arrays;
  jg_split_t split;
  uint32_t n_ids;     /* values of the program, before the forward and backward graphs */
  aot_value_t *saved; /* of the split, as ids */
  aot_node_t *recomputed;
  uint32_t *forward_map, *backward_map; /* by id of the joint graph's values; 0: not on that side */
  uint8_t *is_read;                     /* by input of the joint graph: by the backward */
  uint8_t *in_slot;                     /* by input of the joint graph: the backward has it from a slot */
  aot_op_t copy;
};

/* ---- the plan ---- */

static aot_status_t fail(jg_halves_t *h, const char *message, aot_value_t value) {
  return jg_fail(h->host, h->ctx, AOT_E_INVALID, "partition.bad-cut", message, value);
}

static aot_status_t read_joint(jg_halves_t *h) {
  const aot_snapshot_t *snapshot = NULL;
  AOT_TRY(h->host->graph->snapshot(h->prog, &snapshot));
  const int made = jg_joint_init(&h->arrays, snapshot);
  if (made == -1)
    return jg_fail(h->host, h->ctx, AOT_E_PRECONDITION, "partition.no-joint",
                   "the program has no joint graph; add stage autograd before the partition", aot_no_value());
  return made == 0 ? AOT_OK : jg_no_memory(h->host, h->ctx);
}

/* The index in the arrays of each saved value. */
static aot_status_t find_saved(jg_halves_t *h, const aot_cut_t *cut, uint32_t *index_of_id, uint32_t *out) {
  memset(index_of_id, 0xff, (size_t)h->n_ids * sizeof *index_of_id);
  for (uint32_t v = 0; v < h->arrays.n_values; v++) {
    AOT_ASSERT(h->arrays.value_id[v] < h->n_ids);
    index_of_id[h->arrays.value_id[v]] = v;
  }
  for (uint32_t i = 0; i < cut->n_saved; i++) {
    const aot_value_t v = cut->saved[i];
    if (v.id >= h->n_ids || index_of_id[v.id] == JG_NONE)
      return fail(h, "a value that is to be saved is not in the joint graph, or is named twice", v);
    out[i] = index_of_id[v.id];
    index_of_id[v.id] = JG_NONE;
  }
  return AOT_OK;
}

static const char *why_not_twice(uint32_t flags) {
#define SAVE ": save this value, or what is made of it"
  if (flags & AOT_OP_RANDOM) return "the backward would draw these random numbers again and get others" SAVE;
  if (flags & AOT_OP_COLLECTIVE) return "the backward would talk to the other ranks again" SAVE;
  if (flags & AOT_OP_EFFECT) return "the backward would do again what may happen once" SAVE;
#undef SAVE
  return NULL;
}

static aot_status_t check_recomputed(jg_halves_t *h) {
  const jg_joint_t *j = &h->arrays;
  for (uint32_t i = 0; i < h->split.n_recomputed; i++) {
    const uint32_t n = h->split.recomputed[i];
    const char *why = why_not_twice(j->op_flags[n]);
    if (why) return fail(h, why, (aot_value_t){j->value_id[j->result_begin[n]]});
  }
  return AOT_OK;
}

static aot_status_t divide(jg_halves_t *h, const aot_cut_t *cut) {
  uint32_t bad = 0;
  uint32_t *index_of_id = malloc(((size_t)h->n_ids + 1) * sizeof *index_of_id);
  uint32_t *saved = malloc(((size_t)cut->n_saved + 1) * sizeof *saved);
  aot_status_t status = index_of_id && saved ? find_saved(h, cut, index_of_id, saved) : jg_no_memory(h->host, h->ctx);
  const int made = status == AOT_OK ? jg_split_init(&h->split, &h->arrays, saved, cut->n_saved, &bad) : 0;
  if (made == -1)
    status = fail(h, "this value depends on a tangent, so that the forward cannot compute it to save it",
                  (aot_value_t){h->arrays.value_id[bad]});
  else if (made != 0) status = jg_no_memory(h->host, h->ctx);
  free(index_of_id);
  free(saved);
  return status;
}

static aot_status_t list_ids(jg_halves_t *h) {
  const jg_split_t *s = &h->split;
  h->saved = malloc(((size_t)s->n_saved + 1) * sizeof *h->saved);
  h->recomputed = malloc(((size_t)s->n_recomputed + 1) * sizeof *h->recomputed);
  if (!h->saved || !h->recomputed) return jg_no_memory(h->host, h->ctx);
  AOT_ASSERT(s->n_recomputed <= s->n_forward && s->n_recomputed <= s->n_backward);
  for (uint32_t i = 0; i < s->n_saved; i++) h->saved[i].id = h->arrays.value_id[s->saved[i]];
  for (uint32_t i = 0; i < s->n_recomputed; i++) h->recomputed[i].id = h->arrays.node_id[s->recomputed[i]];
  return AOT_OK;
}

aot_status_t jg_halves_plan(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *p, const aot_cut_t *cut,
                            jg_halves_t **out) {
  jg_halves_t *h = *out = calloc(1, sizeof *h);
  if (!h) return jg_no_memory(host, ctx);
  h->host = host;
  h->ctx = ctx;
  h->prog = p;
  h->joint = h->host->graph->graph_find(h->prog, AOT_GRAPH_JOINT);
  h->n_ids = h->host->graph->n_values(h->prog);
  AOT_TRY(read_joint(h));
  AOT_TRY(divide(h, cut));
  AOT_TRY(check_recomputed(h));
  return list_ids(h);
}

void jg_halves_complete(const jg_halves_t *h, aot_cut_t *cut) {
  cut->saved = h->saved;
  cut->n_saved = h->split.n_saved;
  cut->recomputed = h->recomputed;
  cut->n_recomputed = h->split.n_recomputed;
  cut->nbytes_saved = h->split.nbytes_saved;
}

void jg_halves_destroy(jg_halves_t *h) {
  if (!h) return;
  jg_joint_deinit(&h->arrays);
  jg_split_deinit(&h->split);
  free(h->saved);
  free(h->recomputed);
  free(h->forward_map);
  free(h->backward_map);
  free(h->is_read);
  free(h->in_slot);
  free(h);
}

/* ---- the forward ---- */

/* Gradients, and the last token of the backward's effects. */
static int is_backward_output(const aot_port_t *port) {
  return port->role == AOT_ROLE_GRADIENT || (port->role == AOT_ROLE_TOKEN && port->index == 1);
}

/* The outputs of the joint graph that belong to this half. */
static aot_status_t add_outputs(jg_halves_t *h, const jg_copier_t *c, int of_backward) {
  const uint32_t n = h->host->graph->n_outputs(h->prog, h->joint);
  for (uint32_t i = 0; i < n; i++) {
    const aot_port_t port = h->host->graph->outputs(h->prog, h->joint)[i];
    if (is_backward_output(&port) != of_backward) continue;
    const aot_value_t v = {c->map[port.value.id]};
    AOT_TRY(h->host->edit->output_add(h->prog, c->graph, port.role, port.index, v, port.name));
  }
  return AOT_OK;
}

static aot_status_t add_input(jg_halves_t *h, jg_copier_t *c, uint32_t i) {
  const aot_port_t port = h->host->graph->inputs(h->prog, h->joint)[i];
  return jg_add_input(c, &port, port.role, port.index, port.name);
}

static aot_status_t make_forward(jg_halves_t *h, jg_copier_t *c) {
  const jg_joint_t *j = &h->arrays;
  for (uint32_t i = 0; i < j->n_inputs; i++)
    if (!jg_is_tangent(j, i)) AOT_TRY(add_input(h, c, i));
  for (uint32_t i = 0; i < h->split.n_forward; i++) AOT_TRY(jg_copy_node(c, j->node_id[h->split.forward[i]], 0));
  return add_outputs(h, c, 0);
}

/* ---- slots ---- */

/* A piece of a larger tensor (one of three splits) spreads over the whole of it in memory, or begins in the midst of
 * it. Symbols count at their hints: a copy is right for other sizes, too. */
static int has_holes(const jg_halves_t *h, const aot_type_t *t) {
  int64_t extent = 1 + h->host->graph->dim_hint(h->prog, t->offset), numel = 1;
  for (int32_t d = 0; d < t->rank; d++) {
    const int64_t size = h->host->graph->dim_hint(h->prog, t->sizes[d]);
    extent += (size - 1) * h->host->graph->dim_hint(h->prog, t->strides[d]);
    numel *= size;
  }
  return numel > 0 && extent > numel;
}

/* What the forward hands over for v: v itself, or a dense copy. */
static aot_status_t make_dense(jg_halves_t *h, aot_value_t v, aot_value_t *out) {
  aot_type_t type;
  aot_node_t made;
  *out = v;
  AOT_TRY(h->host->graph->value_type(h->prog, v, &type));
  if (h->copy.id == AOT_NO_ID || type.kind != AOT_TYPE_TENSOR || !has_holes(h, &type)) return AOT_OK;
  type.strides = NULL;
  type.offset = 0;
  const aot_arg_t args[] = {aot_arg_value(v), aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS)};
  const aot_node_t def = h->host->graph->value_def(h->prog, v);
  aot_node_info_t info = {.struct_size = sizeof info, .origin = aot_no_origin()};
  if (def.id != AOT_NO_ID) AOT_TRY(h->host->graph->node_info(h->prog, def, &info));
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .op = h->copy,
      .n_args = 2,
      .args = args,
      .n_types = 1,
      .types = &type,
      .origin = info.origin,
  };
  AOT_TRY(h->host->edit->node_create(h->prog, h->forward, &spec, aot_no_node(), &made));
  AOT_TRY(h->host->graph->node_info(h->prog, made, &info));
  *out = info.first_result;
  return AOT_OK;
}

/* An output of the forward and an input of the backward, of one type. v: of the arrays. */
static aot_status_t add_slot(jg_halves_t *h, uint32_t v, uint32_t slot) {
  const uint32_t id = h->arrays.value_id[v];
  aot_value_t out, made;
  aot_type_t type;
  AOT_ASSERT(h->forward_map[id] != AOT_NO_ID && h->backward_map[id] == AOT_NO_ID);
  AOT_TRY(make_dense(h, (aot_value_t){h->forward_map[id]}, &out));
  AOT_TRY(h->host->graph->value_type(h->prog, out, &type));
  AOT_TRY(h->host->edit->input_add(h->prog, h->backward, AOT_ROLE_SAVED, slot, &type, aot_str(""), &made));
  h->backward_map[id] = made.id;
  return h->host->edit->output_add(h->prog, h->forward, AOT_ROLE_SAVED, slot, out, aot_str(""));
}

/* ---- the backward ---- */

static void mark_read_inputs(jg_halves_t *h) {
  const jg_joint_t *j = &h->arrays;
  for (uint32_t i = 0; i < h->split.n_backward; i++)
    for (uint32_t k = j->operand_begin[h->split.backward[i]]; k < j->operand_begin[h->split.backward[i] + 1]; k++) {
      if (j->def[j->operands[k]] != JG_NONE) continue;
      AOT_ASSERT(j->operands[k] < j->n_inputs);
      h->is_read[j->operands[k]] = 1;
    }
  for (uint32_t i = 0; i < j->n_gradients; i++)
    if (j->gradients[i] != JG_NONE && j->def[j->gradients[i]] == JG_NONE) h->is_read[j->gradients[i]] = 1;
}

/* Leaves that the forward updates, and what comes with the call; every other leaf keeps its value until the backward
 * reads it. */
static aot_status_t mark_slots_of_inputs(jg_halves_t *h) {
  const uint32_t n_leaves = h->host->graph->n_leaves(h->prog), n_outputs = h->host->graph->n_outputs(h->prog, h->joint);
  const aot_port_t *inputs = h->host->graph->inputs(h->prog, h->joint),
                   *outputs = h->host->graph->outputs(h->prog, h->joint);
  uint8_t *is_updated = calloc((size_t)n_leaves + 1, 1);
  AOT_ASSERT(h->arrays.n_inputs == h->host->graph->n_inputs(h->prog, h->joint));
  if (!is_updated) return jg_no_memory(h->host, h->ctx);
  for (uint32_t i = 0; i < n_outputs; i++)
    if (outputs[i].role == AOT_ROLE_UPDATE && outputs[i].index < n_leaves) is_updated[outputs[i].index] = 1;
  for (uint32_t i = 0; i < h->arrays.n_inputs; i++) {
    const int keeps_value =
        inputs[i].role <= AOT_ROLE_STATE && !(inputs[i].index < n_leaves && is_updated[inputs[i].index]);
    h->in_slot[i] = h->is_read[i] && !jg_is_tangent(&h->arrays, i) && !keeps_value;
  }
  free(is_updated);
  return AOT_OK;
}

/* Leaves read in place, then the slots, of inputs first, then the tangents. */
static aot_status_t add_backward_inputs(jg_halves_t *h, jg_copier_t *c) {
  const jg_joint_t *j = &h->arrays;
  uint32_t n_slots = 0;
  for (uint32_t i = 0; i < j->n_inputs; i++)
    if (h->is_read[i] && !h->in_slot[i] && !jg_is_tangent(j, i)) AOT_TRY(add_input(h, c, i));
  for (uint32_t i = 0; i < j->n_inputs; i++)
    if (h->in_slot[i]) AOT_TRY(add_slot(h, i, n_slots++));
  for (uint32_t i = 0; i < h->split.n_saved; i++)
    if (j->def[h->split.saved[i]] != JG_NONE) AOT_TRY(add_slot(h, h->split.saved[i], n_slots++));
  for (uint32_t i = 0; i < j->n_inputs; i++)
    if (jg_is_tangent(j, i)) AOT_TRY(add_input(h, c, i));
  return AOT_OK;
}

static aot_status_t make_backward(jg_halves_t *h, jg_copier_t *c) {
  const jg_joint_t *j = &h->arrays;
  mark_read_inputs(h);
  AOT_TRY(mark_slots_of_inputs(h));
  AOT_TRY(add_backward_inputs(h, c));
  for (uint32_t i = 0; i < h->split.n_backward; i++) {
    const uint32_t n = h->split.backward[i];
    AOT_TRY(jg_copy_node(c, j->node_id[n], j->late[n] ? 0 : AOT_NODE_BACKWARD));
  }
  return add_outputs(h, c, 1);
}

/* ---- both ---- */

static aot_status_t make_both(jg_halves_t *h, jg_copier_t *c) {
  AOT_TRY(h->host->edit->graph_create(h->prog, AOT_GRAPH_FORWARD, aot_str("forward"), &h->forward));
  AOT_TRY(h->host->edit->graph_create(h->prog, AOT_GRAPH_BACKWARD, aot_str("backward"), &h->backward));
  c->graph = h->forward;
  c->map = h->forward_map;
  AOT_TRY(make_forward(h, c));
  c->graph = h->backward;
  c->map = h->backward_map;
  AOT_TRY(make_backward(h, c));
  return h->host->edit->graph_erase(h->prog, h->joint);
}

/* The operator of an opset that copies a tensor; none: there is none. */
static aot_op_t first_copy(const jg_halves_t *h) {
  const uint32_t n = h->host->graph->n_ops(h->prog);
  for (uint32_t i = 1; i < n; i++)
    if (h->host->graph->op_desc(h->prog, (aot_op_t){i})->flags & AOT_OP_COPY) return (aot_op_t){i};
  return (aot_op_t){AOT_NO_ID};
}

aot_status_t jg_halves_make(jg_halves_t *h) {
  jg_copier_t c = {.host = h->host, .ctx = h->ctx, .prog = h->prog};
  AOT_ASSERT(h->n_ids == h->host->graph->n_values(h->prog) && !h->forward_map && !h->backward_map);
  h->copy = first_copy(h);
  h->forward_map = calloc((size_t)h->n_ids + 1, sizeof *h->forward_map);
  h->backward_map = calloc((size_t)h->n_ids + 1, sizeof *h->backward_map);
  h->is_read = calloc((size_t)h->arrays.n_inputs + 1, 1);
  h->in_slot = calloc((size_t)h->arrays.n_inputs + 1, 1);
  if (!h->forward_map || !h->backward_map || !h->is_read || !h->in_slot) return jg_no_memory(h->host, h->ctx);
  const aot_status_t status = make_both(h, &c);
  jg_copier_deinit(&c);
  return status;
}
