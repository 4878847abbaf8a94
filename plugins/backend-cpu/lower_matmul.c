/* Matrix products through a BLAS, or oneDNN where it is the faster one. A transposed operand is recognised by its strides and handed over as it
 * lies; only what neither row- nor column-major leading dimensions describe is copied. Leading dimensions of a batch
 * against one matrix are folded. Bias and the addend of addmm are put into the result first, and the product is added
 * to it. Halves are summed in float and rounded once: by oneDNN, or as copies in float. */
#include "divided_product.h"
#include "target.h"

#include <string.h>

typedef struct product_step {
  bc_ref_t a, b, c;
  bc_product_t product;
} product_step_t;

static aot_status_t run_product(const bc_frame_t *f, void *payload) {
  const product_step_t *p = payload;
  bc_product(&p->product, bc_at(f, p->a), bc_at(f, p->b), bc_at(f, p->c));
  return AOT_OK;
}

/* The last two dimensions as a matrix of a BLAS. 0: their strides do not allow it. */
static int as_matrix(const bc_tensor_t *t, bc_matrix_t *out) {
  return bc_matrix(t->sizes[t->rank - 2], t->sizes[t->rank - 1], t->strides[t->rank - 2], t->strides[t->rank - 1], out);
}

static int is_half(int32_t dtype) { return dtype == AOT_BF16 || dtype == AOT_F16; }
static int blas_dtype(const bc_tensor_t *t) {
  return t && (t->dtype == AOT_F32 || t->dtype == AOT_F64 || is_half(t->dtype));
}

/* Do a, b and c = a @ b belong together? */
static int fits(const bc_tensor_t *a, const bc_tensor_t *b, const bc_tensor_t *c) {
  int32_t r = c->rank;
  if (a->rank != r || b->rank != r || r < 2 || c->dtype != a->dtype || b->dtype != a->dtype) return 0;
  for (int32_t d = 0; d < r - 2; d++)
    if (a->sizes[d] != c->sizes[d] || b->sizes[d] != c->sizes[d]) return 0;
  for (int32_t d = 0; d < r; d++)
    if (a->sizes[d] > INT32_MAX || b->sizes[d] > INT32_MAX) return 0; /* a BLAS counts in 32 bits */
  return a->sizes[r - 2] == c->sizes[r - 2] && a->sizes[r - 1] == b->sizes[r - 2] && b->sizes[r - 1] == c->sizes[r - 1];
}

/* t seen with `sizes`, broadcast. 0: it does not broadcast. */
static int expanded(const bc_tensor_t *t, int32_t rank, const int64_t *sizes, bc_tensor_t *out) {
  int32_t lead = rank - t->rank;
  if (lead < 0) return 0;
  *out = *t;
  out->rank = rank;
  for (int32_t d = 0; d < rank; d++) {
    int64_t size = d < lead ? 1 : t->sizes[d - lead];
    if (size != 1 && size != sizes[d]) return 0;
    out->sizes[d] = sizes[d];
    out->strides[d] = size == 1 && sizes[d] != 1 ? 0 : d < lead ? 0 : t->strides[d - lead];
  }
  return 1;
}

/* The operands as matrices; those that are none will be copied, and then lie by rows. */
static void describe(const bc_tensor_t *x, const bc_tensor_t *y, const bc_tensor_t *c, double alpha, double beta,
                     bc_product_t *p) {
  bc_tensor_t a = *x, b = *y;
  *p = (bc_product_t){.dtype = c->dtype, .rank = c->rank - 2, .alpha = alpha, .beta = beta};
  as_matrix(c, &p->c);
  if (!as_matrix(&a, &p->a)) {
    bc_make_contiguous(&a);
    as_matrix(&a, &p->a);
  }
  if (!as_matrix(&b, &p->b)) {
    bc_make_contiguous(&b);
    as_matrix(&b, &p->b);
  }
  for (int32_t d = 0; d < p->rank; d++) {
    p->sizes[d] = c->sizes[d];
    p->a_strides[d] = a.strides[d];
    p->b_strides[d] = b.strides[d];
    p->c_strides[d] = c->strides[d];
  }
}

static aot_status_t readable(bc_build_t *b, const bc_tensor_t *t, bc_tensor_t *out) {
  bc_matrix_t ignored;
  *out = *t;
  return as_matrix(t, &ignored) ? AOT_OK : bc_contiguous(b, t, out);
}

static aot_status_t add_product(bc_build_t *b, const bc_tensor_t *x, const bc_tensor_t *y, const bc_tensor_t *addend,
                                const bc_tensor_t *c, double alpha, double beta);

static aot_status_t add_in_float(bc_build_t *b, const bc_tensor_t *x, const bc_tensor_t *y, const bc_tensor_t *addend,
                                 const bc_tensor_t *c, double alpha, double beta) {
  bc_tensor_t wide_x, wide_y, wide_addend, sum = *c;
  sum.dtype = AOT_F32;
  sum.offset = 0;
  AOT_TRY(bc_widened(b, x, &wide_x));
  AOT_TRY(bc_widened(b, y, &wide_y));
  if (addend) AOT_TRY(bc_widened(b, addend, &wide_addend));
  AOT_TRY(bc_new_tensor(b, &sum));
  AOT_TRY(add_product(b, &wide_x, &wide_y, addend ? &wide_addend : NULL, &sum, alpha, beta));
  return bc_narrow_into(b, &sum, c);
}

/* OpenBLAS has kernels for products of up to 100^3, which copy nothing; above that it is the slower one
 * (docs/BENCH.md). */
static int suits_onednn(const bc_product_t *p) {
  const double n_terms = (double)p->c.rows * (double)p->c.columns * (double)p->a.columns;
  return p->dtype == AOT_BF16 || (p->dtype == AOT_F32 && n_terms > 1e6);
}

/* c = alpha * x @ y + beta * addend (NULL: none), c contiguous; ranks are equal and at least 2, batch sizes agree, the
 * addend broadcasts. Operands are copied when they must be. */
static aot_status_t add_product(bc_build_t *b, const bc_tensor_t *x, const bc_tensor_t *y, const bc_tensor_t *addend,
                                const bc_tensor_t *c, double alpha, double beta) {
  const bc_division_t *division = NULL;
  bc_product_t product;
  bc_tensor_t spread, left, right;
  product_step_t *p;
  if (bc_numel(c) == 0) return AOT_OK;
  describe(x, y, c, alpha, addend ? beta : 0, &product);
  if (suits_onednn(&product)) AOT_TRY(bc_divide_product(b, &product, &division));
  if (is_half(product.dtype) && !division) return add_in_float(b, x, y, addend, c, alpha, beta);
  if (addend && expanded(addend, c->rank, c->sizes, &spread)) AOT_TRY(bc_copy(b, c, &spread));
  AOT_TRY(readable(b, x, &left));
  AOT_TRY(readable(b, y, &right));
  if (division) return bc_add_divided_product(b, division, &left, &right, c);
  BC_STEP(b, run_product, p);
  *p = (product_step_t){.a = bc_use(b, &left), .b = bc_use(b, &right), .c = bc_use(b, c), .product = product};
  return AOT_OK;
}

static void transpose_last(bc_tensor_t *t) {
  int32_t r = t->rank - 1, c = t->rank - 2;
  int64_t size = t->sizes[r], stride = t->strides[r];
  t->sizes[r] = t->sizes[c];
  t->strides[r] = t->strides[c];
  t->sizes[c] = size;
  t->strides[c] = stride;
}

/* All dimensions but the last as one. 0: they do not step evenly. */
static int folded(const bc_tensor_t *t, bc_tensor_t *out) {
  int32_t last = t->rank - 1;
  int64_t rows = 1, stride = 0;
  *out = *t;
  for (int32_t d = last - 1; d >= 0; d--) {
    if (t->sizes[d] == 1) continue;
    if (rows > 1 && t->strides[d] != stride * rows) return 0;
    if (rows == 1) stride = t->strides[d];
    rows *= t->sizes[d];
  }
  out->rank = 2;
  out->sizes[0] = rows;
  out->strides[0] = rows == 1 ? t->sizes[last] : stride;
  out->sizes[1] = t->sizes[last];
  out->strides[1] = t->strides[last];
  return 1;
}

static aot_status_t fold(bc_build_t *b, const bc_tensor_t *t, bc_tensor_t *out) {
  bc_tensor_t dense;
  if (folded(t, out)) return AOT_OK;
  AOT_TRY(bc_contiguous(b, t, &dense));
  folded(&dense, out);
  return AOT_OK;
}

/* Leading dimensions of x [.., k] and y [.., n] agree, and sizes are as a BLAS takes them. */
static int folds_to(const bc_tensor_t *x, const bc_tensor_t *y, int64_t k, int64_t n) {
  if (x->rank != y->rank || x->rank < 1 || x->dtype != y->dtype || x->sizes[x->rank - 1] != k ||
      y->sizes[y->rank - 1] != n)
    return 0;
  for (int32_t d = 0; d + 1 < x->rank; d++)
    if (x->sizes[d] != y->sizes[d]) return 0;
  return bc_numel(x) <= INT32_MAX && bc_numel(y) <= INT32_MAX && k <= INT32_MAX && n <= INT32_MAX && k * n <= INT32_MAX;
}

/* linear(input [.., k], weight [n, k], bias [n]) */
static aot_status_t lower_linear(bc_build_t *b) {
  const bc_tensor_t *x = bc_arg_tensor(b, 0), *w = bc_arg_tensor(b, 1), *bias = bc_arg_tensor(b, 2);
  bc_tensor_t result, rows, out, weight;
  if (!blas_dtype(x) || !w || w->rank != 2 || x->rank < 1 || w->dtype != x->dtype || bc_type(b, 0)->dtype != x->dtype)
    return BC_DECLINED;
  if (bc_arg(b, 2)->kind != AOT_ARG_NONE && (!bias || bias->dtype != x->dtype)) return BC_DECLINED;
  weight = *w;
  transpose_last(&weight);
  out = *bc_type(b, 0);
  bc_make_contiguous(&out);
  if (!folds_to(x, &out, weight.sizes[0], weight.sizes[1]) ||
      (bias && (bias->rank != 1 || bias->sizes[0] != weight.sizes[1])))
    return BC_DECLINED;
  AOT_TRY(fold(b, x, &rows));
  AOT_TRY(bc_result_dense(b, 0, &result));
  folded(&result, &out);
  return add_product(b, &rows, &weight, bias, &out, 1, 1);
}

static aot_status_t lower_mm(bc_build_t *b) {
  const bc_tensor_t *x = bc_arg_tensor(b, 0), *y = bc_arg_tensor(b, 1);
  bc_tensor_t result, left, right;
  if (!blas_dtype(x) || !y || y->dtype != x->dtype || !fits(x, y, bc_type(b, 0))) return BC_DECLINED;
  left = *x;
  right = *y;
  AOT_TRY(bc_result_dense(b, 0, &result));
  return add_product(b, &left, &right, NULL, &result, 1, 0);
}

/* addmm, baddbmm(self, a, b, *, beta, alpha) */
static aot_status_t lower_addmm(bc_build_t *b) {
  const bc_tensor_t *self = bc_arg_tensor(b, 0), *x = bc_arg_tensor(b, 1), *y = bc_arg_tensor(b, 2);
  double beta = bc_arg_float(b, 3, 1), alpha = bc_arg_float(b, 4, 1);
  bc_tensor_t result, spread, left, right;
  if (!blas_dtype(x) || !y || !self || self->dtype != x->dtype || !fits(x, y, bc_type(b, 0)) ||
      !expanded(self, x->rank, bc_type(b, 0)->sizes, &spread))
    return BC_DECLINED;
  left = *x;
  right = *y;
  const bc_tensor_t addend = *self;
  AOT_TRY(bc_result_dense(b, 0, &result));
  return add_product(b, &left, &right, beta != 0 ? &addend : NULL, &result, alpha, beta);
}

/* matmul: batches broadcast; a batch against one matrix is folded */
static aot_status_t lower_matmul(bc_build_t *b) {
  const bc_tensor_t *x = bc_arg_tensor(b, 0), *y = bc_arg_tensor(b, 1), *type = bc_type(b, 0);
  bc_tensor_t result, left, right, out;
  int64_t sizes[AOT_MAX_RANK];
  if (!blas_dtype(x) || !y || y->dtype != x->dtype || x->rank < 2 || y->rank < 2) return BC_DECLINED;
  if (y->rank == 2 && x->rank > 2) {
    if (!folds_to(x, type, y->sizes[0], y->sizes[1])) return BC_DECLINED;
    right = *y;
    AOT_TRY(fold(b, x, &left));
    AOT_TRY(bc_result_dense(b, 0, &result));
    folded(&result, &out);
    return add_product(b, &left, &right, NULL, &out, 1, 0);
  }
  if (type->rank < 2) return BC_DECLINED;
  memcpy(sizes, type->sizes, sizeof sizes);
  sizes[type->rank - 2] = x->sizes[x->rank - 2];
  sizes[type->rank - 1] = x->sizes[x->rank - 1];
  if (!expanded(x, type->rank, sizes, &left)) return BC_DECLINED;
  sizes[type->rank - 2] = y->sizes[y->rank - 2];
  sizes[type->rank - 1] = y->sizes[y->rank - 1];
  if (!expanded(y, type->rank, sizes, &right) || !fits(&left, &right, type)) return BC_DECLINED;
  AOT_TRY(bc_result_dense(b, 0, &result));
  return add_product(b, &left, &right, NULL, &result, 1, 0);
}

static const bc_lowering_t rows[] = {
    {"aten.linear.default", lower_linear}, {"aten.mm.default", lower_mm},         {"aten.bmm.default", lower_mm},
    {"aten.addmm.default", lower_addmm},   {"aten.baddbmm.default", lower_addmm}, {"aten.matmul.default", lower_matmul},
};
const bc_lowering_table_t bc_lowerings_matmul = BC_TABLE(rows);
