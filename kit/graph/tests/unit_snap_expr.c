/* Dimensions of the shape environment: operators, order of evaluation, values that do not exist. */
#include "kit/graph/snap_check.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* A block that is only symbols and expressions. */
typedef struct block {
  aot_snapshot_t s;
  aot_snap_expr_t exprs[32];
} block_t;

static int64_t add(block_t *b, int32_t op, int64_t x, int64_t y, int64_t z) {
  aot_snap_expr_t e = {op, 0, x, y, z};
  b->s.exprs.at = offsetof(block_t, exprs);
  if (!b->s.exprs.count) b->s.exprs.count = 1; /* the empty row */
  b->exprs[b->s.exprs.count] = e;
  return AOT_DIM_SYM + b->s.exprs.count++;
}

static void test_operators(void **state) {
  /* clang-format off */
  const struct { int32_t op; int64_t a, b, c, expected; } table[] = {
      {AOT_EXPR_ADD, 3, 4, 0, 7},       {AOT_EXPR_SUB, 3, 4, 0, -1},      {AOT_EXPR_MUL, 3, 4, 0, 12},
      {AOT_EXPR_FLOORDIV, 7, 2, 0, 3},  {AOT_EXPR_FLOORDIV, -7, 2, 0, -4}, {AOT_EXPR_FLOORDIV, 7, -2, 0, -4},
      {AOT_EXPR_MOD, 7, 3, 0, 1},       {AOT_EXPR_MOD, -7, 3, 0, 2},      {AOT_EXPR_MOD, 7, -3, 0, -2},
      {AOT_EXPR_MOD, INT64_MIN, -1, 0, 0}, {AOT_EXPR_MAX, 3, 4, 0, 4},    {AOT_EXPR_MIN, 3, 4, 0, 3},
      {AOT_EXPR_EQ, 4, 4, 0, 1},        {AOT_EXPR_LT, 3, 4, 0, 1},        {AOT_EXPR_LE, 4, 4, 0, 1},
      {AOT_EXPR_WHERE, 1, 5, 6, 5},     {AOT_EXPR_WHERE, 0, 5, 6, 6},     {AOT_EXPR_POW, 2, 10, 0, 1024},
      {AOT_EXPR_POW, 7, 0, 0, 1}};
  /* clang-format on */
  (void)state;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
    int64_t v = -99;
    assert_true(sn_expr_apply(table[k].op, table[k].a, table[k].b, table[k].c, &v));
    assert_int_equal(v, table[k].expected);
  }
}

static void test_results_that_do_not_exist(void **state) {
  int64_t v;
  (void)state;
  assert_false(sn_expr_apply(AOT_EXPR_FLOORDIV, 1, 0, 0, &v));
  assert_false(sn_expr_apply(AOT_EXPR_FLOORDIV, INT64_MIN, -1, 0, &v));
  assert_false(sn_expr_apply(AOT_EXPR_MOD, 1, 0, 0, &v));
  assert_false(sn_expr_apply(AOT_EXPR_ADD, INT64_MAX, 1, 0, &v));
  assert_false(sn_expr_apply(AOT_EXPR_MUL, INT64_MAX, 2, 0, &v));
  assert_false(sn_expr_apply(AOT_EXPR_POW, 2, -1, 0, &v));
  assert_false(sn_expr_apply(AOT_EXPR_POW, 10, 40, 0, &v));
  assert_false(sn_expr_apply(99, 1, 1, 0, &v));
}

/* (s0 + 1) // s1 * s0: rows in order, children before parents */
static void test_evaluates_rows_in_order(void **state) {
  block_t b = {0};
  sn_error_t error;
  int64_t values[32], symbols[2] = {7, 3};
  int64_t s0 = add(&b, AOT_EXPR_SYMBOL, 0, 0, 0), s1 = add(&b, AOT_EXPR_SYMBOL, 1, 0, 0);
  int64_t sum = add(&b, AOT_EXPR_ADD, s0, 1, 0), part = add(&b, AOT_EXPR_FLOORDIV, sum, s1, 0),
          all = add(&b, AOT_EXPR_MUL, part, s0, 0);
  (void)state;
  assert_int_equal(sn_exprs_eval(&b.s, symbols, 2, values, &error), AOT_OK);
  assert_int_equal(sn_dim(all, values), 14);
  assert_int_equal(sn_dim(5, values), 5);
  assert_int_equal(sn_dim(INT64_MAX, values), INT64_MAX); /* an open slice end is no expression */
}

/* A division by zero spoils what is made of it, and nothing else; a where takes the side that exists. */
static void test_no_value_spreads_only_where_used(void **state) {
  block_t b = {0};
  sn_error_t error;
  int64_t values[32], symbols[1] = {0};
  int64_t s0 = add(&b, AOT_EXPR_SYMBOL, 0, 0, 0), bad = add(&b, AOT_EXPR_FLOORDIV, 8, s0, 0),
          worse = add(&b, AOT_EXPR_ADD, bad, 1, 0);
  int64_t is_zero = add(&b, AOT_EXPR_EQ, s0, 0, 0), safe = add(&b, AOT_EXPR_WHERE, is_zero, 4, bad);
  (void)state;
  assert_int_equal(sn_exprs_eval(&b.s, symbols, 1, values, &error), AOT_OK);
  assert_true(sn_dim(worse, values) == SN_NO_VALUE);
  assert_int_equal(sn_dim(safe, values), 4);
}

static void test_missing_symbols_are_an_error(void **state) {
  block_t b = {0};
  sn_error_t error;
  int64_t values[32], symbols[1] = {1};
  (void)state;
  add(&b, AOT_EXPR_SYMBOL, 1, 0, 0);
  assert_int_equal(sn_exprs_eval(&b.s, symbols, 1, values, &error), AOT_E_RANGE);
  assert_string_equal(error.text, "symbol 1 has no value: 1 are given");
}

static void test_refuses_what_is_no_snapshot(void **state) {
  const aot_snapshot_t *s;
  sn_error_t error;
  uint64_t zeros[64] = {0};
  (void)state;
  assert_int_equal(sn_check(zeros, 16, &s, &error), AOT_E_DATA_LOSS);
  assert_int_equal(sn_check(zeros, sizeof zeros, &s, &error), AOT_E_DATA_LOSS);
  ((aot_snapshot_t *)(void *)zeros)->magic = AOT_SNAPSHOT_MAGIC;
  ((aot_snapshot_t *)(void *)zeros)->version = AOT_SNAPSHOT_VERSION + 1;
  assert_int_equal(sn_check(zeros, sizeof zeros, &s, &error), AOT_E_TOO_NEW);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_operators),
      cmocka_unit_test(test_results_that_do_not_exist),
      cmocka_unit_test(test_evaluates_rows_in_order),
      cmocka_unit_test(test_no_value_spreads_only_where_used),
      cmocka_unit_test(test_missing_symbols_are_an_error),
      cmocka_unit_test(test_refuses_what_is_no_snapshot),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
