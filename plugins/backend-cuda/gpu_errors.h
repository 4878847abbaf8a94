/* Failures of lowering and of runs, and what else is to be known, reported through the host. */
#ifndef GC_GPU_ERRORS_H
#define GC_GPU_ERRORS_H

#include "kit/lowering/schedule.h"
#include <aot/host.h>

/* Gives back `status`. */
aot_status_t gc_tell(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const lw_error_t *error);
/* severity: AOT_SEVERITY_*; code: in full. */
void gc_say(const aot_host_t *host, aot_ctx_t *ctx, int32_t severity, const char *code, const char *text);

#endif
