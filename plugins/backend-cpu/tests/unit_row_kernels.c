/* Row kernels against their definitions in double. */
#include "naive.h"

#include "row_kernels.h"
#include <string.h>

static void an_embedding_s_gradient(void **state) {
  float go[5 * 3], g[4 * 3], expected[4 * 3] = {0};
  const int64_t index[5] = {3, 0, 3, 1, 1}, bad[2] = {0, 4};
  (void)state;
  naive_random(go, 15, 8);
  for (int r = 0; r < 5; r++)
    for (int i = 0; index[r] != 1 && i < 3; i++) expected[3 * index[r] + i] += go[3 * r + i];
  assert_int_equal(bc_embedding_backward(go, index, 5, 4, 3, 1, g), -1); /* 1 is the padding */
  assert_close(g, expected, 12);
  assert_int_equal(bc_embedding_backward(go, bad, 2, 4, 3, 1, g), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_embedding_s_gradient)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
