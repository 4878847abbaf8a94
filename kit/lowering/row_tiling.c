/* Which products, views and loops are a chain (row_tiling.h). */
#include "row_tiling.h"

#include "group_member.h"

#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

enum {
  LEAST_ROWS = 4096, /* of a chunk: products of fewer leave a part of a GPU idle */
  NARROW = 4         /* so many times smaller than what the chain begins with: it is stored whole, and ends the chain */
};

typedef struct finder {
  lw_build_t *b;
  const lw_units_t *units;
  uint8_t *role, *dim; /* by value */
  uint8_t *is_output;  /* by value */
  uint32_t *last_read; /* by value: the place of the last unit that reads it */
  int64_t *made_at;    /* by value: the place of the unit that makes it; -1: it is there from the start */
  uint32_t *seen;      /* values with a role */
  uint32_t n_seen;
  uint32_t *taken; /* units */
  uint32_t n_taken;
  uint32_t *behind; /* units */
  uint32_t n_behind;
  int64_t wide_nbytes; /* of what the chain begins with */
} finder_t;

static const lw_tensor_t *tensor(const finder_t *f, uint32_t row) { return &lw_value(f->b, row)->t; }
static int64_t nbytes_of(const lw_tensor_t *t) { return lw_numel(t) * (int64_t)aot_dtype_size(t->dtype); }
/* ---- roles ---- */

static uint8_t role_of(const finder_t *f, uint32_t row) { return f->role[row - f->b->value_begin]; }
static int is_sliced(uint8_t role) {
  return role == LW_ROWS_GIVEN || role == LW_ROWS_COPIED || role == LW_ROWS_INNER || role == LW_ROWS_OUTER;
}

static int set_role(finder_t *f, uint32_t row, uint8_t role, int32_t dim) {
  const uint32_t v = row - f->b->value_begin;
  AOT_ASSERT(v < f->b->n_values && dim >= 0 && dim <= LW_NO_ROWS);
  if (f->role[v] == LW_ROWS_NOT_SEEN) f->seen[f->n_seen++] = v;
  f->role[v] = role;
  f->dim[v] = (uint8_t)dim;
  return 1;
}

/* Something reads the value with its rows along a dimension, or as it is. 0: another part of the chain has it
 * otherwise. */
static int read_as(finder_t *f, uint32_t row, int32_t dim) {
  const uint32_t v = row - f->b->value_begin;
  const uint8_t role = f->role[v];
  if (role == LW_ROWS_NOT_SEEN || (role == LW_ROWS_COPIED && f->dim[v] == dim))
    return set_role(f, row, dim == LW_NO_ROWS ? LW_ROWS_FIXED : LW_ROWS_GIVEN, dim);
  return dim == LW_NO_ROWS ? role == LW_ROWS_FIXED : is_sliced(role) && f->dim[v] == dim;
}

/* The chain makes the value. */
static int make_as(finder_t *f, uint32_t row, uint8_t role, int32_t dim) {
  const lw_build_t *b = f->b;
  const int is_narrow = NARROW * nbytes_of(tensor(f, row)) < f->wide_nbytes;
  if (role_of(f, row) != LW_ROWS_NOT_SEEN || (b->donated_input && b->donated_input[row - b->value_begin])) return 0;
  if (role == LW_ROWS_INNER && (is_narrow || f->is_output[row - b->value_begin])) role = LW_ROWS_OUTER;
  return set_role(f, row, role, dim);
}

static void forget_all(finder_t *f) {
  for (uint32_t k = 0; k < f->n_seen; k++) f->role[f->seen[k]] = LW_ROWS_NOT_SEEN;
  f->n_seen = 0;
}

/* The dimension with the longest way from index to index; LW_NO_ROWS: it has but one element. */
static int32_t outermost(const lw_tensor_t *t) {
  int32_t found = LW_NO_ROWS;
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] > 1 && (found == LW_NO_ROWS || t->strides[d] > t->strides[found])) found = d;
  return found;
}

/* ---- what may be a part ---- */

static const lw_product_form_t products[] = {{"aten.linear.default", 0, 1, 2},
                                             {"aten.mm.default", 0, 1, LW_NONE},
                                             {"aten.addmm.default", 1, 2, 0},
                                             {"aten.matmul.default", 0, 1, LW_NONE}};

const lw_product_form_t *lw_product_form_of(const lw_build_t *b) {
  const aot_str_t name = aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
  for (size_t k = 0; k < sizeof products / sizeof *products; k++)
    if (aot_str_eq(name, aot_str(products[k].op))) return &products[k];
  return NULL;
}

static int is_multiplied(const lw_tensor_t *x, const lw_tensor_t *y) {
  return x && y && x->dtype == y->dtype && y->rank == 2 &&
         (x->dtype == AOT_F32 || x->dtype == AOT_F64 || lw_is_half(x));
}

/* Rows of the left operand are the result's. */
static int take_keeping(finder_t *f, const lw_product_form_t *p, int32_t dim, uint8_t role) {
  const lw_build_t *b = f->b;
  const lw_tensor_t *x = lw_arg_tensor(b, p->x), *out = lw_type(b, 0);
  const lw_tensor_t *addend = p->addend == LW_NONE ? NULL : lw_arg_tensor(b, p->addend);
  if (x->rank != out->rank || dim >= x->rank - 1 || x->sizes[dim] != out->sizes[dim]) return 0;
  if (addend && (addend->rank != 1 || !read_as(f, lw_arg_row(b, p->addend), LW_NO_ROWS))) return 0;
  return read_as(f, lw_arg_row(b, p->x), dim) && read_as(f, lw_arg_row(b, p->y), LW_NO_ROWS) &&
         make_as(f, b->node->result_begin, role, dim);
}

/* Rows are what is summed over. */
static int take_summing(finder_t *f, const lw_product_form_t *p) {
  const lw_build_t *b = f->b;
  return p->addend == LW_NONE && lw_is_product(lw_arg_tensor(b, p->x), lw_arg_tensor(b, p->y), lw_type(b, 0)) &&
         lw_type(b, 0)->rank == 2 && read_as(f, lw_arg_row(b, p->x), 1) && read_as(f, lw_arg_row(b, p->y), 0) &&
         make_as(f, b->node->result_begin, LW_ROWS_SUM, LW_NO_ROWS);
}

static int take_product(finder_t *f) {
  const lw_build_t *b = f->b;
  const lw_product_form_t *p = lw_product_form_of(b);
  if (!p || !is_multiplied(lw_arg_tensor(b, p->x), lw_arg_tensor(b, p->y))) return 0;
  const uint32_t x = lw_arg_row(b, p->x), y = lw_arg_row(b, p->y);
  const int32_t last = lw_arg_tensor(b, p->x)->rank - 1;
  if (role_of(f, y) == LW_ROWS_INNER || (role_of(f, x) == LW_ROWS_INNER && f->dim[x - b->value_begin] == last))
    return take_summing(f, p);
  return role_of(f, x) == LW_ROWS_INNER && take_keeping(f, p, f->dim[x - b->value_begin], LW_ROWS_OUTER);
}

int32_t lw_rows_of_view(const lw_tensor_t *of, int32_t dim, const lw_tensor_t *view) {
  const int32_t found = outermost(view);
  if (outermost(of) != dim || found == LW_NO_ROWS || view->offset != of->offset ||
      view->strides[found] * view->sizes[found] != of->strides[dim] * of->sizes[dim])
    return LW_NO_ROWS;
  return found;
}

static int take_view(finder_t *f) {
  const lw_build_t *b = f->b;
  if (!lw_is_plain_view(b) || role_of(f, lw_arg_row(b, 0)) != LW_ROWS_INNER) return 0;
  const int32_t dim = lw_rows_of_view(lw_arg_tensor(b, 0), f->dim[lw_arg_row(b, 0) - b->value_begin], lw_type(b, 0));
  return dim != LW_NO_ROWS && make_as(f, b->node->result_begin, LW_ROWS_INNER, dim);
}

typedef struct rows { /* of a loop: a dimension of its space */
  int32_t rank, dim;
  int64_t n;
} rows_t;

/* Operands: what has the rows' size where the rows are is read row by row, all else for each row again. */
static int take_operands(finder_t *f, const lw_member_t *m, const rows_t *rows) {
  const lw_build_t *b = f->b;
  for (uint32_t k = 0; k < b->node->n_args; k++) {
    const uint32_t row = lw_arg_row(b, k);
    if (lw_arg(b, k)->kind == AOT_ARG_VALUES) return 0;
    if (row == AOT_NO_ID || !tensor(f, row)->dtype) continue;
    const lw_tensor_t *t = tensor(f, row);
    const int is_class = m->rows && m->rows->class_at && k == m->rows->class_at;
    const int32_t dim = is_class ? 0 : rows->dim - (rows->rank - t->rank);
    const int has_rows = dim >= 0 && t->sizes[dim] != 1;
    if (dim >= t->rank && dim >= 0) return 0;
    if (has_rows && t->sizes[dim] != rows->n) return 0;
    if (!read_as(f, row, has_rows ? dim : LW_NO_ROWS)) return 0;
  }
  return 1;
}

/* A sum over the rows may be made of parts: it is nothing but a sum. Those of f16 or bf16 are made as floats. */
static int is_sum(finder_t *f, const lw_member_t *m, uint32_t r) {
  lw_build_t *b = f->b;
  const int is_across = m->rows->steps[m->rows->results[r]].reduce == LP_ACROSS;
  if (!is_across && (m->rows->n_steps != 1 || m->rows->steps[0].reduce != LP_SUM)) return 0;
  lw_tensor_t *t = &lw_value(b, b->node->result_begin + r)->t;
  if (!lw_is_half(t)) return t->dtype == AOT_F32 || t->dtype == AOT_F64;
  const int32_t dtype = t->dtype;
  lw_member_t as_float;
  t->dtype = AOT_F32;
  const int is_there = lw_member(b, &as_float);
  t->dtype = dtype;
  return is_there;
}

static int take_result(finder_t *f, const lw_member_t *m, uint32_t r, int is_copy, const rows_t *rows) {
  const lw_build_t *b = f->b;
  const uint32_t row = b->node->result_begin + r;
  const lw_tensor_t *t = lw_type(b, r);
  int32_t dim = rows->dim;
  if (!t->dtype) return 1;
  if (m->rows && (m->rows->steps[m->rows->results[r]].reduce == LP_ACROSS || (m->reduced >> dim & 1u)))
    return !is_copy && is_sum(f, m, r) && make_as(f, row, LW_ROWS_SUM, LW_NO_ROWS);
  if (m->rows && t->rank != rows->rank) dim -= __builtin_popcount(m->reduced & ((1u << dim) - 1));
  else if (t->rank != rows->rank) return 0;
  if (dim >= t->rank || t->sizes[dim] != rows->n) return 0;
  if (!is_copy) return make_as(f, row, LW_ROWS_INNER, dim);
  if (role_of(f, row) == LW_ROWS_NOT_SEEN) return set_role(f, row, LW_ROWS_COPIED, dim);
  return is_sliced(role_of(f, row)) && f->dim[row - b->value_begin] == dim;
}

/* Of the first member that reads what the chain has made. */
static int find_rows(finder_t *f, const lw_schedule_item_t *u, rows_t *out) {
  lw_build_t *b = f->b;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  for (uint32_t k = 0; k < u->n; k++) {
    lw_member_t m;
    b->node = &nodes[u->nodes[k]];
    if (!lw_member(b, &m)) return 0;
    for (uint32_t a = 0; a < b->node->n_args; a++) {
      const uint32_t row = lw_arg_row(b, a);
      const lw_tensor_t *space = lw_member_space(b, &m);
      if (row == AOT_NO_ID || role_of(f, row) != LW_ROWS_INNER || tensor(f, row)->rank != space->rank) continue;
      const int32_t dim = f->dim[row - b->value_begin];
      *out = (rows_t){space->rank, dim, tensor(f, row)->sizes[dim]};
      return 1;
    }
  }
  return 0;
}

/* Draws and counts go by the number of an element, reads and writes by places: they hang on what the others are. */
static int goes_by_number(const lw_build_t *b, const lw_member_t *m) {
  lp_draw_t draw;
  return m->reads || m->writes ||
         (lw_op(b)->loop &&
          (lp_op_counts(lw_op(b)->loop) >= 0 || lp_op_draws(lw_op(b)->loop, lw_type(b, 0)->dtype, &draw)));
}

static int take_loop(finder_t *f, const lw_schedule_item_t *u) {
  lw_build_t *b = f->b;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  uint32_t n_own = 0;
  rows_t rows;
  if (!find_rows(f, u, &rows)) return 0;
  for (uint32_t k = 0; k < u->n; k++) n_own += !u->is_copy[k];
  for (uint32_t k = 0; k < u->n; k++) {
    lw_member_t m;
    b->node = &nodes[u->nodes[k]];
    if (!lw_member(b, &m) || goes_by_number(b, &m)) return 0;
    if (n_own > 1) lw_sum_across(b, &m);
    const lw_tensor_t *space = lw_member_space(b, &m);
    if (space->rank != rows.rank || space->sizes[rows.dim] != rows.n || !take_operands(f, &m, &rows)) return 0;
    for (uint32_t r = 0; r < b->node->n_results; r++)
      if (!take_result(f, &m, r, u->is_copy[k], &rows)) return 0;
  }
  return 1;
}

static int take_unit(finder_t *f, const lw_schedule_item_t *u) {
  lw_build_t *b = f->b;
  const uint32_t last = u->nodes[u->n - 1];
  if (b->chunks->is_taken[last]) return 0;
  if (b->group[last] != LW_NONE) return take_loop(f, u);
  b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + last;
  if (lw_is_product_sum(b, last) || lw_is_region_sum(b, last) || lw_is_residual(b, last) || lw_is_spared(b, last) ||
      b->node->n_results != 1)
    return 0;
  return take_view(f) || take_product(f);
}

/* ---- chains ---- */

enum { READS_INNER = 1, READS_RESULT = 2 };

static int reads_of(const finder_t *f, const lw_schedule_item_t *u) {
  const lw_build_t *b = f->b;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  int reads = 0;
  for (uint32_t k = 0; k < u->n; k++) {
    const aot_snap_node_t *node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + u->nodes[k];
    for (uint32_t o = 0; o < node->n_operands; o++) {
      const uint32_t row = operands[node->operand_begin + o];
      const uint8_t role = row == AOT_NO_ID ? LW_ROWS_NOT_SEEN : role_of(f, row);
      reads |= role == LW_ROWS_INNER ? READS_INNER : role >= LW_ROWS_OUTER ? READS_RESULT : 0;
    }
  }
  return reads;
}

/* The place of the last unit that reads what the chain has made so far. */
static uint32_t end_of(const finder_t *f) {
  uint32_t end = 0;
  for (uint32_t k = 0; k < f->n_seen; k++) {
    const uint32_t v = f->seen[k];
    AOT_ASSERT(f->role[v] != LW_ROWS_NOT_SEEN && f->last_read[v] < f->b->graph->n_nodes);
    if (f->role[v] == LW_ROWS_INNER && f->last_read[v] > end) end = f->last_read[v];
  }
  return end;
}

static int is_view(const finder_t *f, const lw_schedule_item_t *u) {
  lw_build_t *b = f->b;
  const uint32_t last = u->nodes[u->n - 1];
  b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + last;
  return b->group[last] == LW_NONE && !b->chunks->is_taken[last] && lw_is_plain_view(b);
}

/* Units after the product at `begin` that belong to it. 0: what they hand on is needed as a whole. *out_at: where the
 * chain may run. */
static int follow(finder_t *f, uint32_t begin, uint32_t *out_at) {
  uint32_t first_reader = LW_NONE, last_unit = begin;
  int fits = 1;
  for (uint32_t at = begin + 1; fits && at <= end_of(f); at++) {
    lw_schedule_item_t *u = f->units->unit;
    if (f->units->order[at] == LW_NONE) continue;
    lw_find_unit(f->b, f->units, f->units->order[at]);
    const int reads = reads_of(f, u);
    if (reads & READS_INNER) {
      fits = take_unit(f, u);
      f->taken[f->n_taken++] = f->units->order[at];
      last_unit = at;
    } else if (reads && is_view(f, u)) {
      set_role(f, f->b->node->result_begin, LW_ROWS_BEHIND, LW_NO_ROWS);
      f->behind[f->n_behind++] = f->units->order[at];
    } else if (reads && first_reader == LW_NONE) {
      first_reader = at;
    }
  }
  *out_at = first_reader < last_unit ? first_reader : last_unit + 1;
  return fits && f->n_taken > 1;
}

/* The rows of the value that counts fewest, which all others are multiples of. 0: they are not; or what comes from
 * outside is not there yet. */
static int64_t count_rows(const finder_t *f, uint32_t at) {
  int64_t least = INT64_MAX;
  for (uint32_t k = 0; k < f->n_seen; k++) {
    const uint32_t v = f->seen[k];
    if ((f->role[v] == LW_ROWS_FIXED || f->role[v] == LW_ROWS_GIVEN) && f->made_at[v] >= (int64_t)at) return 0;
    if (!is_sliced(f->role[v])) continue;
    const int64_t n = f->b->values[v].t.sizes[f->dim[v]];
    if (n < least) least = n;
  }
  AOT_ASSERT(least > 0); /* the chain begins with a large tensor */
  for (uint32_t k = 0; k < f->n_seen; k++) {
    const uint32_t v = f->seen[k];
    if (is_sliced(f->role[v]) && f->b->values[v].t.sizes[f->dim[v]] % least) return 0;
  }
  return least;
}

/* Chunks of as many bytes as are wanted, and not too few rows; of equal size, if that is possible. 0: one would do. */
static int64_t chunk_rows(const lw_build_t *b, const lw_tensor_t *wide, int64_t n_rows) {
  const int64_t nbytes = nbytes_of(wide), want = (int64_t)b->machine->chunk_nbytes;
  int64_t most = lw_numel(wide) / wide->sizes[wide->rank - 1] / LEAST_ROWS, n = (nbytes + want - 1) / want;
  if (most > n_rows) most = n_rows;
  if (n > most) n = most;
  if (n < 2) return 0;
  for (int64_t even = n; even <= most; even++)
    if (n_rows % even == 0) return n_rows / even;
  return (n_rows + n - 1) / n;
}

static aot_status_t keep(finder_t *f, uint32_t at, int64_t n_rows, int64_t rows) {
  lw_build_t *b = f->b;
  AOT_ASSERT(at > 0 && at <= b->graph->n_nodes && rows > 0 && rows < n_rows && f->n_taken > 1);
  lw_chain_t *c = lw_pool_alloc(b->pool, sizeof *c), **end = &b->chunks->chains;
  if (!c) return lw_no_memory(b->error, "for the schedule");
  c->units = lw_pool_alloc(b->pool, f->n_taken * sizeof *c->units);
  c->parts = lw_pool_alloc(b->pool, f->n_seen * sizeof *c->parts);
  if (!c->units || !c->parts) return lw_no_memory(b->error, "for the schedule");
  c->behind = lw_pool_alloc(b->pool, (f->n_behind + 1) * sizeof *c->behind);
  if (!c->behind) return lw_no_memory(b->error, "for the schedule");
  c->at = at;
  c->n_rows = n_rows;
  c->chunk_rows = rows;
  for (; c->n_units < f->n_taken; c->n_units++) {
    c->units[c->n_units] = f->taken[c->n_units];
    b->chunks->is_taken[f->taken[c->n_units]] = 1;
  }
  for (; c->n_behind < f->n_behind; c->n_behind++) {
    c->behind[c->n_behind] = f->behind[c->n_behind];
    b->chunks->is_taken[f->behind[c->n_behind]] = 1;
  }
  for (uint32_t k = 0; k < f->n_seen; k++) {
    const uint32_t v = f->seen[k];
    if (f->role[v] >= LW_ROWS_INNER) f->made_at[v] = (int64_t)at - 1;
    if (f->role[v] == LW_ROWS_FIXED || f->role[v] == LW_ROWS_BEHIND) continue;
    c->parts[c->n_parts++] = (lw_chain_part_t){.row = v + b->value_begin, .role = f->role[v], .dim = f->dim[v]};
  }
  while (*end) end = &(*end)->next;
  *end = c;
  return AOT_OK;
}

/* A chain that begins with the product at that place, if it is one. */
static aot_status_t find_chain(finder_t *f, uint32_t begin) {
  lw_build_t *b = f->b;
  const uint32_t node = f->units->order[begin];
  const lw_product_form_t *p = NULL;
  uint32_t at = 0;
  if (b->group[node] != LW_NONE || b->chunks->is_taken[node]) return AOT_OK;
  b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + node;
  if (b->node->n_results != 1 || !(p = lw_product_form_of(b)) || lw_is_product_sum(b, node) || lw_is_residual(b, node))
    return AOT_OK;
  const lw_tensor_t *wide = lw_type(b, 0);
  const uint32_t row = b->node->result_begin;
  const int32_t dim = outermost(wide);
  f->wide_nbytes = nbytes_of(wide);
  if (f->wide_nbytes <= (int64_t)b->machine->chunk_nbytes || dim == LW_NO_ROWS || !lw_is_contiguous(wide) ||
      f->is_output[row - b->value_begin] || !is_multiplied(lw_arg_tensor(b, p->x), lw_arg_tensor(b, p->y)))
    return AOT_OK;
  f->taken[0] = node;
  f->n_taken = 1;
  f->n_behind = 0;
  if (take_keeping(f, p, dim, LW_ROWS_INNER) && follow(f, begin, &at)) {
    const int64_t n_rows = count_rows(f, at), rows = n_rows ? chunk_rows(b, wide, n_rows) : 0;
    if (rows) AOT_TRY(keep(f, at, n_rows, rows));
  }
  forget_all(f);
  return AOT_OK;
}

/* ---- finding ---- */

static void read_order(finder_t *f, uint32_t n) {
  lw_build_t *b = f->b;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  for (uint32_t v = 0; v < b->n_values; v++) f->made_at[v] = -1;
  for (uint32_t i = 0; i < b->graph->n_outputs; i++)
    if (outputs[i].value != AOT_NO_ID) f->is_output[outputs[i].value - b->value_begin] = 1;
  for (uint32_t at = 0; at < n; at++) {
    if (f->units->order[at] == LW_NONE) continue;
    lw_find_unit(b, f->units, f->units->order[at]);
    const lw_schedule_item_t *u = f->units->unit;
    for (uint32_t k = 0; k < u->n; k++) {
      const aot_snap_node_t *node = &nodes[u->nodes[k]];
      for (uint32_t r = 0; r < node->n_results && !u->is_copy[k]; r++)
        f->made_at[node->result_begin + r - b->value_begin] = at;
      for (uint32_t o = 0; o < node->n_operands; o++)
        if (operands[node->operand_begin + o] != AOT_NO_ID)
          f->last_read[operands[node->operand_begin + o] - b->value_begin] = at;
    }
  }
}

aot_status_t lw_find_chunks(lw_build_t *b, const lw_units_t *units) {
  const uint32_t n = b->graph->n_nodes;
  const size_t n_values = (size_t)b->n_values + 1;
  b->chunks = NULL;
  if (!b->machine->chunk_nbytes || b->depth || b->machine->is_watched || b->has_inplace_custom_kernels) return AOT_OK;
  b->chunks = lw_pool_alloc(b->pool, sizeof *b->chunks);
  if (!b->chunks || !(b->chunks->is_taken = lw_pool_alloc(b->pool, (uint64_t)n + 1)))
    return lw_no_memory(b->error, "for the schedule");
  finder_t f = {.b = b, .units = units};
  f.role = calloc(n_values, 1);
  f.dim = calloc(n_values, 1);
  f.is_output = calloc(n_values, 1);
  f.last_read = calloc(n_values, sizeof *f.last_read);
  f.made_at = calloc(n_values, sizeof *f.made_at);
  f.seen = calloc(n_values, sizeof *f.seen);
  f.taken = calloc((size_t)n + 1, 2 * sizeof *f.taken);
  f.behind = f.taken ? f.taken + n + 1 : NULL;
  aot_status_t status = f.role && f.dim && f.is_output && f.last_read && f.made_at && f.seen && f.taken
                            ? AOT_OK
                            : lw_no_memory(b->error, "for the schedule");
  if (status == AOT_OK) read_order(&f, n);
  for (uint32_t at = 0; at < n && status == AOT_OK; at++)
    if (units->order[at] != LW_NONE) status = find_chain(&f, at);
  free(f.role);
  free(f.dim);
  free(f.is_output);
  free(f.last_read);
  free(f.made_at);
  free(f.seen);
  free(f.taken);
  return status;
}

int lw_has_chunks(const lw_build_t *b) { return b->chunks && b->chunks->chains; }

int lw_is_chunked(const lw_build_t *b, uint32_t last) {
  AOT_ASSERT(last < b->graph->n_nodes);
  return b->makes_chunks && b->chunks && b->chunks->is_taken[last];
}
