/* Matrix products. Results are contiguous. */
#include "shape_rules.h"

#include <aot/inline.h>

static void same_dtype(at_infer_t *c, const aot_type_t *a, const aot_type_t *b) {
  if (a->dtype != b->dtype)
    at_fail(c, "%s of %s with %s: both must have one dtype", c->row->name, aot_dtype_name(a->dtype),
            aot_dtype_name(b->dtype));
}

static void inner_equal(at_infer_t *c, const aot_type_t *a, const aot_type_t *b, int64_t left, int64_t right) {
  char text[2][90];
  if (c->status == AOT_OK && at_differs(c, left, right))
    at_fail(c, "%s of [%s] with [%s]: the inner dimensions differ", c->row->name,
            at_dims_text(c, a->sizes, a->rank, text[0], 90), at_dims_text(c, b->sizes, b->rank, text[1], 90));
}

static void need_rank(at_infer_t *c, const aot_type_t *t, const char *name, int32_t rank) {
  if (t->rank != rank) at_fail(c, "'%s' must have rank %d, not %d", name, (int)rank, (int)t->rank);
}

/* [n,k] x [k,m], or [b,n,k] x [b,k,m]; `bias`, if any, broadcasts to the result. dtype 0: the operands'. */
static void put_product(at_infer_t *c, const char *left, const char *right, int32_t rank, int32_t dtype) {
  aot_type_t a = at_tensor(c, left), b = at_tensor(c, right);
  int64_t *sizes = at_dims(c, 3);
  need_rank(c, &a, left, rank);
  need_rank(c, &b, right, rank);
  same_dtype(c, &a, &b);
  if (c->status != AOT_OK) return;
  inner_equal(c, &a, &b, a.sizes[rank - 1], b.sizes[rank - 2]);
  if (rank == 3) {
    sizes[0] = a.sizes[0];
    inner_equal(c, &a, &b, a.sizes[0], b.sizes[0]);
  }
  sizes[rank - 2] = a.sizes[rank - 2];
  sizes[rank - 1] = b.sizes[rank - 1];
  at_put(c, at_has(c, "out_dtype") ? (int32_t)at_int(c, "out_dtype") : dtype ? dtype : a.dtype, sizes, rank);
}

void at_shape_mm(at_infer_t *c) { put_product(c, "self", "mat2", 2, 0); }
void at_shape_int_mm(at_infer_t *c) {
  int32_t dtype = at_tensor(c, "self").dtype;
  if (dtype != AOT_I8) at_fail(c, "_int_mm takes int8, not %s", aot_dtype_name(dtype));
  put_product(c, "self", "mat2", 2, AOT_I32);
}
void at_shape_bmm(at_infer_t *c) { put_product(c, "self", "mat2", 3, 0); }
void at_shape_addmm(at_infer_t *c) { put_product(c, "mat1", "mat2", 2, 0); }
void at_shape_baddbmm(at_infer_t *c) { put_product(c, "batch1", "batch2", 3, 0); }

void at_shape_addbmm(at_infer_t *c) {
  aot_type_t a = at_tensor(c, "batch1"), b = at_tensor(c, "batch2");
  int64_t *sizes = at_dims(c, 2);
  need_rank(c, &a, "batch1", 3);
  need_rank(c, &b, "batch2", 3);
  if (c->status != AOT_OK) return;
  inner_equal(c, &a, &b, a.sizes[2], b.sizes[1]);
  sizes[0] = a.sizes[1];
  sizes[1] = b.sizes[2];
  at_put(c, a.dtype, sizes, 2);
}

static void put_matrix_vector(at_infer_t *c, const char *matrix, const char *vector) {
  aot_type_t a = at_tensor(c, matrix), b = at_tensor(c, vector);
  need_rank(c, &a, matrix, 2);
  need_rank(c, &b, vector, 1);
  if (c->status != AOT_OK) return;
  inner_equal(c, &a, &b, a.sizes[1], b.sizes[0]);
  at_put(c, a.dtype, a.sizes, 1);
}

void at_shape_mv(at_infer_t *c) { put_matrix_vector(c, "self", "vec"); }
void at_shape_addmv(at_infer_t *c) { put_matrix_vector(c, "mat", "vec"); }

void at_shape_dot(at_infer_t *c) {
  aot_type_t a = at_tensor(c, "self"), b = at_operand(c, at_has(c, "tensor") ? "tensor" : "other");
  need_rank(c, &a, "self", 1);
  need_rank(c, &b, "tensor", 1);
  if (c->status != AOT_OK) return;
  inner_equal(c, &a, &b, a.sizes[0], b.sizes[0]);
  at_put(c, a.dtype, NULL, 0);
}

static void put_outer(at_infer_t *c, const char *left, const char *right, int32_t dtype) {
  aot_type_t a = at_tensor(c, left), b = at_tensor(c, right);
  int64_t *sizes = at_dims(c, 2);
  need_rank(c, &a, left, 1);
  need_rank(c, &b, right, 1);
  if (c->status != AOT_OK) return;
  sizes[0] = a.sizes[0];
  sizes[1] = b.sizes[0];
  at_put(c, dtype, sizes, 2);
}

void at_shape_outer(at_infer_t *c) {
  aot_type_t t[2];
  t[0] = at_tensor(c, "self");
  t[1] = at_tensor(c, "vec2");
  put_outer(c, "self", "vec2", at_promote(c, t, 2));
}

void at_shape_addr(at_infer_t *c) {
  aot_type_t t[3];
  t[0] = at_tensor(c, "self");
  t[1] = at_tensor(c, "vec1");
  t[2] = at_tensor(c, "vec2");
  put_outer(c, "vec1", "vec2", at_promote(c, t, 3));
}

/* The rules of torch.matmul: 1-d operands get a dimension that is dropped again, batch dimensions broadcast. */
void at_shape_matmul(at_infer_t *c) {
  aot_type_t a = at_tensor(c, "self"), b = at_tensor(c, "other"), batch[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 2);
  int32_t rank;
  same_dtype(c, &a, &b);
  if (a.rank == 0 || b.rank == 0) at_fail(c, "matmul of a 0-dim tensor");
  if (c->status != AOT_OK) return;
  inner_equal(c, &a, &b, a.sizes[a.rank - 1], b.sizes[b.rank == 1 ? 0 : b.rank - 2]);
  batch[0] = a;
  batch[1] = b;
  batch[0].rank = a.rank > 2 ? a.rank - 2 : 0;
  batch[1].rank = b.rank > 2 ? b.rank - 2 : 0;
  rank = at_broadcast(c, batch, 2, sizes);
  if (a.rank > 1) sizes[rank++] = a.sizes[a.rank - 2];
  if (b.rank > 1) sizes[rank++] = b.sizes[b.rank - 1];
  at_put(c, a.dtype, sizes, rank);
}

void at_shape_linear(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_tensor(c, "weight");
  int64_t *sizes = at_dims_copy(c, x.sizes, x.rank);
  same_dtype(c, &x, &w);
  if (x.rank == 0 || w.rank == 0 || w.rank > 2)
    at_fail(c, "linear of an input of rank %d with a weight of rank %d", (int)x.rank, (int)w.rank);
  if (c->status != AOT_OK) return;
  inner_equal(c, &x, &w, x.sizes[x.rank - 1], w.sizes[w.rank - 1]);
  if (w.rank == 2) sizes[x.rank - 1] = w.sizes[0];
  at_put(c, x.dtype, sizes, w.rank == 2 ? x.rank : x.rank - 1);
}

/* _grouped_mm: 2-d by 3-d, 3-d by 2-d, 2-d by 2-d with group ends in offs, 3-d by 3-d as bmm */
void at_shape_grouped_mm(at_infer_t *c) {
  aot_type_t a = at_tensor(c, "self"), b = at_tensor(c, "mat2"), offs = at_operand(c, "offs");
  int64_t *sizes = at_dims(c, 3);
  int32_t rank = 0;
  if (a.rank < 2 || a.rank > 3 || b.rank < 2 || b.rank > 3) at_fail(c, "_grouped_mm takes operands of rank 2 or 3");
  else if (!(a.rank == 3 && b.rank == 3) && offs.kind != AOT_TYPE_TENSOR)
    at_fail(c, "_grouped_mm of 2-d operands needs offs");
  if (c->status != AOT_OK) return;
  if (a.rank == 3 && b.rank == 3) sizes[rank++] = a.sizes[0];
  if (a.rank == 2 && b.rank == 2) sizes[rank++] = offs.sizes[0];
  sizes[rank++] = a.sizes[a.rank - 2];
  sizes[rank++] = b.sizes[b.rank - 1];
  at_put(c, at_has(c, "out_dtype") ? (int32_t)at_int(c, "out_dtype") : a.dtype, sizes, rank);
}

static void check_experts(at_infer_t *c, const aot_type_t *x, const aot_type_t *w, const aot_type_t *offs) {
  if (x->rank != 2 || w->rank != 3 || offs->rank != 1)
    at_fail(c, "%s takes rows, a matrix for each expert and a list of ends, not ranks %d, %d and %d", c->row->name,
            (int)x->rank, (int)w->rank, (int)offs->rank);
  if (c->status != AOT_OK) return;
  inner_equal(c, x, w, x->sizes[1], w->sizes[1]);
  if (at_differs(c, offs->sizes[0], w->sizes[0])) at_fail(c, "%s: an end for each expert is needed", c->row->name);
}

void at_shape_grouped_mm_fallback(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_tensor(c, "weight"), offs = at_tensor(c, "offs");
  check_experts(c, &x, &w, &offs);
  if (c->status == AOT_OK) at_put(c, x.dtype, (const int64_t[]){x.sizes[0], w.sizes[2]}, 2);
}

void at_shape_grouped_mm_fallback_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), w = at_tensor(c, "weight"), offs = at_tensor(c, "offs");
  check_experts(c, &x, &w, &offs);
  at_put_like(c, &x, x.dtype);
  at_put_like(c, &w, w.dtype);
}

/* inner: the last dimensions go; a number multiplies */
void at_shape_inner(at_infer_t *c) {
  aot_type_t a = at_tensor(c, "self"), b = at_tensor(c, "other");
  int64_t *sizes = at_dims(c, 2 * AOT_MAX_RANK);
  int32_t rank = 0, d;
  if (a.rank == 0 || b.rank == 0) {
    const aot_type_t *t = a.rank ? &a : &b;
    at_put(c, a.dtype, t->sizes, t->rank);
    return;
  }
  inner_equal(c, &a, &b, a.sizes[a.rank - 1], b.sizes[b.rank - 1]);
  for (d = 0; d + 1 < a.rank; d++) sizes[rank++] = a.sizes[d];
  for (d = 0; d + 1 < b.rank; d++) sizes[rank++] = b.sizes[d];
  at_put(c, a.dtype, sizes, rank);
}

void at_shape_cross(at_infer_t *c) {
  aot_type_t t[2];
  int32_t dim;
  t[0] = at_tensor(c, "self");
  t[1] = at_tensor(c, "other");
  if (at_has(c, "dim")) {
    dim = at_wrap(c, at_int(c, "dim"), t[0].rank);
  } else { /* cross: the first dimension of size 3 */
    for (dim = 0; dim + 1 < t[0].rank && !at_same(c, t[0].sizes[dim], 3); dim++) continue;
  }
  if (t[0].rank != t[1].rank || t[0].rank == 0 || at_differs(c, t[0].sizes[dim], 3))
    at_fail(c, "cross product along a dimension that is not of size 3");
  if (t[0].dtype != t[1].dtype)
    at_fail(c, "cross product of %s with %s", aot_dtype_name(t[0].dtype), aot_dtype_name(t[1].dtype));
  at_put_pointwise(c, at_promote(c, t, 2), t, 2);
}

/* _trilinear: each tensor gets dimensions of size 1, all broadcast, some are summed */
void at_shape_trilinear(at_infer_t *c) {
  static const char *const names[3] = {"i1", "i2", "i3"}, *const expands[3] = {"expand1", "expand2", "expand3"};
  aot_type_t t[3];
  const int64_t *dims;
  int64_t *out = at_dims(c, AOT_MAX_RANK);
  int32_t rank = 0, kept = 0, d, i;
  uint32_t mask, n_summed;
  for (i = 0; i < 3; i++) {
    uint32_t n;
    int64_t *sizes = at_dims(c, AOT_MAX_RANK);
    int32_t own = 0;
    t[i] = at_tensor(c, names[i]);
    n = at_ints(c, expands[i], &dims);
    rank = t[i].rank + (int32_t)n;
    if (rank > AOT_MAX_RANK) at_fail(c, "_trilinear of rank %d", (int)rank);
    if (c->status != AOT_OK) return;
    mask = at_dim_mask(c, dims, n, rank);
    for (d = 0; d < rank; d++) sizes[d] = mask >> d & 1 ? 1 : t[i].sizes[own++];
    t[i].sizes = sizes;
    t[i].rank = rank;
  }
  rank = at_broadcast(c, t, 3, out);
  n_summed = at_ints(c, "sumdim", &dims);
  mask = at_dim_mask(c, dims, n_summed, rank);
  for (d = 0; d < rank; d++)
    if (!(mask >> d & 1)) out[kept++] = out[d];
  at_put(c, at_promote(c, t, 3), out, kept);
}

/* [.., p, m] and [.., r, m]: [.., p, r] */
void at_shape_cdist(at_infer_t *c) {
  aot_type_t a = at_tensor(c, "x1"), b = at_tensor(c, "x2"), batch[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 2);
  int32_t rank;
  if (a.rank < 2 || b.rank < 2) at_fail(c, "%s of tensors of rank %d and %d", c->row->name, (int)a.rank, (int)b.rank);
  if (c->status != AOT_OK) return;
  inner_equal(c, &a, &b, a.sizes[a.rank - 1], b.sizes[b.rank - 1]);
  batch[0] = a;
  batch[1] = b;
  batch[0].rank -= 2;
  batch[1].rank -= 2;
  rank = at_broadcast(c, batch, 2, sizes);
  sizes[rank] = a.sizes[a.rank - 2];
  sizes[rank + 1] = b.sizes[b.rank - 2];
  at_put(c, a.dtype, sizes, rank + 2);
}

void at_shape_pdist(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *sizes = at_dims(c, 1);
  need_rank(c, &t, "self", 2);
  if (c->status != AOT_OK) return;
  sizes[0] = at_floordiv(c, at_mul(c, t.sizes[0], at_sub(c, t.sizes[0], 1)), 2);
  at_put(c, t.dtype, sizes, 1);
}
