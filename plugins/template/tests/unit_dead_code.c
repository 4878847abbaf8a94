#include "dead_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Values: 0 is an input; node i makes value i + 1. Node 2 reads 1; node 1 reads 0; node 0 reads 0. Value 2 is the
 * output. */
static void erases_a_chain_in_one_sweep(void **state) {
  (void)state;
  const uint32_t begin[] = {0, 1, 2, 3, 4}, operands[] = {0, 0, 1, 3}, results[] = {1, 2, 3, 4, 5};
  const uint8_t effect[4] = {0};
  uint32_t uses[] = {2, 1, 1, 1, 0}, dead[4]; /* value 2 is read by the graph output alone */
  dce_graph_t g = {4, 5, begin, operands, results, effect, uses};
  assert_int_equal(dce_find_dead(&g, dead), 3);
  assert_int_equal(dead[0], 3); /* reads 3 */
  assert_int_equal(dead[1], 2); /* reads 1, read only by node 3 */
  assert_int_equal(dead[2], 0);
}

static void keeps_a_node_with_an_effect_and_what_it_reads(void **state) {
  (void)state;
  const uint32_t begin[] = {0, 1, 2}, operands[] = {0, 1}, results[] = {1, 2, 2};
  const uint8_t effect[] = {0, 1};
  uint32_t uses[] = {1, 1}, dead[2];
  dce_graph_t g = {2, 2, begin, operands, results, effect, uses};
  assert_int_equal(dce_find_dead(&g, dead), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(erases_a_chain_in_one_sweep),
      cmocka_unit_test(keeps_a_node_with_an_effect_and_what_it_reads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
