/* Python's arithmetic on numbers: ints, floats and bools that a run reports. In long double, which holds every int64
 * and every double; the result is rounded once, or must fit int64. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>

static long double number(const rk_ctx_t *c, uint32_t arg) {
  if (!rk_has(c, arg)) return 0;
  return c->call->args[arg].kind == AOT_ARG_FLOAT ? c->call->args[arg].u.f : (long double)rk_int(c, arg, 0);
}

typedef long double function(long double a, long double b);
static long double add(long double a, long double b) { return a + b; }
static long double sub(long double a, long double b) { return a - b; }
static long double mul(long double a, long double b) { return a * b; }
static long double divide(long double a, long double b) { return a / b; }
static long double floordiv(long double a, long double b) { return floorl(a / b); }
static long double mod(long double a, long double b) {
  long double r = fmodl(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static long double power(long double a, long double b) { return powl(a, b); }
static long double eq(long double a, long double b) { return a == b; }
static long double ne(long double a, long double b) { return a != b; }
static long double lt(long double a, long double b) { return a < b; }
static long double le(long double a, long double b) { return a <= b; }
static long double gt(long double a, long double b) { return a > b; }
static long double ge(long double a, long double b) { return a >= b; }
static long double both(long double a, long double b) { return a != 0 && b != 0; }
static long double either(long double a, long double b) { return a != 0 || b != 0; }
static long double larger(long double a, long double b) { return b > a ? b : a; }
static long double smaller(long double a, long double b) { return b < a ? b : a; }
static long double neg(long double a, long double b) { return b - a; } /* unary: b is 0 */
static long double same(long double a, long double b) { return a + b; }
static long double trunc_(long double a, long double b) { return truncl(a) + b; }
static long double floor_(long double a, long double b) { return floorl(a) + b; }
static long double ceil_(long double a, long double b) { return ceill(a) + b; }
static long double not_(long double a, long double b) { return a == b; }
static long double sqrt_(long double a, long double b) { return sqrtl(a) + b; }

static aot_status_t put_number(rk_ctx_t *c, long double v) {
  AOT_TRY(rk_check_result(c, 0, 0, NULL));
  if (!rk_is_int(rk_result_dtype(c, 0))) {
    rk_fill_f(rk_result(c, 0), (double)v);
    return AOT_OK;
  }
  RK_CHECK(c, v >= -9223372036854775808.0L && v < 9223372036854775808.0L, "%Lg is no integer of 64 bits", v);
  rk_fill_i(rk_result(c, 0), (int64_t)v);
  return AOT_OK;
}

typedef struct number_row {
  function *fn;
  int divides; /* the second operand must not be 0 */
} number_row_t;

static aot_status_t compute(rk_ctx_t *c) {
  const number_row_t *row = c->kernel->row;
  RK_CHECK(c, !row->divides || number(c, 1) != 0, "division by zero");
  return put_number(c, row->fn(number(c, 0), number(c, 1)));
}

/* sym_ite(b, t, f) */
static aot_status_t choose(rk_ctx_t *c) { return put_number(c, number(c, number(c, 0) != 0 ? 1 : 2)); }

#define ROW(name, ...)                                                                                                 \
  { name, compute, NULL, &(const number_row_t){__VA_ARGS__}, 0 }
static const rk_kernel_t rows[] = {
    ROW("_operator.add", add, 0),
    ROW("_operator.sub", sub, 0),
    ROW("_operator.mul", mul, 0),
    ROW("_operator.truediv", divide, 1),
    ROW("_operator.floordiv", floordiv, 1),
    ROW("_operator.mod", mod, 1),
    ROW("_operator.pow", power, 0),
    ROW("_operator.eq", eq, 0),
    ROW("_operator.ne", ne, 0),
    ROW("_operator.lt", lt, 0),
    ROW("_operator.le", le, 0),
    ROW("_operator.gt", gt, 0),
    ROW("_operator.ge", ge, 0),
    ROW("_operator.and_", both, 0),
    ROW("_operator.or_", either, 0),
    ROW("_operator.neg", neg, 0),
    ROW("_operator.pos", same, 0),
    ROW("math.trunc", trunc_, 0),
    ROW("math.floor", floor_, 0),
    ROW("math.ceil", ceil_, 0),
    ROW("torch.sym_int", trunc_, 0),
    ROW("torch.sym_float", same, 0),
    ROW("torch.sym_not", not_, 0),
    ROW("torch.sym_sqrt", sqrt_, 0),
    ROW("torch._sym_sqrt", sqrt_, 0),
    ROW("torch.sym_max", larger, 0),
    ROW("torch.sym_min", smaller, 0),
    {"torch.sym_ite", choose, NULL, NULL, 0},
};
const rk_family_t rk_family_number = RK_FAMILY(rows);
