/* One step for the loops of many tensors: it computes what they do one by one, with any number of threads. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "exec.h"

static const custom_world_t no_kernels; /* no kernels but the reference ones */
#define DIMS(...) ((int64_t[]){__VA_ARGS__})

enum { N = 6, MOST = 25000, N_OUT = 3 * N };
static const int64_t sizes[N] = {7, 25000, 1, 16384, 513, 12};

/* Of each tensor: x - rate * g; that times itself, which waits for it; and its sum. */
static void build(hs_snapshot_t *h) {
  uint32_t x[N], g[N], y[N];
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t rate = hs_input(h, AOT_F32, 0, NULL);
  for (int k = 0; k < N; k++) x[k] = hs_input(h, AOT_F32, 1, DIMS(sizes[k]));
  for (int k = 0; k < N; k++) g[k] = hs_input(h, AOT_F32, 1, DIMS(sizes[k]));
  for (int k = 0; k < N; k++) {
    hs_node(h, "aten.mul.Tensor");
    hs_arg_value(h, g[k]), hs_arg_value(h, rate);
    const uint32_t step = hs_result(h, AOT_F32, 1, DIMS(sizes[k]));
    hs_node(h, "aten.sub.Tensor");
    hs_arg_value(h, x[k]), hs_arg_value(h, step), hs_arg_int(h, 1);
    hs_output(h, y[k] = hs_result(h, AOT_F32, 1, DIMS(sizes[k])));
  }
  for (int k = 0; k < N; k++) { /* a product of vectors is no loop, and reads what the first ones make */
    hs_node(h, "aten.dot.default");
    hs_arg_value(h, y[k]), hs_arg_value(h, y[k]);
    hs_output(h, hs_result(h, AOT_F32, 0, NULL));
  }
  for (int k = 0; k < N; k++) {
    hs_node(h, "aten.sum.default");
    hs_arg_value(h, g[k]), hs_arg_none(h);
    hs_output(h, hs_result(h, AOT_F32, 0, NULL));
  }
}

static float x[N][MOST], g[N][MOST], y[N][MOST + 1], dots[N], sums[N];
#define GUARD 77.0f

static aot_tensor_t tensor(float *data, int k) {
  static const int64_t one[1] = {1};
  return (aot_tensor_t){.data = data,
                        .nbytes = k < 0 ? 4 : (uint64_t)sizes[k] * 4,
                        .dtype = AOT_F32,
                        .rank = k >= 0,
                        .sizes = k < 0 ? NULL : &sizes[k],
                        .strides = one};
}

/* n_groups: calls of generated loops. */
static void run(int64_t threads, uint32_t n_groups) {
  hs_snapshot_t *h = hs_create();
  bc_cache_t cache;
  bc_program_t *program;
  lw_error_t error = {.node = AOT_NO_ID}, warning = {.node = AOT_NO_ID};
  aot_tensor_t in[2 * N + 1], out[N_OUT];
  float rate = 0.5f;
  build(h);
  in[0] = tensor(&rate, -1);
  for (int k = 0; k < N; k++) {
    in[1 + k] = tensor(x[k], k), in[1 + N + k] = tensor(g[k], k);
    out[k] = tensor(y[k], k), out[N + k] = tensor(&dots[k], -1), out[2 * N + k] = tensor(&sums[k], -1);
    naive_random(x[k], sizes[k], (uint32_t)k), naive_random(g[k], sizes[k], (uint32_t)k + 50);
    y[k][sizes[k]] = GUARD;
  }
  const hc_run_t call = {
      .kind = AOT_GRAPH_FORWARD, .inputs = in, .n_inputs = 2 * N + 1, .outputs = out, .n_outputs = N_OUT};
  assert_int_equal(bc_cache_init(&cache, NULL, "cc", &error), AOT_OK);
  if (bc_program_create(hs_finish(h), &no_kernels, &cache, threads, &program, &warning, &error) != AOT_OK ||
      bc_program_run(program, &call, &error) != AOT_OK)
    fail_msg("%s", error.text);
  assert_int_equal(bc_program_stats(program).n_groups, n_groups);
  bc_program_destroy(program);
  bc_cache_deinit(&cache);
  hs_destroy(h);
}

static void check(void) {
  for (int k = 0; k < N; k++) {
    double dot = 0, sum = 0;
    for (int64_t i = 0; i < sizes[k]; i++) {
      const float expected = x[k][i] - g[k][i] * 0.5f;
      if (y[k][i] != expected) fail_msg("tensor %d, element %lld", k, (long long)i);
      dot += (double)expected * expected;
      sum += g[k][i];
    }
    assert_close(&dots[k], &dot, 1);
    assert_close(&sums[k], &sum, 1);
    assert_true(y[k][sizes[k]] == GUARD);
  }
}

static void one_thread_calls_them_one_by_one(void **state) {
  (void)state;
  run(1, 2 * N);
  check();
}

static void several_threads_divide_the_elements_of_all(void **state) {
  static float before[N][MOST + 1];
  (void)state;
  run(1, 2 * N);
  memcpy(before, y, sizeof y);
  for (int64_t threads = 2; threads <= 5; threads++) {
    run(threads, 4); /* the tensor of one element has functions of its own */
    check();
    assert_memory_equal(before, y, sizeof y);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_thread_calls_them_one_by_one),
                                     cmocka_unit_test(several_threads_divide_the_elements_of_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
