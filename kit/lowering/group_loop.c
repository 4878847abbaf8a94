/* A group of nodes, described in loop IR and called as a generated function.
 *
 * Values that only members read stay in registers, or in a row's buffer. */
#include "group_loop.h"

#include "kit/loops/loop_print.h"
#include "transaction.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RESULTS = 3 };

static const aot_snap_node_t *member(const lw_build_t *b, const lw_group_t *g, uint32_t k) {
  AOT_ASSERT(k < g->n);
  return AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + g->members[k];
}

/* The instruction that gives result r of a member. */
static uint32_t result_inst(const lw_group_t *g, uint32_t k, uint32_t r) {
  AOT_ASSERT(r < (g->infos[k].rows ? g->infos[k].rows->n_results : 1));
  return g->first[k] + (g->infos[k].rows ? g->infos[k].rows->results[r] : 0);
}

/* The instruction that makes the value, LW_NONE: it comes from outside. Members are in order, so halving finds it. */
static uint32_t inst_of(const lw_build_t *b, const lw_group_t *g, uint32_t row) {
  uint32_t low = 0, high = g->n;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (member(b, g, middle)->result_begin + member(b, g, middle)->n_results <= row) low = middle + 1;
    else high = middle;
  }
  if (low == g->n || member(b, g, low)->result_begin > row) return LW_NONE;
  return result_inst(g, low, row - member(b, g, low)->result_begin);
}

int lw_is_across(const lw_group_t *g, uint32_t store) { return g->insts[g->accesses[store].inst].reduce == LP_ACROSS; }

/* Strides of t in the space of the loop; 0: it does not broadcast. */
static int spread(const lw_tensor_t *t, const lw_tensor_t *space, int64_t *strides) {
  int32_t lead = space->rank - t->rank;
  if (lead < 0) return 0;
  for (int32_t d = 0; d < space->rank; d++) {
    int64_t size = d < lead ? 1 : t->sizes[d - lead];
    if (size != 1 && size != space->sizes[d]) return 0;
    strides[d] = size == 1 ? 0 : t->strides[d - lead];
  }
  return 1;
}

/* Those of sums across rows: an element for each of a row, side by side. */
static void spread_columns(const lw_tensor_t *t, const lw_group_t *g, int64_t *strides) {
  int64_t step = t->rank != 0;
  for (int32_t d = g->space->rank - 1; d >= 0; d--) {
    const int is_of_row = (int)(g->loop.reduced >> d & 1u);
    strides[d] = is_of_row ? step : 0;
    if (is_of_row) step *= g->space->sizes[d];
  }
}

/* The same of a result, which may be without the dimensions that were reduced. */
static void spread_result(const lw_tensor_t *t, const lw_group_t *g, int64_t *strides) {
  int32_t at = 0;
  for (int32_t d = 0; d < g->space->rank; d++) {
    const int is_dropped = t->rank != g->space->rank && (g->loop.reduced >> d & 1u);
    AOT_ASSERT(is_dropped || at < t->rank);
    strides[d] = is_dropped || t->sizes[at] == 1 ? 0 : t->strides[at];
    at += !is_dropped;
  }
}

/* Views of one memory from the same element on: along equal strides they are the same elements. */
static int is_same_memory(const lw_tensor_t *a, const lw_tensor_t *b) {
  return a->storage == b->storage && a->offset == b->offset && a->dtype == b->dtype;
}

/* What the arrays by access have room for. */
static size_t most_accesses(const lw_group_t *g) { return g->n * (size_t)(LP_ARGS + MAX_RESULTS); }

/* The access that reads the value along these strides: one that is there, or a new one. */
static uint32_t load_along(const lw_build_t *b, lw_group_t *g, uint32_t row, const int64_t *strides) {
  const uint64_t nbytes = (uint64_t)g->space->rank * sizeof *strides;
  const lw_tensor_t *t = &lw_value(b, row)->t;
  for (uint32_t k = 0; k < g->loop.n_loads; k++)
    if (g->rows[k] != LW_NONE && is_same_memory(&g->tensors[k], t) &&
        memcmp(g->accesses[k].strides, strides, (size_t)nbytes) == 0)
      return k;
  const uint32_t k = g->loop.n_loads++;
  AOT_ASSERT(k < most_accesses(g) && g->loop.n_stores == 0); /* stores follow the loads */
  g->rows[k] = row;
  g->tensors[k] = *t;
  g->accesses[k].dtype = t->dtype;
  memcpy(g->accesses[k].strides, strides, (size_t)nbytes);
  return k;
}

static int add_load(lw_build_t *b, lw_group_t *g, uint32_t row, uint32_t *out) {
  const lw_tensor_t *t = &lw_value(b, row)->t;
  int64_t strides[AOT_MAX_RANK];
  if (t->storage == LW_NONE || !spread(t, g->space, strides)) return 0;
  *out = load_along(b, g, row, strides);
  return 1;
}

/* A tensor with an element for each row, without the dimensions that are the row. */
static int add_load_of_rows(lw_build_t *b, lw_group_t *g, uint32_t row, uint32_t *out) {
  const lw_tensor_t *t = &lw_value(b, row)->t;
  int64_t strides[AOT_MAX_RANK];
  if (t->storage == LW_NONE) return 0;
  spread_result(t, g, strides);
  *out = load_along(b, g, row, strides);
  return 1;
}

/* The numbers that the node at hand draws: an access that counts elements in row-major order. */
static int add_draw(lw_build_t *b, lw_group_t *g, uint32_t *out) {
  lp_draw_t *draw = lw_pool_alloc(b->pool, sizeof *draw);
  uint32_t seed, offset;
  lw_tensor_t dense = *lw_type(b, 0);
  const int32_t dtype = draw && lw_op(b)->loop ? lp_op_draws(lw_op(b)->loop, dense.dtype, draw) : 0;
  if (!dtype || !add_load(b, g, (uint32_t)lw_arg(b, 0)->i, &seed) ||
      !add_load(b, g, (uint32_t)lw_arg(b, 1)->i, &offset))
    return 0;
  *out = g->loop.n_loads++;
  lp_access_t *access = &g->accesses[*out];
  access->dtype = dtype;
  access->draws = 1;
  access->seed = seed;
  access->offset = offset;
  draw->draw = (uint64_t)lw_arg_int(b, 2, 0);
  g->draws[*out] = draw;
  g->rows[*out] = LW_NONE;
  lw_make_contiguous(&dense);
  return spread(&dense, g->space, access->strides);
}

/* The numbers of the result's elements. */
static int add_count(lw_build_t *b, lw_group_t *g, uint32_t *out) {
  lw_tensor_t dense = *lw_type(b, 0);
  *out = g->loop.n_loads++;
  lp_access_t *access = &g->accesses[*out];
  access->dtype = AOT_I64;
  access->counts = 1;
  g->rows[*out] = LW_NONE;
  lw_make_contiguous(&dense);
  return spread(&dense, g->space, access->strides);
}

/* Strides in the result's space become those in the loop's, which may have more where the result has one. 0: bounds of
 * such a dimension, which count what the loop does not. */
static int spread_read(const lw_tensor_t *result, const lw_group_t *g, uint32_t bounded, int64_t *strides) {
  const lw_tensor_t *space = g->space;
  const int32_t lead = space->rank - result->rank;
  int64_t own[AOT_MAX_RANK];
  if (lead < 0) return 0;
  memcpy(own, strides, sizeof own);
  for (int32_t d = 0; d < space->rank; d++) {
    const int is_one = d < lead || result->sizes[d - lead] != space->sizes[d];
    strides[d] = is_one ? 0 : own[d - lead];
    if (d >= lead && is_one && (result->sizes[d - lead] != 1 || bounded >> (d - lead) & 1u)) return 0;
  }
  return lead == 0 || !bounded;
}

/* The index tensors of an access in the space of `result`. */
static int add_indices(lw_build_t *b, lw_group_t *g, lw_read_t *read, const lw_tensor_t *result) {
  for (uint32_t i = 0; i < read->access.n_indices; i++) {
    const lw_tensor_t *index = &lw_value(b, read->indices[i])->t;
    const uint32_t k = read->access.indices[i].load = g->loop.n_loads++;
    if (index->storage == LW_NONE || !spread_read(result, g, 0, read->index_strides[i])) return 0;
    g->rows[k] = LW_NONE;
    g->tensors[k] = *index;
    g->accesses[k].dtype = index->dtype;
    memcpy(g->accesses[k].strides, read->index_strides[i], sizeof read->index_strides[i]);
  }
  return 1;
}

/* The dimensions of a set, a bit each, from their last element on: no other bytes than before. */
static void flip(lw_tensor_t *t, uint32_t set) {
  for (int32_t d = 0; d < t->rank; d++) {
    if (!(set >> d & 1u)) continue;
    t->offset += (t->sizes[d] - 1) * t->strides[d];
    t->strides[d] = -t->strides[d];
  }
}

/* What the node at hand reads by places: an access of its own. */
static int add_read(lw_build_t *b, lw_group_t *g, uint32_t *out) {
  const lw_tensor_t *result = lw_type(b, 0);
  lw_read_t read;
  if (!lw_read(b, &read) || !add_indices(b, g, &read, result)) return 0;
  if (read.outside != LW_NONE) {
    read.access.outside.kind = LP_LOAD;
    if (!add_load(b, g, read.outside, &read.access.outside.index)) return 0;
  }
  *out = g->loop.n_loads++;
  g->rows[*out] = LW_NONE;
  g->nodes[*out] = b->node->id;
  g->tensors[*out] = lw_value(b, read.value)->t;
  flip(&g->tensors[*out], read.flipped);
  g->accesses[*out] = read.access;
  return g->tensors[*out].storage != LW_NONE && spread_read(result, g, read.access.bounded, g->accesses[*out].strides);
}

/* The node's arguments, as far as the instruction reads them. classes: the one that has an element for each row; 0:
 * none has. */
static int add_args(lw_build_t *b, lw_group_t *g, lp_inst_t *inst, uint32_t classes) {
  for (uint32_t p = 0; p < lw_n_places(b); p++) {
    const aot_snap_arg_t *a = lw_arg(b, p);
    lp_arg_t *out = &inst->args[p];
    out->kind = LP_ABSENT;
    if (!lp_reads(inst->text, LP_TK_ARG, p)) continue;
    if (lw_op(b)->loop && (int32_t)p == lp_op_counts(lw_op(b)->loop)) {
      out->kind = LP_LOAD;
      if (!add_count(b, g, &out->index)) return 0;
      continue;
    }
    if (a->kind == AOT_ARG_VALUE) {
      out->index = inst_of(b, g, (uint32_t)a->i);
      out->kind = out->index == LW_NONE ? LP_LOAD : LP_INST;
      if (out->kind == LP_INST && g->insts[out->index].reduce == LP_ACROSS) return 0; /* it is not there yet */
      if (out->kind != LP_LOAD) continue;
      if (!(p && p == classes ? add_load_of_rows : add_load)(b, g, (uint32_t)a->i, &out->index)) return 0;
    } else if (a->kind == AOT_ARG_FLOAT) {
      out->kind = LP_FLOAT;
      out->f = lw_arg_float(b, p, 0);
    } else if (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_BOOL) {
      out->kind = a->kind == AOT_ARG_INT ? LP_INT : LP_BOOL;
      out->i = lw_arg_int(b, p, 0);
    } else if (a->kind == AOT_ARG_INTS) {
      out->kind = LP_DRAWN;
      if (!add_draw(b, g, &out->index)) return 0;
    }
  }
  return 1;
}

enum { CLASS_NUMBER = 7 /* h */ };

/* The number that counts of classes give (lp_row_op_t.class_at). */
static lp_arg_t class_number(lw_group_t *g, uint32_t k) {
  for (uint32_t l = 0; l < g->loop.n_loads; l++)
    if (g->makers[l] == k) return (lp_arg_t){.kind = LP_LOAD, .index = l};
  const uint32_t l = g->loop.n_loads++;
  g->rows[l] = LW_NONE;
  g->makers[l] = k;
  g->accesses[l].dtype = AOT_F64;
  return (lp_arg_t){.kind = LP_LOAD, .index = l};
}

static int add_step(lw_build_t *b, lw_group_t *g, uint32_t member, uint32_t first, uint32_t k) {
  const lp_row_op_t *op = g->infos[member].rows;
  const int32_t work = lp_value_dtype(lw_arg_tensor(b, op->of)->dtype), result = lw_rows_result(b);
  lp_inst_t *inst = &g->insts[first + k];
  AOT_ASSERT(first + k < g->loop.n_insts && k < LP_STEPS);
  inst->text = op->steps[k].text;
  inst->reduce = op->steps[k].reduce < LP_SCAN ? op->steps[k].reduce : LP_EACH;
  inst->scan = op->steps[k].reduce < LP_SCAN ? LP_EACH : op->steps[k].reduce - LP_SCAN;
  inst->compute = lp_step_dtype(op->steps[k].compute, work, result);
  inst->dtype = lp_step_dtype(op->steps[k].dtype, work, result);
  inst->n_args = LP_ARGS + LP_STEPS;
  if (!add_args(b, g, inst, op->class_at)) return 0;
  if (op->preset_at && lw_arg(b, op->preset_at)->kind == AOT_ARG_NONE && lp_reads(inst->text, LP_TK_ARG, op->preset_at))
    inst->args[op->preset_at] = (lp_arg_t){.kind = LP_FLOAT, .f = op->preset};
  if (op->class_at && lp_reads(inst->text, LP_TK_ARG, CLASS_NUMBER)) inst->args[CLASS_NUMBER] = class_number(g, member);
  for (uint32_t e = 0; e < k; e++)
    if (lp_reads(inst->text, LP_TK_STEP, e)) inst->args[LP_ARGS + e] = (lp_arg_t){.kind = LP_INST, .index = first + e};
  return 1;
}

/* The only member of a group, which writes by places: its values, but for those that are left out, go to a store with
 * index tensors. */
static int add_write(lw_build_t *b, lw_group_t *g) {
  lw_write_t *w = &g->write;
  const lw_member_t *m = &g->infos[0];
  lp_arg_t value = w->number;
  if (!add_indices(b, g, &w->to, &w->space)) return 0;
  if (w->value != LW_NONE) {
    const lw_tensor_t *t = &lw_value(b, w->value)->t;
    value = (lp_arg_t){.kind = LP_LOAD, .index = g->loop.n_loads++};
    g->rows[value.index] = LW_NONE;
    g->tensors[value.index] = *t;
    g->accesses[value.index].dtype = t->dtype;
    memcpy(g->accesses[value.index].strides, w->strides, sizeof w->strides);
    if (t->storage == LW_NONE) return 0;
  }
  lp_inst_t *inst = g->insts;
  if (w->skipped >= 0) {
    const lp_arg_t index = {.kind = LP_LOAD, .index = w->to.access.indices[0].load};
    *inst++ = (lp_inst_t){.text = "a == b",
                          .compute = AOT_I64,
                          .dtype = AOT_BOOL,
                          .n_args = 2,
                          .args = {index, {.kind = LP_INT, .i = w->skipped}}};
  }
  *inst = (lp_inst_t){.text = w->skipped >= 0              ? "b != 0 ? T(0) : a"
                              : w->times.kind != LP_ABSENT ? "a * b"
                                                           : "a",
                      .compute = m->compute,
                      .dtype = lw_type(b, 0)->dtype,
                      .n_args = 2,
                      .args = {value, w->skipped >= 0 ? (lp_arg_t){.kind = LP_INST} : w->times}};
  g->loop.n_insts = (uint32_t)(inst - g->insts) + 1;
  g->first[0] = g->loop.n_insts - 1;
  return 1;
}

static int add_member(lw_build_t *b, lw_group_t *g, uint32_t k) {
  const lw_member_t *m = &g->infos[k];
  const uint32_t first = g->first[k] = g->loop.n_insts, n = m->rows ? m->rows->n_steps : 1;
  if (first + n > LP_INSTS) return 0;
  b->node = member(b, g, k);
  if (m->writes) return add_write(b, g);
  g->loop.n_insts += n;
  if (!m->rows) {
    g->insts[first].text = m->text;
    g->insts[first].compute = m->compute;
    g->insts[first].dtype = lw_type(b, 0)->dtype;
    if (m->reads) {
      g->insts[first].n_args = 1;
      g->insts[first].args[0].kind = LP_LOAD;
      return add_read(b, g, &g->insts[first].args[0].index);
    }
    g->insts[first].n_args = lw_n_places(b);
    return add_args(b, g, &g->insts[first], 0);
  }
  for (uint32_t s = 0; s < n; s++)
    if (!add_step(b, g, k, first, s)) return 0;
  return 1;
}

static int is_copy(const lw_group_t *g, uint32_t k) { return g->is_copy && g->is_copy[k]; }

/* Results that something else outside the group reads from memory. What copies read in the group is no use that
 * counts. */
static int is_read_outside(const lw_build_t *b, const lw_group_t *g, uint32_t k, uint32_t row) {
  uint32_t inside = 0;
  for (uint32_t m = k + 1; m < g->n; m++) {
    if (is_copy(g, m)) continue;
    const aot_snap_node_t *node = member(b, g, m);
    const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + node->operand_begin;
    for (uint32_t o = 0; o < node->n_operands; o++) inside += operands[o] == row;
  }
  return b->n_uses[row - b->value_begin] > inside;
}

static void add_stores(lw_build_t *b, lw_group_t *g, uint32_t k) {
  const aot_snap_node_t *node = member(b, g, k);
  for (uint32_t r = 0; r < node->n_results && !is_copy(g, k); r++) {
    const uint32_t row = node->result_begin + r, at = g->loop.n_loads + g->loop.n_stores;
    const lw_tensor_t *t = &lw_value(b, row)->t;
    if (!t->dtype || !is_read_outside(b, g, k, row)) continue;
    AOT_ASSERT(at < most_accesses(g));
    g->rows[at] = row;
    g->makers[at] = k;
    g->tensors[at] = *t;
    if (g->infos[k].writes) g->accesses[at] = g->write.to.access;
    g->accesses[at].inst = result_inst(g, k, r);
    AOT_ASSERT(g->accesses[at].inst < g->loop.n_insts);
    g->accesses[at].dtype = lw_is_across(g, at) ? AOT_F64 : t->dtype;
    g->accesses[at].of_row = !g->infos[k].writes && !lw_is_across(g, at) && !lw_same_sizes(t, g->space);
    g->nodes[at] = node->id;
    g->loop.n_stores++;
    g->loop.in_place |= b->donated_input && 0 != b->donated_input[row - b->value_begin];
  }
}

/* Sums across unused rows (gradients of weights that want none) are none; a compiler drops their terms. */
static void forget_unread_sums(lw_group_t *g) {
  for (uint32_t k = 0; k < g->loop.n_insts; k++) {
    int is_stored = 0;
    for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++)
      is_stored |= g->accesses[s].inst == k;
    if (g->insts[k].reduce == LP_ACROSS && !is_stored) g->insts[k].reduce = LP_EACH;
  }
}

static int describe(lw_build_t *b, lw_group_t *g) {
  uint32_t n_own = 0;
  for (uint32_t k = 0; k < g->n; k++) n_own += !is_copy(g, k);
  g->space = &lw_value(b, member(b, g, g->n - 1)->result_begin)->t;
  for (uint32_t k = 0; k < g->n; k++) {
    b->node = member(b, g, k);
    AOT_ASSERT(k == 0 || g->members[k - 1] < g->members[k]); /* inst_of halves them */
    if (!lw_member(b, &g->infos[k])) return 0;
    if (g->infos[k].writes) {
      if (g->n > 1 || !lw_write(b, &g->write)) return 0;
      g->loop.reduced = g->write.serial;
      g->space = &g->write.space;
      continue;
    }
    if (n_own > 1) lw_sum_across(b, &g->infos[k]);
    if (g->loop.reduced) continue;
    g->loop.reduced = g->infos[k].reduced;
    g->space = lw_member_space(b, &g->infos[k]);
  }
  g->loop.rank = g->space->rank;
  AOT_ASSERT(g->loop.reduced >> g->loop.rank == 0); /* dimensions of the space */
  memcpy(g->loop.sizes, g->space->sizes, sizeof g->space->sizes);
  g->loop.accesses = g->accesses;
  g->loop.insts = g->insts;
  for (uint32_t k = 0; k < g->n; k++)
    if (!add_member(b, g, k)) return 0;
  for (uint32_t k = 0; k < g->n; k++) add_stores(b, g, k);
  forget_unread_sums(g);
  AOT_ASSERT(g->loop.n_insts > 0 && g->loop.n_insts <= LP_INSTS);
  return 1;
}

/* The input that an output is to be on: the store and the load go over it element by element. */
static int is_in_place(const lw_build_t *b, const lw_group_t *g, uint32_t load, uint32_t store) {
  const lp_access_t *l = &g->accesses[load], *s = &g->accesses[store];
  const uint32_t home = b->donated_input[g->rows[store] - b->value_begin];
  AOT_ASSERT(home <= b->out->n_inputs);
  if (!home || g->rows[load] == LW_NONE || b->out->inputs[home - 1].type.storage != g->tensors[load].storage ||
      aot_dtype_size(l->dtype) != aot_dtype_size(s->dtype))
    return 0;
  for (int32_t d = 0; d < g->loop.rank; d++)
    if (g->loop.sizes[d] != 1 && l->strides[d] != s->strides[d]) return 0;
  return 1;
}

/* Does no pass read the load after the one that stores? Within a pass an element is read before it is written, by the
 * same thread. */
static int is_read_first(const lw_group_t *g, uint32_t load, uint32_t store) {
  const uint32_t stored_in = g->insts[g->accesses[store].inst].pass;
  lp_pass_t pass;
  for (uint32_t k = stored_in + 1; k < g->loop.n_passes; k++) {
    lp_find_pass(&g->loop, k, &pass);
    if (pass.loads[load]) return 0;
  }
  return 1;
}

/* The storage of a store that may be where the load does, whole on whole. */
static uint32_t written_onto(const lw_build_t *b, const lw_group_t *g, uint32_t load) {
  const lp_access_t *l = &g->accesses[load];
  const lw_tensor_t *t = &g->tensors[load];
  if (!b->machine->target->goes_onto || g->rows[load] == LW_NONE || l->n_indices || l->bounded || t->offset)
    return LW_NONE;
  for (uint32_t k = 0; k < g->loop.n_insts; k++)
    if (g->insts[k].scan) return LW_NONE;
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++) {
    const lp_access_t *a = &g->accesses[s];
    if (a->n_indices || a->of_row || g->tensors[s].offset || lw_is_across(g, s) ||
        lw_numel(&g->tensors[s]) != lw_numel(g->space) || lw_numel(t) != lw_numel(g->space) ||
        aot_dtype_size(a->dtype) != aot_dtype_size(l->dtype))
      continue;
    int is_same = is_read_first(g, load, s);
    for (int32_t d = 0; d < g->loop.rank; d++) is_same &= g->loop.sizes[d] == 1 || l->strides[d] == a->strides[d];
    if (is_same) return g->tensors[s].storage;
  }
  return LW_NONE;
}

lw_ref_t lw_use_access(lw_build_t *b, const lw_group_t *g, uint32_t k) {
  int in_place = 0;
  AOT_ASSERT(k < g->loop.n_loads + g->loop.n_stores);
  if (g->draws[k] || g->accesses[k].counts) return lw_use(b, NULL);
  if (k >= g->loop.n_loads) return lw_use(b, lw_is_across(g, k) ? NULL : &g->tensors[k]);
  for (uint32_t s = g->loop.n_loads; b->donated_input && !g->loop.reduced && s < g->loop.n_loads + g->loop.n_stores;
       s++)
    in_place |= is_in_place(b, g, k, s);
  return lw_use_inplace_of(b, &g->tensors[k], in_place, written_onto(b, g, k));
}

/* Classes are checked, and the rows that count are counted, before the loop reads their number. */
static aot_status_t count_classes(lw_build_t *b, lw_group_t *g) {
  for (uint32_t l = 0; l < g->loop.n_loads; l++) {
    if (g->makers[l] == LW_NONE) continue;
    const lp_row_op_t *op = g->infos[g->makers[l]].rows;
    AOT_ASSERT(op && op->class_at);
    b->node = member(b, g, g->makers[l]);
    const lw_tensor_t *known = b->class_numbers ? b->class_numbers[g->members[g->makers[l]]] : NULL;
    if (known) g->tensors[l] = *known;
    else AOT_TRY(b->machine->target->classes(b, op->class_at, lw_arg_tensor(b, op->of)->sizes[1], &g->tensors[l]));
  }
  return AOT_OK;
}

/* What a tensor begins as that is written by places. */
static aot_status_t begin_written(lw_build_t *b, const lw_group_t *g) {
  const lw_tensor_t *whole = &g->tensors[g->loop.n_loads];
  AOT_ASSERT(g->n == 1 && g->loop.n_stores == 1);
  if (lw_numel(whole) == 0) return AOT_OK;
  return g->write.init == LW_NONE ? lw_fill_zero(b, whole) : lw_copy(b, whole, &lw_value(b, g->write.init)->t);
}

/* Where a join wants what is stored; NULL: anywhere. The node at hand becomes its maker. Asked once, before the target
 * makes a schedule, which may turn sums across rows into sums of rows. */
static const lw_tensor_t *place_of_store(lw_build_t *b, const lw_group_t *g, uint32_t store) {
  b->node = member(b, g, g->makers[store]);
  if (g->infos[0].writes || lw_is_across(g, store)) return NULL;
  return lw_place_of(b, g->rows[store] - b->node->result_begin);
}

aot_status_t lw_store_results(lw_build_t *b, lw_group_t *g) {
  AOT_TRY(count_classes(b, g));
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++) {
    b->node = member(b, g, g->makers[s]);
    const uint32_t result = g->rows[s] - b->node->result_begin;
    if (g->tensors[s].storage != LW_NONE) lw_bind(b, result, &g->tensors[s]); /* in its place */
    else AOT_TRY(lw_result(b, result, &g->tensors[s]));
  }
  return g->infos[0].writes ? begin_written(b, g) : AOT_OK;
}

/* Geometry of the stores before memory is given: as lw_result will choose it. */
static void set_store_strides(lw_build_t *b, lw_group_t *g) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++) {
    const lw_tensor_t *place = place_of_store(b, g, s);
    if (place) g->tensors[s] = *place;
    else lw_result_geometry(&g->tensors[s]);
    if (!place) g->tensors[s].storage = LW_NONE;
    if (g->infos[0].writes) continue; /* lw_write has them */
    if (lw_is_across(g, s)) spread_columns(&g->tensors[s], g, g->accesses[s].strides);
    else spread_result(&g->tensors[s], g, g->accesses[s].strides);
  }
}

/* Sums across rows are as many as their results have elements. */
static int across_fits(const lw_group_t *g) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++)
    if (lw_is_across(g, s) && g->insts[g->accesses[s].inst].of_row != (g->tensors[s].rank == 0)) return 0;
  return 1;
}

static aot_status_t lower(lw_build_t *b, lw_group_t *g) {
  const aot_status_t unfit = g->n > 1 ? LW_SPLIT : LW_DECLINED;
  if (!describe(b, g)) return unfit;
  if (g->loop.n_stores == 0) return AOT_OK; /* nothing reads it */
  lp_join_equal(&g->loop);
  set_store_strides(b, g);
  if (lw_numel(g->space) == 0) return lw_store_results(b, g);
  if (!lp_simplify(&g->loop)) return unfit;
  lp_schedule(&g->loop);
  if (!across_fits(g)) return unfit;
  return b->machine->target->loop(b, g);
}

aot_status_t lw_lower_group(lw_build_t *b, const uint32_t *members, const uint8_t *is_copy, uint32_t n_members) {
  AOT_ASSERT(n_members > 0 && n_members <= LW_MAX_GROUP);
  const size_t n = n_members, n_insts = n * LP_STEPS;
  lw_group_t g = {
      .members = members, .n = n_members, .is_copy = is_copy, .insts = calloc(n_insts + 1, sizeof *g.insts)};
  const size_t n_reached = most_accesses(&g);
  g.infos = calloc(n + 1, sizeof *g.infos);
  g.first = calloc(n + 1, sizeof *g.first);
  g.accesses = calloc(n_reached + 1, sizeof *g.accesses);
  g.tensors = calloc(n_reached + 1, sizeof *g.tensors);
  g.rows = calloc(n_reached + 1, sizeof *g.rows);
  g.draws = calloc(n_reached + 1, sizeof *g.draws);
  g.nodes = calloc(n_reached + 1, sizeof *g.nodes);
  g.makers = malloc((n_reached + 1) * sizeof *g.makers);
  if (g.makers) memset(g.makers, 0xFF, (n_reached + 1) * sizeof *g.makers); /* LW_NONE */
  const int is_there =
      g.nodes && g.insts && g.infos && g.first && g.makers && g.accesses && g.tensors && g.rows && g.draws;
  lw_transaction_t t;
  lw_begin(b, &t);
  const aot_status_t status = lw_end(b, &t, is_there ? lower(b, &g) : lw_no_memory(b->error, "for a group"));
  free(g.nodes);
  free(g.draws);
  free(g.rows);
  free(g.tensors);
  free(g.accesses);
  free(g.makers);
  free(g.first);
  free(g.infos);
  free(g.insts);
  return status;
}
