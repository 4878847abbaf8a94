/* Normal numbers of kit/random, bit for bit: Box-Muller step by step as in box_muller.c, in products and sums that are
 * not contracted. */
#define LP_STEP(c) sum = LP_MUL(t, LP_SUM(c, sum));
LP double lp_log_of(double x) {
  uint64_t bits = lp_bits_of_f64(x);
  const int e = (int)((int64_t)(bits - 0x3FE6A09E667F3BCDull) >> 52);
  bits -= (uint64_t)(int64_t)e << 52;
  const double m = lp_f64_of_bits(bits), s = LP_SUM(m, -1.0) / LP_SUM(m, 1.0), t = LP_MUL(s, s);
  double sum = LP_MUL(t, 1.0 / 21);
  LP_STEP(1.0 / 19)
  LP_STEP(1.0 / 17)
  LP_STEP(1.0 / 15)
  LP_STEP(1.0 / 13)
  LP_STEP(1.0 / 11)
  LP_STEP(1.0 / 9)
  LP_STEP(1.0 / 7)
  LP_STEP(1.0 / 5)
  LP_STEP(1.0 / 3)
  sum = LP_SUM(LP_MUL(2.0, s), LP_MUL(LP_MUL(2.0, s), sum));
  return LP_SUM(LP_MUL((double)e, 0.693147180369123816490), LP_SUM(sum, LP_MUL((double)e, 1.90821492927058770002e-10)));
}
LP double lp_normal_of(double radius_unit, double angle_unit, uint32_t second) {
  const double radius = sqrt(LP_MUL(-2.0, lp_log_of(radius_unit)));
  const double quarters = (double)(int)LP_SUM(LP_MUL(4.0, angle_unit), 0.5);
  const double x = LP_MUL(LP_SUM(LP_MUL(4.0, angle_unit), -quarters), 1.57079632679489661923), t = LP_MUL(x, x);
  double sum = LP_MUL(t, -1.0 / 1307674368000);
  LP_STEP(1.0 / 6227020800)
  LP_STEP(-1.0 / 39916800)
  LP_STEP(1.0 / 362880)
  LP_STEP(-1.0 / 5040)
  LP_STEP(1.0 / 120)
  LP_STEP(-1.0 / 6)
  const double sine = LP_SUM(x, LP_MUL(x, sum));
  sum = LP_MUL(t, 1.0 / 20922789888000);
  LP_STEP(-1.0 / 87178291200)
  LP_STEP(1.0 / 479001600)
  LP_STEP(-1.0 / 3628800)
  LP_STEP(1.0 / 40320)
  LP_STEP(-1.0 / 720)
  LP_STEP(1.0 / 24)
  LP_STEP(-0.5)
  const double cosine = LP_SUM(1.0, sum);
  const uint32_t quarter = (uint32_t)quarters, turned = second ? quarter : quarter + 1;
  return LP_MUL(turned & 2u ? -radius : radius, (quarter ^ second) & 1u ? sine : cosine);
}
LP void lp_draw_f32(uint64_t seed, uint64_t counter, uint64_t first, int64_t step, int n, int together, float *out) {
  (void)together;
  for (int k = 0; k < n; k++) {
    const uint64_t element = first + (uint64_t)(k * step);
    const lp_block_t b = lp_philox(seed, counter, element / 4);
    const uint32_t pair = (uint32_t)(element % 4) & 2u;
    out[k] = (float)lp_normal_of(LP_MUL(LP_SUM((double)lp_word(&b, pair), 1.0), 0x1p-32),
                                 LP_MUL((double)lp_word(&b, pair + 1), 0x1p-32), (uint32_t)(element & 1));
  }
}
LP void lp_draw_f64(uint64_t seed, uint64_t counter, uint64_t first, int64_t step, int n, int together, double *out) {
  (void)together;
  for (int k = 0; k < n; k++) {
    const uint64_t element = first + (uint64_t)(k * step);
    const lp_block_t b = lp_philox(seed, counter, element / 2);
    out[k] = lp_normal_of(LP_SUM(lp_unit_f64(lp_pair(&b, 0)), 0x1p-53), lp_unit_f64(lp_pair(&b, 1)),
                          (uint32_t)(element & 1));
  }
}
