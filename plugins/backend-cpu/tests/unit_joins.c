/* Parts of cat and stack that are made in their places: no step copies them. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "exec.h"

static const custom_world_t no_kernels;
#define DIMS(...) ((int64_t[]){__VA_ARGS__})
enum { B = 2, H = 3, T = 4, D = 16, N = B * H * T * D };

static uint32_t binary(hs_snapshot_t *h, const char *op, uint32_t x, uint32_t y, int32_t rank, const int64_t *sizes) {
  hs_node(h, op);
  hs_arg_value(h, x), hs_arg_value(h, y);
  if (strstr(op, "add") || strstr(op, "sub")) hs_arg_int(h, 1);
  return hs_result(h, AOT_F32, rank, sizes);
}

static uint32_t join(hs_snapshot_t *h, const char *op, uint32_t x, uint32_t y, int64_t dim, int32_t rank,
                     const int64_t *sizes) {
  hs_node(h, op);
  hs_arg_values(h, (uint32_t[]){x, y}, 2), hs_arg_int(h, dim);
  return hs_result(h, AOT_F32, rank, sizes);
}

/* [B, H, T, D] as heads side by side, [B, T, H D] */
static uint32_t side_by_side(hs_snapshot_t *h, uint32_t x) {
  hs_node(h, "aten.transpose.int");
  hs_arg_value(h, x), hs_arg_int(h, 1), hs_arg_int(h, 2);
  const uint32_t t = hs_result_strided(h, AOT_F32, 4, DIMS(B, T, H, D), DIMS(H * T * D, D, T * D, 1));
  hs_node(h, "aten.reshape.default");
  hs_arg_value(h, t), hs_arg_ints(h, DIMS(B, T, H * D), 3);
  return hs_result(h, AOT_F32, 3, DIMS(B, T, H * D));
}

static aot_tensor_t tensor(float *data, uint64_t n, int32_t rank, const int64_t *sizes, const int64_t *strides) {
  return (aot_tensor_t){
      .data = data, .nbytes = 4 * n, .dtype = AOT_F32, .rank = rank, .sizes = sizes, .strides = strides};
}

/* Of the inputs x and y; how many steps it took. */
static uint32_t run(hs_snapshot_t *h, float *x, float *y, aot_tensor_t *out, uint32_t n_out) {
  static const int64_t sizes[] = {B, H, T, D}, strides[] = {H * T * D, T * D, D, 1};
  bc_cache_t cache;
  bc_program_t *program;
  lw_error_t error = {.node = AOT_NO_ID}, warning = {.node = AOT_NO_ID};
  aot_tensor_t in[] = {tensor(x, N, 4, sizes, strides), tensor(y, N, 4, sizes, strides)};
  const hc_run_t call = {.kind = AOT_GRAPH_FORWARD, .inputs = in, .n_inputs = 2, .outputs = out, .n_outputs = n_out};
  naive_random(x, N, 1);
  naive_random(y, N, 2);
  assert_int_equal(bc_cache_init(&cache, NULL, "cc", &error), AOT_OK);
  if (bc_program_create(hs_finish(h), &no_kernels, &cache, 1, &program, &warning, &error) != AOT_OK ||
      bc_program_run(program, &call, &error) != AOT_OK)
    fail_msg("%s", error.text);
  const uint32_t n_steps = bc_program_stats(program).n_steps;
  bc_program_destroy(program);
  bc_cache_deinit(&cache);
  hs_destroy(h);
  return n_steps;
}

/* cat([x + y, x * y]), each with heads side by side; also_sum: the sum is a result, too. */
static uint32_t run_heads(int also_sum) {
  static const int64_t whole[] = {B, T, 2 * H * D}, of_whole[] = {T * 2 * H * D, 2 * H * D, 1};
  static const int64_t sizes[] = {B, H, T, D}, strides[] = {H * T * D, T * D, D, 1};
  static float x[N], y[N], joined[2 * N], sum[N];
  hs_snapshot_t *h = hs_create();
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t a = hs_input(h, AOT_F32, 4, sizes), b = hs_input(h, AOT_F32, 4, sizes);
  const uint32_t s = binary(h, "aten.add.Tensor", a, b, 4, sizes), p = binary(h, "aten.mul.Tensor", a, b, 4, sizes);
  hs_output(h, join(h, "aten.cat.default", side_by_side(h, s), side_by_side(h, p), 2, 3, whole));
  if (also_sum) hs_output(h, s);
  aot_tensor_t out[] = {tensor(joined, 2 * N, 3, whole, of_whole), tensor(sum, N, 4, sizes, strides)};
  const uint32_t n_steps = run(h, x, y, out, also_sum ? 2 : 1);
  for (int i = 0; i < N; i++) {
    const int d = i % D, t = i / D % T, head = i / D / T % H, batch = i / D / T / H;
    const int at = (batch * T + t) * 2 * H * D + head * D + d;
    assert_true(joined[at] == x[i] + y[i] && joined[at + H * D] == x[i] * y[i]);
    assert_true(!also_sum || sum[i] == x[i] + y[i]);
  }
  return n_steps;
}

static void parts_are_made_in_their_places(void **state) {
  (void)state;
  assert_int_equal(run_heads(0), 1);
}

/* Its own memory, where it is dense, and a copy of it. */
static void what_others_read_is_copied(void **state) {
  (void)state;
  assert_true(run_heads(1) > 1);
}

/* stack([cat([x + y, x * y]), cat([x - y, x / y])]): one loop writes it. */
static void a_join_of_joins(void **state) {
  static const char *const ops[] = {"aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor", "aten.div.Tensor"};
  static const int64_t sizes[] = {B, H, T, D}, pair[] = {B, H, 2 * T, D}, whole[] = {B, 2, H, 2 * T, D};
  static const int64_t of_whole[] = {2 * H * 2 * T * D, H * 2 * T * D, 2 * T * D, D, 1};
  static float x[N], y[N], joined[4 * N];
  hs_snapshot_t *h = hs_create();
  uint32_t made[4], pairs[2];
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t a = hs_input(h, AOT_F32, 4, sizes), b = hs_input(h, AOT_F32, 4, sizes);
  for (int k = 0; k < 4; k++) made[k] = binary(h, ops[k], a, b, 4, sizes);
  for (int k = 0; k < 2; k++) pairs[k] = join(h, "aten.cat.default", made[2 * k], made[2 * k + 1], 2, 4, pair);
  hs_output(h, join(h, "aten.stack.default", pairs[0], pairs[1], 1, 5, whole));
  aot_tensor_t out = tensor(joined, 4 * N, 5, whole, of_whole);
  assert_int_equal(run(h, x, y, &out, 1), 1);
  for (int i = 0; i < N; i++) {
    const int in_head = i % (T * D), head = i / (T * D) % H, batch = i / (T * D) / H;
    const float expected[] = {x[i] + y[i], x[i] * y[i], x[i] - y[i], x[i] / y[i]};
    for (int k = 0; k < 4; k++)
      assert_true(joined[((batch * 2 + k / 2) * H + head) * 2 * T * D + k % 2 * T * D + in_head] == expected[k]);
  }
}

/* Running sums of cat([x, y]) with heads side by side: parts are copied to where the reshape has them. */
static void a_reshape_is_made_where_it_is_read(void **state) {
  static const int64_t whole[] = {B, H, 2 * T, D}, sizes[] = {B, H, T, D};
  static const int64_t rows[] = {B, 2 * T, H * D}, of_rows[] = {2 * T * H * D, H * D, 1};
  static float x[N], y[N], sums[2 * N];
  hs_snapshot_t *h = hs_create();
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t a = hs_input(h, AOT_F32, 4, sizes), b = hs_input(h, AOT_F32, 4, sizes);
  const uint32_t both = join(h, "aten.cat.default", a, b, 2, 4, whole);
  hs_node(h, "aten.transpose.int");
  hs_arg_value(h, both), hs_arg_int(h, 1), hs_arg_int(h, 2);
  const uint32_t t = hs_result_strided(h, AOT_F32, 4, DIMS(B, 2 * T, H, D), DIMS(2 * H * T * D, D, 2 * T * D, 1));
  hs_node(h, "aten.reshape.default");
  hs_arg_value(h, t), hs_arg_ints(h, rows, 3);
  const uint32_t r = hs_result(h, AOT_F32, 3, rows);
  hs_node(h, "aten.cumsum.default");
  hs_arg_value(h, r), hs_arg_int(h, 2);
  hs_output(h, hs_result(h, AOT_F32, 3, rows));
  aot_tensor_t out = tensor(sums, 2 * N, 3, rows, of_rows);
  assert_int_equal(run(h, x, y, &out, 1), 3);
  for (int row = 0; row < B * 2 * T; row++) {
    const int batch = row / (2 * T), at_t = row % (2 * T);
    double sum = 0;
    for (int k = 0; k < H * D; k++) {
      const float *of = at_t < T ? x : y;
      sum += (double)of[((batch * H + k / D) * T + at_t % T) * D + k % D];
      assert_float_equal(sums[row * H * D + k], sum, 1e-4);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_are_made_in_their_places),
      cmocka_unit_test(what_others_read_is_copied),
      cmocka_unit_test(a_join_of_joins),
      cmocka_unit_test(a_reshape_is_made_where_it_is_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
