#include "common/partition/apply.h"

#include "common/partition/copy_nodes.h"
#include "common/partition/equal_nodes.h"
#include "common/partition/split.h"
#include "common/partition/tags.h"
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

aot_status_t pt_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_value_t value) {
  aot_diag_t d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.severity = AOT_SEVERITY_ERROR;
  d.code = aot_str(code);
  d.message = aot_str(message);
  d.node = aot_no_node();
  d.value = value;
  host->diag(ctx, &d);
  return status;
}

aot_status_t pt_no_memory(const aot_host_t *host, aot_ctx_t *ctx) {
  return pt_fail(host, ctx, AOT_E_EXHAUSTED, "partition.no-memory", "no memory for the arrays of the joint graph",
                 aot_no_value());
}

/* Equal nodes become one in the arrays; *out_same, freed by the caller, tells which value stands for which. */
static aot_status_t merge(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, pt_joint_t *j, uint32_t **out_same) {
  const uint32_t n_ids = host->graph->n_values(prog);
  uint32_t *same = calloc((size_t)n_ids + 1, sizeof *same);
  *out_same = same;
  if (!same || pt_find_equal(j->snapshot, j->graph, n_ids, same) != 0 || pt_joint_merge(j, n_ids, same) != 0)
    return pt_no_memory(host, ctx);
  return AOT_OK;
}

static aot_status_t read_joint(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const pt_how_t *how, pt_joint_t *out,
                               uint32_t **out_same) {
  const aot_snapshot_t *snapshot = NULL;
  *out_same = NULL;
  AOT_TRY(host->graph->snapshot(prog, &snapshot));
  int made = pt_joint_init(out, snapshot);
  if (made == -1)
    return pt_fail(host, ctx, AOT_E_PRECONDITION, "partition.no-joint", "the program has no joint graph to divide",
                   aot_no_value());
  if (made != 0) return pt_no_memory(host, ctx);
  aot_status_t status = how->merge_equal ? merge(host, ctx, prog, out, out_same) : AOT_OK;
  if (status != AOT_OK) pt_joint_deinit(out);
  return status;
}

static aot_status_t put_cut(const pt_joint_t *j, const pt_split_t *s, const aot_cut_sink_t *sink) {
  aot_value_t *saved = calloc((size_t)s->n_saved + 1, sizeof *saved);
  aot_node_t *recomputed = calloc((size_t)s->n_recomputed + 1, sizeof *recomputed);
  aot_status_t status = AOT_E_EXHAUSTED;
  if (saved && recomputed) {
    for (uint32_t i = 0; i < s->n_saved; i++) saved[i].id = j->value_id[s->saved[i]];
    for (uint32_t i = 0; i < s->n_recomputed; i++) recomputed[i].id = j->node_id[s->recomputed[i]];
    aot_cut_t cut = {sizeof cut, s->n_saved, s->n_recomputed, 0, saved, recomputed, s->nbytes_saved, 0};
    status = sink->put(sink->self, &cut);
  }
  free(saved);
  free(recomputed);
  return status;
}

static aot_status_t report(const aot_host_t *host, aot_ctx_t *ctx, const pt_split_t *s) {
  const aot_ext_report_t *r = host->get_ext ? host->get_ext(host->self, AOT_EXT_REPORT) : NULL;
  if (!r) return AOT_OK;
  AOT_TRY(r->number(ctx, aot_str("saved-bytes"), (double)s->nbytes_saved, aot_str("bytes")));
  AOT_TRY(r->number(ctx, aot_str("saved-values"), s->n_saved, aot_str("")));
  return r->number(ctx, aot_str("recomputed-nodes"), s->n_recomputed, aot_str("nodes"));
}

#define NOT_TWICE (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE)

/* Of a region, asked once: does its body draw numbers, act, or own regions? answers, by graph: 0 not asked, 1 no, 2 yes. */
static int may_not_repeat(const aot_host_t *host, aot_prog_t *prog, aot_graph_t body, uint8_t *answers) {
  if (answers[body.id]) return answers[body.id] == 2;
  answers[body.id] = 1;
  for (aot_node_t b = host->graph->first(prog, body); b.id != AOT_NO_ID; b = host->graph->next(prog, b)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    if (host->graph->node_info(prog, b, &info) != AOT_OK) return 1;
    if (host->graph->op_desc(prog, info.op)->flags & (NOT_TWICE | AOT_OP_REGION)) answers[body.id] = 2;
  }
  return answers[body.id] == 2;
}

/* Region tags by node; calls of bodies that may not run twice count as random. */
static aot_status_t look_at_nodes(const aot_host_t *host, aot_prog_t *prog, pt_joint_t *j, uint32_t *region,
                                  uint8_t *answers) {
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(host->graph->node_info(prog, (aot_node_t){j->node_id[n]}, &info));
    region[n] = info.region_tag;
    for (uint32_t a = 0; (j->op_flags[n] & AOT_OP_REGION) && a < info.n_args; a++)
      if (info.args[a].kind == AOT_ARG_GRAPH && may_not_repeat(host, prog, (aot_graph_t){(uint32_t)info.args[a].u.i}, answers))
        j->op_flags[n] |= AOT_OP_RANDOM;
  }
  return AOT_OK;
}

aot_status_t pt_settle_tags(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, pt_joint_t *j, uint32_t *out_n) {
  uint32_t *region = calloc((size_t)j->n_nodes + 1, sizeof *region);
  uint8_t *answers = calloc((size_t)host->graph->n_graphs(prog) + 1, 1);
  aot_status_t status = region && answers ? look_at_nodes(host, prog, j, region, answers) : pt_no_memory(host, ctx);
  if (status == AOT_OK) pt_tags_settle(j, region, out_n);
  free(region);
  free(answers);
  return status;
}

static aot_status_t report_number(const aot_host_t *host, aot_ctx_t *ctx, const char *name, uint32_t n) {
  const aot_ext_report_t *r = host->get_ext ? host->get_ext(host->self, AOT_EXT_REPORT) : NULL;
  return r && n ? r->number(ctx, aot_str(name), n, aot_str("nodes")) : AOT_OK;
}

static uint32_t count_merged(const pt_joint_t *j, const uint32_t *same) {
  uint32_t n_merged = 0;
  for (uint32_t n = 0; same && n < j->n_nodes; n++) {
    const uint32_t v = j->result_begin[n];
    n_merged += v < j->result_begin[n + 1] && same[j->value_id[v]] != j->value_id[v];
  }
  return n_merged;
}

static aot_status_t choose(const aot_host_t *host, aot_ctx_t *ctx, const pt_joint_t *j, uint32_t *saved,
                           const aot_cut_sink_t *sink, const pt_how_t *how) {
  pt_split_t split;
  uint32_t bad = 0, n_saved = 0;
  int solved = how->pick(how->self, j, saved, &n_saved, &bad);
  if (solved == PT_TOLD) return AOT_E_PRECONDITION;
  if (solved == -1)
    return pt_fail(host, ctx, AOT_E_PRECONDITION, "partition.unbounded",
                   "no cut is possible: this value may be neither saved nor recomputed", (aot_value_t){j->value_id[bad]});
  if (solved != 0 || pt_split_init(&split, j, saved, n_saved, &bad) != 0) return pt_no_memory(host, ctx);
  aot_status_t status = put_cut(j, &split, sink);
  if (status == AOT_OK) status = report(host, ctx, &split);
  pt_split_deinit(&split);
  return status;
}

aot_status_t pt_choose(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink, const pt_how_t *how) {
  pt_joint_t j;
  uint32_t n_kept = 0, *same = NULL;
  aot_status_t status = read_joint(host, ctx, prog, how, &j, &same);
  if (status == AOT_OK) {
    uint32_t *saved = calloc((size_t)j.n_values + 1, sizeof *saved);
    status = !saved ? pt_no_memory(host, ctx) : how->prepare ? how->prepare(how->prepare_self, host, ctx, prog, &j) : AOT_OK;
    if (status == AOT_OK) status = pt_settle_tags(host, ctx, prog, &j, &n_kept);
    if (status == AOT_OK) status = choose(host, ctx, &j, saved, sink, how);
    if (status == AOT_OK) status = report_number(host, ctx, "tagged-but-kept", n_kept);
    if (status == AOT_OK) status = report_number(host, ctx, "merged-nodes", count_merged(&j, same));
    free(saved);
    pt_joint_deinit(&j);
  }
  free(same);
  return status;
}

/* Gradients, and the last token of the backward's effects. */
static int is_backward_output(const aot_port_t *port) {
  return port->role == AOT_ROLE_GRADIENT || (port->role == AOT_ROLE_TOKEN && port->index == 1);
}

static aot_status_t build_forward(pt_copier_t *c, const pt_joint_t *j, const pt_split_t *s, aot_graph_t joint) {
  const aot_graph_api_t *g = c->host->graph;
  uint32_t n_inputs = g->n_inputs(c->prog, joint), n_outputs = g->n_outputs(c->prog, joint);
  for (uint32_t i = 0; i < n_inputs; i++) {
    aot_port_t port = g->inputs(c->prog, joint)[i];
    if (!pt_is_tangent(j, i)) AOT_TRY(pt_add_input(c, &port, port.role, port.index, port.name));
  }
  for (uint32_t i = 0; i < s->n_forward; i++) AOT_TRY(pt_copy_node(c, j->node_id[s->forward[i]], 0));
  for (uint32_t i = 0; i < n_outputs; i++) {
    aot_port_t port = g->outputs(c->prog, joint)[i];
    if (is_backward_output(&port)) continue;
    aot_value_t v = {port.value.id == AOT_NO_ID ? AOT_NO_ID : c->map[port.value.id]};
    AOT_TRY(c->host->edit->output_add(c->prog, c->graph, port.role, port.index, v, port.name));
  }
  return AOT_OK;
}

/* By input of the joint graph: a leaf that the forward updates. Its old value needs a slot; every other leaf keeps its value
 * until the backward reads it. */
static aot_status_t mark_updated(pt_copier_t *c, aot_graph_t joint, uint8_t *is_updated) {
  const aot_graph_api_t *g = c->host->graph;
  uint32_t n_inputs = g->n_inputs(c->prog, joint), n_outputs = g->n_outputs(c->prog, joint), n_leaves = g->n_leaves(c->prog);
  const aot_port_t *inputs = g->inputs(c->prog, joint), *outputs = g->outputs(c->prog, joint);
  uint8_t *by_leaf = calloc((size_t)n_leaves + 1, 1);
  if (!by_leaf) return pt_no_memory(c->host, c->ctx);
  for (uint32_t i = 0; i < n_outputs; i++)
    if (outputs[i].role == AOT_ROLE_UPDATE && outputs[i].index < n_leaves) by_leaf[outputs[i].index] = 1;
  for (uint32_t i = 0; i < n_inputs; i++)
    is_updated[i] = inputs[i].role > AOT_ROLE_STATE || (inputs[i].index < n_leaves && by_leaf[inputs[i].index]);
  free(by_leaf);
  return AOT_OK;
}

static void mark_read_inputs(const pt_joint_t *j, const pt_split_t *s, uint8_t *is_read) {
  for (uint32_t i = 0; i < s->n_backward; i++)
    for (uint32_t k = j->operand_begin[s->backward[i]]; k < j->operand_begin[s->backward[i] + 1]; k++)
      if (j->def[j->operands[k]] == PT_NONE) is_read[j->operands[k]] = 1;
  for (uint32_t i = 0; i < j->n_gradients; i++)
    if (j->gradients[i] != PT_NONE && j->def[j->gradients[i]] == PT_NONE) is_read[j->gradients[i]] = 1;
}

/* A piece of a larger tensor (one of three splits) spreads over the whole of it in memory, or begins in the midst of it.
 * Symbols count at their hints: a copy is right for other sizes, too. */
static int has_holes(const pt_copier_t *c, const aot_type_t *t) {
  const aot_graph_api_t *g = c->host->graph;
  int64_t extent = 1 + g->dim_hint(c->prog, t->offset), numel = 1;
  for (int32_t d = 0; d < t->rank; d++) {
    const int64_t size = g->dim_hint(c->prog, t->sizes[d]);
    extent += (size - 1) * g->dim_hint(c->prog, t->strides[d]);
    numel *= size;
  }
  return numel > 0 && extent > numel;
}

/* What the forward hands over for slot value v: v itself, or a dense copy, so that the slot holds no more than its elements. */
static aot_status_t make_dense(pt_copier_t *c, aot_graph_t forward, aot_value_t v, aot_value_t *out) {
  const aot_op_t clone = c->host->graph->op_find(c->prog, aot_str("aten.clone.default"));
  aot_type_t type;
  aot_node_t made;
  *out = v;
  AOT_TRY(c->host->graph->value_type(c->prog, v, &type));
  if (clone.id == AOT_NO_ID || type.kind != AOT_TYPE_TENSOR || !has_holes(c, &type)) return AOT_OK;
  type.strides = NULL;
  type.offset = 0;
  const aot_arg_t args[] = {aot_arg_value(v), aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS)};
  const aot_node_t def = c->host->graph->value_def(c->prog, v);
  aot_node_info_t info = {.struct_size = sizeof info, .origin = aot_no_origin()};
  if (def.id != AOT_NO_ID) AOT_TRY(c->host->graph->node_info(c->prog, def, &info));
  aot_node_spec_t spec = {.struct_size = sizeof spec, .op = clone, .n_args = 2, .args = args, .n_types = 1, .types = &type,
                          .origin = info.origin};
  AOT_TRY(c->host->edit->node_create(c->prog, forward, &spec, aot_no_node(), &made));
  AOT_TRY(c->host->graph->node_info(c->prog, made, &info));
  *out = info.first_result;
  return AOT_OK;
}

/* One slot: an output of the forward and an input of the backward, of one type. */
static aot_status_t add_slot(pt_copier_t *c, aot_graph_t forward, uint32_t joint_value, aot_value_t forward_value, uint32_t slot) {
  aot_value_t out, made;
  aot_type_t type;
  AOT_TRY(make_dense(c, forward, forward_value, &out));
  AOT_TRY(c->host->graph->value_type(c->prog, out, &type));
  AOT_TRY(c->host->edit->input_add(c->prog, c->graph, AOT_ROLE_SAVED, slot, &type, aot_str(""), &made));
  c->map[joint_value] = made.id;
  return c->host->edit->output_add(c->prog, forward, AOT_ROLE_SAVED, slot, out, aot_str(""));
}

/* Leaves read in place first, then the slots, then the tangents. Slots are outputs of the forward too. */
static aot_status_t build_backward_inputs(pt_copier_t *c, const pt_joint_t *j, const pt_split_t *s, aot_graph_t joint,
                                          aot_graph_t forward, const uint32_t *forward_map, const uint8_t *is_read) {
  const aot_graph_api_t *g = c->host->graph;
  uint8_t *slot = calloc((size_t)j->n_inputs + 1, 1);
  aot_status_t status = slot ? mark_updated(c, joint, slot) : pt_no_memory(c->host, c->ctx);
  uint32_t n_slots = 0;
  for (uint32_t i = 0; status == AOT_OK && i < j->n_inputs; i++) {
    aot_port_t port = g->inputs(c->prog, joint)[i];
    if (!is_read[i] || pt_is_tangent(j, i)) slot[i] = 0;
    else if (!slot[i]) status = pt_add_input(c, &port, port.role, port.index, port.name);
  }
  for (uint32_t i = 0; status == AOT_OK && i < j->n_inputs + s->n_saved; i++) {
    uint32_t v = i < j->n_inputs ? i : s->saved[i - j->n_inputs];
    if (i < j->n_inputs ? !slot[i] : j->def[v] == PT_NONE) continue;
    status = add_slot(c, forward, j->value_id[v], (aot_value_t){forward_map[j->value_id[v]]}, n_slots++);
  }
  for (uint32_t i = 0; status == AOT_OK && i < j->n_inputs; i++) {
    aot_port_t port = g->inputs(c->prog, joint)[i];
    if (pt_is_tangent(j, i)) status = pt_add_input(c, &port, port.role, port.index, port.name);
  }
  free(slot);
  return status;
}

static aot_status_t build_backward(pt_copier_t *c, const pt_joint_t *j, const pt_split_t *s, aot_graph_t joint,
                                   aot_graph_t forward, const uint32_t *forward_map, uint8_t *scratch) {
  const aot_graph_api_t *g = c->host->graph;
  memset(scratch, 0, (size_t)j->n_values + j->n_nodes + 1);
  mark_read_inputs(j, s, scratch);
  AOT_TRY(build_backward_inputs(c, j, s, joint, forward, forward_map, scratch));
  for (uint32_t i = 0; i < s->n_backward; i++) AOT_TRY(pt_copy_node(c, j->node_id[s->backward[i]], !j->late[s->backward[i]]));
  uint32_t n_outputs = g->n_outputs(c->prog, joint);
  for (uint32_t i = 0; i < n_outputs; i++) {
    aot_port_t port = g->outputs(c->prog, joint)[i];
    if (!is_backward_output(&port)) continue;
    aot_value_t v = {port.value.id == AOT_NO_ID ? AOT_NO_ID : c->map[port.value.id]};
    AOT_TRY(c->host->edit->output_add(c->prog, c->graph, port.role, port.index, v, port.name));
  }
  return AOT_OK;
}

/* The dense index of each saved value of the cut. */
static aot_status_t find_saved(const aot_host_t *host, aot_ctx_t *ctx, const pt_joint_t *j, const aot_cut_t *cut,
                               uint32_t *index_of_id, uint32_t n_ids, uint32_t *out_saved) {
  memset(index_of_id, 0xff, (size_t)n_ids * sizeof *index_of_id);
  for (uint32_t v = 0; v < j->n_values; v++) index_of_id[j->value_id[v]] = v;
  for (uint32_t i = 0; i < cut->n_saved; i++) {
    uint32_t id = cut->saved[i].id;
    if (id >= n_ids || index_of_id[id] == PT_NONE)
      return pt_fail(host, ctx, AOT_E_INVALID, "partition.bad-cut", "the cut names a value that is not in the joint graph",
                     cut->saved[i]);
    out_saved[i] = index_of_id[id];
  }
  return AOT_OK;
}

static aot_status_t build_both(pt_copier_t *c, const pt_joint_t *j, const pt_split_t *s, aot_graph_t joint,
                               uint32_t *forward_map, uint32_t *backward_map, uint8_t *scratch, uint32_t n_ids) {
  const aot_edit_api_t *e = c->host->edit;
  aot_graph_t forward, backward;
  memset(forward_map, 0xff, (size_t)n_ids * 4);
  memset(backward_map, 0xff, (size_t)n_ids * 4);
  AOT_TRY(e->graph_create(c->prog, AOT_GRAPH_FORWARD, aot_str("forward"), &forward));
  AOT_TRY(e->graph_create(c->prog, AOT_GRAPH_BACKWARD, aot_str("backward"), &backward));
  c->graph = forward;
  c->map = forward_map;
  AOT_TRY(build_forward(c, j, s, joint));
  c->graph = backward;
  c->map = backward_map;
  AOT_TRY(build_backward(c, j, s, joint, forward, forward_map, scratch));
  return e->graph_erase(c->prog, joint);
}

static aot_status_t split_and_build(pt_copier_t *c, const pt_joint_t *j, const aot_cut_t *cut, uint32_t *saved,
                                    uint32_t *forward_map, uint32_t *backward_map, uint8_t *scratch, uint32_t n_ids) {
  aot_graph_t joint = c->host->graph->graph_find(c->prog, AOT_GRAPH_JOINT);
  pt_split_t split;
  uint32_t bad = 0;
  AOT_TRY(find_saved(c->host, c->ctx, j, cut, forward_map, n_ids, saved));
  int made = pt_split_init(&split, j, saved, cut->n_saved, &bad);
  if (made == -1) {
    aot_value_t v = {j->value_id[bad]};
    return pt_fail(c->host, c->ctx, AOT_E_INVALID, "partition.bad-cut",
                   "the cut saves a value that depends on a tangent: the forward cannot compute it", v);
  }
  if (made != 0) return pt_no_memory(c->host, c->ctx);
  aot_status_t status = build_both(c, j, &split, joint, forward_map, backward_map, scratch, n_ids);
  pt_split_deinit(&split);
  return status;
}

aot_status_t pt_apply(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut, const pt_how_t *how) {
  pt_joint_t j;
  uint32_t *same = NULL;
  const uint32_t n_ids = host->graph->n_values(prog);
  aot_status_t status = read_joint(host, ctx, prog, how, &j, &same);
  if (status == AOT_OK) {
    pt_copier_t c = {.host = host, .ctx = ctx, .prog = prog, .same = same};
    uint32_t *saved = calloc((size_t)cut->n_saved + 1, 4);
    uint32_t *forward_map = calloc((size_t)n_ids + 1, 4), *backward_map = calloc((size_t)n_ids + 1, 4);
    uint8_t *scratch = calloc((size_t)j.n_values + j.n_nodes + 1, 1);
    status = saved && forward_map && backward_map && scratch
                 ? split_and_build(&c, &j, cut, saved, forward_map, backward_map, scratch, n_ids)
                 : pt_no_memory(host, ctx);
    free(saved);
    free(forward_map);
    free(backward_map);
    free(scratch);
    pt_copier_deinit(&c);
    pt_joint_deinit(&j);
  }
  free(same);
  return status;
}
