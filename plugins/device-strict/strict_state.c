#include "strict_state.h"

#include "kit/base/errors.h"
#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>

aot_status_t sd_fail(const sd_device_t *s, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *format,
                     ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const aot_diag_t diag = kit_diag(AOT_SEVERITY_ERROR, code, text);
  return kit_report(&s->host, ctx, status, &diag);
}

aot_status_t sd_no_memory(const sd_device_t *s, aot_ctx_t *ctx, uint64_t nbytes) {
  return sd_fail(s, ctx, AOT_E_EXHAUSTED, "strict.memory", "device strict has no memory for %llu bytes",
                 (unsigned long long)nbytes);
}

aot_status_t sd_lost(const sd_device_t *s, aot_ctx_t *ctx) {
  return sd_fail(s, ctx, AOT_E_DATA_LOSS, "strict.lost", "device strict is lost: what was on it is gone");
}

aot_status_t sd_not_higher(const sd_device_t *s, aot_ctx_t *ctx, const char *who, aot_point_t point, uint64_t than) {
  return sd_fail(s, ctx, AOT_E_INVALID, "strict.signal",
                 "%s raises timeline %u to %llu, which is not higher than %llu, where it is then", who,
                 point.timeline->number, (unsigned long long)point.value, (unsigned long long)than);
}
