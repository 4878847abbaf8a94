/* Post-order of the regions that a graph reaches, by depth-first search with an explicit stack. */
#include "regions.h"

#include <aot/inline.h>

/* The next region that a node at or after *cursor names and that is not met yet; AOT_NO_ID: none. *cursor and *arg
 * continue. */
static uint32_t next_named(const aot_host_t *host, aot_prog_t *prog, aot_node_t *cursor, uint32_t *arg,
                           const uint8_t *met) {
  for (; cursor->id != AOT_NO_ID; *cursor = host->graph->next(prog, *cursor), *arg = 0) {
    aot_node_info_t info = {.struct_size = sizeof info};
    if (host->graph->node_info(prog, *cursor, &info) != AOT_OK) return AOT_NO_ID;
    for (; *arg < info.n_args; ++*arg)
      if (info.args[*arg].kind == AOT_ARG_GRAPH && !met[info.args[*arg].u.i]) return (uint32_t)info.args[*arg].u.i;
  }
  return AOT_NO_ID;
}

/* Depth first with an explicit stack: where each graph on it is. */
uint32_t *fz_region_order(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t root, uint32_t *out_n) {
  const aot_graph_api_t *g = host->graph;
  uint64_t n = (uint64_t)g->n_graphs(prog) + 1;
  uint32_t *order = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 4, n * 4),
           *stack = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 4, n * 4);
  uint32_t *arg = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 4, n * 4), depth = 0;
  aot_node_t *cursor = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 4, n * sizeof *cursor);
  uint8_t *met = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 1, n);
  *out_n = 0;
  if (!order || !stack || !arg || !cursor || !met) return NULL;
  uint32_t enter = root.id;
  for (;;) {
    if (enter != AOT_NO_ID) {
      met[enter] = 1;
      stack[depth] = enter;
      arg[depth] = 0;
      cursor[depth++] = g->first(prog, (aot_graph_t){enter});
    } else {
      order[(*out_n)++] = stack[--depth];
      if (depth == 0) return order;
    }
    enter = next_named(host, prog, &cursor[depth - 1], &arg[depth - 1], met);
  }
}
