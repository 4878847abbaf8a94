/* Dimensions at run time. Children come before their parents, so one pass suffices. */
#include "snap_expr.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>

static int power(int64_t base, int64_t exponent, int64_t *out) {
  int64_t r = 1;
  if (exponent < 0) return 0;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1 && __builtin_mul_overflow(r, base, &r)) return 0;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return 0;
  }
  *out = r;
  return 1;
}

int sn_expr_apply(int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  switch (op) {
    case AOT_EXPR_ADD: return !__builtin_add_overflow(a, b, out);
    case AOT_EXPR_SUB: return !__builtin_sub_overflow(a, b, out);
    case AOT_EXPR_MUL: return !__builtin_mul_overflow(a, b, out);
    case AOT_EXPR_FLOORDIV:
      if (b == 0 || (a == INT64_MIN && b == -1)) return 0;
      *out = sn_floor_div(a, b);
      return 1;
    case AOT_EXPR_MOD:
      if (b == 0) return 0;
      *out = b == -1 ? 0 : a - sn_floor_div(a, b) * b;
      return 1;
    case AOT_EXPR_MAX: *out = a > b ? a : b; return 1;
    case AOT_EXPR_MIN: *out = a < b ? a : b; return 1;
    case AOT_EXPR_EQ: *out = a == b; return 1;
    case AOT_EXPR_LT: *out = a < b; return 1;
    case AOT_EXPR_LE: *out = a <= b; return 1;
    case AOT_EXPR_WHERE: *out = a ? b : c; return 1;
    case AOT_EXPR_POW: return power(a, b, out);
    default: return 0;
  }
}

static int is_older(int64_t dim, uint32_t row) { return !AOT_DIM_IS_SYM(dim) || AOT_DIM_EXPR(dim) < row; }

aot_status_t sn_exprs_eval(const aot_snapshot_t *s, const int64_t *symbols, uint64_t n_symbols, int64_t *out,
                           sn_error_t *error) {
  const aot_snap_expr_t *exprs = AOT_SNAP_ROWS(s, aot_snap_expr_t, exprs);
  error->text[0] = 0;
  out[0] = SN_NO_VALUE;
  for (uint32_t i = 1; i < s->exprs.count; i++) {
    const aot_snap_expr_t *e = &exprs[i];
    if (e->op == AOT_EXPR_SYMBOL) {
      if ((uint64_t)e->a >= n_symbols) {
        snprintf(error->text, sizeof error->text, "symbol %lld has no value: %llu are given", (long long)e->a,
                 (unsigned long long)n_symbols);
        return AOT_E_RANGE;
      }
      out[i] = symbols[e->a];
    } else {
      AOT_ASSERT(is_older(e->a, i) && is_older(e->b, i) && is_older(e->c, i));
      int64_t a = sn_dim(e->a, out), b = sn_dim(e->b, out), c = sn_dim(e->c, out);
      int known = e->op == AOT_EXPR_WHERE ? a != SN_NO_VALUE : a != SN_NO_VALUE && b != SN_NO_VALUE;
      if (!known || !sn_expr_apply(e->op, a, b, c, &out[i])) out[i] = SN_NO_VALUE;
    }
  }
  return AOT_OK;
}
