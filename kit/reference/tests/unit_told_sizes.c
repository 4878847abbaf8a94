/* Kernels that report the sizes of their results, and Python's arithmetic on numbers. */
#include "kit/reference/rk.h"
#include <aot/inline.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* ---- results placed when their sizes are known ---- */

typedef struct places {
  rk_tensor_t *results;
  double memory[3][64];
} places_t;

static aot_status_t place(void *self, uint32_t result, int32_t rank, const int64_t *sizes, rk_error_t *error) {
  places_t *p = self;
  rk_tensor_t *t = &p->results[result];
  int64_t stride = 1;
  (void)error;
  t->data = p->memory[result];
  t->nbytes = sizeof p->memory[result];
  t->rank = rank;
  for (int32_t d = rank - 1; d >= 0; d--) {
    t->sizes[d] = sizes[d];
    t->strides[d] = stride;
    stride *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return AOT_OK;
}

static rk_tensor_t dense(void *data, int32_t dtype, int32_t rank, const int64_t *sizes) {
  rk_tensor_t t = {.data = data, .dtype = dtype, .rank = rank};
  int64_t stride = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    t.sizes[d] = sizes[d];
    t.strides[d] = stride;
    stride *= sizes[d];
  }
  t.nbytes = (uint64_t)stride * aot_dtype_size(dtype);
  return t;
}

static void run(const char *op, const rk_arg_t *args, uint32_t n_args, rk_tensor_t *results, uint32_t n_results,
                places_t *p) {
  rk_call_t call = {args, n_args, results, n_results};
  rk_caller_t caller = {p, place, NULL};
  rk_error_t error;
  const rk_kernel_t *k = rk_find(aot_str(op));
  assert_non_null(k);
  assert_true(rk_gives_sizes(k));
  p->results = results;
  if (rk_run_for(k, &call, &caller, &error) != AOT_OK) fail_msg("%s", error.text);
}

static void expect_i(const rk_tensor_t *t, int32_t rank, const int64_t *sizes, const int64_t *wanted) {
  int64_t n = rk_numel(t);
  assert_int_equal(t->rank, rank);
  for (int32_t d = 0; d < rank; d++) assert_int_equal(t->sizes[d], sizes[d]);
  for (int64_t k = 0; k < n; k++) assert_int_equal(((const int64_t *)t->data)[k], wanted[k]);
}

#define I64(...) ((const int64_t[]){__VA_ARGS__})

static void test_unique(void **state) {
  int64_t x[6] = {3, 1, 3, 2, 1, 3};
  rk_tensor_t in = dense(x, AOT_I64, 2, I64(2, 3)),
              results[3] = {{.dtype = AOT_I64}, {.dtype = AOT_I64}, {.dtype = AOT_I64}};
  rk_arg_t args[4] = {rk_arg_of_tensor(&in), rk_arg_of_bool(1), rk_arg_of_bool(1), rk_arg_of_bool(1)};
  places_t p;
  (void)state;
  run("aten._unique2.default", args, 4, results, 3, &p);
  expect_i(&results[0], 1, I64(3), I64(1, 2, 3));
  expect_i(&results[1], 2, I64(2, 3), I64(2, 0, 2, 1, 0, 2));
  expect_i(&results[2], 1, I64(3), I64(2, 1, 3));
}

static void test_unique_runs_and_slices(void **state) {
  int64_t x[6] = {1, 1, 2, 2, 2, 1}, rows[6] = {2, 0, 1, 5, 2, 0};
  rk_tensor_t in = dense(x, AOT_I64, 1, I64(6)),
              results[3] = {{.dtype = AOT_I64}, {.dtype = AOT_I64}, {.dtype = AOT_I64}};
  rk_arg_t runs[3] = {rk_arg_of_tensor(&in), rk_arg_of_bool(0), rk_arg_of_bool(1)};
  places_t p;
  (void)state;
  run("aten.unique_consecutive.default", runs, 3, results, 3, &p);
  expect_i(&results[0], 1, I64(3), I64(1, 2, 1));
  expect_i(&results[1], 1, I64(0), NULL);
  expect_i(&results[2], 1, I64(3), I64(2, 3, 1));
  in = dense(rows, AOT_I64, 2, I64(3, 2));
  for (int r = 0; r < 3; r++) results[r] = (rk_tensor_t){.dtype = AOT_I64};
  rk_arg_t slices[2] = {rk_arg_of_tensor(&in), rk_arg_of_int(0)};
  run("aten.unique_dim.default", slices, 2, results, 3, &p);
  expect_i(&results[0], 2, I64(2, 2), I64(1, 5, 2, 0));
  expect_i(&results[1], 1, I64(3), I64(1, 0, 1));
  expect_i(&results[2], 1, I64(2), I64(1, 2));
}

/* NaN differs from itself and sorts last; -0 is 0. */
static void test_unique_floats(void **state) {
  double x[5] = {(double)NAN, 0.0, (double)NAN, -0.0, -1.0};
  rk_tensor_t in = dense(x, AOT_F64, 1, I64(5)),
              results[3] = {{.dtype = AOT_F64}, {.dtype = AOT_I64}, {.dtype = AOT_I64}};
  rk_arg_t args[1] = {rk_arg_of_tensor(&in)};
  places_t p;
  (void)state;
  run("aten._unique2.default", args, 1, results, 3, &p);
  assert_int_equal(results[0].sizes[0], 4);
  assert_true(p.memory[0][0] == -1 && p.memory[0][1] == 0 && isnan(p.memory[0][2]) && isnan(p.memory[0][3]));
}

static void test_nothing_is_there(void **state) {
  float x[4] = {0};
  uint8_t mask[4] = {0};
  rk_tensor_t in = dense(x, AOT_F32, 2, I64(2, 2)), m = dense(mask, AOT_BOOL, 2, I64(2, 2)),
              none = dense(x, AOT_F32, 1, I64(0)), r;
  rk_arg_t args[2] = {rk_arg_of_tensor(&in), rk_arg_of_tensor(&m)}, empty[1] = {rk_arg_of_tensor(&none)};
  rk_tensor_t three[3] = {{.dtype = AOT_F32}, {.dtype = AOT_I64}, {.dtype = AOT_I64}};
  places_t p;
  (void)state;
  r = (rk_tensor_t){.dtype = AOT_I64};
  run("aten.nonzero.default", args, 1, &r, 1, &p);
  expect_i(&r, 2, I64(0, 2), NULL);
  r = (rk_tensor_t){.dtype = AOT_F32};
  run("aten.masked_select.default", args, 2, &r, 1, &p);
  assert_int_equal(r.sizes[0], 0);
  run("aten._unique2.default", empty, 1, three, 3, &p);
  assert_int_equal(three[0].sizes[0], 0);
}

/* ---- numbers ---- */

static void test_numbers(void **state) {
  static const struct {
    const char *op;
    double a, b, wanted;
  } rows[] =
      {
          {"_operator.add", 2.5, 1, 3.5},    {"_operator.sub", 2.5, 1, 1.5},
          {"_operator.mul", 2.5, -2, -5},    {"_operator.truediv", 7, 2, 3.5},
          {"_operator.floordiv", -7, 2, -4}, {"_operator.mod", -7, 2, 1},
          {"_operator.mod", 7, -2, -1},      {"_operator.pow", 2, 0.5, 1.4142135623730951},
          {"_operator.eq", 2, 2, 1},         {"_operator.ne", 2, 2, 0},
          {"_operator.lt", 1, 2, 1},         {"_operator.le", 2, 2, 1},
          {"_operator.gt", 1, 2, 0},         {"_operator.ge", 2, 2, 1},
          {"_operator.and_", 1, 0, 0},       {"_operator.or_", 1, 0, 1},
          {"torch.sym_max", 1, 2, 2},        {"torch.sym_min", 1, 2, 1},
      },
    unary[] = {
        {"_operator.neg", 2.5, 0, -2.5}, {"_operator.pos", 2.5, 0, 2.5}, {"math.trunc", -2.5, 0, -2},
        {"math.floor", -2.5, 0, -3},     {"math.ceil", -2.5, 0, -2},     {"torch.sym_int", 2.9, 0, 2},
        {"torch.sym_float", 3, 0, 3},    {"torch.sym_not", 1, 0, 0},     {"torch.sym_sqrt", 9, 0, 3},
        {"torch._sym_sqrt", 9, 0, 3},
    };
  (void)state;
  for (size_t k = 0; k < sizeof rows / sizeof rows[0] + sizeof unary / sizeof unary[0]; k++) {
    const size_t n = sizeof rows / sizeof rows[0];
    const char *op = k < n ? rows[k].op : unary[k - n].op;
    double a = k < n ? rows[k].a : unary[k - n].a, b = k < n ? rows[k].b : 0,
           wanted = k < n ? rows[k].wanted : unary[k - n].wanted, got = -99;
    rk_tensor_t r = dense(&got, AOT_F64, 0, NULL);
    rk_arg_t args[2] = {rk_arg_of_float(a), rk_arg_of_float(b)};
    rk_call_t call = {args, k < n ? 2 : 1, &r, 1};
    rk_error_t error;
    const rk_kernel_t *kernel = rk_find(aot_str(op));
    assert_non_null(kernel);
    assert_int_equal(rk_run(kernel, &call, &error), AOT_OK);
    if (!(got == wanted)) fail_msg("%s(%g, %g) is %g, not %g", op, a, b, got, wanted);
  }
}

static void test_numbers_that_are_none(void **state) {
  int64_t got;
  rk_tensor_t r = dense(&got, AOT_I64, 0, NULL);
  rk_arg_t zero[2] = {rk_arg_of_int(1), rk_arg_of_int(0)}, huge[1] = {rk_arg_of_float(1e30)};
  rk_call_t divide = {zero, 2, &r, 1}, convert = {huge, 1, &r, 1};
  rk_error_t error;
  (void)state;
  assert_int_equal(rk_run(rk_find(aot_str("_operator.floordiv")), &divide, &error), AOT_E_INVALID);
  assert_non_null(strstr(error.text, "division by zero"));
  assert_int_equal(rk_run(rk_find(aot_str("torch.sym_int")), &convert, &error), AOT_E_INVALID);
  assert_non_null(strstr(error.text, "no integer of 64 bits"));
}

/* A result of no elements needs no memory; where nothing places results, that is what it is. */
static void test_nothing_is_asked_to_be_placed(void **state) {
  float x[2] = {1, 2};
  const rk_caller_t caller = {.say = NULL};
  rk_tensor_t in = dense(x, AOT_F32, 1, I64(2)), index = dense(NULL, AOT_I64, 1, I64(0)),
              result = dense(NULL, AOT_F32, 1, I64(0));
  const rk_tensor_t *const indices[1] = {&index};
  const rk_arg_t args[2] = {rk_arg_of_tensor(&in), {.kind = AOT_ARG_VALUES, .n = 1, .u.tensors = indices}};
  const rk_call_t call = {args, 2, &result, 1};
  rk_error_t error;
  (void)state;
  if (rk_run_for(rk_find(aot_str("aten.index.Tensor")), &call, &caller, &error) != AOT_OK) fail_msg("%s", error.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unique),
      cmocka_unit_test(test_unique_runs_and_slices),
      cmocka_unit_test(test_unique_floats),
      cmocka_unit_test(test_nothing_is_asked_to_be_placed),
      cmocka_unit_test(test_nothing_is_there),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_numbers_that_are_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
