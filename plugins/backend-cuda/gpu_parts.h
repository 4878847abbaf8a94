/* Graphs with sizes that only a run reports (kit/lowering/dynamic_segments.h): part by part on the queue, values
 * between parts in device memory of their own. At each node that reports a size the host waits for the device, takes
 * the node's operands, runs its kernel, and puts back what it gives. Parts are lowered for the sizes that are known
 * when they begin; those used last stay. */
#ifndef GC_GPU_PARTS_H
#define GC_GPU_PARTS_H

#include "gpu_exe.h"

/* Returns when all of it has run. */
aot_status_t gc_parts_run(gc_exe_t *e, const aot_bound_t *b, aot_ctx_t *ctx, const aot_submission_t *s,
                          lw_error_t *error);
void gc_parts_deinit(gc_exe_t *e);

#endif
