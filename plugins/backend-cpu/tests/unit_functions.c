/* Generated functions by name: places stay where they are while the table grows, and have addresses once all is
 * compiled; without a compiler what was added is unknown again. */
#include "functions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 300 };

static const lw_loop_fn *add(bc_functions_t *f, int k) {
  const lw_loop_fn *place;
  char name[32], text[160];
  snprintf(name, sizeof name, "lp_%d", k);
  const int n = snprintf(text, sizeof text,
                         "void %s(char *const *p, const int64_t *n, const int64_t *s, int64_t begin, int64_t end) {\n"
                         "  *p[0] = (char)(%d + begin + end - n[0] - s[0]);\n}\n",
                         name, k % 100);
  assert_int_equal(bc_functions_add(f, name, text, (uint64_t)n, &place), AOT_OK);
  return place;
}

static const lw_loop_fn *find(const bc_functions_t *f, int k) {
  char name[32];
  snprintf(name, sizeof name, "lp_%d", k);
  return bc_functions_find(f, name);
}

static int answer(const lw_loop_fn *place) {
  char out = -1, *pointers[] = {&out};
  const int64_t numbers[] = {0};
  (*place)(pointers, numbers, numbers, 0, 0);
  return out;
}

static void places_are_filled_when_all_is_compiled(void **state) {
  (void)state;
  static const lw_loop_fn *places[N];
  bc_functions_t f = {0};
  bc_cache_t cache;
  bc_code_stats_t stats = {0};
  lw_error_t error, warning;
  assert_int_equal(bc_cache_init(&cache, NULL, "cc", &error), AOT_OK);
  assert_null(find(&f, 0));
  for (int k = 0; k < N - 1; k++) places[k] = add(&f, k);
  for (int k = 0; k < N - 1; k++) assert_ptr_equal(find(&f, k), places[k]);
  assert_int_equal(bc_functions_compile(&f, &cache, NULL, &stats, &warning, &error), AOT_OK);
  assert_false(f.cannot_compile);
  places[N - 1] = add(&f, N - 1); /* one more, as at other sizes */
  assert_int_equal(bc_functions_compile(&f, &cache, NULL, &stats, &warning, &error), AOT_OK);
  assert_int_equal(f.n, N);
  for (int k = 0; k < N; k++) {
    assert_ptr_equal(find(&f, k), places[k]);
    assert_int_equal(answer(places[k]), k % 100);
  }
  bc_functions_deinit(&f);
  bc_cache_deinit(&cache);
}

static void without_a_compiler_nothing_is_known(void **state) {
  (void)state;
  bc_functions_t f = {0};
  bc_cache_t cache;
  bc_code_stats_t stats = {0};
  lw_error_t error, warning;
  assert_int_equal(bc_cache_init(&cache, NULL, "none-such", &error), AOT_OK);
  for (int k = 0; k < N; k++) assert_non_null(add(&f, k));
  assert_int_equal(bc_functions_compile(&f, &cache, NULL, &stats, &warning, &error), AOT_OK);
  assert_true(f.cannot_compile);
  for (int k = 0; k < N; k++) assert_null(find(&f, k));
  assert_null(add(&f, 0));
  bc_functions_deinit(&f);
  bc_cache_deinit(&cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(places_are_filled_when_all_is_compiled),
                                     cmocka_unit_test(without_a_compiler_nothing_is_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
