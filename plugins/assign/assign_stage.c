#include "assign_stage.h"

#include "kit/base/errors.h"
#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>

void *as_alloc(const as_stage_t *s, uint64_t n, uint64_t size) {
  return s->host->alloc(s->host, s->ctx, AOT_ARENA_SCRATCH, 8, (n ? n : 1) * size);
}

aot_status_t as_fail(const as_stage_t *s, uint32_t node, const char *code, const char *hint, const char *format, ...) {
  char message[400];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, message);
  d.hint = aot_str(hint);
  d.node.id = node;
  return kit_report(s->host, s->ctx, AOT_E_UNIMPLEMENTED, &d);
}
