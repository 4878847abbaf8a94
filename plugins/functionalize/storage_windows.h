/* Programs that free storages: FSDP in a traced step, and `set_`.
 *
 *     inductor.resize_storage_bytes_ %p, 4096      the window of %p opens
 *     fsdp.copy_ %p, %y                            %p shows %y
 *     %z = aten.mm %x, %p                          reads %y
 *     inductor.resize_storage_bytes_ %p, 0         the window closes
 *
 * %p is a graph input without memory of its own. Each read of %p in a window becomes a read of the copied value;
 * resizes and copies are erased. Windows of an input can follow one another. A window of another form is rejected where
 * it deviates: another write to the input or a view of it, a read outside or before the copy, a write to the source
 * while it is shown, an input that escapes, a window that does not close.
 *
 * x.set_(y) makes x, by all its names, another name of y. On a graph input, which has the caller's storage, it is
 * rejected.
 *
 * Operators are recognised by the flag STORAGE. After remove_fsdp2_unsharded_param_graph_input_usage of PyTorch
 * (torch/_inductor/fx_passes/fsdp.py), which skips windows of other forms. O(nodes + operands). */
#ifndef FZ_STORAGE_WINDOWS_H
#define FZ_STORAGE_WINDOWS_H

#include <aot/host.h>

aot_status_t fz_close_windows(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                              uint32_t *out_n);

#endif
