/* What checkpoint tags come to: two regions one after the other, and a random draw inside one. */
#include "kit/partition/hand_joint.h"
#include "kit/partition/tags.h"

#include <aot/graph.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const uint8_t kinds[] = {JG_INPUT_DYNAMIC, JG_INPUT_TANGENT};
static const uint64_t sizes[] = {64, 64};
#define AGAIN AOT_NODE_PREFER_RECOMPUTE
static const pt_hand_node_t nodes[] = {
    {AOT_OP_POINTWISE, AGAIN, 64, 1, {0}},                 /* 0: region 1 */
    {AOT_OP_POINTWISE, AGAIN, 64, 1, {2}},                 /* 1: the last of region 1 */
    {AOT_OP_POINTWISE, AGAIN, 64, 1, {3}},                 /* 2: region 2 */
    {AOT_OP_POINTWISE | AOT_OP_RANDOM, AGAIN, 64, 1, {4}}, /* 3: region 2, draws numbers */
    {AOT_OP_POINTWISE, 0, 64, 2, {1, 5}},
};
static const uint32_t outputs[] = {5}, gradients[] = {6};
static const pt_hand_graph_t graph = {2, 5, 1, 1, kinds, sizes, nodes, outputs, gradients};

static void the_boundary_of_two_regions_is_kept(void **state) {
  (void)state;
  static const uint32_t region[] = {1, 1, 2, 2, 0};
  uint32_t n_random;
  jg_joint_t j;
  assert_int_equal(pt_joint_init_by_hand(&j, &graph), 0);
  pt_tags_resolve(&j, region, &n_random);
  assert_int_equal(j.node_flags[0], AGAIN);
  assert_int_equal(j.node_flags[1], AOT_NODE_MUST_SAVE);
  assert_int_equal(j.node_flags[2], AGAIN);
  assert_int_equal(j.node_flags[4], 0);
  jg_joint_deinit(&j);
}

static void numbers_are_drawn_once(void **state) {
  (void)state;
  uint32_t n_random;
  jg_joint_t j;
  assert_int_equal(pt_joint_init_by_hand(&j, &graph), 0);
  pt_tags_resolve(&j, NULL, &n_random);
  assert_int_equal(n_random, 1);
  assert_int_equal(j.node_flags[3], AOT_NODE_MUST_SAVE);
  assert_int_equal(j.node_flags[1], AGAIN); /* without region numbers there is no boundary */
  jg_joint_deinit(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_boundary_of_two_regions_is_kept),
      cmocka_unit_test(numbers_are_drawn_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
