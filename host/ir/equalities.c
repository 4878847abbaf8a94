/* What guards say of sums: equalities (a sum is 0), by which expressions are rewritten, and inequalities (a sum is not
 * negative), by which bounds are tightened.
 *
 * Equalities are in echelon form (Gauss): each is reduced by those before it, and its last term in structural order,
 * its leader, is replaced by the others wherever it occurs. Because a later equality holds no earlier leader, one pass
 * in order removes all of them. A leader that is a product is replaced in larger products, too, which are then smaller
 * in graded order, so that rewriting ends (Buchberger's reduction, without completion). mod(a, k) == 0 also says
 * (a // k) * k == a. A guard of more terms than a row has room for, or of another form, is only checked at run time.
 * Cost of a reduction: facts * terms, both bounded. */
#include <aot/assert.h>
#include <ir/dim_terms.h>

#define MOST_REWRITES 16

static int64_t gcd(int64_t a, int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b) {
    const int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

/* ---- sums ---- */

static void compact(aoth_terms_t *l) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->n; i++) {
    if (!l->factor[i]) continue;
    l->base[n] = l->base[i];
    l->factor[n++] = l->factor[i];
  }
  l->n = n;
}

/* l + f * k. 0: it does not fit. */
static int add_fact(const aot_prog_t *p, const aoth_fact_row_t *f, int64_t k, aoth_terms_t *l) {
  int64_t number;
  for (uint32_t i = 0; i < f->n; i++) {
    int64_t factor;
    if (__builtin_mul_overflow(f->factor[i], k, &factor) || !aoth_terms_add(p, f->base[i], factor, l)) return 0;
  }
  if (__builtin_mul_overflow(f->number, k, &number) || __builtin_add_overflow(l->number, number, &l->number)) return 0;
  compact(l);
  return 1;
}

/* The leader of f replaced in l. */
static int substitute(const aot_prog_t *p, const aoth_fact_row_t *f, aoth_terms_t *l) {
  const int64_t leader = f->base[f->n - 1], c = f->factor[f->n - 1];
  AOT_ASSERT(f->n > 0 && f->n <= FACT_TERMS && c > 0);
  for (uint32_t i = 0; i < l->n; i++) {
    if (l->base[i] != leader || l->factor[i] % c != 0 || l->factor[i] == INT64_MIN) continue;
    aoth_terms_t sum = *l;
    if (!add_fact(p, f, -(l->factor[i] / c), &sum)) return 0;
    *l = sum;
    return 1;
  }
  return 0;
}

static int reduce(const aot_prog_t *p, aoth_terms_t *l) {
  int changed = 0;
  for (uint32_t i = 0; i < p->facts.n; i++)
    if (p->facts.at[i].is_equality) changed |= substitute(p, &p->facts.at[i], l);
  return changed;
}

/* ---- products ---- */

/* What the leader of an equality of one or two terms is: *out_factor * *out_base, a base of 0: a number. */
static int leader_is(const aoth_fact_row_t *f, int64_t *out_factor, int64_t *out_base) {
  const int64_t c = f->factor[f->n - 1], rest = f->n == 2 ? f->factor[0] : f->number;
  if (!f->is_equality || f->n > 2 || (f->n == 2 && f->number) || rest % c != 0 || rest == INT64_MIN) return 0;
  *out_factor = -(rest / c);
  *out_base = f->n == 2 ? f->base[0] : 0;
  return 1;
}

/* A product of which a leader is a factor, as another product; 0: there is none. */
static int rewrite_product(const aot_prog_t *p, aoth_terms_t *product) {
  for (uint32_t i = 0; i < p->facts.n; i++) {
    aoth_terms_t rest = *product, leader = {.number = 1};
    int64_t factor, base;
    if (!leader_is(&p->facts.at[i], &factor, &base)) continue;
    if (!aoth_terms_multiply(p, p->facts.at[i].base[p->facts.at[i].n - 1], &leader)) continue;
    if (leader.n >= rest.n || !aoth_terms_divide(&rest, &leader)) continue;
    if (!aoth_terms_multiply(p, factor, &rest) || (base && !aoth_terms_multiply(p, base, &rest))) continue;
    *product = rest;
    return 1;
  }
  return 0;
}

static aot_status_t rewrite_products(aot_prog_t *p, int create, aoth_terms_t *sum, int *out_changed) {
  for (uint32_t i = 0; i < sum->n; i++) {
    aoth_terms_t product = {.number = 1}, more = *sum;
    int64_t value;
    if (!is_op(p, sum->base[i], AOT_EXPR_MUL) || !aoth_terms_multiply(p, sum->base[i], &product)) continue;
    if (!rewrite_product(p, &product)) continue;
    AOT_TRY(aoth_terms_product(p, create, &product, &value));
    more.factor[i] = 0;
    if (!aoth_terms_add(p, value, sum->factor[i], &more)) continue;
    compact(&more);
    *sum = more;
    *out_changed = 1;
    return AOT_OK;
  }
  return AOT_OK;
}

aot_status_t aoth_facts_rewrite(aot_prog_t *p, int create, aoth_terms_t *sum, int *out_changed) {
  *out_changed = 0;
  for (int i = 0; i < MOST_REWRITES; i++) {
    int changed = reduce(p, sum);
    if (!changed) AOT_TRY(rewrite_products(p, create, sum, &changed));
    if (!changed) break;
    *out_changed = 1;
  }
  return AOT_OK;
}

aoth_interval_t aoth_facts_range(const aot_prog_t *p, const aoth_terms_t *sum) {
  aoth_terms_t l = *sum;
  if (p->facts.n) reduce(p, &l);
  aoth_interval_t r = aoth_terms_range(p, &l);
  for (uint32_t i = 0; i < p->facts.n; i++) { /* f >= 0: l >= l - f, and l <= l + f */
    const aoth_fact_row_t *f = &p->facts.at[i];
    aoth_terms_t less = l, more = l;
    if (f->is_equality) continue;
    if (add_fact(p, f, -1, &less)) {
      const int64_t lo = aoth_terms_range(p, &less).lo;
      if (lo > r.lo) r.lo = lo;
    }
    if (add_fact(p, f, 1, &more)) {
      const int64_t hi = aoth_terms_range(p, &more).hi;
      if (hi < r.hi) r.hi = hi;
    }
  }
  return r;
}

/* ---- new ones ---- */

int aoth_facts_put(aot_prog_t *p, int is_equality, aoth_terms_t *l) {
  aoth_fact_row_t row = {.is_equality = is_equality, .guard = p->guards.n};
  int64_t divisor = 0;
  reduce(p, l);
  compact(l);
  if (!l->n) return is_equality ? l->number == 0 : l->number >= 0;
  if (l->n > FACT_TERMS || p->facts.n == AOTH_MOST_FACTS) return 1;
  for (uint32_t i = 0; i < l->n; i++) {
    if (l->factor[i] == INT64_MIN) return 1;
    divisor = gcd(divisor, l->factor[i]);
  }
  AOT_ASSERT(divisor > 0);
  if (!is_equality || l->number == INT64_MIN) divisor = 1;
  else if (l->number % divisor != 0) return 0; /* 2 * s == 5 */
  if (is_equality && l->factor[l->n - 1] < 0) divisor = -divisor;
  for (uint32_t i = 0; i < l->n; i++) {
    row.base[i] = l->base[i];
    row.factor[i] = l->factor[i] / divisor;
  }
  row.number = l->number / divisor;
  row.n = l->n;
  AOT_ASSERT(p->facts.n < p->facts.capacity); /* the caller has made room */
  p->facts.at[p->facts.n++] = row;
  return 1;
}
