/* Snapshots: the arrays say what the program holds, and the block can be moved. */
#include "tiny_opset.h"
#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char text[] = "aot 1\n"
                           "symbol s in [1, 64] hint 8\n"
                           "leaf 0 user_input 0 \"x\" : f32[s, 4] strides [1, s] offset 2\n"
                           "rule restride 0 [4, s]\n"
                           "graph @body region {\n"
                           "  in %q = region 0 : f32[4]\n"
                           "  out region 0 = %q\n"
                           "}\n"
                           "graph @f forward {\n"
                           "  in %x = user_input 0 : f32[s, 4]\n"
                           "  %a = tiny.add.Tensor %x, %x, alpha=0.5\n"
                           "  %v, %i = tiny.max.dim %a\n"
                           "  %c : f32[4] = tiny.index.Tensor %v, [none, %i]\n"
                           "  %d : f32[4] = tiny.call @body, %c, \"str\", [1, s], [0.5]\n"
                           "  out user_output 0 \"logits\" = %d\n"
                           "  out user_output 1 = none\n"
                           "}\n";

/* A second program, so that ids and rows differ: its graph is erased. */
static void make_program(fixture_t *w) {
  world_init(w);
  if (world_parse(w, text) != AOT_OK) print_message("%s", aoth_sink_text(w->sink));
  assert_int_equal(w->ctx.n_diags, 0);
  aot_graph_t f = aoth_graph_graph_find(w->p, AOT_GRAPH_FORWARD);
  aot_value_t x = aoth_graph_inputs(w->p, f)[0].value;
  const aot_arg_t args[2] = {aot_arg_value(x), aot_arg_value(x)};
  const aot_node_spec_t s = {
      .struct_size = sizeof s,
      .op = tiny_op(w, "tiny.add.Tensor"),
      .n_args = 2,
      .args = args,
      .origin = aot_no_origin(),
  };
  aot_node_t n;
  assert_int_equal(aoth_edit_node_create(w->p, f, &s, aoth_graph_first(w->p, f), &n), AOT_OK);
  assert_int_equal(aoth_edit_node_erase(w->p, n), AOT_OK);
}

static void check(const aot_snapshot_t *s) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args);
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands);
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints);
  const double *floats = AOT_SNAP_ROWS(s, double, floats);
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  const aot_snap_leaf_t *leaves = AOT_SNAP_ROWS(s, aot_snap_leaf_t, leaves);
  const aot_snap_rule_t *rules = AOT_SNAP_ROWS(s, aot_snap_rule_t, rules);
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols);
  const aot_snap_expr_t *exprs = AOT_SNAP_ROWS(s, aot_snap_expr_t, exprs);
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  assert_int_equal(s->magic, AOT_SNAPSHOT_MAGIC);
  assert_int_equal(s->version, 3);
  assert_int_equal(s->graphs.count, 1 + 2); /* row 0 is empty */
  assert_int_equal(s->nodes.count, 1 + 4);
  assert_int_equal(s->values.count, 1 + 7);
  assert_int_equal(s->ops.count, 1 + 4); /* only those in use */
  assert_int_equal(s->nodes.row_size, sizeof *nodes);
  const aot_snap_graph_t no_graph = {0};
  const aot_snap_node_t no_node = {0};
  const aot_snap_value_t no_value = {0};
  const aot_snap_leaf_t no_leaf = {0};
  const aot_snap_expr_t no_expr = {0};
  const aot_snap_op_t no_op = {0};
  assert_memory_equal(&graphs[0], &no_graph, sizeof no_graph);
  assert_memory_equal(&nodes[0], &no_node, sizeof no_node);
  assert_memory_equal(&values[0], &no_value, sizeof no_value);
  assert_memory_equal(&leaves[0], &no_leaf, sizeof no_leaf);
  assert_memory_equal(&exprs[0], &no_expr, sizeof no_expr);
  assert_memory_equal(&ops[0], &no_op, sizeof no_op);
  const aot_snap_graph_t *f = &graphs[2];
  assert_int_equal(f->kind, AOT_GRAPH_FORWARD);
  assert_true(aot_str_eq(aot_snap_text(s, f->name), aot_str("f")));
  assert_int_equal(f->n_nodes, 4);
  assert_int_equal(f->n_inputs, 1);
  assert_int_equal(f->n_outputs, 2);
  const aot_snap_node_t *add = &nodes[f->node_begin], *max = add + 1, *index = add + 2, *call = add + 3;
  assert_true(aot_str_eq(aot_snap_text(s, ops[add->op].name), aot_str("tiny.add.Tensor")));
  assert_int_equal(ops[add->op].flags, AOT_OP_POINTWISE);
  assert_int_equal(add->n_operands, 2);
  assert_int_equal(operands[add->operand_begin], ports[f->input_begin].value);
  assert_int_equal(args[add->arg_begin].kind, AOT_ARG_VALUE);
  assert_int_equal(args[add->arg_begin].i, ports[f->input_begin].value);
  double alpha;
  memcpy(&alpha, &args[add->arg_begin + 2].i, sizeof alpha);
  assert_true(args[add->arg_begin + 2].kind == AOT_ARG_FLOAT && alpha == 0.5);
  assert_int_equal(max->n_results, 2);
  assert_int_equal(values[max->result_begin + 1].def, f->node_begin + 1);
  assert_int_equal(values[max->result_begin + 1].index, 1);
  assert_int_equal(args[index->arg_begin + 1].kind, AOT_ARG_VALUES);
  assert_int_equal(args[index->arg_begin + 1].n, 2);
  assert_int_equal(args[index->arg_begin + 1].i, index->operand_begin + 1);
  assert_int_equal(operands[index->operand_begin + 1], AOT_NO_ID);
  assert_int_equal(operands[index->operand_begin + 2], max->result_begin + 1);
  assert_int_equal(args[call->arg_begin].kind, AOT_ARG_GRAPH);
  assert_int_equal(args[call->arg_begin].i, 1);
  const aot_snap_str_t str = {(uint32_t)args[call->arg_begin + 2].i, args[call->arg_begin + 2].n};
  assert_true(aot_str_eq(aot_snap_text(s, str), aot_str("str")));
  assert_int_equal(ints[args[call->arg_begin + 3].i], 1);
  assert_int_equal(ints[args[call->arg_begin + 3].i + 1], AOT_DIM_SYM + 1);
  assert_true(floats[args[call->arg_begin + 4].i] == 0.5);
  const aot_snap_value_t *x = &values[ports[f->input_begin].value];
  assert_int_equal(x->def, AOT_NO_ID);
  assert_int_equal(x->dtype, AOT_F32);
  assert_int_equal(ints[x->dims], AOT_DIM_SYM + 1);
  assert_int_equal(ints[x->dims + 1], 4);
  assert_int_equal(ints[x->dims + 2], 4); /* strides follow */
  assert_int_equal(ints[x->dims + 3], 1);
  assert_true(aot_str_eq(aot_snap_text(s, ports[f->output_begin].name), aot_str("logits")));
  assert_int_equal(ports[f->output_begin].value, call->result_begin);
  assert_int_equal(ports[f->output_begin + 1].value, AOT_NO_ID);
  assert_int_equal(leaves[1].offset, 2);
  assert_int_equal(ints[leaves[1].dims + 3], AOT_DIM_SYM + 1);
  assert_true(aot_str_eq(aot_snap_text(s, leaves[1].name), aot_str("x")));
  assert_int_equal(rules[0].kind, AOT_RULE_RESTRIDE);
  assert_int_equal(ints[rules[0].dims], 4);
  assert_int_equal(symbols[0].max, 64);
  assert_int_equal(exprs[1].op, AOT_EXPR_SYMBOL);
}

static void the_arrays_say_what_the_program_holds(void **state) {
  fixture_t w;
  const aot_snapshot_t *s, *again;
  (void)state;
  make_program(&w);
  assert_int_equal(aoth_graph_snapshot(w.p, &s), AOT_OK);
  check(s);
  assert_int_equal(aoth_graph_snapshot(w.p, &again), AOT_OK);
  assert_ptr_equal(s, again); /* cached */
  uint64_t generation = s->generation;
  aot_graph_t g;
  assert_int_equal(aoth_edit_graph_create(w.p, AOT_GRAPH_REGION, aot_str("new"), &g), AOT_OK);
  assert_int_equal(aoth_graph_snapshot(w.p, &s), AOT_OK);
  assert_int_equal(s->graphs.count, 1 + 3);
  assert_int_not_equal(s->generation, generation);
  world_deinit(&w);
}

static void the_block_can_be_moved(void **state) {
  fixture_t w;
  const aot_snapshot_t *s;
  (void)state;
  make_program(&w);
  assert_int_equal(aoth_graph_snapshot(w.p, &s), AOT_OK);
  aot_snapshot_t *copy = malloc((size_t)s->nbytes);
  memcpy(copy, s, (size_t)s->nbytes);
  world_deinit(&w); /* nothing of the host is left */
  check(copy);
  free(copy);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_arrays_say_what_the_program_holds),
                                     cmocka_unit_test(the_block_can_be_moved)};
  return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
