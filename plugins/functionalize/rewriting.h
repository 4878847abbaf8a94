/* State of a rewrite of one graph: alias sets, scratch memory, counters, and helpers for errors and new nodes. */
#ifndef FZ_REWRITING_H
#define FZ_REWRITING_H

#include "alias_sets.h"
#include "kit/emit/emit.h"

typedef struct fz_rewrite {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  fz_alias_t alias;
  uint32_t *chain; /* scratch for places */
  uint32_t chain_capacity;
  uint32_t n_writes, n_replays; /* for the report */
  const struct fz_entries
      *entries;        /* inputs that are views of bases; NULL: a region, which has no inputs of the caller */
  uint32_t first_made; /* node ids from here on were made by the pass */
  int is_region;       /* inputs are operands of a node: they may not be written */
} fz_rewrite_t;

aot_status_t fz_rewrite_init(fz_rewrite_t *w, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog,
                             aot_graph_t graph);
void fz_rewrite_deinit(fz_rewrite_t *w);

/* An emitter for nodes before `before`, of which errors speak as of `what`. */
em_t fz_emitter(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, aot_node_t before,
                const char *what);
aot_status_t fz_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_node_t node);
/* AOT_E_EXHAUSTED; what: "to order effects" */
aot_status_t fz_no_memory(const aot_host_t *host, aot_ctx_t *ctx, aot_node_t node, const char *what);
aot_status_t fz_no_alias_memory(const fz_rewrite_t *w);
/* A node of an operator that the pass itself needs; its first result. */
aot_status_t fz_call(fz_rewrite_t *w, const char *op, const aot_arg_t *args, uint32_t n_args, aot_node_t before,
                     aot_value_t *out);

#endif
