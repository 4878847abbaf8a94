/* Inputs that share memory, made one memory in the graph.
 *
 *     f(x, x)               entry_same 1 0       every use of input 1 reads input 0
 *     f(s[0:4], s[2:6])     entry_view 0 2 [4]           s is an input, the others are made of it:
 *                           entry_view 1 2 [4] offset 2       as_strided s, [4], [1], 2
 *
 * The rules come from the host, which compares the inputs of a call (docs/IR.md, "Boundary rules"). After this step the
 * walk sees one storage, and writes, reads, gradients and outputs are right without more ado. A member that requires no
 * gradient is detached where its base requires one. The duplicates and synthetic bases of AOTAutograd. */
#ifndef FZ_ENTRY_H
#define FZ_ENTRY_H

#include <aot/host.h>

/* A user input that is a view of a base, and the value that stands for it in the graph. */
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
