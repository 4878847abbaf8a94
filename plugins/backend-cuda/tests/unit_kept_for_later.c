/* Items saved for later steps: found in the order of their age, in searches that stay short; a dropped transaction has
 * saved nothing. */
#include "forward_stash.h"

#include "kit/lowering/transaction.h"
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

static void keep(lw_build_t *b, gc_kept_table_t *table, uint32_t storage, uint32_t number) {
  item_t *item = lw_pool_alloc(b->pool, sizeof *item);
  *item = (item_t){.kept.hash = hash_at(storage, 0), .number = number};
  assert_int_equal(gc_keep(b, table, &item->kept), AOT_OK);
}

static void searches_stay_short(void **state) {
  lw_schedule_t schedule = {0};
  lw_build_t b = {.out = &schedule, .pool = &schedule.pool};
  gc_kept_table_t table = {0};
  uint64_t n_steps = 0, longest = 0, run = 0;
  (void)state;
  for (uint32_t k = 0; k < N; k++) keep(&b, &table, k, k);
  for (uint32_t k = 0; k < table.rows.capacity; k++) { /* a search goes through a run of cells at the most */
    run = table.rows.cells[k].item_plus_1 ? run + 1 : 0;
    n_steps += run;
    if (run > longest) longest = run;
  }
  assert_true(n_steps <= 4 * N);
  assert_true(longest <= 100);
  assert_true(table.rows.capacity <= 4 * N);
  lw_schedule_deinit(&schedule);
}

/* Through several growths of the table. */
static void what_is_dropped_was_never_kept(void **state) {
  lw_machine_t machine = {.target = &(const lw_target_t){0}};
  lw_schedule_t schedule = {0};
  lw_build_t b = {.out = &schedule, .pool = &schedule.pool, .machine = &machine};
  gc_kept_table_t table = {0};
  lw_transaction_t t;
  (void)state;
  for (uint32_t k = 0; k < 20; k++) keep(&b, &table, k, k);
  const gc_kept_table_t was = table;
  lw_begin(&b, &t);
  for (uint32_t k = 0; k < 500; k++) keep(&b, &table, k, 1000 + k);
  assert_int_equal(((const item_t *)gc_kept_first(&table, hash_at(7, 0)))->number, 1007);
  assert_int_equal(lw_end(&b, &t, AOT_E_INVALID), AOT_E_INVALID);
  assert_memory_equal(&table, &was, sizeof was);
  for (uint32_t k = 0; k < 500; k++) {
    const gc_kept_t *kept = gc_kept_first(&table, hash_at(k, 0));
    assert_int_equal(kept != NULL, k < 20);
    if (kept) assert_int_equal(((const item_t *)kept)->number, k);
    if (kept) assert_null(gc_kept_before(kept));
  }
  for (uint32_t k = 0; k < 100; k++) keep(&b, &table, k, 2000 + k);
  assert_int_equal(((const item_t *)gc_kept_first(&table, hash_at(99, 0)))->number, 2099);
  assert_int_equal(((const item_t *)gc_kept_before(gc_kept_first(&table, hash_at(19, 0))))->number, 19);
  lw_schedule_deinit(&schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(items_of_a_tensor_are_found_from_the_newest_on),
      cmocka_unit_test(searches_stay_short),
      cmocka_unit_test(what_is_dropped_was_never_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
