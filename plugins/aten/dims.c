#include "dims.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void at_fail(at_infer_t *c, const char *format, ...) {
  va_list list;
  if (c->status != AOT_OK) return;
  c->status = AOT_E_INVALID;
  va_start(list, format);
  vsnprintf(c->message, sizeof c->message, format, list);
  va_end(list);
}

int64_t *at_dims(at_infer_t *c, int32_t n) {
  int64_t *dims = &c->pool[c->n_pool];
  if (n < 0 || (uint32_t)n > AT_POOL - c->n_pool) {
    at_fail(c, "too many dimensions in one call");
    c->n_pool = 0; /* the rule has failed: memory is only there to be written to */
    return c->pool;
  }
  c->n_pool += (uint32_t)n;
  return dims;
}

int64_t *at_dims_copy(at_infer_t *c, const int64_t *dims, int32_t n) {
  int64_t *copy = at_dims(c, n > AOT_MAX_RANK ? AOT_MAX_RANK : n);
  if (n > 0 && n <= AOT_MAX_RANK) memcpy(copy, dims, (size_t)n * sizeof *copy);
  return copy;
}

static int64_t expression(at_infer_t *c, int32_t op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (c->status != AOT_OK) return 0;
  if (c->env->dim(c->env->self, op, a, b, 0, &out) != AOT_OK) at_fail(c, "the shape environment refuses an expression");
  return out;
}

static int is_constant(int64_t a, int64_t b) { return !AOT_DIM_IS_SYM(a) && !AOT_DIM_IS_SYM(b); }

int64_t at_add(at_infer_t *c, int64_t a, int64_t b) {
  if (a == 0 || b == 0) return a == 0 ? b : a;
  if (!is_constant(a, b)) return expression(c, AOT_EXPR_ADD, a, b);
  int64_t out;
  if (!__builtin_add_overflow(a, b, &out)) return out;
  at_fail(c, "a sum of dimensions overflows: %lld + %lld", (long long)a, (long long)b);
  return 0;
}

int64_t at_sub(at_infer_t *c, int64_t a, int64_t b) {
  if (b == 0) return a;
  if (a == b) return 0;
  if (!is_constant(a, b)) return expression(c, AOT_EXPR_SUB, a, b);
  int64_t out;
  if (!__builtin_sub_overflow(a, b, &out)) return out;
  at_fail(c, "a difference of dimensions overflows: %lld - %lld", (long long)a, (long long)b);
  return 0;
}

int64_t at_mul(at_infer_t *c, int64_t a, int64_t b) {
  int64_t out;
  if (a == 1 || b == 1) return a == 1 ? b : a;
  if (a == 0 || b == 0) return 0;
  if (!is_constant(a, b)) return expression(c, AOT_EXPR_MUL, a, b);
  if (__builtin_mul_overflow(a, b, &out) || out >= AOT_DIM_SYM) {
    at_fail(c, "a product of dimensions overflows: %lld * %lld", (long long)a, (long long)b);
    return 0;
  }
  return out;
}

int64_t at_floordiv(at_infer_t *c, int64_t a, int64_t b) {
  if (b == 1) return a;
  if (b == 0) {
    at_fail(c, "division of a dimension by 0");
    return 0;
  }
  if (a == b) return 1;
  if (!is_constant(a, b)) return expression(c, AOT_EXPR_FLOORDIV, a, b);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t at_mod(at_infer_t *c, int64_t a, int64_t b) {
  if (a == b || b == 1) return 0;
  if (b == 0) {
    at_fail(c, "division of a dimension by 0");
    return 0;
  }
  if (!is_constant(a, b)) return expression(c, AOT_EXPR_MOD, a, b);
  return a - at_floordiv(c, a, b) * b;
}

int64_t at_min(at_infer_t *c, int64_t a, int64_t b) {
  if (a == b || b == INT64_MAX) return a;
  if (a == INT64_MAX) return b;
  if (is_constant(a, b)) return a < b ? a : b;
  return expression(c, AOT_EXPR_MIN, a, b);
}

int64_t at_max(at_infer_t *c, int64_t a, int64_t b) {
  if (a == b) return a;
  if (is_constant(a, b)) return a > b ? a : b;
  return expression(c, AOT_EXPR_MAX, a, b);
}

int64_t at_hint(at_infer_t *c, int64_t dim) { return AOT_DIM_IS_SYM(dim) ? c->env->hint(c->env->self, dim) : dim; }

/* The hint is in the middle of the range and is neither 0 nor 1 where the range allows: those sizes mean more. */
int64_t at_unknown(at_infer_t *c, int64_t min, int64_t max) {
  int64_t out = 0, hint = 64;
  if (c->status != AOT_OK) return 0;
  if (AOT_DIM_IS_SYM(max)) max = INT64_MAX;
  if (AOT_DIM_IS_SYM(min)) min = 0;
  if (max < (INT64_C(1) << 40)) hint = max - max / 2;
  if (hint < 2) hint = 2;
  if (hint < min) hint = min;
  if (hint > max) hint = max;
  if (c->env->symbol(c->env->self, min, max, hint, &out) != AOT_OK)
    at_fail(c, "the shape environment refuses a symbol");
  return out;
}

static int compare(at_infer_t *c, int32_t op, int64_t a, int64_t b) {
  if (!is_constant(a, b)) return a == b ? op != AOT_EXPR_LT : c->env->compare(c->env->self, op, a, b);
  return op == AOT_EXPR_EQ ? a == b : op == AOT_EXPR_LT ? a < b : a <= b;
}

int at_same(at_infer_t *c, int64_t a, int64_t b) { return compare(c, AOT_EXPR_EQ, a, b) == 1; }
int at_differs(at_infer_t *c, int64_t a, int64_t b) { return compare(c, AOT_EXPR_EQ, a, b) == 0; }
int at_below(at_infer_t *c, int64_t a, int64_t b) { return compare(c, AOT_EXPR_LT, a, b) == 1; }
int at_at_most(at_infer_t *c, int64_t a, int64_t b) { return compare(c, AOT_EXPR_LE, a, b) == 1; }

int at_same_stride(at_infer_t *c, int64_t a, int64_t b) {
  const int equal = compare(c, AOT_EXPR_EQ, a, b);
  return equal == AOT_DIMS_UNKNOWN ? at_hint(c, a) == at_hint(c, b) : equal;
}

int64_t at_where(at_infer_t *c, int64_t condition, int64_t yes, int64_t no) {
  int64_t out = 0;
  if (yes == no || !AOT_DIM_IS_SYM(condition)) return condition ? yes : no;
  if (c->status != AOT_OK) return 0;
  if (c->env->dim(c->env->self, AOT_EXPR_WHERE, condition, yes, no, &out) != AOT_OK)
    at_fail(c, "the shape environment refuses an expression");
  return out;
}

int64_t at_wrapped(at_infer_t *c, int64_t index, int64_t size) {
  const int is_negative = compare(c, AOT_EXPR_LT, index, 0);
  if (is_negative != AOT_DIMS_UNKNOWN) return is_negative ? at_add(c, index, size) : index;
  return at_where(c, expression(c, AOT_EXPR_LT, index, 0), at_add(c, index, size), index);
}

int64_t at_numel(at_infer_t *c, const int64_t *sizes, int32_t rank) {
  int64_t n = 1;
  int32_t i;
  for (i = 0; i < rank; i++)
    if (sizes[i] == 0) return 0;
  for (i = 0; i < rank; i++) n = at_mul(c, n, sizes[i]);
  return n;
}

int32_t at_wrap(at_infer_t *c, int64_t dim, int32_t rank) {
  int32_t n = rank > 0 ? rank : 1;
  if (dim < -n || dim >= n) {
    at_fail(c, "dim %lld is out of range for a tensor of rank %d", (long long)dim, (int)rank);
    return 0;
  }
  return (int32_t)(dim < 0 ? dim + n : dim);
}

uint32_t at_dim_mask(at_infer_t *c, const int64_t *dims, uint32_t n, int32_t rank) {
  uint32_t mask = 0, i;
  for (i = 0; i < n; i++) {
    uint32_t bit = 1u << at_wrap(c, dims[i], rank);
    if (mask & bit) at_fail(c, "dim %lld appears twice", (long long)dims[i]);
    mask |= bit;
  }
  return mask;
}

const char *at_dims_text(at_infer_t *c, const int64_t *dims, int32_t n, char *buffer, uint32_t capacity) {
  uint32_t at = 0;
  int32_t i;
  buffer[0] = '\0';
  for (i = 0; i < n && at + 24 < capacity; i++) {
    char one[64];
    if (AOT_DIM_IS_SYM(dims[i])) c->env->text(c->env->self, dims[i], one, sizeof one);
    else snprintf(one, sizeof one, "%lld", (long long)dims[i]);
    at += (uint32_t)snprintf(buffer + at, capacity - at, "%s%s", i ? ", " : "", one);
    if (at >= capacity) at = capacity - 1;
  }
  return buffer;
}
