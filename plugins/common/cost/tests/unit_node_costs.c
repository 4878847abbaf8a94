/* Costs of nodes: views touch nothing, pointwise nodes of one size share a number, products have their work; at
 * hints and at sizes. */
#include "common/cost/node_costs.h"
#include "common/snapshot/hand_snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

typedef struct rows {
  aot_node_cost_t at[16];
  uint32_t view_of[16]; /* of the first result */
  uint32_t n;
} rows_t;

static aot_status_t put(const aot_cost_sink_t *sink, const aot_node_cost_t *cost) {
  rows_t *r = sink->head.self;
  r->view_of[r->n] = cost->n_results ? cost->view_of[0] : 0;
  r->at[r->n++] = *cost;
  return AOT_OK;
}

static rows_t costs(const aot_snapshot_t *s, uint32_t graph, const int64_t *symbols, uint64_t n, nc_machine_t machine) {
  rows_t r = {.n = 0};
  const aot_cost_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &r}, .put = put};
  assert_int_equal(nc_node_costs(s, graph, symbols, n, machine, &sink), AOT_OK);
  return r;
}

/* x[n, 4] @ w[4, 8], relu and tanh of it, its transpose; then a second graph with one node */
static const aot_snapshot_t *build(hand_snapshot_t *h) {
  const int64_t n = hs_symbol(h);
  h->symbols[0].hint = 2;
  h->ops[hs_op(h, "aten.mm.default")].flags = AOT_OP_HEAVY;
  h->ops[hs_op(h, "aten.relu.default")].flags = h->ops[hs_op(h, "aten.tanh.default")].flags = AOT_OP_POINTWISE;
  h->ops[hs_op(h, "aten.t.default")].flags = AOT_OP_VIEW;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(n, 4)), w = hs_input(h, AOT_F32, 2, DIMS(4, 8));
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, x), hs_arg_value(h, w);
  const uint32_t y = hs_result(h, AOT_F32, 2, DIMS(n, 8));
  hs_node(h, "aten.relu.default");
  hs_arg_value(h, y);
  const uint32_t r = hs_result(h, AOT_F32, 2, DIMS(n, 8));
  hs_node(h, "aten.t.default");
  hs_arg_value(h, r);
  hs_output(h, hs_result_strided(h, AOT_F32, 2, DIMS(8, n), DIMS(1, 8)));
  hs_node(h, "aten.tanh.default");
  hs_arg_value(h, r);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(n, 8)));
  hs_graph(h, AOT_GRAPH_BACKWARD);
  const uint32_t t = hs_input(h, AOT_F32, 2, DIMS(n, 8));
  hs_node(h, "aten.relu.default");
  hs_arg_value(h, t);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(n, 8)));
  return hs_finish(h);
}

static void every_node_has_its_row(void **state) {
  (void)state;
  hand_snapshot_t *h = hs_create();
  const aot_snapshot_t *s = build(h);
  const rows_t all = costs(s, AOT_NO_ID, NULL, 0, (nc_machine_t){.fuses = 1, .has_workspace = 1});
  assert_int_equal(all.n, 5);
  for (uint32_t i = 0; i < all.n; i++) assert_int_equal(all.at[i].node.id, i + 1);
  assert_int_equal(all.at[0].flops, 2 * 2 * 4 * 8);
  assert_int_equal(all.at[0].read_nbytes, 4 * (2 * 4 + 4 * 8));
  assert_int_equal(all.at[0].written_nbytes, 4 * 2 * 8);
  assert_true(all.at[0].fusion == 0 && all.at[1].fusion != 0 && all.at[3].fusion == all.at[1].fusion);
  assert_true(all.view_of[2] == 1 && all.at[2].read_nbytes == 0 && all.at[2].written_nbytes == 0);
  assert_int_equal(costs(s, 2, NULL, 0, (nc_machine_t){0}).n, 1);
  hs_destroy(h);
}

static void sizes_count_and_a_machine_without_loops_has_none(void **state) {
  (void)state;
  hand_snapshot_t *h = hs_create();
  const aot_snapshot_t *s = build(h);
  const int64_t n = 10;
  const rows_t r = costs(s, 1, &n, 1, (nc_machine_t){0});
  assert_true(r.n == 4 && r.at[0].flops == 2 * 10 * 4 * 8 && r.at[3].written_nbytes == 4 * 10 * 8 &&
              r.at[1].fusion == 0);
  hs_destroy(h);
}

static void a_matrix_that_lies_apart_takes_work_space(void **state) {
  (void)state;
  hand_snapshot_t *h = hs_create();
  h->ops[hs_op(h, "aten.mm.default")].flags = AOT_OP_HEAVY;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(4, 4));
  hs_node(h, "aten.relu.default");
  hs_arg_value(h, x);
  const uint32_t apart = hs_result_strided(h, AOT_F32, 2, DIMS(4, 4), DIMS(16, 2));
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, apart), hs_arg_value(h, x);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(4, 4)));
  const aot_snapshot_t *s = hs_finish(h);
  assert_true(costs(s, AOT_NO_ID, NULL, 0, (nc_machine_t){.has_workspace = 1}).at[1].workspace_nbytes == 64);
  assert_true(costs(s, AOT_NO_ID, NULL, 0, (nc_machine_t){0}).at[1].workspace_nbytes == 0);
  hs_destroy(h);
}

static aot_status_t refuse(const aot_cost_sink_t *sink, const aot_node_cost_t *cost) {
  (void)sink, (void)cost;
  return AOT_E_CANCELLED;
}

static void who_asks_may_stop(void **state) {
  (void)state;
  hand_snapshot_t *h = hs_create();
  const aot_cost_sink_t sink = {.head = {.struct_size = sizeof sink}, .put = refuse};
  const int64_t none = 0;
  const aot_snapshot_t *s = build(h);
  hs_symbol(h);
  assert_int_equal(nc_node_costs(s, AOT_NO_ID, NULL, 0, (nc_machine_t){0}, &sink), AOT_E_CANCELLED);
  s = hs_finish(h); /* of two symbols now */
  assert_int_equal(nc_node_costs(s, AOT_NO_ID, &none, 1, (nc_machine_t){0}, &sink), AOT_E_INVALID);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_node_has_its_row),
      cmocka_unit_test(sizes_count_and_a_machine_without_loops_has_none),
      cmocka_unit_test(a_matrix_that_lies_apart_takes_work_space),
      cmocka_unit_test(who_asks_may_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
