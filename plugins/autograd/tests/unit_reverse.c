/* The reverse pass on hand-made graphs. Values are numbered from 1, so that a graph reads like a program; a cotangent
 * is the number of a term in a table, so that what was added to what can be printed: rule of node n for operand slot k
 * makes the term 100 * (n + 1) + k, adding makes terms from 10000 on. */
#include "../reverse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MAX 16

typedef struct toy {
  ag_graph_t g;
  uint32_t begin[MAX + 1], operand[4 * MAX], first[MAX], results[MAX];
  uint8_t stops[MAX], able[MAX], needs[MAX];
  uint32_t cot[MAX], work[8 * MAX];
  /* what happened */
  uint32_t called[MAX], n_called;
  uint32_t sum[MAX][2], n_sums;
  uint32_t zero_slot; /* the term that is zero instead */
  int fail_at;
} toy_t;

static toy_t *start(uint32_t n_values) {
  static toy_t t;
  memset(&t, 0, sizeof t);
  t.g = (ag_graph_t){
      .n_values = n_values,
      .operand_begin = t.begin,
      .operand = t.operand,
      .first_result = t.first,
      .n_results = t.results,
      .stops = t.stops,
      .able = t.able,
  };
  memset(t.able, 1, sizeof t.able);
  t.fail_at = -1;
  return &t;
}

/* A node with one result. */
static void node(toy_t *t, uint32_t result, uint32_t n, const uint32_t *operands) {
  uint32_t i = t->g.n_nodes++;
  memcpy(t->operand + t->begin[i], operands, n * sizeof *operands);
  t->begin[i + 1] = t->begin[i] + n;
  t->first[i] = result;
  t->results[i] = 1;
}
#define NODE(t, result, ...)                                                                                           \
  node(t, result, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

static int32_t rule(void *self, uint32_t n, const uint32_t *cot, uint32_t *out) {
  toy_t *t = self;
  uint32_t k;
  (void)cot;
  if ((int)n == t->fail_at) return 7;
  t->called[t->n_called++] = n;
  for (k = 0; k < t->begin[n + 1] - t->begin[n]; k++)
    out[k] = 100 * (n + 1) + k == t->zero_slot ? AG_NONE : 100 * (n + 1) + k;
  return 0;
}

static int32_t add(void *self, uint32_t n, uint32_t a, uint32_t b, uint32_t *out) {
  toy_t *t = self;
  (void)n;
  t->sum[t->n_sums][0] = a;
  t->sum[t->n_sums][1] = b;
  *out = 10000 + t->n_sums++;
  return 0;
}

static int32_t go(toy_t *t) {
  ag_reverse_ops_t ops = {.self = t, .rule = rule, .add = add};
  ag_reach(&t->g, t->needs);
  return ag_reverse(&t->g, t->needs, t->cot, t->work, &ops);
}

/* 1, 2 inputs; 3 = f(1, 2); 4 = g(3) */
static void chain_calls_rules_from_the_end(void **state) {
  toy_t *t = start(5);
  (void)state;
  NODE(t, 3, 1, 2);
  NODE(t, 4, 3);
  t->needs[1] = 1;
  t->cot[4] = 5000;
  assert_int_equal(go(t), 0);
  assert_int_equal(t->n_called, 2);
  assert_int_equal(t->called[0], 1);
  assert_int_equal(t->called[1], 0);
  assert_int_equal(t->cot[3], 200);
  assert_int_equal(t->cot[1], 100);     /* term of node 0, slot 0 */
  assert_int_equal(t->cot[2], AG_NONE); /* needs nothing, gets nothing */
}

/* 2 = f(1); 3 = g(1, 2); 4 = h(1): three contributions to 1, the later node's first */
static void uses_add_up(void **state) {
  toy_t *t = start(5);
  (void)state;
  NODE(t, 2, 1);
  NODE(t, 3, 1, 2);
  NODE(t, 4, 1);
  t->needs[1] = 1;
  t->cot[3] = 5000;
  t->cot[4] = 5001;
  assert_int_equal(go(t), 0);
  assert_int_equal(t->n_sums, 2);
  assert_int_equal(t->sum[0][0], 300); /* node 2 */
  assert_int_equal(t->sum[0][1], 200); /* node 1, slot 0 */
  assert_int_equal(t->sum[1][0], 10000);
  assert_int_equal(t->sum[1][1], 100); /* node 0 */
  assert_int_equal(t->cot[1], 10001);
}

/* f(1, 1): both slots count */
static void one_value_in_two_slots(void **state) {
  toy_t *t = start(3);
  (void)state;
  NODE(t, 2, 1, 1);
  t->needs[1] = 1;
  t->cot[2] = 5000;
  assert_int_equal(go(t), 0);
  assert_int_equal(t->n_sums, 1);
  assert_int_equal(t->sum[0][1], 101);
}

/* A node that stops (detach), a value that cannot (integer), an absent operand. */
static void nothing_flows_where_it_must_not(void **state) {
  toy_t *t = start(7);
  (void)state;
  NODE(t, 2, 1);
  t->stops[0] = 1;
  NODE(t, 3, 1);
  t->able[3] = 0;
  NODE(t, 4, 2, 3, AG_NONE);
  NODE(t, 5, 4, 1);
  t->needs[1] = 1;
  t->cot[5] = 5000;
  assert_int_equal(go(t), 0);
  assert_int_equal(t->n_called, 1); /* only node 3 */
  assert_int_equal(t->called[0], 3);
  assert_int_equal(t->needs[2] + t->needs[3] + t->needs[4], 0);
  assert_int_equal(t->cot[1], 401);
}

/* 2 = f(1); 3 = floor(2): the path is there, its derivative zero; no work before it */
static void zero_travels_without_work(void **state) {
  toy_t *t = start(4);
  (void)state;
  NODE(t, 2, 1);
  NODE(t, 3, 2);
  t->needs[1] = 1;
  t->zero_slot = 200;
  t->cot[3] = 5000;
  assert_int_equal(go(t), 0);
  assert_int_equal(t->n_called, 1);
  assert_int_equal(t->cot[2], AG_ZERO);
  assert_int_equal(t->cot[1], AG_ZERO);
}

/* A zero and a contribution: the contribution alone, no sum. */
static void zero_adds_nothing(void **state) {
  toy_t *t = start(5);
  (void)state;
  NODE(t, 2, 1);
  NODE(t, 3, 2);
  NODE(t, 4, 2);
  t->needs[1] = 1;
  t->zero_slot = 300;
  t->cot[3] = 5000;
  t->cot[4] = 5001;
  assert_int_equal(go(t), 0);
  assert_int_equal(t->n_sums, 0);
  assert_int_equal(t->cot[2], 200);
  assert_int_equal(t->cot[1], 100);
}

/* Nothing with a tangent depends on 1: no path, not zero. */
static void unreached_is_none(void **state) {
  toy_t *t = start(5);
  (void)state;
  NODE(t, 3, 1);
  NODE(t, 4, 2);
  t->needs[1] = t->needs[2] = 1;
  t->cot[4] = 5000;
  assert_int_equal(go(t), 0);
  assert_int_equal(t->cot[1], AG_NONE);
  assert_int_equal(t->cot[2], 200);
}

static void failures_end_the_walk(void **state) {
  toy_t *t = start(4);
  (void)state;
  NODE(t, 2, 1);
  NODE(t, 3, 2);
  t->needs[1] = 1;
  t->cot[3] = 5000;
  t->fail_at = 0;
  assert_int_equal(go(t), 7);
  assert_int_equal(t->cot[1], AG_NONE);
}

static void widest_counts_operands_and_results(void **state) {
  toy_t *t = start(9);
  (void)state;
  NODE(t, 3, 1, 2, 1);
  NODE(t, 4, 3);
  t->results[1] = 5;
  assert_int_equal(ag_widest(&t->g), 5);
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chain_calls_rules_from_the_end), cmocka_unit_test(uses_add_up),
      cmocka_unit_test(one_value_in_two_slots),         cmocka_unit_test(nothing_flows_where_it_must_not),
      cmocka_unit_test(zero_travels_without_work),      cmocka_unit_test(zero_adds_nothing),
      cmocka_unit_test(unreached_is_none),              cmocka_unit_test(failures_end_the_walk),
      cmocka_unit_test(widest_counts_operands_and_results),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
