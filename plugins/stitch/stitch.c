/* Liveness from the results, copies of live nodes, ports and rules of the step graph (stitch.h). */
#include "stitch.h"

#include "kit/emit/emit_layout.h"
#include "kit/graph/copy_nodes.h"
#include "kit/graph/joint_error.h"
#include "over_ranks.h"
#include "update_places.h"
#include <aot/ext/leaf_part.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORWARD, BACKWARD, UPDATE, N_PARTS };
static const int32_t kinds[N_PARTS] = {AOT_GRAPH_FORWARD, AOT_GRAPH_BACKWARD, AOT_GRAPH_UPDATE};
static const char *const names[N_PARTS] = {"forward", "backward", "update"};

typedef struct stitcher {
  jg_copier_t copier; /* into the step; copier.map: by value id of the parts */
  const aot_host_t *host;
  const aot_graph_api_t *graph;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t part[N_PARTS];
  st_options_t options;
  st_finite_t finite;
  em_t emit;            /* at the end of the graph that is being made */
  uint8_t *is_needed;   /* by value id */
  uint32_t *leaf_value; /* by leaf: the step's input; AOT_NO_ID: none yet */
  uint32_t *gradient;   /* by leaf: the backward's output value */
  uint32_t *given;      /* by leaf: the gradient that the update gets, a value of the graph that is being made */
  uint32_t *sum;        /* by leaf: the leaf that its gradients are added up in */
  uint32_t *taken;      /* by leaf: that sum, as the update takes it */
  uint32_t *chosen;     /* by output of the update: what becomes of the leaf where steps may be skipped */
  uint32_t *saved;      /* by slot: the forward's output value */
  uint32_t *written;    /* by leaf: its new value, where the forward changes it and the step continues with that */
  uint8_t *is_updated;  /* by leaf: by the update */
  uint8_t *is_part;     /* by leaf: of one rank; the others have the rest of it */
  uint32_t n_slots, n_leaves;
  int is_sharded;        /* some leaf is a part */
  int has_finite;        /* its leaves are made */
  int takes_tangents;    /* 0: a model exported with its backward, whose loss has its tangent of 1 built in */
  uint32_t seed, offset; /* the step's inputs */
} stitcher_t;

static aot_status_t fail(const stitcher_t *s, const char *code, const char *message) {
  return jg_fail(s->host, s->ctx, AOT_E_UNIMPLEMENTED, code, message, aot_no_value());
}

static aot_status_t fail_loss(const stitcher_t *s, const char *why) {
  char message[160];
  snprintf(message, sizeof message, "user output %u %s, so it cannot be the loss", s->options.loss, why);
  return fail(s, "stitch.loss", message);
}

/* Those that are views of others, by rules, are counted as well. */
static uint32_t count_user_outputs(const stitcher_t *s) {
  const aot_port_t *out = s->graph->outputs(s->prog, s->part[FORWARD]);
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->graph->n_outputs(s->prog, s->part[FORWARD]); i++)
    if ((out[i].role == AOT_ROLE_LOSS || out[i].role == AOT_ROLE_USER_OUTPUT) && out[i].index + 1 > n)
      n = out[i].index + 1;
  for (uint32_t i = 0; i < s->graph->n_rules(s->prog); i++) {
    aot_rule_t r;
    if (s->graph->rule(s->prog, i, &r) != AOT_OK || r.kind < AOT_RULE_SAME_INPUT || r.kind > AOT_RULE_VIEW_BASE)
      continue;
    if (r.a + 1 > n) n = r.a + 1;
  }
  return n;
}

/* ---- what the parts hand to each other ---- */

static uint32_t *table(const stitcher_t *s, uint32_t n) {
  uint32_t *t = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, sizeof *t, ((uint64_t)n + 1) * sizeof *t);
  for (uint32_t i = 0; t && i <= n; i++) t[i] = AOT_NO_ID;
  return t;
}

static void mark_updated(const stitcher_t *s, aot_graph_t part, uint8_t *is_updated) {
  const aot_port_t *out = s->graph->outputs(s->prog, part);
  for (uint32_t i = 0, n = s->graph->n_outputs(s->prog, part); i < n; i++)
    if (out[i].role == AOT_ROLE_UPDATE) is_updated[out[i].index] = 1;
}

static aot_status_t read_outputs(stitcher_t *s) {
  const aot_port_t *out = s->graph->outputs(s->prog, s->part[FORWARD]);
  const uint32_t n = s->graph->n_outputs(s->prog, s->part[FORWARD]);
  const aot_port_t *gradients = s->graph->outputs(s->prog, s->part[BACKWARD]);
  const uint32_t n_gradients = s->graph->n_outputs(s->prog, s->part[BACKWARD]);
  s->n_slots = n;
  s->saved = table(s, n);
  s->n_leaves = s->graph->n_leaves(s->prog); /* of the program; our own come after */
  s->gradient = table(s, s->n_leaves);
  s->given = table(s, s->n_leaves);
  s->sum = table(s, s->n_leaves);
  s->taken = table(s, s->n_leaves);
  s->written = table(s, s->n_leaves);
  s->leaf_value = table(s, s->n_leaves);
  s->chosen = table(s, s->graph->n_outputs(s->prog, s->part[UPDATE]));
  s->copier.map = table(s, s->graph->n_values(s->prog));
  s->is_needed = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)s->graph->n_values(s->prog) + 1);
  s->is_updated = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)s->n_leaves + 1);
  s->is_part = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)s->n_leaves + 1);
  if (!s->saved || !s->gradient || !s->given || !s->sum || !s->taken || !s->written || !s->leaf_value || !s->chosen ||
      !s->copier.map || !s->is_needed || !s->is_updated || !s->is_part)
    return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++)
    if (out[i].role == AOT_ROLE_SAVED && out[i].index < n) s->saved[out[i].index] = out[i].value.id;
    else if (out[i].role == AOT_ROLE_UPDATE && s->options.accumulate == 1) s->written[out[i].index] = out[i].value.id;
  mark_updated(s, s->part[UPDATE], s->is_updated);
  for (uint32_t i = 1; i < s->n_leaves; i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    AOT_TRY(s->graph->leaf_info(s->prog, (aot_leaf_t){i}, &leaf));
    s->is_part[i] = (leaf.flags & AOT_LEAF_PART) != 0;
    s->is_sharded |= s->is_part[i];
  }
  for (uint32_t i = 0; i < n_gradients; i++)
    if (gradients[i].role == AOT_ROLE_GRADIENT) s->gradient[gradients[i].index] = gradients[i].value.id;
  return AOT_OK;
}

/* The value of an earlier part that an input of a later one is; AOT_NO_ID: it comes from outside. The update begins
 * with what the forward has made of a leaf; the backward reads no such leaf. */
static uint32_t handed(const stitcher_t *s, aot_graph_t part, const aot_port_t *input) {
  if (aot_role_is_leaf(input->role)) return part.id == s->part[UPDATE].id ? s->written[input->index] : AOT_NO_ID;
  if (input->role == AOT_ROLE_SAVED) return input->index < s->n_slots ? s->saved[input->index] : AOT_NO_ID;
  return input->role == AOT_ROLE_GRADIENT ? s->gradient[input->index] : AOT_NO_ID;
}

static int is_result(const stitcher_t *s, const aot_port_t *output) {
  const int is_loss = output->role == AOT_ROLE_LOSS || output->role == AOT_ROLE_USER_OUTPUT;
  return output->value.id != AOT_NO_ID &&
         (output->role == AOT_ROLE_UPDATE || output->role == AOT_ROLE_OFFSET || output->role == AOT_ROLE_TOKEN ||
          (is_loss && output->index == s->options.loss));
}

/* ---- what the step needs: from its results back ---- */

static void need_results(stitcher_t *s, aot_graph_t part) {
  const aot_port_t *out = s->graph->outputs(s->prog, part);
  for (uint32_t i = 0, n = s->graph->n_outputs(s->prog, part); i < n; i++)
    if (is_result(s, &out[i])) s->is_needed[out[i].value.id] = 1;
}

static int is_wanted(const stitcher_t *s, const aot_node_info_t *node) {
  if (s->graph->op_desc(s->prog, node->op)->flags & (AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_WRITES)) return 1;
  for (uint32_t r = 0; r < node->n_results; r++)
    if (s->is_needed[node->first_result.id + r]) return 1;
  return 0;
}

static aot_status_t need_part(stitcher_t *s, aot_graph_t part) {
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
    const uint32_t from = handed(s, part, &in[i]);
    if (s->is_needed[in[i].value.id] && from != AOT_NO_ID) s->is_needed[from] = 1;
  }
  return AOT_OK;
}

/* ---- tangents ---- */

/* The loss of a step is the mean of those of its micro steps. */
static em_x_t loss_tangent(stitcher_t *s, const aot_type_t *t) {
  em_t *e = &s->emit;
  const double n = (double)s->options.accumulate;
  if (em_is_none(s->finite.scale_now)) return em_filled(e, t, em_f(1.0 / n));
  const em_x_t share = em_div(e, s->finite.scale_now, em_f(n));
  return em_cast(e, em_mul(e, em_filled(e, t, em_f(1)), em_cast(e, share, t->dtype)), t->dtype);
}

static aot_status_t add_tangent(stitcher_t *s, const aot_port_t *port) {
  const aot_type_t t = em_type(&s->emit, em_v(port->value));
  const int is_loss = port->role == AOT_ROLE_TANGENT && port->index == s->options.loss;
  const em_x_t tangent = is_loss ? loss_tangent(s, &t) : em_filled(&s->emit, &t, em_f(0));
  s->copier.map[port->value.id] = em_value(&s->emit, tangent).id;
  return s->emit.status;
}

/* ---- inputs: every leaf once, in the order in which the parts take them; the chains of effects stay two ---- */

static aot_status_t add_outside(stitcher_t *s, const aot_port_t *port) {
  uint32_t *known = aot_role_is_leaf(port->role)    ? &s->leaf_value[port->index]
                    : port->role == AOT_ROLE_SEED   ? &s->seed
                    : port->role == AOT_ROLE_OFFSET ? &s->offset
                                                    : NULL;
  if (known && *known != AOT_NO_ID) {
    s->copier.map[port->value.id] = *known;
    return AOT_OK;
  }
  AOT_TRY(jg_add_input(&s->copier, port, port->role, port->index, port->name));
  if (known) *known = s->copier.map[port->value.id];
  return AOT_OK;
}

/* Ports are copied out of the host one at a time: our own edits may move them. */
static aot_status_t add_inputs(stitcher_t *s, aot_graph_t part) {
  for (uint32_t i = 0; i < s->graph->n_inputs(s->prog, part); i++) {
    const aot_port_t port = s->graph->inputs(s->prog, part)[i];
    if (port.role == AOT_ROLE_TANGENT || port.role == AOT_ROLE_SAVED || port.role == AOT_ROLE_GRADIENT) continue;
    if (handed(s, part, &port) != AOT_NO_ID) continue;
    if (aot_role_is_leaf(port.role) || s->is_needed[port.value.id]) AOT_TRY(add_outside(s, &port));
  }
  return AOT_OK;
}

static aot_status_t connect(stitcher_t *s, aot_graph_t part) {
  for (uint32_t i = 0; i < s->graph->n_inputs(s->prog, part); i++) {
    const aot_port_t port = s->graph->inputs(s->prog, part)[i];
    const uint32_t from = handed(s, part, &port);
    if (port.role == AOT_ROLE_GRADIENT) s->copier.map[port.value.id] = s->given[port.index];
    else if (from != AOT_NO_ID) s->copier.map[port.value.id] = s->copier.map[from];
    else if (port.role == AOT_ROLE_TANGENT && s->is_needed[port.value.id]) AOT_TRY(add_tangent(s, &port));
  }
  return AOT_OK;
}

/* ---- the step ---- */

/* before: by node id, where copies go; NULL: all at the end. Copies say what they are of. */
static aot_status_t copy_part(stitcher_t *s, int k, const uint32_t *before) {
  static const uint32_t marks[N_PARTS] = {0, AOT_NODE_BACKWARD, AOT_NODE_UPDATE};
  const aot_graph_t part = s->part[k];
  AOT_TRY(connect(s, part));
  for (aot_node_t n = s->graph->first(s->prog, part); n.id != AOT_NO_ID; n = s->graph->next(s->prog, n)) {
    aot_node_info_t node = {.struct_size = sizeof node};
    if (s->host->cancelled(s->host, s->ctx)) return AOT_E_CANCELLED;
    AOT_TRY(s->graph->node_info(s->prog, n, &node));
    s->copier.before.id = before ? before[n.id] : AOT_NO_ID;
    if (is_wanted(s, &node)) AOT_TRY(jg_copy_node(&s->copier, n.id, marks[k]));
  }
  return AOT_OK;
}

/* The update has the last word on a leaf that the forward writes, too. */
static int is_superseded(const stitcher_t *s, aot_graph_t part, const aot_port_t *port) {
  if (part.id != s->part[FORWARD].id || port->role != AOT_ROLE_UPDATE || s->written[port->index] == AOT_NO_ID) return 0;
  return s->is_updated[port->index];
}

static aot_status_t add_outputs(stitcher_t *s, aot_graph_t part, int is_loss_turn) {
  for (uint32_t i = 0; i < s->graph->n_outputs(s->prog, part); i++) {
    const aot_port_t port = s->graph->outputs(s->prog, part)[i];
    const int is_loss = port.role == AOT_ROLE_LOSS || port.role == AOT_ROLE_USER_OUTPUT;
    if (!is_result(s, &port) || is_loss != is_loss_turn || is_superseded(s, part, &port)) continue;
    const int is_chosen = part.id == s->part[UPDATE].id && s->chosen[i] != AOT_NO_ID;
    const aot_value_t value = {is_chosen ? s->chosen[i] : s->copier.map[port.value.id]};
    AOT_TRY(s->host->edit->output_add(s->prog, s->copier.graph, is_loss ? AOT_ROLE_LOSS : port.role, port.index, value,
                                      port.name));
  }
  return AOT_OK;
}

/* ---- gradients on their way from the backward to the update ---- */

static int is_given(const stitcher_t *s, uint32_t leaf) {
  return s->gradient[leaf] != AOT_NO_ID && s->is_needed[s->gradient[leaf]];
}

static void give_gradients(stitcher_t *s) {
  for (uint32_t i = 0; i < s->n_leaves; i++)
    if (is_given(s, i)) s->given[i] = s->copier.map[s->gradient[i]];
}

/* The ranks that a parameter's parts are gathered from; in a mesh not all of them. */
static aot_status_t ranks_with_parts(const stitcher_t *s, aot_str_t *out) {
  em_t e = em_make(s->host, s->ctx, s->prog, s->part[FORWARD]);
  *out = aot_str(AOT_RANKS_ALL);
  for (aot_node_t n = s->graph->first(s->prog, e.graph); n.id != AOT_NO_ID; n = s->graph->next(s->prog, n)) {
    AOT_TRY(em_look(&e, n));
    if (!aot_str_eq(e.desc->name, aot_str("_c10d_functional.all_gather_into_tensor.default")) &&
        !aot_str_eq(e.desc->name, aot_str("aot.all_gather_as.default")))
      continue;
    const aot_arg_t *group = &e.info.args[e.info.n_args - 1];
    if (group->kind == AOT_ARG_STR) *out = (aot_str_t){group->u.chars, group->n};
    return AOT_OK;
  }
  return AOT_OK;
}

/* The norm of what all ranks have together, of the norms of what this one has. */
static em_x_t norm_over_ranks(stitcher_t *s, const uint32_t *norms, uint32_t n) {
  em_t *e = &s->emit;
  aot_str_t ranks;
  const em_x_t own = EM(e, "linalg_vector_norm", EM(e, "stack", aot_arg_values(norms, n)), em_f(2));
  const em_x_t square = em_mul(e, own, own);
  if (!em_ok(e, ranks_with_parts(s, &ranks))) return em_none();
  return EM(e, "sqrt", st_over_ranks(e, square, "sum", ranks));
}

/* All gradients times min(1, most / their norm): torch.nn.utils.clip_grad_norm_, in its order of operations. */
static aot_status_t clip(stitcher_t *s) {
  em_t *e = &s->emit;
  uint32_t *norms = table(s, s->n_leaves), *parts = table(s, s->n_leaves), n = 0, n_parts = 0;
  int32_t dtype = 0;
  if (!norms || !parts) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < s->n_leaves; i++) {
    if (!is_given(s, i)) continue;
    em_x_t norm = EM(e, "linalg_vector_norm", em_v((aot_value_t){s->given[i]}), em_f(2));
    if (!dtype) dtype = em_type(e, norm).dtype;
    const uint32_t id = em_value(e, em_cast(e, norm, dtype)).id;
    if (s->is_part[i]) parts[n_parts++] = id;
    else norms[n++] = id;
  }
  if (n_parts) norms[n++] = em_value(e, norm_over_ranks(s, parts, n_parts)).id;
  if (n == 0) return e->status;
  const em_x_t total = EM(e, "linalg_vector_norm", EM(e, "stack", aot_arg_values(norms, n)), em_f(2));
  const em_x_t factor = em_mul(e, EM(e, "reciprocal", em_add(e, total, em_f(1e-6))), em_f(s->options.clip_norm));
  const em_x_t clipped = EM(e, "clamp", factor, em_none(), em_f(1));
  for (uint32_t i = 0; i < s->n_leaves; i++) {
    if (!is_given(s, i)) continue;
    const em_x_t g = em_v((aot_value_t){s->given[i]});
    s->given[i] = em_value(e, em_mul(e, g, em_cast(e, clipped, aot_dtype_part(em_type(e, g).dtype)))).id;
  }
  return e->status;
}

/* ---- steps that are not accepted ---- */

static int may_skip(const stitcher_t *s) { return s->options.scaling.first > 0 || s->options.check_finite; }

static aot_status_t check_gradients(stitcher_t *s) {
  uint32_t *given = table(s, s->n_leaves);
  if (!given) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < s->n_leaves; i++)
    if (is_given(s, i)) given[i] = s->given[i];
  st_finite_check(&s->finite, &s->emit, given, s->n_leaves, s->is_sharded);
  for (uint32_t i = 0; i < s->n_leaves; i++)
    if (is_given(s, i)) s->given[i] = given[i];
  return s->emit.status;
}

/* What the optimizer writes stays as it was where a gradient is not finite: parameters, states, its count of steps. */
static aot_status_t choose_updates(stitcher_t *s) {
  em_t *e = &s->emit;
  for (uint32_t i = 0; i < s->graph->n_outputs(s->prog, s->part[UPDATE]) && !em_is_none(s->finite.is_finite); i++) {
    const aot_port_t port = s->graph->outputs(s->prog, s->part[UPDATE])[i];
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (port.role != AOT_ROLE_UPDATE || port.value.id == AOT_NO_ID) continue;
    AOT_TRY(s->graph->leaf_info(s->prog, (aot_leaf_t){port.index}, &leaf));
    const uint32_t written = s->written[port.index];
    aot_value_t old = {written == AOT_NO_ID ? s->leaf_value[port.index] : s->copier.map[written]};
    if (old.id == AOT_NO_ID)
      AOT_TRY(s->host->edit->input_add(s->prog, s->copier.graph, leaf.role, port.index, &leaf.type,
                                       leaf.n_names ? leaf.names[0] : port.name, &old));
    if (written == AOT_NO_ID) s->leaf_value[port.index] = old.id;
    const em_x_t to = em_v((aot_value_t){s->copier.map[port.value.id]});
    s->chosen[i] = em_value(e, EM(e, "where.self", s->finite.is_finite, to, em_v(old))).id;
  }
  st_finite_update(&s->finite, e);
  return e->status;
}

/* A leaf of zeros for the sum of a parameter's gradients. */
static aot_status_t add_sum(stitcher_t *s, uint32_t leaf) {
  static const char prefix[] = "accumulated.";
  aot_leaf_info_t parameter = {.struct_size = sizeof parameter},
                  sum = {.struct_size = sizeof sum, .role = AOT_ROLE_STATE, .n_names = 1};
  aot_leaf_t made;
  AOT_TRY(s->graph->leaf_info(s->prog, (aot_leaf_t){leaf}, &parameter));
  const aot_str_t name = parameter.n_names ? parameter.names[0] : (aot_str_t){"", 0};
  char *text = s->host->alloc(s->host, s->ctx, AOT_ARENA_GRAPH, 1, name.size + sizeof prefix);
  if (!text) return AOT_E_EXHAUSTED;
  memcpy(text, prefix, sizeof prefix - 1);
  memcpy(text + sizeof prefix - 1, name.data, (size_t)name.size);
  const aot_str_t full = {text, name.size + sizeof prefix - 1};
  sum.names = &full;
  sum.flags = parameter.flags & AOT_LEAF_PART_FLAGS;
  AOT_TRY(s->graph->value_type(s->prog, (aot_value_t){s->given[leaf]}, &sum.type));
  sum.type.strides = NULL;
  sum.type.offset = 0;
  sum.type.flags = 0;
  AOT_TRY(s->host->edit->leaf_create(s->prog, &sum, &made));
  s->sum[leaf] = made.id;
  const aot_rule_t rule = {.kind = AOT_RULE_COPY_BACK, .a = made.id};
  return s->host->edit->rule_add(s->prog, &rule);
}

/* The sum so far, as an input of the graph that is being made. */
static aot_status_t take_sum(stitcher_t *s, uint32_t leaf, aot_value_t *out) {
  aot_leaf_info_t sum = {.struct_size = sizeof sum};
  AOT_TRY(s->graph->leaf_info(s->prog, (aot_leaf_t){s->sum[leaf]}, &sum));
  return s->host->edit->input_add(s->prog, s->copier.graph, AOT_ROLE_STATE, s->sum[leaf], &sum.type, sum.names[0], out);
}

static aot_status_t put_sum(stitcher_t *s, uint32_t leaf, em_x_t value) {
  const aot_value_t v = em_value(&s->emit, value);
  AOT_TRY(s->emit.status);
  return s->host->edit->output_add(s->prog, s->copier.graph, AOT_ROLE_UPDATE, s->sum[leaf], v, (aot_str_t){"", 0});
}

/* A micro step adds its gradients up; the step that applies them begins the sums again. A tangent that is built in was
 * not made a share of the loss, so the gradients are. */
static aot_status_t add_up(stitcher_t *s) {
  st_places_t places;
  s->emit.flags = AOT_NODE_UPDATE;
  AOT_TRY(st_places_init(&places, s->host, s->ctx, s->prog, s->copier.graph));
  for (uint32_t i = 0; i < s->n_leaves; i++) {
    aot_value_t sum;
    if (!is_given(s, i)) continue;
    AOT_TRY(add_sum(s, i));
    AOT_TRY(take_sum(s, i, &sum));
    s->emit.before = st_places_behind(&places, s->given[i]);
    const em_x_t g = em_v((aot_value_t){s->given[i]});
    const em_x_t share = s->takes_tangents ? g : em_mul(&s->emit, g, em_f(1.0 / (double)s->options.accumulate));
    AOT_TRY(put_sum(s, i, em_add(&s->emit, em_v(sum), share)));
  }
  return AOT_OK;
}

static aot_status_t give_sums(stitcher_t *s) {
  for (uint32_t i = 0; i < s->n_leaves; i++) {
    aot_value_t sum;
    if (!is_given(s, i)) continue;
    AOT_TRY(take_sum(s, i, &sum));
    s->given[i] = s->taken[i] = sum.id;
  }
  return AOT_OK;
}

/* After all that reads them, so that they can be written where they lie. */
static aot_status_t begin_sums_anew(stitcher_t *s) {
  for (uint32_t i = 0; i < s->n_leaves; i++) {
    if (!is_given(s, i)) continue;
    const aot_type_t t = em_type(&s->emit, em_v((aot_value_t){s->taken[i]}));
    AOT_TRY(put_sum(s, i, em_filled(&s->emit, &t, em_f(0))));
  }
  return AOT_OK;
}

/* ---- what cannot be stitched ---- */

typedef struct storage {
  const char *begin, *end;
  uint32_t leaf;
} storage_t;

static int by_begin(const void *a, const void *b) {
  const storage_t *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

/* New values are written over the old ones in the middle of the step: where a leaf that is updated shares memory with
 * others, one of them may yet be read. Storages that overlap are together, in the order of their first bytes. */
static aot_status_t check_sharing(const stitcher_t *s) {
  storage_t *at =
      s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, sizeof(void *), ((uint64_t)s->n_leaves + 1) * sizeof *at);
  uint8_t *is_updated = s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)s->n_leaves + 1);
  uint32_t n = 0;
  if (!at || !is_updated) return AOT_E_EXHAUSTED;
  for (int k = 0; k < N_PARTS; k++) mark_updated(s, s->part[k], is_updated);
  for (uint32_t i = 1; i < s->n_leaves; i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    AOT_TRY(s->graph->leaf_info(s->prog, (aot_leaf_t){i}, &leaf));
    if (leaf.role == AOT_ROLE_USER_INPUT || !leaf.nbytes || !leaf.data) continue;
    at[n++] = (storage_t){leaf.data, (const char *)leaf.data + leaf.nbytes, i};
  }
  qsort(at, n, sizeof *at, by_begin);
  const char *end = NULL; /* of the storages so far that overlap */
  uint32_t n_together = 0;
  int any_updated = 0;
  for (uint32_t i = 0; i < n; i++) {
    const int is_apart = !end || at[i].begin >= end;
    n_together = is_apart ? 1 : n_together + 1;
    any_updated = is_updated[at[i].leaf] || (!is_apart && any_updated);
    end = is_apart || at[i].end > end ? at[i].end : end;
    if (n_together > 1 && any_updated)
      return fail(s, "stitch.sharing",
                  "a parameter or buffer that the step writes shares memory with another, which may yet be read");
  }
  return AOT_OK;
}

static aot_status_t check_loss(stitcher_t *s) {
  const aot_port_t *out = s->graph->outputs(s->prog, s->part[FORWARD]),
                   *in = s->graph->inputs(s->prog, s->part[BACKWARD]);
  const uint32_t n_user = count_user_outputs(s);
  int has_own = 0;
  for (uint32_t i = 0, n = s->graph->n_inputs(s->prog, s->part[BACKWARD]); i < n; i++) {
    s->takes_tangents |= in[i].role == AOT_ROLE_TANGENT;
    has_own |= in[i].role == AOT_ROLE_TANGENT && in[i].index == s->options.loss;
  }
  if (s->options.loss >= n_user) {
    char message[128];
    snprintf(message, sizeof message, "loss index %u is out of range; the model has %u outputs", s->options.loss,
             n_user);
    return fail(s, "stitch.loss", message);
  }
  if (s->takes_tangents && !has_own) return fail_loss(s, "depends on no parameter");
  if (!s->takes_tangents && s->options.scaling.first > 0)
    return fail(s, "stitch.loss-scale",
                "the model was exported with its backward, whose tangent is built in, so its loss cannot be scaled");
  for (uint32_t i = 0, n = s->graph->n_outputs(s->prog, s->part[FORWARD]); i < n; i++)
    if (is_result(s, &out[i]) &&
        (out[i].role == AOT_ROLE_LOSS || (s->takes_tangents && out[i].role == AOT_ROLE_USER_OUTPUT)))
      return AOT_OK;
  return fail_loss(s, "is a view of another tensor, or not what the exported gradients are of");
}

/* A new graph to be made, which takes its inputs by itself. */
static aot_status_t begin_graph(stitcher_t *s, const char *name) {
  AOT_TRY(s->host->edit->graph_create(s->prog, AOT_GRAPH_STEP, aot_str(name), &s->copier.graph));
  s->emit = em_make(s->host, s->ctx, s->prog, s->copier.graph);
  s->emit.code = "stitch";
  s->emit.what = "the step";
  s->emit.flags = AOT_NODE_BACKWARD;
  for (uint32_t i = 0; i < s->n_leaves; i++) s->leaf_value[i] = AOT_NO_ID;
  s->seed = s->offset = AOT_NO_ID;
  if (may_skip(s) && !s->has_finite) st_finite_create(&s->finite, &s->emit, &s->options.scaling);
  s->has_finite = 1;
  if (s->options.scaling.first > 0) st_scale_take(&s->finite, &s->emit);
  return s->emit.status;
}

static aot_status_t finish_update(stitcher_t *s) {
  st_places_t places;
  uint32_t *before;
  s->emit.flags = AOT_NODE_UPDATE;
  if (may_skip(s)) AOT_TRY(check_gradients(s));
  if (s->options.clip_norm > 0) AOT_TRY(clip(s));
  AOT_TRY(st_places_init(&places, s->host, s->ctx, s->prog, s->copier.graph));
  AOT_TRY(st_places_of_update(&places, s->part[UPDATE], s->given, &before));
  AOT_TRY(copy_part(s, UPDATE, before));
  return choose_updates(s);
}

static aot_status_t stitch(stitcher_t *s) {
  const int is_whole = s->options.accumulate == 1;
  AOT_TRY(read_outputs(s));
  AOT_TRY(check_loss(s));
  AOT_TRY(check_sharing(s));
  for (int k = N_PARTS; k-- > 0;) AOT_TRY(need_part(s, s->part[k]));
  AOT_TRY(begin_graph(s, is_whole ? "step" : "micro_step"));
  for (int k = 0; k < (is_whole ? N_PARTS : UPDATE); k++) AOT_TRY(add_inputs(s, s->part[k]));
  AOT_TRY(copy_part(s, FORWARD, NULL));
  AOT_TRY(copy_part(s, BACKWARD, NULL));
  give_gradients(s);
  if (is_whole) AOT_TRY(finish_update(s));
  AOT_TRY(add_outputs(s, s->part[FORWARD], 1));
  for (int k = 0; k < (is_whole ? N_PARTS : UPDATE); k++) AOT_TRY(add_outputs(s, s->part[k], 0));
  if (!is_whole) {
    AOT_TRY(add_up(s));
    AOT_TRY(begin_graph(s, "apply"));
    AOT_TRY(add_inputs(s, s->part[UPDATE]));
    AOT_TRY(give_sums(s));
    AOT_TRY(finish_update(s));
    AOT_TRY(begin_sums_anew(s));
    AOT_TRY(add_outputs(s, s->part[UPDATE], 0));
  }
  for (int k = 0; k < N_PARTS; k++) AOT_TRY(s->host->edit->graph_erase(s->prog, s->part[k]));
  return AOT_OK;
}

aot_status_t st_stitch(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const st_options_t *options) {
  stitcher_t s = {
      .copier = {.host = host, .ctx = ctx, .prog = prog},
      .host = host,
      .graph = host->graph,
      .ctx = ctx,
      .prog = prog,
      .options = *options,
  };
  for (int k = 0; k < N_PARTS; k++) {
    char message[96];
    s.part[k] = host->graph->graph_find(prog, kinds[k]);
    snprintf(message, sizeof message, "the program has no %s graph, so there is no step to make of it", names[k]);
    if (s.part[k].id == AOT_NO_ID) return fail(&s, "stitch.part", message);
  }
  const aot_status_t status = stitch(&s);
  jg_copier_deinit(&s.copier);
  return status;
}
