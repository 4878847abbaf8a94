#include "gpu_errors.h"

#include "kit/base/errors.h"
#include <aot/inline.h>
#include <stdio.h>

aot_status_t gc_tell(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const lw_error_t *error) {
  char code[64];
  snprintf(code, sizeof code, "backend-cuda.%s", error->code ? error->code : "failed");
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, error->text);
  d.node.id = error->node;
  if (error->hint) d.hint = aot_str(error->hint);
  return kit_report(host, ctx, status, &d);
}

void gc_say(const aot_host_t *host, aot_ctx_t *ctx, int32_t severity, const char *code, const char *text) {
  const aot_diag_t d = kit_diag(severity, code, text);
  host->diag(host, ctx, &d);
}
