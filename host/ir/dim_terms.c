/* Rows of expressions, and sums and products of them.
 *
 * A row is (operator, operands), found by hash if there is an equal one, and carries its bounds, its hint and how large
 * it is when written out. Terms are stored in structural order, so that equal sums and products are equal rows. */
#include <ir/dim_terms.h>

#include <aot/assert.h>
#include <kit/graph/snap_expr.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define DEEPEST_DIFFERENCE 64

static const aoth_interval_t any = {INT64_MIN, INT64_MAX};

/* ---- intervals ---- */

aoth_interval_t aoth_dim_range(const aot_prog_t *p, int64_t d) {
  aoth_interval_t r = {d, d};
  if (!is_const(d)) {
    r.lo = row_of(p, d)->lo;
    r.hi = row_of(p, d)->hi;
  }
  return r;
}

static aoth_interval_t bounds(const aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c) {
  return aoth_interval_of(op, aoth_dim_range(p, a), aoth_dim_range(p, b), aoth_dim_range(p, c));
}

/* ---- rows ---- */
static uint32_t expr_hash(const aot_expr_info_t *e) {
  int64_t words[4] = {e->op, e->a, e->b, e->c};
  return (uint32_t)XXH3_64bits(words, sizeof words);
}

static int expr_same(const void *prog, uint32_t row, const void *key) {
  const aot_prog_t *p = prog;
  const aot_expr_info_t *a = &p->exprs.at[row].info, *b = key;
  return a->op == b->op && a->a == b->a && a->b == b->b && a->c == b->c;
}

static uint32_t find_row(const aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c) {
  aot_expr_info_t key = {.op = op, .a = a, .b = b, .c = c};
  return aoth_row_find(&p->expr_index, expr_hash(&key), expr_same, p, &key);
}

static uint32_t tree_size(const aot_prog_t *p, int64_t d) { return is_const(d) ? 0 : row_of(p, d)->tree_size; }

static int is_row_before(int64_t d, uint32_t row) { return is_const(d) || AOT_DIM_EXPR(d) < row; }

static int has_older_operands(const aoth_expr_row_t *row, uint32_t number) {
  const aot_expr_info_t *e = &row->info;
  return e->op == AOT_EXPR_SYMBOL ||
         (is_row_before(e->a, number) && is_row_before(e->b, number) && is_row_before(e->c, number));
}

aot_status_t aoth_row_add(aot_prog_t *p, const aoth_expr_row_t *row, int64_t *out) {
  AOT_ASSERT(row->lo <= row->hi && has_older_operands(row, p->exprs.n));
  if (!ROWS_ROOM(p->exprs, 1) || !kit_map_reserve(&p->expr_index, p->expr_index.n + 1))
    return aoth_no_memory(p, "a shape expression", sizeof *row);
  AOT_TRY(aoth_edit_begin(p));
  *out = AOT_DIM_SYM + p->exprs.n;
  p->exprs.at[p->exprs.n] = *row;
  kit_map_add(&p->expr_index, expr_hash(&row->info), p->exprs.n++);
  aoth_edit_record(p, EDIT_EXPR_CREATE, p->exprs.n - 1, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

void aoth_expr_forget(aot_prog_t *p) {
  uint32_t row = --p->exprs.n;
  AOT_ASSERT(row != NONE);
  if (p->unbacked.n > row) p->unbacked.n = row;
  kit_map_remove(&p->expr_index, expr_hash(&p->exprs.at[row].info), row);
}

aot_status_t aoth_row_make(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  uint64_t size = 1 + (uint64_t)tree_size(p, a) + tree_size(p, b) + tree_size(p, c);
  aoth_interval_t r = bounds(p, op, a, b, c);
  aoth_expr_row_t row = {
      .info = {.op = op, .a = a, .b = b, .c = c},
      .lo = r.lo,
      .hi = r.hi,
      .tree_size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
  };
  if (!sn_expr_apply(op, hint_of(p, a), hint_of(p, b), hint_of(p, c), &row.hint)) row.hint = 0;
  return aoth_row_add(p, &row, out);
}

/* The row (op, a, b, c), whose operands are in normal form and in order. create 0: AOT_E_NOT_FOUND, silently, where it
 * would have to be made. */
aot_status_t aoth_row_find_or_make(aot_prog_t *p, int create, int32_t op, int64_t a, int64_t b, int64_t c,
                                   int64_t *out) {
  const aoth_interval_t r = bounds(p, op, a, b, c);
  if (r.lo == r.hi && is_const(r.lo) && r.lo != INT64_MIN && r.lo != INT64_MAX) {
    *out = r.lo;
    return AOT_OK;
  }
  uint32_t row = find_row(p, op, a, b, c);
  if (row == NONE && commutes(op)) row = find_row(p, op, b, a, c);
  if (row == NONE) return create ? aoth_row_make(p, op, a, b, c, out) : AOT_E_NOT_FOUND;
  *out = AOT_DIM_SYM + row;
  return AOT_OK;
}

/* Structural order, the same in every program: by size (numbers, symbols, trees), then by operator and operands. Equal
 * terms are one row, so that one path down leads to the first difference; where that lies too deep, the older row
 * comes first. */
int aoth_dims_compare(const aot_prog_t *p, int64_t x, int64_t y) {
  for (int depth = 0; x != y && depth < DEEPEST_DIFFERENCE; depth++) {
    if (tree_size(p, x) != tree_size(p, y)) return tree_size(p, x) < tree_size(p, y) ? -1 : 1;
    if (is_const(x)) return x < y ? -1 : 1;
    const aot_expr_info_t *e = &row_of(p, x)->info, *f = &row_of(p, y)->info;
    if (e->op != f->op) return e->op < f->op ? -1 : 1;
    if (e->op == AOT_EXPR_SYMBOL) return e->a < f->a ? -1 : 1;
    if (e->a != f->a) {
      x = e->a;
      y = f->a;
    } else if (e->b != f->b) {
      x = e->b;
      y = f->b;
    } else {
      x = e->c;
      y = f->c;
    }
  }
  return (x > y) - (x < y);
}

typedef aoth_terms_t terms_t;

static uint32_t place_of(const aot_prog_t *p, const terms_t *l, int64_t base) {
  uint32_t i = l->n;
  while (i > 0 && aoth_dims_compare(p, l->base[i - 1], base) > 0) i--;
  return i;
}

static int insert_term(const aot_prog_t *p, terms_t *l, int64_t base, int64_t factor) {
  const uint32_t at = place_of(p, l, base);
  AOT_ASSERT(!is_const(base));
  if (l->n == AOTH_MOST_TERMS) return 0;
  for (uint32_t i = l->n++; i > at; i--) {
    l->base[i] = l->base[i - 1];
    l->factor[i] = l->factor[i - 1];
  }
  l->base[at] = base;
  l->factor[at] = factor;
  return 1;
}

static int add_term(const aot_prog_t *p, terms_t *l, int64_t base, int64_t factor) {
  const uint32_t at = place_of(p, l, base);
  if (at == 0 || l->base[at - 1] != base) return insert_term(p, l, base, factor);
  return !__builtin_add_overflow(l->factor[at - 1], factor, &l->factor[at - 1]);
}

/* A symbol of a single value counts as its number. */
static int is_known(const aot_prog_t *p, int64_t d, int64_t *out) {
  const aoth_interval_t r = aoth_dim_range(p, d);
  *out = r.lo;
  return r.lo == r.hi;
}

typedef struct work_item { /* what is left to be decomposed */
  uint32_t n;
  int64_t at[AOTH_MOST_TERMS], factor[AOTH_MOST_TERMS];
} work_item_t;

static int push(work_item_t *w, int64_t d, int64_t factor) {
  if (w->n == AOTH_MOST_TERMS) return 0;
  w->at[w->n] = d;
  w->factor[w->n++] = factor;
  return 1;
}

/* Adds d * factor to the sum. 0: too many terms, or a number too large. */
int aoth_terms_add(const aot_prog_t *p, int64_t d, int64_t factor, terms_t *l) {
  work_item_t w = {.n = 1, .at = {d}, .factor = {factor}};
  while (w.n > 0) {
    int64_t k = w.factor[--w.n], number;
    d = w.at[w.n];
    if (is_known(p, d, &number)) {
      if (__builtin_mul_overflow(number, k, &number) || __builtin_add_overflow(l->number, number, &l->number)) return 0;
      continue;
    }
    const aot_expr_info_t *e = &row_of(p, d)->info;
    if (e->op == AOT_EXPR_ADD) {
      if (!push(&w, e->b, k) || !push(&w, e->a, k)) return 0;
    } else if (e->op == AOT_EXPR_MUL && is_const(e->b)) {
      if (__builtin_mul_overflow(k, e->b, &k) || !push(&w, e->a, k)) return 0;
    } else if (!add_term(p, l, d, k)) {
      return 0;
    }
  }
  return 1;
}

/* Multiplies the product by d. */
int aoth_terms_multiply(const aot_prog_t *p, int64_t d, terms_t *l) {
  work_item_t w = {.n = 1, .at = {d}};
  while (w.n > 0) {
    int64_t number;
    d = w.at[--w.n];
    if (is_known(p, d, &number)) {
      if (__builtin_mul_overflow(l->number, number, &l->number)) return 0;
      continue;
    }
    const aot_expr_info_t *e = &row_of(p, d)->info;
    if (e->op == AOT_EXPR_MUL) {
      if (!push(&w, e->b, 0) || !push(&w, e->a, 0)) return 0;
    } else if (!insert_term(p, l, d, 1)) {
      return 0;
    }
  }
  return 1;
}

aot_status_t aoth_terms_sum(aot_prog_t *p, int create, const terms_t *l, int64_t *out) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < l->n; i++) {
    int64_t term = l->base[i];
    AOT_ASSERT(i == 0 || aoth_dims_compare(p, l->base[i - 1], term) < 0);
    if (l->factor[i] == 0) continue;
    if (l->factor[i] != 1) AOT_TRY(aoth_row_find_or_make(p, create, AOT_EXPR_MUL, term, l->factor[i], 0, &term));
    if (sum == 0) sum = term;
    else AOT_TRY(aoth_row_find_or_make(p, create, AOT_EXPR_ADD, sum, term, 0, &sum));
  }
  *out = sum == 0 ? l->number : sum;
  return sum == 0 || l->number == 0 ? AOT_OK : aoth_row_find_or_make(p, create, AOT_EXPR_ADD, sum, l->number, 0, out);
}

aot_status_t aoth_terms_product(aot_prog_t *p, int create, const terms_t *l, int64_t *out) {
  terms_t sum = {0};
  int64_t product = l->n && l->number ? l->base[0] : l->number;
  if (l->n == 1 && is_op(p, product, AOT_EXPR_ADD) && aoth_terms_add(p, product, l->number, &sum))
    return aoth_terms_sum(p, create, &sum, out);
  for (uint32_t i = 1; i < l->n && l->number; i++)
    AOT_TRY(aoth_row_find_or_make(p, create, AOT_EXPR_MUL, product, l->base[i], 0, &product));
  *out = product;
  return l->n == 0 || l->number == 0 || l->number == 1
             ? AOT_OK
             : aoth_row_find_or_make(p, create, AOT_EXPR_MUL, product, l->number, 0, out);
}

/* Takes the factors of b out of those of a; 0: a is no multiple of b. */
int aoth_terms_divide(terms_t *a, const terms_t *b) {
  if (b->number == 0 || (a->number == INT64_MIN && b->number == -1) || a->number % b->number != 0) return 0;
  a->number /= b->number;
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t at = 0;
    while (at < a->n && a->base[at] != b->base[i]) at++;
    if (at == a->n) return 0;
    for (a->n--; at < a->n; at++) a->base[at] = a->base[at + 1];
  }
  return 1;
}

aoth_interval_t aoth_terms_range(const aot_prog_t *p, const terms_t *l) {
  aoth_interval_t r = {l->number, l->number};
  for (uint32_t i = 0; i < l->n; i++) {
    const int64_t k = l->factor[i], size = k < 0 ? -k : k;
    if (k == 0) continue;
    if (k == INT64_MIN) return any;
    const aoth_interval_t term = aoth_interval_mul(aoth_dim_range(p, l->base[i]), (aoth_interval_t){size, size});
    r = aoth_interval_add(r, k < 0 ? aoth_interval_negate(term) : term);
  }
  return r;
}
