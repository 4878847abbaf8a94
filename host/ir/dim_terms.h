/* Dimensions as sums and products of terms: what the normal form (shapes.c) and equalities (equalities.c) work on;
 * included by host/ir only. */
#ifndef AOTH_DIM_TERMS_H
#define AOTH_DIM_TERMS_H

#include <ir/intervals.h>
#include <ir/program_store.h>

/* ---- rows ---- */
static inline int is_const(int64_t d) { return !AOT_DIM_IS_SYM(d); }
static inline const aoth_expr_row_t *row_of(const aot_prog_t *p, int64_t d) { return &p->exprs.at[AOT_DIM_EXPR(d)]; }
static inline int64_t hint_of(const aot_prog_t *p, int64_t d) { return is_const(d) ? d : row_of(p, d)->hint; }
static inline int is_op(const aot_prog_t *p, int64_t d, int32_t op) {
  return !is_const(d) && row_of(p, d)->info.op == op;
}
static inline int commutes(int32_t op) {
  return op == AOT_EXPR_ADD || op == AOT_EXPR_MUL || op == AOT_EXPR_MAX || op == AOT_EXPR_MIN || op == AOT_EXPR_EQ;
}
aoth_interval_t aoth_dim_range(const aot_prog_t *p, int64_t dim);
aot_status_t aoth_row_add(aot_prog_t *p, const aoth_expr_row_t *row, int64_t *out);
aot_status_t aoth_row_make(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out);
/* Of operands in normal form and in order. create 0: AOT_E_NOT_FOUND, silently, where it would have to be made. */
aot_status_t aoth_row_find_or_make(aot_prog_t *p, int create, int32_t op, int64_t a, int64_t b, int64_t c,
                                   int64_t *out);

/* ---- terms (dim_terms.c) ---- */
#define AOTH_MOST_TERMS 32 /* longer sums and products stay as they were written */

typedef struct aoth_terms { /* of a sum: base * factor; of a product: each base once or more */
  uint32_t n;
  int64_t base[AOTH_MOST_TERMS], factor[AOTH_MOST_TERMS];
  int64_t number; /* added, multiplied */
} aoth_terms_t;

/* Structural order, the same in every program. */
int aoth_dims_compare(const aot_prog_t *p, int64_t x, int64_t y);
/* Adds d * factor to the sum. 0: too many terms, or a number too large. */
int aoth_terms_add(const aot_prog_t *p, int64_t d, int64_t factor, aoth_terms_t *sum);
/* Multiplies the product by d. 0: too many factors, or a number too large. */
int aoth_terms_multiply(const aot_prog_t *p, int64_t d, aoth_terms_t *product);
/* Removes the factors of b from those of a; 0: a is no multiple of b, and is changed. */
int aoth_terms_divide(aoth_terms_t *a, const aoth_terms_t *b);
/* As dimensions. create 0: AOT_E_NOT_FOUND where they do not exist yet. */
aot_status_t aoth_terms_sum(aot_prog_t *p, int create, const aoth_terms_t *sum, int64_t *out);
aot_status_t aoth_terms_product(aot_prog_t *p, int create, const aoth_terms_t *product, int64_t *out);
/* Bounds of the sum, by those of its terms. */
aoth_interval_t aoth_terms_range(const aot_prog_t *p, const aoth_terms_t *sum);

/* ---- what guards say (equalities.c) ---- */
#define AOTH_MOST_FACTS 64
/* A sum that is 0, or not negative, by the guard to be added next; p->facts has room. 0: that contradicts others. */
int aoth_facts_put(aot_prog_t *p, int is_equality, aoth_terms_t *sum);
/* Replaces what equalities determine, factors of products, too. create 0: as above. */
aot_status_t aoth_facts_rewrite(aot_prog_t *p, int create, aoth_terms_t *sum, int *out_changed);
/* Bounds of the sum, equalities and inequalities considered. */
aoth_interval_t aoth_facts_range(const aot_prog_t *p, const aoth_terms_t *sum);

#endif
