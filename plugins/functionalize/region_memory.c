/* Decides whether a region is a function of its operands whose results have memory of their own. */
#include "regions.h"

#include <aot/inline.h>

/* Everything in memory of its own has a root: its node, or the input. A view may share with any operand that has an
 * alias mark: the first of them is used, more than one counts as an input. */
#define OF_AN_INPUT UINT32_MAX

/* The root of a node's results: what the marked operand has, or the node itself. */
static uint32_t root_of(const aot_op_desc_t *d, const aot_node_info_t *n, const uint32_t *root, const uint8_t *plain) {
  uint32_t found = n->first_result.id + 1; /* 0 is nothing */
  for (uint32_t a = 0, operand = 0; a < n->n_args; a++) {
    uint32_t width = aot_n_operands(&n->args[a]);
    if (n->args[a].kind == AOT_ARG_GRAPH && !plain[n->args[a].u.i]) return OF_AN_INPUT;
    for (uint32_t k = 0; k < width; k++, operand++) {
      if (d->n_args == 0 || !aot_schema_of(d, a)->alias_set || n->operands[operand] == AOT_NO_ID) continue;
      found = found == n->first_result.id + 1 ? root[n->operands[operand]] : OF_AN_INPUT;
    }
  }
  return found;
}

static int outputs_stand_alone(const aot_host_t *host, aot_prog_t *prog, aot_graph_t region, const uint32_t *root,
                               uint8_t *seen) {
  const aot_port_t *out = host->graph->outputs(prog, region);
  for (uint32_t i = 0; i < host->graph->n_outputs(prog, region); i++) {
    if (out[i].value.id == AOT_NO_ID) continue;
    uint32_t r = root[out[i].value.id];
    if (r == OF_AN_INPUT || seen[r]) return 0;
    seen[r] = 1;
  }
  return 1;
}

aot_status_t fz_region_is_plain(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t region,
                                const uint8_t *plain, uint8_t *out) {
  const aot_graph_api_t *g = host->graph;
  uint64_t n = (uint64_t)g->n_values(prog) + 2;
  uint32_t *root = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 4, n * 4);
  uint8_t *seen = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 1, n);
  *out = 0;
  if (!root || !seen) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < g->n_inputs(prog, region); i++) root[g->inputs(prog, region)[i].value.id] = OF_AN_INPUT;
  for (aot_node_t b = g->first(prog, region); b.id != AOT_NO_ID; b = g->next(prog, b)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(g->node_info(prog, b, &info));
    const aot_op_desc_t *d = g->op_desc(prog, info.op);
    if (d->flags & (AOT_OP_WRITES | AOT_OP_EFFECT | AOT_OP_COLLECTIVE)) return AOT_OK;
    for (uint32_t i = 0; i < info.n_results; i++) {
      uint32_t r = root_of(d, &info, root, plain);
      root[info.first_result.id + i] = r == info.first_result.id + 1 ? r + i : r;
    }
  }
  *out = (uint8_t)outputs_stand_alone(host, prog, region, root, seen);
  return AOT_OK;
}
