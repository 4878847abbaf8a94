/* Rows of a memory plan: the boundary's lifetimes, and the peak against a naive count over steps. */
#include "kit/model/rows.h"
#include "kit/graph/hand_snapshot.h"
#include "kit/base/splitmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

static void the_peak_is_that_of_a_count_over_steps(void **state) {
  uint64_t seed = 1;
  mr_rows_t r = {0};
  (void)state;
  for (int round = 0; round < 200; round++) {
    const uint32_t n_steps = 1 + (uint32_t)(kit_splitmix64(&seed) % 20);
    uint64_t most_own = 0, most = 0, at = 0;
    mr_clear(&r);
    for (uint32_t t = 0; t < n_steps; t++) mr_step(&r, 0, t, MR_FORWARD);
    for (int i = 0; i < 30; i++) {
      const uint32_t a = (uint32_t)(kit_splitmix64(&seed) % n_steps), b = (uint32_t)(kit_splitmix64(&seed) % n_steps);
      const aot_memory_buffer_t row = {
          .kind = AOT_MEMORY_TEMPORARY,
          .first = a < b ? a : b,
          .last = a < b ? b : a,
          .value = {AOT_NO_ID},
          .nbytes = kit_splitmix64(&seed) % 100,
          .place = i % 2 ? MR_OWN : 0,
      };
      mr_buffer(&r, &row);
    }
    for (uint32_t t = 0; t < n_steps; t++) {
      uint64_t own = 0, all = 0;
      for (uint64_t i = 0; i < r.n_buffers; i++)
        if (r.buffers[i].first <= t && t <= r.buffers[i].last) {
          all += r.buffers[i].nbytes;
          own += r.buffers[i].place == MR_OWN ? r.buffers[i].nbytes : 0;
        }
      if (own > most_own) most_own = own;
      if (all > most) most = all, at = t;
    }
    assert_int_equal(mr_finish(&r, 5000), AOT_OK);
    assert_true(r.plan.peak_nbytes == most_own + 5000 && r.plan.peak_step == at && r.plan.arena_nbytes == 5000);
  }
  mr_deinit(&r);
}

/* A forward of two outputs, the second saved for a backward that takes a tangent and gives a gradient. */
static const aot_snapshot_t *two_graphs(hs_snapshot_t *h) {
  hs_graph(h, AOT_GRAPH_FORWARD);
  const uint32_t x = hs_input(h, AOT_F32, 2, DIMS(3, 5)), w = hs_input(h, AOT_F32, 1, DIMS(5));
  h->ports[h->n_ports - 1].role = AOT_ROLE_PARAMETER;
  hs_node(h, "aten.mul.Tensor");
  hs_arg_value(h, x), hs_arg_value(h, w);
  const uint32_t y = hs_result(h, AOT_F32, 2, DIMS(3, 5));
  hs_output(h, y);
  hs_output(h, y);
  h->outputs[1].role = AOT_ROLE_SAVED;
  hs_graph(h, AOT_GRAPH_BACKWARD);
  const uint32_t s = hs_input(h, AOT_F32, 2, DIMS(3, 5));
  h->ports[h->n_ports - 1].role = AOT_ROLE_SAVED;
  const uint32_t t = hs_input(h, AOT_F32, 2, DIMS(3, 5));
  h->ports[h->n_ports - 1].role = AOT_ROLE_TANGENT;
  hs_node(h, "aten.mul.Tensor");
  hs_arg_value(h, s), hs_arg_value(h, t);
  hs_output(h, hs_result(h, AOT_F32, 2, DIMS(3, 5)));
  h->outputs[0].role = AOT_ROLE_GRADIENT;
  return hs_finish(h);
}

static void the_boundary_lives_until_the_end(void **state) {
  hs_snapshot_t *h = hs_create();
  const aot_snapshot_t *s = two_graphs(h);
  const uint32_t written_forward[] = {0, 0}, written_backward[] = {1};
  const mr_graph_t graphs[] = {{1, 0, 1, written_forward}, {2, 1, 2, written_backward}};
  /* clang-format off */
  static const struct { int32_t kind; uint32_t first; } expected[] = {
      {AOT_MEMORY_INPUT, 0}, {AOT_MEMORY_OUTPUT, 0}, {AOT_MEMORY_SAVED, 0}, {AOT_MEMORY_INPUT, 1},
      {AOT_MEMORY_GRADIENT, 1}};
  /* clang-format on */
  mr_rows_t r = {0};
  (void)state;
  mr_step(&r, 1, 1, mr_part_of(s, 1));
  mr_step(&r, 2, 2, mr_part_of(s, 2));
  assert_int_equal(mr_boundary(&r, s, NULL, graphs, 2), AOT_OK);
  assert_int_equal(mr_finish(&r, 0), AOT_OK);
  assert_int_equal(r.plan.n_forward_steps, 1);
  assert_int_equal(r.n_buffers, 5); /* not the parameter, and the saved slot once */
  for (int i = 0; i < 5; i++) {
    assert_int_equal(r.buffers[i].kind, expected[i].kind);
    assert_int_equal(r.buffers[i].first, expected[i].first);
    assert_int_equal(r.buffers[i].last, 1);
    assert_int_equal(r.buffers[i].nbytes, 64); /* of 60 */
  }
  assert_int_equal(r.plan.peak_nbytes, 5 * 64);
  mr_deinit(&r);
  hs_destroy(h);
}

static void sizes_that_cannot_be_are_refused(void **state) {
  hs_snapshot_t *h = hs_create();
  const uint32_t written[] = {0, 0};
  const mr_graph_t forward = {1, 0, 1, written};
  mr_rows_t r = {0};
  (void)state;
  two_graphs(h);
  h->ints[0] = INT64_MAX / 2;
  const aot_snapshot_t *s = hs_finish(h);
  mr_step(&r, 1, 1, MR_FORWARD);
  assert_int_equal(mr_boundary(&r, s, NULL, &forward, 1), AOT_E_RANGE);
  mr_deinit(&r);
  hs_destroy(h);
}

/* x -> y -> z; w's new value is made of z: y is saved for z, z is a gradient for the update, and the new value lies
 * outside. */
static void a_step_names_what_lives_across(void **state) {
  hs_snapshot_t *h = hs_create();
  const uint32_t flags[] = {0, AOT_NODE_BACKWARD, AOT_NODE_UPDATE};
  uint32_t at[3], graphs[2];
  mr_rows_t r = {0};
  (void)state;
  hs_graph(h, AOT_GRAPH_STEP);
  at[0] = hs_input(h, AOT_F32, 1, DIMS(16));
  for (int k = 0; k < 3; k++) {
    hs_node(h, "aten.exp.default");
    h->nodes[h->n_nodes - 1].flags = flags[k];
    hs_arg_value(h, at[0]);
    at[0] = hs_result(h, AOT_F32, 1, DIMS(16));
  }
  hs_output(h, at[0]);
  h->outputs[0].role = AOT_ROLE_UPDATE;
  const aot_snapshot_t *s = hs_finish(h);
  const uint32_t written[] = {2};
  assert_int_equal(mr_graphs_of(s, graphs), 1);
  for (uint32_t n = 1; n <= 3; n++) mr_step(&r, 1, n, mr_part_of(s, n));
  for (uint32_t k = 0; k < 3; k++) {
    const aot_memory_buffer_t row = {.kind = AOT_MEMORY_TEMPORARY, .first = k, .last = k < 2 ? k + 1 : k, .nbytes = 64};
    mr_buffer(&r, &row);
  }
  assert_int_equal(mr_boundary(&r, s, NULL, &(mr_graph_t){graphs[0], 0, 3, written}, 1), AOT_OK);
  assert_int_equal(mr_finish(&r, 128), AOT_OK);
  assert_int_equal(r.n_buffers, 4);
  const int32_t kinds[] = {AOT_MEMORY_SAVED, AOT_MEMORY_GRADIENT, AOT_MEMORY_TEMPORARY, AOT_MEMORY_INPUT};
  for (int k = 0; k < 4; k++) assert_int_equal(r.buffers[k].kind, kinds[k]);
  assert_int_equal(r.plan.n_forward_steps, 1);
  assert_int_equal(r.plan.peak_nbytes, 128 + 64);
  mr_deinit(&r);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_peak_is_that_of_a_count_over_steps),
      cmocka_unit_test(the_boundary_lives_until_the_end),
      cmocka_unit_test(sizes_that_cannot_be_are_refused),
      cmocka_unit_test(a_step_names_what_lives_across),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
