/* A bias is added by the product itself where oneDNN computes it, on any number of threads; no copy of it is made. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "exec.h"
#include "onednn_kernels.h"

static const custom_world_t no_kernels;
#define DIMS(...) ((int64_t[]){__VA_ARGS__})

typedef struct layer {
  int64_t rows, columns, k;
  int32_t n_threads;
} layer_t;

enum { MOST = 1 << 19 };

/* y = x @ w^T + bias */
static void build(hs_snapshot_t *h, const layer_t *l) {
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(l->rows, l->k)), w = hs_input(h, AOT_F32, 2, DIMS(l->columns, l->k)),
                 bias = hs_input(h, AOT_F32, 1, DIMS(l->columns));
  hs_node(h, "aten.linear.default");
  hs_arg_value(h, x), hs_arg_value(h, w), hs_arg_value(h, bias);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(l->rows, l->columns)));
}

static int onednn_adds_it(const layer_t *l) {
  bc_product_t p = {.dtype = AOT_F32, .has_bias = 1, .alpha = 1};
  bc_matrix(l->rows, l->k, l->k, 1, &p.a);
  bc_matrix(l->k, l->columns, 1, l->k, &p.b);
  bc_matrix(l->rows, l->columns, l->columns, 1, &p.c);
  bc_dnn_t *kernel = bc_dnn_product(&p, 1);
  bc_dnn_destroy(kernel);
  return kernel != NULL;
}

static void check(const layer_t *l) {
  static float x[MOST], w[MOST], bias[MOST], y[MOST];
  static double expected[MOST];
  float *const memory[] = {x, w, bias, y};
  const int64_t sizes[4][2] = {{l->rows, l->k}, {l->columns, l->k}, {l->columns, 1}, {l->rows, l->columns}};
  int64_t strides[4][2];
  aot_tensor_t t[4];
  hs_snapshot_t *h = hs_create();
  bc_cache_t cache;
  bc_program_t *p;
  lw_error_t error = {0}, warning = {0};
  for (int k = 0; k < 4; k++) {
    const int64_t n = sizes[k][0] * sizes[k][1];
    naive_random(memory[k], n, (uint32_t)k + 1);
    strides[k][0] = sizes[k][1];
    strides[k][1] = 1;
    t[k] = (aot_tensor_t){.data = memory[k], .nbytes = (uint64_t)n * 4, .dtype = AOT_F32, .rank = k == 2 ? 1 : 2};
    t[k].sizes = sizes[k];
    t[k].strides = strides[k];
  }
  for (int64_t i = 0; i < l->rows * l->columns; i++) {
    expected[i] = (double)bias[i % l->columns];
    for (int64_t q = 0; q < l->k; q++)
      expected[i] += (double)x[i / l->columns * l->k + q] * (double)w[i % l->columns * l->k + q];
  }
  build(h, l);
  assert_int_equal(bc_cache_init(&cache, NULL, "cc", &error), AOT_OK);
  if (bc_program_create(hs_finish(h), &no_kernels, &cache, l->n_threads, &p, &warning, &error) != AOT_OK)
    fail_msg("%s", error.text);
  const hc_run_t run = {.kind = AOT_GRAPH_FORWARD, .inputs = t, .n_inputs = 3, .outputs = t + 3, .n_outputs = 1};
  if (bc_program_run(p, &run, &error) != AOT_OK) fail_msg("%s", error.text);
  assert_close(y, expected, l->rows * l->columns);
  if (bc_program_stats(p).n_steps != (onednn_adds_it(l) ? 1 : 2))
    fail_msg("%lld x %lld, %d threads: %u steps", (long long)l->rows, (long long)l->columns, l->n_threads,
             bc_program_stats(p).n_steps);
  bc_program_destroy(p);
  bc_cache_deinit(&cache);
  hs_destroy(h);
}

/* More than 100^3 terms: oneDNN's, where it is there. Of few rows the columns are divided. */
static void a_bias_is_no_step_of_its_own(void **state) {
  static const layer_t layers[] = {{160, 128, 96, 1}, {160, 128, 96, 2}, {8, 4000, 64, 1}, {8, 4000, 64, 2}};
  (void)state;
  for (size_t k = 0; k < sizeof layers / sizeof *layers; k++) check(&layers[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_bias_is_no_step_of_its_own)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
