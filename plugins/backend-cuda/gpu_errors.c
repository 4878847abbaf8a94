#include "gpu_errors.h"

#include <aot/inline.h>
#include <stdio.h>

aot_status_t gc_tell(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const lw_error_t *error) {
  char code[64];
  snprintf(code, sizeof code, "backend-cuda.%s", error->code ? error->code : "failed");
  aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = AOT_SEVERITY_ERROR,
      .code = aot_str(code),
      .message = aot_str(error->text),
      .node = {error->node},
      .value = aot_no_value(),
  };
  if (error->hint) d.hint = aot_str(error->hint);
  host->diag(host, ctx, &d);
  return status;
}

void gc_say(const aot_host_t *host, aot_ctx_t *ctx, int32_t severity, const char *code, const char *text) {
  const aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = severity,
      .code = aot_str(code),
      .message = aot_str(text),
      .node = {AOT_NO_ID},
      .value = aot_no_value(),
  };
  host->diag(host, ctx, &d);
}
