/* Aliased inputs share one memory in the graph, as AOTAutograd's duplicates and synthetic bases.
 *
 *     f(x, x)               entry_same 1 0       each use of input 1 reads input 0
 *     f(s[0:4], s[2:6])     entry_view 0 2 [4]           s is an input, the others are made of it:
 *                           entry_view 1 2 [4] offset 2       as_strided s, [4], [1], 2
 *
 * The host passes the rules after comparing the inputs of a call (docs/IR.md, "Boundary rules"). The walk then sees one
 * storage, so writes, reads, gradients and outputs need no special case. A member that requires no gradient is detached
 * if its base requires one. */
#ifndef FZ_ENTRY_H
#define FZ_ENTRY_H

#include <aot/host.h>

/* A user input that is a view of a base, and the value that represents it in the graph. */
typedef struct fz_entry {
  uint32_t leaf, value;
} fz_entry_t;

typedef struct fz_entries {
  fz_entry_t *at; /* scratch */
  uint32_t n, n_rules;
} fz_entries_t;

/* Before anything is read off the graph. Views of what has moved get new types. O(rules + nodes + operands). */
aot_status_t fz_enter(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, fz_entries_t *out);

#endif
