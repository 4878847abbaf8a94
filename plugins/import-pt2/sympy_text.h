/* sympy_text.h - the text of a symbolic size, read into the program's expressions.
 *
 * Both spellings: sympy's srepr, `Mul(Integer(8), Symbol('s21', positive=True, integer=True))`, which PyTorch 2.6 and
 * later write, and infix, `8*s21`, of schema 5. Guards are Python over the inputs: `L['x'].size()[0] % 2 == 0 or ..`.
 * Functions are those of torch/utils/_sympy/functions.py and printers.py. Rational
 * coefficients are carried as a constant denominator and divided out at the end, where the value is an integer by
 * construction. */
#ifndef P2_SYMPY_TEXT_H
#define P2_SYMPY_TEXT_H

#include "pt2_env.h"

/* Where symbols and operations become dimensions (AOT_EXPR_* of aot/graph.h). */
typedef struct p2_expr_sink {
  void *self;
  aot_status_t (*symbol)(void *self, aot_str_t name, int64_t *out);
  aot_status_t (*make)(void *self, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out);
  /* Of guards: L['x'][0].size()[1] has path "['x'][0]"; an AOT_E_NOT_FOUND is reported by the reader. NULL: none are
   * expected. */
  aot_status_t (*source)(void *self, aot_str_t path, int32_t what, uint32_t index, int64_t *out);
} p2_expr_sink_t;

#define P2_SOURCE_SIZE 1   /* .size()[index] */
#define P2_SOURCE_STRIDE 2 /* .stride()[index] */
#define P2_SOURCE_OFFSET 3 /* .storage_offset() */

aot_status_t p2_expr_read(p2_env_t *e, aot_str_t text, const p2_expr_sink_t *sink, int64_t *out);
/* 1 when the text is nothing but a symbol: *out is its name. */
int p2_expr_is_symbol(aot_str_t text, aot_str_t *out);

#endif
