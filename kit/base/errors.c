#include "errors.h"

#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>

enum { TEXT_NBYTES = 600 };

aot_diag_t kit_diag(int32_t severity, const char *code, const char *message) {
  return (aot_diag_t){
      .struct_size = sizeof(aot_diag_t),
      .severity = severity,
      .code = aot_str(code),
      .message = aot_str(message),
      .node = aot_no_node(),
      .value = aot_no_value(),
  };
}

aot_status_t kit_report(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const aot_diag_t *d) {
  host->diag(host, ctx, d);
  return status;
}

aot_status_t kit_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *format,
                      ...) {
  char text[TEXT_NBYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, text);
  return kit_report(host, ctx, status, &d);
}

aot_status_t kit_no_memory(const aot_host_t *host, aot_ctx_t *ctx, const char *code, aot_node_t node,
                           const char *what) {
  char text[TEXT_NBYTES];
  const aot_status_t status = kit_no_memory_text(text, sizeof text, "%s", what);
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, text);
  d.node = node;
  return kit_report(host, ctx, status, &d);
}

aot_status_t kit_no_memory_list(char *out, size_t size, const char *format, va_list args) {
  char what[TEXT_NBYTES];
  vsnprintf(what, sizeof what, format, args);
  snprintf(out, size, "no memory %s", what);
  return AOT_E_EXHAUSTED;
}

aot_status_t kit_no_memory_text(char *out, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  kit_no_memory_list(out, size, format, args);
  va_end(args);
  return AOT_E_EXHAUSTED;
}
