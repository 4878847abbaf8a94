/* Replaces region nodes of one graph by the nodes of their bodies (no_grad regions, repeated regions). */
#include "regions.h"

#include "rewriting.h"
#include "kit/emit/inline_body.h"

/* Which argument is the body, where its operands begin, and which bool argument turns gradients on (-1: none). */
typedef struct region_row {
  const char *op;
  uint32_t body, operands;
  int32_t grad_mode;
} region_row_t;
static const region_row_t rows[] = {
    {"higher_order.wrap_with_set_grad_enabled", 1, 2, 0},
    {"higher_order.invoke_subgraph", 0, 2, -1},
};

static const region_row_t *find_row(const em_t *e) {
  for (size_t i = 0; (e->desc->flags & AOT_OP_REGION) && i < sizeof rows / sizeof *rows; i++)
    if (aot_str_eq(e->desc->name, aot_str(rows[i].op))) return &rows[i];
  return NULL;
}

/* A call's operands, lists of values one by one. NULL: e->status says why. */
static em_x_t *operands_of(em_t *e, const region_row_t *row, uint32_t *out_n) {
  const aot_node_info_t *n = &e->info;
  em_x_t *operands = em_scratch(e, (uint64_t)n->n_args + n->n_operands, sizeof *operands);
  *out_n = 0;
  for (uint32_t a = row->operands; operands && a < n->n_args; a++) {
    if (n->args[a].kind != AOT_ARG_VALUES) operands[(*out_n)++] = n->args[a];
    for (uint32_t k = 0; n->args[a].kind == AOT_ARG_VALUES && k < n->args[a].n; k++)
      operands[(*out_n)++] = em_v((aot_value_t){n->args[a].u.ids[k]});
  }
  return operands;
}

/* Marks of the region hold for what is in it. */
static aot_status_t inline_node(em_inliner_t *in, const region_row_t *row) {
  em_t *e = in->e;
  const aot_node_info_t *n = &e->info;
  const aot_graph_t body = {(uint32_t)n->args[row->body].u.i};
  uint32_t n_operands;
  const em_x_t *operands = operands_of(e, row, &n_operands);
  em_x_t *results = em_scratch(e, e->host->graph->n_outputs(e->prog, body), sizeof *results);
  /* the region's own mode stands above that around it */
  if (row->grad_mode >= 0) e->flags &= ~(uint32_t)AOT_NODE_NO_GRAD;
  if (row->grad_mode >= 0 && n->args[row->grad_mode].u.i == 0) e->flags |= AOT_NODE_NO_GRAD;
  AOT_TRY(e->status);
  em_inline(in, body, n_operands, operands, results);
  for (uint32_t i = 0; i < n->n_results && e->status == AOT_OK; i++)
    if (em_is_value(results[i]))
      em_ok(e, e->host->edit->uses_replace(e->prog, (aot_value_t){n->first_result.id + i}, em_value(e, results[i])));
  AOT_TRY(e->status);
  return e->host->edit->node_erase(e->prog, e->node);
}

/* One round from the front. Copies of a body precedes the next node to look at, so nested regions take another
 * round. */
static aot_status_t inline_round(em_inliner_t *in, const uint8_t *stays, uint32_t *out_n) {
  em_t *e = in->e;
  const aot_graph_api_t *g = e->host->graph;
  *out_n = 0;
  AOT_TRY(e->status);
  for (aot_node_t n = g->first(e->prog, e->graph), next; n.id != AOT_NO_ID; n = next) {
    next = g->next(e->prog, n);
    AOT_TRY(em_rewrite(e, n));
    const region_row_t *row = find_row(e);
    if (!row || (row->grad_mode < 0 && stays && stays[e->info.args[row->body].u.i])) continue;
    AOT_TRY(inline_node(in, row));
    (*out_n)++;
  }
  return AOT_OK;
}

aot_status_t fz_inline_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               const uint8_t *stays, uint32_t *n_inlined) {
  uint32_t n = 1;
  aot_status_t status = AOT_OK;
  while (status == AOT_OK && n > 0) {
    em_t e = fz_emitter(host, ctx, prog, graph, aot_no_node(), "a region in place of its call");
    em_inliner_t in;
    e.code = "functionalize.inline";
    em_inline_open(&in, &e);
    status = inline_round(&in, stays, &n);
    em_inline_close(&in);
    *n_inlined += n;
  }
  return status;
}
