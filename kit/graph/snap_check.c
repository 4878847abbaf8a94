/* Checking a snapshot block: header, extents of the arrays, then every row number in every row. The work memory is one
 * word a value (which graph defines it). */
#include "snap_check.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct checker {
  const aot_snapshot_t *s;
  uint32_t *graph_of; /* of a value; 0: nothing defines it */
  sn_error_t *error;
} checker_t;

static aot_status_t damaged(sn_error_t *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static aot_status_t damaged(sn_error_t *error, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(error->text, sizeof error->text, format, list);
  va_end(list);
  return AOT_E_DATA_LOSS;
}
#define NEED(condition, ...)                                                                                           \
  do {                                                                                                                 \
    if (!(condition)) return damaged(k->error, __VA_ARGS__);                                                           \
  } while (0)

static int range_ok(uint64_t begin, uint64_t n, uint32_t count) { return begin + n <= count; }
/* Of an empty list, too, the first row is one that could be: readers add to it before they look at n. */
static int list_ok(uint64_t begin, uint64_t n, uint32_t count) { return begin <= count && range_ok(begin, n, count); }
static int text_ok(const aot_snapshot_t *s, aot_snap_str_t t) { return range_ok(t.begin, t.size, s->chars.count); }
static int dim_ok(const aot_snapshot_t *s, int64_t d) {
  return !AOT_DIM_IS_SYM(d) || (AOT_DIM_EXPR(d) && AOT_DIM_EXPR(d) < s->exprs.count);
}

static aot_status_t check_arrays(checker_t *k) {
  const aot_snapshot_t *s = k->s;
  /* clang-format off */
  const struct { const aot_snap_array_t *array; const char *name; uint32_t row_size; } arrays[] = {
      {&s->graphs, "graphs", sizeof(aot_snap_graph_t)}, {&s->nodes, "nodes", sizeof(aot_snap_node_t)},
      {&s->values, "values", sizeof(aot_snap_value_t)}, {&s->args, "args", sizeof(aot_snap_arg_t)},
      {&s->operands, "operands", sizeof(uint32_t)},     {&s->ints, "ints", sizeof(int64_t)},
      {&s->floats, "floats", sizeof(double)},           {&s->ports, "ports", sizeof(aot_snap_port_t)},
      {&s->leaves, "leaves", sizeof(aot_snap_leaf_t)},  {&s->rules, "rules", sizeof(aot_snap_rule_t)},
      {&s->symbols, "symbols", sizeof(aot_snap_symbol_t)}, {&s->exprs, "exprs", sizeof(aot_snap_expr_t)},
      {&s->ops, "ops", sizeof(aot_snap_op_t)},          {&s->encodings, "encodings", sizeof(aot_snap_encoding_t)},
      {&s->chars, "chars", 1}};
  /* clang-format on */
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
    const aot_snap_array_t *a = arrays[i].array;
    uint64_t extent = (uint64_t)a->count * arrays[i].row_size;
    NEED(a->row_size == arrays[i].row_size, "rows of %s have %u bytes, not %u", arrays[i].name, a->row_size,
         arrays[i].row_size);
    NEED(a->at <= s->nbytes && extent <= s->nbytes - a->at && (a->count == 0 || a->at >= sizeof *s),
         "%s reach outside the block", arrays[i].name);
    NEED(a->row_size == 1 || a->at % (a->row_size < 8 ? 4 : 8) == 0, "%s are not aligned", arrays[i].name);
  }
  return AOT_OK;
}

static aot_status_t check_empty_rows(checker_t *k) {
  const aot_snapshot_t *s = k->s;
  const struct {
    const aot_snap_array_t *array;
    const char *name;
  } arrays[] = {{&s->graphs, "graphs"}, {&s->nodes, "nodes"}, {&s->values, "values"},      {&s->leaves, "leaves"},
                {&s->exprs, "exprs"},   {&s->ops, "ops"},     {&s->encodings, "encodings"}};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
    const aot_snap_array_t *a = arrays[i].array;
    const unsigned char *row = (const unsigned char *)s + a->at;
    NEED(a->count > 0, "there is no row 0 of %s", arrays[i].name);
    for (uint32_t b = 0; b < a->row_size; b++) NEED(!row[b], "row 0 of %s is not empty", arrays[i].name);
  }
  return AOT_OK;
}

static aot_status_t check_dims(checker_t *k, const char *what, uint32_t row, int32_t rank, uint32_t dims) {
  NEED(rank >= 0 && rank <= AOT_MAX_RANK, "%s %u has rank %d", what, row, rank);
  NEED(range_ok(dims, 2 * (uint64_t)rank, k->s->ints.count), "the dimensions of %s %u lie outside", what, row);
  return AOT_OK;
}

/* Dimensions, symbols, names: rows that refer to nothing with an order. */
static aot_status_t check_tables(checker_t *k) {
  const aot_snapshot_t *s = k->s;
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints);
  const aot_snap_expr_t *exprs = AOT_SNAP_ROWS(s, aot_snap_expr_t, exprs);
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols);
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  const aot_snap_leaf_t *leaves = AOT_SNAP_ROWS(s, aot_snap_leaf_t, leaves);
  const aot_snap_encoding_t *encodings = AOT_SNAP_ROWS(s, aot_snap_encoding_t, encodings);
  const aot_snap_rule_t *rules = AOT_SNAP_ROWS(s, aot_snap_rule_t, rules);
  for (uint32_t i = 0; i < s->ints.count; i++) NEED(dim_ok(s, ints[i]), "integer %u names no expression", i);
  for (uint32_t i = 1; i < s->exprs.count; i++) {
    const int64_t children[3] = {exprs[i].a, exprs[i].b, exprs[i].c};
    NEED(exprs[i].op >= AOT_EXPR_SYMBOL && exprs[i].op <= AOT_EXPR_SUB, "expression %u has operator %d", i,
         exprs[i].op);
    NEED(exprs[i].op != AOT_EXPR_SYMBOL || (exprs[i].a >= 0 && exprs[i].a < s->symbols.count),
         "expression %u names no symbol", i);
    for (int c = 0; c < 3 && exprs[i].op != AOT_EXPR_SYMBOL; c++)
      NEED(dim_ok(s, children[c]) && (!AOT_DIM_IS_SYM(children[c]) || AOT_DIM_EXPR(children[c]) < i),
           "expression %u uses a later one", i);
  }
  for (uint32_t i = 0; i < s->symbols.count; i++)
    NEED(text_ok(s, symbols[i].name), "the name of symbol %u lies outside", i);
  for (uint32_t i = 1; i < s->ops.count; i++) NEED(text_ok(s, ops[i].name), "the name of operator %u lies outside", i);
  for (uint32_t i = 1; i < s->leaves.count; i++) {
    NEED(text_ok(s, leaves[i].name), "the name of leaf %u lies outside", i);
    NEED(leaves[i].encoding < s->encodings.count, "leaf %u names no encoding", i);
    AOT_TRY(check_dims(k, "leaf", i, leaves[i].rank, leaves[i].dims));
  }
  for (uint32_t i = 1; i < s->encodings.count; i++)
    NEED(text_ok(s, encodings[i].name) && text_ok(s, encodings[i].value), "the texts of encoding %u lie outside", i);
  for (uint32_t i = 0; i < s->rules.count; i++) AOT_TRY(check_dims(k, "rule", i, rules[i].rank, rules[i].dims));
  return AOT_OK;
}

static aot_status_t check_values(checker_t *k) {
  const aot_snapshot_t *s = k->s;
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  for (uint32_t i = 1; i < s->values.count; i++) {
    const aot_snap_value_t *v = &values[i];
    NEED(v->kind >= AOT_TYPE_NONE && v->kind <= AOT_TYPE_TOKEN, "value %u has kind %d", i, v->kind);
    NEED(dim_ok(s, v->expr) && dim_ok(s, v->offset), "value %u names no expression", i);
    NEED(v->encoding < s->encodings.count, "value %u names no encoding", i);
    if (v->kind != AOT_TYPE_TENSOR) continue;
    NEED(aot_dtype_size(v->dtype) != 0, "value %u has dtype %d", i, v->dtype);
    AOT_TRY(check_dims(k, "value", i, v->rank, v->dims));
  }
  return AOT_OK;
}

static aot_status_t check_ports(checker_t *k, uint32_t graph, uint32_t begin, uint32_t n, int is_input) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(k->s, aot_snap_port_t, ports);
  NEED(range_ok(begin, n, k->s->ports.count), "the ports of graph %u lie outside", graph);
  for (uint32_t p = begin; p < begin + n; p++) {
    uint32_t v = ports[p].value;
    NEED(text_ok(k->s, ports[p].name), "the name of port %u lies outside", p);
    if (v == AOT_NO_ID) continue;
    NEED(v < k->s->values.count, "port %u names no value", p);
    if (is_input) {
      NEED(!k->graph_of[v], "port %u brings value %u a second time", p, v);
      NEED(AOT_SNAP_ROWS(k->s, aot_snap_value_t, values)[v].def == AOT_NO_ID,
           "port %u brings value %u, which a node defines", p, v);
      k->graph_of[v] = graph;
    } else {
      NEED(k->graph_of[v] == graph, "port %u returns value %u, which graph %u does not have", p, v, graph);
    }
  }
  return AOT_OK;
}

static aot_status_t check_use(checker_t *k, uint32_t graph, uint32_t node, uint32_t value) {
  NEED(value < k->s->values.count, "node %u reads no value", node);
  NEED(k->graph_of[value] == graph, "node %u reads value %u before it is defined", node, value);
  return AOT_OK;
}

static aot_status_t check_arg(checker_t *k, uint32_t graph, uint32_t node, const aot_snap_arg_t *a) {
  const aot_snapshot_t *s = k->s;
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands);
  uint64_t i = (uint64_t)a->i;
  switch (a->kind) {
    case AOT_ARG_VALUE:
      NEED(i < s->values.count, "node %u reads no value", node);
      return check_use(k, graph, node, (uint32_t)i);
    case AOT_ARG_VALUES:
      NEED(list_ok(i, a->n, s->operands.count), "the operands of node %u lie outside", node);
      for (uint32_t v = 0; v < a->n; v++)
        if (operands[i + v] != AOT_NO_ID) AOT_TRY(check_use(k, graph, node, operands[i + v]));
      return AOT_OK;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS:
      NEED(list_ok(i, a->n, s->ints.count), "the integers of node %u lie outside", node);
      return AOT_OK;
    case AOT_ARG_FLOATS:
      NEED(list_ok(i, a->n, s->floats.count), "the floats of node %u lie outside", node);
      return AOT_OK;
    case AOT_ARG_STR: NEED(list_ok(i, a->n, s->chars.count), "the text of node %u lies outside", node); return AOT_OK;
    case AOT_ARG_GRAPH: NEED(i && i < s->graphs.count, "node %u names no graph", node); return AOT_OK;
    case AOT_ARG_OP: NEED(i && i < s->ops.count, "node %u names no operator", node); return AOT_OK;
    case AOT_ARG_INT: NEED(dim_ok(s, a->i), "node %u names no expression", node); return AOT_OK;
    default:
      NEED(a->kind >= AOT_ARG_NONE && a->kind <= AOT_ARG_OP, "node %u has an argument of kind %d", node, a->kind);
      return AOT_OK;
  }
}

static aot_status_t check_node(checker_t *k, uint32_t graph, uint32_t node) {
  const aot_snapshot_t *s = k->s;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args);
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  NEED(n->op && n->op < s->ops.count && n->graph == graph, "node %u has no operator, or another graph", node);
  NEED(range_ok(n->arg_begin, n->n_args, s->args.count), "the arguments of node %u lie outside", node);
  NEED(range_ok(n->operand_begin, n->n_operands, s->operands.count), "the operands of node %u lie outside", node);
  NEED(range_ok(n->result_begin, n->n_results, s->values.count), "the results of node %u lie outside", node);
  for (uint32_t a = 0; a < n->n_args; a++) AOT_TRY(check_arg(k, graph, node, &args[n->arg_begin + a]));
  for (uint32_t r = 0; r < n->n_results; r++) {
    uint32_t v = n->result_begin + r;
    NEED(values[v].def == node && values[v].index == r, "value %u is not result %u of node %u", v, r, node);
    NEED(!k->graph_of[v], "value %u is defined twice", v);
    k->graph_of[v] = graph;
  }
  return AOT_OK;
}

static aot_status_t check_graphs(checker_t *k) {
  const aot_snapshot_t *s = k->s;
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  uint32_t seen = 1; /* nodes: every row but the empty one belongs to one graph */
  for (uint32_t g = 1; g < s->graphs.count; g++) {
    const aot_snap_graph_t *graph = &graphs[g];
    NEED(text_ok(s, graph->name), "the name of graph %u lies outside", g);
    NEED(graph->node_begin == seen && range_ok(seen, graph->n_nodes, s->nodes.count),
         "the nodes of graph %u are not the next %u", g, graph->n_nodes);
    seen += graph->n_nodes;
    AOT_TRY(check_ports(k, g, graph->input_begin, graph->n_inputs, 1));
    for (uint32_t n = 0; n < graph->n_nodes; n++) AOT_TRY(check_node(k, g, graph->node_begin + n));
    AOT_TRY(check_ports(k, g, graph->output_begin, graph->n_outputs, 0));
  }
  NEED(seen == s->nodes.count, "%u nodes belong to no graph", s->nodes.count - seen);
  return AOT_OK;
}

static aot_status_t check_all(checker_t *k) {
  AOT_TRY(check_arrays(k));
  AOT_TRY(check_empty_rows(k));
  AOT_TRY(check_tables(k));
  AOT_TRY(check_values(k));
  k->graph_of = calloc((size_t)k->s->values.count + 1, sizeof *k->graph_of);
  if (!k->graph_of) {
    damaged(k->error, "no memory to check %u values", k->s->values.count);
    return AOT_E_EXHAUSTED;
  }
  return check_graphs(k);
}

aot_status_t sn_check(const void *bytes, uint64_t nbytes, const aot_snapshot_t **out, sn_error_t *error) {
  checker_t k = {bytes, NULL, error};
  aot_status_t status;
  error->text[0] = 0;
  if ((uintptr_t)bytes % 8 != 0) return damaged(error, "the block is not 8-byte aligned");
  if (nbytes < sizeof *k.s || k.s->magic != AOT_SNAPSHOT_MAGIC)
    return damaged(error, "these %llu bytes are no snapshot", (unsigned long long)nbytes);
  if (k.s->version != AOT_SNAPSHOT_VERSION) {
    damaged(error, "snapshot version %u is not %u", k.s->version, AOT_SNAPSHOT_VERSION);
    return AOT_E_TOO_NEW;
  }
  if (k.s->nbytes > nbytes)
    return damaged(error, "the block has %llu of %llu bytes", (unsigned long long)nbytes,
                   (unsigned long long)k.s->nbytes);
  status = check_all(&k);
  free(k.graph_of);
  if (status == AOT_OK) *out = k.s;
  return status;
}
