/* Programs without a host: symbolic sizes, the boundary's checks, the memory plan, damaged blocks. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "exec.h"

static const custom_world_t no_kernels; /* no kernels but the reference ones */

/* Damaged sizes request more memory than there is: under AddressSanitizer too that is a failed allocation, no end. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

/* y = relu(x @ w^T + b) * 2, with its reduction over the rows; x [s, 4], w [3, 4], b [3] */
static void build_layer(hs_snapshot_t *h) {
  int64_t s = hs_symbol(h);
  h->symbols[0].hint = 5;
  hs_graph(h, AOT_GRAPH_FORWARD);
  uint32_t x = hs_input(h, AOT_F32, 2, DIMS(s, 4)), w = hs_input(h, AOT_F32, 2, DIMS(3, 4)),
           b = hs_input(h, AOT_F32, 1, DIMS(3));
  hs_node(h, "aten.linear.default");
  hs_arg_value(h, x), hs_arg_value(h, w), hs_arg_value(h, b);
  uint32_t y = hs_result(h, AOT_F32, 2, DIMS(s, 3));
  hs_node(h, "aten.relu.default");
  hs_arg_value(h, y);
  y = hs_result(h, AOT_F32, 2, DIMS(s, 3));
  hs_node(h, "aten.mul.Tensor");
  hs_arg_value(h, y), hs_arg_float(h, 2);
  y = hs_result(h, AOT_F32, 2, DIMS(s, 3));
  hs_node(h, "aten.sum.dim_IntList");
  hs_arg_value(h, y), hs_arg_ints(h, DIMS(0), 1), hs_arg_bool(h, 0), hs_arg_none(h);
  hs_output(h, y);
  hs_output(h, hs_result(h, AOT_F32, 1, DIMS(3)));
}

typedef struct fixture {
  hs_snapshot_t *h;
  bc_cache_t cache;
  bc_program_t *program;
  lw_error_t error, warning;
} fixture_t;

static void begin(fixture_t *w, const char *compiler) {
  memset(w, 0, sizeof *w);
  w->h = hs_create();
  build_layer(w->h);
  assert_int_equal(bc_cache_init(&w->cache, NULL, compiler, &w->error), AOT_OK);
  if (bc_program_create(hs_finish(w->h), &no_kernels, &w->cache, 2, &w->program, &w->warning, &w->error) != AOT_OK)
    fail_msg("%s", w->error.text);
}

static void end(fixture_t *w) {
  bc_program_destroy(w->program);
  bc_cache_deinit(&w->cache);
  hs_destroy(w->h);
}

enum { MOST = 40 };
typedef struct call {
  float x[MOST * 4], w[12], b[3], y[MOST * 3], sum[3];
  int64_t sizes[5][2], strides[5][2];
  aot_tensor_t in[3], out[2];
} call_t;

static aot_tensor_t tensor(call_t *c, int k, void *data, int32_t rank, int64_t n, int64_t m) {
  c->sizes[k][0] = n, c->sizes[k][1] = m;
  c->strides[k][0] = rank == 2 ? m : 1, c->strides[k][1] = 1;
  return (aot_tensor_t){
      .data = data,
      .nbytes = (uint64_t)(rank == 2 ? n * m : n) * 4,
      .dtype = AOT_F32,
      .rank = rank,
      .sizes = c->sizes[k],
      .strides = c->strides[k],
  };
}

static void make_call(call_t *c, int64_t n) {
  naive_random(c->x, n * 4, (uint32_t)n);
  naive_random(c->w, 12, 2);
  naive_random(c->b, 3, 3);
  c->in[0] = tensor(c, 0, c->x, 2, n, 4);
  c->in[1] = tensor(c, 1, c->w, 2, 3, 4);
  c->in[2] = tensor(c, 2, c->b, 1, 3, 0);
  c->out[0] = tensor(c, 3, c->y, 2, n, 3);
  c->out[1] = tensor(c, 4, c->sum, 1, 3, 0);
}

static void check_call(const call_t *c, int64_t n) {
  double y[MOST * 3], sum[3] = {0};
  for (int64_t i = 0; i < n; i++)
    for (int j = 0; j < 3; j++) {
      double s = c->b[j];
      for (int k = 0; k < 4; k++) s += (double)c->x[i * 4 + k] * c->w[j * 4 + k];
      y[i * 3 + j] = s > 0 ? 2 * s : 0;
      sum[j] += y[i * 3 + j];
    }
  assert_close(c->y, y, n * 3);
  assert_close(c->sum, sum, 3);
}

static void run_sizes(fixture_t *w) {
  call_t *c = malloc(sizeof *c);
  for (int64_t n = 1; n <= MOST; n += 3) { /* more sizes than schedules are stored for */
    make_call(c, n);
    if (bc_program_run(w->program,
                       &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                                   .inputs = c->in,
                                   .n_inputs = 3,
                                   .outputs = c->out,
                                   .n_outputs = 2,
                                   .symbols = &n,
                                   .n_symbols = 1},
                       &w->error) != AOT_OK)
      fail_msg("%s", w->error.text);
    check_call(c, n);
  }
  free(c);
}

static void every_size_has_its_schedule_and_shares_the_code(void **state) {
  fixture_t w;
  (void)state;
  begin(&w, "cc");
  assert_string_equal(w.warning.text, "");
  run_sizes(&w);
  bc_program_stats_t s = bc_program_stats(w.program);
  assert_int_equal(s.n_functions,
                   3); /* three columns are too few to share the loop of their terms; a batch of one has none */
  assert_int_equal(s.code.n_compiled, 2);
  assert_int_equal(s.n_fallback, 0);
  assert_int_equal(s.n_groups, 2);
  assert_true(s.arena_nbytes >= MOST * 3 * 4 && s.live_nbytes <= s.arena_nbytes);
  end(&w);
}

static void without_a_compiler_nodes_run_one_by_one(void **state) {
  fixture_t w;
  (void)state;
  begin(&w, "none-such");
  assert_non_null(strstr(w.warning.text, "none-such"));
  assert_string_equal(w.warning.code, "no-compiler");
  run_sizes(&w);
  assert_int_equal(bc_program_stats(w.program).n_fallback, 2); /* sums have a kernel of their own */
  end(&w);
}

static void tensors_that_do_not_fit_are_refused(void **state) {
  fixture_t w;
  call_t *c = malloc(sizeof *c);
  int64_t n = 4, other = 5;
  (void)state;
  begin(&w, "none-such");
  make_call(c, n);
  assert_int_equal(bc_program_run(w.program,
                                  &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                                              .inputs = c->in,
                                              .n_inputs = 3,
                                              .outputs = c->out,
                                              .n_outputs = 2,
                                              .symbols = &other,
                                              .n_symbols = 1},
                                  &w.error),
                   AOT_E_INVALID);
  assert_int_equal(bc_program_run(w.program,
                                  &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                                              .inputs = c->in,
                                              .n_inputs = 2,
                                              .outputs = c->out,
                                              .n_outputs = 2,
                                              .symbols = &n,
                                              .n_symbols = 1},
                                  &w.error),
                   AOT_E_INVALID);
  assert_int_equal(bc_program_run(w.program,
                                  &(hc_run_t){.kind = AOT_GRAPH_BACKWARD,
                                              .inputs = c->in,
                                              .n_inputs = 3,
                                              .outputs = c->out,
                                              .n_outputs = 2,
                                              .symbols = &n,
                                              .n_symbols = 1},
                                  &w.error),
                   AOT_E_NOT_FOUND);
  assert_int_equal(
      bc_program_run(
          w.program,
          &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = c->in, .n_inputs = 3, .outputs = c->out, .n_outputs = 2},
          &w.error),
      AOT_E_INVALID);
  c->out[0].nbytes -= 4;
  assert_int_equal(bc_program_run(w.program,
                                  &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                                              .inputs = c->in,
                                              .n_inputs = 3,
                                              .outputs = c->out,
                                              .n_outputs = 2,
                                              .symbols = &n,
                                              .n_symbols = 1},
                                  &w.error),
                   AOT_E_INVALID);
  assert_non_null(strstr(w.error.text, "output 0"));
  end(&w);
  free(c);
}

/* Whatever is changed in a block, making a program of it answers a status, and what could be made can be run. */
static void damaged_blocks_do_no_harm(void **state) {
  hs_snapshot_t *h = hs_create();
  lw_error_t error = {0}, warning = {0};
  bc_cache_t cache;
  uint32_t seed = 1, n_made = 0;
  int64_t n = 4;
  (void)state;
  build_layer(h);
  const aot_snapshot_t *whole = hs_finish(h);
  uint64_t nbytes = whole->nbytes;
  unsigned char *block = malloc(nbytes);
  assert_int_equal(bc_cache_init(&cache, NULL, "none-such", &error), AOT_OK);
  for (int round = 0; round < 5000; round++) {
    const aot_snapshot_t *s;
    bc_program_t *p;
    sn_error_t wrong;
    memcpy(block, whole, nbytes);
    for (int k = 0; k < 1 + round % 2; k++) {
      seed = seed * 1664525u + 1013904223u;
      block[sizeof *whole + (seed >> 4) % (nbytes - sizeof *whole)] ^= (unsigned char)(1u << (seed >> 29));
    }
    if (sn_check(block, nbytes, &s, &wrong) != AOT_OK) continue;
    if (bc_program_create(s, &no_kernels, &cache, 1, &p, &warning, &error) != AOT_OK) continue;
    call_t *c = malloc(sizeof *c);
    make_call(c, n);
    if (bc_program_run(p,
                       &(hc_run_t){.kind = AOT_GRAPH_FORWARD,
                                   .inputs = c->in,
                                   .n_inputs = 3,
                                   .outputs = c->out,
                                   .n_outputs = 2,
                                   .symbols = &n,
                                   .n_symbols = 1},
                       &error) == AOT_OK)
      n_made++;
    free(c);
    bc_program_destroy(p);
  }
  assert_true(n_made > 100);
  bc_cache_deinit(&cache);
  free(block);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_size_has_its_schedule_and_shares_the_code),
                                     cmocka_unit_test(without_a_compiler_nodes_run_one_by_one),
                                     cmocka_unit_test(tensors_that_do_not_fit_are_refused),
                                     cmocka_unit_test(damaged_blocks_do_no_harm)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
