/* What of a program runs on the host, by operator, and for what the host waits: numbers of the report, and warnings
 * once a program. */
#ifndef GC_HOST_FALLBACKS_H
#define GC_HOST_FALLBACKS_H

#include "gpu_exe.h"
#include <aot/ext/report.h>

/* r NULL: nothing requests numbers. [host-main] */
aot_status_t gc_tell_fallbacks(const gc_exe_t *e, const aot_ext_report_t *r, aot_ctx_t *ctx);

#endif
