/* Random numbers as a function: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2,
 * 3, SC 2011). A draw depends on nothing but (seed, offset, draw number, element), so any order of elements, any
 * fusion, any division among threads or ranks, and any recomputation gives the same numbers.
 *
 *     key = seed          counter words 0, 1 = offset + draw          counter words 2, 3 = number of the block
 *
 * A block is four words of 32 bits. Elements are counted in row-major order of the sizes, not in the order of memory:
 *
 *     one word an element (floats of up to 32 bits)       block = element / 4, word = element % 4
 *     two words an element (float64, int64; low word first) block = element / 2, words 2 * (element % 2) and the next
 *
 * All 64-bit sums wrap. */
#ifndef PH_PHILOX_H
#define PH_PHILOX_H

#include <stdint.h>

typedef struct ph_block {
  uint32_t w[4];
} ph_block_t;

/* The function itself: ten rounds over the counter. */
ph_block_t ph_philox(const uint32_t counter[4], const uint32_t key[2]);

/* Block number `block` of the draw at `counter`, which is offset + draw. */
ph_block_t ph_block(uint64_t seed, uint64_t counter, uint64_t block);

/* The 64 random bits of an element. */
uint64_t ph_bits(uint64_t seed, uint64_t counter, uint64_t element);

static inline uint64_t ph_pair(const ph_block_t *b, uint32_t pair) {
  return (uint64_t)b->w[2 * pair + 1] << 32 | b->w[2 * pair];
}

/* The upper `bits` bits (1 to 53) as a multiple of 2^-bits in [0, 1): of one word, of two. */
static inline double ph_unit32(uint32_t word, uint32_t bits) {
  return (double)(word >> (32 - bits)) / (double)(UINT64_C(1) << bits);
}
static inline double ph_unit64(uint64_t pair, uint32_t bits) {
  return (double)(pair >> (64 - bits)) / (double)(UINT64_C(1) << bits);
}

/* Elements first .. first + n - 1 of a draw. Uniform: multiples of 2^-bits in [0, 1), one word an element for bits up
 * to 24, two for 53. Normal: mean 0, variance 1 (Box, Muller: A note on the generation of random normal deviates,
 * 1958), in double; an even element takes the cosine of a pair, the next one its sine. words: 1 (resolution 2^-32, at
 * most 6.66 away from 0) or 2 (2^-53, at most 8.57). Bits: 64 an element. */
void ph_fill_uniform(uint64_t seed, uint64_t counter, uint64_t first, uint64_t n, uint32_t bits, double *out);
void ph_fill_normal(uint64_t seed, uint64_t counter, uint64_t first, uint64_t n, uint32_t words, double *out);
void ph_fill_bits(uint64_t seed, uint64_t counter, uint64_t first, uint64_t n, uint64_t *out);

/* Radius sqrt(-2 log radius_unit), angle a turn times angle_unit: cosine and sine. radius_unit in (0, 1], angle_unit in
 * [0, 1), both multiples of 2^-53 (box_muller.c). */
void ph_box_muller(double radius_unit, double angle_unit, double out[2]);

/* n blocks from `block` on, four words each, by vector instructions where the processor has them. */
void ph_words(uint64_t seed, uint64_t counter, uint64_t block, uint64_t n, uint32_t *out);

/* The elements first, first + step, .. of a draw, n of them, for loops that make of them what they need: the word of an
 * element (uint32_t), its two words (uint64_t), its normal number (float, double). */
typedef void (*ph_run_fn)(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);
void ph_run_words32(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);
void ph_run_words64(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);
void ph_run_normal32(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);
void ph_run_normal64(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);

/* bits * range / 2^64, rounded down: in [0, range), every value with a probability within 2^-64 of 1 / range. range
 * > 0. */
static inline uint64_t ph_below(uint64_t bits, uint64_t range) {
  uint64_t low = (bits & UINT32_MAX) * (range & UINT32_MAX), cross = (bits >> 32) * (range & UINT32_MAX) + (low >> 32);
  uint64_t other = (bits & UINT32_MAX) * (range >> 32) + (cross & UINT32_MAX);
  return (bits >> 32) * (range >> 32) + (cross >> 32) + (other >> 32);
}

#endif
