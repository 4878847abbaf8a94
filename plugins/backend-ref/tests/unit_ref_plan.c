/* A rehearsal takes what a run takes: the peak of its rows is the peak that runs measure, and no kernel has run. */
#include "kit/graph/hand_snapshot.h"
#include "kit/graph/snap_check.h"
#include "ref_exec.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static const custom_world_t no_kernels;

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

static uint64_t peak_of_own(const aot_memory_plan_t *p) {
  uint64_t most = 0;
  for (uint64_t t = 0; t < p->n_steps; t++) {
    uint64_t now = 0;
    for (uint64_t i = 0; i < p->n_buffers; i++) {
      const aot_memory_buffer_t *b = &p->buffers[i];
      if (b->kind <= AOT_MEMORY_SCRATCH && b->first <= t && t <= b->last) now += b->nbytes;
    }
    if (now > most) most = now;
  }
  return most;
}

static aot_tensor_t dense(float *data, int64_t n, const int64_t *sizes, const int64_t *strides, int32_t rank) {
  return (aot_tensor_t){
      .data = data, .nbytes = (uint64_t)n * 4, .dtype = AOT_F32, .rank = rank, .sizes = sizes, .strides = strides};
}

/* Views, a transposed output that must be copied, one computed in its place, unused values; both branches
 * of a cond. */
static void build(hs_snapshot_t *h) {
  hs_graph(h, AOT_GRAPH_FORWARD);
  uint32_t v = hs_input(h, AOT_F32, 2, DIMS(30, 40));
  for (int k = 0; k < 4; k++) {
    hs_node(h, k % 2 ? "aten.tanh.default" : "aten.exp.default");
    hs_arg_value(h, v);
    v = hs_result(h, AOT_F32, 2, DIMS(30, 40));
    hs_node(h, "aten.neg.default"); /* unread */
    hs_arg_value(h, v);
    hs_result(h, AOT_F32, 2, DIMS(30, 40));
  }
  hs_node(h, "aten.t.default");
  hs_arg_value(h, v);
  const uint32_t t = hs_result_strided(h, AOT_F32, 2, DIMS(40, 30), DIMS(1, 40));
  hs_node(h, "aten.relu.default");
  hs_arg_value(h, v);
  const uint32_t r = hs_result(h, AOT_F32, 2, DIMS(30, 40));
  hs_output(h, t), hs_output(h, r);
}

static void the_rows_peak_where_a_run_does(void **state) {
  hs_snapshot_t *h = hs_create();
  float *x = calloc(1200, 4), *y = calloc(1200, 4), *z = calloc(1200, 4);
  const int64_t sizes[] = {30, 40}, strides[] = {40, 1}, turned[] = {40, 30}, one_forty[] = {1, 40};
  mr_rows_t rows = {0};
  rf_program_t *p;
  rf_stats_t stats;
  rf_error_t e;
  (void)state;
  build(h);
  const aot_snapshot_t *s = hs_finish(h);
  assert_int_equal(rf_load(s, s->nbytes, &no_kernels, &p, &e), AOT_OK);
  if (rf_plan(p, NULL, 0, &rows, &e) != AOT_OK) fail_msg("%s", e.text);
  const aot_tensor_t in = dense(x, 1200, sizes, strides, 2),
                     out[] = {dense(y, 1200, turned, one_forty, 2), dense(z, 1200, sizes, strides, 2)};
  assert_int_equal(
      rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = &in, .n_inputs = 1, .outputs = out, .n_outputs = 2},
             NULL, &stats, &e),
      AOT_OK);
  assert_int_equal(peak_of_own(&rows.plan), stats.peak_nbytes);
  assert_int_equal(stats.peak_nbytes, 2 * 4800);
  assert_true(rows.plan.arena_nbytes == 0 && rows.plan.n_steps == 10);
  /* at the end: the value whose view is copied out, input, both outputs */
  assert_int_equal(rows.plan.peak_nbytes, 4 * 4800);
  rf_destroy(p);
  mr_deinit(&rows);
  hs_destroy(h);
  free(x), free(y), free(z);
}

/* cond(p, yes, no, [x]): the yes branch holds three at a time, the other one; nothing knows which is used. */
static void both_branches_are_rehearsed(void **state) {
  hs_snapshot_t *h = hs_create();
  mr_rows_t rows = {0};
  rf_program_t *p;
  rf_error_t e;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 1, DIMS(100)), c = hs_input(h, AOT_BOOL, 0, DIMS(0));
  hs_node(h, "higher_order.cond");
  hs_arg_value(h, c), hs_arg_graph(h, 2), hs_arg_graph(h, 3), hs_arg_values(h, (uint32_t[]){x}, 1);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(100)));
  for (int branch = 0; branch < 2; branch++) {
    hs_graph(h, AOT_GRAPH_REGION);
    uint32_t v = hs_input(h, AOT_F32, 1, DIMS(100));
    hs_node(h, "aten.exp.default");
    hs_arg_value(h, v);
    uint32_t a = hs_result(h, AOT_F32, 1, DIMS(100));
    if (!branch) {
      hs_node(h, "aten.neg.default");
      hs_arg_value(h, a);
      const uint32_t b = hs_result(h, AOT_F32, 1, DIMS(100));
      hs_node(h, "aten.mul.Tensor");
      hs_arg_value(h, a), hs_arg_value(h, b);
      a = hs_result(h, AOT_F32, 1, DIMS(100));
    }
    hs_output(h, a);
  }
  const aot_snapshot_t *s = hs_finish(h);
  assert_int_equal(rf_load(s, s->nbytes, &no_kernels, &p, &e), AOT_OK);
  if (rf_plan(p, NULL, 0, &rows, &e) != AOT_OK) fail_msg("%s", e.text);
  assert_int_equal(rows.plan.n_steps, 1 + 3 + 1);
  assert_int_equal(peak_of_own(&rows.plan), 3 * 400);
  rf_destroy(p);
  mr_deinit(&rows);
  hs_destroy(h);
}

static void what_only_a_run_tells_is_refused(void **state) {
  hs_snapshot_t *h = hs_create();
  mr_rows_t rows = {0};
  rf_program_t *p;
  rf_error_t e;
  (void)state;
  const int64_t n = hs_symbol(h), unknown = SN_NO_VALUE;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 1, DIMS(100));
  hs_node(h, "aten.nonzero.default");
  hs_arg_value(h, x);
  hs_output(h, hs_result_strided(h, AOT_I64, 2, DIMS(n, 1), DIMS(1, 1)));
  const aot_snapshot_t *s = hs_finish(h);
  assert_int_equal(rf_load(s, s->nbytes, &no_kernels, &p, &e), AOT_OK);
  assert_true(rf_plan(p, &unknown, 1, &rows, &e) != AOT_OK);
  rf_destroy(p);
  mr_deinit(&rows);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_rows_peak_where_a_run_does),
                                     cmocka_unit_test(both_branches_are_rehearsed),
                                     cmocka_unit_test(what_only_a_run_tells_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
