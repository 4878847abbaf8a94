/* The neutral model of costs and its rows: views touch nothing and reach no further than what they are of, products
 * and windows have their work; at hints and at sizes. */
#include "kit/model/loop_times.h"
#include "kit/model/node_costs.h"
#include "kit/graph/hand_snapshot.h"

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

static aot_status_t tell(const aot_snapshot_t *s, uint32_t graph, const int64_t *symbols, uint64_t n,
                         const aot_cost_sink_t *sink) {
  int64_t *dims;
  nc_costs_t costs = {0};
  aot_status_t status = nc_dims(s, symbols, n, &dims);
  if (status == AOT_OK) {
    assert_int_equal(nc_init(&costs, s, dims), 0);
    status = nc_put(&costs, s, graph, dims, sink);
  }
  nc_deinit(&costs);
  free(dims);
  return status;
}

static rows_t costs(const aot_snapshot_t *s, uint32_t graph, const int64_t *symbols, uint64_t n) {
  rows_t r = {.n = 0};
  const aot_cost_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &r}, .put = put};
  assert_int_equal(tell(s, graph, symbols, n, &sink), AOT_OK);
  return r;
}

/* x[n, 4] @ w[4, 8], relu and tanh of it, its transpose; then a second graph with one node */
static const aot_snapshot_t *build(hs_snapshot_t *h) {
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
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *s = build(h);
  const rows_t all = costs(s, AOT_NO_ID, NULL, 0);
  assert_int_equal(all.n, 5);
  for (uint32_t i = 0; i < all.n; i++) {
    assert_int_equal(all.at[i].node.id, i + 1);
    assert_true(all.at[i].fusion == 0 && all.at[i].workspace_nbytes == 0);
  }
  assert_int_equal(all.at[0].flops, 2 * 2 * 4 * 8);
  assert_int_equal(all.at[0].read_nbytes, 4 * (2 * 4 + 4 * 8));
  assert_int_equal(all.at[0].written_nbytes, 4 * 2 * 8);
  assert_true(all.view_of[2] == 1 && all.at[2].read_nbytes == 0 && all.at[2].written_nbytes == 0);
  assert_int_equal(costs(s, 2, NULL, 0).n, 1);
  const int64_t n = 10;
  const rows_t r = costs(s, 1, &n, 1);
  assert_true(r.n == 4 && r.at[0].flops == 2 * 10 * 4 * 8 && r.at[3].written_nbytes == 4 * 10 * 8);
  hs_destroy(h);
}

/* An expanded row, and its reshape, which has a place for each element; a slice of the same row. */
static void what_reaches_further_than_its_storage_is_a_copy(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  static const char *const names[] = {"aten.expand.default", "aten.reshape.default", "aten.slice.Tensor"};
  for (int i = 0; i < 3; i++) h->ops[hs_op(h, names[i])].flags = AOT_OP_VIEW;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(1, 4));
  hs_node(h, names[0]);
  hs_arg_value(h, x);
  const uint32_t wide = hs_result_strided(h, AOT_F32, 2, DIMS(8, 4), DIMS(0, 1));
  hs_node(h, names[1]);
  hs_arg_value(h, wide);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(32)));
  hs_node(h, names[2]);
  hs_arg_value(h, x);
  hs_output(h, hs_result_strided(h, AOT_F32, 2, DIMS(1, 2), DIMS(4, 1)));
  const rows_t r = costs(hs_finish(h), AOT_NO_ID, NULL, 0);
  assert_true(r.view_of[0] == 1 && r.view_of[1] == 0 && r.view_of[2] == 1);
  assert_int_equal(r.at[1].written_nbytes, 128);
  hs_destroy(h);
}

/* A convolution, its backward, matrices of a batch, and attention whose heads are as many as its batch. */
static void windows_are_told_from_products(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  h->ops[hs_op(h, "vendor.heavy")].flags = AOT_OP_HEAVY;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 4, DIMS(2, 3, 8, 8)), w = hs_input(h, AOT_F32, 4, DIMS(5, 3, 3, 3));
  const uint32_t g = hs_input(h, AOT_F32, 4, DIMS(2, 5, 8, 8));
  const uint32_t a = hs_input(h, AOT_F32, 3, DIMS(4, 4, 6)), b = hs_input(h, AOT_F32, 3, DIMS(4, 6, 7));
  const uint32_t q = hs_input(h, AOT_F32, 4, DIMS(4, 4, 9, 8));
  hs_node(h, "vendor.heavy");
  hs_arg_value(h, x), hs_arg_value(h, w);
  hs_output(h, hs_result(h, AOT_F32, 4, DIMS(2, 5, 8, 8)));
  hs_node(h, "vendor.heavy");
  hs_arg_value(h, g), hs_arg_value(h, x), hs_arg_value(h, w);
  hs_output(h, hs_result(h, AOT_F32, 4, DIMS(2, 3, 8, 8))), hs_output(h, hs_result(h, AOT_F32, 4, DIMS(5, 3, 3, 3)));
  hs_node(h, "vendor.heavy");
  hs_arg_value(h, a), hs_arg_value(h, b);
  hs_output(h, hs_result(h, AOT_F32, 3, DIMS(4, 4, 7)));
  hs_node(h, "vendor.heavy");
  hs_arg_value(h, q), hs_arg_value(h, q);
  hs_output(h, hs_result(h, AOT_F32, 4, DIMS(4, 4, 9, 8)));
  const rows_t r = costs(hs_finish(h), AOT_NO_ID, NULL, 0);
  const uint64_t window = 2 * (2 * 5 * 8 * 8) * (3 * 3 * 3);
  assert_int_equal(r.at[0].flops, window);
  assert_int_equal(r.at[1].flops, 2 * window);
  assert_int_equal(r.at[2].flops, 2 * 4 * 4 * 6 * 7);
  assert_true(r.at[3].flops > 2 * 16 * 9 * 8 * 8 && r.at[3].flops < 2 * 16 * 9 * 8 * 9 + 1);
  hs_destroy(h);
}

static aot_status_t refuse(const aot_cost_sink_t *sink, const aot_node_cost_t *cost) {
  (void)sink, (void)cost;
  return AOT_E_CANCELLED;
}

static void who_asks_may_stop(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  const aot_cost_sink_t sink = {.head = {.struct_size = sizeof sink}, .put = refuse};
  const int64_t none = 0;
  const aot_snapshot_t *s = build(h);
  hs_symbol(h);
  assert_int_equal(tell(s, AOT_NO_ID, NULL, 0, &sink), AOT_E_CANCELLED);
  s = hs_finish(h); /* of two symbols now */
  assert_int_equal(tell(s, AOT_NO_ID, &none, 1, &sink), AOT_E_INVALID);
  hs_destroy(h);
}

static void a_node_takes_as_long_as_its_moves_or_its_work(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *s = build(h);
  const nc_rates_t slow_memory = {.bytes = 0.5, .halves = 1, .singles = 1e3, .doubles = 1, .node_ns = 10};
  const nc_rates_t slow_work = {.bytes = 1e3, .halves = 1e3, .singles = 0.25, .doubles = 1e3, .node_ns = 20};
  nc_costs_t costs = {0};
  int64_t *dims;
  assert_int_equal(nc_dims(s, NULL, 0, &dims), AOT_OK);
  assert_int_equal(nc_init(&costs, s, dims), 0);
  nc_time_nodes(&costs, s, dims, &slow_memory);
  assert_int_equal(costs.nanoseconds[1], 1 + 10 + 2 * (32 + 128 + 64)); /* x, w, y */
  assert_int_equal(costs.nanoseconds[2], 1 + 10 + 2 * (64 + 64));
  assert_int_equal(costs.nanoseconds[3], 0); /* a view */
  nc_time_nodes(&costs, s, dims, &slow_work);
  assert_int_equal(costs.nanoseconds[1], 1 + 20 + 4 * costs.flops[1]);
  assert_true(costs.flops[1] >= 64);
  nc_deinit(&costs);
  free(dims);
  hs_destroy(h);
}

/* relu and tanh as one loop: tanh reads what relu has in a register; relu's result is also read as a view. */
static void a_loop_takes_what_reaches_memory(void **state) {
  (void)state;
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *s = build(h);
  nc_costs_t costs = {0};
  int64_t *dims;
  assert_int_equal(nc_dims(s, NULL, 0, &dims), AOT_OK);
  assert_int_equal(nc_init(&costs, s, dims), 0);
  for (uint32_t n = 1; n <= 4; n++) costs.nanoseconds[n] = n == 3 ? 0 : 1001;
  assert_int_equal(nc_time_loops(&costs, s, 1, dims), 0); /* nothing says that they are a loop */
  assert_int_equal(costs.nanoseconds[4], 1001);
  costs.max_fused = 8;
  costs.fusion[2] = costs.fusion[4] = 7;
  assert_int_equal(nc_time_loops(&costs, s, 1, dims), 0);
  assert_int_equal(costs.nanoseconds[1], 1001);
  assert_int_equal(costs.nanoseconds[2], 1001); /* y is read, and the result is an output's memory */
  assert_int_equal(costs.nanoseconds[3], 0);
  assert_int_equal(costs.nanoseconds[4], 501); /* its result alone */
  costs.fusion[4] = 8;
  costs.nanoseconds[4] = 1001;
  assert_int_equal(nc_time_loops(&costs, s, 1, dims), 0); /* other loops */
  assert_int_equal(costs.nanoseconds[4], 1001);
  nc_deinit(&costs);
  free(dims);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_node_takes_as_long_as_its_moves_or_its_work),
      cmocka_unit_test(a_loop_takes_what_reaches_memory),
      cmocka_unit_test(every_node_has_its_row),
      cmocka_unit_test(what_reaches_further_than_its_storage_is_a_copy),
      cmocka_unit_test(windows_are_told_from_products),
      cmocka_unit_test(who_asks_may_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
