/* f16 and bf16 against the formula of IEEE 754 in double: every value, and what lies halfway between two, or next to
 * that. */
#include "kit/base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct format {
  int n_fraction, bias; /* bits; of exponents */
  float (*widen)(uint16_t h);
  uint16_t (*narrow)(float f);
} format_t;

static float widen_f16(uint16_t h) { return kit_f16_to_f32(h); }
static float widen_bf16(uint16_t h) { return kit_bf16_to_f32(h); }
static uint16_t narrow_f16(float f) { return kit_f32_to_f16(f); }
static uint16_t narrow_bf16(float f) { return kit_f32_to_bf16(f); }

static const format_t f16 = {10, 15, widen_f16, narrow_f16}, bf16 = {7, 127, widen_bf16, narrow_bf16};

static uint32_t infinity_of(const format_t *f) { return 0x7fffu >> f->n_fraction << f->n_fraction; }

/* Of a number that is not negative. The number after the largest finite one is where rounding to infinity ends. */
static double value(const format_t *f, uint32_t h) {
  const int exponent = (int)(h >> f->n_fraction), one = 1 << f->n_fraction, fraction = (int)h & (one - 1);
  return exponent ? ldexp(one + fraction, exponent - f->bias - f->n_fraction)
                  : ldexp(fraction, 1 - f->bias - f->n_fraction);
}

static void check_narrow(const format_t *f, float x, uint32_t wanted) {
  assert_int_equal(f->narrow(x), wanted);
  assert_int_equal(f->narrow(-x), wanted | 0x8000u);
}

static void check(const format_t *f) {
  const uint32_t infinity = infinity_of(f);
  for (uint32_t h = 0; h < infinity; h++) {
    const double low = value(f, h), high = value(f, h + 1);
    const float middle = (float)((low + high) / 2);
    assert_true((double)f->widen((uint16_t)h) == low && (double)f->widen((uint16_t)(h | 0x8000u)) == -low);
    check_narrow(f, (float)low, h);
    if ((double)middle != (low + high) / 2) continue; /* of the least bf16, which float just has, there is none */
    check_narrow(f, middle, h + (h & 1));
    check_narrow(f, nextafterf(middle, 0), h);
    check_narrow(f, nextafterf(middle, INFINITY), h + 1);
  }
  assert_true(isinf(f->widen((uint16_t)infinity)));
  check_narrow(f, INFINITY, infinity);
  for (uint32_t h = infinity + 1; h < 0x8000u; h++)
    assert_true(isnan(f->widen((uint16_t)h)) && isnan(f->widen(f->narrow(f->widen((uint16_t)h)))));
  assert_true(isnan(f->widen(f->narrow(NAN))) && isnan(f->widen(f->narrow(-NAN))));
}

static void float16_rounds_to_nearest_even(void **state) {
  (void)state;
  check(&f16);
}

static void bfloat16_rounds_to_nearest_even(void **state) {
  (void)state;
  check(&bf16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(float16_rounds_to_nearest_even),
      cmocka_unit_test(bfloat16_rounds_to_nearest_even),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
