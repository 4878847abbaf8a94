/* Errors of hooks: at a value of the program, or at a line of a hook's file. */
#ifndef HOOK_FAIL_H
#define HOOK_FAIL_H

#include "kit/emit/emit.h"

/* at: AOT_NO_ID: no value; file NULL: none. Keeps the status. */
void hk_fail(em_t *e, aot_status_t status, const char *code, aot_str_t file, uint32_t line, aot_value_t at,
             const char *hint, const char *format, ...) __attribute__((format(printf, 8, 9)));

#endif
