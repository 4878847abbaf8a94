/* Failures of lowering and of runs, told through the host. */
#ifndef GC_GPU_ERRORS_H
#define GC_GPU_ERRORS_H

#include "common/lowering/schedule.h"
#include <aot/host.h>

/* Gives back `status`. */
aot_status_t gc_tell(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const lw_error_t *error);

#endif
