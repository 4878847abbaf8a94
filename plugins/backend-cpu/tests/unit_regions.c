/* Sums of gradients of slices and selections, held against naive sums; what must not be summed in place. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "exec.h"

static const custom_world_t no_kernels;
#define DIMS(...) ((int64_t[]){__VA_ARGS__})
enum { R = 6, C = 20, OUTPUTS = 5 };

static uint32_t add(hs_snapshot_t *h, uint32_t x, uint32_t y) {
  hs_node(h, "aten.add.Tensor");
  hs_arg_value(h, x), hs_arg_value(h, y), hs_arg_int(h, 1);
  return hs_result(h, AOT_F32, 2, DIMS(R, C));
}

static uint32_t slice_of(hs_snapshot_t *h, uint32_t x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  hs_node(h, "aten.slice_backward.default");
  hs_arg_value(h, x), hs_arg_ints(h, DIMS(R, C), 2), hs_arg_int(h, dim), hs_arg_int(h, start), hs_arg_int(h, end),
      hs_arg_int(h, step);
  return hs_result(h, AOT_F32, 2, DIMS(R, C));
}

static uint32_t select_at(hs_snapshot_t *h, uint32_t x, int64_t dim, int64_t index) {
  hs_node(h, "aten.select_backward.default");
  hs_arg_value(h, x), hs_arg_ints(h, DIMS(R, C), 2), hs_arg_int(h, dim), hs_arg_int(h, index);
  return hs_result(h, AOT_F32, 2, DIMS(R, C));
}

static uint32_t add_rows(hs_snapshot_t *h, uint32_t row, const int64_t *indices) {
  uint32_t sum = select_at(h, row, 0, indices[0]);
  for (int k = 1; k < R; k++) sum = add(h, sum, select_at(h, row, 0, indices[k]));
  return sum;
}

typedef struct data {
  float a[R * 5], b[R * 4], row[C], column[R], out[OUTPUTS][R * C];
} data_t;

/* inputs a [R, 5], b [R, 4], row [C], column [R]
 * out 0: a at 0:5, then b at every third from 3, overlapping, row at -1, column at 7
 * out 1: column at 0, the row at 0 first operand of its add, twice: the second sum reads the first, which is an
 * output, too: out 2
 * out 3: row at every index of the first dimension; out 4: at 2 twice, and never at 3 */
static void build(hs_snapshot_t *h) {
  hs_graph(h, AOT_GRAPH_FORWARD);
  uint32_t a = hs_input(h, AOT_F32, 2, DIMS(R, 5)), b = hs_input(h, AOT_F32, 2, DIMS(R, 4)),
           row = hs_input(h, AOT_F32, 1, DIMS(C)), column = hs_input(h, AOT_F32, 1, DIMS(R));
  uint32_t sum = add(h, slice_of(h, a, 1, 0, 5, 1), slice_of(h, b, -1, 3, INT64_MAX / 2, 3));
  sum = add(h, sum, select_at(h, row, 0, -1));
  sum = add(h, select_at(h, column, 1, 7), sum);
  uint32_t first = add(h, select_at(h, column, 1, 0), select_at(h, row, 0, 0));
  uint32_t second = add(h, first, select_at(h, column, 1, -20));
  hs_output(h, sum);
  hs_output(h, second);
  hs_output(h, first);
  hs_output(h, add_rows(h, row, (int64_t[R]){2, -1, 0, 1, 3, 4}));
  hs_output(h, add_rows(h, row, (int64_t[R]){2, 5, 0, 1, -4, 4}));
}

static void expect(const data_t *d, double out[OUTPUTS][R * C]) {
  memset(out, 0, OUTPUTS * sizeof *out);
  for (int i = 0; i < R; i++) {
    for (int j = 0; j < 5; j++) out[0][i * C + j] += (double)d->a[i * 5 + j];
    for (int j = 0; j < 4; j++) out[0][i * C + 3 + 3 * j] += (double)d->b[i * 4 + j];
    out[0][i * C + 7] += (double)d->column[i];
    out[2][i * C] += (double)d->column[i];
    out[1][i * C] += 2 * (double)d->column[i];
  }
  for (int j = 0; j < C; j++) {
    out[0][(R - 1) * C + j] += (double)d->row[j];
    out[1][j] += (double)d->row[j];
    out[2][j] += (double)d->row[j];
    for (int i = 0; i < R; i++) {
      out[3][i * C + j] = (double)d->row[j];
      out[4][i * C + j] = (i == 3 ? 0 : i == 2 ? 2 : 1) * (double)d->row[j];
    }
  }
}

static void regions_are_added_in_place(void **state) {
  static const int64_t sizes[5][2] = {{R, 5}, {R, 4}, {C, 0}, {R, 0}, {R, C}},
                       strides[5][2] = {{5, 1}, {4, 1}, {1, 0}, {1, 0}, {C, 1}};
  hs_snapshot_t *h = hs_create();
  bc_cache_t cache;
  bc_program_t *p;
  lw_error_t error = {0}, warning = {0};
  data_t *d = malloc(sizeof *d);
  double expected[OUTPUTS][R * C];
  aot_tensor_t in[4], out[OUTPUTS];
  (void)state;
  build(h);
  float *at[4] = {d->a, d->b, d->row, d->column};
  const int64_t numel[4] = {R * 5, R * 4, C, R};
  for (int k = 0; k < 4; k++) {
    naive_random(at[k], numel[k], (uint32_t)k + 1);
    in[k] = (aot_tensor_t){
        .data = at[k],
        .nbytes = (uint64_t)numel[k] * 4,
        .dtype = AOT_F32,
        .rank = k < 2 ? 2 : 1,
        .sizes = sizes[k],
        .strides = strides[k],
    };
  }
  for (int k = 0; k < OUTPUTS; k++)
    out[k] = (aot_tensor_t){
        .data = d->out[k], .nbytes = R * C * 4, .dtype = AOT_F32, .rank = 2, .sizes = sizes[4], .strides = strides[4]};
  assert_int_equal(bc_cache_init(&cache, NULL, "cc", &error), AOT_OK);
  if (bc_program_create(hs_finish(h), &no_kernels, &cache, 1, &p, &warning, &error) != AOT_OK)
    fail_msg("%s", error.text);
  for (int round = 0; round < 2; round++) { /* whatever the memory held before */
    memset(d->out, 0x41, sizeof d->out);
    if (bc_program_run(
            p,
            &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = in, .n_inputs = 4, .outputs = out, .n_outputs = OUTPUTS},
            &error) != AOT_OK)
      fail_msg("%s", error.text);
    expect(d, expected);
    for (int k = 0; k < OUTPUTS; k++) assert_close(d->out[k], expected[k], R * C);
  }
  /* twice zeros and a copy, four regions added, the add that reads an output and the column within bounds; a copy for
   * every index; zeros, a copy, five added */
  const bc_program_stats_t s = bc_program_stats(p);
  assert_int_equal(s.n_fallback, 0);
  assert_int_equal(s.n_groups, 1);
  assert_int_equal(s.n_steps, 2 * 2 + 4 + 1 + R + 2 + 5);
  bc_program_destroy(p);
  bc_cache_deinit(&cache);
  hs_destroy(h);
  free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(regions_are_added_in_place)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
