/* Inputs and comparisons of the kernels' tests. */
#ifndef BC_NAIVE_H
#define BC_NAIVE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

/* n numbers in [-2, 2), the same for the same seed */
static inline void naive_random(float *x, int64_t n, uint32_t seed) {
  for (int64_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)(seed >> 8) / 4194304.0f - 2.0f;
  }
}

#define assert_close(got, expected, n)                                                                                 \
  for (int64_t k_ = 0; k_ < (int64_t)(n); k_++)                                                                        \
    if (!(fabs((double)(got)[k_] - (double)(expected)[k_]) <= 2e-5 * (1 + fabs((double)(expected)[k_]))))              \
  fail_msg(#got "[%lld] is %.9g, not %.9g", (long long)k_, (double)(got)[k_], (double)(expected)[k_])

#endif
