#include <ir/intervals.h>

#include <aot/assert.h>
#include <aot/graph.h>
#include <kit/graph/snap_expr.h>

static const aoth_interval_t any = {INT64_MIN, INT64_MAX};

static int is_open(aoth_interval_t r) { return r.lo == INT64_MIN || r.hi == INT64_MAX; }

static int64_t add_saturated(int64_t a, int64_t b) {
  int64_t r;
  if (a == INT64_MIN || b == INT64_MIN) return INT64_MIN;
  if (a == INT64_MAX || b == INT64_MAX) return INT64_MAX;
  if (!__builtin_add_overflow(a, b, &r)) return r;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

aoth_interval_t aoth_interval_negate(aoth_interval_t r) {
  aoth_interval_t n = {r.hi == INT64_MAX ? INT64_MIN : -r.hi, r.lo == INT64_MIN ? INT64_MAX : -r.lo};
  return n;
}

aoth_interval_t aoth_interval_add(aoth_interval_t a, aoth_interval_t b) {
  aoth_interval_t r = {a.lo == INT64_MIN || b.lo == INT64_MIN ? INT64_MIN : add_saturated(a.lo, b.lo),
                       a.hi == INT64_MAX || b.hi == INT64_MAX ? INT64_MAX : add_saturated(a.hi, b.hi)};
  return r;
}

aoth_interval_t aoth_interval_mul(aoth_interval_t a, aoth_interval_t b) {
  aoth_interval_t r = any;
  if (a.lo >= 0 && b.lo >= 0) {
    if (__builtin_mul_overflow(a.lo, b.lo, &r.lo)) r.lo = 0;
    if (a.hi == INT64_MAX || b.hi == INT64_MAX || __builtin_mul_overflow(a.hi, b.hi, &r.hi)) r.hi = INT64_MAX;
    if (a.hi == 0 || b.hi == 0) r.hi = 0;
    return r;
  }
  if (is_open(a) || is_open(b)) return any;
  const int64_t x[2] = {a.lo, a.hi}, y[2] = {b.lo, b.hi};
  r.lo = INT64_MAX;
  r.hi = INT64_MIN;
  for (int i = 0; i < 4; i++) {
    int64_t corner;
    if (__builtin_mul_overflow(x[i & 1], y[i >> 1], &corner)) return any;
    if (corner < r.lo) r.lo = corner;
    if (corner > r.hi) r.hi = corner;
  }
  AOT_ASSERT(r.lo <= r.hi);
  return r;
}

static aoth_interval_t divide(aoth_interval_t a, aoth_interval_t b) {
  aoth_interval_t r = any;
  if (b.lo < 1) return any;
  r.lo = a.lo == INT64_MIN ? INT64_MIN : sn_floor_div(a.lo, a.lo < 0 ? b.lo : b.hi);
  r.hi = a.hi == INT64_MAX ? INT64_MAX : sn_floor_div(a.hi, a.hi < 0 ? b.hi : b.lo);
  return r;
}

static aoth_interval_t modulo(aoth_interval_t a, aoth_interval_t b) {
  aoth_interval_t r = any;
  if (b.lo < 1) return any;
  r.lo = 0;
  r.hi = b.hi == INT64_MAX ? INT64_MAX : b.hi - 1;
  if (a.lo >= 0 && a.hi < r.hi) r.hi = a.hi;
  return r;
}

int aoth_interval_decide(int32_t op, aoth_interval_t a, aoth_interval_t b) {
  if (op == AOT_EXPR_LT) return a.hi < b.lo ? 1 : a.lo >= b.hi ? 0 : -1;
  if (op == AOT_EXPR_LE) return a.hi <= b.lo ? 1 : a.lo > b.hi ? 0 : -1;
  if (a.hi < b.lo || b.hi < a.lo) return 0;
  return a.lo == a.hi && b.lo == b.hi && a.lo == b.lo ? 1 : -1;
}

static aoth_interval_t compare(int32_t op, aoth_interval_t a, aoth_interval_t b) {
  aoth_interval_t r = {0, 1};
  int known = aoth_interval_decide(op, a, b);
  if (known >= 0) r.lo = r.hi = known;
  return r;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

aoth_interval_t aoth_interval_of(int32_t op, aoth_interval_t a, aoth_interval_t b, aoth_interval_t c) {
  aoth_interval_t r = any;
  AOT_ASSERT(a.lo <= a.hi && b.lo <= b.hi && c.lo <= c.hi);
  switch (op) {
    case AOT_EXPR_ADD: return aoth_interval_add(a, b);
    case AOT_EXPR_SUB: return aoth_interval_add(a, aoth_interval_negate(b));
    case AOT_EXPR_MUL: return aoth_interval_mul(a, b);
    case AOT_EXPR_FLOORDIV: return divide(a, b);
    case AOT_EXPR_MOD: return modulo(a, b);
    case AOT_EXPR_MAX:
    case AOT_EXPR_MIN:
      r.lo = op == AOT_EXPR_MAX ? larger(a.lo, b.lo) : smaller(a.lo, b.lo);
      r.hi = op == AOT_EXPR_MAX ? larger(a.hi, b.hi) : smaller(a.hi, b.hi);
      return r;
    case AOT_EXPR_EQ:
    case AOT_EXPR_LT:
    case AOT_EXPR_LE: return compare(op, a, b);
    case AOT_EXPR_WHERE:
      r.lo = smaller(b.lo, c.lo);
      r.hi = larger(b.hi, c.hi);
      return r;
    case AOT_EXPR_POW: r.lo = a.lo >= 0 && b.lo >= 0 ? 0 : INT64_MIN; return r;
    default: return r;
  }
}
