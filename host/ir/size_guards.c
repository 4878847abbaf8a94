/* Guards: conditions on sizes under which a program is valid (<aot/ext/size_guards.h>). What follows from them is used
 * by the normal form of expressions (equalities.c). They are declared before leaves and nodes, so that every dimension
 * of a type is made with all guards known, and the text of a program reads back to the same rows. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/dim_terms.h>

#define MOST_CONJUNCTS 32

uint32_t aoth_graph_n_guards(aot_prog_t *p) { return p->guards.n; }

aot_status_t aoth_graph_guard(aot_prog_t *p, uint32_t i, aot_guard_info_t *out) {
  if (i >= p->guards.n) return AOT_E_RANGE;
  aot_export(out, &p->guards.at[i], sizeof p->guards.at[i]);
  return AOT_OK;
}

/* ---- what a condition says ---- */

typedef struct conjuncts { /* what is left of a condition */
  uint32_t n;
  int64_t at[MOST_CONJUNCTS];
} conjuncts_t;

/* The next condition of which all must hold; 0: there is none. min(a, b) of conditions is `a and b`. */
static int next_conjunct(const aot_prog_t *p, conjuncts_t *w, int64_t *out) {
  AOT_ASSERT(w->n <= MOST_CONJUNCTS);
  while (w->n) {
    *out = w->at[--w->n];
    if (is_const(*out)) continue;
    const aot_expr_info_t *e = &row_of(p, *out)->info;
    if (e->op != AOT_EXPR_MIN) return 1;
    if (w->n + 2 > MOST_CONJUNCTS) continue;
    w->at[w->n++] = e->b;
    w->at[w->n++] = e->a;
  }
  return 0;
}

/* 1 - x, as `not x` reads: *out is x. */
static int is_negated(const aot_prog_t *p, int64_t d, int64_t *out) {
  aoth_terms_t l = {0};
  if (!aoth_terms_add(p, d, 1, &l) || l.n != 1 || l.number != 1 || l.factor[0] != -1) return 0;
  *out = l.base[0];
  return 1;
}

/* The condition as a sum that is 0, or not negative; 0: it is of another form. */
static int as_sum(const aot_prog_t *p, int64_t condition, int *out_is_equality, aoth_terms_t *out) {
  int64_t inner;
  const int negated = is_negated(p, condition, &inner);
  const aot_expr_info_t *e = &row_of(p, negated ? inner : condition)->info;
  *out = (aoth_terms_t){0};
  *out_is_equality = e->op == AOT_EXPR_EQ;
  if ((e->op != AOT_EXPR_EQ && e->op != AOT_EXPR_LT && e->op != AOT_EXPR_LE) || (negated && *out_is_equality)) return 0;
  /* a < b: b - a - 1 >= 0; not a < b: a - b >= 0 */
  if ((e->op == AOT_EXPR_LT) != negated && !*out_is_equality) out->number = -1;
  return aoth_terms_add(p, e->a, negated ? 1 : -1, out) && aoth_terms_add(p, e->b, negated ? -1 : 1, out);
}

/* mod(a, k) == 0 for a number k: *out_a and *out_k. */
static int is_divisible(const aot_prog_t *p, const aoth_terms_t *l, int64_t *out_a, int64_t *out_k) {
  if (l->n != 1 || l->number || !is_op(p, l->base[0], AOT_EXPR_MOD)) return 0;
  *out_a = row_of(p, l->base[0])->info.a;
  *out_k = row_of(p, l->base[0])->info.b;
  return is_const(*out_k) && *out_k > 0;
}

/* Room for facts, and the quotients that they need. */
static aot_status_t prepare(aot_prog_t *p, int64_t condition) {
  conjuncts_t w = {.n = 1, .at = {condition}};
  int64_t one, a, k, ignored;
  if (!ROWS_ROOM(p->facts, AOTH_MOST_FACTS))
    return aoth_no_memory(p, "what guards say", AOTH_MOST_FACTS * sizeof *p->facts.at);
  while (next_conjunct(p, &w, &one)) {
    aoth_terms_t l;
    int is_equality;
    if (as_sum(p, one, &is_equality, &l) && is_equality && is_divisible(p, &l, &a, &k))
      AOT_TRY(aoth_edit_dim_make(p, AOT_EXPR_FLOORDIV, a, k, 0, &ignored));
  }
  return AOT_OK;
}

/* The sum that mod(a, k) == 0 adds, by the quotient that was prepared. */
static int quotient_sum(aot_prog_t *p, int64_t a, int64_t k, aoth_terms_t *out) {
  int64_t quotient;
  *out = (aoth_terms_t){0};
  return aoth_dim_find(p, AOT_EXPR_FLOORDIV, a, k, 0, &quotient) && aoth_terms_add(p, quotient, k, out) &&
         aoth_terms_add(p, a, -1, out);
}

/* 0: it contradicts earlier guards. */
static int add_facts(aot_prog_t *p, int64_t condition) {
  conjuncts_t w = {.n = 1, .at = {condition}};
  int64_t one, a, k;
  while (next_conjunct(p, &w, &one)) {
    aoth_terms_t l, quotient;
    int is_equality;
    if (!as_sum(p, one, &is_equality, &l)) continue;
    const int divisible = is_equality && is_divisible(p, &l, &a, &k) && quotient_sum(p, a, k, &quotient);
    if (!aoth_facts_put(p, is_equality, &l) || (divisible && !aoth_facts_put(p, 1, &quotient))) return 0;
  }
  return 1;
}

/* ---- the edit ---- */

static aot_status_t never_holds(aot_prog_t *p, const aot_guard_info_t *g) {
  return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-guard",
                       "no sizes satisfy the guard %.*s: it contradicts the ranges of the symbols, or an earlier guard",
                       STR_ARGS(g->text));
}

aot_status_t aoth_edit_guard_add(aot_prog_t *p, const aot_guard_info_t *guard) {
  aot_guard_info_t g;
  if (aot_import(&g, sizeof g, guard) != AOT_OK)
    return aoth_diagnose(p, AOT_E_TOO_NEW, "ir.too-new", "a guard is made for a newer host");
  g.struct_size = (uint32_t)sizeof g;
  g.reserved = 0;
  if (p->leaves.n > 1 || p->nodes.n > 1)
    return aoth_diagnose(p, AOT_E_PRECONDITION, "ir.late-guard",
                         "guards are declared before the first leaf and the first node");
  if (!aoth_dim_is_valid(p, g.condition))
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "the condition of a guard does not exist; %u expressions do",
                         p->exprs.n);
  if (!AOT_DIM_IS_SYM(g.condition)) return g.condition ? AOT_OK : never_holds(p, &g);
  g.text = aoth_store_text(p, g.text);
  if ((g.text.size && !g.text.data) || !ROWS_ROOM(p->guards, 1)) return aoth_no_memory(p, "a guard", sizeof g);
  AOT_TRY(prepare(p, g.condition));
  AOT_TRY(aoth_edit_begin(p));
  const uint32_t n_facts = p->facts.n;
  if (!add_facts(p, g.condition)) {
    p->facts.n = n_facts;
    return never_holds(p, &g);
  }
  p->guards.at[p->guards.n++] = g;
  aoth_edit_record(p, EDIT_GUARD_ADD, p->guards.n - 1, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

void aoth_guard_forget(aot_prog_t *p) {
  AOT_ASSERT(p->guards.n > 0);
  p->guards.n--;
  while (p->facts.n && p->facts.at[p->facts.n - 1].guard == p->guards.n) p->facts.n--;
  AOT_ASSERT(!p->facts.n || p->facts.at[p->facts.n - 1].guard < p->guards.n); /* facts are in the order of guards */
}
