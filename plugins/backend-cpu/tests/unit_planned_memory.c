/* What is planned is what is used: the plan made without compiling against the arena of a program that runs, with and
 * without a compiler; rows that never overlap. */
#include "naive.h"

#include "kit/graph/hand_snapshot.h"
#include "kit/lowering/planned_memory.h"
#include "exec.h"
#include "target.h"

static const custom_world_t no_kernels;

static aot_status_t plan_memory(const aot_snapshot_t *s, int32_t n_threads, int compiles, mr_rows_t *out,
                                lw_error_t *error) {
  const lw_machine_t machine = bc_planning_machine(n_threads, NULL, compiles);
  return lw_tell_memory(s, &no_kernels, &machine, NULL, 0, out, error);
}

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

/* A value that is read by `n_readers` chains: arenas with several buffers alive, products with scratch, fused
 * groups. */
static uint32_t chain(hs_snapshot_t *h, uint32_t x, uint32_t w, int64_t rows, int k) {
  static const char *const pointwise[] = {"aten.relu.default", "aten.sigmoid.default", "aten.tanh.default"};
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, x), hs_arg_value(h, w);
  uint32_t y = hs_result(h, AOT_F32, 2, DIMS(rows, 8));
  for (int i = 0; i < 3; i++) {
    hs_node(h, pointwise[(i + k) % 3]);
    hs_arg_value(h, y);
    y = hs_result(h, AOT_F32, 2, DIMS(rows, 8));
  }
  return y;
}

static void role(hs_snapshot_t *h, int32_t r) { h->ports[h->n_ports - 1].role = r; }

/* forward: two chains, their sum is the output, both saved; backward: from both and a tangent the gradient of w */
static void build(hs_snapshot_t *h, int64_t rows) {
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(rows, 8)), w = hs_input(h, AOT_F32, 2, DIMS(8, 8));
  role(h, AOT_ROLE_PARAMETER);
  const uint32_t a = chain(h, x, w, rows, 0), b = chain(h, a, w, rows, 1);
  hs_node(h, "aten.softmax.int");
  hs_arg_value(h, b), hs_arg_int(h, 0), hs_arg_none(h);
  const uint32_t c = hs_result(h, AOT_F32, 2, DIMS(rows, 8));
  hs_output(h, c), hs_output(h, a), hs_output(h, b);
  h->outputs[1].role = h->outputs[2].role = AOT_ROLE_SAVED;
  hs_graph(h, AOT_GRAPH_BACKWARD);
  const uint32_t s = hs_input(h, AOT_F32, 2, DIMS(rows, 8));
  role(h, AOT_ROLE_SAVED);
  const uint32_t u = hs_input(h, AOT_F32, 2, DIMS(rows, 8));
  role(h, AOT_ROLE_SAVED);
  const uint32_t t = hs_input(h, AOT_F32, 2, DIMS(rows, 8));
  role(h, AOT_ROLE_TANGENT);
  hs_node(h, "aten.t.default");
  hs_arg_value(h, s);
  const uint32_t st = hs_result_strided(h, AOT_F32, 2, DIMS(8, rows), DIMS(1, 8));
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, st), hs_arg_value(h, u);
  const uint32_t g = hs_result(h, AOT_F32, 2, DIMS(8, 8)), f = chain(h, t, g, rows, 2);
  hs_node(h, "aten.mm.default");
  hs_arg_value(h, st), hs_arg_value(h, f);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(8, 8)));
  h->outputs[0].role = AOT_ROLE_GRADIENT;
}

static void check_apart(const aot_memory_plan_t *p) {
  uint32_t n_arena = 0;
  for (uint64_t i = 0; i < p->n_buffers; i++) {
    const aot_memory_buffer_t *b = &p->buffers[i];
    assert_true(b->first <= b->last && b->last < p->n_steps);
    n_arena += b->place != MR_OWN;
    assert_true(b->place == MR_OWN || b->place + b->nbytes <= p->arena_nbytes);
    for (uint64_t k = 0; k < i && b->place != MR_OWN; k++) {
      const aot_memory_buffer_t *c = &p->buffers[k];
      const int both = b->first <= c->last && c->first <= b->last;
      assert_true(!both || c->place == MR_OWN || b->place + b->nbytes <= c->place || c->place + c->nbytes <= b->place);
    }
  }
  assert_true(n_arena > 2);
}

static uint64_t live_in_arena(const aot_memory_plan_t *p) {
  uint64_t most = 0;
  for (uint64_t t = 0; t < p->n_steps; t++) {
    uint64_t now = 0;
    for (uint64_t i = 0; i < p->n_buffers; i++)
      if (p->buffers[i].place != MR_OWN && p->buffers[i].first <= t && t <= p->buffers[i].last)
        now += p->buffers[i].nbytes;
    if (now > most) most = now;
  }
  return most;
}

static void run_all(bc_program_t *p, int64_t rows) {
  enum { MOST = 64 * 8 };
  static float x[MOST], w[64], y[MOST], a[MOST], b[MOST], g[64];
  const int64_t sizes[] = {rows, 8}, square[] = {8, 8}, strides[] = {8, 1};
  const aot_tensor_t wide = {
      .nbytes = (uint64_t)rows * 32, .dtype = AOT_F32, .rank = 2, .sizes = sizes, .strides = strides};
  aot_tensor_t in[2] = {wide, wide}, out[3] = {wide, wide, wide}, back[3] = {wide, wide, wide}, grad = wide;
  lw_error_t e;
  in[0].data = x, in[1].data = w, in[1].nbytes = grad.nbytes = 256, in[1].sizes = grad.sizes = square;
  out[0].data = y, back[0].data = out[1].data = a, back[1].data = out[2].data = b, back[2].data = x, grad.data = g;
  if (bc_program_run(
          p, &(hc_run_t){.kind = AOT_GRAPH_FORWARD, .inputs = in, .n_inputs = 2, .outputs = out, .n_outputs = 3}, &e) !=
      AOT_OK)
    fail_msg("%s", e.text);
  if (bc_program_run(
          p, &(hc_run_t){.kind = AOT_GRAPH_BACKWARD, .inputs = back, .n_inputs = 3, .outputs = &grad, .n_outputs = 1},
          &e) != AOT_OK)
    fail_msg("%s", e.text);
}

static void the_plan_is_what_a_run_takes(void **state) {
  static const char *const compilers[] = {"none-such", "cc"};
  (void)state;
  for (int compiles = 0; compiles < 2; compiles++)
    for (int64_t rows = 1; rows <= 64; rows += 21) {
      hs_snapshot_t *h = hs_create();
      mr_rows_t r = {0};
      bc_cache_t cache;
      bc_program_t *p;
      lw_error_t e = {0}, warning = {0};
      build(h, rows);
      const aot_snapshot_t *s = hs_finish(h);
      assert_int_equal(bc_cache_init(&cache, NULL, compilers[compiles], &e), AOT_OK);
      assert_int_equal(bc_code_available(&cache, &e) == AOT_OK, compiles);
      if (plan_memory(s, 2, compiles, &r, &e) != AOT_OK) fail_msg("%s", e.text);
      if (bc_program_create(s, &no_kernels, &cache, 2, &p, &warning, &e) != AOT_OK) fail_msg("%s", e.text);
      run_all(p, rows);
      const bc_program_stats_t stats = bc_program_stats(p);
      assert_int_equal(r.plan.arena_nbytes, stats.arena_nbytes);
      assert_int_equal(live_in_arena(&r.plan), stats.live_nbytes);
      assert_int_equal(r.plan.n_steps, stats.n_steps);
      check_apart(&r.plan);
      bc_program_destroy(p);
      bc_cache_deinit(&cache);
      mr_deinit(&r);
      hs_destroy(h);
    }
}

static void buffers_have_their_values_and_kinds(void **state) {
  hs_snapshot_t *h = hs_create();
  mr_rows_t r = {0};
  lw_error_t e;
  uint32_t n[7] = {0};
  (void)state;
  build(h, 5);
  if (plan_memory(hs_finish(h), 1, 1, &r, &e) != AOT_OK) fail_msg("%s", e.text);
  for (uint64_t i = 0; i < r.n_buffers; i++) {
    n[r.buffers[i].kind]++;
    assert_int_equal(r.buffers[i].value.id == AOT_NO_ID, r.buffers[i].kind == AOT_MEMORY_SCRATCH);
  }
  assert_true(n[AOT_MEMORY_INPUT] == 2 && n[AOT_MEMORY_SAVED] == 2 && n[AOT_MEMORY_OUTPUT] == 1 &&
              n[AOT_MEMORY_GRADIENT] == 1);
  assert_true(n[AOT_MEMORY_TEMPORARY] >= 4);
  mr_deinit(&r);
  hs_destroy(h);
}

static void a_joint_graph_has_no_plan(void **state) {
  hs_snapshot_t *h = hs_create();
  mr_rows_t r = {0};
  lw_error_t e;
  (void)state;
  build(h, 5);
  h->graphs[1].kind = AOT_GRAPH_JOINT;
  assert_int_equal(plan_memory(hs_finish(h), 1, 1, &r, &e), AOT_E_PRECONDITION);
  mr_deinit(&r);
  hs_destroy(h);
}

/* Twice as many positions, all queries of one another: what attention needs next to its operands no more than
 * doubles. */
static uint64_t attention_scratch(int64_t positions) {
  hs_snapshot_t *h = hs_create();
  mr_rows_t r = {0};
  lw_error_t e;
  uint64_t most = 0;
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t q = hs_input(h, AOT_F32, 3, DIMS(2, positions, 16));
  hs_node(h, "aten.scaled_dot_product_attention.default");
  for (int i = 0; i < 3; i++) hs_arg_value(h, q);
  hs_arg_none(h), hs_arg_float(h, 0), hs_arg_bool(h, 1);
  const uint32_t y = hs_result(h, AOT_F32, 3, DIMS(2, positions, 16));
  hs_node(h, "aot.scaled_dot_product_attention_backward.default");
  for (int i = 0; i < 4; i++) hs_arg_value(h, i ? q : y);
  hs_arg_none(h), hs_arg_float(h, 0), hs_arg_bool(h, 1);
  for (int i = 0; i < 3; i++) hs_output(h, hs_result(h, AOT_F32, 3, DIMS(2, positions, 16)));
  if (plan_memory(hs_finish(h), 1, 1, &r, &e) != AOT_OK) fail_msg("%s", e.text);
  for (uint64_t i = 0; i < r.n_buffers; i++)
    if (r.buffers[i].kind == AOT_MEMORY_SCRATCH && r.buffers[i].nbytes > most) most = r.buffers[i].nbytes;
  mr_deinit(&r);
  hs_destroy(h);
  return most;
}

static void attention_has_no_square_of_positions(void **state) {
  (void)state;
  for (int64_t positions = 256; positions <= 8192; positions *= 2) {
    const uint64_t once = attention_scratch(positions), twice = attention_scratch(2 * positions);
    assert_true(once > 0 && twice <= 2 * once + 4096);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_plan_is_what_a_run_takes), cmocka_unit_test(buffers_have_their_values_and_kinds),
      cmocka_unit_test(a_joint_graph_has_no_plan), cmocka_unit_test(attention_has_no_square_of_positions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
