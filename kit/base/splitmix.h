/* splitmix64: a small generator for tests, shuffles and seeds, and a hash of numbers (Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", 2014). Every state is a valid seed. Draws of programs are Philox
 * (kit/random). */
#ifndef KIT_SPLITMIX_H
#define KIT_SPLITMIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KIT_GOLDEN                                                                                                     \
  UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio, odd: multiples of it are far from each other */

static inline uint64_t kit_splitmix64(uint64_t *state) {
  uint64_t z = (*state += KIT_GOLDEN);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* A hash of a sequence: h of what came before, x the next. */
static inline uint64_t kit_mix64(uint64_t h, uint64_t x) {
  uint64_t state = h ^ x;
  return kit_splitmix64(&state);
}

static inline uint64_t kit_mix_bytes(uint64_t h, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t part = 0;
    memcpy(&part, (const char *)bytes + i, size - i < sizeof part ? size - i : sizeof part);
    h = kit_mix64(h, part);
  }
  return h;
}

static inline uint32_t kit_splitmix32(uint64_t *state) { return (uint32_t)kit_splitmix64(state); } /* the low half */

#endif
