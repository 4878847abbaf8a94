/* Kernels by example: rounding, promotion, strides, checks, and the composite operators that no recording covers. */
#include "kit/reference/rk.h"
#include "kit/reference/rk_core.h"
#include <aot/inline.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define SIZES(...) ((int64_t[]){__VA_ARGS__})

static rk_tensor_t dense(void *data, uint64_t nbytes, int32_t dtype, int32_t rank, const int64_t *sizes) {
  rk_tensor_t t = {0};
  int64_t stride = 1;
  t.data = data;
  t.nbytes = nbytes;
  t.dtype = dtype;
  t.rank = rank;
  for (int32_t d = rank - 1; d >= 0; d--) {
    t.sizes[d] = sizes[d];
    t.strides[d] = stride;
    stride *= sizes[d];
  }
  return t;
}
#define TENSOR(array, dtype, rank, ...) dense(array, sizeof(array), dtype, rank, SIZES(__VA_ARGS__))
#define SCALAR(variable, dtype) dense(&(variable), sizeof(variable), dtype, 0, NULL)

static aot_status_t run(const char *op, rk_arg_t *args, uint32_t n, rk_tensor_t *results, uint32_t n_results,
                        rk_error_t *error) {
  const rk_kernel_t *k = rk_find(aot_str(op));
  rk_call_t call = {args, n, results, n_results};
  if (!k) fail_msg("no kernel %s", op);
  return rk_run(k, &call, error);
}
static void run_ok(const char *op, rk_arg_t *args, uint32_t n, rk_tensor_t *results, uint32_t n_results) {
  rk_error_t error;
  if (run(op, args, n, results, n_results, &error) != AOT_OK) fail_msg("%s", error.text);
}

/* ---- elements ---- */

static void test_bfloat16_rounds_to_nearest_even(void **state) {
  /* clang-format off */
  const struct { double in; double out; } table[] = {{1, 1},         {1.00390625, 1}, {1.01171875, 1.015625},
      {-1.005859375, -1.0078125},
                                                     {3.4e38, INFINITY}, {1e-45, 0},      {0.1, 0.10009765625}};
  /* clang-format on */
  (void)state;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++)
    assert_true(rk_round_to(table[k].in, AOT_BF16) == table[k].out);
  assert_true(isnan(rk_round_to(NAN, AOT_BF16)));
}

static void test_half_rounds_to_nearest_even(void **state) {
  /* clang-format off */
  const struct { double in; double out; } table[] = {{65504, 65504}, {65519.996, 65504},  {65520, INFINITY},
          {1.00048828125, 1},
                                                     {1.00146484375, 1.001953125}, {5.9604644775390625e-08,
                                                         5.9604644775390625e-08},
                                                     {2.98023223876953125e-08, 0}, {6.103515625e-05, 6.103515625e-05},
                                                     {-0.333251953125, -0.333251953125}};
  /* clang-format on */
  (void)state;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++)
    assert_true(rk_round_to(table[k].in, AOT_F16) == table[k].out);
  for (uint32_t bits = 0; bits < 0x7C00; bits++) { /* every finite half is itself */
    uint16_t h = (uint16_t)bits, back;
    rk_store_f(&back, AOT_F16, rk_load_f(&h, AOT_F16));
    assert_int_equal(h, back);
  }
}

static void test_conversions_of_floats_to_integers(void **state) {
  int64_t v;
  uint8_t b;
  (void)state;
  rk_store_f(&v, AOT_I64, -2.9);
  assert_int_equal(v, -2);
  rk_store_f(&v, AOT_I64, 1e30); /* saturates: C leaves it undefined */
  assert_true(v == INT64_MAX);
  rk_store_f(&b, AOT_BOOL, 0.25);
  assert_int_equal(b, 1);
}

/* ---- promotion ---- */

/* A comparison happens in the promoted dtype: 0.1 is rounded to float before it is compared with floats. */
static void test_comparison_promotes_numbers(void **state) {
  float x[2] = {0.1f, 0.2f};
  int64_t big[1] = {INT64_C(9007199254740993)}, other[1] = {INT64_C(9007199254740992)};
  uint8_t y[2];
  rk_tensor_t tx = TENSOR(x, AOT_F32, 1, 2), ty = TENSOR(y, AOT_BOOL, 1, 2), tb = TENSOR(big, AOT_I64, 1, 1),
              to = TENSOR(other, AOT_I64, 1, 1);
  rk_tensor_t one = dense(y, 1, AOT_BOOL, 1, SIZES(1));
  rk_arg_t args[2] = {rk_arg_of_tensor(&tx), rk_arg_of_float(0.1)},
           ints[2] = {rk_arg_of_tensor(&tb), rk_arg_of_tensor(&to)};
  (void)state;
  run_ok("aten.eq.Scalar", args, 2, &ty, 1);
  assert_int_equal(y[0], 1);
  assert_int_equal(y[1], 0);
  run_ok("aten.eq.Tensor", ints, 2, &one, 1); /* int64 stays exact: as doubles the two are equal */
  assert_int_equal(y[0], 0);
}

/* int / int is a float; int + 1.5 too; the sum of uint8 wraps in uint8 when the result says so. */
static void test_computes_in_the_result_dtype(void **state) {
  int32_t a[2] = {7, -7}, b[2] = {2, 2};
  uint8_t u[1] = {250}, w[1];
  float y[2];
  rk_tensor_t ta = TENSOR(a, AOT_I32, 1, 2), tb = TENSOR(b, AOT_I32, 1, 2), ty = TENSOR(y, AOT_F32, 1, 2),
              tu = TENSOR(u, AOT_U8, 1, 1), tw = TENSOR(w, AOT_U8, 1, 1);
  rk_arg_t div[2] = {rk_arg_of_tensor(&ta), rk_arg_of_tensor(&tb)},
           add[3] = {rk_arg_of_tensor(&ta), rk_arg_of_float(1.5), rk_arg_of_int(1)};
  rk_arg_t wrap[3] = {rk_arg_of_tensor(&tu), rk_arg_of_int(10), rk_arg_of_int(1)};
  (void)state;
  run_ok("aten.div.Tensor", div, 2, &ty, 1);
  assert_float_equal(y[0], 3.5, 0);
  run_ok("aten.add.Tensor", add, 3, &ty, 1);
  assert_float_equal(y[1], -5.5, 0);
  run_ok("aten.add.Tensor", wrap, 3, &tw, 1);
  assert_int_equal(w[0], 4);
}

/* bf16: every operand is exact in float, one rounding at the end */
static void test_bfloat16_computes_in_float(void **state) {
  uint16_t x[1], y[1];
  rk_tensor_t tx = TENSOR(x, AOT_BF16, 1, 1), ty = TENSOR(y, AOT_BF16, 1, 1);
  rk_arg_t args[2] = {rk_arg_of_tensor(&tx), rk_arg_of_float(1.001)};
  (void)state;
  rk_store_f(x, AOT_BF16, 200);
  run_ok("aten.mul.Tensor", args, 2, &ty, 1); /* 200.2 rounds to 200 */
  assert_true(rk_load_f(y, AOT_BF16) == 200);
  args[1] = rk_arg_of_float(1.003);
  run_ok("aten.mul.Tensor", args, 2, &ty, 1); /* 200.6 -> 201; a bf16 factor (1.0) would give 200 */
  assert_true(rk_load_f(y, AOT_BF16) == 201);
}

/* ---- strides ---- */

static void test_views_are_geometry(void **state) {
  float x[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  rk_tensor_t tx = TENSOR(x, AOT_F32, 2, 3, 4), view;
  rk_arg_t args[5] = {rk_arg_of_tensor(&tx), rk_arg_of_int(1), rk_arg_of_int(-3), rk_arg_of_int(INT64_MAX),
                      rk_arg_of_int(2)};
  rk_call_t call = {args, 5, &view, 1};
  rk_error_t error;
  (void)state;
  assert_int_equal(rk_view(rk_find(aot_str("aten.slice.Tensor")), &call, &error), AOT_OK);
  assert_ptr_equal(view.data, x);
  assert_int_equal(view.offset, 1);
  assert_int_equal(view.sizes[1], 2);
  assert_int_equal(view.strides[1], 2);
}

/* reshape of a transpose cannot be a view: it is copied in element order */
static void test_reshape_copies_when_it_must(void **state) {
  float x[6] = {0, 1, 2, 3, 4, 5}, y[6];
  const float expected[6] = {0, 3, 1, 4, 2, 5};
  rk_tensor_t t = TENSOR(x, AOT_F32, 2, 3, 2), ty = TENSOR(y, AOT_F32, 1, 6), view;
  rk_arg_t args[2] = {rk_arg_of_tensor(&t), rk_arg_of_ints(SIZES(-1), 1)};
  rk_call_t call = {args, 2, &view, 1};
  rk_error_t error;
  (void)state;
  t.strides[0] = 1;
  t.strides[1] = 3;
  assert_int_equal(rk_view(rk_find(aot_str("aten.view.default")), &call, &error), AOT_E_UNIMPLEMENTED);
  run_ok("aten.view.default", args, 2, &ty, 1);
  assert_memory_equal(y, expected, sizeof y);
}

/* ---- checks ---- */

static void test_declared_shapes_are_not_believed(void **state) {
  float x[6] = {0}, y[4];
  rk_tensor_t tx = TENSOR(x, AOT_F32, 2, 2, 3), ty = TENSOR(y, AOT_F32, 2, 2, 2), outside;
  rk_arg_t args[2] = {rk_arg_of_tensor(&tx), rk_arg_of_tensor(&tx)};
  rk_error_t error;
  (void)state;
  assert_int_equal(run("aten.mm.default", args, 2, &ty, 1, &error), AOT_E_INVALID);
  assert_string_equal(error.text, "aten.mm.default: inner sizes 3 and 2 differ");
  assert_int_equal(run("aten.neg.default", args, 1, &ty, 1, &error), AOT_E_INVALID);
  outside = tx;
  outside.offset = 1;
  args[0] = rk_arg_of_tensor(&outside);
  assert_int_equal(run("aten.relu.default", args, 1, &tx, 1, &error), AOT_E_INVALID);
  assert_string_equal(error.text, "aten.relu.default: argument 0 reaches outside its storage of 24 bytes");
}

static void test_gather_names_index_and_bound(void **state) {
  float x[3] = {0}, y[2];
  int64_t index[2] = {2, -1};
  rk_tensor_t tx = TENSOR(x, AOT_F32, 1, 3), ti = TENSOR(index, AOT_I64, 1, 2), ty = TENSOR(y, AOT_F32, 1, 2);
  rk_arg_t args[4] = {rk_arg_of_tensor(&tx), rk_arg_of_int(0), rk_arg_of_tensor(&ti), rk_arg_of_bool(0)};
  rk_error_t error;
  (void)state;
  assert_int_equal(run("aten.gather.default", args, 4, &ty, 1, &error), AOT_E_RANGE);
  assert_string_equal(error.text, "aten.gather.default: index -1 is out of range for dimension 0 of size 3");
}

static void test_no_planes_are_pooled_at_once(void **state) {
  static const int64_t out[2] = {INT64_C(1) << 30, INT64_C(1) << 30};
  float x[1];
  rk_tensor_t tx = TENSOR(x, AOT_F32, 4, 1, 0, 4, 4), ty = TENSOR(x, AOT_F32, 4, 1, 0, out[0], out[1]);
  rk_arg_t args[2] = {rk_arg_of_tensor(&tx), rk_arg_of_ints(out, 2)};
  (void)state;
  run_ok("aten._adaptive_avg_pool2d.default", args, 2, &ty, 1);
}

static void test_a_single_element_is_selected_once(void **state) {
  float x[1] = {3}, y[2] = {0};
  int64_t index[2] = {0, 0};
  rk_tensor_t tx = TENSOR(x, AOT_F32, 0, 0), ti = TENSOR(index, AOT_I64, 1, 2), ty = TENSOR(y, AOT_F32, 0, 0);
  rk_arg_t args[3] = {rk_arg_of_tensor(&tx), rk_arg_of_int(0), rk_arg_of_tensor(&ti)};
  rk_error_t error;
  (void)state;
  assert_int_equal(run("aten.index_select.default", args, 3, &ty, 1, &error), AOT_E_INVALID);
  assert_string_equal(error.text, "aten.index_select.default: 2 places of a single element are asked for");
  ti.sizes[0] = 1;
  run_ok("aten.index_select.default", args, 3, &ty, 1);
  assert_true(y[0] == 3 && y[1] == 0);
}

static void test_integers_take_the_largest_of_floats(void **state) {
  int32_t x[2] = {4, -7}, y[2];
  float src[3] = {3.5f, -6.5f, 2.0f};
  int64_t index[3] = {0, 1, 0};
  rk_tensor_t tx = TENSOR(x, AOT_I32, 1, 2), ti = TENSOR(index, AOT_I64, 1, 3), ts = TENSOR(src, AOT_F32, 1, 3),
              ty = TENSOR(y, AOT_I32, 1, 2);
  rk_arg_t how = {.kind = AOT_ARG_STR, .n = 4, .u.chars = "amax"};
  rk_arg_t args[6] = {rk_arg_of_tensor(&tx), rk_arg_of_int(0), rk_arg_of_tensor(&ti), rk_arg_of_tensor(&ts), how,
                      rk_arg_of_bool(1)};
  (void)state;
  run_ok("aten.scatter_reduce.two", args, 6, &ty, 1);
  assert_int_equal(y[0], 4);
  assert_int_equal(y[1], -6);
}

static void test_dropout_that_draws_is_refused(void **state) {
  rk_tensor_t t = {0};
  rk_arg_t args[3] = {rk_arg_of_tensor(&t), rk_arg_of_float(0.5), rk_arg_of_bool(1)};
  const rk_kernel_t *k = rk_find(aot_str("aten.dropout.default"));
  (void)state;
  assert_non_null(rk_refuse(k, args, 3));
  args[2] = rk_arg_of_bool(0);
  assert_null(rk_refuse(k, args, 3));
  args[2] = rk_arg_of_bool(1);
  args[1] = rk_arg_of_float(0);
  assert_null(rk_refuse(k, args, 3));
}

/* ---- composites, by hand ---- */

/* One head, two positions: causal attention copies the first value row, mixes at the second. */
static void test_attention_by_hand(void **state) {
  double q[4] = {1, 0, 0, 1}, k[4] = {1, 0, 0, 1}, v[2] = {10, 20}, y[2], e = exp(1.0);
  rk_tensor_t tq = TENSOR(q, AOT_F64, 2, 2, 2), tk = TENSOR(k, AOT_F64, 2, 2, 2), tv = TENSOR(v, AOT_F64, 2, 2, 1),
              ty = TENSOR(y, AOT_F64, 2, 2, 1);
  rk_arg_t none = {0, 0, {0}};
  rk_arg_t args[8] = {rk_arg_of_tensor(&tq), rk_arg_of_tensor(&tk), rk_arg_of_tensor(&tv), none,
                      rk_arg_of_float(0),    rk_arg_of_bool(1),     rk_arg_of_float(1),    rk_arg_of_bool(0)};
  uint8_t keep[4] = {0, 0, 1, 1};
  rk_tensor_t mask = TENSOR(keep, AOT_BOOL, 2, 2, 2);
  (void)state;
  run_ok("aten.scaled_dot_product_attention.default", args, 8, &ty, 1);
  assert_float_equal(y[0], 10, 0);
  assert_float_equal(y[1], (10 + 20 * e) / (1 + e), 1e-12);
  args[3] = rk_arg_of_tensor(&mask); /* a row that may attend to nothing gives 0 */
  args[5] = rk_arg_of_bool(0);
  run_ok("aten.scaled_dot_product_attention.default", args, 8, &ty, 1);
  assert_float_equal(y[0], 0, 0);
}

static void test_cross_entropy_by_hand(void **state) {
  double x[4] = {0, log(3.0), 0, 0}, y;
  int64_t t[2] = {1, -100};
  rk_tensor_t tx = TENSOR(x, AOT_F64, 2, 2, 2), tt = TENSOR(t, AOT_I64, 1, 2), ty = SCALAR(y, AOT_F64);
  rk_arg_t none = {0, 0, {0}};
  rk_arg_t args[6] = {rk_arg_of_tensor(&tx), rk_arg_of_tensor(&tt), none,
                      rk_arg_of_int(1),      rk_arg_of_int(-100),   rk_arg_of_float(0)};
  (void)state;
  run_ok("aten.cross_entropy_loss.default", args, 6, &ty, 1); /* p = 3/4; the ignored sample does not count */
  assert_float_equal(y, -log(0.75), 1e-12);
  args[5] = rk_arg_of_float(0.5); /* half the weight goes to the mean over classes */
  run_ok("aten.cross_entropy_loss.default", args, 6, &ty, 1);
  assert_float_equal(y, -0.75 * log(0.75) - 0.25 * log(0.25), 1e-12);
}

static void test_rms_norm_epsilon_of_none(void **state) {
  float x[2] = {3e-4f, 4e-4f}, y[2];
  rk_tensor_t tx = TENSOR(x, AOT_F32, 1, 2), ty = TENSOR(y, AOT_F32, 1, 2);
  rk_arg_t none = {0, 0, {0}};
  rk_arg_t args[4] = {rk_arg_of_tensor(&tx), rk_arg_of_ints(SIZES(2), 1), none, none};
  (void)state;
  run_ok("aten.rms_norm.default", args, 4, &ty, 1); /* mean of squares 1.25e-7, epsilon 1.19e-7 */
  assert_float_equal(y[0], 3e-4 / sqrt(1.25e-7 + 1.1920929e-07), 1e-6);
}

static void test_batch_norm_updates_running_statistics(void **state) {
  double x[4] = {1, 3, 5, 7}, mean[1] = {10}, var[1] = {1}, y[4], saved[2][1], running[2][1];
  rk_tensor_t tx = TENSOR(x, AOT_F64, 2, 4, 1), tm = TENSOR(mean, AOT_F64, 1, 1), tv = TENSOR(var, AOT_F64, 1, 1);
  rk_tensor_t results[5] = {TENSOR(y, AOT_F64, 2, 4, 1), TENSOR(saved[0], AOT_F64, 1, 1),
                            TENSOR(saved[1], AOT_F64, 1, 1), TENSOR(running[0], AOT_F64, 1, 1),
                            TENSOR(running[1], AOT_F64, 1, 1)};
  rk_arg_t none = {0, 0, {0}};
  rk_arg_t args[8] = {rk_arg_of_tensor(&tx),
                      none,
                      none,
                      rk_arg_of_tensor(&tm),
                      rk_arg_of_tensor(&tv),
                      rk_arg_of_bool(1),
                      rk_arg_of_float(0.1),
                      rk_arg_of_float(0)};
  (void)state;
  run_ok("aten._native_batch_norm_legit_functional.default", args, 8, results, 5);
  assert_float_equal(saved[0][0], 4, 1e-12);
  assert_float_equal(saved[1][0], 1 / sqrt(5), 1e-12);
  assert_float_equal(running[0][0], 0.9 * 10 + 0.1 * 4, 1e-12);
  assert_float_equal(running[1][0], 0.9 * 1 + 0.1 * 20.0 / 3, 1e-12); /* unbiased */
}

/* A singular matrix is an error where the call requests a check, and a number in `info` where it does not. */
static void test_singular_matrices(void **state) {
  /* clang-format off */
  static const struct { const char *op, *error; uint32_t check_at, n_results; } table[] = {
      {"aten.linalg_inv_ex.default", "linalg.inv: matrix 1 is singular, at pivot 2", 1, 2},
      {"aten.linalg_cholesky_ex.default", "linalg.cholesky: matrix 1 is not positive definite, at the leading minor of order 2", 2, 2},
      {"aten.linalg_lu_factor_ex.default", "linalg.lu_factor: matrix 1 is singular, at pivot 2", 2, 3}};
  /* clang-format on */
  (void)state;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++)
    for (int check = 0; check < 2; check++) {
      double a[8] = {2, 1, 1, 2, 1, 1, 1, 1}, y[8];
      int32_t pivots[4], info[2] = {7, 7};
      rk_tensor_t x = TENSOR(a, AOT_F64, 3, 2, 2, 2);
      rk_tensor_t out[3] = {TENSOR(y, AOT_F64, 3, 2, 2, 2), TENSOR(pivots, AOT_I32, 2, 2, 2),
                            TENSOR(info, AOT_I32, 1, 2)};
      rk_arg_t args[3] = {rk_arg_of_tensor(&x),
                          rk_arg_of_bool(table[k].check_at == 1 ? check : strstr(table[k].op, "lu") != NULL),
                          rk_arg_of_bool(check)};
      rk_error_t error;
      if (table[k].n_results == 2) out[1] = out[2];
      if (check) {
        assert_int_equal(run(table[k].op, args, table[k].check_at + 1, out, table[k].n_results, &error), AOT_E_INVALID);
        assert_non_null(strstr(error.text, table[k].error));
        continue;
      }
      run_ok(table[k].op, args, table[k].check_at + 1, out, table[k].n_results);
      assert_int_equal(info[0], 0);
      assert_int_equal(info[1], 2);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bfloat16_rounds_to_nearest_even),
      cmocka_unit_test(test_half_rounds_to_nearest_even),
      cmocka_unit_test(test_conversions_of_floats_to_integers),
      cmocka_unit_test(test_comparison_promotes_numbers),
      cmocka_unit_test(test_computes_in_the_result_dtype),
      cmocka_unit_test(test_bfloat16_computes_in_float),
      cmocka_unit_test(test_views_are_geometry),
      cmocka_unit_test(test_reshape_copies_when_it_must),
      cmocka_unit_test(test_declared_shapes_are_not_believed),
      cmocka_unit_test(test_gather_names_index_and_bound),
      cmocka_unit_test(test_no_planes_are_pooled_at_once),
      cmocka_unit_test(test_a_single_element_is_selected_once),
      cmocka_unit_test(test_integers_take_the_largest_of_floats),
      cmocka_unit_test(test_dropout_that_draws_is_refused),
      cmocka_unit_test(test_attention_by_hand),
      cmocka_unit_test(test_cross_entropy_by_hand),
      cmocka_unit_test(test_rms_norm_epsilon_of_none),
      cmocka_unit_test(test_batch_norm_updates_running_statistics),
      cmocka_unit_test(test_singular_matrices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
