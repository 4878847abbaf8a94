/* Sums of products of few terms, collected and multiplied at once, held against naive sums; what must not be. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "exec.h"

static const custom_world_t no_kernels;
#define DIMS(...) ((int64_t[]){__VA_ARGS__})
enum {
  M = 48,
  N = 64,
  TERMS = 5,
  PARTS = 9,
  COUNT = 2 * PARTS
}; /* 27 terms take the memory of a sum: 5 parts, and 4 */

typedef struct data {
  float x[PARTS][TERMS * M], y[PARTS][TERMS * N], out[3][M * N];
} data_t;

static uint32_t product(hs_snapshot_t *h, uint32_t x, uint32_t y) {
  hs_node(h, "aten.permute.default");
  hs_arg_value(h, x), hs_arg_ints(h, DIMS(1, 0), 2);
  const uint32_t transposed = hs_result(h, AOT_F32, 2, DIMS(M, TERMS));
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, transposed), hs_arg_value(h, y);
  return hs_result(h, AOT_F32, 2, DIMS(M, N));
}

static uint32_t add(hs_snapshot_t *h, uint32_t x, uint32_t y, int64_t alpha) {
  hs_node(h, "aten.add.Tensor");
  hs_arg_value(h, x), hs_arg_value(h, y), hs_arg_int(h, alpha);
  return hs_result(h, AOT_F32, 2, DIMS(M, N));
}

/* inputs x0 .. [TERMS, M], y0 .. [TERMS, N]
 * out 0: of all products, the third made before the first two are added, the fourth added from the left
 * out 1: of the first three, the sum of the first two being an output, too: out 2 */
static void build(hs_snapshot_t *h) {
  uint32_t x[PARTS], y[PARTS];
  hs_graph(h, AOT_GRAPH_FORWARD);
  for (int k = 0; k < PARTS; k++) x[k] = hs_input(h, AOT_F32, 2, DIMS(TERMS, M));
  for (int k = 0; k < PARTS; k++) y[k] = hs_input(h, AOT_F32, 2, DIMS(TERMS, N));
  const uint32_t a = product(h, x[0], y[0]), b = product(h, x[1], y[1]), c = product(h, x[2], y[2]);
  uint32_t sum = add(h, add(h, a, b, 1), c, 1);
  for (int k = 3; k < PARTS; k++) {
    const uint32_t part = product(h, x[k], y[k]);
    sum = k == 3 ? add(h, part, sum, 1) : add(h, sum, part, 1);
  }
  const uint32_t two = add(h, product(h, x[0], y[0]), product(h, x[1], y[1]), 1);
  const uint32_t three = add(h, two, product(h, x[2], y[2]), 2);
  hs_output(h, sum);
  hs_output(h, three);
  hs_output(h, two);
}

static void expect(const data_t *d, double out[3][M * N]) {
  memset(out, 0, 3 * sizeof *out);
  for (int k = 0; k < PARTS; k++)
    for (int t = 0; t < TERMS; t++)
      for (int i = 0; i < M * N; i++) {
        const double term = (double)d->x[k][t * M + i / N] * (double)d->y[k][t * N + i % N];
        out[0][i] += term;
        out[1][i] += k < 2 ? term : k == 2 ? 2 * term : 0;
        out[2][i] += k < 2 ? term : 0;
      }
}

static void products_are_collected(void **state) {
  static const int64_t sizes[3][2] = {{TERMS, M}, {TERMS, N}, {M, N}}, strides[3][2] = {{M, 1}, {N, 1}, {N, 1}};
  hs_snapshot_t *h = hs_create();
  bc_cache_t cache;
  bc_program_t *p;
  lw_error_t error = {0}, warning = {0};
  data_t *d = malloc(sizeof *d);
  double(*expected)[M * N] = malloc(3 * sizeof *expected);
  aot_tensor_t in[COUNT], out[3];
  (void)state;
  build(h);
  for (int k = 0; k < COUNT; k++) {
    const int is_y = k >= PARTS, width = is_y ? N : M;
    float *at = is_y ? d->y[k - PARTS] : d->x[k];
    naive_random(at, TERMS * width, (uint32_t)k + 1);
    in[k] = (aot_tensor_t){.data = at,
                           .nbytes = (uint64_t)(TERMS * width) * 4,
                           .dtype = AOT_F32,
                           .rank = 2,
                           .sizes = sizes[is_y],
                           .strides = strides[is_y]};
  }
  for (int k = 0; k < 3; k++)
    out[k] = (aot_tensor_t){
        .data = d->out[k], .nbytes = M * N * 4, .dtype = AOT_F32, .rank = 2, .sizes = sizes[2], .strides = strides[2]};
  assert_int_equal(bc_cache_init(&cache, NULL, "cc", &error), AOT_OK);
  if (bc_program_create(hs_finish(h), &no_kernels, &cache, 1, &p, &warning, &error) != AOT_OK)
    fail_msg("%s", error.text);
  expect(d, expected);
  for (int round = 0; round < 2; round++) { /* whatever the memory held before */
    memset(d->out, 0x41, sizeof d->out);
    if (bc_program_run(
            p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = in, .n_inputs = COUNT, .outputs = out, .n_outputs = 3},
            &error) != AOT_OK)
      fail_msg("%s", error.text);
    for (int k = 0; k < 3; k++) assert_close(d->out[k], expected[k], M * N);
  }
  /* operands of nine products copied, and two products; three products and a loop of both sums */
  const bc_program_stats_t s = bc_program_stats(p);
  assert_int_equal(s.n_fallback, 0);
  assert_int_equal(s.n_groups, 1);
  assert_int_equal(s.n_steps, 2 * PARTS + 2 + 3 + 1);
  bc_program_destroy(p);
  bc_cache_deinit(&cache);
  hs_destroy(h);
  free(expected);
  free(d);
}

/* Of no rows and no columns. */
static void nothing_is_no_product_to_collect(void **state) {
  static const int64_t sizes[3][2] = {{0, TERMS}, {TERMS, 0}, {0, 0}}, strides[2] = {1, 1};
  hs_snapshot_t *h = hs_create();
  bc_cache_t cache;
  bc_program_t *p;
  lw_error_t error = {0}, warning = {0};
  float at[1] = {0};
  aot_tensor_t t[3];
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 2, sizes[0]), y = hs_input(h, AOT_F32, 2, sizes[1]);
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, x), hs_arg_value(h, y);
  hs_output(h, hs_result(h, AOT_F32, 2, sizes[2]));
  for (int k = 0; k < 3; k++)
    t[k] = (aot_tensor_t){.data = at, .dtype = AOT_F32, .rank = 2, .sizes = sizes[k], .strides = strides};
  assert_int_equal(bc_cache_init(&cache, NULL, "cc", &error), AOT_OK);
  if (bc_program_create(hs_finish(h), &no_kernels, &cache, 1, &p, &warning, &error) != AOT_OK)
    fail_msg("%s", error.text);
  const hc_run_t run = {.kind = AOT_GRAPH_FORWARD, .inputs = t, .n_inputs = 2, .outputs = t + 2, .n_outputs = 1};
  if (bc_program_run(p, &run, &error) != AOT_OK) fail_msg("%s", error.text);
  bc_program_destroy(p);
  bc_cache_deinit(&cache);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_collected),
                                     cmocka_unit_test(nothing_is_no_product_to_collect)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
