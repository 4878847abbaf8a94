/* The interpreter on programs written by hand: results, views, freeing, regions, symbols, errors. */
#include "kit/graph/hand_snapshot.h"
#include "ref_exec.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static const custom_world_t no_kernels; /* no kernels but the reference ones */

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

static rf_program_t *load(hs_snapshot_t *h) {
  const aot_snapshot_t *s = hs_finish(h);
  rf_program_t *p = NULL;
  rf_error_t error;
  if (rf_load(s, s->nbytes, &no_kernels, &p, &error) != AOT_OK) fail_msg("%s", error.text);
  return p;
}

/* A dense tensor over the caller's memory. */
static aot_tensor_t dense(void *data, int32_t dtype, int32_t rank, const int64_t *sizes, int64_t *strides) {
  aot_tensor_t t = {.data = data, .dtype = dtype, .rank = rank, .sizes = sizes, .strides = strides};
  int64_t stride = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  t.nbytes = (uint64_t)stride * aot_dtype_size(dtype);
  return t;
}

static void run_ok(const rf_program_t *p, const aot_tensor_t *in, uint64_t n_in, const aot_tensor_t *out,
                   uint64_t n_out, const int64_t *symbols, uint64_t n_symbols, rf_stats_t *stats) {
  rf_error_t error;
  if (rf_run(p,
             &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                         .inputs = in,
                         .n_inputs = n_in,
                         .outputs = out,
                         .n_outputs = n_out,
                         .symbols = (int64_t *)(uintptr_t)symbols,
                         .n_symbols = n_symbols},
             NULL, stats, &error) != AOT_OK)
    fail_msg("%s", error.text);
}

/* y = relu(x^T @ x + 1): a view as operand, a number in a tensor's place */
static void test_runs_a_small_graph(void **state) {
  hs_snapshot_t *h = hs_create();
  float x[6] = {1, -2, 3, -4, 5, -6}, y[9] = {0};
  int64_t strides[2][2];
  aot_tensor_t in, out;
  rf_program_t *p;
  uint32_t vx, vt, vm, va;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  vx = hs_input(h, AOT_F32, 2, DIMS(2, 3));
  hs_node(h, "aten.t.default");
  hs_arg_value(h, vx);
  vt = hs_result_strided(h, AOT_F32, 2, DIMS(3, 2), DIMS(1, 3));
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, vt);
  hs_arg_value(h, vx);
  vm = hs_result(h, AOT_F32, 2, DIMS(3, 3));
  hs_node(h, "aten.add.Tensor");
  hs_arg_value(h, vm);
  hs_arg_int(h, 1);
  hs_arg_int(h, 1);
  va = hs_result(h, AOT_F32, 2, DIMS(3, 3));
  hs_node(h, "aten.relu.default");
  hs_arg_value(h, va);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(3, 3)));
  p = load(h);
  in = dense(x, AOT_F32, 2, DIMS(2, 3), strides[0]);
  out = dense(y, AOT_F32, 2, DIMS(3, 3), strides[1]);
  run_ok(p, &in, 1, &out, 1, NULL, 0, NULL);
  {
    const float expected[9] = {18, 0, 28, 0, 30, 0, 28, 0, 46};
    for (int k = 0; k < 9; k++) assert_float_equal(y[k], expected[k], 0);
  }
  assert_int_equal(rf_n_kernels(p), 3); /* the view is no kernel */
  rf_destroy(p);
  hs_destroy(h);
}

/* A chain of n exp nodes over 1000 floats holds two of them at a time, whatever n is; views cost nothing. */
static void test_frees_after_last_use(void **state) {
  hs_snapshot_t *h = hs_create();
  float *x = calloc(1000, sizeof *x), *y = calloc(1000, sizeof *y);
  int64_t strides[2][1];
  aot_tensor_t in, out;
  rf_program_t *p;
  rf_stats_t stats;
  uint32_t v;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  v = hs_input(h, AOT_F32, 1, DIMS(1000));
  for (int k = 0; k < 20; k++) {
    hs_node(h, "aten.tanh.default");
    hs_arg_value(h, v);
    v = hs_result(h, AOT_F32, 1, DIMS(1000));
    hs_node(h, "aten.view.default");
    hs_arg_value(h, v);
    hs_arg_ints(h, DIMS(10, 100), 2);
    v = hs_result(h, AOT_F32, 2, DIMS(10, 100));
    hs_node(h, "aten.view.default");
    hs_arg_value(h, v);
    hs_arg_ints(h, DIMS(-1), 1);
    v = hs_result(h, AOT_F32, 1, DIMS(1000));
  }
  hs_output(h, v);
  p = load(h);
  in = dense(x, AOT_F32, 1, DIMS(1000), strides[0]);
  out = dense(y, AOT_F32, 1, DIMS(1000), strides[1]);
  run_ok(p, &in, 1, &out, 1, NULL, 0, &stats);
  assert_int_equal(stats.peak_nbytes, 2 * 4000);
  rf_destroy(p);
  hs_destroy(h);
  free(x);
  free(y);
}

/* An output that a kernel makes goes straight to the caller's strided buffer; the same value twice is copied; None
 * is left. */
static void test_writes_strided_outputs(void **state) {
  hs_snapshot_t *h = hs_create();
  float x[4] = {1, 2, 3, 4}, y[8] = {0}, z[4] = {0};
  int64_t strides[2][2], wide[2] = {1, 4};
  aot_tensor_t in, out[3];
  rf_program_t *p;
  rf_stats_t stats;
  uint32_t vx, vy;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  vx = hs_input(h, AOT_F32, 2, DIMS(2, 2));
  hs_node(h, "aten.neg.default");
  hs_arg_value(h, vx);
  vy = hs_result(h, AOT_F32, 2, DIMS(2, 2));
  hs_output(h, vy);
  hs_output(h, AOT_NO_ID);
  hs_output(h, vy);
  p = load(h);
  in = dense(x, AOT_F32, 2, DIMS(2, 2), strides[0]);
  out[0] = dense(y, AOT_F32, 2, DIMS(2, 2), strides[1]);
  out[0].strides = wide;
  out[0].nbytes = sizeof y;
  out[1] = (aot_tensor_t){.data = NULL};
  out[2] = dense(z, AOT_F32, 2, DIMS(2, 2), strides[1]);
  run_ok(p, &in, 1, out, 3, NULL, 0, &stats);
  assert_float_equal(y[0], -1, 0);
  assert_float_equal(y[4], -2, 0);
  assert_float_equal(y[1], -3, 0);
  assert_float_equal(y[5], -4, 0);
  assert_float_equal(z[1], -2, 0);
  rf_destroy(p);
  hs_destroy(h);
}

/* Sizes from symbols: x[s, 2] viewed as [2 * s]. Three batch sizes, one load. */
static void test_symbolic_sizes(void **state) {
  hs_snapshot_t *h = hs_create();
  int64_t s = hs_symbol(h), twice = hs_expr(h, AOT_EXPR_MUL, s, 2, 0);
  uint32_t x, v;
  rf_program_t *p;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  x = hs_input(h, AOT_F64, 2, DIMS(s, 2));
  hs_node(h, "aten.view.default");
  hs_arg_value(h, x);
  hs_arg_ints(h, DIMS(twice), 1);
  v = hs_result(h, AOT_F64, 1, DIMS(twice));
  hs_node(h, "aten.sum.dim_IntList");
  hs_arg_value(h, v);
  hs_arg_ints(h, DIMS(0), 1);
  hs_arg_bool(h, 0);
  hs_arg_none(h);
  hs_output(h, hs_result(h, AOT_F64, 0, NULL));
  p = load(h);
  for (int64_t n = 0; n < 3; n++) {
    double data[4] = {1, 2, 3, 4}, sum = -1;
    int64_t strides[2], sizes[2] = {n, 2}, none[1];
    aot_tensor_t in = dense(data, AOT_F64, 2, sizes, strides), out = dense(&sum, AOT_F64, 0, NULL, none);
    run_ok(p, &in, 1, &out, 1, &n, 1, NULL);
    assert_float_equal(sum, n == 0 ? 0 : n == 1 ? 3 : 10, 0);
  }
  rf_destroy(p);
  hs_destroy(h);
}

/* A number read from a tensor becomes a dimension of what follows. */
static void test_data_dependent_size(void **state) {
  hs_snapshot_t *h = hs_create();
  int64_t u = hs_symbol(h), given = AOT_SYMBOL_UNKNOWN, n = 3, none[1], strides[1];
  double y[3] = {0};
  aot_tensor_t in, out;
  rf_program_t *p;
  uint32_t x, item;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  x = hs_input(h, AOT_I64, 0, NULL);
  hs_node(h, "aten._local_scalar_dense.default");
  hs_arg_value(h, x);
  item = hs_result_symint(h, u);
  hs_node(h, "aten.full.default");
  hs_arg_ints(h, DIMS(u), 1);
  hs_arg_value(h, item);
  hs_arg_none(h);
  hs_arg_none(h);
  hs_arg_none(h);
  hs_arg_none(h);
  hs_output(h, hs_result(h, AOT_F64, 1, DIMS(u)));
  p = load(h);
  in = dense(&n, AOT_I64, 0, NULL, none);
  out = dense(y, AOT_F64, 1, DIMS(3), strides);
  run_ok(p, &in, 1, &out, 1, &given, 1, NULL);
  assert_float_equal(y[2], 3, 0);
  rf_destroy(p);
  hs_destroy(h);
}

typedef struct given_output {
  aot_tensor_t tensor;
  int64_t sizes[2], strides[2], data[8];
  uint64_t n_calls;
} given_output_t;

/* As a host does: the port's type is i64[u, 1]. */
static aot_status_t give_output(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols,
                                uint64_t n_symbols, aot_tensor_t *out) {
  given_output_t *g = sink->head.self;
  if (output != 0 || n_symbols != 1 || symbols[0] > 8) return AOT_E_INVALID;
  g->sizes[0] = symbols[0];
  g->sizes[1] = 1;
  g->tensor = dense(g->data, AOT_I64, 2, g->sizes, g->strides);
  g->n_calls++;
  *out = g->tensor;
  return AOT_OK;
}

static hs_snapshot_t *nonzero_program(void) {
  hs_snapshot_t *h = hs_create();
  int64_t u = hs_symbol(h);
  uint32_t x;
  hs_graph(h, AOT_GRAPH_FORWARD);
  x = hs_input(h, AOT_F32, 1, DIMS(4));
  hs_node(h, "aten.nonzero.default");
  hs_arg_value(h, x);
  hs_output(h, hs_result(h, AOT_I64, 2, DIMS(u, 1)));
  return h;
}

/* An output whose size the run reports: the tensor is requested when the symbol is known, and the symbol is handed
 * back. */
static void test_open_output(void **state) {
  static const float data[3][4] = {{0, 1, 0, 2}, {0, 0, 0, 0}, {1, 1, 1, 1}};
  static const int64_t counts[3] = {2, 0, 4};
  hs_snapshot_t *h = nonzero_program();
  rf_program_t *p = load(h);
  (void)state;
  for (int k = 0; k < 3; k++) {
    float x[4];
    int64_t symbol = AOT_SYMBOL_UNKNOWN, strides[1];
    given_output_t given = {.n_calls = 0};
    aot_output_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &given}, .allocate = give_output};
    aot_tensor_t in, out = {.dtype = AOT_I64, .rank = AOT_RANK_OPEN};
    rf_error_t error;
    memcpy(x, data[k], sizeof x);
    in = dense(x, AOT_F32, 1, DIMS(4), strides);
    if (rf_run(p,
               &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                           .inputs = &in,
                           .n_inputs = 1,
                           .outputs = &out,
                           .n_outputs = 1,
                           .symbols = &symbol,
                           .n_symbols = 1,
                           .open = &sink},
               NULL, NULL, &error) != AOT_OK)
      fail_msg("%s", error.text);
    assert_int_equal(symbol, counts[k]);
    assert_int_equal(given.n_calls, 1);
    if (k == 0) assert_int_equal(given.data[1], 3);
  }
  rf_destroy(p);
  hs_destroy(h);
}

/* A number outside its symbol's range, and one that another size has reported already. */
static void test_told_sizes_are_checked(void **state) {
  hs_snapshot_t *h = nonzero_program();
  float x[4] = {1, 1, 0, 1};
  int64_t symbol = AOT_SYMBOL_UNKNOWN, strides[1], place[8], out_strides[2];
  aot_tensor_t in = dense(x, AOT_F32, 1, DIMS(4), strides), out = dense(place, AOT_I64, 2, DIMS(2, 1), out_strides);
  rf_error_t error;
  rf_program_t *p;
  (void)state;
  h->symbols[0].max = 2;
  p = load(h);
  assert_int_equal(rf_run(p,
                          &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                                      .inputs = &in,
                                      .n_inputs = 1,
                                      .outputs = &out,
                                      .n_outputs = 1,
                                      .symbols = &symbol,
                                      .n_symbols = 1},
                          NULL, NULL, &error),
                   AOT_E_RANGE);
  assert_non_null(strstr(error.text, "= 3, but the model was exported for"));
  assert_non_null(strstr(error.text, "in 0..2"));
  assert_int_not_equal(error.node, AOT_NO_ID);
  symbol = 2;
  assert_int_not_equal(rf_run(p,
                              &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                                          .inputs = &in,
                                          .n_inputs = 1,
                                          .outputs = &out,
                                          .n_outputs = 1,
                                          .symbols = &symbol,
                                          .n_symbols = 1},
                              NULL, NULL, &error),
                       AOT_OK);
  assert_non_null(strstr(error.text, "is declared [2,1], but the operator gives [3,1]"));
  rf_destroy(p);
  hs_destroy(h);
}

static void note_line(void *self, const char *text, uint32_t n, uint32_t node) {
  (void)node;
  strncat(self, text, n);
}

/* Prints come in order, up to the assertion that fails. */
static void test_effects_in_order(void **state) {
  static const char *const lines[] = {"one ", "two ", "three"};
  hs_snapshot_t *h = hs_create();
  char said[64];
  rf_printer_t printer = {said, note_line};
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  uint32_t x = hs_input(h, AOT_F32, 0, NULL);
  for (int k = 0; k < 3; k++) {
    hs_node(h, "aten._print.default");
    hs_arg_str(h, lines[k]);
    if (k != 1) continue;
    hs_node(h, "aten._assert_async.msg");
    hs_arg_value(h, x);
    hs_arg_str(h, "x must not be 0");
  }
  rf_program_t *p = load(h);
  for (int k = 0; k < 2; k++) {
    float number = (float)k;
    int64_t none[1];
    aot_tensor_t in = dense(&number, AOT_F32, 0, NULL, none);
    rf_error_t error;
    said[0] = 0;
    aot_status_t status =
        rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = &in, .n_inputs = 1}, &printer, NULL, &error);
    assert_int_equal(status, k ? AOT_OK : AOT_E_INVALID);
    assert_string_equal(said, k ? "one two three" : "one two ");
    if (!k) assert_non_null(strstr(error.text, "x must not be 0"));
  }
  rf_destroy(p);
  hs_destroy(h);
}

/* cond(pred, neg, double, [x]) inside a called region */
static void test_regions(void **state) {
  hs_snapshot_t *h = hs_create();
  uint32_t negative, twice, body, pred, x, y, vx, vp;
  rf_program_t *p;
  (void)state;
  negative = hs_graph(h, AOT_GRAPH_REGION);
  x = hs_input(h, AOT_F32, 1, DIMS(2));
  hs_node(h, "aten.neg.default");
  hs_arg_value(h, x);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(2)));
  twice = hs_graph(h, AOT_GRAPH_REGION);
  x = hs_input(h, AOT_F32, 1, DIMS(2));
  hs_node(h, "aten.mul.Tensor");
  hs_arg_value(h, x);
  hs_arg_float(h, 2);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(2)));
  body = hs_graph(h, AOT_GRAPH_REGION);
  pred = hs_input(h, AOT_BOOL, 0, NULL);
  x = hs_input(h, AOT_F32, 1, DIMS(2));
  hs_node(h, "higher_order.cond");
  hs_arg_value(h, pred);
  hs_arg_graph(h, negative);
  hs_arg_graph(h, twice);
  hs_arg_values(h, &x, 1);
  y = hs_result(h, AOT_F32, 1, DIMS(2));
  hs_output(h, y);
  hs_output(h, x); /* a region may return its operand */
  hs_graph(h, AOT_GRAPH_FORWARD);
  vp = hs_input(h, AOT_BOOL, 0, NULL);
  vx = hs_input(h, AOT_F32, 1, DIMS(2));
  hs_node(h, "higher_order.invoke_subgraph");
  hs_arg_graph(h, body);
  hs_arg_none(h);
  hs_arg_value(h, vp);
  hs_arg_value(h, vx);
  y = hs_result(h, AOT_F32, 1, DIMS(2));
  x = hs_result(h, AOT_F32, 1, DIMS(2));
  hs_node(h, "aten.sub.Tensor");
  hs_arg_value(h, y);
  hs_arg_value(h, x);
  hs_arg_int(h, 1);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(2)));
  p = load(h);
  for (uint8_t choice = 0; choice < 2; choice++) {
    float data[2] = {3, 5}, out_data[2];
    int64_t strides[3][1];
    aot_tensor_t in[2], out;
    in[0] = dense(&choice, AOT_BOOL, 0, NULL, strides[0]);
    in[1] = dense(data, AOT_F32, 1, DIMS(2), strides[1]);
    out = dense(out_data, AOT_F32, 1, DIMS(2), strides[2]);
    run_ok(p, in, 2, &out, 1, NULL, 0, NULL);
    assert_float_equal(out_data[1], choice ? -10 : 5, 0);
  }
  rf_destroy(p);
  hs_destroy(h);
}

/* split shares its operand's storage, and a view of a declared layout that the operand does not have is made in it */
static void test_views_follow_actual_strides(void **state) {
  hs_snapshot_t *h = hs_create();
  float x[6] = {0, 1, 2, 3, 4, 5}, y[2] = {0}, z[4] = {0};
  int64_t column_major[2] = {1, 2}, strides[2][2];
  aot_tensor_t in, out[2];
  rf_program_t *p;
  uint32_t vx, a;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  vx = hs_input(h, AOT_F32, 2, DIMS(2, 3)); /* declared row-major, given column-major */
  hs_node(h, "aten.split.Tensor");
  hs_arg_value(h, vx);
  hs_arg_int(h, 2);
  hs_arg_int(h, 1);
  a = hs_result_strided(h, AOT_F32, 2, DIMS(2, 2), DIMS(3, 1));
  hs_result_strided(h, AOT_F32, 2, DIMS(2, 1), DIMS(3, 1));
  hs_node(h, "aten.select.int");
  hs_arg_value(h, a);
  hs_arg_int(h, 0);
  hs_arg_int(h, 1);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(2)));
  hs_node(h, "aten.as_strided.default"); /* every other element of the declared storage */
  hs_arg_value(h, vx);
  hs_arg_ints(h, DIMS(3), 1);
  hs_arg_ints(h, DIMS(2), 1);
  hs_arg_none(h);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(3)));
  p = load(h);
  in = dense(x, AOT_F32, 2, DIMS(2, 3), strides[0]);
  in.strides = column_major; /* rows: 0 2 4, 1 3 5 */
  out[0] = dense(y, AOT_F32, 1, DIMS(2), strides[0]);
  out[1] = dense(z, AOT_F32, 1, DIMS(3), strides[1]);
  run_ok(p, &in, 1, out, 2, NULL, 0, NULL);
  assert_float_equal(y[0], 1, 0);
  assert_float_equal(y[1], 3, 0);
  assert_float_equal(z[0], 0, 0);
  assert_float_equal(z[1], 4, 0);
  assert_float_equal(z[2], 3, 0);
  rf_destroy(p);
  hs_destroy(h);
}

/* What lies around a row in its storage is not the row's: it need not be there. */
static void test_refuses_elements_of_others(void **state) {
  hs_snapshot_t *h = hs_create();
  float x[6] = {0, 1, 2, 3, 4, 5}, y[4];
  int64_t strides[2][2];
  aot_tensor_t in, out;
  rf_program_t *p;
  rf_error_t error;
  uint32_t vx, row;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  vx = hs_input(h, AOT_F32, 2, DIMS(2, 3));
  hs_node(h, "aten.select.int");
  hs_arg_value(h, vx);
  hs_arg_int(h, 0);
  hs_arg_int(h, 0);
  row = hs_result(h, AOT_F32, 1, DIMS(3));
  hs_node(h, "aten.as_strided.default");
  hs_arg_value(h, row);
  hs_arg_ints(h, DIMS(4), 1);
  hs_arg_ints(h, DIMS(1), 1);
  hs_arg_none(h);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(4)));
  p = load(h);
  in = dense(x, AOT_F32, 2, DIMS(2, 3), strides[0]);
  out = dense(y, AOT_F32, 1, DIMS(4), strides[1]);
  assert_int_equal(
      rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1},
             NULL, NULL, &error),
      AOT_E_INVALID);
  assert_non_null(strstr(error.text, "elements 0 to 3 of the storage"));
  rf_destroy(p);
  hs_destroy(h);
}

/* An index out of range names operator, index and bound, and the node; nothing leaks and the program still runs. */
static void test_error_names_the_place(void **state) {
  hs_snapshot_t *h = hs_create();
  float w[6] = {0, 1, 2, 3, 4, 5}, y[4];
  int64_t index[2] = {1, 9}, strides[3][2];
  aot_tensor_t in[2], out;
  rf_program_t *p;
  rf_error_t error;
  uint32_t vw, vi, node, v;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  vw = hs_input(h, AOT_F32, 2, DIMS(3, 2));
  vi = hs_input(h, AOT_I64, 1, DIMS(2));
  hs_node(h, "aten.neg.default");
  hs_arg_value(h, vw);
  v = hs_result(h, AOT_F32, 2, DIMS(3, 2));
  node = hs_node(h, "aten.embedding.default");
  hs_arg_value(h, v);
  hs_arg_value(h, vi);
  hs_arg_int(h, -1);
  hs_arg_bool(h, 0);
  hs_arg_bool(h, 0);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(2, 2)));
  p = load(h);
  in[0] = dense(w, AOT_F32, 2, DIMS(3, 2), strides[0]);
  in[1] = dense(index, AOT_I64, 1, DIMS(2), strides[1]);
  out = dense(y, AOT_F32, 2, DIMS(2, 2), strides[2]);
  assert_int_equal(
      rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = in, .n_inputs = 2, .outputs = &out, .n_outputs = 1},
             NULL, NULL, &error),
      AOT_E_RANGE);
  assert_string_equal(error.text, "aten.embedding.default: index 9 is out of range for dimension 0 of size 3");
  assert_int_equal(error.node, node);
  index[1] = 2;
  run_ok(p, in, 2, &out, 1, NULL, 0, NULL);
  assert_float_equal(y[3], -5, 0);
  rf_destroy(p);
  hs_destroy(h);
}

static void test_refuses_wrong_boundary(void **state) {
  hs_snapshot_t *h = hs_create();
  float x[3] = {1, 2, 3}, y[3];
  int64_t strides[2][1];
  aot_tensor_t in, out;
  rf_program_t *p;
  rf_error_t error;
  uint32_t vx;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  vx = hs_input(h, AOT_F32, 1, DIMS(3));
  hs_node(h, "aten.neg.default");
  hs_arg_value(h, vx);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(3)));
  p = load(h);
  in = dense(x, AOT_F32, 1, DIMS(3), strides[0]);
  out = dense(y, AOT_F32, 1, DIMS(3), strides[1]);
  assert_int_equal(
      rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 2},
             NULL, NULL, &error),
      AOT_E_INVALID);
  assert_int_equal(
      rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_BACKWARD, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1},
             NULL, NULL, &error),
      AOT_E_NOT_FOUND);
  in.nbytes = 8; /* storage too small for three floats */
  assert_int_equal(
      rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1},
             NULL, NULL, &error),
      AOT_E_INVALID);
  in = dense(x, AOT_F32, 1, DIMS(2), strides[0]);
  assert_int_equal(
      rf_run(p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1},
             NULL, NULL, &error),
      AOT_E_INVALID);
  rf_destroy(p);
  hs_destroy(h);
}

static void test_query_says_why(void **state) {
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *s;
  rf_error_t error;
  uint32_t x;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  x = hs_input(h, AOT_F32, 1, DIMS(3));
  for (int p = 0; p < 2; p++) {
    hs_node(h, "aten.native_dropout.default");
    hs_arg_value(h, x);
    hs_arg_float(h, p * 0.5);
    hs_arg_bool(h, 1);
    hs_result(h, AOT_F32, 1, DIMS(3));
    hs_result(h, AOT_BOOL, 1, DIMS(3));
  }
  hs_node(h, "mylib.secret.default");
  hs_arg_value(h, x);
  hs_result(h, AOT_F32, 1, DIMS(3));
  hs_node(h, "aten.relu.default");
  hs_arg_value(h, x);
  hs_result(h, AOT_C64, 1, DIMS(3));
  s = hs_finish(h);
  assert_null(rf_refuse(s, 1, &no_kernels, &error)); /* p = 0 draws nothing */
  assert_non_null(strstr(rf_refuse(s, 2, &no_kernels, &error), "random"));
  assert_non_null(strstr(rf_refuse(s, 3, &no_kernels, &error), "no kernel for"));
  assert_non_null(strstr(rf_refuse(s, 4, &no_kernels, &error), "complex"));
  hs_destroy(h);
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_runs_a_small_graph),          cmocka_unit_test(test_frees_after_last_use),
      cmocka_unit_test(test_writes_strided_outputs),      cmocka_unit_test(test_symbolic_sizes),
      cmocka_unit_test(test_open_output),                 cmocka_unit_test(test_told_sizes_are_checked),
      cmocka_unit_test(test_effects_in_order),
      cmocka_unit_test(test_data_dependent_size),         cmocka_unit_test(test_regions),
      cmocka_unit_test(test_views_follow_actual_strides), cmocka_unit_test(test_refuses_elements_of_others),
      cmocka_unit_test(test_error_names_the_place),
      cmocka_unit_test(test_refuses_wrong_boundary),      cmocka_unit_test(test_query_says_why),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
