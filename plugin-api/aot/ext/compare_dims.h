/* aot/ext/compare_dims.h - extension "aot.compare-dims/1", offered by the host: comparisons of dimensions with three
 * answers. For opsets, importers and passes.
 *
 * A symbol is unbacked if no leaf has it in its type: its value depends on data, and its hint is a guess. The hint of
 * any other symbol is a fact of the trace, which was specialised by it. */
#ifndef AOT_EXT_COMPARE_DIMS_H
#define AOT_EXT_COMPARE_DIMS_H

#include <aot/base.h>

#define AOT_EXT_COMPARE_DIMS "aot.compare-dims/1"

#define AOT_DIMS_UNKNOWN (-1) /* depends on data: to be checked when the program runs */

typedef struct aot_ext_compare_dims {
  aot_table_t head;
  /* a == b (AOT_EXPR_EQ), a < b (AOT_EXPR_LT), a <= b (AOT_EXPR_LE): 1, 0 or AOT_DIMS_UNKNOWN. Decided by the form of
   * both and by the ranges of their symbols; if these leave it open, by the hints, unless a symbol is unbacked.
   * Creates nothing. [stage-exclusive] */
  int32_t(AOT_CALL *compare)(const struct aot_ext_compare_dims *x, aot_prog_t *prog, int32_t op, int64_t a, int64_t b);
  /* 1: the value of the dimension depends on data. [stage-exclusive] */
  int32_t(AOT_CALL *is_unbacked)(const struct aot_ext_compare_dims *x, aot_prog_t *prog, int64_t dim);
  /* Writes the dimension as the text form of programs has it, for messages; always terminated. Returns the length that
   * it has in full. [stage-exclusive] */
  uint64_t(AOT_CALL *text)(const struct aot_ext_compare_dims *x, aot_prog_t *prog, int64_t dim, char *out,
                           uint64_t capacity);
} aot_ext_compare_dims_t;

#endif
