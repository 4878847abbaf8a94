#include "hook_fail.h"

#include <stdarg.h>
#include <stdio.h>

void hk_fail(em_t *e, aot_status_t status, const char *code, aot_str_t file, uint32_t line, aot_value_t at,
             const char *hint, const char *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = AOT_SEVERITY_ERROR,
      .code = aot_str(code),
      .message = aot_str(text),
      .hint = aot_str(hint),
      .file = file,
      .line = line,
      .node = aot_no_node(),
      .value = at,
  };
  em_tell(e, status, &d);
}
