/* What the lowering says of nodes: copies as work space, views where results are in an operand, loops that are shared;
 * what it does not run stays as it was known. */
#include "naive.h"

#include "kit/lowering/lowering_costs.h"
#include "kit/graph/hand_snapshot.h"
#include "target.h"

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

static nc_costs_t costs_of(const aot_snapshot_t *s, int32_t n_threads, int compiles) {
  const custom_program_t no_kernels = {0};
  const lw_machine_t machine = bc_planning_machine(n_threads, &no_kernels, compiles);
  nc_costs_t costs;
  lw_error_t error;
  int64_t *dims;
  assert_int_equal(nc_dims(s, NULL, 0, &dims), AOT_OK);
  assert_int_equal(nc_init(&costs, s, dims), 0);
  assert_int_equal(lw_lowering_costs(s, dims, &machine, compiles, &costs, &error), AOT_OK);
  free(dims);
  return costs;
}

static uint32_t unary(hs_snapshot_t *h, const char *op, uint32_t x, int32_t rank, const int64_t *sizes) {
  hs_node(h, op);
  hs_arg_value(h, x);
  return hs_result(h, AOT_F32, rank, sizes);
}

static void a_matrix_that_lies_apart_is_copied(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  hs_graph(h, AOT_GRAPH_JOINT);
  const uint32_t whole = hs_input(h, AOT_F32, 2, DIMS(8, 8)), x = hs_input(h, AOT_F32, 2, DIMS(4, 4));
  hs_node(h, "aten.as_strided.default");
  hs_arg_value(h, whole), hs_arg_ints(h, DIMS(4, 4), 2), hs_arg_ints(h, DIMS(16, 2), 2);
  const uint32_t apart = hs_result_strided(h, AOT_F32, 2, DIMS(4, 4), DIMS(16, 2));
  for (int k = 0; k < 2; k++) {
    hs_node(h, "aten.mm.default");
    hs_arg_value(h, k ? x : apart), hs_arg_value(h, x);
    hs_output(h, hs_result(h, AOT_F32, 2, DIMS(4, 4)));
  }
  nc_costs_t c = costs_of(hs_finish(h), 1, 1);
  assert_true(c.workspace[1] == 0 && c.workspace[2] == 64 && c.workspace[3] == 0);
  nc_deinit(&c);
  hs_destroy(h);
}

/* Attention's tiles: each thread has its own. */
static void work_space_is_the_lowering_s_own(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  hs_graph(h, AOT_GRAPH_JOINT);
  const uint32_t q = hs_input(h, AOT_F32, 4, DIMS(1, 2, 8, 16));
  hs_node(h, "aten.scaled_dot_product_attention.default");
  for (int k = 0; k < 3; k++) hs_arg_value(h, q);
  hs_output(h, hs_result(h, AOT_F32, 4, DIMS(1, 2, 8, 16)));
  const aot_snapshot_t *s = hs_finish(h);
  nc_costs_t one = costs_of(s, 1, 1), three = costs_of(s, 3, 1);
  assert_true(one.workspace[1] > 0 && three.workspace[1] == 3 * one.workspace[1]);
  nc_deinit(&one);
  nc_deinit(&three);
  hs_destroy(h);
}

static void loops_are_shared_where_there_is_a_compiler(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  hs_graph(h, AOT_GRAPH_JOINT);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(64, 64)), y = hs_input(h, AOT_F32, 1, DIMS(64));
  const uint32_t a = unary(h, "aten.relu.default", x, 2, DIMS(64, 64)),
                 b = unary(h, "aten.tanh.default", a, 2, DIMS(64, 64));
  hs_node(h, "aten._softmax.default"); /* of the rows of b */
  hs_arg_value(h, b), hs_arg_int(h, 1), hs_arg_bool(h, 0);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(64, 64)));
  hs_output(h, unary(h, "aten.tanh.default", y, 1, DIMS(64)));
  const aot_snapshot_t *s = hs_finish(h);
  nc_costs_t c = costs_of(s, 1, 1);
  assert_true(c.fusion[1] && c.fusion[2] == c.fusion[1] && c.fusion[3] == c.fusion[1]);
  assert_true(c.fusion[4] && c.fusion[4] != c.fusion[1]);
  nc_deinit(&c);
  c = costs_of(s, 1, 0);
  for (int n = 1; n < 5; n++) assert_int_equal(c.fusion[n], 0);
  nc_deinit(&c);
  hs_destroy(h);
}

/* Of a transposed matrix the rows in order are a copy, though the operator is one of views; its transpose is none. */
static void a_view_is_what_lies_in_an_operand(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  static const char *const names[] = {"aten.t.default", "aten.reshape.default"};
  for (int i = 0; i < 2; i++) h->ops[hs_op(h, names[i])].flags = AOT_OP_VIEW;
  hs_graph(h, AOT_GRAPH_JOINT);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(3, 5));
  hs_node(h, names[0]);
  hs_arg_value(h, x);
  const uint32_t t = hs_result_strided(h, AOT_F32, 2, DIMS(5, 3), DIMS(1, 5));
  for (int k = 0; k < 2; k++) {
    hs_node(h, names[1]);
    hs_arg_value(h, k ? x : t), hs_arg_ints(h, DIMS(15), 1);
    hs_output(h, hs_result(h, AOT_F32, 1, DIMS(15)));
  }
  const aot_snapshot_t *s = hs_finish(h);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  nc_costs_t c = costs_of(s, 1, 1);
  assert_int_equal(c.view_of[nodes[1].result_begin], 1);
  assert_int_equal(c.view_of[nodes[2].result_begin], 0);
  assert_int_equal(c.view_of[nodes[3].result_begin], 1);
  nc_deinit(&c);
  hs_destroy(h);
}

/* Nodes after it read its results. */
static void what_is_not_run_here_keeps_its_costs(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  h->ops[hs_op(h, "vendor.part")].flags = AOT_OP_VIEW;
  hs_graph(h, AOT_GRAPH_JOINT);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(4, 4)), y = unary(h, "vendor.part", x, 2, DIMS(4, 4));
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, y), hs_arg_value(h, x);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(4, 4)));
  const aot_snapshot_t *s = hs_finish(h);
  nc_costs_t c = costs_of(s, 1, 1);
  assert_int_equal(c.view_of[AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[1].result_begin], 1);
  assert_true(c.workspace[1] == 0 && c.fusion[1] == 0 && c.workspace[2] == 0);
  nc_deinit(&c);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_matrix_that_lies_apart_is_copied),         cmocka_unit_test(work_space_is_the_lowering_s_own),
      cmocka_unit_test(loops_are_shared_where_there_is_a_compiler), cmocka_unit_test(a_view_is_what_lies_in_an_operand),
      cmocka_unit_test(what_is_not_run_here_keeps_its_costs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
