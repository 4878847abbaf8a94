/* Many blocks at once, and runs of their words for generated loops. Eight blocks (AVX-512), four (AVX2) or one go side
 * by side, each word of a counter in a lane of 64 bits, so that one multiplication gives both halves of a product.
 * Upper halves of lanes hold leftovers that no multiplication reads; they are cleared once, at the end. All ways give
 * the same words. */
#include "philox.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

enum { ROUNDS = 10 };
#define M0 0xD2511F53
#define M1 0xCD9E8D57
#define W0 0x9E3779B9u
#define W1 0xBB67AE85u

/* Eight counters. */
typedef struct lanes512 {
  __m512i c0, c1, c2, c3;
} lanes512_t;
#define WITH_AVX512 __attribute__((target("avx512f"), always_inline)) static inline

WITH_AVX512 lanes512_t start512(uint64_t counter, uint64_t block) {
  lanes512_t x;
  x.c0 = _mm512_set1_epi64((long long)counter);
  x.c1 = _mm512_srli_epi64(x.c0, 32);
  x.c2 = _mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64((long long)block));
  x.c3 = _mm512_srli_epi64(x.c2, 32);
  return x;
}

WITH_AVX512 lanes512_t round512(lanes512_t x, uint32_t k0, uint32_t k1) {
  __m512i p0 = _mm512_mul_epu32(x.c0, _mm512_set1_epi64(M0)), p1 = _mm512_mul_epu32(x.c2, _mm512_set1_epi64(M1));
  lanes512_t y;
  y.c0 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p1, 32), x.c1), _mm512_set1_epi64(k0));
  y.c1 = p1;
  y.c2 = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p0, 32), x.c3), _mm512_set1_epi64(k1));
  y.c3 = p0;
  return y;
}

WITH_AVX512 void store512(lanes512_t x, uint32_t *out) {
  const __m512i low = _mm512_set1_epi64(UINT32_MAX);
  __m512i a = _mm512_or_si512(_mm512_and_si512(x.c0, low), _mm512_slli_epi64(x.c1, 32));
  __m512i b = _mm512_or_si512(_mm512_and_si512(x.c2, low), _mm512_slli_epi64(x.c3, 32));
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b));
  _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi64(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b));
}

/* 16 blocks: two vectors, so that one multiplies while the other waits. */
__attribute__((target("avx512f"))) static void words_avx512(uint64_t seed, uint64_t counter, uint64_t block,
                                                            uint32_t *out) {
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  lanes512_t x = start512(counter, block), y = start512(counter, block + 8);
  for (int round = 0; round < ROUNDS; round++, k0 += W0, k1 += W1) {
    x = round512(x, k0, k1);
    y = round512(y, k0, k1);
  }
  store512(x, out);
  store512(y, out + 32);
}

/* 4 blocks */
__attribute__((target("avx2"))) static void words_avx2(uint64_t seed, uint64_t counter, uint64_t block, uint32_t *out) {
  const __m256i m0 = _mm256_set1_epi64x(M0), m1 = _mm256_set1_epi64x(M1), low = _mm256_set1_epi64x(UINT32_MAX);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  __m256i c0 = _mm256_set1_epi64x((long long)counter), c1 = _mm256_srli_epi64(c0, 32);
  __m256i c2 = _mm256_add_epi64(_mm256_setr_epi64x(0, 1, 2, 3), _mm256_set1_epi64x((long long)block)),
          c3 = _mm256_srli_epi64(c2, 32);
  for (int round = 0; round < ROUNDS; round++, k0 += W0, k1 += W1) {
    __m256i p0 = _mm256_mul_epu32(c0, m0), p1 = _mm256_mul_epu32(c2, m1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), _mm256_set1_epi64x(k0));
    c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), _mm256_set1_epi64x(k1));
    c1 = p1;
    c3 = p0;
  }
  __m256i a = _mm256_or_si256(_mm256_and_si256(c0, low), _mm256_slli_epi64(c1, 32));
  __m256i b = _mm256_or_si256(_mm256_and_si256(c2, low), _mm256_slli_epi64(c3, 32));
  __m256i x = _mm256_unpacklo_epi64(a, b), y = _mm256_unpackhi_epi64(a, b);
  _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permute2x128_si256(x, y, 0x20));
  _mm256_storeu_si256((__m256i *)(void *)(out + 8), _mm256_permute2x128_si256(x, y, 0x31));
}

static uint64_t blocks_at_once(void) {
  return __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 4 : 1;
}
static void wide(uint64_t lanes, uint64_t seed, uint64_t counter, uint64_t block, uint32_t *out) {
  if (lanes == 16) words_avx512(seed, counter, block, out);
  else words_avx2(seed, counter, block, out);
}
#else
static uint64_t blocks_at_once(void) { return 1; }
static void wide(uint64_t lanes, uint64_t seed, uint64_t counter, uint64_t block, uint32_t *out) {
  ph_block_t b = ph_block(seed, counter, block);
  (void)lanes;
  memcpy(out, b.w, sizeof b.w);
}
#endif

void ph_words(uint64_t seed, uint64_t counter, uint64_t block, uint64_t n, uint32_t *out) {
  uint64_t lanes = blocks_at_once(), k = 0;
  for (; lanes > 1 && k + lanes <= n; k += lanes) wide(lanes, seed, counter, block + k, out + 4 * k);
  for (; k < n; k++) {
    ph_block_t b = ph_block(seed, counter, block + k);
    memcpy(out + 4 * k, b.w, sizeof b.w);
  }
}

/* ---- runs of elements ---- */

enum { RUN_BLOCKS = 32 };

void ph_run_words32(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out) {
  uint32_t *to = out, edge[4];
  uint64_t k = 0;
  for (; k < n && (step != 1 || (first + k) % 4 != 0); k++) { /* one by one, to the start of a block */
    ph_words(seed, counter, (first + k * step) / 4, 1, edge);
    to[k] = edge[(first + k * step) % 4];
  }
  ph_words(seed, counter, (first + k) / 4, (n - k) / 4, to + k);
  k += (n - k) / 4 * 4;
  if (k == n) return;
  ph_words(seed, counter, (first + k) / 4, 1, edge);
  memcpy(to + k, edge, (n - k) * sizeof edge[0]);
}

void ph_run_words64(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out) {
  uint64_t *to = out, k = 0;
  uint32_t words[4 * RUN_BLOCKS];
  for (; k < n && (step != 1 || (first + k) % 2 != 0); k++) to[k] = ph_bits(seed, counter, first + k * step);
  while (k < n) {
    uint64_t some = n - k < 2 * RUN_BLOCKS ? n - k : 2 * RUN_BLOCKS;
    ph_words(seed, counter, (first + k) / 2, (some + 1) / 2, words);
    for (uint64_t j = 0; j < some; j++) to[k + j] = (uint64_t)words[2 * j + 1] << 32 | words[2 * j];
    k += some;
  }
}
