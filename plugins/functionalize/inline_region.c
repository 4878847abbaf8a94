#include "regions.h"

#include "rewrite.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

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

typedef struct inliner {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  const uint8_t *stays; /* by graph: a repeated body that stays whole; NULL: none */
  uint32_t *map, n_map; /* by value of the body: value in the graph */
} inliner_t;

static const region_row_t *find_row(const aot_host_t *host, aot_prog_t *prog, const aot_node_info_t *n) {
  const aot_op_desc_t *d = host->graph->op_desc(prog, n->op);
  for (size_t i = 0; (d->flags & AOT_OP_REGION) && i < sizeof rows / sizeof *rows; i++)
    if (aot_str_eq(d->name, aot_str(rows[i].op))) return &rows[i];
  return NULL;
}

static aot_status_t fail_memory(inliner_t *in) {
  return fz_fail(in->host, in->ctx, AOT_E_EXHAUSTED, "functionalize.no-memory", "no memory to inline a region", aot_no_node());
}

#define CHECKPOINT_TAGS (AOT_NODE_MUST_SAVE | AOT_NODE_PREFER_SAVE | AOT_NODE_MUST_RECOMPUTE | AOT_NODE_PREFER_RECOMPUTE)

/* Marks of the region hold for what is in it; a checkpoint tag of its own stands above that of the region around it. */
static aot_status_t copy_body_node(inliner_t *in, const aot_node_info_t *from, const aot_node_info_t *owner, uint32_t owner_flags,
                                   aot_node_t before) {
  const aot_graph_api_t *g = in->host->graph;
  uint32_t n_ids = 0;
  aot_arg_t *args = calloc((size_t)from->n_args + 1, sizeof *args);
  uint32_t *ids = calloc((size_t)from->n_operands + 1, sizeof *ids);
  aot_type_t *types = calloc((size_t)from->n_results + 1, sizeof *types);
  aot_status_t status = args && ids && types ? AOT_OK : fail_memory(in);
  for (uint32_t i = 0; status == AOT_OK && i < from->n_args; i++) {
    args[i] = from->args[i];
    if (args[i].kind == AOT_ARG_VALUE) args[i].u.i = in->map[args[i].u.i];
    if (args[i].kind != AOT_ARG_VALUES) continue;
    args[i].u.ids = ids + n_ids;
    for (uint32_t k = 0; k < args[i].n; k++) {
      uint32_t v = from->args[i].u.ids[k];
      ids[n_ids++] = in->map[v];
    }
  }
  for (uint32_t i = 0; status == AOT_OK && i < from->n_results; i++)
    status = g->value_type(in->prog, (aot_value_t){from->first_result.id + i}, &types[i]);
  if (from->flags & CHECKPOINT_TAGS) owner_flags &= ~CHECKPOINT_TAGS;
  aot_node_spec_t spec = {.struct_size = sizeof spec, .flags = from->flags | owner_flags, .op = from->op, .n_args = from->n_args,
                          .args = args, .n_types = from->n_results, .types = types,
                          .region_tag = from->region_tag ? from->region_tag : owner->region_tag,
                          .origin = from->origin};
  aot_node_t made;
  if (status == AOT_OK) status = in->host->edit->node_create(in->prog, in->graph, &spec, before, &made);
  aot_node_info_t info = {.struct_size = sizeof info};
  if (status == AOT_OK) status = g->node_info(in->prog, made, &info);
  for (uint32_t i = 0; status == AOT_OK && i < from->n_results; i++)
    in->map[from->first_result.id + i] = info.first_result.id + i;
  free(args);
  free(ids);
  free(types);
  return status;
}

static aot_status_t bind_inputs(inliner_t *in, const aot_node_info_t *n, const region_row_t *row, aot_graph_t body,
                                aot_node_t node) {
  uint32_t n_inputs = in->host->graph->n_inputs(in->prog, body), bound = 0;
  const aot_port_t *inputs = in->host->graph->inputs(in->prog, body);
  for (uint32_t a = row->operands; a < n->n_args; a++) {
    uint32_t count = n->args[a].kind == AOT_ARG_VALUE ? 1 : n->args[a].kind == AOT_ARG_VALUES ? n->args[a].n : 0;
    for (uint32_t k = 0; k < count && bound < n_inputs; k++)
      in->map[inputs[bound++].value.id] = n->args[a].kind == AOT_ARG_VALUE ? (uint32_t)n->args[a].u.i : n->args[a].u.ids[k];
  }
  if (bound == n_inputs) return AOT_OK;
  return fz_fail(in->host, in->ctx, AOT_E_INVALID, "functionalize.region-operands",
                 "the region's body has more inputs than the node has operands", node);
}

static aot_status_t inline_node(inliner_t *in, aot_node_t node, const aot_node_info_t *n, const region_row_t *row) {
  const aot_graph_api_t *g = in->host->graph;
  aot_graph_t body = {(uint32_t)n->args[row->body].u.i};
  uint32_t flags = n->flags;
  if (row->grad_mode >= 0) flags &= ~(uint32_t)AOT_NODE_NO_GRAD; /* the region's own mode stands above that around it */
  if (row->grad_mode >= 0 && n->args[row->grad_mode].u.i == 0) flags |= AOT_NODE_NO_GRAD;
  AOT_TRY(bind_inputs(in, n, row, body, node));
  for (aot_node_t b = g->first(in->prog, body); b.id != AOT_NO_ID; b = g->next(in->prog, b)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(g->node_info(in->prog, b, &info));
    AOT_TRY(copy_body_node(in, &info, n, flags, node));
  }
  for (uint32_t i = 0; i < n->n_results; i++) {
    uint32_t v = g->outputs(in->prog, body)[i].value.id;
    if (v != AOT_NO_ID)
      AOT_TRY(in->host->edit->uses_replace(in->prog, (aot_value_t){n->first_result.id + i}, (aot_value_t){in->map[v]}));
  }
  return in->host->edit->node_erase(in->prog, node);
}

/* One round from the front. Copies of a body stand before the next node to look at, so nested regions take another round. */
static aot_status_t inline_round(inliner_t *in, uint32_t *out_n) {
  const aot_graph_api_t *g = in->host->graph;
  *out_n = 0;
  for (aot_node_t n = g->first(in->prog, in->graph), next; n.id != AOT_NO_ID; n = next) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(g->node_info(in->prog, n, &info));
    next = g->next(in->prog, n);
    const region_row_t *row = find_row(in->host, in->prog, &info);
    if (!row || (row->grad_mode < 0 && in->stays && in->stays[info.args[row->body].u.i])) continue;
    AOT_TRY(inline_node(in, n, &info, row));
    (*out_n)++;
  }
  return AOT_OK;
}

aot_status_t fz_inline_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               const uint8_t *stays, uint32_t *n_inlined) {
  uint32_t n = 1;
  aot_status_t status = AOT_OK;
  while (status == AOT_OK && n > 0) {
    inliner_t in = {host, ctx, prog, graph, stays, NULL, host->graph->n_values(prog)};
    in.map = calloc((size_t)in.n_map + 1, sizeof *in.map);
    status = in.map ? inline_round(&in, &n) : fail_memory(&in);
    free(in.map);
    *n_inlined += n;
  }
  return status;
}
