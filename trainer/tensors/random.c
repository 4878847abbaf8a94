#include "kit/base/splitmix.h"

#include <trainer/tensors/random.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void aoth_random_seed(aoth_random_t *r, uint64_t seed) {
  for (int i = 0; i < 4; i++) r->s[i] = kit_splitmix64(&seed);
}

static uint64_t rotate(uint64_t x, int k) { return x << k | x >> (64 - k); }

uint64_t aoth_random_u64(aoth_random_t *r) {
  uint64_t *s = r->s, result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate(s[3], 45);
  return result;
}

/* High and low half of a 64 x 64 bit product, in 32-bit pieces (ISO C has no 128-bit integer). */
static uint64_t multiply(uint64_t a, uint64_t b, uint64_t *out_low) {
  uint64_t a0 = a & UINT32_MAX, a1 = a >> 32, b0 = b & UINT32_MAX, b1 = b >> 32;
  uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
  uint64_t middle = (p00 >> 32) + (p01 & UINT32_MAX) + (p10 & UINT32_MAX);
  *out_low = a * b;
  return a1 * b1 + (p01 >> 32) + (p10 >> 32) + (middle >> 32);
}

uint64_t aoth_random_below(aoth_random_t *r, uint64_t bound) {
  uint64_t low, high = multiply(aoth_random_u64(r), bound, &low);
  if (bound == 0 || low >= bound) return bound ? high : 0;
  uint64_t reject = (0 - bound) % bound; /* 2^64 mod bound: products below it would favour small results */
  while (low < reject) high = multiply(aoth_random_u64(r), bound, &low);
  return high;
}

double aoth_random_unit(aoth_random_t *r) { return (double)(aoth_random_u64(r) >> 11) * 0x1p-53; }

/* The second number of each pair is thrown away: the state stays four words. */
double aoth_random_normal(aoth_random_t *r) {
  double u, v, s;
  do {
    u = 2 * aoth_random_unit(r) - 1;
    v = 2 * aoth_random_unit(r) - 1;
    s = u * u + v * v;
  } while (s >= 1 || s == 0);
  return u * sqrt(-2 * log(s) / s);
}

void aoth_random_print(const aoth_random_t *r, char out[65]) {
  for (int i = 0; i < 4; i++) snprintf(out + 16 * i, 17, "%016" PRIx64, r->s[i]);
}

int aoth_random_parse(const char *text, aoth_random_t *out) {
  if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64) return 0;
  for (int i = 0; i < 4; i++) {
    out->s[i] = 0;
    for (int k = 0; k < 16; k++) {
      char c = text[16 * i + k];
      out->s[i] = out->s[i] << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
  }
  return (out->s[0] | out->s[1] | out->s[2] | out->s[3]) != 0; /* the all-zero state is a fixed point */
}
