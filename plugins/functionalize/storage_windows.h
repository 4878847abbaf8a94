/* Programs that give storages away: what FSDP leaves in a traced step, and `set_`.
 *
 *     inductor.resize_storage_bytes_ %p, 4096      the window of %p opens
 *     fsdp.copy_ %p, %y                            .. it shows %y
 *     %z = aten.mm %x, %p                          reads %y
 *     inductor.resize_storage_bytes_ %p, 0         .. and closes: %p holds nothing any more
 *
 * %p is an input of the graph without memory of its own. In a window every read of it becomes a read of what was copied
 * there, and the resizes and copies go: nothing is left that a later stage would have to know. Windows of one input may
 * follow one another. A window that is not of this form is refused where it leaves it: another write to the input or a
 * view of it, a read outside or before the copy, a write to the source while it is shown, an input that escapes, a
 * window that does not close.
 *
 * x.set_(y) makes x, by all its names, another name of y. An input of the graph keeps the caller's storage: refused.
 *
 * Operators are known by the flag STORAGE. After remove_fsdp2_unsharded_param_graph_input_usage of PyTorch
 * (torch/_inductor/fx_passes/fsdp.py), which leaves windows alone that it does not understand. O(nodes + operands). */
#ifndef FZ_STORAGE_WINDOWS_H
#define FZ_STORAGE_WINDOWS_H

#include <aot/host.h>

aot_status_t fz_close_windows(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                              uint32_t *out_n);

#endif
