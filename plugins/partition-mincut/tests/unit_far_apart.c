/* The one sweep of the rule "far apart" against the walk it represents: from a value's users on, in order, to the first
 * node that fusion does not reach. */
#include "kit/partition/hand_joint.h"
#include "mincut.h"
#include "kit/base/splitmix.h"
#include <aot/opset.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t kinds[] = {JG_INPUT_DYNAMIC, JG_INPUT_STATIC, JG_INPUT_TANGENT};
static const uint64_t sizes[] = {16, 48, 8};
enum { N_INPUTS = 3 };

/* reached[n]: 0 not, 1 by fusion alone, 2 by some arc that does not fuse. In order, so that a node is settled when
 * it is met. */
static void walk_from_value(const mc_ruled_graph_t *m, uint32_t v, uint8_t *reached, uint8_t *banned) {
  const jg_joint_t *j = m->j;
  uint32_t last = 0, end = JG_NONE;
  memset(reached, 0, j->n_nodes);
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
    if (j->early[j->users[k]]) {
      reached[j->users[k]] = 1;
      if (j->users[k] > last) last = j->users[k];
    }
  for (uint32_t n = 0; n <= last && end == JG_NONE; n++) {
    if (reached[n] == 2) end = n;
    if (!reached[n]) continue;
    for (uint32_t r = j->result_begin[n]; r < j->result_begin[n + 1]; r++)
      for (uint32_t k = j->user_begin[r]; k < j->user_begin[r + 1]; k++) {
        const uint32_t u = j->users[k];
        if (!j->early[u]) continue;
        if (!mc_fuses_into(m, r, u)) reached[u] = 2;
        else if (!reached[u]) reached[u] = 1;
      }
  }
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++) {
    const uint32_t u = j->users[k];
    if (j->early[u] && u > end && mc_fuses_into(m, v, u) && mc_may_ban(m, u)) banned[u] = 1;
  }
}

/* A forward of n nodes in which everything leads to the last one. heavy_every: one in so many does not fuse. */
static void make_joint(jg_joint_t *j, pt_hand_node_t *nodes, uint32_t n, uint32_t heavy_every, uint32_t reach,
                       uint64_t *state) {
  const uint32_t output = N_INPUTS + n - 1, gradient = N_INPUTS + n;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t near = i < reach ? i : reach;
    const uint32_t a = i ? N_INPUTS + i - 1 : 0, b = near ? N_INPUTS + i - 1 - kit_splitmix32(state) % near : 1;
    nodes[i] =
        (pt_hand_node_t){kit_splitmix32(state) % heavy_every ? AOT_OP_POINTWISE : AOT_OP_HEAVY, 0, 64, 2, {a, b}};
  }
  nodes[n] = (pt_hand_node_t){AOT_OP_POINTWISE, 0, 64, 2, {2, output}};
  const pt_hand_graph_t g = {N_INPUTS, n + 1, 1, 1, kinds, sizes, nodes, &output, &gradient};
  assert_int_equal(pt_joint_init_by_hand(j, &g), 0);
}

/* Returns how many nodes the rule bans. */
static uint32_t compare(uint32_t n, uint32_t heavy_every, uint32_t reach, uint64_t *state) {
  pt_hand_node_t *nodes = calloc((size_t)n + 1, sizeof *nodes);
  uint8_t *classes = calloc((size_t)n + 2, 1), *fast = calloc((size_t)n + 2, 1), *slow = calloc((size_t)n + 2, 1);
  uint8_t *reached = calloc((size_t)n + 2, 1);
  const mc_rules_t rules = {.max_distance = 1000, .distance_base = 1};
  uint32_t count = 0;
  jg_joint_t j;
  make_joint(&j, nodes, n, heavy_every, reach, state);
  const mc_ruled_graph_t m = {&j, &rules, classes};
  mc_classify(&j, &rules, classes);
  assert_int_equal(mc_ban_far_apart(&m, fast), 0);
  for (uint32_t v = 0; v < N_INPUTS + n; v++) walk_from_value(&m, v, reached, slow);
  assert_memory_equal(fast, slow, n + 1);
  for (uint32_t i = 0; i < n; i++) count += fast[i];
  jg_joint_deinit(&j);
  free(nodes);
  free(classes);
  free(fast);
  free(slow);
  free(reached);
  return count;
}

static void the_sweep_finds_what_the_walk_finds(void **state) {
  (void)state;
  uint64_t seed = 3;
  uint32_t some = 0;
  for (uint32_t i = 0; i < 2000; i++) some += compare(2 + kit_splitmix32(&seed) % 40, 2 + i % 9, 1 + i % 23, &seed) > 0;
  assert_true(some > 500);
}

/* Fusion that reaches over thousands of nodes: a walk that gave up on the way would ban other nodes. */
static void far_is_as_far_as_it_is(void **state) {
  (void)state;
  uint64_t seed = 4;
  assert_true(compare(3000, 2000, 2900, &seed) > 0);
  assert_int_equal(compare(3000, UINT32_MAX, 2900, &seed), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_sweep_finds_what_the_walk_finds),
      cmocka_unit_test(far_is_as_far_as_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
