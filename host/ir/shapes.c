/* The shape environment: symbols and expressions over them.
 *
 * Expressions are hash-consed: an expression is a row (operator, children), children are numbers or older rows, and
 * aoth_edit_dim_make answers the same dimension for equal ones, so that equal shapes are equal numbers everywhere. A
 * new one is first brought to normal form (`fold`), and folded to a number when interval bounds, stored in every row,
 * leave no choice.
 *
 *     sum      ((x*k + y*m) + ..) + c     terms in structural order, each once; subtraction is a factor of -1
 *     product  ((x * y) * ..) * k         factors in structural order, powers written out; a number times a sum is a
 *                                         sum
 *     quotient of what the divisor divides: without the division; max, min and comparisons: decided where the ranges of
 *     both operands or of their difference decide: max(x + 1, x) is x + 1
 *
 * Products of sums are not multiplied out: it is no full polynomial algebra. What guards make equal to a simpler sum is
 * that sum (equalities.c); guards are declared before everything else is made, so that all of it is.
 * Invariant: the normal form of a row is itself; printing and parsing rows therefore gives the same rows.
 * Division and modulo round towards minus infinity (Python). Cost: O(1) a call, amortised. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/dim_terms.h>
#include <kit/graph/snap_expr.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

int aoth_dim_is_valid(const aot_prog_t *p, int64_t dim) {
  return !AOT_DIM_IS_SYM(dim) || (dim != AOT_DIM_SYM && AOT_DIM_EXPR(dim) < p->exprs.n);
}

#define SMALL_TREE 64 /* expressions up to this size are evaluated on a fixed stack */

static unsigned arity(int32_t op) { return op == AOT_EXPR_SYMBOL ? 0 : op == AOT_EXPR_WHERE ? 3 : 2; }

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

#define MOST_POWER 8 /* larger ones are not written out */

typedef aoth_terms_t terms_t;

static aot_status_t fold_sum(aot_prog_t *p, int create, term_t *t) {
  terms_t l = {0};
  if (!aoth_terms_add(p, t->a, 1, &l) || !aoth_terms_add(p, t->b, t->op == AOT_EXPR_SUB ? -1 : 1, &l)) return AOT_OK;
  t->done = 1;
  return aoth_terms_sum(p, create, &l, &t->value);
}

static aot_status_t fold_product(aot_prog_t *p, int create, term_t *t) {
  terms_t l = {.number = 1};
  if (!aoth_terms_multiply(p, t->a, &l) || !aoth_terms_multiply(p, t->b, &l)) return AOT_OK;
  t->done = 1;
  return aoth_terms_product(p, create, &l, &t->value);
}

static aot_status_t fold_power(aot_prog_t *p, int create, term_t *t) {
  terms_t l = {.number = 1};
  if (!is_const(t->b) || t->b < 0 || t->b > MOST_POWER) return AOT_OK;
  for (int64_t i = 0; i < t->b; i++)
    if (!aoth_terms_multiply(p, t->a, &l)) return AOT_OK;
  t->done = 1;
  return aoth_terms_product(p, create, &l, &t->value);
}

/* (x*m*k + m*c + r) // m is x*k + c, its remainder r: the terms that m > 0 divides. 0: some it does not. */
static int divide_sum(terms_t *l, int64_t m, int64_t *out_rest) {
  for (uint32_t i = 0; i < l->n; i++) {
    if (l->factor[i] % m != 0) return 0;
    l->factor[i] /= m;
  }
  AOT_ASSERT(m > 0);
  const int64_t whole = sn_floor_div(l->number, m);
  *out_rest = l->number - whole * m;
  AOT_ASSERT(*out_rest >= 0 && *out_rest < m);
  l->number = whole;
  return 1;
}

static aot_status_t fold_div(aot_prog_t *p, int create, term_t *t) {
  terms_t x = {.number = 1}, y = {.number = 1}, sum = {0};
  const aoth_interval_t a = aoth_dim_range(p, t->a), b = aoth_dim_range(p, t->b);
  const int is_mod = t->op == AOT_EXPR_MOD;
  int64_t rest;
  if (is_mod && a.lo >= 0 && a.hi < b.lo) return done(t, t->a), AOT_OK;
  if (b.lo < 1) return AOT_OK;
  if (aoth_terms_multiply(p, t->a, &x) && aoth_terms_multiply(p, t->b, &y) && aoth_terms_divide(&x, &y)) {
    t->done = 1;
    t->value = 0;
    return is_mod ? AOT_OK : aoth_terms_product(p, create, &x, &t->value);
  }
  if (!is_const(t->b) || !aoth_terms_add(p, t->a, 1, &sum) || !divide_sum(&sum, t->b, &rest)) return AOT_OK;
  t->done = 1;
  t->value = rest;
  return is_mod ? AOT_OK : aoth_terms_sum(p, create, &sum, &t->value);
}

static const aoth_interval_t any = {INT64_MIN, INT64_MAX};

/* Bounds of a - b, by the terms that are left of it: s + 5 is never below s. */
static aoth_interval_t difference(const aot_prog_t *p, int64_t a, int64_t b) {
  terms_t l = {0};
  if (!aoth_terms_add(p, a, 1, &l) || !aoth_terms_add(p, b, -1, &l)) return any;
  return aoth_facts_range(p, &l);
}

static void fold_choice(const aot_prog_t *p, term_t *t) {
  if (t->op == AOT_EXPR_WHERE) {
    if (is_const(t->a)) done(t, t->a ? t->b : t->c);
    else if (t->b == t->c) done(t, t->b);
    return;
  }
  const aoth_interval_t a = aoth_dim_range(p, t->a), b = aoth_dim_range(p, t->b), between = difference(p, t->a, t->b);
  const int a_is_less = a.hi <= b.lo || between.hi <= 0, b_is_less = b.hi <= a.lo || between.lo >= 0;
  if (a_is_less) done(t, t->op == AOT_EXPR_MAX ? t->b : t->a);
  else if (b_is_less) done(t, t->op == AOT_EXPR_MAX ? t->a : t->b);
}

static void fold_comparison(const aot_prog_t *p, term_t *t) {
  const int known = aoth_interval_decide(t->op, difference(p, t->a, t->b), (aoth_interval_t){0, 0});
  if (known >= 0) done(t, known);
}

static aot_status_t fold(aot_prog_t *p, int create, term_t *t) {
  if (commutes(t->op) && is_const(t->a)) { /* constants are on the right */
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
  return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-expression", "%s of %lld and %lld is no dimension",
                       (op == AOT_EXPR_FLOORDIV || op == AOT_EXPR_MOD) && b == 0 ? "division by zero:" : "the result",
                       (long long)a, (long long)b);
}

/* In terms of what guards make equal to others. */
static aot_status_t by_guards(aot_prog_t *p, int create, int64_t *out) {
  terms_t l = {0};
  int changed = 0;
  if (!p->facts.n || is_const(*out) || is_op(p, *out, AOT_EXPR_SYMBOL) || !aoth_terms_add(p, *out, 1, &l))
    return AOT_OK;
  AOT_TRY(aoth_facts_rewrite(p, create, &l, &changed));
  return changed ? aoth_terms_sum(p, create, &l, out) : AOT_OK;
}

/* The dimension (op, a, b, c) in normal form. create 0: as in aoth_row_find_or_make. */
static aot_status_t make(aot_prog_t *p, int create, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  term_t t = {.op = op, .a = a, .b = b, .c = c};
  if (is_const(a) && is_const(b) && is_const(c)) {
    if (!sn_expr_apply(op, a, b, c, out) || !is_const(*out)) return no_such_number(p, create, op, a, b);
    return AOT_OK;
  }
  if ((op == AOT_EXPR_FLOORDIV || op == AOT_EXPR_MOD) && b == 0) return no_such_number(p, create, op, a, b);
  AOT_TRY(fold(p, create, &t));
  AOT_ASSERT(!commutes(t.op) || !is_const(t.a)); /* numbers are on the right */
  *out = t.value;
  if (!t.done) AOT_TRY(aoth_row_find_or_make(p, create, t.op, t.a, t.b, t.c, out));
  return by_guards(p, create, out);
}

int aoth_dim_find(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  return make(p, 0, op, a, b, c, out) == AOT_OK;
}

aot_status_t aoth_edit_dim_make(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out_dim) {
  if (op < AOT_EXPR_ADD || op > AOT_EXPR_SUB)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-expression", "there is no shape operation %d", (int)op);
  if (arity(op) < 3) c = 0;
  if (!aoth_dim_is_valid(p, a) || !aoth_dim_is_valid(p, b) || !aoth_dim_is_valid(p, c))
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id",
                         "an operand of a shape expression does not exist; %u expressions do", p->exprs.n);
  return make(p, 1, op, a, b, c, out_dim);
}

/* That of a symbol is made with its symbol. */
aot_status_t aoth_expr_make_again(aot_prog_t *p, const aot_expr_info_t *e) {
  int64_t ignored;
  if (e->op == AOT_EXPR_SYMBOL) return AOT_OK;
  if (!aoth_dim_is_valid(p, e->a) || !aoth_dim_is_valid(p, e->b) || !aoth_dim_is_valid(p, e->c))
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "an operand of a shape expression does not exist");
  return aoth_row_make(p, e->op, e->a, e->b, e->c, &ignored);
}

aot_status_t aoth_edit_symbol_create(aot_prog_t *p, const aot_symbol_info_t *symbol, int64_t *out_dim) {
  aot_symbol_info_t s;
  if (aot_import(&s, sizeof s, symbol) != AOT_OK)
    return aoth_diagnose(p, AOT_E_TOO_NEW, "ir.too-new", "a symbol is made for a newer host");
  if (s.min > s.max)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-symbol", "symbol %.*s has the empty range [%lld, %lld]",
                         STR_ARGS(s.name), (long long)s.min, (long long)s.max);
  s.struct_size = (uint32_t)sizeof s;
  s.reserved = 0;
  s.name = aoth_store_text(p, s.name);
  if ((s.name.size && !s.name.data) || !ROWS_ROOM(p->symbols, 1)) return aoth_no_memory(p, "a symbol", sizeof s);
  AOT_TRY(aoth_edit_begin(p));
  p->symbols.at[p->symbols.n++] = s;
  aoth_edit_record(p, EDIT_SYMBOL_CREATE, p->symbols.n - 1, 0, 0, 0, 0, NULL);
  aoth_expr_row_t row = {
      .info = {.op = AOT_EXPR_SYMBOL, .a = (int64_t)p->symbols.n - 1},
      .lo = s.min,
      .hi = s.max,
      .tree_size = 1,
      .hint = s.hint,
  };
  return aoth_row_add(p, &row, out_dim);
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
      AOT_ASSERT(depth < SMALL_TREE);
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
