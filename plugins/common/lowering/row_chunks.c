/* A wide result that is made, read and forgotten row by row is made in chunks of rows.
 *
 *     %scores = linear %x, %w          32,768 rows of 50,304 halves: 3 GiB
 *     %loss, %g = ..                   a loop: the loss of all rows; a gradient, rows on rows
 *     %dx = mm %g, %w                  keeps the rows
 *     %dw = mm (t %g), %x              sums over them
 *
 * becomes, for 4,096 rows after 4,096 rows, these four on slices: of what comes from outside with rows (%x) a view, of
 * what only they read (%scores, %g) memory of a chunk, of what others read (%dx) its place in the whole, and of sums over
 * rows (%loss, %dw) a part that is added, products where the sum lies. Sums of halves are kept as floats until the last.
 *
 * A chain begins with a product, goes on through views and loops as long as what they hand on is about as wide, and ends
 * with products. What it needs from outside is there when its last part stands, so all of it runs there, or just before the first
 * who reads what it gives. Every chunk is lowered by the ordinary lowerings: the types of the chain's values are those of
 * a slice for that time. O(nodes) a chain, of which there are as many as products that large.
 *
 * The idea for losses: P.-L. Hsu et al., Liger Kernel, 2024 (FusedLinearCrossEntropy). */
#include "group_member.h"

#include <stdlib.h>
#include <string.h>

enum {
  LEAST_ROWS = 4096, /* of a chunk: products of fewer leave a part of a GPU idle */
  NARROW = 4         /* so many times smaller than what the chain begins with: it is kept whole, and ends the chain */
};

enum { /* of a value in a chain, by what it is there */
       NOT_SEEN,
       FIXED,  /* comes from outside and has no rows */
       GIVEN,  /* comes from outside, in slices */
       COPIED, /* a loop makes it for itself */
       INNER,  /* made in slices that only the chain reads */
       OUTER,  /* made in slices that others read as one */
       SUM,    /* over the rows */
       BEHIND  /* a view of what the chain gives */
};
enum { NO_DIM = AOT_MAX_RANK };

typedef struct part { /* a value of a chain */
  uint32_t row;
  uint8_t role, dim; /* the dimension that the rows are */
  lw_tensor_t whole; /* while the chain is lowered: as it is outside; of a sum, what has been added */
  lw_tensor_t *place;
} part_t;

typedef struct chain {
  struct chain *next;
  uint32_t at;                /* it is lowered before the unit at that place */
  uint32_t *units, n_units;   /* last nodes */
  uint32_t *behind, n_behind; /* views of what it gives, which stand among them: lowered when it has run */
  part_t *parts;
  uint32_t n_parts;
  int64_t n_rows, chunk_rows; /* of the value that counts fewest */
} chain_t;

struct lw_chunks {
  chain_t *chains;   /* in the order that they were found in: those that begin earlier first */
  uint8_t *is_taken; /* by last node of a unit */
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

static aot_status_t no_memory(lw_build_t *b) {
  return lw_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for the schedule");
}

static const lw_tensor_t *tensor(const finder_t *f, uint32_t row) { return &lw_value(f->b, row)->t; }
static int64_t nbytes_of(const lw_tensor_t *t) { return lw_numel(t) * (int64_t)aot_dtype_size(t->dtype); }
static int is_half(const lw_tensor_t *t) { return t->dtype == AOT_BF16 || t->dtype == AOT_F16; }

/* ---- roles ---- */

static uint8_t role_of(const finder_t *f, uint32_t row) { return f->role[row - f->b->value_begin]; }
static int is_sliced(uint8_t role) { return role == GIVEN || role == COPIED || role == INNER || role == OUTER; }

static int set_role(finder_t *f, uint32_t row, uint8_t role, int32_t dim) {
  const uint32_t v = row - f->b->value_begin;
  if (f->role[v] == NOT_SEEN) f->seen[f->n_seen++] = v;
  f->role[v] = role;
  f->dim[v] = (uint8_t)dim;
  return 1;
}

/* Something reads the value with its rows along a dimension, or as it is. 0: another part of the chain has it otherwise. */
static int read_as(finder_t *f, uint32_t row, int32_t dim) {
  const uint32_t v = row - f->b->value_begin;
  const uint8_t role = f->role[v];
  if (role == NOT_SEEN || (role == COPIED && f->dim[v] == dim))
    return set_role(f, row, dim == NO_DIM ? FIXED : GIVEN, dim);
  return dim == NO_DIM ? role == FIXED : is_sliced(role) && f->dim[v] == dim;
}

/* The chain makes the value. */
static int make_as(finder_t *f, uint32_t row, uint8_t role, int32_t dim) {
  const lw_build_t *b = f->b;
  const int is_narrow = NARROW * nbytes_of(tensor(f, row)) < f->wide_nbytes;
  if (role_of(f, row) != NOT_SEEN || (b->goes_home && b->goes_home[row - b->value_begin])) return 0;
  if (role == INNER && (is_narrow || f->is_output[row - b->value_begin])) role = OUTER;
  return set_role(f, row, role, dim);
}

static void forget_all(finder_t *f) {
  for (uint32_t k = 0; k < f->n_seen; k++) f->role[f->seen[k]] = NOT_SEEN;
  f->n_seen = 0;
}

/* The dimension with the longest way from index to index; NO_DIM: it has but one element. */
static int32_t outermost(const lw_tensor_t *t) {
  int32_t found = NO_DIM;
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] > 1 && (found == NO_DIM || t->strides[d] > t->strides[found])) found = d;
  return found;
}

/* ---- what may be a part ---- */

typedef struct product_form { /* arguments */
  const char *op;
  uint32_t x, y, addend; /* LW_NONE: it has none */
} product_form_t;
static const product_form_t products[] = {{"aten.linear.default", 0, 1, 2},
                                          {"aten.mm.default", 0, 1, LW_NONE},
                                          {"aten.addmm.default", 1, 2, 0},
                                          {"aten.matmul.default", 0, 1, LW_NONE}};

static const product_form_t *product_of(const lw_build_t *b) {
  const aot_str_t name = aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
  for (size_t k = 0; k < sizeof products / sizeof *products; k++)
    if (aot_str_eq(name, aot_str(products[k].op))) return &products[k];
  return NULL;
}

static int is_multiplied(const lw_tensor_t *x, const lw_tensor_t *y) {
  return x && y && x->dtype == y->dtype && y->rank == 2 && (x->dtype == AOT_F32 || x->dtype == AOT_F64 || is_half(x));
}

/* Rows of the left operand are the result's. */
static int take_keeping(finder_t *f, const product_form_t *p, int32_t dim, uint8_t role) {
  const lw_build_t *b = f->b;
  const lw_tensor_t *x = lw_arg_tensor(b, p->x), *out = lw_type(b, 0);
  const lw_tensor_t *addend = p->addend == LW_NONE ? NULL : lw_arg_tensor(b, p->addend);
  if (x->rank != out->rank || dim >= x->rank - 1 || x->sizes[dim] != out->sizes[dim]) return 0;
  if (addend && (addend->rank != 1 || !read_as(f, lw_arg_row(b, p->addend), NO_DIM))) return 0;
  return read_as(f, lw_arg_row(b, p->x), dim) && read_as(f, lw_arg_row(b, p->y), NO_DIM) &&
         make_as(f, b->node->result_begin, role, dim);
}

/* Rows are what is summed over. */
static int take_summing(finder_t *f, const product_form_t *p) {
  const lw_build_t *b = f->b;
  return p->addend == LW_NONE && lw_is_product(lw_arg_tensor(b, p->x), lw_arg_tensor(b, p->y), lw_type(b, 0)) &&
         lw_type(b, 0)->rank == 2 && read_as(f, lw_arg_row(b, p->x), 1) && read_as(f, lw_arg_row(b, p->y), 0) &&
         make_as(f, b->node->result_begin, SUM, NO_DIM);
}

static int take_product(finder_t *f) {
  const lw_build_t *b = f->b;
  const product_form_t *p = product_of(b);
  if (!p || !is_multiplied(lw_arg_tensor(b, p->x), lw_arg_tensor(b, p->y))) return 0;
  const uint32_t x = lw_arg_row(b, p->x), y = lw_arg_row(b, p->y);
  const int32_t last = lw_arg_tensor(b, p->x)->rank - 1;
  if (role_of(f, y) == INNER || (role_of(f, x) == INNER && f->dim[x - b->value_begin] == last))
    return take_summing(f, p);
  return role_of(f, x) == INNER && take_keeping(f, p, f->dim[x - b->value_begin], OUTER);
}

/* The view's dimension that goes through memory as the operand's rows do, from the same element on. */
static int32_t rows_of_view(const lw_tensor_t *of, int32_t dim, const lw_tensor_t *view) {
  const int32_t found = outermost(view);
  if (outermost(of) != dim || found == NO_DIM || view->offset != of->offset ||
      view->strides[found] * view->sizes[found] != of->strides[dim] * of->sizes[dim])
    return NO_DIM;
  return found;
}

static int take_view(finder_t *f) {
  const lw_build_t *b = f->b;
  if (!lw_is_plain_view(b) || role_of(f, lw_arg_row(b, 0)) != INNER) return 0;
  const int32_t dim = rows_of_view(lw_arg_tensor(b, 0), f->dim[lw_arg_row(b, 0) - b->value_begin], lw_type(b, 0));
  return dim != NO_DIM && make_as(f, b->node->result_begin, INNER, dim);
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
    if (!read_as(f, row, has_rows ? dim : NO_DIM)) return 0;
  }
  return 1;
}

/* A sum over the rows may be made of parts: it is nothing but a sum. Those of halves are made as floats. */
static int is_sum(finder_t *f, const lw_member_t *m, uint32_t r) {
  lw_build_t *b = f->b;
  const int is_across = m->rows->steps[m->rows->results[r]].reduce == LP_ACROSS;
  if (!is_across && (m->rows->n_steps != 1 || m->rows->steps[0].reduce != LP_SUM)) return 0;
  lw_tensor_t *t = &lw_value(b, b->node->result_begin + r)->t;
  if (!is_half(t)) return t->dtype == AOT_F32 || t->dtype == AOT_F64;
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
    return !is_copy && is_sum(f, m, r) && make_as(f, row, SUM, NO_DIM);
  if (m->rows && t->rank != rows->rank) dim -= __builtin_popcount(m->reduced & ((1u << dim) - 1));
  else if (t->rank != rows->rank) return 0;
  if (dim >= t->rank || t->sizes[dim] != rows->n) return 0;
  if (!is_copy) return make_as(f, row, INNER, dim);
  if (role_of(f, row) == NOT_SEEN) return set_role(f, row, COPIED, dim);
  return is_sliced(role_of(f, row)) && f->dim[row - b->value_begin] == dim;
}

/* Of the first member that reads what the chain has made. */
static int find_rows(finder_t *f, const lw_unit_t *u, rows_t *out) {
  lw_build_t *b = f->b;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  for (uint32_t k = 0; k < u->n; k++) {
    lw_member_t m;
    b->node = &nodes[u->nodes[k]];
    if (!lw_member(b, &m)) return 0;
    for (uint32_t a = 0; a < b->node->n_args; a++) {
      const uint32_t row = lw_arg_row(b, a);
      const lw_tensor_t *space = lw_member_space(b, &m);
      if (row == AOT_NO_ID || role_of(f, row) != INNER || tensor(f, row)->rank != space->rank) continue;
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

static int take_loop(finder_t *f, const lw_unit_t *u) {
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

static int take_unit(finder_t *f, const lw_unit_t *u) {
  lw_build_t *b = f->b;
  const uint32_t last = u->nodes[u->n - 1];
  if (b->chunks->is_taken[last]) return 0;
  if (b->group[last] != LW_NONE) return take_loop(f, u);
  b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + last;
  if (lw_is_product_sum(b, last) || lw_is_region_sum(b, last) || lw_is_spared(b, last) || b->node->n_results != 1)
    return 0;
  return take_view(f) || take_product(f);
}

/* ---- chains ---- */

enum { READS_INNER = 1, READS_RESULT = 2 };

static int reads_of(const finder_t *f, const lw_unit_t *u) {
  const lw_build_t *b = f->b;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  int reads = 0;
  for (uint32_t k = 0; k < u->n; k++) {
    const aot_snap_node_t *node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + u->nodes[k];
    for (uint32_t o = 0; o < node->n_operands; o++) {
      const uint32_t row = operands[node->operand_begin + o];
      const uint8_t role = row == AOT_NO_ID ? NOT_SEEN : role_of(f, row);
      reads |= role == INNER ? READS_INNER : role >= OUTER ? READS_RESULT : 0;
    }
  }
  return reads;
}

/* The place of the last unit that reads what the chain has made so far. */
static uint32_t end_of(const finder_t *f) {
  uint32_t end = 0;
  for (uint32_t k = 0; k < f->n_seen; k++) {
    const uint32_t v = f->seen[k];
    if (f->role[v] == INNER && f->last_read[v] > end) end = f->last_read[v];
  }
  return end;
}

static int is_view(const finder_t *f, const lw_unit_t *u) {
  lw_build_t *b = f->b;
  const uint32_t last = u->nodes[u->n - 1];
  b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + last;
  return b->group[last] == LW_NONE && !b->chunks->is_taken[last] && lw_is_plain_view(b);
}

/* Units behind the product at `begin` that belong to it. 0: what they hand on is needed as a whole. *out_at: where the
 * chain may run. */
static int follow(finder_t *f, uint32_t begin, uint32_t *out_at) {
  uint32_t first_reader = LW_NONE, last_unit = begin;
  int fits = 1;
  for (uint32_t at = begin + 1; fits && at <= end_of(f); at++) {
    lw_unit_t *u = f->units->unit;
    if (f->units->order[at] == LW_NONE) continue;
    lw_find_unit(f->b, f->units, f->units->order[at]);
    const int reads = reads_of(f, u);
    if (reads & READS_INNER) {
      fits = take_unit(f, u);
      f->taken[f->n_taken++] = f->units->order[at];
      last_unit = at;
    } else if (reads && is_view(f, u)) {
      set_role(f, f->b->node->result_begin, BEHIND, NO_DIM);
      f->behind[f->n_behind++] = f->units->order[at];
    } else if (reads && first_reader == LW_NONE) {
      first_reader = at;
    }
  }
  *out_at = first_reader < last_unit ? first_reader : last_unit + 1;
  return fits && f->n_taken > 1;
}

/* The rows of the value that counts fewest, which all others are multiples of. 0: they are not; or what comes from outside
 * is not there yet. */
static int64_t count_rows(const finder_t *f, uint32_t at) {
  int64_t least = INT64_MAX;
  for (uint32_t k = 0; k < f->n_seen; k++) {
    const uint32_t v = f->seen[k];
    if ((f->role[v] == FIXED || f->role[v] == GIVEN) && f->made_at[v] >= (int64_t)at) return 0;
    if (!is_sliced(f->role[v])) continue;
    const int64_t n = f->b->values[v].t.sizes[f->dim[v]];
    if (n < least) least = n;
  }
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
  chain_t *c = lw_pool_alloc(b->pool, sizeof *c), **end = &b->chunks->chains;
  if (!c) return no_memory(b);
  c->units = lw_pool_alloc(b->pool, f->n_taken * sizeof *c->units);
  c->parts = lw_pool_alloc(b->pool, f->n_seen * sizeof *c->parts);
  if (!c->units || !c->parts) return no_memory(b);
  c->behind = lw_pool_alloc(b->pool, (f->n_behind + 1) * sizeof *c->behind);
  if (!c->behind) return no_memory(b);
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
    if (f->role[v] >= INNER) f->made_at[v] = (int64_t)at - 1;
    if (f->role[v] == FIXED || f->role[v] == BEHIND) continue;
    c->parts[c->n_parts++] = (part_t){.row = v + b->value_begin, .role = f->role[v], .dim = f->dim[v]};
  }
  while (*end) end = &(*end)->next;
  *end = c;
  return AOT_OK;
}

/* A chain that begins with the product at that place, if it is one. */
static aot_status_t find_chain(finder_t *f, uint32_t begin) {
  lw_build_t *b = f->b;
  const uint32_t node = f->units->order[begin];
  const product_form_t *p = NULL;
  uint32_t at = 0;
  if (b->group[node] != LW_NONE || b->chunks->is_taken[node]) return AOT_OK;
  b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + node;
  if (b->node->n_results != 1 || !(p = product_of(b)) || lw_is_product_sum(b, node)) return AOT_OK;
  const lw_tensor_t *wide = lw_type(b, 0);
  const uint32_t row = b->node->result_begin;
  const int32_t dim = outermost(wide);
  f->wide_nbytes = nbytes_of(wide);
  if (f->wide_nbytes <= (int64_t)b->machine->chunk_nbytes || dim == NO_DIM || !lw_is_contiguous(wide) ||
      f->is_output[row - b->value_begin] || !is_multiplied(lw_arg_tensor(b, p->x), lw_arg_tensor(b, p->y)))
    return AOT_OK;
  f->taken[0] = node;
  f->n_taken = 1;
  f->n_behind = 0;
  if (take_keeping(f, p, dim, INNER) && follow(f, begin, &at)) {
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
    const lw_unit_t *u = f->units->unit;
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
  if (!b->machine->chunk_nbytes || b->depth || b->machine->is_watched || b->machine->custom->n_nodes) return AOT_OK;
  b->chunks = lw_pool_alloc(b->pool, sizeof *b->chunks);
  if (!b->chunks || !(b->chunks->is_taken = lw_pool_alloc(b->pool, (uint64_t)n + 1))) return no_memory(b);
  finder_t f = {.b = b, .units = units};
  f.role = calloc(n_values, 1);
  f.dim = calloc(n_values, 1);
  f.is_output = calloc(n_values, 1);
  f.last_read = calloc(n_values, sizeof *f.last_read);
  f.made_at = calloc(n_values, sizeof *f.made_at);
  f.seen = calloc(n_values, sizeof *f.seen);
  f.taken = calloc((size_t)n + 1, 2 * sizeof *f.taken);
  f.behind = f.taken ? f.taken + n + 1 : NULL;
  aot_status_t status =
      f.role && f.dim && f.is_output && f.last_read && f.made_at && f.seen && f.taken ? AOT_OK : no_memory(b);
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
  return b->makes_chunks && b->chunks && b->chunks->is_taken[last];
}

/* ---- lowering ---- */

static const aot_snap_node_t *node_at(const lw_build_t *b, uint32_t i) {
  return AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + i;
}

/* Of a value with rows along that dimension: those from `begin` on, in counts of the chain. */
static lw_tensor_t slice(const chain_t *c, const part_t *p, const lw_tensor_t *whole, int64_t begin, int64_t n) {
  const int64_t factor = whole->sizes[p->dim] / c->n_rows;
  lw_tensor_t t = *whole;
  t.sizes[p->dim] = n * factor;
  t.offset += begin * factor * whole->strides[p->dim];
  return t;
}

/* Memory for what is there when all chunks have been. */
static aot_status_t begin_part(lw_build_t *b, part_t *p) {
  const lw_value_t *v = lw_value(b, p->row);
  p->whole = v->t;
  p->place = b->places[p->row - b->value_begin];
  if (p->role < OUTER) return AOT_OK;
  if (p->role == OUTER && p->place) {
    p->whole = *p->place;
    return AOT_OK;
  }
  if (p->role == SUM && is_half(&p->whole)) p->whole.dtype = AOT_F32;
  lw_result_geometry(&p->whole);
  if (p->role == SUM) lw_make_contiguous(&p->whole);
  return lw_new_tensor(b, &p->whole);
}

/* The chain's values as they are for one chunk: declared, and with places. */
static aot_status_t begin_chunk(lw_build_t *b, chain_t *c, int64_t begin, int64_t n) {
  for (uint32_t k = 0; k < c->n_parts; k++) {
    part_t *p = &c->parts[k];
    lw_tensor_t *t = &lw_value(b, p->row)->t, **place = &b->places[p->row - b->value_begin];
    if (p->role == SUM) {
      *t = p->whole;
      t->storage = LW_NONE;
      continue;
    }
    *t = slice(c, p, &p->whole, begin, n);
    if (p->role != INNER && p->role != OUTER) continue;
    t->offset = p->whole.offset;
    t->storage = LW_NONE;
    *place = NULL;
    if (p->role == INNER && !p->place) continue;
    *place = lw_pool_alloc(b->pool, sizeof **place);
    if (!*place) return no_memory(b);
    **place = p->role == OUTER ? slice(c, p, &p->whole, begin, n) : slice(c, p, p->place, 0, n);
    if (p->role == INNER) AOT_TRY(lw_new_tensor(b, *place));
  }
  return AOT_OK;
}

static part_t *part_of(const chain_t *c, uint32_t row) {
  for (uint32_t k = 0; k < c->n_parts; k++)
    if (c->parts[k].row == row) return &c->parts[k];
  return NULL;
}

/* A view of all rows, of which it is a slice as its operand is. */
static aot_status_t lower_view(lw_build_t *b, const chain_t *c, int64_t n) {
  const part_t *of = part_of(c, lw_arg_row(b, 0)), *p = part_of(c, b->node->result_begin);
  lw_tensor_t whole = *lw_arg_tensor(b, 0), view;
  const uint32_t storage = whole.storage;
  whole.sizes[of->dim] = of->whole.sizes[of->dim];
  AOT_TRY(lw_new_tensor(b, &whole)); /* the view is asked what it sees of it; what no step uses takes no memory */
  if (!lw_see(b, &whole, &view) || rows_of_view(&whole, of->dim, &view) != p->dim) return LW_DECLINED;
  view = slice(c, p, &view, 0, n);
  view.storage = storage;
  lw_bind(b, 0, &view);
  return AOT_OK;
}

static aot_status_t lower_part(lw_build_t *b, const chain_t *c, const lw_units_t *units, uint32_t last, int64_t begin,
                               int64_t n) {
  b->node = node_at(b, last);
  lw_find_unit(b, units, last);
  if (b->group[last] != LW_NONE) return lw_lower_unit(b, units->unit);
  if (!product_of(b)) return lower_view(b, c, n);
  const part_t *p = part_of(c, b->node->result_begin);
  if (p->role != SUM) return lw_lower_unit(b, units->unit);
  const product_form_t *form = product_of(b);
  const lw_tensor_t x = *lw_arg_tensor(b, form->x), y = *lw_arg_tensor(b, form->y);
  return b->machine->target->product(b, &x, &y, begin ? &p->whole : NULL, &p->whole, 1, begin != 0);
}

/* What a chunk has given goes to where it belongs, unless it was made there. */
static aot_status_t end_chunk(lw_build_t *b, chain_t *c, int64_t begin, int64_t n) {
  for (uint32_t k = 0; k < c->n_parts; k++) {
    const part_t *p = &c->parts[k];
    lw_tensor_t *t = &lw_value(b, p->row)->t;
    if (p->role == GIVEN || p->role == COPIED) *t = p->whole;
    if (p->role < OUTER || t->storage == LW_NONE) continue; /* nobody reads it; or a product has added it */
    b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + AOT_SNAP_ROWS(b->s, aot_snap_value_t, values)[p->row].def;
    const lw_tensor_t made = *t, to = p->role == OUTER ? slice(c, p, &p->whole, begin, n) : p->whole;
    if (p->role == OUTER && made.storage == to.storage) continue;
    if (p->role == SUM && begin) AOT_TRY(b->machine->target->add(b, &to, &made));
    else AOT_TRY(lw_copy(b, &to, &made));
  }
  return AOT_OK;
}

static aot_status_t bind_results(lw_build_t *b, chain_t *c) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values);
  for (uint32_t k = 0; k < c->n_parts; k++) {
    part_t *p = &c->parts[k];
    b->places[p->row - b->value_begin] = p->place;
    if (p->role < OUTER) continue;
    lw_tensor_t result = p->whole;
    result.dtype = values[p->row].dtype;
    b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + values[p->row].def;
    if (result.dtype != p->whole.dtype) {
      AOT_TRY(lw_new_tensor(b, &result));
      AOT_TRY(lw_copy(b, &result, &p->whole));
    }
    lw_bind(b, p->row - b->node->result_begin, &result);
  }
  return AOT_OK;
}

/* The number that losses of classes are scaled by is that of all rows: it is there before the first chunk. */
static aot_status_t count_classes(lw_build_t *b, const chain_t *c, const lw_units_t *units) {
  if (!b->class_numbers) b->class_numbers = lw_pool_alloc(b->pool, ((uint64_t)b->graph->n_nodes + 1) * sizeof(void *));
  if (!b->class_numbers) return no_memory(b);
  for (uint32_t u = 0; u < c->n_units; u++) {
    if (b->group[c->units[u]] == LW_NONE) continue;
    lw_find_unit(b, units, c->units[u]);
    for (uint32_t k = 0; k < units->unit->n; k++) {
      const uint32_t node = units->unit->nodes[k];
      lw_member_t m;
      b->node = node_at(b, node);
      if (!lw_member(b, &m) || !m.rows || !m.rows->class_at) continue;
      lw_tensor_t *number = b->class_numbers[node] = lw_pool_alloc(b->pool, sizeof *number);
      if (!number) return no_memory(b);
      AOT_TRY(b->machine->target->classes(b, m.rows->class_at, lw_arg_tensor(b, m.rows->of)->sizes[1], number));
    }
  }
  return AOT_OK;
}

static aot_status_t lower_chain(lw_build_t *b, chain_t *c, const lw_units_t *units) {
  AOT_TRY(count_classes(b, c, units));
  for (uint32_t k = 0; k < c->n_parts; k++) AOT_TRY(begin_part(b, &c->parts[k]));
  for (int64_t begin = 0; begin < c->n_rows; begin += c->chunk_rows) {
    const int64_t n = c->chunk_rows < c->n_rows - begin ? c->chunk_rows : c->n_rows - begin;
    AOT_TRY(begin_chunk(b, c, begin, n));
    for (uint32_t u = 0; u < c->n_units; u++) AOT_TRY(lower_part(b, c, units, c->units[u], begin, n));
    AOT_TRY(end_chunk(b, c, begin, n));
    b->out->n_chunks++;
  }
  AOT_TRY(bind_results(b, c));
  for (uint32_t k = 0; k < c->n_behind; k++) {
    lw_find_unit(b, units, c->behind[k]);
    AOT_TRY(lw_lower_unit(b, units->unit));
  }
  return AOT_OK;
}

aot_status_t lw_lower_chunks(lw_build_t *b, const lw_units_t *units, uint32_t at) {
  for (chain_t *c = b->makes_chunks && b->chunks ? b->chunks->chains : NULL; c; c = c->next)
    if (c->at == at) AOT_TRY(lower_chain(b, c, units));
  return AOT_OK;
}
