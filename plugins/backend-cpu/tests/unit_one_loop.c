/* What must be one generated loop, and that it computes what it should: the two of docs/LOOPS.md, and the least of
 * their kind. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "exec.h"

static const custom_world_t no_kernels; /* no kernels but the reference ones */
enum { ROWS = 6, WIDTH = 40 };
#define DIMS(...) ((int64_t[]){__VA_ARGS__})

static aot_tensor_t tensor(void *data, int32_t dtype, int32_t rank, const int64_t *sizes) {
  static const int64_t strides[3] = {ROWS / 2 * WIDTH, WIDTH, 1};
  uint64_t n = dtype == AOT_I64 ? 8 : 4;
  for (int32_t d = 0; d < rank; d++) n *= (uint64_t)sizes[d];
  return (aot_tensor_t){
      .data = data, .nbytes = n, .dtype = dtype, .rank = rank, .sizes = sizes, .strides = strides + 3 - rank};
}

static void run(hs_snapshot_t *h, aot_tensor_t *in, uint32_t n_in, aot_tensor_t *out, uint32_t n_out) {
  bc_cache_t cache;
  bc_program_t *program;
  lw_error_t error = {.node = AOT_NO_ID}, warning = {.node = AOT_NO_ID};
  const hc_run_t call = {.kind = AOT_GRAPH_FORWARD, .inputs = in, .n_inputs = n_in, .outputs = out, .n_outputs = n_out};
  assert_int_equal(bc_cache_init(&cache, NULL, "cc", &error), AOT_OK);
  if (bc_program_create(hs_finish(h), &no_kernels, &cache, 2, &program, &warning, &error) != AOT_OK ||
      bc_program_run(program, &call, &error) != AOT_OK)
    fail_msg("%s", error.text);
  assert_int_equal(bc_program_stats(program).n_fallback, 0);
  assert_int_equal(bc_program_stats(program).n_groups, 1);
  bc_program_destroy(program);
  bc_cache_deinit(&cache);
  hs_destroy(h);
}

/* Neither reads what the other gives: they read the same scores, each by a view of its own where these have other
 * sizes. */
static void check_loss(int has_views) {
  hs_snapshot_t *h = hs_create();
  const int32_t rank = has_views ? 3 : 2;
  const int64_t *sizes = has_views ? DIMS(2, ROWS / 2, WIDTH) : DIMS(ROWS, WIDTH);
  hs_graph(h, AOT_GRAPH_FORWARD);
  uint32_t x = hs_input(h, AOT_F32, rank, sizes), t = hs_input(h, AOT_I64, 1, DIMS(ROWS)),
           g = hs_input(h, AOT_F32, 0, NULL);
  uint32_t seen[] = {x, x};
  for (int k = 0; k < 2 && has_views; k++) {
    hs_node(h, "aten.view.default");
    hs_arg_value(h, x), hs_arg_ints(h, DIMS(ROWS, WIDTH), 2);
    seen[k] = hs_result(h, AOT_F32, 2, DIMS(ROWS, WIDTH));
  }
  hs_node(h, "aten.cross_entropy_loss.default");
  hs_arg_value(h, seen[0]), hs_arg_value(h, t), hs_arg_none(h), hs_arg_int(h, 1), hs_arg_int(h, -100),
      hs_arg_float(h, 0);
  hs_output(h, hs_result(h, AOT_F32, 0, NULL));
  hs_node(h, "aot.cross_entropy_loss_backward.default");
  hs_arg_value(h, g), hs_arg_value(h, seen[1]), hs_arg_value(h, t), hs_arg_none(h), hs_arg_int(h, 1),
      hs_arg_int(h, -100), hs_arg_float(h, 0);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(ROWS, WIDTH)));

  static float scores[ROWS * WIDTH], gradient[ROWS * WIDTH];
  float one = 1, loss;
  int64_t classes[ROWS] = {3, -100, 0, 39, 5, 5};
  double expected = 0, expected_gradient[ROWS * WIDTH];
  naive_random(scores, ROWS * WIDTH, 1);
  for (int r = 0; r < ROWS; r++) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += exp(scores[r * WIDTH + i]);
    if (classes[r] >= 0) expected += (log(sum) - scores[r * WIDTH + classes[r]]) / (ROWS - 1);
    for (int i = 0; i < WIDTH; i++)
      expected_gradient[r * WIDTH + i] =
          classes[r] < 0 ? 0 : (exp(scores[r * WIDTH + i]) / sum - (i == classes[r])) / (ROWS - 1);
  }
  aot_tensor_t in[] = {tensor(scores, AOT_F32, rank, sizes), tensor(classes, AOT_I64, 1, DIMS(ROWS)),
                       tensor(&one, AOT_F32, 0, NULL)};
  aot_tensor_t out[] = {tensor(&loss, AOT_F32, 0, NULL), tensor(gradient, AOT_F32, 2, DIMS(ROWS, WIDTH))};
  run(h, in, 3, out, 2);
  assert_close(&loss, &expected, 1);
  assert_close(gradient, expected_gradient, ROWS * WIDTH);
}

static void a_loss_and_its_derivative(void **state) {
  (void)state;
  check_loss(0);
}
static void a_loss_and_its_derivative_by_views(void **state) {
  (void)state;
  check_loss(1);
}

/* Of layer norm, with weight and bias; what is added to the input's gradient is in the same loop. */
static void derivatives_of_layer_norm(void **state) {
  hs_snapshot_t *h = hs_create();
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  uint32_t g = hs_input(h, AOT_F32, 2, DIMS(ROWS, WIDTH)), x = hs_input(h, AOT_F32, 2, DIMS(ROWS, WIDTH)),
           w = hs_input(h, AOT_F32, 1, DIMS(WIDTH));
  hs_node(h, "aot.layer_norm_backward.default");
  hs_arg_value(h, g), hs_arg_value(h, x), hs_arg_ints(h, DIMS(WIDTH), 1), hs_arg_value(h, w), hs_arg_value(h, w),
      hs_arg_float(h, 1e-5);
  uint32_t gx = hs_result(h, AOT_F32, 2, DIMS(ROWS, WIDTH)), gw = hs_result(h, AOT_F32, 1, DIMS(WIDTH)),
           gb = hs_result(h, AOT_F32, 1, DIMS(WIDTH));
  hs_node(h, "aten.add.Tensor");
  hs_arg_value(h, gx), hs_arg_value(h, g), hs_arg_int(h, 1);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(ROWS, WIDTH)));
  hs_output(h, gw);
  hs_output(h, gb);

  static float data[3][ROWS * WIDTH], sums[2][WIDTH];
  double expected[ROWS * WIDTH], weight[WIDTH] = {0}, bias[WIDTH] = {0};
  for (uint32_t k = 0; k < 3; k++) naive_random(data[k], ROWS * WIDTH, k + 1);
  for (int r = 0; r < ROWS; r++) {
    const float *gr = data[0] + r * WIDTH, *xr = data[1] + r * WIDTH, *wr = data[2];
    double mean = 0, variance = 0, sum = 0, sum_h = 0;
    for (int i = 0; i < WIDTH; i++) mean += xr[i] / (double)WIDTH;
    for (int i = 0; i < WIDTH; i++) variance += (xr[i] - mean) * (xr[i] - mean) / WIDTH;
    const double rstd = 1 / sqrt(variance + 1e-5);
    for (int i = 0; i < WIDTH; i++) {
      const double xh = (xr[i] - mean) * rstd;
      sum += (double)gr[i] * wr[i];
      sum_h += (double)gr[i] * wr[i] * xh;
      weight[i] += gr[i] * xh;
      bias[i] += gr[i];
    }
    for (int i = 0; i < WIDTH; i++)
      expected[r * WIDTH + i] =
          gr[i] + rstd * ((double)gr[i] * wr[i] - sum / WIDTH - (xr[i] - mean) * rstd * sum_h / WIDTH);
  }
  aot_tensor_t in[] = {tensor(data[0], AOT_F32, 2, DIMS(ROWS, WIDTH)), tensor(data[1], AOT_F32, 2, DIMS(ROWS, WIDTH)),
                       tensor(data[2], AOT_F32, 1, DIMS(WIDTH))};
  static float y[ROWS * WIDTH];
  aot_tensor_t out[] = {tensor(y, AOT_F32, 2, DIMS(ROWS, WIDTH)), tensor(sums[0], AOT_F32, 1, DIMS(WIDTH)),
                        tensor(sums[1], AOT_F32, 1, DIMS(WIDTH))};
  run(h, in, 3, out, 3);
  assert_close(y, expected, ROWS * WIDTH);
  assert_close(sums[0], weight, WIDTH);
  assert_close(sums[1], bias, WIDTH);
}

/* A product that its row and its columns are summed of. */
static void sums_in_two_directions(void **state) {
  hs_snapshot_t *h = hs_create();
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  uint32_t a = hs_input(h, AOT_F32, 2, DIMS(ROWS, WIDTH)), b = hs_input(h, AOT_F32, 2, DIMS(ROWS, WIDTH));
  hs_node(h, "aten.mul.Tensor");
  hs_arg_value(h, a), hs_arg_value(h, b);
  uint32_t y = hs_result(h, AOT_F32, 2, DIMS(ROWS, WIDTH));
  hs_node(h, "aten.sum.dim_IntList");
  hs_arg_value(h, y), hs_arg_ints(h, DIMS(1), 1), hs_arg_bool(h, 0), hs_arg_none(h);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(ROWS)));
  hs_node(h, "aten.sum.dim_IntList");
  hs_arg_value(h, y), hs_arg_ints(h, DIMS(0), 1), hs_arg_bool(h, 1), hs_arg_none(h);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(1, WIDTH)));

  static float data[2][ROWS * WIDTH], rows[ROWS], columns[WIDTH];
  double of_rows[ROWS] = {0}, of_columns[WIDTH] = {0};
  for (uint32_t k = 0; k < 2; k++) naive_random(data[k], ROWS * WIDTH, k + 5);
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < WIDTH; i++) {
      const double product = (double)data[0][r * WIDTH + i] * data[1][r * WIDTH + i];
      of_rows[r] += product;
      of_columns[i] += product;
    }
  aot_tensor_t in[] = {tensor(data[0], AOT_F32, 2, DIMS(ROWS, WIDTH)), tensor(data[1], AOT_F32, 2, DIMS(ROWS, WIDTH))};
  aot_tensor_t out[] = {tensor(rows, AOT_F32, 1, DIMS(ROWS)), tensor(columns, AOT_F32, 2, DIMS(1, WIDTH))};
  run(h, in, 2, out, 2);
  assert_close(rows, of_rows, ROWS);
  assert_close(columns, of_columns, WIDTH);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_loss_and_its_derivative),
      cmocka_unit_test(a_loss_and_its_derivative_by_views),
      cmocka_unit_test(derivatives_of_layer_norm),
      cmocka_unit_test(sums_in_two_directions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
