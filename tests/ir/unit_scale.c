/* A hundred thousand nodes: build, rewrite, print, parse, verify, snapshot and undo, each linear (a quadratic step
 * would take minutes), and small in memory. */
#include "tiny_opset.h"
#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define N_NODES 100000u

static void build(fixture_t *w, aot_graph_t *g, aot_value_t *last) {
  const int64_t sizes[2] = {8, 16};
  const aot_type_t t = f32_type(2, sizes);
  aot_value_t x;
  assert_int_equal(aoth_edit_graph_create(w->p, AOT_GRAPH_FORWARD, aot_str("f"), g), AOT_OK);
  assert_int_equal(aoth_edit_input_add(w->p, *g, AOT_ROLE_SEED, 0, &t, aot_str("x"), &x), AOT_OK);
  aot_node_spec_t s = {
      .struct_size = sizeof s,
      .op = tiny_op(w, "tiny.add.Tensor"),
      .n_args = 2,
      .origin = aot_no_origin(),
  };
  *last = x;
  for (uint32_t i = 0; i < N_NODES; i++) {
    const aot_arg_t args[2] = {aot_arg_value(*last), aot_arg_value(x)};
    aot_node_info_t info = {.struct_size = sizeof info};
    aot_node_t n;
    s.args = args;
    assert_int_equal(aoth_edit_node_create(w->p, *g, &s, aot_no_node(), &n), AOT_OK);
    assert_int_equal(aoth_graph_node_info(w->p, n, &info), AOT_OK);
    *last = info.first_result;
  }
  assert_int_equal(aoth_edit_output_add(w->p, *g, AOT_ROLE_USER_OUTPUT, 0, *last, aot_str("")), AOT_OK);
}

static void a_hundred_thousand_nodes(void **state) {
  fixture_t w;
  aot_graph_t g;
  aot_value_t last;
  const aot_snapshot_t *snapshot;
  (void)state;
  world_init(&w);
  build(&w, &g, &last);
  assert_true(aoth_prog_nbytes(w.p) / N_NODES < 400);
  assert_int_equal(aoth_verify(w.p, 0), AOT_OK);
  assert_int_equal(aoth_graph_snapshot(w.p, &snapshot), AOT_OK);
  assert_int_equal(snapshot->nodes.count, 1 + N_NODES);
  char *before = world_print(&w);
  aoth_journal_begin(w.p);
  aot_value_t x = aoth_graph_inputs(w.p, g)[0].value;
  for (aot_node_t n = aoth_graph_last(w.p, g), prev; n.id != AOT_NO_ID; n = prev) { /* all gone, back to front */
    aot_node_info_t info = {.struct_size = sizeof info};
    prev = aoth_graph_prev(w.p, n);
    assert_int_equal(aoth_graph_node_info(w.p, n, &info), AOT_OK);
    assert_int_equal(aoth_edit_uses_replace(w.p, info.first_result, x), AOT_OK);
    assert_int_equal(aoth_edit_node_erase(w.p, n), AOT_OK);
  }
  assert_int_equal(aoth_graph_first(w.p, g).id, AOT_NO_ID);
  assert_int_equal(aoth_graph_n_uses(w.p, x), 1);
  aoth_journal_undo(w.p);
  char *after = world_print(&w);
  assert_true(strcmp(before, after) == 0);
  world_reset(&w);
  assert_int_equal(world_parse(&w, before), AOT_OK);
  assert_int_equal(aoth_graph_n_nodes(w.p), 1 + N_NODES);
  free(before);
  free(after);
  world_deinit(&w);
}

/* Every node at the front: insertion does not depend on the place. */
static void insertion_anywhere(void **state) {
  fixture_t w;
  aot_graph_t g;
  aot_value_t last;
  (void)state;
  world_init(&w);
  build(&w, &g, &last);
  aot_value_t x = aoth_graph_inputs(w.p, g)[0].value;
  const aot_arg_t args[2] = {aot_arg_value(x), aot_arg_value(x)};
  const aot_node_spec_t s = {
      .struct_size = sizeof s,
      .op = tiny_op(&w, "tiny.add.Tensor"),
      .n_args = 2,
      .args = args,
      .origin = aot_no_origin(),
  };
  aot_node_t n = aoth_graph_first(w.p, g);
  for (uint32_t i = 0; i < N_NODES; i++) assert_int_equal(aoth_edit_node_create(w.p, g, &s, n, &n), AOT_OK);
  assert_int_equal(aoth_graph_first(w.p, g).id, n.id);
  assert_int_equal(aoth_verify(w.p, 0), AOT_OK);
  world_deinit(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_hundred_thousand_nodes), cmocka_unit_test(insertion_anywhere)};
  return cmocka_run_group_tests_name("scale", tests, NULL, NULL);
}
