/* Mutation becomes new values: one walk over a graph in program order.
 *
 * At each node every operand is brought up to date (stale views are replayed on the new base). A node that writes is
 * replaced by its functional form; the new value goes into the written place, and through the inverse of each view step
 * into the places it is a view of, up to the base. Who writes what is read off the alias marks of the schemas, what
 * aliases what is asked of the opset (hidden_alias.h); there are no operator names here. O(nodes + operands + length
 * of replayed view chains). */
#ifndef FZ_REWRITE_H
#define FZ_REWRITE_H

#include "alias_sets.h"
#include "common/emit/emit.h"
#include "entry.h"

typedef struct fz_rewrite {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  fz_alias_t alias;
  uint32_t *chain; /* scratch for places */
  uint32_t chain_capacity;
  uint32_t n_writes, n_replays; /* for the report */
  const fz_entries_t *entries;  /* inputs that are views of bases; NULL: a region, which has no inputs of the caller */
  uint32_t first_made;          /* node ids from here on were made by the pass */
  int is_region;                /* inputs are operands of a node: they may not be written */
} fz_rewrite_t;

aot_status_t fz_rewrite_init(fz_rewrite_t *w, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog,
                             aot_graph_t graph);
void fz_rewrite_deinit(fz_rewrite_t *w);

/* The whole graph; afterwards no live node writes, and outputs hold the values that eager execution would leave. */
aot_status_t fz_rewrite_graph(fz_rewrite_t *w);
/* Erases what nothing reads any more: the writers, views that were replayed elsewhere, what the pass made in vain. Once
 * nothing else is to be read. */
aot_status_t fz_erase_dead(fz_rewrite_t *w);
/* What the marks of the schema say about a node: the operand that result i may share memory with (counted from 1, 0:
 * none), whether the argument is written (its condition included). */
uint32_t fz_aliased_operand(const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t i);
int fz_writes_arg(const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t arg);
/* An emitter for nodes before `before`, of which errors speak as of `what`. */
em_t fz_emitter(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, aot_node_t before,
                const char *what);
aot_status_t fz_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_node_t node);
aot_status_t fz_no_memory(const fz_rewrite_t *w);

#endif
