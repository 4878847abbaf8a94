/* What counts as near to the truth: rounding once always, the next number alone, as much as theirs; more does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <aot/inline.h>
#include <math.h>
#include <trainer/tensors/random.h>
#include <cli/verify/tolerance.h>

#define N 64

typedef struct results {
  uint16_t ours[N], theirs[N];
  double exact[N];
} results_t;

static double rounded(int32_t dtype, double x) {
  uint16_t bits;
  kit_element_store(dtype, &bits, x);
  return kit_element_load(dtype, &bits);
}

/* Random numbers of several sizes; both results rounded once. */
static void draw(results_t *r, int32_t dtype) {
  aoth_random_t random;
  aoth_random_seed(&random, 7);
  for (int i = 0; i < N; i++) {
    r->exact[i] = ((double)aoth_random_below(&random, 2000001) - 1e6) * (i % 3 ? 1e-6 : 1e-8) + 1e-9;
    kit_element_store(dtype, &r->ours[i], r->exact[i]);
    kit_element_store(dtype, &r->theirs[i], r->exact[i]);
  }
}

static aoth_nearness_t near(results_t *r, int32_t dtype, int64_t n) {
  const aoth_tensor_t ours = aoth_tensor_make(r->ours, dtype, 1, &n),
                      theirs = aoth_tensor_make(r->theirs, dtype, 1, &n);
  const aoth_tensor_t exact = aoth_tensor_make(r->exact, AOT_F64, 1, &n);
  return aoth_nearness(&ours, &theirs, &exact);
}

static void test_rounding_once_is_near(void **state) {
  (void)state;
  static const int32_t dtypes[] = {AOT_BF16, AOT_F16};
  for (int k = 0; k < 2; k++) {
    results_t r;
    draw(&r, dtypes[k]);
    for (int i = 0; i < N; i++) r.exact[i] = rounded(dtypes[k], r.exact[i]); /* theirs are right by luck */
    for (int i = 0; i < N; i++) r.exact[i] *= 1 + aoth_rounding(dtypes[k]) * (i % 2 ? 0.24 : -0.24);
    for (int i = 0; i < N; i++) kit_element_store(dtypes[k], &r.ours[i], r.exact[i]);
    assert_true(near(&r, dtypes[k], N).ok);
  }
}

static void test_the_next_number_passes_alone(void **state) {
  (void)state;
  results_t r;
  draw(&r, AOT_BF16);
  for (int i = 0; i < N; i++) r.exact[i] = kit_element_load(AOT_BF16, &r.theirs[i]);
  r.ours[5]++; /* bits of a float in order: the next one away from zero */
  assert_true(near(&r, AOT_BF16, N).ok);
  r.ours[5]++;
  const aoth_nearness_t two = near(&r, AOT_BF16, N);
  assert_false(two.ok);
  assert_int_equal(two.n_bad, 1);
  assert_int_equal(two.first_bad, 5);
  r.ours[5]--;
  for (int i = 0; i < N; i++) r.ours[i] = (uint16_t)(r.theirs[i] + 1);
  const aoth_nearness_t all = near(&r, AOT_BF16, N);
  assert_false(all.ok);
  assert_int_equal(all.n_bad, 0);
  assert_true(all.off > all.theirs_off);
}

/* One element: theirs may be right by luck. */
static void test_what_they_lost_is_allowed(void **state) {
  (void)state;
  results_t r;
  draw(&r, AOT_BF16);
  for (int i = 0; i < N; i++) r.exact[i] = kit_element_load(AOT_BF16, &r.theirs[i]);
  for (int i = 0; i < N; i++) r.ours[i] = (uint16_t)(r.theirs[i] + 1), r.theirs[i]++;
  assert_true(near(&r, AOT_BF16, N).ok);
  r.theirs[0]--;
  assert_true(near(&r, AOT_BF16, 1).ok);
}

static void test_what_is_not_finite(void **state) {
  (void)state;
  static const double numbers[4] = {70000, NAN, INFINITY, 1};
  results_t r;
  for (int i = 0; i < 4; i++) {
    r.exact[i] = numbers[i];
    kit_element_store(AOT_F16, &r.ours[i], numbers[i]); /* 70000 is infinity */
    kit_element_store(AOT_F16, &r.theirs[i], i == 3 ? NAN : numbers[i]);
  }
  assert_true(near(&r, AOT_F16, 4).ok);
  kit_element_store(AOT_F16, &r.ours[3], NAN); /* as theirs */
  assert_true(near(&r, AOT_F16, 4).ok);
  kit_element_store(AOT_F16, &r.ours[1], 0);
  assert_int_equal(near(&r, AOT_F16, 4).first_bad, 1);
}

/* Steps near zero are those of the smallest numbers, and nothing is near to nothing. */
static void test_zero(void **state) {
  (void)state;
  results_t r = {.ours = {0}};
  assert_true(near(&r, AOT_BF16, N).ok);
  assert_true(near(&r, AOT_BF16, 0).ok);
  kit_element_store(AOT_BF16, &r.ours[3], 1e-30);
  assert_false(near(&r, AOT_BF16, N).ok);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rounding_once_is_near),
      cmocka_unit_test(test_the_next_number_passes_alone),
      cmocka_unit_test(test_what_they_lost_is_allowed),
      cmocka_unit_test(test_what_is_not_finite),
      cmocka_unit_test(test_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
