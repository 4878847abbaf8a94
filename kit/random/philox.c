#include "philox.h"

enum { ROUNDS = 10 };

/* Multipliers and Weyl constants of the paper's table for 4x32. */
static const uint32_t M0 = 0xD2511F53u, M1 = 0xCD9E8D57u, W0 = 0x9E3779B9u, W1 = 0xBB67AE85u;

ph_block_t ph_philox(const uint32_t counter[4], const uint32_t key[2]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t p0 = (uint64_t)M0 * c0, p1 = (uint64_t)M1 * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    k0 += W0;
    k1 += W1;
  }
  return (ph_block_t){{c0, c1, c2, c3}};
}

ph_block_t ph_block(uint64_t seed, uint64_t counter, uint64_t block) {
  const uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)block, (uint32_t)(block >> 32)};
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  return ph_philox(c, key);
}

uint64_t ph_bits(uint64_t seed, uint64_t counter, uint64_t element) {
  ph_block_t b = ph_block(seed, counter, element / 2);
  return ph_pair(&b, (uint32_t)(element % 2));
}

/* A block is made when its first element is requested: at the start, and whenever a boundary is crossed. */
static int starts_block(uint64_t k, uint64_t element, uint32_t per_block) { return k == 0 || element % per_block == 0; }

void ph_fill_uniform(uint64_t seed, uint64_t counter, uint64_t first, uint64_t n, uint32_t bits, double *out) {
  uint32_t per_block = bits > 32 ? 2 : 4;
  ph_block_t b = {{0}};
  for (uint64_t k = 0; k < n; k++) {
    uint64_t element = first + k;
    if (starts_block(k, element, per_block)) b = ph_block(seed, counter, element / per_block);
    out[k] = per_block == 4 ? ph_unit32(b.w[element % 4], bits) : ph_unit64(ph_pair(&b, (uint32_t)(element % 2)), bits);
  }
}

void ph_fill_bits(uint64_t seed, uint64_t counter, uint64_t first, uint64_t n, uint64_t *out) {
  ph_block_t b = {{0}};
  for (uint64_t k = 0; k < n; k++) {
    uint64_t element = first + k;
    if (starts_block(k, element, 2)) b = ph_block(seed, counter, element / 2);
    out[k] = ph_pair(&b, (uint32_t)(element % 2));
  }
}
