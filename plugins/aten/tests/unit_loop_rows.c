/* Every operator flagged pointwise that can reach a backend as it is (it has a reference kernel) is a row of the loops'
 * tables, or says in no_loop.def why not. */
#include "at_row.h"
#include "kit/reference/rk.h"
#include "kit/loops/loop.h"
#include "derive.h"

#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

typedef struct no_loop {
  const char *op, *reason;
} no_loop_t;
static const no_loop_t reasons[] = {
#define NO_LOOP(op, reason) {op, reason},
#include "kit/loops/no_loop.def"
};
enum { N_REASONS = sizeof reasons / sizeof *reasons };

static const no_loop_t *reason_of(const char *op) {
  for (int k = 0; k < N_REASONS; k++)
    if (strcmp(reasons[k].op, op) == 0) return &reasons[k];
  return NULL;
}

static void every_pointwise_operator_is_a_loop_or_says_why_not(void **state) {
  unsigned n_bad = 0, n_reasons = 0;
  (void)state;
  for (uint32_t i = 0; i < AT_N_OPS; i++) {
    const char *name = at_rows[i].name;
    const int has_row = lp_op_find(aot_str(name)) != NULL, has_reason = reason_of(name) != NULL;
    if (!(at_row_flags(&at_rows[i]) & AOT_OP_POINTWISE) || !rk_find(aot_str(name))) continue;
    n_reasons += (unsigned)has_reason;
    if (has_row != has_reason) continue;
    print_message("%s has %s\n", name,
                  has_row ? "both a loop row and a reason against one" : "neither a loop row nor a reason");
    n_bad++;
  }
  assert_int_equal(n_bad, 0);
  assert_int_equal(n_reasons, N_REASONS); /* each names an operator that is pointwise and has a kernel */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_pointwise_operator_is_a_loop_or_says_why_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
