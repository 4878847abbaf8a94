#include "hook_fail.h"

#include "kit/base/errors.h"
#include <stdarg.h>
#include <stdio.h>

void hk_fail(em_t *e, aot_status_t status, const char *code, aot_str_t file, uint32_t line, aot_value_t at,
             const char *hint, const char *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, text);
  d.hint = aot_str(hint);
  d.file = file;
  d.line = line;
  d.value = at;
  em_tell(e, status, &d);
}
