/* Symbolic sizes: both spellings of each expression evaluate to the same number for s0 = 6, s1 = 35. */
#include "sympy_text.h"
#include "test_env.h"
#include <aot/graph.h>
#include <string.h>

/* Instead of expressions, their values: what is built is checked by what it means. */
static aot_status_t symbol(void *self, aot_str_t name, int64_t *out) {
  (void)self;
  *out = p2_str_is(name, "s0") ? 6 : p2_str_is(name, "s1") ? 35 : 1000;
  return AOT_OK;
}

static int64_t floordiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static aot_status_t make(void *self, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  int64_t i, r = 1;
  (void)self;
  switch (op) {
    case AOT_EXPR_ADD: r = a + b; break;
    case AOT_EXPR_SUB: r = a - b; break;
    case AOT_EXPR_MUL: r = a * b; break;
    case AOT_EXPR_FLOORDIV: r = floordiv(a, b); break;
    case AOT_EXPR_MOD: r = a - floordiv(a, b) * b; break;
    case AOT_EXPR_MAX: r = a > b ? a : b; break;
    case AOT_EXPR_MIN: r = a < b ? a : b; break;
    case AOT_EXPR_EQ: r = a == b; break;
    case AOT_EXPR_LT: r = a < b; break;
    case AOT_EXPR_LE: r = a <= b; break;
    case AOT_EXPR_WHERE: r = a ? b : c; break;
    case AOT_EXPR_POW:
      for (i = 0; i < b; i++) r *= a;
      break;
    default: return AOT_E_INVALID;
  }
  *out = r;
  return AOT_OK;
}

static aot_status_t source(void *self, aot_str_t path, int32_t what, uint32_t index, int64_t *out) {
  (void)self;
  *out = what == P2_SOURCE_SIZE ? (index ? 35 : 6) : what == P2_SOURCE_STRIDE ? 10 + index : 7;
  if (what == P2_SOURCE_STRIDE && !p2_str_is(path, "['l'][0]['it's']")) return AOT_E_NOT_FOUND;
  return p2_str_is(path, "['x']") || what == P2_SOURCE_STRIDE ? AOT_OK : AOT_E_NOT_FOUND;
}

static const p2_expr_sink_t sink = {NULL, symbol, make, source};

static void both_spellings(void **state) {
  static const struct {
    const char *text;
    int64_t value;
  } rows[] = {
      {"Symbol('s0', positive=True, integer=True)", 6},
      {"s0", 6},
      {"Mul(Integer(8), Symbol('s1', positive=True, integer=True))", 280},
      {"8*s1", 280},
      {"Add(Symbol('s0', integer=True), Integer(-1), Mul(Integer(2), Symbol('s1', integer=True)))", 75},
      {"s0 - 1 + 2*s1", 75},
      {"FloorDiv(Add(Symbol('s1', integer=True), Integer(-1)), Integer(4))", 8},
      {"((s1 - 1)//4)", 8},
      {"CeilDiv(s1, 4)", 9},
      {"ModularIndexing(s1, 4, 3)", 2},
      {"Mod(s1, s0)", 5},
      {"PythonMod(s1, 4) + s1 % 4", 6},
      {"s0**2", 36},
      {"Max(Integer(1), TruncToInt(Mul(Float('0.5', precision=53), ToFloat(Mul(Integer(2), Symbol('s1', "
       "integer=True))))))",
       35},
      {"TruncToInt(Mul(Float('1.5', precision=53), ToFloat(Symbol('s1', integer=True))))", 52},
      {"TruncToInt(Mul(Float('2.0', precision=53), ToFloat(Symbol('s0', integer=True))))", 12},
      {"Pow(Symbol('s0', integer=True), Integer(2))", 36},
      {"PowByNatural(s0, 3)", 216},
      {"-s0 + 7", 1},
      {"-(-s0)**2", -36},
      {"Max(1, s0, s1) + Min(s0, s1)", 41},
      {"Where(s0 < s1, s0, s1)", 6},
      {"Eq(s0, 6) + Ne(s0, 6) + 2*StrictLessThan(s0, s1)", 3},
      {"GreaterThan(s0, 6) + 10*StrictGreaterThan(s0, 6)", 1},
      {"s0 >= 6", 1},
      {"And(s0 < s1, s1 < 40) + Or(s0 > s1, Not(s1 > 40))", 2},
      {"LShift(s0, 2) + RShift(s1, 1)", 41},
      {"Mul(Rational(1, 2), Symbol('s0', integer=True))", 3},
      {"s0/2 + s0/3", 5},
      {"floor(s1/4)", 8},
      {"CeilToInt(IntTrueDiv(s1, 4))", 9},
      {"FloorDiv(s1/2, s0/2)", 5},
      {"Abs(s0 - s1)", 29},
      {"Identity(ToFloat(s0))", 6},
      {"Add(s0, s1, evaluate=False)", 41},
      /* Python, as guards are written: L['x'].size() is [6, 35] */
      {"(L['x'].size()[0] % 2) == 0 and not L['x'].size()[1] < 30", 1},
      {"L['x'].shape[0]*L['x'].size()[1] != 210 or s0 < 6 or not (s1 == 35)", 0},
      {"not not 2 < L['x'].size()[0] <= 6 < 7", 1},
      {"2 < s0 <= 5 < 7", 0},
      {"(L['x'].size()[0] if s0 > 30 else L['x'].size()[1]) == 35", 1},
      {"L['l'][0][\"it's\"].stride()[2] + L['x'].storage_offset()", 12 + 7},
      {"max(s0, 2 + s1, 5) + min(s0, s1) + abs(s0 + ((-1)*s1))", 37 + 6 + 29},
      {"math.trunc(s0 / 4) == 1 and math.ceil(s0 / 4) == 2 and math.floor(s1 / 2) == 17", 1},
      {"round(s0 / 4) + 10*round(s1 / 2) + 100*round((s0 + 4)/4) + 1000*round(s1 / 3)", 2 + 180 + 200 + 12000},
      {"0.75*torch.sym_float(s0) < 4.75 and s0 / 4 <= 1.5 and 1e1 == 10.0", 1},
  };
  test_env_t t;
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t value = -12345;
    test_env_init(&t);
    if (p2_expr_read(&t.env, p2_str(rows[i].text), &sink, &value) != AOT_OK)
      fail_msg("%s: %s", rows[i].text, t.env.error.message);
    if (value != rows[i].value) fail_msg("%s is %lld", rows[i].text, (long long)value);
    test_env_deinit(&t);
  }
}

static void refuses(void **state) {
  /* clang-format off */
  static const char *const rows[] = {"",      "s0 +",   "(s0",       "s0 s1",  "Frob(s0)",  "Symbol('s0'",
                                     "Symbol('')", "1.5", "Float('1.7', precision=53)", "Float('x', precision=53)",
                                     "Float('1e300', precision=53)", "Float('0.5', precision=53",
                                     "s0//0", "Mod(s0, 0)", "Max()", "99999999999999999999", "4611686018427387904",
                                     "FloorDiv(s0)", "s0**-2", "LShift(s0, 99)", "L['y'].size()[0]", "L['x'].dtype == 3",
                                     "L['x'].size()", "1 if s0", "0.1*s0 < 3", "s0 < 3 and"};
  /* clang-format on */
  char deep[2000];
  test_env_t t;
  int64_t value;
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    test_env_init(&t);
    if (p2_expr_read(&t.env, p2_str(rows[i]), &sink, &value) != AOT_E_INVALID || !t.env.error.code)
      fail_msg("'%s' is taken for %lld", rows[i], (long long)value);
    test_env_deinit(&t);
  }
  memset(deep, '(', sizeof deep - 1);
  deep[sizeof deep - 1] = 0;
  test_env_init(&t);
  assert_int_equal(p2_expr_read(&t.env, p2_str(deep), &sink, &value), AOT_E_INVALID);
  assert_says(&t, "nested too deeply");
  test_env_deinit(&t);
}

static void knows_a_bare_symbol(void **state) {
  aot_str_t name;
  (void)state;
  assert_true(p2_expr_is_symbol(p2_str("Symbol('s31', positive=True, integer=True)"), &name));
  assert_int_equal(name.size, 3);
  assert_memory_equal(name.data, "s31", 3);
  assert_true(p2_expr_is_symbol(p2_str("s0"), &name));
  assert_false(p2_expr_is_symbol(p2_str("s0 + 1"), &name));
  assert_false(p2_expr_is_symbol(p2_str("Symbol('s0') + Symbol('s1')"), &name));
  assert_false(p2_expr_is_symbol(p2_str("12"), &name));
  assert_false(p2_expr_is_symbol(p2_str(""), &name));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_spellings), cmocka_unit_test(refuses),
                                     cmocka_unit_test(knows_a_bare_symbol)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
