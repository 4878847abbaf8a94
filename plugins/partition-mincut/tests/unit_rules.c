/* Each rule by itself, on the smallest joint graph where it matters: what is saved with it, what without. */
#include "kit/partition/hand_joint.h"
#include "mincut.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAVY AOT_OP_HEAVY
#define POINT AOT_OP_POINTWISE
#define VIEW AOT_OP_VIEW
#define OTHER 0 /* neither cheap nor compute-intensive: a sort */

/* Inputs: 0 x, a user input of 16 bytes; 1 w, a parameter of 48; 2 t, the tangent. Results follow from 3 on. */
static const uint8_t kinds[] = {JG_INPUT_DYNAMIC, JG_INPUT_STATIC, JG_INPUT_TANGENT};
static const uint64_t sizes[] = {16, 48, 8};
enum { X, W, T, MAX_NODES = 8 };

#define NO_RULE                                                                                                        \
  { .max_distance = 1000, .distance_base = 1 }
static const mc_rules_t none = NO_RULE;

typedef struct example {
  const char *what;
  mc_rules_t with, without;
  uint32_t n_nodes;
  pt_hand_node_t nodes[MAX_NODES];
  uint32_t output;                          /* of the forward; the last node's result is the gradient */
  uint32_t saved_with[3], saved_without[3]; /* ended by 0 */
} example_t;

/* clang-format off */
#define RULES(...) {.max_distance = 1000, .distance_base = 1, __VA_ARGS__}

static const example_t examples[] = {
    {.what = "ban-expensive: what no flag calls cheap is kept",
     .with = RULES(.ban_expensive = 1), .without = RULES(.ban_heavy = 1),
     .n_nodes = 3, .nodes = {{OTHER, 0, 64, 1, {X}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T, 3}}}, .output = 4,
     .saved_with = {3}, .saved_without = {0}},
    {.what = "ban-heavy: without ban-expensive matrix products are still kept",
     .with = RULES(.ban_heavy = 1), .without = NO_RULE,
     .n_nodes = 3, .nodes = {{HEAVY, 0, 64, 1, {X}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T, 3}}}, .output = 4,
     .saved_with = {3}, .saved_without = {0}},
    {.what = "ban-materialized: a product of the backward reads it from memory anyway",
     .with = RULES(.ban_materialized = 1), .without = NO_RULE,
     .n_nodes = 3, .nodes = {{POINT, 0, 64, 1, {X}}, {HEAVY, 0, 64, 1, {3}}, {HEAVY, 0, 64, 2, {T, 3}}}, .output = 4,
     .saved_with = {3}, .saved_without = {0}},
    {.what = "ban-materialized looks through views",
     .with = RULES(.ban_materialized = 1), .without = NO_RULE,
     .n_nodes = 4, .nodes = {{POINT, 0, 64, 1, {X}}, {VIEW, 0, 80, 1, {3}}, {HEAVY, 0, 64, 1, {3}}, {HEAVY, 0, 64, 2,
         {T, 4}}},
     .output = 5, .saved_with = {3}, .saved_without = {0}},
    {.what = "ban-reductions: a small result of much is kept",
     .with = RULES(.ban_reductions = 1, .free_static_inputs = 1), .without = RULES(.free_static_inputs = 1),
     .n_nodes = 3, .nodes = {{AOT_OP_REDUCTION, 0, 8, 1, {W}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T, 3}}},
     .output = 4,
     .saved_with = {3}, .saved_without = {0}},
    {.what = "ban-far-apart: 3 is read near by 4 and, behind a product, by 6",
     .with = RULES(.ban_far_apart = 1, .ban_heavy = 1), .without = RULES(.ban_heavy = 1),
     .n_nodes = 5, .nodes = {{POINT, 0, 64, 1, {X}}, {POINT, 0, 64, 1, {3}}, {HEAVY, 0, 8, 1, {4}}, {POINT, 0, 64, 2,
         {3, 5}},
                             {POINT, 0, 64, 2, {T, 6}}},
     .output = 6, .saved_with = {6}, .saved_without = {5}},
    {.what = "recompute-views: a view is made again from what it looks at",
     .with = RULES(.recompute_views = 1), .without = NO_RULE,
     .n_nodes = 3, .nodes = {{VIEW, 0, 8, 1, {X}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T, 3}}}, .output = 4,
     .saved_with = {0}, .saved_without = {3}},
    {.what = "free-static-inputs: what a parameter gives need not be kept",
     .with = RULES(.free_static_inputs = 1), .without = NO_RULE,
     .n_nodes = 3, .nodes = {{POINT, 0, 8, 1, {W}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T, 3}}}, .output = 4,
     .saved_with = {0}, .saved_without = {3}},
    {.what = "double-fused: 3 would not be written to memory, x is",
     .with = RULES(.double_fused = 1), .without = NO_RULE,
     .n_nodes = 3, .nodes = {{POINT, 0, 12, 1, {X}}, {POINT, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T, 3}}}, .output = 4,
     .saved_with = {0}, .saved_without = {3}},
    {.what = "max-distance: 3 lies three steps from the backward",
     .with = {.max_distance = 2, .distance_base = 1}, .without = NO_RULE,
     .n_nodes = 4, .nodes = {{POINT, 0, 64, 1, {X}}, {POINT, 0, 32, 1, {3}}, {POINT, 0, 64, 1, {4}}, {POINT, 0, 64, 2,
         {T, 5}}},
     .output = 5, .saved_with = {4}, .saved_without = {0}},
    {.what = "distance-base: 17 bytes next to the backward cost less than 16 a step away",
     .with = {.max_distance = 1000, .distance_base = 1.1}, .without = NO_RULE,
     .n_nodes = 3, .nodes = {{POINT, 0, 17, 1, {X}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T, 3}}}, .output = 4,
     .saved_with = {3}, .saved_without = {0}},
    {.what = "fewest-bytes: one value at twice the price instead of two views of it",
     .with = RULES(.double_fused = 1), .without = RULES(.double_fused = 1, .ties = MC_NEAREST_BACKWARD),
     .n_nodes = 6, .nodes = {{POINT, AOT_NODE_MUST_SAVE, 64, 1, {X}}, {VIEW, 0, 64, 1, {3}}, {VIEW, 0, 64, 1, {3}},
                             {HEAVY, 0, 64, 2, {T, 4}}, {HEAVY, 0, 64, 2, {6, 5}}, {POINT, 0, 64, 1, {7}}},
     .output = 4, .saved_with = {3}, .saved_without = {4, 5}},
    {.what = "fewest-bytes: or two values' sum at twice the price instead of both",
     .with = RULES(.double_fused = 1, .ban_heavy = 1), .without = RULES(.double_fused = 1, .ban_heavy = 1,
         .ties = MC_NEAREST_SOURCE),
     .n_nodes = 5, .nodes = {{HEAVY, 0, 64, 1, {X}}, {HEAVY, 0, 64, 1, {W}}, {POINT, 0, 64, 2, {3, 4}}, {POINT, 0, 64,
         1, {5}},
                             {POINT, 0, 64, 2, {T, 5}}},
     .output = 6, .saved_with = {5}, .saved_without = {3, 4}},
    {.what = "a value tagged must-save is kept whatever the rules say",
     .with = NO_RULE, .without = NO_RULE,
     .n_nodes = 3, .nodes = {{POINT, AOT_NODE_MUST_SAVE, 64, 1, {X}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T,
         3}}}, .output = 4,
     .saved_with = {3}, .saved_without = {3}},
    {.what = "one tagged must-recompute is not, though it costs less than what it is made of",
     .with = RULES(.ban_expensive = 1), .without = RULES(.ban_heavy = 1),
     .n_nodes = 4, .nodes = {{HEAVY, 0, 64, 1, {X}}, {POINT, AOT_NODE_MUST_RECOMPUTE, 8, 1, {3}}, {HEAVY, 0, 64, 1,
         {4}},
                             {POINT, 0, 64, 2, {T, 4}}},
     .output = 5, .saved_with = {3}, .saved_without = {3}},
    {.what = "random numbers are drawn once",
     .with = NO_RULE, .without = NO_RULE,
     .n_nodes = 3, .nodes = {{POINT | AOT_OP_RANDOM, 0, 64, 1, {X}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T,
         3}}}, .output = 4,
     .saved_with = {3}, .saved_without = {3}},
    {.what = "a collective is called once",
     .with = NO_RULE, .without = NO_RULE,
     .n_nodes = 3, .nodes = {{AOT_OP_COLLECTIVE, 0, 64, 1, {X}}, {HEAVY, 0, 64, 1, {3}}, {POINT, 0, 64, 2, {T, 3}}},
     .output = 4,
     .saved_with = {3}, .saved_without = {3}},
};
/* clang-format on */

static void expect_saved(const char *what, const jg_joint_t *j, const mc_rules_t *rules, const uint32_t *expected) {
  uint32_t saved[MAX_NODES + 3], n_saved = 0, bad = 0, n = 0;
  assert_int_equal(mc_choose(j, rules, saved, &n_saved, &bad), 0);
  while (n < 3 && expected[n]) n++;
  if (n_saved != n || memcmp(saved, expected, n * sizeof *saved) != 0)
    fail_msg("%s: %u values saved, the first %u", what, n_saved, n_saved ? saved[0] : 0);
}

static void each_rule_with_and_without(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
    const example_t *e = &examples[i];
    const uint32_t gradient = 2 + e->n_nodes;
    const pt_hand_graph_t g = {3, e->n_nodes, 1, 1, kinds, sizes, e->nodes, &e->output, &gradient};
    jg_joint_t j;
    assert_int_equal(pt_joint_init_by_hand(&j, &g), 0);
    expect_saved(e->what, &j, &e->with, e->saved_with);
    expect_saved(e->what, &j, &e->without, e->saved_without);
    jg_joint_deinit(&j);
  }
}

/* 120 cheap nodes in a row: with the rule the 102nd is stored, which is small, without it nothing but x. */
static void ban_long_chains(void **state) {
  (void)state;
  enum { N = 121 };
  pt_hand_node_t nodes[N];
  const uint32_t output = 2 + N - 1, gradient = 2 + N;
  const pt_hand_graph_t g = {3, N, 1, 1, kinds, sizes, nodes, &output, &gradient};
  const mc_rules_t with = RULES(.ban_long_chains = 1);
  uint32_t saved[N + 3], n_saved = 0, bad = 0;
  jg_joint_t j;
  for (uint32_t n = 0; n < N; n++) nodes[n] = (pt_hand_node_t){POINT, 0, n == 101 ? 32 : 64, 1, {n ? 2 + n : X}};
  nodes[N - 1] = (pt_hand_node_t){POINT, 0, 64, 2, {T, 2 + N - 1}};
  assert_int_equal(pt_joint_init_by_hand(&j, &g), 0);
  assert_int_equal(mc_choose(&j, &with, saved, &n_saved, &bad), 0);
  assert_int_equal(n_saved, 1);
  assert_int_equal(saved[0], 3 + 101);
  assert_int_equal(mc_choose(&j, &none, saved, &n_saved, &bad), 0);
  assert_int_equal(n_saved, 0);
  jg_joint_deinit(&j);
}

/* cumsum moves elements by its flag, and is in none of PyTorch's lists. relu is in them; as an output of the
 * forward it is written to memory anyway, says PyTorch. */
static void operators_by_flags_or_by_lists(void **state) {
  (void)state;
  static const pt_hand_node_t nodes[] = {
      {AOT_OP_MOVEMENT, 0, 64, 1, {X}}, {POINT, 0, 64, 1, {X}}, {POINT, 0, 64, 2, {T, 3}}, {POINT, 0, 64, 2, {5, 4}}};
  static const char *const names[] = {"aten.cumsum.default", "aten.relu.default", "aten.mul.Tensor", "aten.mul.Tensor"};
  const uint32_t output = 4, gradient = 6;
  const pt_hand_graph_t g = {3, 4, 1, 1, kinds, sizes, nodes, &output, &gradient};
  mc_rules_t rules = RULES(.ban_expensive = 1, .ban_materialized = 1);
  jg_joint_t j;
  assert_int_equal(pt_joint_init_by_hand(&j, &g), 0);
  j.early[0] = 1; /* cumsum's result is the forward's, too */
  for (uint32_t n = 0; n < 4; n++) j.op_name[n] = (aot_str_t){names[n], strlen(names[n])};
  expect_saved("flags", &j, &rules, (const uint32_t[]){0});
  rules.operators = MC_PYTORCH;
  expect_saved("lists", &j, &rules, (const uint32_t[]){3, 4, 0});
  jg_joint_deinit(&j);
}

/* A table is gathered, waited for and cast (3, 4, 5); x is looked up in it (6), and a cheap node reads that (7). */
static void ban_gathers(void **state) {
  (void)state;
  enum { N = 6, LOOKUP = 6, LARGE = 400 };
  static const pt_hand_node_t nodes[N] = {{0, AOT_NODE_MUST_RECOMPUTE, 96, 1, {W}},
                                          {0, AOT_NODE_MUST_RECOMPUTE, 96, 1, {3}},
                                          {POINT, 0, 96, 1, {4}},
                                          {POINT, 0, 64, 2, {5, X}},
                                          {POINT, 0, 200, 1, {LOOKUP}},
                                          {POINT, 0, 64, 2, {T, 7}}};
  const uint32_t output = 7, gradient = 8;
  const pt_hand_graph_t g = {3, N, 1, 1, kinds, sizes, nodes, &output, &gradient};
  const mc_rules_t with = RULES(.ban_gathers = 1, .free_static_inputs = 1), without = RULES(.free_static_inputs = 1);
  jg_joint_t j;
  assert_int_equal(pt_joint_init_by_hand(&j, &g), 0);
  j.op_name[0] = aot_str("aot.all_gather_as.default");
  expect_saved("the lookup is kept", &j, &with, (const uint32_t[]){LOOKUP, 0});
  expect_saved("without the rule nothing is", &j, &without, (const uint32_t[]){0});
  j.nbytes[LOOKUP] = LARGE;
  expect_saved("larger than the table it is not", &j, &with, (const uint32_t[]){0});
  j.nbytes[LOOKUP] = nodes[3].nbytes;
  j.operands[j.operand_begin[5]] = 5; /* the backward reads the table itself */
  jg_joint_link(&j);
  expect_saved("nor where the table is gathered for the backward, too", &j, &with, (const uint32_t[]){0});
  jg_joint_deinit(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_rule_with_and_without),
      cmocka_unit_test(ban_long_chains),
      cmocka_unit_test(ban_gathers),
      cmocka_unit_test(operators_by_flags_or_by_lists),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
