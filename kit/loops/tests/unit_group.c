/* Fusion groups, and the promise after them: running each group at its last member respects every data dependency. */
#include "kit/loops/group.h"
#include "kit/loops/merge.h"
#include "kit/base/splitmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_chain_is_one_group_until_an_outsider_reads_it(void **state) {
  (void)state;
  /* 0 -> 1 -> 2 (matmul, reads 1) ; 3 reads 1: too late */
  const uint32_t begin[] = {0, 0, 1, 2, 3}, producers[] = {0, 1, 1}, space[] = {5, 5, FU_NONE, 5};
  const fu_graph_t g = {4, begin, producers, space, 64, NULL, NULL, NULL, NULL, 0, NULL};
  uint32_t group[4];
  assert_int_equal(fu_group(&g, group), 0);
  assert_int_equal(group[0], 1);
  assert_int_equal(group[1], 1);
  assert_int_equal(group[2], 2);
  assert_int_equal(group[3], 3);
}

static void other_spaces_stay_apart_and_sizes_are_bounded(void **state) {
  (void)state;
  const uint32_t begin[] = {0, 0, 1, 2, 3}, producers[] = {0, 1, 2}, space[] = {5, 5, 5, 6};
  fu_graph_t g = {4, begin, producers, space, 2, NULL, NULL, NULL, NULL, 0, NULL};
  uint32_t group[4];
  fu_group(&g, group);
  assert_int_equal(group[0], 1);
  assert_int_equal(group[2], 2);
  assert_int_equal(group[3], 3);
}

/* t1 = a0 + a1, t2 = t1 + a2, ..: a loop for every so many terms. */
static void a_long_sum_is_several_groups(void **state) {
  enum { N = 100 };
  uint32_t begin[N + 1], producers[2 * N], space[N], group[N], n_groups = 0;
  (void)state;
  for (uint32_t n = 0; n < N; n++) {
    begin[n] = 2 * n;
    producers[2 * n] = n ? n - 1 : FU_NONE;
    producers[2 * n + 1] = FU_NONE;
    space[n] = 1;
  }
  begin[N] = 2 * N;
  const fu_graph_t g = {N, begin, producers, space, 64, NULL, NULL, NULL, NULL, 0, NULL};
  assert_int_equal(fu_group(&g, group), 0);
  for (uint32_t n = 0, members = 0; n < N; n++) {
    assert_true(++members < FU_MAX_READS); /* k additions read k + 1 terms */
    if (group[n] != n) continue;
    members = 0;
    n_groups++;
  }
  assert_true(n_groups >= N / FU_MAX_READS && n_groups <= N / (FU_MAX_READS - 2) + 1);
}

/* Space 5 has rows, with one element each in space 6. */
static void nodes_of_equal_rows_share_a_group_and_what_has_one_element_a_row_joins(void **state) {
  (void)state;
  /* 0 -> 1 reduces it -> 2 of its rows -> 3 reads 0 and 2 -> 4 reduces other rows; 5 reads 3 and will have none */
  const uint32_t begin[] = {0, 0, 1, 2, 4, 5, 6}, producers[] = {0, 1, 0, 2, 3, 3}, space[] = {5, 5, 6, 5, 5, 5};
  const uint32_t rows[] = {0, 4, 0, 0, 2, FU_NO_ROWS}, row_space[] = {0, 6, 0, 0, 7, 0};
  const fu_graph_t g = {6, begin, producers, space, 64, rows, row_space, NULL, NULL, 0, NULL};
  uint32_t group[6];
  assert_int_equal(fu_group(&g, group), 0);
  for (uint32_t n = 0; n < 4; n++) assert_int_equal(group[n], 3);
  assert_int_equal(group[4], 4);
  assert_int_equal(group[5], 5);
}

static void readers_of_one_tensor_share_a_group_while_it_is_open(void **state) {
  (void)state;
  /* 0 and 1 read tensor 7 | 2 (matmul) reads 1 | 3 and 4 read it: too late for the first; 5 has another space */
  const uint32_t begin[] = {0, 1, 2, 3, 4, 5, 6}, producers[] = {FU_NONE, FU_NONE, 1, FU_NONE, FU_NONE, FU_NONE};
  const uint32_t space[] = {5, 5, FU_NONE, 5, 5, 6}, tensors[] = {7, 7, FU_NONE, 7, 7, 7};
  const fu_graph_t g = {6, begin, producers, space, 64, NULL, NULL, NULL, tensors, 8, NULL};
  const uint32_t expected[] = {1, 1, 2, 4, 4, 5};
  uint32_t group[6];
  assert_int_equal(fu_group(&g, group), 0);
  for (uint32_t n = 0; n < 6; n++) assert_int_equal(group[n], expected[n]);
}

/* 0 -> 1 -> .., each reads the one before twice, and sixteen of the last an input of their own, or one that is
 * small. */
static void what_a_group_makes_is_none_of_its_reads_nor_what_is_small(void **state) {
  enum { N = 60 };
  uint32_t begin[N + 1], producers[3 * N], space[N], group[N], tensors[3 * N];
  uint8_t is_small[3 * N];
  (void)state;
  for (int are_small = 0; are_small < 2; are_small++) {
    for (uint32_t n = 0; n < N; n++) {
      begin[n] = 3 * n;
      producers[3 * n] = producers[3 * n + 1] = n ? n - 1 : FU_NONE;
      tensors[3 * n] = tensors[3 * n + 1] = n ? n - 1 : FU_NONE;
      producers[3 * n + 2] = n < N - FU_MAX_READS && n ? n - 1 : FU_NONE;
      tensors[3 * n + 2] = FU_NONE;
      is_small[3 * n] = is_small[3 * n + 1] = 0;
      is_small[3 * n + 2] = (uint8_t)are_small;
      space[n] = 1;
    }
    begin[N] = 3 * N;
    const fu_graph_t g = {N, begin, producers, space, 64, NULL, NULL, NULL, tensors, N, is_small};
    assert_int_equal(fu_group(&g, group), 0);
    for (uint32_t n = 0; n < N - FU_MAX_READS; n++) assert_int_equal(group[n] == N - 1, are_small);
  }
}

/* Groups of random graphs, before and after they are merged. */
static void groups_run_in_an_order_in_which_all_that_they_read_is_there(void **state) {
  (void)state;
  enum { N = 40 };
  uint64_t seed = 11;
  uint32_t n_before = 0, n_after = 0;
  for (int round = 0; round < 2000; round++) {
    uint32_t begin[N + 1] = {0}, producers[2 * N], space[N], rows[N], row_space[N], group[N], position[N], at = 0;
    uint32_t tensors[2 * N], values[2 * N], size[N] = {0};
    uint8_t apart[2 * N], is_wanted[2 * N] = {0}, is_ordered[N];
    double move[2 * N];
    for (uint32_t n = 0; n < N; n++) {
      begin[n] = at;
      for (int k = 0; k < 2; k++) {
        uint32_t p = kit_splitmix32(&seed) % (n + 1);
        values[at] = p == n ? N + kit_splitmix32(&seed) % N : p;
        producers[at++] = p == n ? FU_NONE : p;
      }
      space[n] = kit_splitmix32(&seed) % 4 ? kit_splitmix32(&seed) % 2 : FU_NONE;
      rows[n] = space[n] == FU_NONE || kit_splitmix32(&seed) % 3 ? 0 : 1 + kit_splitmix32(&seed) % 2;
      row_space[n] = space[n] + 1;
      is_ordered[n] = space[n] == FU_NONE && round % 2;
    }
    begin[N] = at;
    for (uint32_t v = 0; v < 2 * N; v++) move[v] = kit_splitmix32(&seed) % 4;
    for (uint32_t k = 0; k < at; k++) apart[k] = kit_splitmix32(&seed) % 5 == 0;
    for (uint32_t k = 0; k < at; k++) tensors[k] = kit_splitmix32(&seed) % 3 ? FU_NONE : kit_splitmix32(&seed) % N;
    const fu_graph_t g = {N, begin, producers, space, 8, rows, row_space, apart, tensors, N, NULL};
    const fu_moves_t m = {
        .values = values, .move = move, .is_wanted = is_wanted, .n_values = 2 * N, .step = 1, .is_ordered = is_ordered};
    assert_int_equal(fu_group(&g, group), 0);
    for (uint32_t n = 0; n < N; n++) position[n] = n;
    for (int is_merged = 0; is_merged < 2; is_merged++) {
      if (is_merged) assert_int_equal(fu_merge(&g, &m, group, position), 0);
      for (uint32_t n = 0; n < N; n++) {
        assert_true(group[n] >= n && group[group[n]] == group[n]);
        assert_true(space[n] != FU_NONE || group[n] == n);
        *(is_merged ? &n_after : &n_before) += group[n] == n;
        for (uint32_t k = begin[n]; k < begin[n + 1]; k++)
          if (producers[k] != FU_NONE && (group[producers[k]] != group[n] || apart[k]))
            assert_true(position[group[producers[k]]] < position[group[n]]);
      }
    }
    for (uint32_t n = 0; n < N; n++) assert_true(++size[group[n]] <= 8);
    for (uint32_t n = 0, last = N; n < N; n++) { /* what is ordered is in the order that it was in */
      if (!is_ordered[n]) continue;
      assert_true(last == N || position[last] < position[n]);
      last = n;
    }
  }
  assert_true(n_after < n_before - n_before / 20);
}

/* 0 and 3 sum what 6 has, each over its rows; 1 sums what 0 gives, which is between them; 4 what 3 gives. */
static void sums_of_one_tensor_merge_over_what_stands_between_them(void **state) {
  (void)state;
  const uint32_t begin[] = {0, 1, 2, 3, 4, 5}, producers[] = {FU_NONE, 0, FU_NONE, 2, 3}, space[] = {5, 6, 5, 5, 6};
  const uint32_t rows[] = {4, 2, 0, 4, 2}, row_space[] = {6, 7, FU_NONE, 6, 7}, values[] = {6, 0, 6, 2, 3};
  const uint8_t nobody[7] = {0};
  const double move[] = {1, 1, 1, 1, 1, 1, 9};
  const fu_graph_t g = {5, begin, producers, space, 64, rows, row_space, NULL, NULL, 0, NULL};
  const fu_moves_t m = {.values = values, .move = move, .is_wanted = nobody, .n_values = 7, .step = 1};
  uint32_t group[5], position[5];
  assert_int_equal(fu_group(&g, group), 0);
  assert_int_equal(group[0], 0);
  assert_int_equal(fu_merge(&g, &m, group, position), 0);
  assert_int_equal(group[0], 3);
  assert_int_equal(group[2], 3);
  assert_true(position[1] > position[3] && position[4] > position[3]);
}

/* 0 and 3 read the same. 1 reads what 0 gives, and goes after both; not past 2, where both keep their order. */
static void merges_take_nothing_past_what_is_ordered(void **state) {
  (void)state;
  const uint32_t begin[] = {0, 1, 2, 3, 4}, producers[] = {FU_NONE, 0, FU_NONE, FU_NONE};
  const uint32_t space[] = {5, FU_NONE, FU_NONE, 5}, values[] = {4, 0, 5, 4};
  const uint8_t nobody[6] = {0}, is_ordered[2][4] = {{0, 1, 0, 0}, {0, 1, 1, 0}};
  const double move[] = {1, 1, 1, 1, 9, 1};
  for (int both = 0; both < 2; both++) {
    const fu_graph_t g = {4, begin, producers, space, 64, NULL, NULL, NULL, NULL, 0, NULL};
    const fu_moves_t m = {
        .values = values, .move = move, .is_wanted = nobody, .n_values = 6, .step = 1, .is_ordered = is_ordered[both]};
    uint32_t group[4], position[4];
    assert_int_equal(fu_group(&g, group), 0);
    assert_int_equal(fu_merge(&g, &m, group, position), 0);
    assert_int_equal(group[0], both ? 0 : 3);
    assert_true(both || position[1] > position[3]);
  }
}

/* 0 -> 1 (no loop) -> 2, and 0 -> 2 read the same: 0 and 2 would need what is between them. */
static void groups_with_a_third_between_them_stay_apart(void **state) {
  (void)state;
  const uint32_t begin[] = {0, 1, 2, 4}, producers[] = {FU_NONE, 0, 1, FU_NONE}, space[] = {5, FU_NONE, 5};
  const uint32_t values[] = {3, 0, 1, 3};
  const uint8_t nobody[4] = {0};
  const double move[] = {1, 1, 1, 9};
  const fu_graph_t g = {3, begin, producers, space, 64, NULL, NULL, NULL, NULL, 0, NULL};
  const fu_moves_t m = {.values = values, .move = move, .is_wanted = nobody, .n_values = 4, .step = 1};
  uint32_t group[3], position[3];
  assert_int_equal(fu_group(&g, group), 0);
  assert_int_equal(fu_merge(&g, &m, group, position), 0);
  assert_int_equal(group[0], 0);
  assert_int_equal(group[2], 2);
}

/* 0 reads what the last node reads, which computes it again; between them is a chain of nodes that are no loops. */
static void what_is_computed_again_far_away_is_not_made_with_what_comes_first(void **state) {
  (void)state;
  enum { MOST = FU_NEAR + 2 };
  uint32_t begin[MOST + 1], producers[MOST], space[MOST], values[MOST], group[MOST], position[MOST];
  uint8_t nobody[MOST + 2] = {0}, turn[MOST] = {0};
  double move[MOST + 2];
  for (uint32_t n_between = FU_NEAR - 1; n_between <= FU_NEAR; n_between++) {
    const uint32_t n = n_between + 2, last = n - 1;
    for (uint32_t k = 0; k < n; k++) {
      const int is_loop = k == 0 || k == last;
      begin[k] = k;
      producers[k] = is_loop || k == 1 ? FU_NONE : k - 1;
      values[k] = is_loop || k == 1 ? n : k - 1;
      space[k] = is_loop ? 5 : FU_NONE;
      turn[k] = FU_FIRST;
    }
    for (uint32_t v = 0; v <= n; v++) move[v] = 1;
    begin[n] = n;
    turn[last] = FU_REMAT;
    const fu_graph_t g = {n, begin, producers, space, 64, NULL, NULL, NULL, NULL, 0, NULL};
    fu_moves_t m = {.values = values, .move = move, .is_wanted = nobody, .n_values = n + 1, .step = 1};
    for (int knows = 0; knows < 2; knows++) {
      m.turn = knows ? turn : NULL;
      assert_int_equal(fu_group(&g, group), 0);
      assert_int_equal(fu_merge(&g, &m, group, position), 0);
      assert_int_equal(group[0], knows && n_between == FU_NEAR ? 0 : last);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chain_is_one_group_until_an_outsider_reads_it),
      cmocka_unit_test(other_spaces_stay_apart_and_sizes_are_bounded),
      cmocka_unit_test(a_long_sum_is_several_groups),
      cmocka_unit_test(nodes_of_equal_rows_share_a_group_and_what_has_one_element_a_row_joins),
      cmocka_unit_test(readers_of_one_tensor_share_a_group_while_it_is_open),
      cmocka_unit_test(what_a_group_makes_is_none_of_its_reads_nor_what_is_small),
      cmocka_unit_test(groups_run_in_an_order_in_which_all_that_they_read_is_there),
      cmocka_unit_test(sums_of_one_tensor_merge_over_what_stands_between_them),
      cmocka_unit_test(merges_take_nothing_past_what_is_ordered),
      cmocka_unit_test(groups_with_a_third_between_them_stay_apart),
      cmocka_unit_test(what_is_computed_again_far_away_is_not_made_with_what_comes_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
