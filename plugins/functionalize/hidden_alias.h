/* Results that alias an operand without an alias mark in the operator's schema.
 *
 *     %y = aten.dropout.default %x, 0.5, false        y is x
 *     %a, %b = aten.meshgrid.default [%x, %z]         a is a view of x, b one of z
 *
 * The opset reports them per call. Composites are first decomposed into PyTorch's views, whose schemas are marked.
 * Others (unsafe_split) are view steps for the walk, but not for autograd, which follows the schemas (history.h). */
#ifndef FZ_HIDDEN_ALIAS_H
#define FZ_HIDDEN_ALIAS_H

#include <aot/host.h>

/* The operand whose memory each result of a call shares, counted from 1; 0: its own. operands: values whose types are
 * those of the operands at tracing; out: room for n_results. O(operands + results). */
aot_status_t fz_whose_memory(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_node_info_t *n,
                             const uint32_t *operands, uint32_t *out);
/* In all graphs. Adds to *n_exposed. O(nodes + operands). */
aot_status_t fz_expose_aliases(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *n_exposed);

#endif
