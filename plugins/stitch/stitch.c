#include "stitch.h"

#include "common/emit/emit_layout.h"
#include "joint/copy_nodes.h"
#include "joint/joint_error.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>

enum { FORWARD, BACKWARD, UPDATE, N_PARTS };
static const int32_t kinds[N_PARTS] = {AOT_GRAPH_FORWARD, AOT_GRAPH_BACKWARD, AOT_GRAPH_UPDATE};
static const char *const names[N_PARTS] = {"forward", "backward", "update"};

typedef struct stitching {
  pt_copier_t copier; /* into the step; copier.map: by value id of the parts */
  const aot_host_t *host;
  const aot_graph_api_t *graph;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t part[N_PARTS];
  uint32_t loss;
  uint8_t *is_needed;     /* by value id */
  uint32_t *leaf_value;   /* by leaf: the step's input; AOT_NO_ID: none yet */
  uint32_t *gradient;     /* by leaf: the backward's output value */
  uint32_t *saved;        /* by slot: the forward's output value */
  uint32_t n_slots;
  uint32_t seed, offset;  /* the step's inputs */
} stitching_t;

static aot_status_t fail(const stitching_t *s, const char *code, const char *message) {
  return pt_fail(s->host, s->ctx, AOT_E_UNIMPLEMENTED, code, message, aot_no_value());
}

static aot_status_t fail_loss(const stitching_t *s, const char *why) {
  char message[160];
  snprintf(message, sizeof message, "user output %u cannot be the loss: %s", s->loss, why);
  return fail(s, "stitch.loss", message);
}

static int is_leaf(int32_t role) {
  return role == AOT_ROLE_PARAMETER || role == AOT_ROLE_BUFFER || role == AOT_ROLE_CONSTANT || role == AOT_ROLE_USER_INPUT ||
         role == AOT_ROLE_STATE;
}

/* ---- what the parts hand to each other ---- */

static uint32_t *table(const stitching_t *s, uint32_t n) {
  uint32_t *t = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, sizeof *t, ((uint64_t)n + 1) * sizeof *t);
  for (uint32_t i = 0; t && i <= n; i++) t[i] = AOT_NO_ID;
  return t;
}

static aot_status_t read_outputs(stitching_t *s) {
  const aot_port_t *out = s->graph->outputs(s->prog, s->part[FORWARD]);
  const uint32_t n = s->graph->n_outputs(s->prog, s->part[FORWARD]);
  const aot_port_t *gradients = s->graph->outputs(s->prog, s->part[BACKWARD]);
  const uint32_t n_gradients = s->graph->n_outputs(s->prog, s->part[BACKWARD]);
  s->n_slots = n;
  s->saved = table(s, n);
  s->gradient = table(s, s->graph->n_leaves(s->prog));
  s->leaf_value = table(s, s->graph->n_leaves(s->prog));
  s->copier.map = table(s, s->graph->n_values(s->prog));
  s->is_needed = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)s->graph->n_values(s->prog) + 1);
  if (!s->saved || !s->gradient || !s->leaf_value || !s->copier.map || !s->is_needed) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++)
    if (out[i].role == AOT_ROLE_SAVED && out[i].index < n) s->saved[out[i].index] = out[i].value.id;
  for (uint32_t i = 0; i < n_gradients; i++)
    if (gradients[i].role == AOT_ROLE_GRADIENT) s->gradient[gradients[i].index] = gradients[i].value.id;
  return AOT_OK;
}

/* The value of an earlier part that an input of a later one is; AOT_NO_ID: it comes from outside. */
static uint32_t handed(const stitching_t *s, const aot_port_t *input) {
  if (input->role == AOT_ROLE_SAVED) return input->index < s->n_slots ? s->saved[input->index] : AOT_NO_ID;
  return input->role == AOT_ROLE_GRADIENT ? s->gradient[input->index] : AOT_NO_ID;
}

static int is_result(const stitching_t *s, const aot_port_t *output) {
  const int is_loss = output->role == AOT_ROLE_LOSS || output->role == AOT_ROLE_USER_OUTPUT;
  return output->value.id != AOT_NO_ID &&
         (output->role == AOT_ROLE_UPDATE || output->role == AOT_ROLE_OFFSET || output->role == AOT_ROLE_TOKEN || (is_loss && output->index == s->loss));
}

/* ---- what the step needs: from its results back ---- */

static void need_results(stitching_t *s, aot_graph_t part) {
  const aot_port_t *out = s->graph->outputs(s->prog, part);
  for (uint32_t i = 0, n = s->graph->n_outputs(s->prog, part); i < n; i++)
    if (is_result(s, &out[i])) s->is_needed[out[i].value.id] = 1;
}

static int is_wanted(const stitching_t *s, const aot_node_info_t *node) {
  if (s->graph->op_desc(s->prog, node->op)->flags & (AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_WRITES)) return 1;
  for (uint32_t r = 0; r < node->n_results; r++)
    if (s->is_needed[node->first_result.id + r]) return 1;
  return 0;
}

static aot_status_t need_part(stitching_t *s, aot_graph_t part) {
  need_results(s, part);
  for (aot_node_t n = s->graph->last(s->prog, part); n.id != AOT_NO_ID; n = s->graph->prev(s->prog, n)) {
    aot_node_info_t node = {.struct_size = sizeof node};
    AOT_TRY(s->graph->node_info(s->prog, n, &node));
    if (!is_wanted(s, &node)) continue;
    for (uint32_t i = 0; i < node.n_operands; i++)
      if (node.operands[i] != AOT_NO_ID) s->is_needed[node.operands[i]] = 1;
  }
  const aot_port_t *in = s->graph->inputs(s->prog, part);
  for (uint32_t i = 0, n = s->graph->n_inputs(s->prog, part); i < n; i++) {
    const uint32_t from = handed(s, &in[i]);
    if (s->is_needed[in[i].value.id] && from != AOT_NO_ID) s->is_needed[from] = 1;
  }
  return AOT_OK;
}

/* ---- tangents ---- */

static aot_status_t add_tangent(stitching_t *s, const aot_port_t *port) {
  em_t e = em_make(s->host, s->ctx, s->prog, s->copier.graph);
  const aot_type_t t = em_type(&e, em_v(port->value));
  e.flags = AOT_NODE_BACKWARD;
  e.code = "stitch.operator";
  e.what = "a tangent";
  const em_x number = em_f(port->role == AOT_ROLE_TANGENT && port->index == s->loss ? 1 : 0);
  s->copier.map[port->value.id] = em_value(&e, em_filled(&e, &t, number)).id;
  return e.status;
}

/* ---- inputs: every leaf once, in the order in which the parts take them; the chains of effects stay two ---- */

static aot_status_t add_outside(stitching_t *s, const aot_port_t *port) {
  uint32_t *known = is_leaf(port->role)             ? &s->leaf_value[port->index]
                    : port->role == AOT_ROLE_SEED   ? &s->seed
                    : port->role == AOT_ROLE_OFFSET ? &s->offset : NULL;
  if (known && *known != AOT_NO_ID) {
    s->copier.map[port->value.id] = *known;
    return AOT_OK;
  }
  AOT_TRY(pt_add_input(&s->copier, port, port->role, port->index, port->name));
  if (known) *known = s->copier.map[port->value.id];
  return AOT_OK;
}

/* Ports are copied out of the host one at a time: our own edits may move them. */
static aot_status_t add_inputs(stitching_t *s, aot_graph_t part) {
  for (uint32_t i = 0; i < s->graph->n_inputs(s->prog, part); i++) {
    const aot_port_t port = s->graph->inputs(s->prog, part)[i];
    if (port.role == AOT_ROLE_TANGENT || port.role == AOT_ROLE_TANGENT_UPDATE || port.role == AOT_ROLE_SAVED || port.role == AOT_ROLE_GRADIENT)
      continue;
    if (is_leaf(port.role) || s->is_needed[port.value.id]) AOT_TRY(add_outside(s, &port));
  }
  return AOT_OK;
}

static aot_status_t connect(stitching_t *s, aot_graph_t part) {
  for (uint32_t i = 0; i < s->graph->n_inputs(s->prog, part); i++) {
    const aot_port_t port = s->graph->inputs(s->prog, part)[i];
    const uint32_t from = handed(s, &port);
    if (from != AOT_NO_ID) s->copier.map[port.value.id] = s->copier.map[from];
    else if ((port.role == AOT_ROLE_TANGENT || port.role == AOT_ROLE_TANGENT_UPDATE) && s->is_needed[port.value.id]) AOT_TRY(add_tangent(s, &port));
  }
  return AOT_OK;
}

/* ---- the step ---- */

static aot_status_t copy_part(stitching_t *s, aot_graph_t part) {
  AOT_TRY(connect(s, part));
  for (aot_node_t n = s->graph->first(s->prog, part); n.id != AOT_NO_ID; n = s->graph->next(s->prog, n)) {
    aot_node_info_t node = {.struct_size = sizeof node};
    AOT_TRY(s->graph->node_info(s->prog, n, &node));
    if (is_wanted(s, &node)) AOT_TRY(pt_copy_node(&s->copier, n.id, 0));
  }
  return AOT_OK;
}

static aot_status_t add_outputs(stitching_t *s, aot_graph_t part, int is_loss_turn) {
  for (uint32_t i = 0; i < s->graph->n_outputs(s->prog, part); i++) {
    const aot_port_t port = s->graph->outputs(s->prog, part)[i];
    const int is_loss = port.role == AOT_ROLE_LOSS || port.role == AOT_ROLE_USER_OUTPUT;
    if (!is_result(s, &port) || is_loss != is_loss_turn) continue;
    AOT_TRY(s->host->edit->output_add(s->prog, s->copier.graph, is_loss ? AOT_ROLE_LOSS : port.role, port.index,
                                      (aot_value_t){s->copier.map[port.value.id]}, port.name));
  }
  return AOT_OK;
}

typedef struct storage {
  const char *begin, *end;
  uint32_t leaf;
} storage_t;

static int by_begin(const void *a, const void *b) {
  const storage_t *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

/* New values are written over the old ones in the middle of the step: where leaves share memory, another may yet be read. */
static aot_status_t check_sharing(const stitching_t *s) {
  const uint32_t n_leaves = s->graph->n_leaves(s->prog);
  storage_t *at = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, sizeof(void *), ((uint64_t)n_leaves + 1) * sizeof *at);
  uint32_t n = 0;
  if (!at) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n_leaves; i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (s->graph->leaf_info(s->prog, (aot_leaf_t){i}, &leaf) != AOT_OK || leaf.role == AOT_ROLE_USER_INPUT || !leaf.nbytes || !leaf.data) continue;
    at[n++] = (storage_t){leaf.data, (const char *)leaf.data + leaf.nbytes, i};
  }
  qsort(at, n, sizeof *at, by_begin);
  for (uint32_t i = 1; i < n; i++)
    if (at[i].begin < at[i - 1].end)
      return fail(s, "stitch.sharing", "two parameters or buffers of the model share memory, which the step would write while the other is read");
  return AOT_OK;
}

/* ---- what cannot be stitched ---- */

static aot_status_t check_loss(const stitching_t *s) {
  const aot_port_t *out = s->graph->outputs(s->prog, s->part[FORWARD]), *in = s->graph->inputs(s->prog, s->part[BACKWARD]);
  int has_tangents = 0, has_own = 0; /* a model exported with its backward has the 1 built in */
  for (uint32_t i = 0, n = s->graph->n_inputs(s->prog, s->part[BACKWARD]); i < n; i++) {
    has_tangents |= in[i].role == AOT_ROLE_TANGENT;
    has_own |= in[i].role == AOT_ROLE_TANGENT && in[i].index == s->loss;
  }
  if (has_tangents && !has_own) return fail_loss(s, "it depends on no parameter");
  for (uint32_t i = 0, n = s->graph->n_outputs(s->prog, s->part[FORWARD]); i < n; i++)
    if (is_result(s, &out[i]) && (out[i].role == AOT_ROLE_LOSS || (has_tangents && out[i].role == AOT_ROLE_USER_OUTPUT)))
      return AOT_OK;
  return fail_loss(s, "there is no such output, or it is a view of another tensor");
}

static aot_status_t stitch(stitching_t *s) {
  AOT_TRY(read_outputs(s));
  AOT_TRY(check_loss(s));
  AOT_TRY(check_sharing(s));
  for (int k = N_PARTS; k-- > 0;) AOT_TRY(need_part(s, s->part[k]));
  AOT_TRY(s->host->edit->graph_create(s->prog, AOT_GRAPH_STEP, aot_str("step"), &s->copier.graph));
  for (int k = 0; k < N_PARTS; k++) AOT_TRY(add_inputs(s, s->part[k]));
  for (int k = 0; k < N_PARTS; k++) AOT_TRY(copy_part(s, s->part[k]));
  AOT_TRY(add_outputs(s, s->part[FORWARD], 1));
  for (int k = 0; k < N_PARTS; k++) AOT_TRY(add_outputs(s, s->part[k], 0));
  for (int k = 0; k < N_PARTS; k++) AOT_TRY(s->host->edit->graph_erase(s->prog, s->part[k]));
  return AOT_OK;
}

aot_status_t st_stitch(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t loss) {
  stitching_t s = {.copier = {.host = host, .ctx = ctx, .prog = prog}, .host = host, .graph = host->graph, .ctx = ctx, .prog = prog,
                   .loss = loss, .seed = AOT_NO_ID, .offset = AOT_NO_ID};
  for (int k = 0; k < N_PARTS; k++) {
    char message[96];
    s.part[k] = host->graph->graph_find(prog, kinds[k]);
    snprintf(message, sizeof message, "the program has no %s graph, so there is no step to make of it", names[k]);
    if (s.part[k].id == AOT_NO_ID) return fail(&s, "stitch.part", message);
  }
  const aot_status_t status = stitch(&s);
  pt_copier_deinit(&s.copier);
  return status;
}
