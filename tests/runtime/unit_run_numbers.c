/* The run time's own numbers: random numbers, learning rates, comparisons, conversions, progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <config/pipeline.h>
#include <trainer/tensors/compare.h>
#include <trainer/progress.h>
#include <trainer/tensors/random.h>
#include <trainer/lr_schedule.h>
#include <stdlib.h>
#include <string.h>

/* ---- random ---- */

/* First numbers of xoshiro256++ from state {1, 2, 3, 4}, as its reference implementation gives them. */
static void test_random_known(void **state) {
  (void)state;
  aoth_random_t r = {{1, 2, 3, 4}};
  static const uint64_t first[] = {UINT64_C(41943041), UINT64_C(58720359), UINT64_C(3588806011781223),
                                   UINT64_C(3591011842654386)};
  for (int i = 0; i < 4; i++) assert_int_equal(aoth_random_u64(&r), first[i]);
}

static void test_random_state_as_text(void **state) {
  (void)state;
  aoth_random_t a, b;
  char text[65];
  aoth_random_seed(&a, 42);
  for (int i = 0; i < 10; i++) aoth_random_u64(&a);
  aoth_random_print(&a, text);
  assert_int_equal(strlen(text), 64);
  assert_true(aoth_random_parse(text, &b));
  assert_int_equal(aoth_random_u64(&a), aoth_random_u64(&b));
  text[3] = 'x';
  assert_false(aoth_random_parse(text, &b));
  assert_false(aoth_random_parse("12", &b));
}

static void test_random_distributions(void **state) {
  (void)state;
  aoth_random_t r;
  uint32_t count[7] = {0};
  double sum = 0, squares = 0;
  aoth_random_seed(&r, 1);
  for (int i = 0; i < 70000; i++) count[aoth_random_below(&r, 7)]++;
  for (int i = 0; i < 7; i++) assert_in_range(count[i], 9600, 10400);
  for (int i = 0; i < 100000; i++) {
    double x = aoth_random_normal(&r);
    sum += x;
    squares += x * x;
  }
  assert_true(fabs(sum / 100000) < 0.02);
  assert_true(fabs(squares / 100000 - 1) < 0.02);
  assert_int_equal(aoth_random_below(&r, 1), 0);
  for (int i = 0; i < 1000; i++) assert_true(aoth_random_below(&r, UINT64_C(3) << 62) < UINT64_C(3) << 62);
}

/* ---- schedule ---- */

static void close_to(double a, double b) {
  if (fabs(a - b) > 1e-12) fail_msg("%.17g is not %.17g", a, b);
}

static void test_schedules(void **state) {
  (void)state;
  aoth_schedule_t s = {.kind = AOTH_SCHEDULE_CONSTANT, .lr = 1, .min_lr = 0.1, .warmup = 4, .steps = 15};
  close_to(aoth_schedule_at(&s, 0), 0.25);
  close_to(aoth_schedule_at(&s, 3), 1);
  close_to(aoth_schedule_at(&s, 14), 1);
  s.kind = AOTH_SCHEDULE_LINEAR;
  close_to(aoth_schedule_at(&s, 4), 1);
  close_to(aoth_schedule_at(&s, 9), 0.55);
  close_to(aoth_schedule_at(&s, 14), 0.1);
  close_to(aoth_schedule_at(&s, 100), 0.1);
  s.kind = AOTH_SCHEDULE_COSINE;
  close_to(aoth_schedule_at(&s, 4), 1);
  close_to(aoth_schedule_at(&s, 9), 0.55);
  close_to(aoth_schedule_at(&s, 14), 0.1);
  assert_true(aoth_schedule_at(&s, 6) > 0.1 + 0.9 * 0.8); /* flat at the start */
  s.warmup = 0;
  s.steps = 1;
  close_to(aoth_schedule_at(&s, 0), 0.1);
}

/* ---- compare ---- */

static aoth_compare_t floats(const float *a, const float *b, int64_t n, double rtol, double atol) {
  aoth_tensor_t x = aoth_tensor_make((void *)(uintptr_t)a, AOT_F32, 1, &n),
                y = aoth_tensor_make((void *)(uintptr_t)b, AOT_F32, 1, &n);
  return aoth_compare_tensors(&x, &y, rtol, atol);
}

static void test_tolerances(void **state) {
  (void)state;
  const float a[3] = {1.0f, 100.5f, 0.0f}, b[3] = {1.0f, 100.0f, 0.0f};
  assert_true(floats(a, b, 3, 0.01, 0).ok);
  assert_false(floats(a, b, 3, 0.001, 0).ok);
  assert_true(floats(a, b, 3, 0, 0.5).ok);
  aoth_compare_t c = floats(a, b, 3, 0.001, 0);
  assert_int_equal(c.n_bad, 1);
  assert_int_equal(c.first_bad, 1);
  close_to(c.max_abs, 0.5);
  close_to(c.max_rel, 0.005);
  /* the tolerance is relative to what is expected, not to what was got */
  const float small[1] = {1.0f}, large[1] = {2.0f};
  assert_true(floats(small, large, 1, 0.5, 0).ok);
  assert_false(floats(large, small, 1, 0.5, 0).ok);
}

static void test_not_numbers(void **state) {
  (void)state;
  const float a[4] = {NAN, INFINITY, -INFINITY, 1}, b[4] = {NAN, INFINITY, -INFINITY, 1};
  assert_true(floats(a, b, 4, 0, 0).ok);
  const float nan_one[1] = {NAN}, one[1] = {1}, inf[1] = {INFINITY}, minus_inf[1] = {-INFINITY};
  assert_false(floats(nan_one, one, 1, 1, 1).ok);
  assert_false(floats(one, nan_one, 1, 1, 1).ok);
  assert_false(floats(inf, one, 1, 1, 1).ok);
  assert_false(floats(one, inf, 1, 1, 1).ok); /* inf * rtol is no excuse */
  assert_false(floats(inf, minus_inf, 1, 1, 1).ok);
}

static void test_integers_are_exact(void **state) {
  (void)state;
  int64_t a[2] = {INT64_C(9007199254740993), 2}, b[2] = {INT64_C(9007199254740992), 2}, n = 2; /* equal as doubles */
  aoth_tensor_t x = aoth_tensor_make(a, AOT_I64, 1, &n), y = aoth_tensor_make(b, AOT_I64, 1, &n);
  aoth_compare_t c = aoth_compare_tensors(&x, &y, 1, 1000);
  assert_false(c.ok);
  assert_int_equal(c.n_bad, 1);
  assert_true(c.max_abs >= 1);
  a[0] = b[0];
  assert_true(aoth_compare_tensors(&x, &y, 0, 0).ok);
}

static void test_shapes_and_dtypes(void **state) {
  (void)state;
  float a[6] = {0, 1, 2, 3, 4, 5};
  double d[6] = {0};
  aoth_tensor_t x = aoth_tensor_make(a, AOT_F32, 2, (int64_t[]){2, 3}),
                y = aoth_tensor_make(a, AOT_F32, 2, (int64_t[]){3, 2});
  aoth_tensor_t z = aoth_tensor_make(d, AOT_F64, 2, (int64_t[]){2, 3});
  assert_false(aoth_compare_tensors(&x, &y, 1, 1e9).ok);
  assert_false(aoth_compare_tensors(&x, &z, 1, 1e9).same_type);
  /* strides do not matter: y, read as the transpose of x */
  float t[6] = {0, 3, 1, 4, 2, 5};
  aoth_tensor_t transposed = aoth_tensor_make(t, AOT_F32, 2, (int64_t[]){2, 3});
  transposed.strides[0] = 1;
  transposed.strides[1] = 2;
  assert_true(aoth_compare_tensors(&x, &transposed, 0, 0).ok);
  aoth_tensor_t empty = aoth_tensor_make(NULL, AOT_F32, 2, (int64_t[]){0, 3});
  assert_true(aoth_compare_tensors(&empty, &empty, 0, 0).ok);
}

/* ---- 16-bit floats ---- */

static void test_half_floats(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 65536; bits++) { /* every half survives the way to double and back; NaNs stay NaNs */
    uint16_t h = (uint16_t)bits, back;
    double d = kit_element_load(AOT_F16, &h);
    kit_element_store(AOT_F16, &back, d);
    if (isnan(d) ? !isnan(kit_element_load(AOT_F16, &back)) : back != h) fail_msg("half 0x%04x became 0x%04x", h, back);
    d = kit_element_load(AOT_BF16, &h);
    kit_element_store(AOT_BF16, &back, d);
    if (isnan(d) ? !isnan(kit_element_load(AOT_BF16, &back)) : back != h)
      fail_msg("bfloat 0x%04x became 0x%04x", h, back);
  }
  static const struct {
    double number;
    uint16_t half;
  } rounding[] = {{1 + 0x1p-11, 0x3c00}, {1 + 0x1.8p-11, 0x3c01}, {1 + 0x3p-11, 0x3c02}, /* ties to even */
                  {65519.999, 0x7bff},   {65520, 0x7c00},         {0x1p-25, 0},
                  {0x1.8p-25, 1},        {-0x1p-24, 0x8001}};
  for (size_t i = 0; i < sizeof rounding / sizeof *rounding; i++) {
    uint16_t h;
    kit_element_store(AOT_F16, &h, rounding[i].number);
    if (h != rounding[i].half) fail_msg("%a became 0x%04x, not 0x%04x", rounding[i].number, h, rounding[i].half);
  }
}

/* ---- progress ---- */

static void test_progress_lines(void **state) {
  (void)state;
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  aoth_progress_t p = {.out = out, .steps = 4, .log_every = 2, .items = 100, .unit = "tokens"};
  aoth_progress_begin(&p, 0, 0);
  for (int64_t i = 1; i <= 4; i++) aoth_progress_step(&p, i, 5.0 - (double)i, 0.001, (uint64_t)i * 500000000u);
  aoth_progress_end(&p);
  fclose(out);
  assert_string_equal(text, "step 1/4  loss 4.0000  lr 0.001  200 tokens/s\n"
                            "step 2/4  loss 3.0000  lr 0.001  200 tokens/s\n"
                            "step 4/4  loss 1.0000  lr 0.001  200 tokens/s\n");
  free(text);
}

static void test_durations(void **state) {
  (void)state;
  static const struct {
    double seconds;
    const char *text;
  } rows[] = {{0.4, "0s"}, {59.4, "59s"}, {65, "1m 05s"}, {3725, "1h 02m"}, {INFINITY, "?"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[32];
    aoth_progress_duration(rows[i].seconds, text, sizeof text);
    assert_string_equal(text, rows[i].text);
  }
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_known),       cmocka_unit_test(test_random_state_as_text),
      cmocka_unit_test(test_random_distributions), cmocka_unit_test(test_schedules),
      cmocka_unit_test(test_tolerances),         cmocka_unit_test(test_not_numbers),
      cmocka_unit_test(test_integers_are_exact), cmocka_unit_test(test_shapes_and_dtypes),
      cmocka_unit_test(test_half_floats),        cmocka_unit_test(test_progress_lines),
      cmocka_unit_test(test_durations),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
