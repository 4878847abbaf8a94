/* Operators that are matrix products, as the products that a target has: batches that broadcast, one matrix against a
 * batch folded into one product, biases as addends. Transposed operands are views, so what arrives is strides. */
#include "lower.h"

#include <aot/assert.h>
#include <string.h>

static int is_product_dtype(const lw_tensor_t *t) {
  return t && (t->dtype == AOT_F32 || t->dtype == AOT_F64 || t->dtype == AOT_BF16 || t->dtype == AOT_F16);
}

/* Do a, b and c = a @ b belong together? */
static int fits(const lw_tensor_t *a, const lw_tensor_t *b, const lw_tensor_t *c) {
  int32_t r = c->rank;
  if (a->rank != r || b->rank != r || r < 2 || c->dtype != a->dtype || b->dtype != a->dtype) return 0;
  for (int32_t d = 0; d < r - 2; d++)
    if (a->sizes[d] != c->sizes[d] || b->sizes[d] != c->sizes[d]) return 0;
  for (int32_t d = 0; d < r; d++)
    if (a->sizes[d] > INT32_MAX || b->sizes[d] > INT32_MAX) return 0; /* a BLAS counts in 32 bits */
  return a->sizes[r - 2] == c->sizes[r - 2] && a->sizes[r - 1] == b->sizes[r - 2] && b->sizes[r - 1] == c->sizes[r - 1];
}

int lw_expanded(const lw_tensor_t *t, int32_t rank, const int64_t *sizes, lw_tensor_t *out) {
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

static void transpose_last(lw_tensor_t *t) {
  AOT_ASSERT(t->rank >= 2);
  int32_t r = t->rank - 1, c = t->rank - 2;
  int64_t size = t->sizes[r], stride = t->strides[r];
  t->sizes[r] = t->sizes[c];
  t->strides[r] = t->strides[c];
  t->sizes[c] = size;
  t->strides[c] = stride;
}

int lw_is_product(const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *c) {
  return is_product_dtype(x) && y && fits(x, y, c);
}

/* All dimensions but the last as one. 0: they do not step evenly. */
static int folded(const lw_tensor_t *t, lw_tensor_t *out) {
  int32_t last = t->rank - 1;
  AOT_ASSERT(last >= 0);
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

static aot_status_t fold(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  lw_tensor_t dense;
  if (folded(t, out)) return AOT_OK;
  AOT_TRY(lw_contiguous(b, t, &dense));
  const int is_folded = folded(&dense, out);
  AOT_ASSERT(is_folded); /* dense rows step evenly */
  return AOT_OK;
}

/* Leading dimensions of x [.., k] and y [.., n] agree, and sizes are as a BLAS takes them. */
static int folds_to(const lw_tensor_t *x, const lw_tensor_t *y, int64_t k, int64_t n) {
  if (x->rank != y->rank || x->rank < 1 || x->dtype != y->dtype || x->sizes[x->rank - 1] != k ||
      y->sizes[y->rank - 1] != n)
    return 0;
  for (int32_t d = 0; d + 1 < x->rank; d++)
    if (x->sizes[d] != y->sizes[d]) return 0;
  return lw_numel(x) <= INT32_MAX && lw_numel(y) <= INT32_MAX && k <= INT32_MAX && n <= INT32_MAX && k * n <= INT32_MAX;
}

/* All dimensions but the last step evenly, and from row to row. */
static int lies_in_rows(const lw_tensor_t *t) {
  lw_tensor_t rows;
  const int32_t last = t->rank - 1;
  return last > 0 && t->strides[last] == 1 && t->strides[last - 1] >= t->sizes[last] && folded(t, &rows);
}

/* Contiguous; or where it is wanted, if rows may lie apart. Products of nothing fill their result with zeros, as
 * one. */
static aot_status_t make_result(lw_build_t *b, lw_tensor_t *out) {
  const lw_tensor_t *place = b->machine->target->row_nbytes ? lw_place_of(b, 0) : NULL;
  for (uint32_t k = 0; k < b->node->n_args && place; k++)
    if (lw_arg_tensor(b, k) && lw_numel(lw_arg_tensor(b, k)) == 0) place = NULL;
  if (!place || !lies_in_rows(place)) return lw_result_dense(b, 0, out);
  *out = *place;
  lw_bind(b, 0, out);
  return AOT_OK;
}

/* linear(input [.., k], weight [n, k], bias [n]) */
static int read_linear(const lw_build_t *b, lw_product_t *out) {
  const lw_tensor_t *x = lw_arg_tensor(b, 0), *w = lw_arg_tensor(b, 1), *bias = lw_arg_tensor(b, 2);
  lw_tensor_t result = *lw_type(b, 0);
  if (!is_product_dtype(x) || !w || w->rank != 2 || x->rank < 1 || w->dtype != x->dtype || result.dtype != x->dtype)
    return 0;
  if (lw_arg(b, 2)->kind != AOT_ARG_NONE && (!bias || bias->dtype != x->dtype)) return 0;
  *out = (lw_product_t){.x = *x, .y = *w, .addend_at = bias ? 2 : LW_NONE, .alpha = 1, .beta = 1, .is_folded = 1};
  transpose_last(&out->y);
  lw_make_contiguous(&result);
  return folds_to(x, &result, out->y.sizes[0], out->y.sizes[1]) &&
         (!bias || (bias->rank == 1 && bias->sizes[0] == out->y.sizes[1]));
}

static int read_mm(const lw_build_t *b, lw_product_t *out) {
  const lw_tensor_t *x = lw_arg_tensor(b, 0), *y = lw_arg_tensor(b, 1);
  if (!lw_is_product(x, y, lw_type(b, 0))) return 0;
  *out = (lw_product_t){.x = *x, .y = *y, .addend_at = LW_NONE, .alpha = 1};
  return 1;
}

/* addmm, baddbmm(self, a, b, *, beta, alpha) */
static int read_addmm(const lw_build_t *b, lw_product_t *out) {
  const lw_tensor_t *self = lw_arg_tensor(b, 0), *x = lw_arg_tensor(b, 1), *y = lw_arg_tensor(b, 2);
  const double beta = lw_arg_float(b, 3, 1), alpha = lw_arg_float(b, 4, 1);
  lw_tensor_t spread;
  if (!self || !lw_is_product(x, y, lw_type(b, 0)) || self->dtype != x->dtype ||
      !lw_expanded(self, x->rank, lw_type(b, 0)->sizes, &spread))
    return 0;
  *out = (lw_product_t){.x = *x, .y = *y, .addend_at = beta != 0 ? 0 : LW_NONE, .alpha = alpha, .beta = beta};
  return 1;
}

/* matmul: batches broadcast; a batch against one matrix is folded */
static int read_matmul(const lw_build_t *b, lw_product_t *out) {
  const lw_tensor_t *x = lw_arg_tensor(b, 0), *y = lw_arg_tensor(b, 1), *type = lw_type(b, 0);
  int64_t sizes[AOT_MAX_RANK];
  if (!is_product_dtype(x) || !y || y->dtype != x->dtype || x->rank < 2 || y->rank < 2) return 0;
  *out = (lw_product_t){.x = *x, .y = *y, .addend_at = LW_NONE, .alpha = 1, .is_folded = y->rank == 2 && x->rank > 2};
  if (out->is_folded) return folds_to(x, type, y->sizes[0], y->sizes[1]);
  if (type->rank < 2) return 0;
  memcpy(sizes, type->sizes, sizeof sizes);
  sizes[type->rank - 2] = x->sizes[x->rank - 2];
  sizes[type->rank - 1] = x->sizes[x->rank - 1];
  if (!lw_expanded(x, type->rank, sizes, &out->x)) return 0;
  sizes[type->rank - 2] = y->sizes[y->rank - 2];
  sizes[type->rank - 1] = y->sizes[y->rank - 1];
  return lw_expanded(y, type->rank, sizes, &out->y) && fits(&out->x, &out->y, type);
}

typedef int (*read_fn)(const lw_build_t *b, lw_product_t *out);
static const struct {
  const char *op;
  read_fn read;
} forms[] = {
    {"aten.linear.default", read_linear}, {"aten.mm.default", read_mm},         {"aten.bmm.default", read_mm},
    {"aten.addmm.default", read_addmm},   {"aten.baddbmm.default", read_addmm}, {"aten.matmul.default", read_matmul},
};

/* NULL: the operator is no product. */
static read_fn form_of(aot_str_t op) {
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
    if (aot_str_eq(op, aot_str(forms[k].op))) return forms[k].read;
  return NULL;
}

int lw_read_product(const lw_build_t *b, lw_product_t *out) {
  const read_fn read = form_of(aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name));
  return read && read(b, out);
}

aot_status_t lw_fold_product(lw_build_t *b, lw_product_t *p) {
  const lw_tensor_t x = p->x;
  return p->is_folded ? fold(b, &x, &p->x) : AOT_OK;
}

static aot_status_t lower_product(lw_build_t *b) {
  lw_tensor_t result, out, addend = {.storage = LW_NONE};
  lw_product_t p;
  if (!lw_read_product(b, &p)) return LW_DECLINED;
  if (p.addend_at != LW_NONE) addend = *lw_arg_tensor(b, p.addend_at);
  AOT_TRY(lw_fold_product(b, &p));
  AOT_TRY(make_result(b, &result));
  out = result;
  if (p.is_folded) folded(&result, &out);
  return b->machine->target->product(b, &p.x, &p.y, p.addend_at == LW_NONE ? NULL : &addend, &out, p.alpha, p.beta);
}

static int has(aot_str_t op) { return form_of(op) != NULL; }

const lw_lowering_table_t lw_lowerings_products = {.has = has, .lower = lower_product};
