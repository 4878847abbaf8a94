/* Items kept for later steps: found in the order of their age, in chains that stay short. */
#include "forward_stash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { N = 20000, A_TENSOR = 3 };

typedef struct item {
  gc_kept_t kept;
  uint32_t number;
} item_t;

static uint64_t hash_at(uint32_t storage, int64_t offset) {
  const lw_tensor_t t = {.storage = storage, .offset = offset}, *one = &t;
  return gc_kept_hash(&one, 1);
}

static void items_of_a_tensor_are_found_from_the_newest_on(void **state) {
  lw_schedule_t schedule = {0};
  lw_build_t b = {.out = &schedule, .pool = &schedule.pool};
  gc_kept_table_t table = {0};
  (void)state;
  assert_null(gc_kept_first(&table, hash_at(0, 0)));
  for (uint32_t k = 0; k < N; k++) {
    item_t *item = lw_pool_alloc(b.pool, sizeof *item);
    *item = (item_t){.kept.hash = hash_at(k / A_TENSOR, 64), .number = k};
    assert_int_equal(gc_keep(&b, &table, &item->kept), AOT_OK);
  }
  for (uint32_t storage = 0; storage < N / A_TENSOR; storage++) {
    const gc_kept_t *kept = gc_kept_first(&table, hash_at(storage, 64));
    for (uint32_t k = A_TENSOR; k-- > 0; kept = gc_kept_before(kept)) {
      assert_non_null(kept);
      assert_int_equal(((const item_t *)kept)->number, A_TENSOR * storage + k);
    }
    assert_null(kept);
  }
  assert_null(gc_kept_first(&table, hash_at(0, 0)));
  assert_null(gc_kept_first(&table, hash_at(N, 64)));
  lw_schedule_deinit(&schedule);
}

static void chains_stay_short(void **state) {
  lw_schedule_t schedule = {0};
  lw_build_t b = {.out = &schedule, .pool = &schedule.pool};
  gc_kept_table_t table = {0};
  uint64_t n_steps = 0, longest = 0;
  (void)state;
  for (uint32_t k = 0; k < N; k++) {
    gc_kept_t *item = lw_pool_alloc(b.pool, sizeof *item);
    item->hash = hash_at(k, 0);
    assert_int_equal(gc_keep(&b, &table, item), AOT_OK);
  }
  for (uint32_t k = 0; k < table.n_buckets; k++) {
    uint64_t n = 0;
    for (const gc_kept_t *item = table.buckets[k]; item; item = item->next) n_steps += ++n;
    if (n > longest) longest = n;
  }
  assert_true(n_steps <= 2 * N); /* that it takes to find each once */
  assert_true(longest <= 16);
  assert_true(table.n_buckets < 4 * N);
  lw_schedule_deinit(&schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(items_of_a_tensor_are_found_from_the_newest_on),
      cmocka_unit_test(chains_stay_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
