/* Policies: what rules read like, which nodes they take, and what stands above them. */
#include "kit/partition/hand_joint.h"
#include "kit/partition/policy.h"
#include "kit/base/splitmix.h"

#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct bad_rule {
  const char *text, *message;
} bad_rule_t;

static void a_malformed_rule_is_named(void **state) {
  (void)state;
  static const bad_rule_t bad[] = {
      {"keep op aten.mm", "rule 1, \"keep op aten.mm\": a rule begins with save or recompute"},
      {"save op a; recompute modul x",
       "rule 2, \"recompute modul x\": after save or recompute comes op, module or region"},
      {"\n\nsave op\n", "rule 1, \"save op\": a pattern is missing"},
      {"save", "after save or recompute comes"},
      {"save op a b", "after the pattern only allow-heavy may follow"},
      {"save op a allow-heavy", "allow-heavy belongs to recompute"},
      {"recompute op a allow-heavy b", "after allow-heavy the rule ends"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char error[PT_POLICY_ERROR] = "";
    pt_policy_t p;
    assert_int_equal(pt_policy_parse(aot_str(bad[i].text), &p, error), -1);
    if (!strstr(error, bad[i].message)) fail_msg("%s: %s", bad[i].text, error);
  }
}

static void rules_stand_on_lines_or_between_semicolons(void **state) {
  (void)state;
  char error[PT_POLICY_ERROR];
  pt_policy_t p;
  assert_int_equal(pt_policy_parse(aot_str(" save op aten.mm ;\n;recompute  module h.* allow-heavy\r\n"), &p, error),
                   0);
  assert_int_equal(p.n_rules, 2);
  assert_int_equal(p.rules[0].selector, PT_BY_OP);
  assert_false(p.rules[0].recompute);
  assert_true(aot_str_eq(p.rules[0].pattern, aot_str("aten.mm")));
  assert_true(p.rules[1].recompute && p.rules[1].allow_heavy);
  assert_true(aot_str_eq(p.rules[1].text, aot_str("recompute  module h.* allow-heavy")));
  pt_policy_deinit(&p);
  assert_int_equal(pt_policy_parse(aot_str(""), &p, error), 0);
  assert_int_equal(p.n_rules, 0);
  pt_policy_deinit(&p);
}

#define AGAIN AOT_NODE_MUST_RECOMPUTE
#define KEEP AOT_NODE_MUST_SAVE
#define POINT AOT_OP_POINTWISE

/* Two layers of a product and an activation each, then what the table says. Values: 0 x, 1 t | 2 .. 9. */
enum { N_NODES = 8, N_INPUTS = 2 };
static const uint8_t kinds[N_INPUTS] = {JG_INPUT_DYNAMIC, JG_INPUT_TANGENT};
static const uint64_t sizes[N_INPUTS] = {64, 64};
static const pt_hand_node_t nodes[N_NODES] = {
    {AOT_OP_HEAVY, 0, 64, 1, {0}},                  /* 0 h.0.up */
    {POINT, 0, 64, 1, {2}},                         /* 1 h.0.act */
    {AOT_OP_HEAVY, 0, 64, 1, {3}},                  /* 2 h.1.up */
    {POINT, 0, 64, 1, {4}},                         /* 3 h.1.act */
    {POINT | AOT_OP_RANDOM, 0, 64, 1, {5}},         /* 4 head */
    {POINT, AOT_NODE_PREFER_RECOMPUTE, 64, 1, {6}}, /* 5 head, checkpoint region 3 */
    {AOT_OP_REGION, 0, 64, 1, {7}},                 /* 6 head, calls attn */
    {POINT, 0, 64, 2, {1, 8}},                      /* 7 the backward */
};
static const char *const names[N_NODES] = {"aten.mm.default",
                                           "aten.gelu.default",
                                           "aten.mm.default",
                                           "aten.tanh.default",
                                           "aten.rand_like.default",
                                           "aten.sin.default",
                                           "higher_order.invoke_subgraph",
                                           "aten.mul.Tensor"};
static const char *const modules[N_NODES] = {"m.h.0.up", "m.h.0.act", "m.h.1.up", "m.h.1.act",
                                             "m.head",   "m.head",    "m.head",   "m.h.0.act"};

typedef struct example {
  const char *policy;
  uint32_t flags[N_NODES];
  uint32_t matched[3];
} example_t;

static const uint32_t T = AOT_NODE_PREFER_RECOMPUTE;

static void check(const example_t *e) {
  static const uint32_t output = 8, gradient = 9;
  const pt_hand_graph_t g = {N_INPUTS, N_NODES, 1, 1, kinds, sizes, nodes, &output, &gradient};
  aot_str_t module[N_NODES], region[N_NODES] = {{NULL, 0}};
  uint32_t tag[N_NODES] = {0}, matched[4];
  const pt_facts_t facts = {module, region, tag};
  char error[PT_POLICY_ERROR] = "";
  pt_policy_t p;
  jg_joint_t j;
  assert_int_equal(pt_joint_init_by_hand(&j, &g), 0);
  for (uint32_t n = 0; n < N_NODES; n++) {
    j.op_name[n] = aot_str(names[n]);
    module[n] = aot_str(modules[n]);
  }
  region[6] = aot_str("attn");
  tag[5] = 3;
  if (pt_policy_parse(aot_str(e->policy), &p, error) != 0) fail_msg("%s", error);
  assert_int_equal(pt_policy_apply(&p, &facts, &j, matched), 0);
  for (uint32_t n = 0; n < N_NODES; n++)
    if (j.node_flags[n] != e->flags[n]) fail_msg("%s: node %u has flags %u", e->policy, n, j.node_flags[n]);
  for (uint32_t i = 0; i < p.n_rules; i++)
    if (matched[i] != e->matched[i]) fail_msg("%s: rule %u took %u nodes", e->policy, i + 1, matched[i]);
  pt_policy_deinit(&p);
  jg_joint_deinit(&j);
}

static void the_first_rule_that_matches_counts(void **state) {
  (void)state;
  const example_t examples[] = {
      {"save op aten.mm", {KEEP, 0, KEEP, 0, 0, T, 0, 0}, {2}},
      {"save op aten.mm.default", {KEEP, 0, KEEP, 0, 0, T, 0, 0}, {2}},
      {"save op aten.m", {0, 0, 0, 0, 0, T, 0, 0}, {0}},
      {"save op aten.*an*", {0, 0, 0, KEEP, KEEP, T, 0, 0}, {2}},
      {"save op aten.?m; save op *", {KEEP, KEEP, KEEP, KEEP, KEEP, T, KEEP, 0}, {2, 4}},
      {"recompute op aten.tanh; save op *", {KEEP, KEEP, KEEP, AGAIN, KEEP, T, KEEP, 0}, {1, 5}},
      {"recompute op *", {0, AGAIN, 0, AGAIN, 0, T, 0, 0}, {2}},
      {"recompute op * allow-heavy", {AGAIN, AGAIN, AGAIN, AGAIN, 0, T, AGAIN, 0}, {5}},
      {"save op aten.mm; recompute op * allow-heavy", {KEEP, AGAIN, KEEP, AGAIN, 0, T, AGAIN, 0}, {2, 3}},
  };
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) check(&examples[i]);
}

static void modules_are_matched_part_by_part(void **state) {
  (void)state;
  const example_t examples[] = {
      {"save module m.h.0", {KEEP, KEEP, 0, 0, 0, T, 0, 0}, {2}},
      {"save module m.h", {KEEP, KEEP, KEEP, KEEP, 0, T, 0, 0}, {4}},
      {"save module m.h.*.act", {0, KEEP, 0, KEEP, 0, T, 0, 0}, {2}},
      {"save module h.*", {0, 0, 0, 0, 0, T, 0, 0}, {0}},
      {"save module m.h.0.act.inner", {0, 0, 0, 0, 0, T, 0, 0}, {0}},
      {"save module *.head", {0, 0, 0, 0, KEEP, T, KEEP, 0}, {2}},
  };
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) check(&examples[i]);
}

/* What one recomputed module hands to the next is stored; used as one module nothing is. */
static void each_module_that_a_rule_matches_is_a_checkpoint(void **state) {
  (void)state;
  const example_t examples[] = {
      {"recompute module m.h.* allow-heavy", {AGAIN, KEEP, AGAIN, AGAIN, 0, T, 0, 0}, {4}},
      {"recompute module m.h allow-heavy", {AGAIN, AGAIN, AGAIN, AGAIN, 0, T, 0, 0}, {4}},
      {"recompute module m.h.*", {0, AGAIN, 0, AGAIN, 0, T, 0, 0}, {2}},
  };
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) check(&examples[i]);
}

static void regions_go_by_number_or_name(void **state) {
  (void)state;
  const example_t examples[] = {
      {"save region attn", {0, 0, 0, 0, 0, T, KEEP, 0}, {1}},
      {"recompute region at*", {0, 0, 0, 0, 0, T, 0, 0}, {0}},
      {"recompute region at* allow-heavy", {0, 0, 0, 0, 0, T, AGAIN, 0}, {1}},
      {"save region 3", {0, 0, 0, 0, 0, KEEP, 0, 0}, {1}}, /* a region rule counts more than its preference */
      {"save region 4", {0, 0, 0, 0, 0, T, 0, 0}, {0}},
  };
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) check(&examples[i]);
}

/* Words of the grammar and stray characters in any order are either read or named. */
static void any_text_is_read_or_refused(void **state) {
  (void)state;
  static const char *const words[] = {"save ", "recompute ", "op ", "module ", "region ", "allow-heavy",
                                      "; ",    "\n",         "*",   "a.b*?c ", ";;",      " "};
  uint64_t seed = 9;
  uint32_t n_read = 0;
  for (int i = 0; i < 20000; i++) {
    char text[256] = "", error[PT_POLICY_ERROR] = "";
    pt_policy_t p;
    for (uint32_t k = kit_splitmix32(&seed) % 12; k > 0; k--) strcat(text, words[kit_splitmix32(&seed) % 12]);
    const int status = pt_policy_parse(aot_str(text), &p, error);
    assert_true(status == 0 || (status == -1 && strncmp(error, "rule ", 5) == 0));
    n_read += status == 0;
    if (status == 0) pt_policy_deinit(&p);
  }
  assert_true(n_read > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_malformed_rule_is_named),
      cmocka_unit_test(rules_stand_on_lines_or_between_semicolons),
      cmocka_unit_test(the_first_rule_that_matches_counts),
      cmocka_unit_test(modules_are_matched_part_by_part),
      cmocka_unit_test(each_module_that_a_rule_matches_is_a_checkpoint),
      cmocka_unit_test(regions_go_by_number_or_name),
      cmocka_unit_test(any_text_is_read_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
