/* Computes the insertion points of update nodes (update_places.h). */
#include "update_places.h"

#include <aot/inline.h>

#define SHARES (AOT_OP_VIEW | AOT_OP_MAYBE_SELF) /* results that may be in the memory of an argument */

static void *scratch(const st_places_t *p, uint64_t n, uint64_t size) {
  return p->host->alloc(p->host, p->ctx, AOT_ARENA_SCRATCH, sizeof(uint32_t), (n + 2) * size);
}

static aot_status_t look(const st_places_t *p, aot_node_t n, aot_node_info_t *out) {
  *out = (aot_node_info_t){.struct_size = sizeof *out};
  return p->host->graph->node_info(p->prog, n, out);
}

/* ---- the graph as it stands ---- */

/* The node reads leaves and views of leaves; what it makes of them may be a view again. leaf_of: by value id, the
 * leaf, 0: none. */
static void read_leaves(st_places_t *p, const aot_node_info_t *node, uint32_t *leaf_of) {
  const int shares = (p->host->graph->op_desc(p->prog, node->op)->flags & SHARES) != 0;
  for (uint32_t k = 0; k < node->n_operands; k++) {
    const uint32_t leaf = node->operands[k] == AOT_NO_ID ? 0 : leaf_of[node->operands[k]];
    if (!leaf) continue;
    p->last_read[leaf] = p->n;
    for (uint32_t r = 0; r < node->n_results && shares; r++) leaf_of[node->first_result.id + r] = leaf;
  }
}

aot_status_t st_places_init(st_places_t *p, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog,
                            aot_graph_t graph) {
  const aot_graph_api_t *g = host->graph;
  *p = (st_places_t){.host = host, .ctx = ctx, .prog = prog};
  uint32_t *leaf_of = scratch(p, g->n_values(prog), sizeof *leaf_of);
  p->made = scratch(p, g->n_values(prog), sizeof *p->made);
  p->node = scratch(p, g->n_nodes(prog), sizeof *p->node);
  p->last_read = scratch(p, g->n_leaves(prog), sizeof *p->last_read);
  if (!leaf_of || !p->made || !p->node || !p->last_read) return AOT_E_EXHAUSTED;
  const aot_port_t *in = g->inputs(prog, graph);
  for (uint32_t i = 0, n = g->n_inputs(prog, graph); i < n; i++)
    if (aot_role_is_leaf(in[i].role)) leaf_of[in[i].value.id] = in[i].index;
  for (aot_node_t n = g->first(prog, graph); n.id != AOT_NO_ID; n = g->next(prog, n)) {
    aot_node_info_t node;
    AOT_TRY(look(p, n, &node));
    p->node[++p->n] = n.id;
    for (uint32_t r = 0; r < node.n_results; r++) p->made[node.first_result.id + r] = p->n;
    read_leaves(p, &node, leaf_of);
  }
  return AOT_OK;
}

/* ---- the update ---- */

static uint32_t later(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* With its gradient; what is made of that waits for the parameter's last reader as well, so that its new values
 * are together. */
static uint32_t ready(const st_places_t *p, const aot_port_t *input, const uint32_t *given) {
  const uint32_t gradient = input->role == AOT_ROLE_GRADIENT ? given[input->index] : AOT_NO_ID;
  return gradient == AOT_NO_ID ? 0 : later(p->made[gradient], p->last_read[input->index]);
}

/* since: by value id of the update, the position after which it can be made. */
static aot_status_t go_down(const st_places_t *p, aot_graph_t update, const uint32_t *given, uint32_t *since) {
  const aot_graph_api_t *g = p->host->graph;
  const aot_port_t *in = g->inputs(p->prog, update);
  for (uint32_t i = 0, n = g->n_inputs(p->prog, update); i < n; i++) since[in[i].value.id] = ready(p, &in[i], given);
  for (aot_node_t n = g->first(p->prog, update); n.id != AOT_NO_ID; n = g->next(p->prog, n)) {
    aot_node_info_t node;
    uint32_t at = 0;
    AOT_TRY(look(p, n, &node));
    for (uint32_t k = 0; k < node.n_operands; k++)
      if (node.operands[k] != AOT_NO_ID) at = later(at, since[node.operands[k]]);
    for (uint32_t r = 0; r < node.n_results; r++) since[node.first_result.id + r] = at;
  }
  return AOT_OK;
}

/* by: by value id, the position after which it is wanted; 0: nothing has asked yet. */
static void want(uint32_t *by, uint32_t value, uint32_t at) {
  if (value != AOT_NO_ID && (!by[value] || at < by[value])) by[value] = at;
}

static aot_status_t go_up(const st_places_t *p, aot_graph_t update, const uint32_t *since, uint32_t *by,
                          uint32_t *out) {
  const aot_graph_api_t *g = p->host->graph;
  const aot_port_t *outputs = g->outputs(p->prog, update);
  for (uint32_t i = 0, n = g->n_outputs(p->prog, update); i < n; i++) {
    const uint32_t value = outputs[i].value.id, at = value == AOT_NO_ID ? 0 : since[value];
    const uint32_t read = outputs[i].role == AOT_ROLE_UPDATE ? p->last_read[outputs[i].index] : 0;
    want(by, value, at ? later(at, read) : p->n);
  }
  for (aot_node_t n = g->last(p->prog, update); n.id != AOT_NO_ID; n = g->prev(p->prog, n)) {
    aot_node_info_t node;
    uint32_t at = p->n;
    AOT_TRY(look(p, n, &node));
    for (uint32_t r = 0; r < node.n_results; r++)
      if (by[node.first_result.id + r] && by[node.first_result.id + r] < at) at = by[node.first_result.id + r];
    for (uint32_t k = 0; k < node.n_operands; k++) want(by, node.operands[k], at);
    out[n.id] = p->node[at + 1];
  }
  return AOT_OK;
}

aot_status_t st_places_of_update(const st_places_t *p, aot_graph_t update, const uint32_t *given, uint32_t **out) {
  const uint32_t n_values = p->host->graph->n_values(p->prog);
  uint32_t *since = scratch(p, n_values, sizeof *since), *by = scratch(p, n_values, sizeof *by);
  *out = scratch(p, p->host->graph->n_nodes(p->prog), sizeof **out);
  if (!since || !by || !*out) return AOT_E_EXHAUSTED;
  AOT_TRY(go_down(p, update, given, since));
  return go_up(p, update, since, by, *out);
}
