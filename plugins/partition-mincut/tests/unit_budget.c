/* Budgets as text: bytes, fractions, and what is neither. */
#include "budget.h"

#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static uint64_t nbytes(const char *text) {
  mc_budget_t b;
  const char *why;
  assert_true(mc_budget_parse(aot_str(text), &b, &why));
  return mc_budget_nbytes(&b, 1000);
}

static void bytes_and_fractions(void **state) {
  (void)state;
  assert_int_equal(nbytes("64MiB"), 64 * 1024 * 1024);
  assert_int_equal(nbytes("1.5 GB"), 1500000000);
  assert_int_equal(nbytes("10kb"), 10000);
  assert_int_equal(nbytes("4096"), 4096);
  assert_int_equal(nbytes("4096B"), 4096);
  assert_int_equal(nbytes("1B"), 1);
  assert_int_equal(nbytes("0.5"), 500);
  assert_int_equal(nbytes("1"), 1000);
  assert_int_equal(nbytes("1e3"), 1000);
}

static void everything_else_says_what_is_expected(void **state) {
  (void)state;
  static const char *const junk[] = {"",      "abc", "-1",   "0",       "0.0",   "1.5",        "1e30",
                                     "nan",   "inf", "0x10", "64 MiBs", "1.2.3", "MiB",        "+0.5",
                                     "1e400", "0 B", ".",    "1e-5B",   "0,5",   "99999999TiB"};
  for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
    mc_budget_t b;
    const char *why = NULL;
    if (mc_budget_parse(aot_str(junk[i]), &b, &why)) fail_msg("'%s' was taken for a budget", junk[i]);
    assert_non_null(why);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_and_fractions),
      cmocka_unit_test(everything_else_says_what_is_expected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
