/* Threads effect tokens through the nodes of a graph (order_effects.h). */
#include "order_effects.h"

#include "rewriting.h"
#include "kit/graph/snap_births.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

typedef struct threader {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  uint8_t *tells;   /* by node id: a size or number of the shape environment comes from it */
  uint8_t *effects; /* by graph id: holds a node with an effect */
  uint32_t n_tells;
  aot_op_t with_effects;
  aot_value_t token; /* the last one */
  uint32_t n;
} threader_t;

/* ---- what has an effect ---- */

static int gives_a_number(const threader_t *t, const aot_node_info_t *n) {
  for (uint32_t i = 0; i < n->n_results; i++) {
    aot_type_t type;
    if (t->host->graph->value_type(t->prog, (aot_value_t){n->first_result.id + i}, &type) != AOT_OK) continue;
    if (type.kind == AOT_TYPE_SYMINT || type.kind == AOT_TYPE_SYMFLOAT || type.kind == AOT_TYPE_SYMBOOL) return 1;
  }
  return 0;
}

static int has_effect(const threader_t *t, aot_node_t node, const aot_node_info_t *n) {
  for (uint32_t a = 0; a < n->n_args; a++)
    if (n->args[a].kind == AOT_ARG_GRAPH && t->effects[n->args[a].u.i]) return 1;
  if (!(t->host->graph->op_desc(t->prog, n->op)->flags & AOT_OP_EFFECT)) return 0;
  return !gives_a_number(t, n) && !(node.id < t->n_tells && t->tells[node.id]);
}

static aot_status_t graph_has_effect(const threader_t *t, aot_graph_t g, uint8_t *out) {
  for (aot_node_t n = t->host->graph->first(t->prog, g); n.id != AOT_NO_ID && !*out;
       n = t->host->graph->next(t->prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(t->host->graph->node_info(t->prog, n, &info));
    *out = (uint8_t)has_effect(t, n, &info);
  }
  return AOT_OK;
}

/* Regions with effects; one round a level of nesting, at most. */
static aot_status_t mark_regions(threader_t *t) {
  const uint32_t n = t->host->graph->n_graphs(t->prog);
  for (uint32_t changed = 1; changed;) {
    changed = 0;
    for (uint32_t g = 0; g < n; g++) {
      int32_t kind;
      aot_str_t name;
      uint8_t any = 0;
      if (t->effects[g] || t->host->graph->graph_info(t->prog, (aot_graph_t){g}, &kind, &name) != AOT_OK) continue;
      if (kind != AOT_GRAPH_REGION) continue;
      AOT_TRY(graph_has_effect(t, (aot_graph_t){g}, &any));
      changed |= t->effects[g] = any;
    }
  }
  return AOT_OK;
}

static aot_status_t mark_telling(threader_t *t) {
  const aot_snapshot_t *s = NULL;
  AOT_TRY(t->host->graph->snapshot(t->prog, &s));
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  uint8_t *births = calloc((size_t)s->nodes.count + 1, 1);
  aot_status_t status =
      births && sn_births(s, births) == 0 ? AOT_OK : fz_no_memory(t->host, t->ctx, aot_no_node(), "to order effects");
  for (uint32_t i = 1; status == AOT_OK && i < s->nodes.count; i++) t->tells[nodes[i].id] = births[i];
  free(births);
  return status;
}

/* ---- the chain ---- */

static aot_status_t first_token(threader_t *t, em_t *e) {
  const aot_type_t token = {.kind = AOT_TYPE_TOKEN};
  if (t->n > 0) return AOT_OK;
  t->with_effects = em_op(e, "higher_order.with_effects");
  AOT_TRY(e->status);
  return t->host->edit->input_add(t->prog, t->graph, AOT_ROLE_TOKEN, 0, &token, aot_str(""), &t->token);
}

/* node -> with_effects(token, op of node, arguments of node) */
static aot_status_t wrap(threader_t *t, aot_node_t node, const aot_node_info_t *n) {
  em_t e = fz_emitter(t->host, t->ctx, t->prog, t->graph, node, "the order of effects");
  aot_arg_t *args = em_scratch(&e, (uint64_t)n->n_args + 2, sizeof *args);
  aot_type_t *types = em_scratch(&e, (uint64_t)n->n_results + 1, sizeof *types);
  aot_node_info_t made;
  if (!args || !types) return fz_no_memory(t->host, t->ctx, aot_no_node(), "to order effects");
  AOT_TRY(first_token(t, &e));
  args[0] = aot_arg_value(t->token);
  args[1] = aot_arg_int_kind(AOT_ARG_OP, n->op.id);
  if (n->n_args) memcpy(args + 2, n->args, n->n_args * sizeof *args);
  types[0].kind = AOT_TYPE_TOKEN;
  em_types(&e, n->first_result, n->n_results, types + 1);
  em_carry(&e, n);
  em_put(&e, t->with_effects, n->n_args + 2, args, n->n_results + 1, types, &made);
  AOT_TRY(e.status);
  t->token = made.first_result;
  em_take_over(&e, n->first_result, (aot_value_t){t->token.id + 1}, n->n_results);
  AOT_TRY(e.status);
  t->n++;
  return t->host->edit->node_erase(t->prog, node);
}

static aot_status_t chain(threader_t *t) {
  const aot_graph_api_t *g = t->host->graph;
  for (aot_node_t n = g->first(t->prog, t->graph), next; n.id != AOT_NO_ID; n = next) {
    aot_node_info_t info = {.struct_size = sizeof info};
    next = g->next(t->prog, n);
    AOT_TRY(g->node_info(t->prog, n, &info));
    if (has_effect(t, n, &info)) AOT_TRY(wrap(t, n, &info));
  }
  return t->n ? t->host->edit->output_add(t->prog, t->graph, AOT_ROLE_TOKEN, 0, t->token, aot_str("")) : AOT_OK;
}

static int has_tokens(const threader_t *t) {
  const aot_port_t *in = t->host->graph->inputs(t->prog, t->graph);
  for (uint32_t i = 0; i < t->host->graph->n_inputs(t->prog, t->graph); i++)
    if (in[i].role == AOT_ROLE_TOKEN) return 1;
  return 0;
}

/* Most programs know no operator with an effect; those that do have few. */
static aot_status_t any_effect(const aot_host_t *host, aot_prog_t *prog, int *out) {
  const aot_graph_api_t *g = host->graph;
  *out = 0;
  for (uint32_t i = 1; i < g->n_graphs(prog) && !*out; i++)
    for (aot_node_t n = g->first(prog, (aot_graph_t){i}); n.id != AOT_NO_ID && !*out; n = g->next(prog, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      AOT_TRY(g->node_info(prog, n, &info));
      *out = (g->op_desc(prog, info.op)->flags & AOT_OP_EFFECT) != 0;
    }
  return AOT_OK;
}

aot_status_t fz_thread_effects(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               uint32_t *out_n) {
  threader_t t = {.host = host, .ctx = ctx, .prog = prog, .graph = graph};
  int any;
  *out_n = 0;
  AOT_TRY(any_effect(host, prog, &any));
  if (!any || has_tokens(&t)) return AOT_OK;
  t.n_tells = host->graph->n_nodes(prog);
  t.tells = calloc((size_t)t.n_tells + 1, 1);
  t.effects = calloc((size_t)host->graph->n_graphs(prog) + 1, 1);
  aot_status_t status =
      t.tells && t.effects ? mark_telling(&t) : fz_no_memory(host, ctx, aot_no_node(), "to order effects");
  if (status == AOT_OK) status = mark_regions(&t);
  if (status == AOT_OK) status = chain(&t);
  free(t.tells);
  free(t.effects);
  *out_n = t.n;
  return status;
}

aot_status_t fz_check_effects(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog) {
  const aot_graph_api_t *g = host->graph;
  aot_status_t status = AOT_OK;
  for (uint32_t i = 1; i < g->n_graphs(prog); i++)
    for (aot_node_t n = g->first(prog, (aot_graph_t){i}); n.id != AOT_NO_ID; n = g->next(prog, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      AOT_TRY(g->node_info(prog, n, &info));
      const uint32_t flags = g->op_desc(prog, info.op)->flags;
      if ((flags & AOT_OP_EFFECT) && (flags & (AOT_OP_WRITES | AOT_OP_VIEW)))
        status = fz_fail(host, ctx, AOT_E_UNIMPLEMENTED, "functionalize.effect-aliases",
                         "an operator with an effect that writes or aliases its arguments is not supported", n);
    }
  return status;
}
