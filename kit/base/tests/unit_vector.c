/* kit_grow: contents stay, capacities double, and what cannot be is refused with the array as it was. */
#include "kit/base/vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void contents_stay_and_the_capacity_doubles(void **state) {
  uint32_t *rows = NULL, n = 0, capacity = 0, n_moves = 0;
  (void)state;
  for (; n < 100000; n++) {
    const uint32_t before = capacity;
    uint32_t *grown = kit_grow(rows, &capacity, (uint64_t)n + 1, sizeof *grown);
    assert_non_null(grown);
    rows = grown;
    n_moves += capacity != before;
    assert_true(capacity == before || capacity >= 2 * before);
    rows[n] = n;
  }
  assert_true(capacity >= n && capacity <= 2 * n && n_moves < 20);
  for (uint32_t i = 0; i < n; i++) assert_int_equal(rows[i], i);
  free(rows);
}

static void more_than_twice_is_granted_at_once(void **state) {
  uint32_t capacity = 0;
  (void)state;
  char *bytes = kit_grow(NULL, &capacity, 1000, 1);
  assert_non_null(bytes);
  assert_int_equal(capacity, 1000);
  free(bytes);
}

static void what_cannot_be_is_refused(void **state) {
  uint32_t capacity = 0;
  (void)state;
  char *bytes = kit_grow(NULL, &capacity, 8, 1);
  const uint32_t before = capacity;
  assert_non_null(bytes);
  assert_null(kit_grow(bytes, &capacity, (uint64_t)UINT32_MAX + 1, 1));
  assert_null(kit_grow(bytes, &capacity, UINT32_MAX, SIZE_MAX / 2));
  assert_int_equal(capacity, before);
  bytes[before - 1] = 1;
  free(bytes);
}

static void a_text_may_have_more_than_4_g_bytes(void **state) {
  uint64_t capacity = 0;
  (void)state;
  char *bytes = kit_grow64(NULL, &capacity, 1, 1);
  assert_non_null(bytes);
  assert_int_equal(capacity, 64);
  assert_null(kit_grow64(bytes, &capacity, UINT64_MAX, 2));
  assert_int_equal(capacity, 64);
  bytes = kit_grow64(bytes, &capacity, 65, 1);
  assert_non_null(bytes);
  assert_int_equal(capacity, 128);
  capacity = UINT64_MAX / 2 + 1; /* twice that is no number */
  assert_null(kit_grow64(bytes, &capacity, capacity + 1, 8));
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(contents_stay_and_the_capacity_doubles),
      cmocka_unit_test(more_than_twice_is_granted_at_once),
      cmocka_unit_test(what_cannot_be_is_refused),
      cmocka_unit_test(a_text_may_have_more_than_4_g_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
