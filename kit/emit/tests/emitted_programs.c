/* The emitter on the host's own programs, with the tiny operator set: where nodes go, what they carry, how failures
 * stay. */
#include "kit/emit/inline_body.h"
#include "tiny_opset.h"

#include <bridge.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char base_text[] = "aot 1\n"
                                "leaf 0 parameter \"w\" : f32[4] grad\n"
                                "graph @f forward {\n"
                                "  in %x = parameter 0 : f32[4]\n"
                                "  %a : f32[4] = tiny.add.Tensor %x, %x {must_recompute} region 2 !0\n"
                                "  %b : f32[4] = tiny.add.Tensor %a, %x, alpha=3\n"
                                "  out user_output 0 = %b\n"
                                "}\n"
                                "origin 0 \"m.py\":3 module \"a.b\" node \"n\"\n";

static em_t begin(fixture_t *w, const char *text) {
  world_init(w);
  if (world_parse(w, text) != AOT_OK) print_message("%s", aoth_sink_text(w->sink));
  assert_int_equal(aoth_verify(w->p, 0), AOT_OK);
  const aot_host_t *host = aoth_bridge_host(w->session, AOT_ABI_MINOR);
  assert_non_null(host);
  em_t e = em_make(host, &w->ctx, w->p, aoth_graph_graph_find(w->p, AOT_GRAPH_FORWARD));
  e.code = "test.operator";
  e.what = "the sum";
  return e;
}

static aot_node_t node_at(const em_t *e, uint32_t i) {
  aot_node_t n = e->host->graph->first(e->prog, e->graph);
  while (i-- > 0) n = e->host->graph->next(e->prog, n);
  return n;
}

static em_x_t input(const em_t *e) { return em_v(e->host->graph->inputs(e->prog, e->graph)[0].value); }

static void check_text(fixture_t *w, const char *holds) {
  char *text = world_print(w);
  if (!strstr(text, holds)) fail_msg("not found: %s\nin: %s", holds, text);
  free(text);
}

static void nodes_go_to_the_end_and_carry_nothing(void **state) {
  fixture_t w;
  em_t e = begin(&w, base_text);
  (void)state;
  const em_x_t y = EM(&e, "tiny.add.Tensor", input(&e), input(&e), em_i(2));
  assert_int_equal(e.status, AOT_OK);
  assert_int_equal(em_type(&e, y).sizes[0], 4);
  const em_x_t both = EM(&e, "tiny.max.dim", y);
  assert_int_equal(em_value(&e, em_nth(both, 1)).id, em_value(&e, both).id + 1);
  check_text(&w, "  %b : f32[4] = tiny.add.Tensor %a, %x, alpha=3\n  %3 : f32[4] = tiny.add.Tensor %x, %x, alpha=2\n");
  world_deinit(&w);
}

static void a_rewritten_node_hands_on_what_it_carries(void **state) {
  fixture_t w;
  em_t e = begin(&w, base_text);
  (void)state;
  const aot_node_t a = node_at(&e, 0);
  assert_int_equal(em_rewrite(&e, a), AOT_OK);
  const em_x_t y = EM(&e, "tiny.view.default", em_in(&e, "self"), aot_arg_ints((int64_t[]){4}, 1));
  em_take_over(&e, e.info.first_result, em_value(&e, y), 1);
  assert_int_equal(e.host->edit->node_erase(e.prog, a), AOT_OK);
  assert_int_equal(e.status, AOT_OK);
  check_text(&w, "  %a : f32[4] = tiny.view.default %x, [4] {must_recompute} region 2 !0\n  %b : f32[4] = "
                 "tiny.add.Tensor %a, %x, alpha=3\n");
  world_deinit(&w);
}

static void arguments_are_found_by_name(void **state) {
  fixture_t w;
  em_t e = begin(&w, base_text);
  (void)state;
  assert_int_equal(em_in(&e, "alpha").kind, AOT_ARG_NONE); /* no node at hand */
  assert_int_equal(em_look(&e, node_at(&e, 1)), AOT_OK);
  assert_int_equal(em_in(&e, "alpha").u.i, 3);
  assert_int_equal(em_in(&e, "beta").kind, AOT_ARG_NONE);
  assert_int_equal(e.before.id, aot_no_node().id); /* looking moves nothing */
  world_deinit(&w);
}

static void the_first_failure_stays(void **state) {
  fixture_t w;
  em_t e = begin(&w, base_text);
  (void)state;
  const uint32_t n = e.host->graph->n_nodes(e.prog);
  const em_x_t y = em_mul(&e, em_add(&e, input(&e), input(&e)), em_f(2));
  assert_int_equal(y.kind, AOT_ARG_NONE);
  assert_int_equal(e.status, AOT_E_PRECONDITION);
  assert_int_equal(em_value(&e, input(&e)).id, aot_no_value().id);
  assert_int_equal(e.host->graph->n_nodes(e.prog), n);
  assert_non_null(strstr(aoth_sink_text(w.sink), "the sum is made of aten.add.Tensor, which no operator set has"));
  assert_null(strstr(aoth_sink_text(w.sink), "aten.mul"));
  world_deinit(&w);
}

/* "exp" and "mul.Tensor" are ATen's; three parts, or higher_order, are whole names. */
static void names_are_completed(void **state) {
  static const char *const names[][2] = {{"exp", "aten.exp.default"},
                                         {"mul.Scalar", "aten.mul.Scalar"},
                                         {"other.exp.default", "other.exp.default"},
                                         {"higher_order.cond", "higher_order.cond"}};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    fixture_t w;
    char text[80] = "made of ";
    em_t e = begin(&w, base_text);
    em_op(&e, names[i][0]);
    assert_non_null(strstr(aoth_sink_text(w.sink), strcat(strcat(text, names[i][1]), ",")));
    world_deinit(&w);
  }
}

static void what_is_no_tensor_is_refused(void **state) {
  fixture_t w;
  em_t e = begin(&w, base_text);
  (void)state;
  assert_int_equal(em_look(&e, node_at(&e, 1)), AOT_OK);
  assert_int_equal(em_type(&e, em_i(3)).kind, AOT_TYPE_NONE);
  assert_int_equal(e.status, AOT_E_UNIMPLEMENTED);
  assert_non_null(strstr(aoth_sink_text(w.sink), "tiny.add.Tensor: a tensor is expected where there is none"));
  assert_int_equal(em_look(&e, node_at(&e, 0)), AOT_E_UNIMPLEMENTED);
  e.status = AOT_OK;
  assert_int_equal(em_value(&e, em_f(1)).id, aot_no_value().id);
  assert_int_equal(e.status, AOT_E_UNIMPLEMENTED);
  world_deinit(&w);
}

static const char calling_text[] = "aot 1\n"
                                   "leaf 0 parameter \"w\" : f32[4] grad\n"
                                   "graph @f forward {\n"
                                   "  in %x = parameter 0 : f32[4]\n"
                                   "  %a : f32[4], %b : f32[4] = tiny.call @body, %x, 7 {must_save no_grad} region 2\n"
                                   "  out user_output 0 = %a\n"
                                   "}\n"
                                   "graph @body region {\n"
                                   "  in %y = region 0 : f32[4]\n"
                                   "  in %n = region 1 : symint(7)\n"
                                   "  %c : f32[4] = tiny.add.Tensor %y, %y\n"
                                   "  %d : f32[4] = tiny.cat.default [%c], 0 {prefer_recompute} region 5\n"
                                   "  out region 0 = %d\n"
                                   "  out region 1 = none\n"
                                   "}\n";

/* Twice the same body: marks of the call hold where its nodes have none. */
static void a_body_stands_in_for_its_call(void **state) {
  fixture_t w;
  em_t e = begin(&w, calling_text);
  em_inliner_t in;
  em_x_t out[2];
  (void)state;
  const aot_node_t call = node_at(&e, 0);
  assert_int_equal(em_rewrite(&e, call), AOT_OK);
  em_inline_open(&in, &e);
  em_inline(&in, (aot_graph_t){(uint32_t)e.info.args[0].u.i}, 2, e.info.args + 1, out);
  em_inline(&in, (aot_graph_t){(uint32_t)e.info.args[0].u.i}, 2, (em_x_t[]){out[0], em_i(7)}, out);
  assert_int_equal(e.status, AOT_OK);
  assert_int_equal(out[1].kind, AOT_ARG_NONE);
  em_take_over(&e, e.info.first_result, em_value(&e, out[0]), 1);
  assert_int_equal(e.host->edit->node_erase(e.prog, call), AOT_OK);
  em_inline(&in, (aot_graph_t){2}, 1, out, out);
  assert_int_equal(e.status, AOT_E_INVALID);
  em_inline_close(&in);
  assert_int_equal(aoth_verify(w.p, 0), AOT_OK);
  check_text(&w, "  %1 : f32[4] = tiny.add.Tensor %x, %x {must_save no_grad} region 2\n"
                 "  %2 : f32[4] = tiny.cat.default [%1], 0 {prefer_recompute no_grad} region 5\n"
                 "  %3 : f32[4] = tiny.add.Tensor %2, %2 {must_save no_grad} region 2\n"
                 "  %a : f32[4] = tiny.cat.default [%3], 0 {prefer_recompute no_grad} region 5\n"
                 "  out user_output 0 = %a\n");
  world_deinit(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_go_to_the_end_and_carry_nothing),
                                     cmocka_unit_test(a_rewritten_node_hands_on_what_it_carries),
                                     cmocka_unit_test(arguments_are_found_by_name),
                                     cmocka_unit_test(the_first_failure_stays),
                                     cmocka_unit_test(names_are_completed),
                                     cmocka_unit_test(what_is_no_tensor_is_refused),
                                     cmocka_unit_test(a_body_stands_in_for_its_call)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
