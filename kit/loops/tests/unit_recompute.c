/* What groups compute again, and the promise after it: what a copy reads is there when its group runs. */
#include "kit/loops/group.h"
#include "kit/loops/recompute.h"
#include "kit/base/splitmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 48 };

/* A graph of nodes with one result each: value n is that of node n, those after them are inputs. */
typedef struct graph {
  uint32_t n, n_operands, n_values;
  uint32_t begin[MOST + 1], operands[4 * MOST], maker[2 * MOST], group[MOST], space[MOST], group_space[MOST];
  uint32_t lasts_until[2 * MOST], position[MOST];
  uint8_t apart[4 * MOST], is_wanted[2 * MOST];
  double work[MOST], move[2 * MOST];
} graph_t;

static void begin_graph(graph_t *g, uint32_t n, uint32_t n_inputs) {
  memset(g, 0, sizeof *g);
  g->n = n;
  g->n_values = n + n_inputs;
  memset(g->lasts_until, 0xFF, sizeof g->lasts_until);
  memset(g->group, 0xFF, sizeof g->group);
  for (uint32_t v = 0; v < g->n_values; v++) {
    g->maker[v] = v < n ? v : FU_NONE;
    g->move[v] = 4;
  }
  for (uint32_t i = 0; i < n; i++) {
    g->work[i] = 0.1;
    g->position[i] = i;
  }
}

static void operand(graph_t *g, uint32_t node, uint32_t value) {
  g->operands[g->n_operands++] = value;
  for (uint32_t i = node + 1; i <= g->n; i++) g->begin[i] = g->n_operands;
}

static uint32_t recompute(const graph_t *g, fu_copy_t **out) {
  const fu_values_t v = {.n_nodes = g->n,
                         .n_values = g->n_values,
                         .operand_begin = g->begin,
                         .operands = g->operands,
                         .apart = g->apart,
                         .maker = g->maker,
                         .group = g->group,
                         .position = g->position,
                         .space = g->space,
                         .group_space = g->group_space,
                         .work = g->work,
                         .move = g->move,
                         .is_wanted = g->is_wanted,
                         .lasts_until = g->lasts_until,
                         .max_nodes = 16,
                         .max_reads = 8};
  uint32_t n;
  assert_int_equal(fu_recompute(&v, out, &n), 0);
  return n;
}

/* Node 0 casts input 5 (of half its size); 1 reduces that in its group; 2 takes the mean (node 1) off, and 3 reduces
 * it;
 * 4 reads what 2 gives. Groups {0, 1}, {2, 3}, {4}. */
static void a_normalization(graph_t *g) {
  begin_graph(g, 5, 1);
  operand(g, 0, 5), operand(g, 1, 0), operand(g, 2, 0), operand(g, 2, 1), operand(g, 3, 2), operand(g, 4, 2);
  const uint32_t groups[] = {1, 1, 3, 3, 4};
  memcpy(g->group, groups, sizeof groups);
  g->move[5] = 2;
  g->move[1] = g->move[3] = 0.01;
  g->work[1] = g->work[3] = -1; /* reductions */
  g->is_wanted[4] = 1;
}

static void what_is_cheaper_than_memory_is_computed_by_each_that_reads_it(void **state) {
  graph_t g;
  fu_copy_t *c;
  (void)state;
  a_normalization(&g);
  assert_int_equal(recompute(&g, &c), 3);
  assert_int_equal(c[0].group, 3), assert_int_equal(c[0].node, 0);
  assert_int_equal(c[1].group, 4), assert_int_equal(c[1].node, 0);
  assert_int_equal(c[2].group, 4), assert_int_equal(c[2].node, 2);
  free(c);
}

static void what_costs_more_than_memory_is_not(void **state) {
  graph_t g;
  fu_copy_t *c;
  (void)state;
  a_normalization(&g);
  g.work[0] = g.work[2] = 100;
  assert_int_equal(recompute(&g, &c), 0);
  free(c);
}

/* The cast is written for another owner: reading the half in its place is still less. */
static void what_is_in_memory_anyway_is_read_where_that_costs_least(void **state) {
  graph_t g;
  fu_copy_t *c;
  (void)state;
  a_normalization(&g);
  g.is_wanted[0] = 1;
  assert_int_equal(recompute(&g, &c), 3);
  free(c);
  g.move[5] = 8; /* from something larger it is not made twice */
  assert_int_equal(recompute(&g, &c), 1);
  assert_int_equal(c[0].group, 4), assert_int_equal(c[0].node, 2);
  free(c);
}

static void memory_that_is_written_before_a_group_runs_is_not_read_there(void **state) {
  graph_t g;
  fu_copy_t *c;
  (void)state;
  a_normalization(&g);
  g.lasts_until[5] = 4;
  assert_int_equal(recompute(&g, &c), 2); /* the second group still finds it, the third reads the cast */
  assert_int_equal(c[0].group, 3), assert_int_equal(c[0].node, 0);
  assert_int_equal(c[1].group, 4), assert_int_equal(c[1].node, 2);
  free(c);
}

static void spaces_and_reads_at_other_places_keep_what_they_need(void **state) {
  graph_t g;
  fu_copy_t *c;
  (void)state;
  a_normalization(&g);
  g.group_space[4] = 1;
  assert_int_equal(recompute(&g, &c), 1);
  assert_int_equal(c[0].group, 3);
  free(c);
  a_normalization(&g);
  g.apart[5] = 1; /* 4 reads 2 elsewhere */
  g.is_wanted[2] = 1;
  assert_int_equal(recompute(&g, &c), 1);
  assert_int_equal(c[0].group, 3);
  free(c);
}

static int holds(const fu_copy_t *c, uint32_t n, uint32_t group, uint32_t node) {
  for (uint32_t i = 0; i < n; i++)
    if (c[i].group == group && c[i].node == node) return 1;
  return 0;
}

/* Groups as fu_group finds them. */
static void what_copies_read_is_there(void **state) {
  enum { N = 40 };
  uint64_t seed = 3;
  uint32_t n_copies = 0;
  (void)state;
  for (int round = 0; round < 1000; round++) {
    graph_t g;
    fu_copy_t *c;
    uint32_t producers[4 * MOST], spaces[MOST];
    begin_graph(&g, N, 4);
    for (uint32_t i = 0; i < N; i++) {
      for (int k = 0; k < 2; k++) {
        const uint32_t value = kit_splitmix32(&seed) % (i + 4);
        operand(&g, i, value < i ? value : N + value - i);
      }
      spaces[i] = kit_splitmix32(&seed) % 5 ? 1 : FU_NONE;
      g.space[i] = 1;
      g.group_space[i] = 1;
      g.work[i] = spaces[i] == FU_NONE || kit_splitmix32(&seed) % 6 == 0 ? -1 : 0.1;
      g.move[i] = 1 + kit_splitmix32(&seed) % 4;
    }
    for (uint32_t k = 0; k < g.n_operands; k++) producers[k] = g.maker[g.operands[k]];
    const fu_graph_t f = {N, g.begin, producers, spaces, 8, NULL, NULL, NULL, NULL, 0, NULL};
    assert_int_equal(fu_group(&f, g.group), 0);
    for (uint32_t i = 0; i < N; i++) {
      if (spaces[i] != FU_NONE) continue;
      g.group[i] = FU_NONE;
      for (uint32_t k = g.begin[i]; k < g.begin[i + 1]; k++) g.is_wanted[g.operands[k]] = 1;
    }
    g.lasts_until[N] = N / 2;
    const uint32_t n = recompute(&g, &c);
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t group = c[i].group, node = c[i].node;
      assert_true(g.work[node] >= 0 && g.group[node] != group);
      assert_true(i == 0 || c[i - 1].group < group || (c[i - 1].group == group && c[i - 1].node < node));
      for (uint32_t k = g.begin[node]; k < g.begin[node + 1]; k++) {
        const uint32_t value = g.operands[k], maker = g.maker[value];
        if (maker == FU_NONE) continue;
        const uint32_t runs = g.group[maker] == FU_NONE ? maker : g.group[maker];
        assert_true(runs < group || (runs == group && maker < node) || holds(c, n, group, maker));
      }
    }
    n_copies += n;
    free(c);
  }
  assert_true(n_copies > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_cheaper_than_memory_is_computed_by_each_that_reads_it),
      cmocka_unit_test(what_costs_more_than_memory_is_not),
      cmocka_unit_test(what_is_in_memory_anyway_is_read_where_that_costs_least),
      cmocka_unit_test(memory_that_is_written_before_a_group_runs_is_not_read_there),
      cmocka_unit_test(spaces_and_reads_at_other_places_keep_what_they_need),
      cmocka_unit_test(what_copies_read_is_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
