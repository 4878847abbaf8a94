/* Places, versions and stale chains on the picture of alias_sets.h. */
#include "alias_sets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void writing_one_view_makes_the_others_stale(void **state) {
  (void)state;
  fz_alias_t a;
  uint32_t chain[4];
  assert_int_equal(fz_alias_init(&a, 10), 0);
  uint32_t x = fz_alias_base(&a, 0, 0), flat = fz_alias_view(&a, x, 100, 0, 1, 1),
           t = fz_alias_view(&a, x, 101, 0, 2, 2);
  uint32_t row = fz_alias_view(&a, t, 102, 0, 3, 3);
  assert_false(fz_is_stale(&a, row));
  fz_new_version(&a, flat); /* as a write through the flat view does: view and base get their new values */
  fz_refresh(&a, flat, 20, 0);
  fz_refresh(&a, x, 21, 1);
  assert_false(fz_is_stale(&a, x));
  assert_true(fz_is_stale(&a, t));
  assert_int_equal(fz_stale_chain(&a, row, 0, chain), 2);
  assert_int_equal(chain[0], row); /* replay t first, then the row of it */
  assert_int_equal(chain[1], t);
  assert_int_equal(fz_depth(&a, row), 3);
  assert_int_equal(fz_stale_chain(&a, flat, 0, chain), 0); /* to read it, what was written will do */
  assert_int_equal(fz_stale_chain(&a, flat, 1, chain), 1); /* to look through it, a view of the new base is needed */
  fz_alias_deinit(&a);
}

static void another_storage_is_not_touched(void **state) {
  (void)state;
  fz_alias_t a;
  fz_alias_init(&a, 4);
  uint32_t x = fz_alias_base(&a, 0, 0), y = fz_alias_base(&a, 1, 1);
  fz_new_version(&a, x);
  assert_true(fz_is_stale(&a, x));
  assert_false(fz_is_stale(&a, y));
  fz_alias_deinit(&a);
}

static void a_name_can_move_to_another_view(void **state) {
  (void)state;
  fz_alias_t a;
  fz_alias_init(&a, 4);
  uint32_t x = fz_alias_base(&a, 0, 0);
  uint32_t t = fz_alias_view(&a, x, 7, 0, 1, 5); /* x.t_(): result 1, held by value 5 */
  fz_alias_name(&a, 0, t);
  assert_int_equal(fz_place_of(&a, 0), t);
  assert_int_equal(fz_place_of(&a, 1), t);
  assert_int_equal(a.storages[a.places[t].storage].base, x);
  fz_alias_deinit(&a);
}

static void names_of_one_tensor_move_together(void **state) {
  (void)state;
  fz_alias_t a;
  fz_alias_init(&a, 6);
  uint32_t x = fz_alias_base(&a, 0, 0);
  fz_alias_join(&a, 1, 0); /* y = x.relu_() */
  fz_alias_join(&a, 2, 1);
  assert_int_equal(fz_place_of(&a, 2), x);
  uint32_t t = fz_alias_view(&a, x, 7, 0, 3, 5); /* y.t_() */
  fz_alias_name(&a, 1, t);
  assert_int_equal(fz_place_of(&a, 0), t);
  assert_int_equal(fz_place_of(&a, 2), t);
  assert_int_equal(fz_place_of(&a, 4), FZ_NONE);
  fz_alias_deinit(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writing_one_view_makes_the_others_stale),
      cmocka_unit_test(another_storage_is_not_touched),
      cmocka_unit_test(names_of_one_tensor_move_together),
      cmocka_unit_test(a_name_can_move_to_another_view),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
