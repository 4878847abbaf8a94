/* Maximum flow against brute force: the capacity of the cheapest of all 2^(n-2) cuts, on small random graphs. */
#include "maxflow.h"
#include "kit/base/splitmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define LIMIT INT64_MAX

typedef struct arc {
  uint32_t u, v;
  int64_t c;
} arc_t;

static int64_t cut_capacity(const arc_t *arcs, int n_arcs, uint32_t mask) {
  int64_t sum = 0;
  for (int i = 0; i < n_arcs; i++)
    if ((mask >> arcs[i].u & 1) && !(mask >> arcs[i].v & 1)) sum += arcs[i].c;
  return sum;
}

static int64_t cheapest_cut(const arc_t *arcs, int n_arcs, uint32_t n) {
  int64_t best = LIMIT;
  for (uint32_t mask = 0; mask < (1u << n); mask++) {
    if (!(mask & 1) || (mask & 2)) continue; /* source 0 inside, sink 1 outside */
    int64_t c = cut_capacity(arcs, n_arcs, mask);
    if (c < best) best = c;
  }
  return best;
}

static void one_random_graph(uint64_t *state) {
  uint32_t n = 2 + kit_splitmix32(state) % 8;
  int n_arcs = (int)(kit_splitmix32(state) % 24);
  arc_t arcs[24];
  mc_flow_t f;
  int64_t value;
  uint8_t side[16];
  assert_int_equal(mc_flow_init(&f, n, 1), 0);
  for (int i = 0; i < n_arcs; i++) {
    arcs[i] = (arc_t){kit_splitmix32(state) % n, kit_splitmix32(state) % n, (int64_t)(kit_splitmix32(state) % 9)};
    assert_int_equal(mc_flow_edge(&f, arcs[i].u, arcs[i].v, arcs[i].c), 0);
  }
  assert_int_equal(mc_flow_solve(&f, 0, 1, LIMIT, &value), 0);
  assert_int_equal(value, cheapest_cut(arcs, n_arcs, n));
  assert_int_equal(mc_flow_source_side(&f, 0, side), 0);
  uint32_t mask = 0;
  for (uint32_t v = 0; v < n; v++) mask |= (uint32_t)side[v] << v;
  assert_false(mask & 2);
  assert_int_equal(cut_capacity(arcs, n_arcs, mask), value); /* the side it names is a cheapest cut */
  mc_flow_deinit(&f);
}

static void flow_equals_cheapest_cut_by_brute_force(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int i = 0; i < 5000; i++) one_random_graph(&seed);
}

static void of_equal_cuts_the_one_nearest_the_source(void **state) {
  (void)state;
  mc_flow_t f;
  int64_t value;
  uint8_t side[4];
  mc_flow_init(&f, 4, 4); /* 0 -> 2 -> 3 -> 1, every arc 5 */
  mc_flow_edge(&f, 0, 2, 5);
  mc_flow_edge(&f, 2, 3, 5);
  mc_flow_edge(&f, 3, 1, 5);
  mc_flow_solve(&f, 0, 1, LIMIT, &value);
  mc_flow_source_side(&f, 0, side);
  assert_int_equal(value, 5);
  assert_int_equal(side[2], 0);
  mc_flow_deinit(&f);
}

static void stops_at_the_limit(void **state) {
  (void)state;
  mc_flow_t f;
  int64_t value;
  mc_flow_init(&f, 12, 20);
  for (uint32_t v = 2; v < 12; v++) {
    mc_flow_edge(&f, 0, v, 100);
    mc_flow_edge(&f, v, 1, 100);
  }
  mc_flow_solve(&f, 0, 1, 100, &value);
  assert_int_equal(value, 100);
  mc_flow_deinit(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(flow_equals_cheapest_cut_by_brute_force),
      cmocka_unit_test(of_equal_cuts_the_one_nearest_the_source),
      cmocka_unit_test(stops_at_the_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
