/* aot/ext/queue_kernel.h - extension "aot.queue-kernel/1" of a kernel's table (aot_kernel_t.head): its call as work on
 * a queue of a device, on the device's memory, instead of on the host's with copies there and back.
 *
 * A backend asks `takes` while it lowers, and enqueues where it would have launched a kernel of its own. It may do so
 * once and play what came onto the queue again and again, as a graph of the device's runtime. */
#ifndef AOT_EXT_QUEUE_KERNEL_H
#define AOT_EXT_QUEUE_KERNEL_H

#include <aot/device.h>
#include <aot/ext/kernels.h>

#define AOT_EXT_QUEUE_KERNEL "aot.queue-kernel/1"

typedef struct aot_ext_queue_kernel {
  aot_table_t head; /* self: the extension's own */
  /* Whether such a call can stand on a queue: by arguments, shapes, strides, dtypes; tensors have no memory yet.
   * [any-thread] */
  int(AOT_CALL *takes)(const struct aot_ext_queue_kernel *x, const aot_kernel_call_t *call);
  /* Tensors' data are the device's addresses. The call is borrowed until this returns, the memory until the queue has
   * passed the work. Nothing blocks for what the queue does. [run-thread] */
  aot_status_t(AOT_CALL *enqueue)(const struct aot_ext_queue_kernel *x, const aot_kernel_call_t *call,
                                  const aot_device_t *device, aot_queue_t *queue);
} aot_ext_queue_kernel_t;

#endif
