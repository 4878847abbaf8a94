/* aot/ext/report.h - extension "aot.report/1", offered by the host: a unit reports named numbers, and words, about what
 * it did. They appear in the summary of `aothost run`, in --json and in `aothost ab`. Names are hyphenated and
 * stable. */
#ifndef AOT_EXT_REPORT_H
#define AOT_EXT_REPORT_H

#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_REPORT "aot.report/1"

typedef struct aot_ext_report {
  aot_table_t head;
  /* unit: "bytes", "nodes", "seconds", or empty. The last report of a name counts. [stage-exclusive] */
  aot_status_t(AOT_CALL *number)(const struct aot_ext_report *x, aot_ctx_t *ctx, aot_str_t name, double value,
                                 aot_str_t unit);
  /* A word about the machine it runs on, at most 128 characters, told while a backend compiles or loads: a program out
   * of the compile cache has the words of its load. Check struct_size: hosts before 2026-11 end with `number`.
   * [stage-exclusive] */
  aot_status_t(AOT_CALL *text)(const struct aot_ext_report *x, aot_ctx_t *ctx, aot_str_t name, aot_str_t text);
} aot_ext_report_t;

#endif
