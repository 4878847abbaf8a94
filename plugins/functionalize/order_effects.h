/* Orders effects by tokens, so that order is dataflow for later stages. After PyTorch's effect tokens
 * (torch/_higher_order_ops/effects.py).
 *
 *     print "a"; y = f(x); print "b"
 *     ->  t1 = with_effects(t0, print, "a"); y = f(x); t2 = with_effects(t1, print, "b")
 *
 * The first token is a graph input (role TOKEN), the last an output. A node has an effect if its operator is marked
 * EFFECT or its region contains such a node; inside a region the node order applies. EFFECT operators that only define
 * sizes or numbers of the shape environment get no token. */
#ifndef FZ_ORDER_EFFECTS_H
#define FZ_ORDER_EFFECTS_H

#include <aot/host.h>

/* Chains the graph's nodes with effects; one that has tokens already is left alone. An operator with an effect that
 * writes or aliases its arguments is refused. O(program, once a level of nesting). */
aot_status_t fz_thread_effects(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               uint32_t *out_n);
/* Refuses operators with an effect that write or alias, in every graph; before anything is rewritten. */
aot_status_t fz_check_effects(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog);

#endif
