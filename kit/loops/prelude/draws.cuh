/* Random words of kit/random, bit for bit: Philox of the element's number. */
typedef struct {
  uint32_t w[4];
} lp_block_t;
LP lp_block_t lp_philox(uint64_t seed, uint64_t counter, uint64_t block) {
  uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = (uint32_t)block;
  uint32_t c3 = (uint32_t)(block >> 32), k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = lp_wide(0xD2511F53u, c0), p1 = lp_wide(0xCD9E8D57u, c2);
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  lp_block_t b;
  b.w[0] = c0;
  b.w[1] = c1;
  b.w[2] = c2;
  b.w[3] = c3;
  return b;
}
LP uint32_t lp_word(const lp_block_t *b, uint32_t k) {
  return k == 0 ? b->w[0] : k == 1 ? b->w[1] : k == 2 ? b->w[2] : b->w[3];
}
LP uint64_t lp_pair(const lp_block_t *b, uint32_t k) {
  return k == 0 ? (uint64_t)b->w[1] << 32 | b->w[0] : (uint64_t)b->w[3] << 32 | b->w[2];
}
/* together: elements first, first + 1, .. share blocks of four; else each computes its own block. If elements are
 * counted in 32 bits, half of the first two rounds is the same for all. */
LP void lp_draw_u32(uint64_t seed, uint64_t counter, uint64_t first, int64_t step, int n, int together, uint32_t *out) {
#pragma unroll
  for (int k = 0; k < n; k += together ? 4 : 1) {
    const uint64_t element = first + (uint64_t)(k * step);
    const lp_block_t b = lp_philox(seed, counter, together ? first / 4 + (uint64_t)k / 4 : element / 4);
    if (together) {
      out[k] = b.w[0];
      out[k + 1] = b.w[1];
      out[k + 2] = b.w[2];
      out[k + 3] = b.w[3];
    } else out[k] = lp_word(&b, (uint32_t)(element % 4));
  }
}
LP void lp_draw_u64(uint64_t seed, uint64_t counter, uint64_t first, int64_t step, int n, int together, uint64_t *out) {
  (void)together;
  for (int k = 0; k < n; k++) {
    const uint64_t element = first + (uint64_t)(k * step);
    const lp_block_t b = lp_philox(seed, counter, element / 2);
    out[k] = lp_pair(&b, (uint32_t)(element % 2));
  }
}
