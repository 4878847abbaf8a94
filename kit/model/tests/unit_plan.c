/* Memory plans: buffers alive at the same time never overlap, and the arena stays near the least possible. */
#include "kit/model/plan.h"
#include "kit/base/splitmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void neighbours_in_time_share_memory(void **state) {
  (void)state;
  mp_buffer_t b[] = {{100, 0, 1, 0}, {100, 1, 2, 0}, {100, 2, 3, 0}}; /* the third takes the place of the first */
  uint64_t nbytes;
  assert_int_equal(mp_plan(b, 3, 64, &nbytes), 0);
  assert_int_equal(nbytes, 256);
  assert_int_equal(b[2].offset, b[0].offset);
}

static void living_buffers_never_overlap(void **state) {
  (void)state;
  enum { N = 60 };
  uint64_t seed = 3, nbytes;
  for (int round = 0; round < 300; round++) {
    mp_buffer_t b[N];
    for (int i = 0; i < N; i++) {
      uint32_t first = (uint32_t)(kit_splitmix64(&seed) % 40);
      b[i] = (mp_buffer_t){kit_splitmix64(&seed) % 500, first, first + (uint32_t)(kit_splitmix64(&seed) % 10), 0};
    }
    assert_int_equal(mp_plan(b, N, 16, &nbytes), 0);
    assert_true(nbytes >= mp_lower_bound(b, N, 16));
    for (int i = 0; i < N; i++) {
      assert_int_equal(b[i].offset % 16, 0);
      assert_true(b[i].nbytes == 0 || b[i].offset + b[i].nbytes <= nbytes);
      for (int k = 0; k < i; k++) {
        int both_live = b[i].first <= b[k].last && b[k].first <= b[i].last;
        int apart = b[i].offset + b[i].nbytes <= b[k].offset || b[k].offset + b[k].nbytes <= b[i].offset;
        assert_true(!both_live || apart || !b[i].nbytes || !b[k].nbytes);
      }
    }
  }
}

/* In order of time a short buffer takes the lowest place, and a long one is above it for good; among long lives the
 * short ones come and go. */
static void arenas_are_near_the_bound(void **state) {
  (void)state;
  enum { N = 120, TIMES = 100 };
  uint64_t seed = 5, sum = 0, bounds = 0;
  for (int round = 0; round < TIMES; round++) {
    mp_buffer_t b[N];
    uint64_t nbytes;
    for (int i = 0; i < N; i++) {
      const uint32_t first = (uint32_t)(kit_splitmix64(&seed) % 200), life = (uint32_t)(kit_splitmix64(&seed) % 8);
      b[i] = (mp_buffer_t){64 << kit_splitmix64(&seed) % 8, first, first + (i % 4 ? life : 16 * life), 0};
    }
    assert_int_equal(mp_plan(b, N, 64, &nbytes), 0);
    sum += nbytes;
    bounds += mp_lower_bound(b, N, 64);
  }
  print_message("arenas together are %.4f of the bound\n", (double)sum / (double)bounds);
  assert_true(100 * sum <= 101 * bounds);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(neighbours_in_time_share_memory),
      cmocka_unit_test(living_buffers_never_overlap),
      cmocka_unit_test(arenas_are_near_the_bound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
