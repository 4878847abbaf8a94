/* From forward graph to joint graph: copies it, adds tangents, runs the reverse pass and adds gradient ports.
 *
 *     forward inputs | tangents  ->  [ forward nodes | backward nodes ]  ->  forward outputs | gradients
 *
 * Outputs with a tangent: user outputs and losses that are floating-point tensors and depend on a differentiable leaf.
 * Each leaf that requires a gradient gets a GRADIENT port of its shape and dtype: without a value if nothing with a
 * tangent depends on it, zeros if the derivative vanishes. */
#include "joint.h"

#include <stdio.h>

static aot_status_t copy_outputs(ag_joint_t *j) {
  const aot_host_t *h = j->a.host;
  uint32_t i, n = h->graph->n_outputs(j->a.prog, j->forward);
  for (i = 0; i < n; i++) {
    aot_port_t port = h->graph->outputs(j->a.prog, j->forward)[i];
    port.value.id = j->map[port.value.id];
    AOT_TRY(h->edit->output_add(j->a.prog, j->a.graph, port.role, port.index, port.value, port.name));
  }
  return AOT_OK;
}

/* ---- the graph as arrays ---- */

static aot_status_t count(ag_joint_t *j, uint32_t *out_nodes, uint32_t *out_operands) {
  const aot_graph_api_t *api = j->a.host->graph;
  aot_node_t n;
  uint32_t i;
  *out_nodes = *out_operands = 0;
  for (n = api->first(j->a.prog, j->a.graph); n.id != AOT_NO_ID; n = api->next(j->a.prog, n)) {
    AOT_TRY(ag_load(&j->a, n));
    ++*out_nodes;
    for (i = 0; i < j->a.info.n_args; i++) *out_operands += ag_n_operands(&j->a.info.args[i]);
  }
  return AOT_OK;
}

aot_status_t ag_joint_read(ag_joint_t *j) {
  const aot_graph_api_t *api = j->a.host->graph;
  uint32_t n_nodes, n_operands, n_values = api->n_values(j->a.prog), n, i, k, at = 0, most_args = 0;
  uint32_t *begin, *operand, *first, *results;
  uint8_t *stops, *able;
  aot_node_t node;
  AOT_TRY(count(j, &n_nodes, &n_operands));
  begin = em_scratch(&j->a, (uint64_t)n_nodes + 1, sizeof *begin);
  operand = em_scratch(&j->a, n_operands, sizeof *operand);
  first = em_scratch(&j->a, n_nodes, sizeof *first);
  results = em_scratch(&j->a, n_nodes, sizeof *results);
  stops = em_scratch(&j->a, n_nodes, 1);
  able = em_scratch(&j->a, n_values, 1);
  j->nodes = em_scratch(&j->a, n_nodes, sizeof *j->nodes);
  j->cot = em_scratch(&j->a, n_values, sizeof *j->cot);
  if (j->a.status != AOT_OK) return j->a.status;
  node = api->first(j->a.prog, j->a.graph);
  for (n = 0; n < n_nodes; n++, node = api->next(j->a.prog, node)) {
    const ag_bound_t *b;
    uint32_t shift;
    AOT_TRY(ag_load(&j->a, node));
    j->nodes[n] = node;
    begin[n] = at;
    first[n] = j->a.info.first_result.id;
    results[n] = j->a.info.n_results;
    if (j->a.info.n_args > most_args) most_args = j->a.info.n_args;
    for (i = 0; i < j->a.info.n_args; i++)
      for (k = 0; k < ag_n_operands(&j->a.info.args[i]); k++) operand[at++] = ag_operand(&j->a.info.args[i], k);
    shift = ag_look_through(&j->a);
    b = &j->site.rules[j->a.info.op.id];
    stops[n] = (uint8_t)(ag_stops(&j->a) || !ag_has_rule(b));
    for (k = shift; k < results[n]; k++)
      able[first[n] + k] = (uint8_t)(ag_able(&j->a, first[n] + k) && !(k > shift && b->first_only));
  }
  begin[n_nodes] = at;
  j->slot = em_scratch(&j->a, (uint64_t)most_args + 1, sizeof *j->slot);
  j->n_nodes = n_nodes;
  j->arrays = (ag_graph_t){
      .n_nodes = n_nodes,
      .n_values = n_values,
      .operand_begin = begin,
      .operand = operand,
      .first_result = first,
      .n_results = results,
      .stops = stops,
      .able = able,
  };
  return j->a.status;
}

/* ---- the reverse pass ---- */

/* What is emitted from now on belongs to no node of the model. */
static void unload(em_t *a) {
  a->node = aot_no_node();
  a->info.origin = aot_no_origin();
  a->desc = NULL;
}

aot_status_t ag_joint_seed(ag_joint_t *j, aot_value_t value, int32_t role, uint32_t index, const char *name) {
  aot_type_t t;
  aot_value_t tangent;
  uint32_t *cot = &j->cot[value.id];
  memset(&t, 0, sizeof t);
  AOT_TRY(j->a.host->graph->value_type(j->a.prog, value, &t));
  t.strides = NULL;
  t.offset = 0;
  t.flags = 0;
  AOT_TRY(j->a.host->edit->input_add(j->a.prog, j->a.graph, role, index, &t, aot_str(name), &tangent));
  j->n_tangents++;
  unload(&j->a);
  *cot = *cot == AG_NONE ? tangent.id : (uint32_t)AG_OP(&j->a, "add.Tensor", ag_v(*cot), ag_v(tangent.id)).u.i;
  return j->a.status;
}

static int32_t rule(void *self, uint32_t n, const uint32_t *cotangents, uint32_t *out) {
  ag_joint_t *j = self;
  em_t *a = &j->a;
  uint32_t i, shift;
  AOT_TRY(ag_load(a, j->nodes[n]));
  shift = ag_look_through(a);
  for (i = 0, j->slot[0] = 0; i < a->info.n_args; i++) j->slot[i + 1] = j->slot[i] + ag_n_operands(&a->info.args[i]);
  ag_of(a)->slot = j->slot;
  ag_of(a)->cotangents = cotangents + shift;
  ag_of(a)->out = out + shift;
  ag_apply(a, &ag_of(a)->rules[a->info.op.id]);
  if (a->status == AOT_OK && a->host->cancelled(a->host, a->ctx)) a->status = AOT_E_CANCELLED;
  return a->status;
}

static int32_t add(void *self, uint32_t n, uint32_t x, uint32_t y, uint32_t *out_sum) {
  ag_joint_t *j = self;
  AOT_TRY(ag_load(&j->a, j->nodes[n]));
  *out_sum = (uint32_t)AG_OP(&j->a, "add.Tensor", ag_v(x), ag_v(y)).u.i;
  return j->a.status;
}

aot_status_t ag_joint_reverse(ag_joint_t *j) {
  ag_reverse_ops_t ops = {.self = j, .rule = rule, .add = add};
  uint32_t *work = em_scratch(&j->a, 2 * (uint64_t)ag_widest(&j->arrays), sizeof *work);
  int32_t status;
  if (!work) return AOT_E_EXHAUSTED;
  ag_reach(&j->arrays, j->needs); /* expand.c has marked the same values, as far as they are still there */
  status = ag_reverse(&j->arrays, j->needs, j->cot, work, &ops);
  unload(&j->a);
  return status;
}

em_x_t ag_joint_gradient(ag_joint_t *j, aot_value_t input) {
  uint32_t c = j->cot[input.id];
  return c == AG_ZERO ? ag_zeros_like(&j->a, ag_v(input.id)) : ag_v(c);
}

aot_status_t ag_joint_sweep(ag_joint_t *j, uint32_t flags) {
  const aot_graph_api_t *api = j->a.host->graph;
  aot_node_t n, before;
  uint32_t k, used;
  for (n = api->last(j->a.prog, j->a.graph); n.id != AOT_NO_ID; n = before) {
    before = api->prev(j->a.prog, n);
    AOT_TRY(ag_load(&j->a, n));
    used = (j->a.info.flags & flags) != flags || (j->a.desc->flags & AOT_OP_EFFECT);
    for (k = 0; k < j->a.info.n_results && !used; k++) {
      aot_value_t v;
      v.id = j->a.info.first_result.id + k;
      used = api->n_uses(j->a.prog, v);
    }
    if (used) continue;
    AOT_TRY(j->a.host->edit->node_erase(j->a.prog, n));
    if (j->a.info.flags & AOT_NODE_BACKWARD) j->site.n_made--;
  }
  return AOT_OK;
}

/* ---- the program's joint graph ---- */

/* Does leaf `id` require a gradient? *out_name: its first name. */
static aot_status_t leaf_needs(ag_joint_t *j, uint32_t id, uint32_t *out_needs, aot_str_t *out_name) {
  aot_leaf_info_t info;
  aot_leaf_t leaf;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  leaf.id = id;
  AOT_TRY(j->a.host->graph->leaf_info(j->a.prog, leaf, &info));
  *out_needs = info.flags & AOT_LEAF_REQUIRES_GRAD;
  *out_name = info.n_names ? info.names[0] : aot_str("");
  return AOT_OK;
}

static aot_status_t mark_leaves(ag_joint_t *j) {
  const aot_graph_api_t *api = j->a.host->graph;
  const aot_port_t *in = api->inputs(j->a.prog, j->a.graph);
  uint32_t i, needs, n = api->n_inputs(j->a.prog, j->a.graph);
  aot_str_t name;
  AOT_TRY(ag_joint_grow(j));
  for (i = 0; i < n; i++) {
    if (!aot_role_is_leaf(in[i].role)) continue;
    AOT_TRY(leaf_needs(j, in[i].index, &needs, &name));
    if (needs) j->needs[in[i].value.id] = (uint8_t)ag_able(&j->a, in[i].value.id);
  }
  return AOT_OK;
}

/* A tangent for every user output that can have one. */
static aot_status_t add_tangents(ag_joint_t *j) {
  const aot_graph_api_t *api = j->a.host->graph;
  uint32_t i, n = api->n_outputs(j->a.prog, j->a.graph);
  for (i = 0; i < n; i++) {
    aot_port_t port = api->outputs(j->a.prog, j->a.graph)[i];
    char name[32];
    if (port.role != AOT_ROLE_USER_OUTPUT && port.role != AOT_ROLE_LOSS) continue;
    if (port.value.id == AOT_NO_ID || !j->needs[port.value.id]) continue;
    snprintf(name, sizeof name, "tangent_%u", port.index);
    AOT_TRY(ag_joint_seed(j, port.value, AOT_ROLE_TANGENT, port.index, name));
  }
  return AOT_OK;
}

/* A GRADIENT port for every leaf that requires one, in the order of leaves. */
static aot_status_t add_gradients(ag_joint_t *j) {
  const aot_host_t *h = j->a.host;
  aot_prog_t *p = j->a.prog;
  uint32_t i, needs, n_inputs = h->graph->n_inputs(p, j->a.graph), n = h->graph->n_leaves(p);
  aot_value_t *input = em_scratch(&j->a, n, sizeof *input);
  aot_str_t name;
  if (!input) return AOT_E_EXHAUSTED;
  for (i = n_inputs; i-- > 0;) {
    aot_port_t port = h->graph->inputs(p, j->a.graph)[i];
    if (aot_role_is_leaf(port.role)) input[port.index] = port.value;
  }
  for (i = 1; i < n; i++) {
    aot_value_t gradient = aot_no_value();
    AOT_TRY(leaf_needs(j, i, &needs, &name));
    if (!needs) continue;
    if (input[i].id != AOT_NO_ID) {
      em_x_t v = ag_joint_gradient(j, input[i]);
      if (j->a.status != AOT_OK) return j->a.status;
      if (em_is_value(v)) gradient.id = (uint32_t)v.u.i;
    }
    j->n_gradients += gradient.id != AOT_NO_ID;
    AOT_TRY(h->edit->output_add(p, j->a.graph, AOT_ROLE_GRADIENT, i, gradient, name));
  }
  return AOT_OK;
}

aot_status_t ag_joint_differentiate(ag_joint_t *j) {
  AOT_TRY(ag_joint_copy(j, AOT_GRAPH_JOINT, aot_str("joint")));
  AOT_TRY(copy_outputs(j));
  /* from here on everything happens in the joint graph */
  AOT_TRY(mark_leaves(j));
  AOT_TRY(ag_joint_expand(j));
  AOT_TRY(ag_joint_read(j));
  AOT_TRY(add_tangents(j));
  AOT_TRY(ag_joint_reverse(j));
  AOT_TRY(add_gradients(j));
  return ag_joint_sweep(j, AOT_NODE_BACKWARD);
}
