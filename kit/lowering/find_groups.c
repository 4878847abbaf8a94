/* Which nodes share a loop: kit/loops finds groups of equal spaces and rows; here spaces get numbers, and it is
 * decided which rows are worth sharing. */
#include "group_member.h"
#include "group_read.h"

#include "kit/base/map.h"
#include "kit/loops/merge.h"
#include "kit/loops/recompute.h"
#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL /* who links the kit links no library for it */
#include <xxhash.h>

/* Numbers for iteration spaces: a table of the distinct sizes, by hash. */
typedef struct sizes {
  int32_t rank;
  int64_t sizes[AOT_MAX_RANK];
} sizes_t;
typedef struct spaces {
  sizes_t *rows; /* by number */
  kit_map_t map;
  uint32_t n;
} spaces_t;

static uint64_t nbytes_of(const sizes_t *t) { return (uint64_t)t->rank * sizeof t->sizes[0]; }

static int are_sizes(const void *rows, uint32_t number, const void *sizes) {
  const sizes_t *a = (const sizes_t *)rows + number, *b = sizes;
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, (size_t)nbytes_of(b)) == 0;
}

static uint32_t space_of(spaces_t *s, const sizes_t *t) {
  const uint64_t h = XXH3_64bits(t->sizes, (size_t)nbytes_of(t)) + (uint64_t)t->rank;
  const uint32_t number = kit_map_find_or_add(&s->map, h, are_sizes, s->rows, t, s->n);
  AOT_ASSERT(number != KIT_MAP_NONE); /* allocate has reserved what nodes can need */
  if (number == s->n) s->rows[s->n++] = *t;
  return number;
}

static sizes_t sizes_of(const lw_tensor_t *t, uint32_t reduced) {
  sizes_t s = {.rank = t->rank};
  for (int32_t d = 0; d < t->rank; d++) s.sizes[d] = reduced >> d & 1u ? 1 : t->sizes[d];
  return s;
}

/* What a node reads from memory is saved when it shares a loop with what makes it, and so is a step; but a row has its
 * cost, too, which many short ones do not bring in. Nor is it worth it where rows are so long that passes go through
 * memory and not through a cache; or so few that threads stay idle which the elements would keep busy. Nor are sums of
 * columns, but for those across rows (lw_sum_across): their loop goes the other way through memory. */
static int shares_rows(const lw_build_t *b, const lw_member_t *m, const lw_tensor_t *space) {
  const lw_costs_t *c = &b->machine->target->costs;
  const uint32_t reduced = m->reduced;
  int64_t row = 1, n;
  for (int32_t d = 0; d < space->rank; d++)
    if (reduced >> d & 1u) row *= space->sizes[d];
  AOT_ASSERT(row > 0); /* reduces_rows takes no empty tensor */
  n = lw_numel(space) / row;
  if (!lw_same_sizes(space, lw_type(b, 0)) && lw_is_across_memory(space, reduced)) return 0;
  const double saved_ns = c->step_ns + (double)(n * row) * sizeof(float) / c->bytes_a_ns;
  return (double)n * c->row_ns <= saved_ns && row <= c->row_elements &&
         (n >= b->machine->n_threads || row * n < c->thread_elements);
}

typedef struct group_arrays {
  uint32_t *begin, *producers, *space, *rows, *row_space, *def;
  uint8_t *apart;    /* by operand */
  uint8_t *is_small; /* by operand */
  uint32_t *tensors; /* by operand */
  uint8_t *across;   /* by value: it is there when all rows have been */
  uint32_t *values;  /* by operand: what it reads, less value_begin */
  uint32_t *memory;  /* by operand: the same, of a view what it is all of, in the same order */
  uint32_t *view_of; /* by value: that, or the value itself */
  uint32_t *whole;   /* by node: the number of its space's sizes, shared or not; and by group, of its loop */
  double *work;      /* by node, as fu_values_t has it */
  spaces_t spaces;
} group_arrays_t;

static int allocate(lw_build_t *b, group_arrays_t *a, uint64_t n_operands) {
  const uint64_t n = b->graph->n_nodes;
  a->begin = malloc((n + 1) * 4 * sizeof *a->begin);
  a->producers = malloc((n_operands + 1) * sizeof *a->producers);
  a->apart = calloc(n_operands + 1, 1);
  a->is_small = calloc(n_operands + 1, 1);
  a->tensors = malloc((n_operands + 1) * sizeof *a->tensors);
  a->across = calloc((size_t)b->n_values + 1, 1);
  a->values = malloc((n_operands + 1) * 2 * sizeof *a->values);
  a->whole = malloc((n + 1) * 2 * sizeof *a->whole);
  a->work = malloc((n + 1) * sizeof *a->work);
  a->def = malloc(((uint64_t)b->n_values + 1) * 2 * sizeof *a->def);
  a->spaces.rows = malloc((3 * n + 1) * sizeof *a->spaces.rows);
  if (!a->begin || !a->producers || !a->apart || !a->is_small || !a->tensors || !a->across || !a->values || !a->whole ||
      !a->work || !a->def || !a->spaces.rows || !kit_map_reserve(&a->spaces.map, 2 * b->graph->n_nodes + 1))
    return -1;
  a->space = a->begin + (n + 1);
  a->rows = a->space + (n + 1);
  a->row_space = a->rows + (n + 1);
  a->memory = a->values + (n_operands + 1);
  a->view_of = a->def + b->n_values + 1;
  for (uint32_t v = 0; v < b->n_values; v++) a->view_of[v] = v;
  memset(a->def, 0xFF, ((size_t)b->n_values + 1) * 4);
  return 0;
}

/* An output that is to be on an input must be written after the last pass that reads it, and rows have several. */
static int donated_input(const lw_build_t *b) {
  return b->donated_input && b->donated_input[b->node->result_begin - b->value_begin] != 0;
}

enum { SMALL_PART = 16 };

/* Of a tensor as large as the space a second read is worth saving; of one that is a small part of it every element is
 * read many times, from a cache. */
static void share_reads(const lw_build_t *b, group_arrays_t *a, uint32_t i, const lw_tensor_t *space) {
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + b->node->operand_begin;
  for (uint32_t k = 0; k < b->node->n_operands; k++) {
    const lw_tensor_t *t = operands[k] == AOT_NO_ID ? NULL : &lw_value(b, operands[k])->t;
    if (t && lw_same_sizes(t, space)) a->tensors[a->begin[i] + k] = a->memory[a->begin[i] + k];
    a->is_small[a->begin[i] + k] = !t || lw_numel(t) <= lw_numel(space) / SMALL_PART;
  }
}

/* A view that gives other sizes to all of a dense tensor. */
static void see_through(const lw_build_t *b, group_arrays_t *a) {
  const lw_tensor_t *of = lw_op(b)->kernel && rk_is_view(lw_op(b)->kernel) ? lw_arg_tensor(b, 0) : NULL;
  const lw_tensor_t *view = of && b->node->n_results == 1 ? lw_type(b, 0) : NULL;
  if (!view || of->dtype != view->dtype || of->offset || view->offset || lw_numel(of) != lw_numel(view) ||
      !lw_is_contiguous(of) || !lw_is_contiguous(view))
    return;
  a->view_of[b->node->result_begin - b->value_begin] = a->view_of[lw_arg_row(b, 0) - b->value_begin];
}

/* Of computing it twice; below 0: it is no number of each element that loops are made of, or not to be twice. */
static double work_of(const lw_build_t *b, const lw_member_t *m) {
  lp_draw_t draw;
  AOT_ASSERT(m->rows || m->reads || m->writes || lw_op(b)->loop);
  if (m->rows || m->reads || m->writes || lp_op_draws(lw_op(b)->loop, lw_type(b, 0)->dtype, &draw)) return -1;
  return (double)lw_numel(lw_type(b, 0)) * lp_text_cost(m->text) / b->machine->target->costs.ops_a_ns;
}

/* What is read by several dimensions, the last one among them, keeps these apart: rows of both would not be one. */
static int parts_rows(const lw_build_t *b) {
  const int32_t last = lw_type(b, 0)->rank - 1;
  lw_read_t read;
  if (last < 0 || !lw_read(b, &read)) return 0;
  const uint32_t bounded = read.access.bounded;
  int is_last = (int)(bounded >> last & 1u);
  for (uint32_t k = 0; k < read.access.n_indices; k++) is_last |= read.index_strides[k][last] != 0;
  return is_last && read.access.n_indices + (uint32_t)__builtin_popcount(bounded) > 1;
}

static void fill_space(lw_build_t *b, group_arrays_t *a, uint32_t i) {
  lw_member_t m;
  a->space[i] = a->row_space[i] = a->whole[i] = FU_NONE;
  a->rows[i] = 0;
  a->work[i] = -1;
  if (lw_is_region_sum(b, i) || lw_is_product_sum(b, i) || lw_is_residual(b, i) || lw_is_spared(b, i) ||
      !lw_member(b, &m))
    return;
  lw_sum_across(b, &m);
  const lw_tensor_t *space = lw_member_space(b, &m);
  const sizes_t whole = sizes_of(space, 0), one_a_row = sizes_of(space, m.reduced);
  if (!m.writes) a->whole[i] = space_of(&a->spaces, &whole);
  a->work[i] = donated_input(b) ? -1 : work_of(b, &m);
  if (m.writes || (m.rows && !shares_rows(b, &m, space))) {
    memset(&a->spaces.rows[a->spaces.n], 0, sizeof *a->spaces.rows);
    a->space[i] = a->spaces.n++; /* one of its own */
    return;
  }
  a->space[i] = a->whole[i];
  share_reads(b, a, i, space);
  if (m.reads) memset(a->apart + a->begin[i], 1, b->node->n_operands);
  for (uint32_t r = 0; m.rows && r < b->node->n_results; r++)
    a->across[b->node->result_begin + r - b->value_begin] = m.rows->steps[m.rows->results[r]].reduce == LP_ACROSS;
  if (m.rows) {
    a->rows[i] = m.reduced;
    a->row_space[i] = space_of(&a->spaces, &one_a_row);
  } else if (donated_input(b) || (m.reads && parts_rows(b))) {
    a->rows[i] = FU_NO_ROWS;
  }
}

static void fill(lw_build_t *b, group_arrays_t *a) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  uint32_t at = 0;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    b->node = &nodes[i];
    a->begin[i] = at;
    for (uint32_t k = 0; k < nodes[i].n_operands; k++) {
      uint32_t row = operands[nodes[i].operand_begin + k];
      a->producers[at] = row == AOT_NO_ID ? FU_NONE : a->def[row - b->value_begin];
      a->tensors[at] = FU_NONE;
      a->values[at] = row == AOT_NO_ID ? FU_NONE : row - b->value_begin;
      a->memory[at] = row == AOT_NO_ID ? FU_NONE : a->view_of[row - b->value_begin];
      a->apart[at++] = row != AOT_NO_ID && a->across[row - b->value_begin];
    }
    for (uint32_t r = 0; r < nodes[i].n_results; r++) a->def[nodes[i].result_begin + r - b->value_begin] = i;
    see_through(b, a);
    fill_space(b, a, i);
  }
  a->begin[b->graph->n_nodes] = at;
}

static void deinit(group_arrays_t *a) {
  free(a->begin);
  free(a->producers);
  free(a->apart);
  free(a->is_small);
  free(a->tensors);
  free(a->across);
  free(a->values);
  free(a->whole);
  free(a->work);
  free(a->def);
  kit_map_deinit(&a->spaces.map);
  free(a->spaces.rows);
}

static int init(lw_build_t *b, group_arrays_t *a) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  uint64_t n_operands = 0;
  memset(a, 0, sizeof *a);
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) n_operands += nodes[i].n_operands;
  if (allocate(b, a, n_operands) != 0) return -1;
  fill(b, a);
  AOT_ASSERT(a->begin[b->graph->n_nodes] == n_operands);
  return 0;
}

/* ---- what groups compute again ---- */

typedef struct value_arrays {
  double *move;
  uint8_t *is_wanted;
  uint32_t *lasts_until;
  uint8_t *again; /* by node */
} value_arrays_t;

/* What no loop reads, or a loop otherwise than at the element at hand, and outputs. */
static void find_wanted(const lw_build_t *b, const group_arrays_t *a, uint8_t *out) {
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    for (uint32_t k = a->begin[i]; k < a->begin[i + 1]; k++)
      if (a->values[k] != FU_NONE && (a->apart[k] || a->space[i] == FU_NONE)) out[a->values[k]] = 1;
  for (uint32_t i = 0; i < b->graph->n_outputs; i++)
    if (outputs[i].value != AOT_NO_ID) out[outputs[i].value - b->value_begin] = 1;
}

/* Inputs that outputs are to be on, and their views: until that is written. */
static void find_ends(const lw_build_t *b, const group_arrays_t *a, const uint32_t *group, const uint32_t *position,
                      uint32_t *out) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  memset(out, 0xFF, ((size_t)b->n_values + 1) * sizeof *out);
  for (uint32_t v = 0; b->donated_input && v < b->n_values; v++) {
    const uint32_t home = b->donated_input[v], input = home ? inputs[home - 1].value : AOT_NO_ID;
    AOT_ASSERT(home <= b->graph->n_inputs);
    if (input == AOT_NO_ID || a->def[v] == FU_NONE) continue;
    out[input - b->value_begin] = position[group[a->def[v]] == LW_NONE ? a->def[v] : group[a->def[v]]];
  }
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    const lw_op_t *op = &b->ops[nodes[i].op];
    if (!op->kernel || !rk_is_view(op->kernel) || a->begin[i] == a->begin[i + 1]) continue;
    if (a->values[a->begin[i]] == FU_NONE) continue;
    for (uint32_t r = 0; r < nodes[i].n_results; r++)
      out[nodes[i].result_begin + r - b->value_begin] = out[a->values[a->begin[i]]];
  }
}

static void find_moves(const lw_build_t *b, double *out) {
  for (uint32_t v = 0; v < b->n_values; v++) {
    const lw_tensor_t *t = &b->values[v].t;
    out[v] =
        t->dtype ? (double)(lw_numel(t) * (int64_t)aot_dtype_size(t->dtype)) / b->machine->target->costs.bytes_a_ns : 0;
  }
}

/* The loop of a group goes through the space of what has rows there. */
static void find_group_spaces(const lw_build_t *b, const group_arrays_t *a, const uint32_t *group, uint32_t *out) {
  memset(out, 0xFF, ((size_t)b->graph->n_nodes + 1) * sizeof *out);
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    const int has_rows = a->rows[i] && a->rows[i] != FU_NO_ROWS;
    if (group[i] != LW_NONE && (has_rows || out[group[i]] == FU_NONE)) out[group[i]] = a->whole[i];
  }
}

static void leave_alone(const lw_build_t *b, const group_arrays_t *a, uint32_t *group) {
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    if (a->space[i] == FU_NONE) group[i] = LW_NONE;
}

/* Each node that can be a loop is one. */
static void stand_alone(const lw_build_t *b, const group_arrays_t *a, uint32_t *group) {
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) group[i] = i;
  leave_alone(b, a, group);
}

/* What a graph does besides computing, it does in its order. */
static int has_order(const lw_build_t *b) {
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    if (ops[nodes[i].op].flags & (AOT_OP_RANDOM | AOT_OP_EFFECT)) return 1;
  return 0;
}

/* Collectives are in one order on all ranks; who waits for one is where it likes. */
static void find_ordered(const lw_build_t *b, uint8_t *out) {
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    const uint32_t node = b->graph->node_begin + i;
    const custom_node_t *custom = lw_is_collective(b, node) ? custom_find(b->machine->custom, node) : NULL;
    out[i] = custom && !custom->passes;
  }
}

/* Groups are merged, and get copies of nodes. A program with kernels that may write into what they read stays in the
 * order that it has. */
static aot_status_t improve(lw_build_t *b, const fu_graph_t *g, group_arrays_t *a, uint32_t *group,
                            uint32_t *position) {
  const size_t n = (size_t)b->n_values + 1;
  value_arrays_t v = {malloc(n * sizeof *v.move), calloc(n, 1), malloc(n * sizeof *v.lasts_until),
                      malloc((size_t)b->graph->n_nodes + 1)};
  uint8_t *is_ordered = calloc((size_t)b->graph->n_nodes + 1, 1);
  const int is_there = v.move && v.is_wanted && v.lasts_until && v.again && is_ordered;
  aot_status_t status = is_there ? lw_find_again(b, v.again) : lw_no_memory(b->error, "for groups");
  if (status == AOT_OK) {
    find_moves(b, v.move);
    find_wanted(b, a, v.is_wanted);
    find_ordered(b, is_ordered);
    const lw_costs_t *costs = &b->machine->target->costs;
    const fu_moves_t m = {a->memory, v.move, v.is_wanted, b->n_values, costs->step_ns, is_ordered, v.again};
    if (costs->merges_apart && !has_order(b) && fu_merge(g, &m, group, position) != 0)
      status = lw_no_memory(b->error, "for groups");
  }
  if (status == AOT_OK) {
    uint32_t *group_space = a->whole + b->graph->n_nodes + 1;
    leave_alone(b, a, group);
    find_ends(b, a, group, position, v.lasts_until);
    find_group_spaces(b, a, group, group_space);
    const fu_values_t values = {.n_nodes = b->graph->n_nodes,
                                .n_values = b->n_values,
                                .operand_begin = a->begin,
                                .operands = a->values,
                                .apart = a->apart,
                                .maker = a->def,
                                .group = group,
                                .position = position,
                                .space = a->whole,
                                .group_space = group_space,
                                .work = a->work,
                                .move = v.move,
                                .is_wanted = v.is_wanted,
                                .lasts_until = v.lasts_until,
                                .max_nodes = LW_MAX_GROUP,
                                .max_reads = FU_MAX_READS};
    status = lw_find_copies(b, &values);
  }
  free(v.move);
  free(v.is_wanted);
  free(v.lasts_until);
  free(is_ordered);
  free(v.again);
  return status;
}

aot_status_t lw_find_groups(lw_build_t *b, uint32_t *out_group, uint32_t *out_position) {
  group_arrays_t a;
  aot_status_t status = init(b, &a) == 0 ? AOT_OK : lw_no_memory(b->error, "for groups");
  if (status == AOT_OK) {
    fu_graph_t g = {b->graph->n_nodes, a.begin, a.producers, a.space,     LW_MAX_GROUP, a.rows,
                    a.row_space,       a.apart, a.tensors,   b->n_values, a.is_small};
    for (uint32_t i = 0; i < b->graph->n_nodes; i++) out_position[i] = i;
    if (b->machine->is_watched) stand_alone(b, &a, out_group);
    else if (fu_group(&g, out_group) != 0) status = lw_no_memory(b->error, "for groups");
    else if (!b->has_inplace_custom_kernels) status = improve(b, &g, &a, out_group, out_position);
    else leave_alone(b, &a, out_group);
  }
  deinit(&a);
  return status;
}

aot_status_t lw_find_spaces(lw_build_t *b, uint32_t *out_space) {
  group_arrays_t a;
  uint32_t *rows_of = NULL; /* by space: the rows that the first node with rows reduces there; 0: none yet */
  int failed = init(b, &a);
  if (!failed) rows_of = calloc((size_t)a.spaces.n + 1, sizeof *rows_of);
  failed |= rows_of == NULL;
  for (uint32_t i = 0; i < b->graph->n_nodes && !failed; i++) {
    out_space[i] = a.space[i] == FU_NONE ? LW_NONE : a.space[i];
    if (a.space[i] == FU_NONE || !a.rows[i] || a.rows[i] == FU_NO_ROWS) continue;
    if (!rows_of[a.space[i]]) rows_of[a.space[i]] = a.rows[i];
    if (rows_of[a.space[i]] != a.rows[i]) out_space[i] = LW_NONE;
  }
  for (uint32_t i = 0; i < b->graph->n_nodes && !failed; i++)
    for (uint32_t k = a.begin[i]; k < a.begin[i + 1]; k++)
      if (a.apart[k] && a.producers[k] != FU_NONE && a.space[a.producers[k]] == a.space[i]) out_space[i] = LW_NONE;
  free(rows_of);
  deinit(&a);
  return failed ? lw_no_memory(b->error, "for groups") : AOT_OK;
}
