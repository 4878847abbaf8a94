/* Numbers for tests, the same in every run of a program: xorshift64 (Marsaglia 2003). */
#ifndef GC_TESTS_DRAWN_H
#define GC_TESTS_DRAWN_H

#include <stdint.h>

static inline double random_number(void) { /* in [-1, 1) */
  static uint64_t x = 88172645463325252;
  x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  return (double)(x >> 40) / (double)(1 << 23) - 1;
}
static inline int64_t drawn(int64_t least, int64_t most) { /* both are drawn, too */
  return least + (int64_t)((random_number() + 1) / 2 * (double)(most - least + 1));
}

#endif
