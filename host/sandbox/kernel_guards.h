/* What kernels of plugins do to memory that they should not, found at the call (AOT_VALIDATE=1). Backends are handed a
 * kernel of the host's in the place of each, which calls it on copies, every tensor between guards and poison
 * (device/guarded.h):
 *
 *     operands                 compared with the original after the call
 *     written operands         copied back; bytes between their elements are compared with those before
 *     results                  poison before; elements that are poison after the call were left unwritten
 *     around each of them      poison, then a guard page, which traps: the crash names it
 *
 * A kernel that breaks its promise has failed, with plugin, tensor and position; the backend reports the node. One that
 * only starts (AOT_KERNEL_STARTS) works on its copies until a kernel has run that was handed what it writes: that one
 * is given the same copies to wait for, and the checks after it are reported for the first. Kernels that enqueue their
 * own work (aot.queue-kernel/1) use device memory, which is not checked. */
#ifndef AOTH_KERNEL_GUARDS_H
#define AOTH_KERNEL_GUARDS_H

#include <aot/ext/kernels.h>
#include "kit/base/text.h"
#include <sandbox/session.h>

typedef struct aoth_kernel_guards aoth_kernel_guards_t;

aoth_kernel_guards_t *aoth_kernel_guards_create(const aoth_session_t *s); /* NULL: no memory */
void aoth_kernel_guards_destroy(aoth_kernel_guards_t *g);                 /* NULL is fine */

/* The kernel, of an opset of the session, as backends are to have it: itself, or one that lives as long as g; NULL: no
 * memory. op: what it computes. O(kernels) [host-main] */
const aot_kernel_t *aoth_kernel_guarded(aoth_kernel_guards_t *g, const aot_kernel_t *kernel, const aot_op_desc_t *op,
                                        const aot_opset_t *opset);

/* Of calls that run: whose memory the address is near, "8 bytes behind the end of result 0 of its kernel of lib.op"; 0:
 * without an owner. [any-thread] */
int aoth_kernel_guards_where(aoth_kernel_guards_t *g, uint64_t address, kit_text_t *out);

#endif
