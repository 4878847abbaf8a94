/* The snapshot: the whole program as one block of plain arrays (<aot/snapshot.h>).
 *
 * The same code runs twice: first with no block, counting rows, then writing them. Rows of one graph are together:
 * its inputs and results are value rows in order, its nodes node rows in order; the empty row of each array comes
 * first. Only operators in use get a row, in order of first use. The block holds offsets and numbers, no pointer.
 * Cached until the next edit. Linear in the program. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>

typedef struct array { /* being counted or filled */
  char *at;            /* NULL: counting */
  uint64_t n;
  uint32_t row_size;
} array_t;

#define N_ARRAYS 15
#define GRAPHS 0
#define NODES 1
#define VALUES 2
#define ARGS 3
#define OPERANDS 4
#define INTS 5
#define FLOATS 6
#define PORTS 7
#define LEAVES 8
#define RULES 9
#define SYMBOLS 10
#define EXPRS 11
#define OPS 12
#define ENCODINGS 13
#define CHARS 14

typedef struct builder {
  aot_prog_t *p;
  array_t arrays[N_ARRAYS];
  uint32_t *value_rows, *graph_rows, *op_rows; /* by id; 0: no row */
  uint32_t *type_dims;                         /* by type number: ints row, AOT_NO_INDEX: not there yet */
} builder_t;

static const uint32_t row_sizes[N_ARRAYS] = {sizeof(aot_snap_graph_t),
                                             sizeof(aot_snap_node_t),
                                             sizeof(aot_snap_value_t),
                                             sizeof(aot_snap_arg_t),
                                             sizeof(uint32_t),
                                             sizeof(int64_t),
                                             sizeof(double),
                                             sizeof(aot_snap_port_t),
                                             sizeof(aot_snap_leaf_t),
                                             sizeof(aot_snap_rule_t),
                                             sizeof(aot_snap_symbol_t),
                                             sizeof(aot_snap_expr_t),
                                             sizeof(aot_snap_op_t),
                                             sizeof(aot_snap_encoding_t),
                                             1};

/* Add n rows; their first number. */
static uint32_t put(builder_t *b, int which, const void *rows, uint64_t n) {
  array_t *a = &b->arrays[which];
  uint64_t first = a->n;
  if (a->at && n) memcpy(a->at + first * a->row_size, rows, (size_t)n * a->row_size);
  a->n += n;
  return (uint32_t)first;
}

static aot_snap_str_t put_text(builder_t *b, aot_str_t s) {
  aot_snap_str_t r = {put(b, CHARS, s.data, s.size), (uint32_t)s.size};
  return r;
}

static uint32_t put_dims(builder_t *b, int32_t rank, const int64_t *sizes, const int64_t *strides) {
  uint32_t first = put(b, INTS, sizes, (uint64_t)rank);
  put(b, INTS, strides, (uint64_t)rank);
  return first;
}

/* Values of one type share their dimensions. */
static uint32_t dims_of_type(builder_t *b, uint32_t type) {
  const aot_type_t *t = &b->p->types.at[type];
  if (b->type_dims[type] == AOT_NO_INDEX) b->type_dims[type] = put_dims(b, t->rank, t->sizes, t->strides);
  return b->type_dims[type];
}

static uint32_t op_row(builder_t *b, uint32_t op) {
  if (!b->op_rows[op]) {
    aot_op_t o = {op};
    const aot_op_desc_t *d = aoth_ops_desc(b->p->ops, o);
    aot_snap_op_t row = {.name = put_text(b, d->name), .flags = d->flags};
    b->op_rows[op] = put(b, OPS, &row, 1);
  }
  return b->op_rows[op];
}

static void put_value(builder_t *b, uint32_t id, uint32_t def, uint32_t index) {
  const aoth_value_row_t *v = &b->p->values.at[id];
  const aot_type_t *t = value_type_of(b->p, id);
  aot_snap_value_t row = {
      .id = id,
      .def = def,
      .index = index,
      .kind = t->kind,
      .dtype = t->dtype,
      .rank = t->rank,
      .flags = t->flags,
      .dims = dims_of_type(b, v->type & ~VALUE_DEAD),
      .device = t->device,
      .device_index = t->device_index,
      .memory = t->memory,
      .encoding = t->encoding.id,
      .offset = t->offset,
      .expr = t->expr,
  };
  b->value_rows[id] = put(b, VALUES, &row, 1);
}

static void put_arg(builder_t *b, const aot_arg_t *a) {
  aot_snap_arg_t row = {.kind = a->kind, .n = a->n};
  switch (a->kind) {
    case AOT_ARG_VALUE: row.i = b->value_rows[a->u.i]; break;
    case AOT_ARG_GRAPH: row.i = b->graph_rows[a->u.i]; break;
    case AOT_ARG_OP: row.i = op_row(b, (uint32_t)a->u.i); break;
    case AOT_ARG_FLOAT: memcpy(&row.i, &a->u.f, sizeof row.i); break;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: row.i = put(b, INTS, a->u.ints, a->n); break;
    case AOT_ARG_FLOATS: row.i = put(b, FLOATS, a->u.floats, a->n); break;
    case AOT_ARG_STR: row.i = put(b, CHARS, a->u.chars, a->n); break;
    case AOT_ARG_VALUES: row.i = (int64_t)b->arrays[OPERANDS].n; break;
    default: row.i = a->u.i; break;
  }
  put(b, ARGS, &row, 1);
  for (uint32_t i = 0, one = (uint32_t)a->u.i; i < aoth_arg_n_operands(a); i++) {
    uint32_t value = b->value_rows[a->kind == AOT_ARG_VALUE ? one : a->u.ids[i]];
    put(b, OPERANDS, &value, 1);
  }
}

static void put_node(builder_t *b, uint32_t id, uint32_t graph) {
  const aoth_node_row_t *n = &b->p->nodes.at[id];
  uint32_t here = (uint32_t)b->arrays[NODES].n;
  aot_snap_node_t row = {
      .id = id,
      .op = op_row(b, n->op),
      .flags = n->flags,
      .graph = graph,
      .arg_begin = (uint32_t)b->arrays[ARGS].n,
      .n_args = n->n_args,
      .operand_begin = (uint32_t)b->arrays[OPERANDS].n,
      .n_operands = n->n_operands,
      .result_begin = (uint32_t)b->arrays[VALUES].n,
      .n_results = n->n_results,
      .region_tag = n->region_tag,
      .origin = n->origin,
  };
  put(b, NODES, &row, 1);
  for (uint32_t i = 0; i < n->n_results; i++) put_value(b, n->first_result + i, here, i);
  for (uint32_t i = 0; i < n->n_args; i++) put_arg(b, &n->args[i]);
  AOT_ASSERT(b->arrays[OPERANDS].n == row.operand_begin + (uint64_t)n->n_operands);
}

static uint32_t put_ports(builder_t *b, const aot_port_t *ports, uint32_t n) {
  uint32_t first = (uint32_t)b->arrays[PORTS].n;
  for (uint32_t i = 0; i < n; i++) {
    aot_snap_port_t row = {
        .role = ports[i].role,
        .index = ports[i].index,
        .value = b->value_rows[ports[i].value.id],
        .name = put_text(b, ports[i].name),
    };
    put(b, PORTS, &row, 1);
  }
  return first;
}

static void put_graph(builder_t *b, uint32_t id) {
  const aoth_graph_row_t *g = &b->p->graphs.at[id];
  uint32_t here = b->graph_rows[id];
  aot_snap_graph_t row = {
      .id = id,
      .kind = g->kind,
      .name = put_text(b, g->name),
      .node_begin = (uint32_t)b->arrays[NODES].n,
      .n_nodes = g->n_nodes,
      .n_inputs = g->inputs.n,
      .n_outputs = g->outputs.n,
  };
  for (uint32_t i = 0; i < g->inputs.n; i++) put_value(b, g->inputs.at[i].value.id, NONE, i);
  for (uint32_t n = g->first; n != NONE; n = b->p->nodes.at[n].next) put_node(b, n, here);
  AOT_ASSERT(b->arrays[NODES].n == row.node_begin + (uint64_t)g->n_nodes);
  row.input_begin = put_ports(b, g->inputs.at, g->inputs.n);
  row.output_begin = put_ports(b, g->outputs.at, g->outputs.n);
  AOT_ASSERT(b->arrays[GRAPHS].n == here);
  put(b, GRAPHS, &row, 1);
}

static void put_leaf(builder_t *b, const aot_leaf_info_t *l) {
  const aot_str_t none = {NULL, 0};
  aot_snap_leaf_t row = {
      .role = l->role,
      .flags = l->flags,
      .ordinal = l->ordinal,
      .dtype = l->type.dtype,
      .rank = l->type.rank,
      .dims = put_dims(b, l->type.rank, l->type.sizes, l->type.strides),
      .name = put_text(b, l->n_names ? l->names[0] : none),
      .device = l->type.device,
      .device_index = l->type.device_index,
      .memory = l->type.memory,
      .encoding = l->type.encoding.id,
      .offset = l->type.offset,
  };
  put(b, LEAVES, &row, 1);
}

static void put_environment(builder_t *b) {
  const aot_prog_t *p = b->p;
  for (uint32_t i = 1; i < p->leaves.n; i++) put_leaf(b, &p->leaves.at[i]);
  for (uint32_t i = 0; i < p->rules.n; i++) {
    const aot_rule_t *r = &p->rules.at[i];
    aot_snap_rule_t row = {
        .kind = r->kind,
        .a = r->a,
        .b = r->b,
        .rank = r->rank,
        .dims = put_dims(b, r->rank, r->sizes, r->strides),
        .dtype = r->dtype,
        .offset = r->offset,
    };
    put(b, RULES, &row, 1);
  }
  for (uint32_t i = 0; i < p->symbols.n; i++) {
    const aot_symbol_info_t *s = &p->symbols.at[i];
    aot_snap_symbol_t row = {.name = put_text(b, s->name), .min = s->min, .max = s->max, .hint = s->hint};
    put(b, SYMBOLS, &row, 1);
  }
  for (uint32_t i = 1; i < p->exprs.n; i++) {
    const aot_expr_info_t *e = &p->exprs.at[i].info;
    aot_snap_expr_t row = {.op = e->op, .a = e->a, .b = e->b, .c = e->c};
    put(b, EXPRS, &row, 1);
  }
  for (uint32_t i = 1; i < p->encodings.n; i++) { /* row numbers are ids: all are there */
    aot_snap_encoding_t row = {.name = put_text(b, p->encodings.at[i].name),
                               .value = put_text(b, p->encodings.at[i].value)};
    put(b, ENCODINGS, &row, 1);
  }
}

static void put_empty_rows(builder_t *b) {
  static const int arrays[] = {GRAPHS, NODES, VALUES, LEAVES, EXPRS, OPS, ENCODINGS};
  static const uint64_t zeros[16] = {0};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) put(b, arrays[i], zeros, 1);
}

static void run(builder_t *b) {
  aot_prog_t *p = b->p;
  uint32_t live = 0;
  memset(b->op_rows, 0, aoth_ops_count(p->ops) * sizeof *b->op_rows);
  memset(b->type_dims, 0xff, p->types.n * sizeof *b->type_dims);
  put_empty_rows(b);
  for (uint32_t g = 1; g < p->graphs.n; g++) b->graph_rows[g] = p->graphs.at[g].alive ? ++live : 0;
  for (uint32_t g = 1; g < p->graphs.n; g++)
    if (p->graphs.at[g].alive) put_graph(b, g);
  put_environment(b);
}

/* Lay the arrays out after the header, 8-byte aligned. 0: more rows than the format can name. */
static int lay_out(const builder_t *b, aot_snapshot_t *head) {
  aot_snap_array_t *arrays[N_ARRAYS] = {&head->graphs,  &head->nodes,  &head->values, &head->args,      &head->operands,
                                        &head->ints,    &head->floats, &head->ports,  &head->leaves,    &head->rules,
                                        &head->symbols, &head->exprs,  &head->ops,    &head->encodings, &head->chars};
  uint64_t at = sizeof *head;
  for (int i = 0; i < N_ARRAYS; i++) {
    if (b->arrays[i].n >= UINT32_MAX) return 0;
    at = (at + 7) & ~UINT64_C(7);
    arrays[i]->at = at;
    arrays[i]->count = (uint32_t)b->arrays[i].n;
    arrays[i]->row_size = row_sizes[i];
    at += b->arrays[i].n * row_sizes[i];
  }
  head->nbytes = (at + 7) & ~UINT64_C(7);
  return 1;
}

static aot_status_t build(builder_t *b, void **out) {
  aot_snapshot_t head = {.magic = AOT_SNAPSHOT_MAGIC, .version = AOT_SNAPSHOT_VERSION, .generation = b->p->generation};
  run(b);
  if (!lay_out(b, &head))
    return aoth_diagnose(b->p, AOT_E_EXHAUSTED, "ir.too-large",
                         "the program is too large for a snapshot: more than 2^32 rows");
  char *block = calloc(1, (size_t)head.nbytes);
  if (!block) return aoth_no_memory(b->p, "a snapshot", head.nbytes);
  memcpy(block, &head, sizeof head);
  const aot_snap_array_t *arrays[N_ARRAYS] = {
      &head.graphs, &head.nodes, &head.values,  &head.args,  &head.operands, &head.ints,      &head.floats, &head.ports,
      &head.leaves, &head.rules, &head.symbols, &head.exprs, &head.ops,      &head.encodings, &head.chars};
  for (int i = 0; i < N_ARRAYS; i++) {
    b->arrays[i].at = block + arrays[i]->at;
    b->arrays[i].n = 0;
  }
  run(b);
  for (int i = 0; i < N_ARRAYS; i++) AOT_ASSERT(b->arrays[i].n == arrays[i]->count);
  *out = block;
  return AOT_OK;
}

static aot_status_t build_with_tables(aot_prog_t *p, kit_arena_t *a, void **out) {
  builder_t b = {.p = p};
  for (int i = 0; i < N_ARRAYS; i++) b.arrays[i].row_size = row_sizes[i];
  b.value_rows = kit_arena_alloc(a, 8, (p->values.n + (size_t)1) * sizeof(uint32_t));
  b.graph_rows = kit_arena_alloc(a, 8, (p->graphs.n + (size_t)1) * sizeof(uint32_t));
  b.op_rows = kit_arena_alloc(a, 8, (aoth_ops_count(p->ops) + (size_t)1) * sizeof(uint32_t));
  b.type_dims = kit_arena_alloc(a, 8, (p->types.n + (size_t)1) * sizeof(uint32_t));
  if (!b.value_rows || !b.graph_rows || !b.op_rows || !b.type_dims)
    return aoth_no_memory(p, "a snapshot", p->values.n * 4u);
  return build(&b, out);
}

aot_status_t aoth_graph_snapshot(aot_prog_t *p, const struct aot_snapshot **out) {
  if (!p->snapshot || p->snapshot_generation != p->generation) {
    void *fresh = NULL;
    kit_arena_t *tables = kit_arena_create();
    if (!tables) return aoth_no_memory(p, "a snapshot", 0);
    aot_status_t status = build_with_tables(p, tables, &fresh);
    kit_arena_destroy(tables);
    AOT_TRY(status);
    free(p->snapshot);
    p->snapshot = fresh;
    p->snapshot_generation = p->generation;
  }
  *out = p->snapshot;
  return AOT_OK;
}
