/* What the plain choice saves, on graphs small enough to see. */
#include "kit/partition/hand_joint.h"
#include "kit/graph/split.h"
#include "kit/partition/save_all.h"
#include <aot/graph.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* y = relu(x @ w); backward: dw = x^T (dy * (y > 0)).
 * Values: 0 x, 1 w, 2 dy | 3 mm, 4 relu, 5 mask(relu), 6 dmm = dy*mask, 7 dw = x, dmm */
static const uint8_t kinds[] = {JG_INPUT_DYNAMIC, JG_INPUT_STATIC, JG_INPUT_TANGENT};
static const uint64_t sizes[] = {64, 64, 64};
static const pt_hand_node_t nodes[] = {
    {AOT_OP_HEAVY, 0, 64, 2, {0, 1}},     {AOT_OP_POINTWISE, 0, 64, 1, {3}}, {AOT_OP_POINTWISE, 0, 16, 1, {4}},
    {AOT_OP_POINTWISE, 0, 64, 2, {2, 5}}, {AOT_OP_HEAVY, 0, 64, 2, {0, 6}},
};
static const uint32_t outputs[] = {4}, gradients[] = {7};
static const pt_hand_graph_t relu_layer = {3, 5, 1, 1, kinds, sizes, nodes, outputs, gradients};

static void saves_what_the_backward_reads_and_nothing_else(void **state) {
  (void)state;
  jg_joint_t j;
  uint32_t saved[16], n;
  assert_int_equal(pt_joint_init_by_hand(&j, &relu_layer), 0);
  assert_int_equal(pt_save_all(&j, saved, &n), 0);
  assert_int_equal(n, 1);
  /* relu's result: the mask is after the last forward output, so it is the backward's */
  assert_int_equal(saved[0], 4);
  jg_joint_deinit(&j);
}

static void split_puts_the_mask_before_its_first_reader(void **state) {
  (void)state;
  jg_joint_t j;
  jg_split_t s;
  uint32_t saved[16], bad;
  pt_joint_init_by_hand(&j, &relu_layer);
  uint32_t n;
  assert_int_equal(pt_save_all(&j, saved, &n), 0);
  assert_int_equal(jg_split_init(&s, &j, saved, n, &bad), 0);
  assert_int_equal(s.n_forward, 2);
  assert_int_equal(s.n_backward, 3);
  assert_int_equal(s.backward[0], 2);
  assert_int_equal(s.backward[1], 3);
  assert_int_equal(s.backward[2], 4);
  assert_int_equal(s.n_recomputed, 0);
  assert_int_equal(s.nbytes_saved, 64);
  jg_split_deinit(&s);
  jg_joint_deinit(&j);
}

/* The chain x -> mm -> relu -> sin, whose last two are tagged: the backward reads relu and sin, which are made again
 * from mm. */
static void what_is_tagged_is_made_again_from_what_is_not(void **state) {
  (void)state;
  static const pt_hand_node_t chain[] = {
      {AOT_OP_HEAVY, 0, 64, 2, {0, 1}},
      {AOT_OP_POINTWISE, AOT_NODE_MUST_RECOMPUTE, 64, 1, {3}},
      {AOT_OP_POINTWISE, AOT_NODE_PREFER_RECOMPUTE, 64, 1, {4}},
      {AOT_OP_POINTWISE, 0, 64, 2, {2, 4}},
      {AOT_OP_POINTWISE, 0, 64, 2, {6, 5}},
  };
  static const uint32_t last[] = {5}, gradient[] = {7};
  static const pt_hand_graph_t graph = {3, 5, 1, 1, kinds, sizes, chain, last, gradient};
  jg_joint_t j;
  jg_split_t s;
  uint32_t saved[16], n, bad;
  assert_int_equal(pt_joint_init_by_hand(&j, &graph), 0);
  assert_int_equal(pt_save_all(&j, saved, &n), 0);
  assert_int_equal(n, 1);
  assert_int_equal(saved[0], 3);
  assert_int_equal(jg_split_init(&s, &j, saved, n, &bad), 0);
  assert_int_equal(s.n_recomputed, 2);
  jg_split_deinit(&s);
  jg_joint_deinit(&j);
}

/* x -> draw -> sin, all of no elements: the draw is stored for the backward, since drawn again it would be another;
 * sin is not. */
static void a_draw_without_bytes_is_saved(void **state) {
  (void)state;
  static const pt_hand_node_t chain[] = {
      {AOT_OP_RANDOM, 0, 0, 1, {0}},
      {AOT_OP_POINTWISE, 0, 0, 1, {3}},
      {AOT_OP_POINTWISE, 0, 0, 2, {2, 4}},
      {AOT_OP_POINTWISE, 0, 0, 2, {5, 3}},
  };
  static const uint32_t last[] = {4}, gradient[] = {6};
  static const pt_hand_graph_t graph = {3, 4, 1, 1, kinds, sizes, chain, last, gradient};
  jg_joint_t j;
  uint32_t saved[16], n;
  assert_int_equal(pt_joint_init_by_hand(&j, &graph), 0);
  assert_int_equal(pt_save_all(&j, saved, &n), 0);
  assert_int_equal(n, 1);
  assert_int_equal(saved[0], 3);
  jg_joint_deinit(&j);
}

static void a_value_that_a_tangent_reaches_cannot_be_saved(void **state) {
  (void)state;
  jg_joint_t j;
  jg_split_t s;
  uint32_t late = 6, bad = 0;
  pt_joint_init_by_hand(&j, &relu_layer);
  assert_int_equal(jg_split_init(&s, &j, &late, 1, &bad), -1);
  assert_int_equal(bad, 6);
  jg_joint_deinit(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(saves_what_the_backward_reads_and_nothing_else),
      cmocka_unit_test(split_puts_the_mask_before_its_first_reader),
      cmocka_unit_test(what_is_tagged_is_made_again_from_what_is_not),
      cmocka_unit_test(a_draw_without_bytes_is_saved),
      cmocka_unit_test(a_value_that_a_tangent_reaches_cannot_be_saved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
