/* Philox against the known answers that its authors publish (Random123, kat_vectors), and which words an element
 * gets. */
#include "kit/random/philox.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void test_known_answers(void **state) {
  static const struct {
    uint32_t counter[4], key[2], want[4];
  } table[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  (void)state;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
    ph_block_t b = ph_philox(table[k].counter, table[k].key);
    assert_memory_equal(b.w, table[k].want, sizeof b.w);
  }
}

/* The third answer again: where seed, counter and block go. */
static void test_place_of_seed_counter_and_block(void **state) {
  static const uint32_t want[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  (void)state;
  ph_block_t b = ph_block(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88), UINT64_C(0x0370734413198a2e));
  assert_memory_equal(b.w, want, sizeof b.w);
}

/* Zero key and counter: elements 0 .. 3 of a 32-bit draw are the words of the first block, their upper 24 bits. */
static void test_words_of_elements(void **state) {
  double u[5], v[2];
  uint64_t bits[2];
  ph_block_t second = ph_block(0, 0, 1);
  (void)state;
  ph_fill_uniform(0, 0, 0, 5, 24, u);
  assert_true(u[0] == 0x6627e8 * 0x1p-24 && u[1] == 0xe169c5 * 0x1p-24 && u[2] == 0xbc57ac * 0x1p-24 &&
              u[3] == 0x9b00db * 0x1p-24);
  assert_true(u[4] == (second.w[0] >> 8) * 0x1p-24);
  ph_fill_uniform(0, 0, 0, 2, 53, v);
  assert_true(v[0] == (double)(UINT64_C(0xe169c58d6627e8d5) >> 11) * 0x1p-53);
  assert_true(v[1] == (double)(UINT64_C(0x9b00dbd8bc57ac4c) >> 11) * 0x1p-53);
  ph_fill_bits(0, 0, 0, 2, bits);
  assert_true(bits[0] == UINT64_C(0xe169c58d6627e8d5) && bits[1] == UINT64_C(0x9b00dbd8bc57ac4c));
  assert_true(ph_bits(0, 0, 1) == bits[1]);
}

/* Against long double: every power of two down to the smallest radius, near 1, every part of a turn. */
static void test_box_muller_is_accurate(void **state) {
  double worst = 0;
  (void)state;
  for (uint64_t k = 0; k < 200000; k++) {
    uint64_t bits = ph_bits(1, 2, k), other = ph_bits(1, 3, k);
    double r = (double)((bits >> 11 >> k % 53) + 1) * 0x1p-53, a = (double)(other >> 11 >> k % 7) * 0x1p-53, got[2];
    if (k % 3 == 0) r = 1 - r / 2;
    ph_box_muller(r, a, got);
    long double radius = sqrtl(-2 * logl(r)), turn = 6.283185307179586476925286766559L * (long double)a;
    for (int side = 0; side < 2; side++) {
      long double want = radius * (side ? sinl(turn) : cosl(turn));
      double off = (double)(fabsl((long double)got[side] - want) / (fabsl(want) * 0x1p-52L + 1e-17L));
      if (off > worst) worst = off;
    }
  }
  assert_true(worst < 4);
  double edge[2];
  ph_box_muller(1, 0.3, edge);
  assert_true(edge[0] == 0 && edge[1] == 0);
  ph_box_muller(0x1p-53, 0.25, edge);
  assert_true(edge[0] == 0 && fabs(edge[1] - sqrt(106 * log(2))) < 1e-14);
}

/* An element's number does not depend on where the filling starts. */
static void test_any_part_is_the_same_part(void **state) {
  enum { N = 37 };
  double all[N], part[N];
  uint64_t all_bits[N], part_bits[N];
  (void)state;
  for (uint32_t way = 0; way < 5; way++)
    for (uint64_t first = 0; first < 9; first++) {
      uint64_t n = N - first;
      if (way < 2) {
        ph_fill_uniform(7, 9, 0, N, way ? 53 : 24, all);
        ph_fill_uniform(7, 9, first, n, way ? 53 : 24, part);
      } else if (way < 4) {
        ph_fill_normal(7, 9, 0, N, way - 1, all);
        ph_fill_normal(7, 9, first, n, way - 1, part);
      } else {
        ph_fill_bits(7, 9, 0, N, all_bits);
        ph_fill_bits(7, 9, first, n, part_bits);
        assert_memory_equal(part_bits, all_bits + first, n * sizeof part_bits[0]);
        continue;
      }
      assert_memory_equal(part, all + first, n * sizeof part[0]);
    }
}

/* 64-bit sums wrap: the element after the last counter is that of counter 0. Blocks beyond 2^32 are blocks of their
 * own. */
static void test_far_counters_and_blocks(void **state) {
  ph_block_t near = ph_block(3, 5, 0), far = ph_block(3, 5, UINT64_C(1) << 32),
             high = ph_block(3, 5 + (UINT64_C(1) << 32), 0);
  double u, v;
  (void)state;
  assert_memory_not_equal(&near, &far, sizeof near);
  assert_memory_not_equal(&near, &high, sizeof near);
  ph_fill_uniform(3, UINT64_MAX + UINT64_C(1), 0, 1, 24, &u);
  ph_fill_uniform(3, 0, 0, 1, 24, &v);
  assert_true(u == v);
}

/* Vector instructions give the words of one block after another, also where a block's number carries into its upper
 * half. */
static void test_many_blocks_at_once(void **state) {
  enum { N = 53 };
  static const uint64_t starts[] = {0, 5, UINT32_MAX - 20, UINT64_MAX - 9};
  uint32_t words[4 * N];
  (void)state;
  for (size_t s = 0; s < sizeof starts / sizeof starts[0]; s++) {
    ph_words(UINT64_C(0x299f31d0a4093822), UINT64_MAX - s, starts[s], N, words);
    for (uint64_t k = 0; k < N; k++) {
      ph_block_t b = ph_block(UINT64_C(0x299f31d0a4093822), UINT64_MAX - s, starts[s] + k);
      assert_memory_equal(words + 4 * k, b.w, sizeof b.w);
    }
  }
}

/* Runs with any start and step hold what the fillings hold. */
static void test_runs_of_elements(void **state) {
  enum { N = 300 };
  static double u[N], z[N], zz[N], normal64[N];
  static uint64_t bits[N], words64[N];
  static uint32_t words32[N];
  static float normal32[N];
  (void)state;
  ph_fill_uniform(7, 9, 0, N, 24, u);
  ph_fill_normal(7, 9, 0, N, 1, z);
  ph_fill_normal(7, 9, 0, N, 2, zz);
  ph_fill_bits(7, 9, 0, N, bits);
  for (uint64_t first = 0; first < 6; first++)
    for (uint64_t step = 0; step < 6; step++) {
      uint64_t n = step ? (N - first) / step : N;
      ph_run_words32(7, 9, first, step, n, words32);
      ph_run_words64(7, 9, first, step, n, words64);
      ph_run_normal32(7, 9, first, step, n, normal32);
      ph_run_normal64(7, 9, first, step, n, normal64);
      for (uint64_t k = 0; k < n; k++) {
        uint64_t e = first + k * step;
        assert_true(ph_unit32(words32[k], 24) == u[e] && words64[k] == bits[e]);
        assert_true(normal32[k] == (float)z[e] && normal64[k] == zz[e]);
      }
    }
}

static void test_bounded_numbers(void **state) {
  (void)state;
  assert_true(ph_below(0, 10) == 0 && ph_below(UINT64_MAX, 10) == 9 && ph_below(UINT64_MAX, 1) == 0);
  assert_true(ph_below(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
  assert_true(ph_below(UINT64_C(1) << 63, 10) == 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers),
      cmocka_unit_test(test_place_of_seed_counter_and_block),
      cmocka_unit_test(test_words_of_elements),
      cmocka_unit_test(test_box_muller_is_accurate),
      cmocka_unit_test(test_any_part_is_the_same_part),
      cmocka_unit_test(test_far_counters_and_blocks),
      cmocka_unit_test(test_many_blocks_at_once),
      cmocka_unit_test(test_runs_of_elements),
      cmocka_unit_test(test_bounded_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
