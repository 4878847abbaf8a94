/* The chosen saved set against brute force: of all subsets of forward values that leave nothing banned to run again,
 * none is cheaper. Random joint graphs of up to ten forward nodes. */
#include "kit/partition/hand_joint.h"
#include "kit/graph/split.h"
#include "mincut.h"
#include "kit/base/splitmix.h"
#include <aot/graph.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const mc_rules_t plain = {
    .ban_expensive = 1,
    .free_static_inputs = 1,
    .double_fused = 1,
    .max_distance = 1000,
    .distance_base = 1.1,
};
static const mc_rules_t all_rules = {
    .ban_expensive = 1,
    .ban_heavy = 1,
    .ban_materialized = 1,
    .ban_reductions = 1,
    .ban_far_apart = 1,
    .ban_long_chains = 1,
    .free_static_inputs = 1,
    .double_fused = 1,
    .max_distance = 1000,
    .distance_base = 1.1,
};

static uint32_t random_flags(uint64_t *state) {
  static const uint32_t flags[] = {AOT_OP_POINTWISE, AOT_OP_POINTWISE, AOT_OP_HEAVY, AOT_OP_VIEW, AOT_OP_REDUCTION};
  return flags[kit_splitmix32(state) % 5];
}

enum { N_INPUTS = 3, MAX_FORWARD = 9, MAX_NODES = 16 };

typedef struct random_graph {
  pt_hand_node_t nodes[MAX_NODES];
  uint32_t outputs[1], gradients[2], n_nodes, n_forward;
  pt_hand_graph_t graph;
} random_graph_t;

static const uint8_t kinds[N_INPUTS] = {JG_INPUT_DYNAMIC, JG_INPUT_STATIC, JG_INPUT_TANGENT};
static const uint64_t sizes[N_INPUTS] = {80, 48, 8};

/* Forward nodes over inputs 0 and 1, the last one is the output; then backward nodes, each reading the chain from the
 * tangent and one or two forward values. */
static void make_graph(random_graph_t *r, uint64_t *state) {
  r->n_forward = 2 + kit_splitmix32(state) % (MAX_FORWARD - 1);
  uint32_t n_backward = 1 + kit_splitmix32(state) % 4, chain = 2;
  for (uint32_t n = 0; n < r->n_forward; n++) {
    uint32_t known = n ? N_INPUTS + n : 2; /* before the first node: inputs 0 and 1 */
    uint32_t a = kit_splitmix32(state) % known, b = kit_splitmix32(state) % known;
    r->nodes[n] = (pt_hand_node_t){random_flags(state),
                                   0,
                                   8 * (1 + kit_splitmix32(state) % 12),
                                   2,
                                   {a == 2 ? 0 : a, n + 1 == r->n_forward && n ? N_INPUTS + n - 1
                                                    : b == 2                   ? 1
                                                                               : b}};
  }
  for (uint32_t i = 0; i < n_backward; i++) {
    uint32_t a = kit_splitmix32(state) % (N_INPUTS + r->n_forward);
    r->nodes[r->n_forward + i] = (pt_hand_node_t){random_flags(state), 0, 16, 2, {chain, a == 2 ? 0 : a}};
    chain = N_INPUTS + r->n_forward + i;
  }
  r->n_nodes = r->n_forward + n_backward;
  r->outputs[0] = N_INPUTS + r->n_forward - 1;
  r->gradients[0] = chain;
  r->gradients[1] = JG_NONE;
  r->graph = (pt_hand_graph_t){N_INPUTS, r->n_nodes, 1, 2, kinds, sizes, r->nodes, r->outputs, r->gradients};
}

/* The price of saving exactly `mask` of the forward results; -1 when something banned would run again. */
static int64_t price_of(const jg_joint_t *j, uint32_t n_forward, uint32_t mask, const int64_t *price,
                        const uint8_t *banned, const int64_t input_price) {
  uint8_t runs[MAX_NODES] = {0};
  int reads_input = 0;
  int64_t sum = 0;
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    if (!(j->late[n] || runs[n])) continue;
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
      uint32_t v = j->operands[k], d = j->def[v];
      if (v == 0) reads_input = 1;
      if (d != JG_NONE && !j->late[d] && !(mask >> d & 1)) runs[d] = 1;
    }
  }
  for (uint32_t n = 0; n < n_forward; n++) {
    if (runs[n] && banned[n]) return -1;
    if (mask >> n & 1) sum += price[N_INPUTS + n];
  }
  return sum + (reads_input ? input_price : 0);
}

static uint64_t bytes_of(const jg_joint_t *j, uint32_t mask) {
  uint64_t sum = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++)
    if (mask >> n & 1) sum += j->nbytes[N_INPUTS + n];
  return sum;
}

/* The choice costs least; of all that cost as little it saves the fewest bytes. */
static void compare(const random_graph_t *r, const mc_rules_t *rules, uint64_t *out_chosen, uint64_t *out_fewest) {
  jg_joint_t j;
  uint32_t saved[MAX_NODES + N_INPUTS], n_saved = 0, bad = 0, mask = 0;
  int64_t price[MAX_NODES + N_INPUTS], best = INT64_MAX;
  uint8_t banned[MAX_NODES + 1] = {0};
  assert_int_equal(pt_joint_init_by_hand(&j, &r->graph), 0);
  assert_int_equal(mc_weigh(&j, rules, banned, price), 0);
  assert_int_equal(mc_choose(&j, rules, saved, &n_saved, &bad), 0);
  for (uint32_t i = 0; i < n_saved; i++) mask |= 1u << j.def[saved[i]];
  int64_t chosen = price_of(&j, r->n_forward, mask, price, banned, price[0]);
  uint64_t fewest = UINT64_MAX;
  for (uint32_t m = 0; m < 1u << r->n_forward; m++) {
    int64_t p = price_of(&j, r->n_forward, m, price, banned, price[0]);
    uint64_t nbytes = bytes_of(&j, m);
    if (p < 0 || p > best || (p == best && nbytes >= fewest)) continue;
    best = p;
    fewest = nbytes;
  }
  assert_true(chosen >= 0);
  assert_int_equal(chosen, best);
  if (rules->ties == MC_FEWEST_BYTES) assert_int_equal(bytes_of(&j, mask), fewest);
  *out_fewest = fewest;
  *out_chosen = bytes_of(&j, mask);
  jg_joint_deinit(&j);
}

static void no_subset_of_values_is_cheaper(void **state) {
  (void)state;
  uint64_t seed = 7, chosen, fewest;
  random_graph_t r;
  for (int i = 0; i < 4000; i++) {
    make_graph(&r, &seed);
    compare(&r, i % 2 ? &plain : &all_rules, &chosen, &fewest);
  }
}

/* Equal sizes and no distance factor make ties common; then the cuts at both ends often save more bytes. */
static void of_equal_cuts_the_one_with_the_fewest_bytes(void **state) {
  (void)state;
  uint64_t seed = 11, chosen, fewest, more = 0;
  random_graph_t r;
  for (int i = 0; i < 4000; i++) {
    mc_rules_t rules = plain;
    rules.distance_base = 1;
    rules.ties = i % 3;
    make_graph(&r, &seed);
    for (uint32_t n = 0; n < r.n_nodes; n++) r.nodes[n].nbytes = 8u << (r.nodes[n].nbytes / 8 % 3);
    compare(&r, &rules, &chosen, &fewest);
    more += chosen > fewest;
  }
  assert_true(more > 20);
}

/* gelu between two matrix products: its input is stored, gelu runs again. Values: 0 x, 1 w, 2 t | 3 mm, 4 gelu, 5 mm |
 * 6 .. */
static void a_cheap_chain_is_computed_again(void **state) {
  (void)state;
  const pt_hand_node_t nodes[] = {{AOT_OP_HEAVY, 0, 64, 2, {0, 1}},     {AOT_OP_POINTWISE, 0, 64, 1, {3}},
                                  {AOT_OP_HEAVY, 0, 64, 2, {4, 1}},     {AOT_OP_HEAVY, 0, 64, 2, {2, 1}},
                                  {AOT_OP_POINTWISE, 0, 64, 2, {6, 3}}, {AOT_OP_POINTWISE, 0, 64, 2, {7, 4}}};
  const uint32_t outputs[] = {5}, gradients[] = {8};
  const pt_hand_graph_t g = {N_INPUTS, 6, 1, 1, kinds, sizes, nodes, outputs, gradients};
  jg_joint_t j;
  jg_split_t s;
  uint32_t saved[16], n_saved = 0, bad = 0;
  pt_joint_init_by_hand(&j, &g);
  assert_int_equal(mc_choose(&j, &all_rules, saved, &n_saved, &bad), 0);
  assert_int_equal(n_saved, 1);
  assert_int_equal(saved[0], 3);
  jg_split_init(&s, &j, saved, n_saved, &bad);
  assert_int_equal(s.n_recomputed, 1);
  assert_int_equal(s.recomputed[0], 1);
  jg_split_deinit(&s);
  jg_joint_deinit(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_subset_of_values_is_cheaper),
      cmocka_unit_test(of_equal_cuts_the_one_with_the_fewest_bytes),
      cmocka_unit_test(a_cheap_chain_is_computed_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
