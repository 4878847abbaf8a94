/* Snapshot blocks written by hand, for tests without a host: add graphs, values and nodes in order, then hs_finish.
 *
 *     hs_snapshot_t *h = hs_create();
 *     hs_graph(h, AOT_GRAPH_FORWARD);
 *     uint32_t x = hs_input(h, AOT_F32, 2, (int64_t[]){2, 3});
 *     hs_node(h, "aten.relu.default");  hs_arg_value(h, x);
 *     uint32_t y = hs_result(h, AOT_F32, 2, (int64_t[]){2, 3});
 *     hs_output(h, y);
 *     const aot_snapshot_t *s = hs_finish(h);
 *
 * Ids equal rows, which count from 1. Rows of nodes, values and ports of one graph are together because graphs are
 * written one by one. */
#ifndef HAND_SNAPSHOT_H
#define HAND_SNAPSHOT_H

#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/snapshot.h>
#include <stdlib.h>
#include <string.h>

#define HS_ROWS 4096

typedef struct hand_snapshot {
  aot_snap_graph_t graphs[16];
  aot_snap_node_t nodes[256];
  aot_snap_value_t values[512];
  aot_snap_arg_t args[1024];
  uint32_t operands[1024];
  int64_t ints[HS_ROWS];
  double floats[64];
  aot_snap_port_t outputs[64], ports[256]; /* outputs of the open graph wait until it is closed */
  aot_snap_symbol_t symbols[16];
  aot_snap_expr_t exprs[64];
  aot_snap_op_t ops[64];
  char chars[HS_ROWS];
  uint32_t n_graphs, n_nodes, n_values, n_args, n_operands, n_ints, n_floats, n_outputs, n_ports, n_symbols, n_exprs,
      n_ops, n_chars;
  int is_open;
  void *block;
} hs_snapshot_t;

static inline hs_snapshot_t *hs_create(void) {
  hs_snapshot_t *h = calloc(1, sizeof *h);
  if (h) h->n_graphs = h->n_nodes = h->n_values = h->n_exprs = h->n_ops = 1; /* the empty rows */
  return h;
}
static inline void hs_destroy(hs_snapshot_t *h) {
  free(h->block);
  free(h);
}

static inline aot_snap_str_t hs_text(hs_snapshot_t *h, const char *text) {
  aot_snap_str_t t = {h->n_chars, (uint32_t)strlen(text)};
  AOT_ASSERT(h->n_chars + t.size <= sizeof h->chars);
  memcpy(h->chars + h->n_chars, text, t.size);
  h->n_chars += t.size;
  return t;
}

static inline uint32_t hs_op(hs_snapshot_t *h, const char *name) {
  for (uint32_t o = 1; o < h->n_ops; o++)
    if (h->ops[o].name.size == strlen(name) && memcmp(h->chars + h->ops[o].name.begin, name, h->ops[o].name.size) == 0)
      return o;
  h->ops[h->n_ops].name = hs_text(h, name);
  return h->n_ops++;
}

static inline void hs_close(hs_snapshot_t *h) {
  aot_snap_graph_t *g;
  if (!h->is_open) return;
  g = &h->graphs[h->n_graphs - 1];
  g->n_nodes = h->n_nodes - g->node_begin;
  g->output_begin = h->n_ports;
  g->n_outputs = h->n_outputs;
  memcpy(h->ports + h->n_ports, h->outputs, h->n_outputs * sizeof h->outputs[0]);
  h->n_ports += h->n_outputs;
  h->n_outputs = 0;
  h->is_open = 0;
}

/* Begins a graph; the one before is finished. Returns its row. */
static inline uint32_t hs_graph(hs_snapshot_t *h, int32_t kind) {
  aot_snap_graph_t *g = &h->graphs[h->n_graphs];
  hs_close(h);
  g->id = h->n_graphs;
  g->kind = kind;
  g->node_begin = h->n_nodes;
  g->input_begin = h->n_ports;
  h->is_open = 1;
  return h->n_graphs++;
}

static inline int64_t hs_symbol(hs_snapshot_t *h) {
  h->symbols[h->n_symbols].max = INT64_MAX;
  h->exprs[h->n_exprs].op = AOT_EXPR_SYMBOL;
  h->exprs[h->n_exprs].a = h->n_symbols++;
  return AOT_DIM_SYM + h->n_exprs++;
}

static inline int64_t hs_expr(hs_snapshot_t *h, int32_t op, int64_t a, int64_t b, int64_t c) {
  aot_snap_expr_t e = {op, 0, a, b, c};
  h->exprs[h->n_exprs] = e;
  return AOT_DIM_SYM + h->n_exprs++;
}

static inline uint32_t hs_ints(hs_snapshot_t *h, const int64_t *v, uint32_t n) {
  if (n) memcpy(h->ints + h->n_ints, v, n * sizeof *v);
  h->n_ints += n;
  return h->n_ints - n;
}

/* A value row with the given strides; NULL: contiguous (symbolic sizes need strides of their own). */
static inline uint32_t hs_value(hs_snapshot_t *h, uint32_t def, uint32_t index, int32_t dtype, int32_t rank,
                                const int64_t *sizes, const int64_t *strides) {
  aot_snap_value_t *v = &h->values[h->n_values];
  int64_t own[AOT_MAX_RANK], stride = 1;
  AOT_ASSERT(rank <= AOT_MAX_RANK && h->n_values < sizeof h->values / sizeof *h->values);
  for (int32_t d = rank - 1; d >= 0; d--) {
    own[d] = stride;
    if (AOT_DIM_IS_SYM(sizes[d]) || AOT_DIM_IS_SYM(stride))
      stride = d ? hs_expr(h, AOT_EXPR_MUL, stride, sizes[d], 0) : 1;
    else stride *= sizes[d] > 1 ? sizes[d] : 1;
  }
  v->id = h->n_values;
  v->def = def;
  v->index = index;
  v->kind = dtype ? AOT_TYPE_TENSOR : AOT_TYPE_NONE;
  v->dtype = dtype;
  v->rank = rank;
  v->dims = hs_ints(h, sizes, (uint32_t)rank);
  hs_ints(h, strides ? strides : own, (uint32_t)rank);
  return h->n_values++;
}

static inline uint32_t hs_input(hs_snapshot_t *h, int32_t dtype, int32_t rank, const int64_t *sizes) {
  aot_snap_graph_t *g = &h->graphs[h->n_graphs - 1];
  aot_snap_port_t *p = &h->ports[h->n_ports++];
  p->role = AOT_ROLE_USER_INPUT;
  p->index = g->n_inputs;
  p->value = hs_value(h, AOT_NO_ID, g->n_inputs++, dtype, rank, sizes, NULL);
  return p->value;
}

static inline void hs_output(hs_snapshot_t *h, uint32_t value) {
  aot_snap_port_t *p = &h->outputs[h->n_outputs];
  memset(p, 0, sizeof *p);
  p->role = AOT_ROLE_USER_OUTPUT;
  p->index = h->n_outputs++;
  p->value = value;
}

/* A node; its arguments and results follow. Returns its row. */
static inline uint32_t hs_node(hs_snapshot_t *h, const char *op) {
  aot_snap_node_t *n = &h->nodes[h->n_nodes];
  AOT_ASSERT(h->is_open && h->n_nodes < sizeof h->nodes / sizeof *h->nodes);
  n->id = h->n_nodes;
  n->op = hs_op(h, op);
  n->graph = h->n_graphs - 1;
  n->arg_begin = h->n_args;
  n->operand_begin = h->n_operands;
  n->result_begin = h->n_values;
  return h->n_nodes++;
}

static inline aot_snap_arg_t *hs_arg(hs_snapshot_t *h, int32_t kind, int64_t i) {
  aot_snap_arg_t *a = &h->args[h->n_args++];
  a->kind = kind;
  a->i = i;
  h->nodes[h->n_nodes - 1].n_args++;
  return a;
}
static inline void hs_operand(hs_snapshot_t *h, uint32_t value) {
  h->operands[h->n_operands++] = value;
  h->nodes[h->n_nodes - 1].n_operands++;
}
static inline void hs_arg_none(hs_snapshot_t *h) { hs_arg(h, AOT_ARG_NONE, 0); }
static inline void hs_arg_int(hs_snapshot_t *h, int64_t i) { hs_arg(h, AOT_ARG_INT, i); }
static inline void hs_arg_bool(hs_snapshot_t *h, int b) { hs_arg(h, AOT_ARG_BOOL, b); }
static inline void hs_arg_str(hs_snapshot_t *h, const char *text) {
  aot_snap_str_t t = hs_text(h, text);
  hs_arg(h, AOT_ARG_STR, t.begin)->n = t.size;
}
static inline void hs_arg_graph(hs_snapshot_t *h, uint32_t graph) { hs_arg(h, AOT_ARG_GRAPH, graph); }
static inline void hs_arg_value(hs_snapshot_t *h, uint32_t value) {
  hs_arg(h, AOT_ARG_VALUE, value);
  hs_operand(h, value);
}
static inline void hs_arg_float(hs_snapshot_t *h, double f) {
  int64_t bits;
  memcpy(&bits, &f, sizeof bits);
  hs_arg(h, AOT_ARG_FLOAT, bits);
}
static inline void hs_arg_ints(hs_snapshot_t *h, const int64_t *v, uint32_t n) {
  hs_arg(h, AOT_ARG_INTS, hs_ints(h, v, n))->n = n;
}
static inline void hs_arg_values(hs_snapshot_t *h, const uint32_t *values, uint32_t n) {
  hs_arg(h, AOT_ARG_VALUES, h->n_operands)->n = n;
  for (uint32_t k = 0; k < n; k++) hs_operand(h, values[k]);
}

static inline uint32_t hs_result_strided(hs_snapshot_t *h, int32_t dtype, int32_t rank, const int64_t *sizes,
                                         const int64_t *strides) {
  return hs_value(h, h->n_nodes - 1, h->nodes[h->n_nodes - 1].n_results++, dtype, rank, sizes, strides);
}
static inline uint32_t hs_result(hs_snapshot_t *h, int32_t dtype, int32_t rank, const int64_t *sizes) {
  return hs_result_strided(h, dtype, rank, sizes, NULL);
}
static inline uint32_t hs_result_symint(hs_snapshot_t *h, int64_t expr) {
  uint32_t v = hs_value(h, h->n_nodes - 1, h->nodes[h->n_nodes - 1].n_results++, AOT_I64, 0, NULL, NULL);
  h->values[v].kind = AOT_TYPE_SYMINT;
  h->values[v].dtype = 0;
  h->values[v].expr = expr;
  return v;
}

static inline void hs_place(aot_snapshot_t *s, aot_snap_array_t *a, const void *rows, uint32_t count,
                            uint32_t row_size) {
  a->at = s->nbytes;
  a->count = count;
  a->row_size = row_size;
  if (count) memcpy((char *)s + s->nbytes, rows, (size_t)count * row_size);
  s->nbytes = (s->nbytes + (uint64_t)count * row_size + 7) / 8 * 8;
}

/* The block; it belongs to h. */
static inline const aot_snapshot_t *hs_finish(hs_snapshot_t *h) {
  const aot_snap_leaf_t no_leaf = {0};
  const aot_snap_encoding_t no_encoding = {{0, 0}, {0, 0}};
  aot_snapshot_t *s = calloc(1, sizeof *h + sizeof *s + sizeof no_leaf + sizeof no_encoding);
  hs_close(h);
  s->magic = AOT_SNAPSHOT_MAGIC;
  s->version = AOT_SNAPSHOT_VERSION;
  s->nbytes = sizeof *s;
  hs_place(s, &s->graphs, h->graphs, h->n_graphs, sizeof h->graphs[0]);
  hs_place(s, &s->nodes, h->nodes, h->n_nodes, sizeof h->nodes[0]);
  hs_place(s, &s->values, h->values, h->n_values, sizeof h->values[0]);
  hs_place(s, &s->args, h->args, h->n_args, sizeof h->args[0]);
  hs_place(s, &s->operands, h->operands, h->n_operands, sizeof h->operands[0]);
  hs_place(s, &s->ints, h->ints, h->n_ints, sizeof h->ints[0]);
  hs_place(s, &s->floats, h->floats, h->n_floats, sizeof h->floats[0]);
  hs_place(s, &s->ports, h->ports, h->n_ports, sizeof h->ports[0]);
  hs_place(s, &s->leaves, &no_leaf, 1, sizeof no_leaf);
  hs_place(s, &s->rules, NULL, 0, sizeof(aot_snap_rule_t));
  hs_place(s, &s->symbols, h->symbols, h->n_symbols, sizeof h->symbols[0]);
  hs_place(s, &s->exprs, h->exprs, h->n_exprs, sizeof h->exprs[0]);
  hs_place(s, &s->ops, h->ops, h->n_ops, sizeof h->ops[0]);
  hs_place(s, &s->encodings, &no_encoding, 1, sizeof no_encoding);
  hs_place(s, &s->chars, h->chars, h->n_chars, 1);
  free(h->block);
  h->block = s;
  return s;
}

#endif
