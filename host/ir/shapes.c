/* The shape environment: symbols and expressions over them.
 *
 * Expressions are hash-consed: an expression is a row (operator, children), children are numbers or older rows, and
 * aoth_edit_dim_make answers the same dimension for equal ones, so that equal shapes are equal numbers everywhere. A
 * new one is first brought to normal form (`fold`), and folded to a number when interval bounds, kept in every row,
 * leave no choice.
 *
 *     sum      ((x*k + y*m) + ..) + c     terms in structural order, each once; subtraction is a factor of -1
 *     product  ((x * y) * ..) * k         factors in structural order, powers written out; a number times a sum is a
 *                                         sum
 *     quotient of what the divisor divides: without the division; max, min and comparisons: decided where the ranges of both
 *     operands or of their difference decide: max(x + 1, x) is x + 1
 *
 * Products of sums are not multiplied out: it is no full polynomial algebra.
 * Invariant: the normal form of a row is itself; printing and parsing rows therefore gives the same rows.
 * Division and modulo round towards minus infinity (Python). Cost: O(1) a call, amortised. */
#include <aot/inline.h>
#include <ir/intervals.h>
#include <ir/program_store.h>
#include <joint/snap_expr.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

int aoth_dim_is_valid(const aot_prog_t *p, int64_t dim) {
  return !AOT_DIM_IS_SYM(dim) || (dim != AOT_DIM_SYM && AOT_DIM_EXPR(dim) < p->exprs.n);
}

#define DEEPEST_DIFFERENCE 64
#define SMALL_TREE 64 /* expressions up to this size are evaluated on a fixed stack */

static int is_const(int64_t d) { return !AOT_DIM_IS_SYM(d); }

static const expr_row_t *row_of(const aot_prog_t *p, int64_t d) { return &p->exprs.at[AOT_DIM_EXPR(d)]; }

static int is_op(const aot_prog_t *p, int64_t d, int32_t op) { return !is_const(d) && row_of(p, d)->info.op == op; }

static unsigned arity(int32_t op) { return op == AOT_EXPR_SYMBOL ? 0 : op == AOT_EXPR_WHERE ? 3 : 2; }

static int commutes(int32_t op) {
  return op == AOT_EXPR_ADD || op == AOT_EXPR_MUL || op == AOT_EXPR_MAX || op == AOT_EXPR_MIN || op == AOT_EXPR_EQ;
}

/* ---- intervals ---- */

static aoth_interval_t range_of(const aot_prog_t *p, int64_t d) {
  aoth_interval_t r = {d, d};
  if (!is_const(d)) {
    r.lo = row_of(p, d)->lo;
    r.hi = row_of(p, d)->hi;
  }
  return r;
}

static aoth_interval_t bounds(const aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c) {
  return aoth_interval_of(op, range_of(p, a), range_of(p, b), range_of(p, c));
}

/* ---- rows ---- */
static uint32_t expr_hash(const aot_expr_info_t *e) {
  int64_t words[4] = {e->op, e->a, e->b, e->c};
  return (uint32_t)XXH3_64bits(words, sizeof words);
}

static uint32_t expr_row_hash(const aot_prog_t *p, uint32_t row) { return expr_hash(&p->exprs.at[row].info); }

static int expr_same(const aot_prog_t *p, uint32_t row, const void *key) {
  const aot_expr_info_t *a = &p->exprs.at[row].info, *b = key;
  return a->op == b->op && a->a == b->a && a->b == b->b && a->c == b->c;
}

static uint32_t find_row(const aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c) {
  aot_expr_info_t key = {.op = op, .a = a, .b = b, .c = c};
  return aoth_index_find(p, &p->expr_index, expr_hash(&key), expr_same, &key);
}

static uint32_t tree_size(const aot_prog_t *p, int64_t d) { return is_const(d) ? 0 : row_of(p, d)->tree_size; }

static int64_t hint_of(const aot_prog_t *p, int64_t d) { return is_const(d) ? d : row_of(p, d)->hint; }

static aot_status_t add_row(aot_prog_t *p, const expr_row_t *row, int64_t *out) {
  if (!ROWS_ROOM(p->exprs, 1) || !aoth_index_room(&p->expr_index, p, expr_row_hash))
    return aoth_no_memory(p, "a shape expression", sizeof *row);
  AOT_TRY(aoth_edit_begin(p));
  *out = AOT_DIM_SYM + p->exprs.n;
  p->exprs.at[p->exprs.n] = *row;
  aoth_index_put(&p->expr_index, expr_hash(&row->info), p->exprs.n++);
  aoth_edit_record(p, EDIT_EXPR_CREATE, p->exprs.n - 1, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

void aoth_expr_forget(aot_prog_t *p) {
  uint32_t row = --p->exprs.n;
  aoth_index_drop(&p->expr_index, expr_hash(&p->exprs.at[row].info), row);
}

static aot_status_t make_row(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  uint64_t size = 1 + (uint64_t)tree_size(p, a) + tree_size(p, b) + tree_size(p, c);
  aoth_interval_t r = bounds(p, op, a, b, c);
  expr_row_t row = {
      .info = {.op = op, .a = a, .b = b, .c = c},
      .lo = r.lo,
      .hi = r.hi,
      .tree_size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
  };
  if (!sn_expr_apply(op, hint_of(p, a), hint_of(p, b), hint_of(p, c), &row.hint)) row.hint = 0;
  return add_row(p, &row, out);
}

/* ---- normal form ---- */
typedef struct term { /* op, a, b, c under rewriting; done: `value` is the answer */
  int32_t op;
  int done;
  int64_t a, b, c, value;
} term_t;

static void done(term_t *t, int64_t value) {
  t->done = 1;
  t->value = value;
}

/* The row (op, a, b, c), whose operands are in normal form and in order. create 0: AOT_E_NOT_FOUND, silently, where it
 * would have to be made. */
static aot_status_t normal_row(aot_prog_t *p, int create, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  const aoth_interval_t r = bounds(p, op, a, b, c);
  if (r.lo == r.hi && is_const(r.lo) && r.lo != INT64_MIN && r.lo != INT64_MAX) {
    *out = r.lo;
    return AOT_OK;
  }
  uint32_t row = find_row(p, op, a, b, c);
  if (row == NONE && commutes(op)) row = find_row(p, op, b, a, c);
  if (row == NONE) return create ? make_row(p, op, a, b, c, out) : AOT_E_NOT_FOUND;
  *out = AOT_DIM_SYM + row;
  return AOT_OK;
}

/* Structural order, the same in every program: by size (numbers, symbols, trees), then by operator and operands. Equal
 * terms are one row, so that one path down leads to the first difference; where that lies too deep, the older row
 * comes first. */
static int compare_dims(const aot_prog_t *p, int64_t x, int64_t y) {
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

#define MOST_TERMS 32 /* longer sums and products stay as they were written */
#define MOST_POWER 8  /* larger ones are not written out */

typedef struct terms { /* of a sum: base * factor; of a product: each base once or more */
  uint32_t n;
  int64_t base[MOST_TERMS], factor[MOST_TERMS];
  int64_t number; /* added, multiplied */
} terms_t;

static uint32_t place_of(const aot_prog_t *p, const terms_t *l, int64_t base) {
  uint32_t i = l->n;
  while (i > 0 && compare_dims(p, l->base[i - 1], base) > 0) i--;
  return i;
}

static int insert_term(const aot_prog_t *p, terms_t *l, int64_t base, int64_t factor) {
  const uint32_t at = place_of(p, l, base);
  if (l->n == MOST_TERMS) return 0;
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
  const aoth_interval_t r = range_of(p, d);
  *out = r.lo;
  return r.lo == r.hi;
}

typedef struct pending { /* what is left to be taken apart */
  uint32_t n;
  int64_t at[MOST_TERMS], factor[MOST_TERMS];
} pending_t;

static int push(pending_t *w, int64_t d, int64_t factor) {
  if (w->n == MOST_TERMS) return 0;
  w->at[w->n] = d;
  w->factor[w->n++] = factor;
  return 1;
}

/* Adds d * factor to the sum. 0: too many terms, or a number too large. */
static int gather_sum(const aot_prog_t *p, int64_t d, int64_t factor, terms_t *l) {
  pending_t w = {.n = 1, .at = {d}, .factor = {factor}};
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
static int gather_product(const aot_prog_t *p, int64_t d, terms_t *l) {
  pending_t w = {.n = 1, .at = {d}};
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

static aot_status_t put_sum(aot_prog_t *p, int create, const terms_t *l, int64_t *out) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < l->n; i++) {
    int64_t term = l->base[i];
    if (l->factor[i] == 0) continue;
    if (l->factor[i] != 1) AOT_TRY(normal_row(p, create, AOT_EXPR_MUL, term, l->factor[i], 0, &term));
    if (sum == 0) sum = term;
    else AOT_TRY(normal_row(p, create, AOT_EXPR_ADD, sum, term, 0, &sum));
  }
  *out = sum == 0 ? l->number : sum;
  return sum == 0 || l->number == 0 ? AOT_OK : normal_row(p, create, AOT_EXPR_ADD, sum, l->number, 0, out);
}

static aot_status_t put_product(aot_prog_t *p, int create, const terms_t *l, int64_t *out) {
  terms_t sum = {0};
  int64_t product = l->n && l->number ? l->base[0] : l->number;
  if (l->n == 1 && is_op(p, product, AOT_EXPR_ADD) && gather_sum(p, product, l->number, &sum))
    return put_sum(p, create, &sum, out);
  for (uint32_t i = 1; i < l->n && l->number; i++)
    AOT_TRY(normal_row(p, create, AOT_EXPR_MUL, product, l->base[i], 0, &product));
  *out = product;
  return l->n == 0 || l->number == 0 || l->number == 1
             ? AOT_OK
             : normal_row(p, create, AOT_EXPR_MUL, product, l->number, 0, out);
}

static aot_status_t fold_sum(aot_prog_t *p, int create, term_t *t) {
  terms_t l = {0};
  if (!gather_sum(p, t->a, 1, &l) || !gather_sum(p, t->b, t->op == AOT_EXPR_SUB ? -1 : 1, &l)) return AOT_OK;
  t->done = 1;
  return put_sum(p, create, &l, &t->value);
}

static aot_status_t fold_product(aot_prog_t *p, int create, term_t *t) {
  terms_t l = {.number = 1};
  if (!gather_product(p, t->a, &l) || !gather_product(p, t->b, &l)) return AOT_OK;
  t->done = 1;
  return put_product(p, create, &l, &t->value);
}

static aot_status_t fold_power(aot_prog_t *p, int create, term_t *t) {
  terms_t l = {.number = 1};
  if (!is_const(t->b) || t->b < 0 || t->b > MOST_POWER) return AOT_OK;
  for (int64_t i = 0; i < t->b; i++)
    if (!gather_product(p, t->a, &l)) return AOT_OK;
  t->done = 1;
  return put_product(p, create, &l, &t->value);
}

/* Takes the factors of b out of those of a; 0: a is no multiple of b. */
static int divide(terms_t *a, const terms_t *b) {
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

/* (x*m*k + m*c + r) // m is x*k + c, its remainder r: the terms that m > 0 divides. 0: some it does not. */
static int divide_sum(terms_t *l, int64_t m, int64_t *out_rest) {
  for (uint32_t i = 0; i < l->n; i++) {
    if (l->factor[i] % m != 0) return 0;
    l->factor[i] /= m;
  }
  const int64_t whole = sn_floor_div(l->number, m);
  *out_rest = l->number - whole * m;
  l->number = whole;
  return 1;
}

static aot_status_t fold_div(aot_prog_t *p, int create, term_t *t) {
  terms_t x = {.number = 1}, y = {.number = 1}, sum = {0};
  const aoth_interval_t a = range_of(p, t->a), b = range_of(p, t->b);
  const int is_mod = t->op == AOT_EXPR_MOD;
  int64_t rest;
  if (is_mod && a.lo >= 0 && a.hi < b.lo) return done(t, t->a), AOT_OK;
  if (b.lo < 1) return AOT_OK;
  if (gather_product(p, t->a, &x) && gather_product(p, t->b, &y) && divide(&x, &y)) {
    t->done = 1;
    t->value = 0;
    return is_mod ? AOT_OK : put_product(p, create, &x, &t->value);
  }
  if (!is_const(t->b) || !gather_sum(p, t->a, 1, &sum) || !divide_sum(&sum, t->b, &rest)) return AOT_OK;
  t->done = 1;
  t->value = rest;
  return is_mod ? AOT_OK : put_sum(p, create, &sum, &t->value);
}

static const aoth_interval_t any = {INT64_MIN, INT64_MAX};

/* Bounds of a - b, by the terms that are left of it: s + 5 is never below s. */
static aoth_interval_t difference(const aot_prog_t *p, int64_t a, int64_t b) {
  terms_t l = {0};
  if (!gather_sum(p, a, 1, &l) || !gather_sum(p, b, -1, &l)) return any;
  aoth_interval_t r = {l.number, l.number};
  for (uint32_t i = 0; i < l.n; i++) {
    const int64_t k = l.factor[i], size = k < 0 ? -k : k;
    if (k == 0) continue;
    if (k == INT64_MIN) return any;
    const aoth_interval_t term = aoth_interval_mul(range_of(p, l.base[i]), (aoth_interval_t){size, size});
    r = aoth_interval_add(r, k < 0 ? aoth_interval_negate(term) : term);
  }
  return r;
}

static void fold_choice(const aot_prog_t *p, term_t *t) {
  if (t->op == AOT_EXPR_WHERE) {
    if (is_const(t->a)) done(t, t->a ? t->b : t->c);
    else if (t->b == t->c) done(t, t->b);
    return;
  }
  const aoth_interval_t a = range_of(p, t->a), b = range_of(p, t->b), between = difference(p, t->a, t->b);
  const int a_is_less = a.hi <= b.lo || between.hi <= 0, b_is_less = b.hi <= a.lo || between.lo >= 0;
  if (a_is_less) done(t, t->op == AOT_EXPR_MAX ? t->b : t->a);
  else if (b_is_less) done(t, t->op == AOT_EXPR_MAX ? t->a : t->b);
}

static void fold_comparison(const aot_prog_t *p, term_t *t) {
  const int known = aoth_interval_decide(t->op, difference(p, t->a, t->b), (aoth_interval_t){0, 0});
  if (known >= 0) done(t, known);
}

static aot_status_t fold(aot_prog_t *p, int create, term_t *t) {
  if (commutes(t->op) && is_const(t->a)) { /* constants stand on the right */
    int64_t a = t->a;
    t->a = t->b;
    t->b = a;
  }
  switch (t->op) {
    case AOT_EXPR_ADD:
    case AOT_EXPR_SUB: return fold_sum(p, create, t);
    case AOT_EXPR_MUL: return fold_product(p, create, t);
    case AOT_EXPR_FLOORDIV:
    case AOT_EXPR_MOD: return fold_div(p, create, t);
    case AOT_EXPR_MAX:
    case AOT_EXPR_MIN:
    case AOT_EXPR_WHERE: fold_choice(p, t); return AOT_OK;
    case AOT_EXPR_EQ:
    case AOT_EXPR_LE:
    case AOT_EXPR_LT: fold_comparison(p, t); return AOT_OK;
    case AOT_EXPR_POW: return fold_power(p, create, t);
    default: return AOT_OK;
  }
}

static aot_status_t no_such_number(aot_prog_t *p, int create, int32_t op, int64_t a, int64_t b) {
  if (!create) return AOT_E_NOT_FOUND;
  return aoth_complain(p, AOT_E_RANGE, "ir.bad-expression", "%s of %lld and %lld is no dimension",
                       (op == AOT_EXPR_FLOORDIV || op == AOT_EXPR_MOD) && b == 0 ? "division by zero:" : "the result",
                       (long long)a, (long long)b);
}

/* The dimension (op, a, b, c) in normal form. create 0: as in normal_row. */
static aot_status_t make(aot_prog_t *p, int create, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  term_t t = {.op = op, .a = a, .b = b, .c = c};
  if (is_const(a) && is_const(b) && is_const(c)) {
    if (!sn_expr_apply(op, a, b, c, out) || !is_const(*out)) return no_such_number(p, create, op, a, b);
    return AOT_OK;
  }
  if ((op == AOT_EXPR_FLOORDIV || op == AOT_EXPR_MOD) && b == 0) return no_such_number(p, create, op, a, b);
  AOT_TRY(fold(p, create, &t));
  if (t.done) {
    *out = t.value;
    return AOT_OK;
  }
  return normal_row(p, create, t.op, t.a, t.b, t.c, out);
}

int aoth_dim_find(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  return make(p, 0, op, a, b, c, out) == AOT_OK;
}

aot_status_t aoth_edit_dim_make(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out_dim) {
  if (op < AOT_EXPR_ADD || op > AOT_EXPR_SUB)
    return aoth_complain(p, AOT_E_RANGE, "ir.bad-expression", "there is no shape operation %d", (int)op);
  if (arity(op) < 3) c = 0;
  if (!aoth_dim_is_valid(p, a) || !aoth_dim_is_valid(p, b) || !aoth_dim_is_valid(p, c))
    return aoth_complain(p, AOT_E_RANGE, "ir.bad-id",
                         "an operand of a shape expression does not exist; %u expressions do", p->exprs.n);
  return make(p, 1, op, a, b, c, out_dim);
}

/* That of a symbol is made with its symbol. */
aot_status_t aoth_expr_make_again(aot_prog_t *p, const aot_expr_info_t *e) {
  int64_t ignored;
  if (e->op == AOT_EXPR_SYMBOL) return AOT_OK;
  if (!aoth_dim_is_valid(p, e->a) || !aoth_dim_is_valid(p, e->b) || !aoth_dim_is_valid(p, e->c))
    return aoth_complain(p, AOT_E_RANGE, "ir.bad-id", "an operand of a shape expression does not exist");
  return make_row(p, e->op, e->a, e->b, e->c, &ignored);
}

aot_status_t aoth_edit_symbol_create(aot_prog_t *p, const aot_symbol_info_t *symbol, int64_t *out_dim) {
  aot_symbol_info_t s;
  if (aot_import(&s, sizeof s, symbol) != AOT_OK)
    return aoth_complain(p, AOT_E_TOO_NEW, "ir.too-new", "a symbol is made for a newer host");
  if (s.min > s.max)
    return aoth_complain(p, AOT_E_RANGE, "ir.bad-symbol", "symbol %.*s has the empty range [%lld, %lld]",
                         STR_ARGS(s.name), (long long)s.min, (long long)s.max);
  s.struct_size = (uint32_t)sizeof s;
  s.reserved = 0;
  s.name = aoth_store_text(p, s.name);
  if ((s.name.size && !s.name.data) || !ROWS_ROOM(p->symbols, 1)) return aoth_no_memory(p, "a symbol", sizeof s);
  AOT_TRY(aoth_edit_begin(p));
  p->symbols.at[p->symbols.n++] = s;
  aoth_edit_record(p, EDIT_SYMBOL_CREATE, p->symbols.n - 1, 0, 0, 0, 0, NULL);
  expr_row_t row = {
      .info = {.op = AOT_EXPR_SYMBOL, .a = (int64_t)p->symbols.n - 1},
      .lo = s.min,
      .hi = s.max,
      .tree_size = 1,
      .hint = s.hint,
  };
  return add_row(p, &row, out_dim);
}

/* ---- evaluation ---- */
int64_t aoth_graph_dim_hint(aot_prog_t *p, int64_t dim) { return aoth_dim_is_valid(p, dim) ? hint_of(p, dim) : 0; }

uint32_t aoth_exprs_count(aot_prog_t *p) { return p->exprs.n; }

static int64_t value_of(const int64_t *values, int64_t d) { return is_const(d) ? d : values[AOT_DIM_EXPR(d)]; }

static void eval_first(const aot_prog_t *p, uint32_t n, const int64_t *symbols, uint32_t n_symbols, int64_t *out) {
  for (uint32_t i = 0; i < n; i++) { /* children are older rows */
    const aot_expr_info_t *e = &p->exprs.at[i].info;
    out[i] = 0;
    if (e->op == AOT_EXPR_SYMBOL) out[i] = (uint64_t)e->a < n_symbols ? symbols[e->a] : p->exprs.at[i].hint;
    else if (!sn_expr_apply(e->op, value_of(out, e->a), value_of(out, e->b), value_of(out, e->c), &out[i])) out[i] = 0;
  }
}

void aoth_exprs_eval(aot_prog_t *p, const int64_t *symbols, uint32_t n_symbols, int64_t *out) {
  eval_first(p, p->exprs.n, symbols, n_symbols, out);
}

typedef struct frame {
  uint32_t row;
  unsigned next; /* child to be evaluated */
  int64_t values[3];
} frame_t;

/* Post-order on a stack no deeper than the tree is large. */
static int64_t eval_small(const aot_prog_t *p, uint32_t row, const int64_t *symbols, uint32_t n_symbols) {
  frame_t stack[SMALL_TREE + 1];
  unsigned depth = 0;
  int64_t result = 0;
  memset(&stack[0], 0, sizeof stack[0]);
  stack[0].row = row;
  for (;;) {
    frame_t *f = &stack[depth];
    const aot_expr_info_t *e = &p->exprs.at[f->row].info;
    const int64_t children[3] = {e->a, e->b, e->c};
    if (f->next < arity(e->op) && !is_const(children[f->next])) {
      frame_t *child = &stack[++depth];
      memset(child, 0, sizeof *child);
      child->row = AOT_DIM_EXPR(children[f->next]);
      continue;
    }
    if (f->next < arity(e->op)) {
      f->values[f->next] = children[f->next];
      f->next++;
      continue;
    }
    result = 0;
    if (e->op == AOT_EXPR_SYMBOL) result = (uint64_t)e->a < n_symbols ? symbols[e->a] : p->exprs.at[f->row].hint;
    else if (!sn_expr_apply(e->op, f->values[0], f->values[1], f->values[2], &result)) result = 0;
    if (depth-- == 0) return result;
    stack[depth].values[stack[depth].next++] = result;
  }
}

int64_t aoth_dim_eval(aot_prog_t *p, int64_t dim, const int64_t *symbols, uint32_t n_symbols) {
  if (is_const(dim)) return dim;
  if (!aoth_dim_is_valid(p, dim)) return 0;
  uint32_t row = AOT_DIM_EXPR(dim);
  if (p->exprs.at[row].tree_size <= SMALL_TREE) return eval_small(p, row, symbols, n_symbols);
  int64_t *values = malloc(((size_t)row + 1) * sizeof *values);
  if (!values) {
    aoth_no_memory(p, "the value of a dimension", ((uint64_t)row + 1) * sizeof *values);
    return 0;
  }
  eval_first(p, row + 1, symbols, n_symbols, values);
  int64_t result = values[row];
  free(values);
  return result;
}
