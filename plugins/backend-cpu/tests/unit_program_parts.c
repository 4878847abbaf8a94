/* Programs with sizes that a run reports: parts, what they hand on, schedules stored by sizes. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "kit/lowering/dynamic_segments.h"
#include "exec.h"

static const custom_world_t no_kernels;
#define DIMS(...) ((int64_t[]){__VA_ARGS__})
enum { N = 12 };

/* a = x * x; y = masked_select(a, mask) [u]; z = relu(y) + y; outputs: sum(z), z, a */
static void build(hs_snapshot_t *h) {
  int64_t u = hs_symbol(h);
  h->symbols[0].min = 0;
  h->symbols[0].max = N - 1;
  h->symbols[0].hint = 3;
  hs_graph(h, AOT_GRAPH_FORWARD);
  uint32_t x = hs_input(h, AOT_F32, 1, DIMS(N)), mask = hs_input(h, AOT_BOOL, 1, DIMS(N));
  hs_node(h, "aten.mul.Tensor");
  hs_arg_value(h, x), hs_arg_value(h, x);
  uint32_t a = hs_result(h, AOT_F32, 1, DIMS(N));
  hs_node(h, "aten.masked_select.default");
  hs_arg_value(h, a), hs_arg_value(h, mask);
  uint32_t y = hs_result(h, AOT_F32, 1, DIMS(u));
  hs_node(h, "aten.relu.default");
  hs_arg_value(h, y);
  uint32_t z = hs_result(h, AOT_F32, 1, DIMS(u));
  hs_node(h, "aten.add.Tensor");
  hs_arg_value(h, z), hs_arg_value(h, y), hs_arg_int(h, 1);
  z = hs_result(h, AOT_F32, 1, DIMS(u));
  hs_node(h, "aten.sum.default");
  hs_arg_value(h, z), hs_arg_none(h);
  hs_output(h, hs_result(h, AOT_F32, 0, DIMS(0)));
  hs_output(h, z);
  hs_output(h, a);
}

static void a_graph_falls_into_segments(void **state) {
  hs_snapshot_t *h = hs_create();
  lw_cut_t cut;
  (void)state;
  build(h);
  const aot_snapshot_t *s = hs_finish(h);
  assert_int_equal(lw_cut_init(&cut, s), AOT_OK);
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(cut.s, aot_snap_graph_t, graphs);
  assert_int_equal(cut.s->graphs.count, 1 + 3);
  assert_int_equal(cut.n_parts_of[1], 2);
  assert_int_equal(cut.parts[0].birth, 2);
  assert_int_equal(cut.parts[1].birth, AOT_NO_ID);
  assert_true(g[2].n_nodes == 1 && g[2].n_inputs == 1 && g[2].n_outputs == 1); /* x -> a */
  assert_true(g[3].n_nodes == 3 && g[3].n_inputs == 2 && g[3].n_outputs == 3); /* y, a -> sum, z, a */
  assert_int_equal(cut.last_use[2], 0);                                        /* the mask is not read again */
  lw_cut_deinit(&cut);
  hs_destroy(h);
}

typedef struct host {
  float z[N];
  int64_t n, stride;
} host_t;

static aot_status_t allocate(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols, uint64_t n_symbols,
                             aot_tensor_t *out) {
  host_t *host = sink->head.self;
  assert_true(output == 1 && n_symbols == 1);
  host->n = symbols[0];
  host->stride = 1;
  *out = (aot_tensor_t){.data = host->z,
                        .nbytes = (uint64_t)host->n * 4,
                        .dtype = AOT_F32,
                        .rank = 1,
                        .sizes = &host->n,
                        .strides = &host->stride};
  return AOT_OK;
}

typedef struct fixture {
  hs_snapshot_t *h;
  bc_cache_t cache;
  bc_program_t *program;
  lw_error_t error, warning;
  float x[N], a[N], sum;
  uint8_t mask[N];
  host_t host;
} fixture_t;

static aot_status_t run(fixture_t *w, int64_t *symbol) {
  static const int64_t n = N, one = 1, none = 0;
  const aot_tensor_t in[2] = {{
                                  .data = w->x,
                                  .nbytes = sizeof w->x,
                                  .dtype = AOT_F32,
                                  .rank = 1,
                                  .sizes = &n,
                                  .strides = &one,
                              },
                              {
                                  .data = w->mask,
                                  .nbytes = sizeof w->mask,
                                  .dtype = AOT_BOOL,
                                  .rank = 1,
                                  .sizes = &n,
                                  .strides = &one,
                              }};
  const aot_tensor_t out[3] = {{.data = &w->sum, .nbytes = 4, .dtype = AOT_F32, .sizes = &none, .strides = &none},
                               {.dtype = AOT_F32, .rank = AOT_RANK_OPEN},
                               {
                                   .data = w->a,
                                   .nbytes = sizeof w->a,
                                   .dtype = AOT_F32,
                                   .rank = 1,
                                   .sizes = &n,
                                   .strides = &one,
                               }};
  const aot_output_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &w->host}, .allocate = allocate};
  *symbol = AOT_SYMBOL_UNKNOWN;
  return bc_program_run(w->program,
                        &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                                    .inputs = in,
                                    .n_inputs = 2,
                                    .outputs = out,
                                    .n_outputs = 3,
                                    .symbols = symbol,
                                    .n_symbols = 1,
                                    .open = &sink},
                        &w->error);
}

static void check(const fixture_t *w, int64_t symbol) {
  double sum = 0;
  int64_t n = 0;
  for (int i = 0; i < N; i++) {
    const double a = (double)w->x[i] * w->x[i];
    assert_close(w->a + i, &a, 1);
    if (!w->mask[i]) continue;
    const double z = 2 * a;
    assert_true(n < symbol);
    assert_close(w->host.z + n, &z, 1);
    sum += z;
    n++;
  }
  assert_int_equal(n, symbol);
  assert_close(&w->sum, &sum, 1);
}

static void sizes_are_learned_and_schedules_kept(void **state) {
  fixture_t w = {0};
  int64_t symbol;
  (void)state;
  w.h = hs_create();
  build(w.h);
  assert_int_equal(bc_cache_init(&w.cache, NULL, "cc", &w.error), AOT_OK);
  if (bc_program_create(hs_finish(w.h), &no_kernels, &w.cache, 2, &w.program, &w.warning, &w.error) != AOT_OK)
    fail_msg("%s", w.error.text);
  uint32_t n_functions = bc_program_stats(w.program).n_functions;
  assert_true(n_functions > 0); /* made before the first run, at the hint */
  naive_random(w.x, N, 7);
  for (int n = 0; n < N; n++) { /* none of them, then one more each time: more sizes than schedules are stored for */
    for (int i = 0; i < N; i++) w.mask[i] = (i * 5) % N < n;
    if (run(&w, &symbol) != AOT_OK) fail_msg("%s", w.error.text);
    check(&w, symbol);
    if (n == 1) n_functions = bc_program_stats(w.program).n_functions; /* one element has a loop of its own */
  }
  assert_int_equal(bc_program_stats(w.program).n_functions, n_functions);
  memset(w.mask, 1, sizeof w.mask); /* one more than the symbol's range has */
  assert_int_equal(run(&w, &symbol), AOT_E_RANGE);
  assert_non_null(strstr(w.error.text, "0..11"));
  assert_int_equal(w.error.node, 2);
  bc_program_destroy(w.program);
  bc_cache_deinit(&w.cache);
  hs_destroy(w.h);
}

/* y = full([u], 0.5); output: sum(y). Nothing here reports u: the caller knows it, as a backward does what its forward
 * has found. */
static void a_number_that_a_node_is_given_cuts_nothing(void **state) {
  fixture_t w = {0};
  int64_t symbol = 5;
  const int64_t none = 0;
  lw_cut_t cut;
  (void)state;
  w.h = hs_create();
  const int64_t u = hs_symbol(w.h);
  w.h->symbols[0].max = N;
  hs_graph(w.h, AOT_GRAPH_FORWARD);
  hs_node(w.h, "aten.full.default");
  hs_arg_ints(w.h, DIMS(u), 1), hs_arg_float(w.h, 0.5);
  const uint32_t y = hs_result(w.h, AOT_F32, 1, DIMS(u));
  hs_node(w.h, "aten.sum.default");
  hs_arg_value(w.h, y), hs_arg_none(w.h);
  hs_output(w.h, hs_result(w.h, AOT_F32, 0, DIMS(0)));
  const aot_snapshot_t *s = hs_finish(w.h);
  assert_int_equal(lw_cut_init(&cut, s), AOT_OK);
  assert_int_equal(cut.n_parts_of[1], 0);
  lw_cut_deinit(&cut);
  assert_int_equal(bc_cache_init(&w.cache, NULL, "cc", &w.error), AOT_OK);
  assert_int_equal(bc_program_create(s, &no_kernels, &w.cache, 2, &w.program, &w.warning, &w.error), AOT_OK);
  const aot_tensor_t out = {.data = &w.sum, .nbytes = 4, .dtype = AOT_F32, .sizes = &none, .strides = &none};
  const hc_run_t call = {
      .kind = AOT_GRAPH_FORWARD, .outputs = &out, .n_outputs = 1, .symbols = &symbol, .n_symbols = 1};
  assert_int_equal(bc_program_run(w.program, &call, &w.error), AOT_OK);
  assert_true(w.sum == 2.5f);
  symbol = AOT_SYMBOL_UNKNOWN;
  assert_int_equal(bc_program_run(w.program, &call, &w.error), AOT_E_RANGE);
  bc_program_destroy(w.program);
  bc_cache_deinit(&w.cache);
  hs_destroy(w.h);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_graph_falls_into_segments),
                                     cmocka_unit_test(sizes_are_learned_and_schedules_kept),
                                     cmocka_unit_test(a_number_that_a_node_is_given_cuts_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
