/* Matrix products (kit/lowering/products.c) by the BLAS, or oneDNN where it is the faster one. A transposed
 * operand is recognised by its strides and handed over in its layout; only what neither row- nor column-major leading
 * dimensions describe is copied. oneDNN adds a bias itself; other addends are put into the result first, and the
 * product is added to it. Halves are summed in float and rounded once: by oneDNN, or as copies in float. */
#include "parallel_gemm.h"
#include "target.h"

#include <string.h>

/* The last two dimensions as a matrix of a BLAS. 0: their strides do not allow it. */
static int as_matrix(const lw_tensor_t *t, bc_matrix_t *out) {
  return bc_matrix(t->sizes[t->rank - 2], t->sizes[t->rank - 1], t->strides[t->rank - 2], t->strides[t->rank - 1], out);
}

/* The operands as matrices; those that are none will be copied, and then lie by rows. */
static void describe(const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *c, double alpha, double beta,
                     bc_product_t *p) {
  lw_tensor_t a = *x, b = *y;
  *p = (bc_product_t){.dtype = c->dtype, .rank = c->rank - 2, .alpha = alpha, .beta = beta};
  as_matrix(c, &p->c);
  if (!as_matrix(&a, &p->a)) {
    lw_make_contiguous(&a);
    as_matrix(&a, &p->a);
  }
  if (!as_matrix(&b, &p->b)) {
    lw_make_contiguous(&b);
    as_matrix(&b, &p->b);
  }
  for (int32_t d = 0; d < p->rank; d++) {
    p->sizes[d] = c->sizes[d];
    p->a_strides[d] = a.strides[d];
    p->b_strides[d] = b.strides[d];
    p->c_strides[d] = c->strides[d];
  }
}

static aot_status_t readable(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  bc_matrix_t ignored;
  *out = *t;
  return as_matrix(t, &ignored) ? AOT_OK : lw_contiguous(b, t, out);
}

static aot_status_t add_in_float(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *addend,
                                 const lw_tensor_t *c, double alpha, double beta) {
  lw_tensor_t wide_x, wide_y, wide_addend, sum = *c;
  sum.dtype = AOT_F32;
  sum.offset = 0;
  AOT_TRY(bc_widened(b, x, &wide_x));
  AOT_TRY(bc_widened(b, y, &wide_y));
  if (addend) AOT_TRY(bc_widened(b, addend, &wide_addend));
  AOT_TRY(lw_new_tensor(b, &sum));
  AOT_TRY(bc_add_product(b, &wide_x, &wide_y, addend ? &wide_addend : NULL, &sum, alpha, beta));
  return bc_narrow_into(b, &sum, c);
}

static double n_terms(const bc_product_t *p) { return (double)p->c.rows * (double)p->c.columns * (double)p->a.columns; }

/* Many products that are shorter than a call of oneDNN takes, a microsecond: as copies in float the BLAS has them done
 * by then (docs/BENCH.md). */
static int are_many_and_short(const bc_product_t *p) {
  enum { LEAST_PRODUCTS = 16, MOST_TERMS = 16384 };
  double n = 1;
  for (int32_t d = 0; d < p->rank; d++) n *= (double)p->sizes[d];
  return n >= LEAST_PRODUCTS && n_terms(p) <= MOST_TERMS;
}

/* OpenBLAS has kernels for products of up to 100^3, which copy nothing; above that it is the slower one
 * (docs/BENCH.md). */
static int suits_onednn(const bc_product_t *p) {
  if (p->dtype == AOT_BF16) return !are_many_and_short(p);
  return p->dtype == AOT_F32 && n_terms(p) > 1e6;
}

/* A number a column, the same for every row: what oneDNN adds to sums that it still has in registers. */
static int is_bias(const lw_tensor_t *addend, const lw_tensor_t *c, double alpha, double beta, lw_tensor_t *out) {
  if (!addend || alpha != 1 || beta != 1 || addend->dtype != c->dtype || !lw_expanded(addend, c->rank, c->sizes, out))
    return 0;
  for (int32_t d = 0; d + 1 < c->rank; d++)
    if (out->strides[d] != 0 && c->sizes[d] != 1) return 0;
  return out->strides[c->rank - 1] == 1 || c->sizes[c->rank - 1] == 1;
}

static int is_itself(const lw_tensor_t *t, const lw_tensor_t *c) {
  return t->storage == c->storage && lw_same_geometry(t, c);
}

aot_status_t bc_add_product(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *addend,
                            const lw_tensor_t *c, double alpha, double beta) {
  const bc_division_t *division = NULL;
  bc_product_t product;
  lw_tensor_t spread, bias, left, right;
  if (lw_numel(c) == 0) return AOT_OK;
  describe(x, y, c, alpha, 0, &product);
  product.has_bias = suits_onednn(&product) && is_bias(addend, c, alpha, beta, &bias);
  if (product.has_bias) AOT_TRY(bc_divide_product(b, &product, 1, &division));
  if (division) addend = NULL;
  else {
    product.has_bias = 0;
    product.beta = addend ? beta : 0;
    AOT_TRY(bc_divide_product(b, &product, suits_onednn(&product), &division));
  }
  if (!division) return add_in_float(b, x, y, addend, c, alpha, beta);
  if (addend && !is_itself(addend, c) && lw_expanded(addend, c->rank, c->sizes, &spread))
    AOT_TRY(lw_copy(b, c, &spread));
  AOT_TRY(readable(b, x, &left));
  AOT_TRY(readable(b, y, &right));
  AOT_TRY(bc_add_divided_product(b, division, &left, &right, c, &bias));
  lw_count_flops(b, 2 * (double)lw_numel(c) * (double)x->sizes[x->rank - 1], c->dtype);
  return AOT_OK;
}
