/* Ctrl-C queries what began last, whatever has ended before it, and what was before comes back in the end. */
#include <trainer/interrupt.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static volatile sig_atomic_t n_outside;
static void note_outside(int number) { (void)number, n_outside++; }

static void those_of_threads_end_in_any_order(void **state) {
  const struct sigaction outside = {.sa_handler = note_outside};
  (void)state;
  assert_int_equal(sigaction(SIGINT, &outside, NULL), 0);
  for (int first = 0; first < 3; first++) {
    aoth_interrupt_t *i[3];
    for (int k = 0; k < 3; k++) assert_non_null(i[k] = calloc(1, sizeof *i[k]));
    for (int k = 0; k < 3; k++) aoth_interrupt_begin(i[k]);
    aoth_interrupt_end(i[first]);
    free(i[first]);
    assert_false(aoth_interrupt_asked());
    raise(SIGINT);
    assert_true(aoth_interrupt_asked());
    for (int k = 0; k < 3; k++) {
      if (k == first) continue;
      aoth_interrupt_end(i[k]);
      free(i[k]);
    }
    assert_false(aoth_interrupt_asked());
    n_outside = 0;
    raise(SIGINT);
    assert_int_equal(n_outside, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(those_of_threads_end_in_any_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
