/* The geometry of tensors: every case of up to three dimensions against going through all elements. */
#include "kit/base/geometry.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void each_element(const int64_t *sizes, const int64_t *strides, int64_t offset, int64_t *n, int64_t *first,
                         int64_t *last, int *is_in_order) {
  *n = 0;
  *is_in_order = 1;
  for (int64_t i = 0; i < sizes[0]; i++)
    for (int64_t j = 0; j < sizes[1]; j++)
      for (int64_t k = 0; k < sizes[2]; k++) {
        const int64_t at = offset + i * strides[0] + j * strides[1] + k * strides[2];
        if (*n == 0) *first = *last = at;
        if (at < *first) *first = at;
        if (at > *last) *last = at;
        if (at != offset + *n) *is_in_order = 0;
        ++*n;
      }
}

static void every_small_tensor(void **state) {
  (void)state;
  int n_in_order = 0;
  for (int code = 0; code < 4 * 4 * 4 * 6 * 6 * 6; code++) {
    int c = code;
    int64_t sizes[3], strides[3], n, first = 0, last = 0, got_first, got_last;
    int is_in_order;
    for (int d = 0; d < 3; d++, c /= 4) sizes[d] = c % 4;
    for (int d = 0; d < 3; d++, c /= 6) strides[d] = c % 6 - 1;
    each_element(sizes, strides, 7, &n, &first, &last, &is_in_order);
    assert_int_equal(n, tn_numel(3, sizes));
    assert_int_equal(n > 0, tn_reach(3, sizes, strides, 7, &got_first, &got_last));
    if (n > 0) {
      assert_int_equal(first, got_first);
      assert_int_equal(last, got_last);
    }
    assert_int_equal(is_in_order, tn_is_row_major(3, sizes, strides));
    n_in_order += is_in_order && n > 1;
    assert_true(tn_row_major(3, sizes, strides));
    each_element(sizes, strides, 0, &n, &first, &last, &is_in_order);
    assert_true(is_in_order);
    assert_true(tn_is_row_major(3, sizes, strides));
  }
  assert_true(n_in_order > 26); /* strides of dimensions of 1 do not matter */
}

static void a_single_element(void **state) {
  (void)state;
  int64_t first, last;
  assert_int_equal(1, tn_numel(0, NULL));
  assert_true(tn_is_row_major(0, NULL, NULL));
  assert_true(tn_reach(0, NULL, NULL, 3, &first, &last));
  assert_int_equal(3, first);
  assert_int_equal(3, last);
}

static void more_than_an_integer_counts(void **state) {
  (void)state;
  const int64_t sizes[] = {INT64_C(1) << 40, INT64_C(1) << 40}, none[] = {INT64_C(1) << 40, INT64_C(1) << 40, 0};
  const int64_t strides[] = {INT64_C(1) << 40, 1, 1};
  int64_t out[3], first, last;
  assert_true(tn_numel(2, sizes) == INT64_MAX);
  assert_int_equal(0, tn_numel(3, none)); /* PyTorch, too, has a tensor without elements whatever its other sizes */
  assert_false(tn_row_major(2, sizes, out));
  assert_false(tn_reach(2, sizes, strides, 0, &first, &last));
  assert_true(tn_is_row_major(3, none, strides));
}

static void elements_of_two_tensors_in_turn(void **state) {
  (void)state;
  const int64_t sizes[] = {2, 1, 3}, a[] = {1, 7, 2}, b[] = {-3, 0, 10}, *const strides[] = {a, b};
  int64_t index[3] = {0}, at[2] = {5, 100}, n = 0;
  do {
    const int64_t i = n / 3, k = n % 3;
    assert_int_equal(index[0], i);
    assert_int_equal(index[1], 0);
    assert_int_equal(index[2], k);
    assert_int_equal(at[0], 5 + i * a[0] + k * a[2]);
    assert_int_equal(at[1], 100 + i * b[0] + k * b[2]);
    n++;
  } while (tn_next(3, sizes, index, 2, strides, at));
  assert_int_equal(n, 6);
  assert_int_equal(index[0] + index[1] + index[2], 0);
  assert_int_equal(at[0], 5);
  assert_int_equal(at[1], 100);
  assert_int_equal(tn_next(0, NULL, index, 2, strides, at), 0);
  assert_int_equal(tn_next(3, sizes, index, 0, NULL, NULL), 1); /* indices alone */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_small_tensor),
      cmocka_unit_test(a_single_element),
      cmocka_unit_test(more_than_an_integer_counts),
      cmocka_unit_test(elements_of_two_tensors_in_turn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
