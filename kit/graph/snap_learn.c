#include "snap_learn.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>

/* Which symbol makes `dim` this number? Constants are peeled off until a bare symbol is left. 1: found. */
static int solve(const sn_known_t *known, int64_t dim, int64_t number, uint32_t *out_symbol, int64_t *out) {
  const aot_snap_expr_t *exprs = AOT_SNAP_ROWS(known->s, aot_snap_expr_t, exprs);
  while (AOT_DIM_IS_SYM(dim)) {
    const aot_snap_expr_t *e = &exprs[AOT_DIM_EXPR(dim)];
    int64_t a = sn_dim(e->a, known->exprs), b = sn_dim(e->b, known->exprs), k;
    int left = a != SN_NO_VALUE; /* which side is known */
    if (e->op == AOT_EXPR_SYMBOL) {
      *out_symbol = (uint32_t)e->a;
      *out = number;
      return (uint64_t)e->a < known->n_symbols && (uint64_t)e->a < known->s->symbols.count &&
             known->symbols[e->a] == SN_NO_VALUE;
    }
    if (left == (b != SN_NO_VALUE)) return 0;
    k = left ? a : b;
    if (e->op == AOT_EXPR_ADD) number -= k;
    else if (e->op == AOT_EXPR_SUB) number = left ? k - number : number + k;
    else if (e->op == AOT_EXPR_MUL && k != 0 && number % k == 0) number /= k;
    else if (e->op == AOT_EXPR_EQ && (number == 1 || k == 0 || k == 1))
      number = number ? k : 1 - k; /* a bool, 0 or 1 */
    else return 0;
    dim = left ? e->b : e->a;
  }
  return 0;
}

static aot_status_t bind(const sn_known_t *k, int64_t dim, int64_t number, sn_error_t *error) {
  uint32_t symbol;
  int64_t value;
  char upper[32] = "unbounded";
  if (!AOT_DIM_IS_SYM(dim) || sn_dim(dim, k->exprs) != SN_NO_VALUE || !solve(k, dim, number, &symbol, &value))
    return AOT_OK;
  AOT_ASSERT(symbol < k->n_symbols && k->symbols[symbol] == SN_NO_VALUE);
  const aot_snap_symbol_t *row = &AOT_SNAP_ROWS(k->s, aot_snap_symbol_t, symbols)[symbol];
  aot_str_t name = aot_snap_text(k->s, row->name);
  if (row->max != INT64_MAX) snprintf(upper, sizeof upper, "%lld", (long long)row->max);
  if (value < row->min || value > row->max) {
    snprintf(error->text, sizeof error->text,
             "the data make %.*s = %lld, but the model was exported for %.*s in %lld..%s", (int)name.size, name.data,
             (long long)value, (int)name.size, name.data, (long long)row->min, upper);
    return AOT_E_RANGE;
  }
  k->symbols[symbol] = value;
  return sn_exprs_eval(k->s, k->symbols, k->n_symbols, k->exprs, error);
}

static aot_status_t agree(const sn_known_t *k, uint32_t id, const char *what, int64_t dim, int64_t number,
                          sn_error_t *error) {
  int64_t declared = sn_dim(dim, k->exprs);
  if (declared == number) return AOT_OK;
  if (declared == SN_NO_VALUE) {
    snprintf(error->text, sizeof error->text, "%s of value %%%u is %lld, which does not tell its symbols", what, id,
             (long long)number);
    return AOT_E_UNIMPLEMENTED;
  }
  snprintf(error->text, sizeof error->text, "%s of value %%%u is %lld, where the model was exported for %lld", what, id,
           (long long)number, (long long)declared);
  return AOT_E_RANGE;
}

static aot_status_t each(const sn_known_t *k, uint32_t value, const int64_t *is, int checking, sn_error_t *error) {
  AOT_ASSERT(value != AOT_NO_ID && value < k->s->values.count);
  const aot_snap_value_t *v = &AOT_SNAP_ROWS(k->s, aot_snap_value_t, values)[value];
  const int64_t *dims = AOT_SNAP_ROWS(k->s, int64_t, ints) + v->dims;
  if (v->kind == AOT_TYPE_SYMINT || v->kind == AOT_TYPE_SYMBOOL)
    return checking ? agree(k, v->id, "the number", v->expr, is[0], error) : bind(k, v->expr, is[0], error);
  for (int32_t d = 0; v->kind == AOT_TYPE_TENSOR && d < v->rank; d++)
    AOT_TRY(checking ? agree(k, v->id, "a size", dims[d], is[d], error) : bind(k, dims[d], is[d], error));
  return AOT_OK;
}

aot_status_t sn_learn(const sn_known_t *k, uint32_t value, const int64_t *is, sn_error_t *error) {
  return each(k, value, is, 0, error);
}
aot_status_t sn_agree(const sn_known_t *k, uint32_t value, const int64_t *is, sn_error_t *error) {
  return each(k, value, is, 1, error);
}
