/* What is written over a view: the *_scatter forms (a copy of self with src over a view of it), the derivatives of
 * views (zeros with the gradient over the view), diag_embed. All but unfold_backward work on strided tensors, so
 * that every dtype passes. */
#include "rk_families.h"
#include "rk_view.h"
#include <aot/inline.h>

/* ---- a copy of self with src over a view of it: the view's own geometry, taken of the result ---- */

static aot_status_t geometry_of(rk_ctx_t *c, const char *view_name, const rk_arg_t *args, uint32_t n_args,
                                rk_tensor_t *out) {
  const rk_kernel_t *k = rk_find_in(&rk_family_slice, aot_str(view_name));
  rk_call_t call = {args, n_args, out, 1};
  rk_ctx_t inner = *c;
  aot_status_t status;
  inner.call = &call;
  inner.kernel = k;
  status = k->view(&inner);
  c->chunks = inner.chunks;
  return status;
}

/* xxx_scatter(self, src, rest..) with xxx(self, rest..) */
static aot_status_t scatter_view(rk_ctx_t *c, const char *view_name) {
  const rk_tensor_t *self, *src;
  rk_tensor_t target;
  rk_arg_t args[8];
  uint32_t n = 1;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_need_tensor(c, 1, &src));
  AOT_TRY(rk_put_tensor(c, 0, self));
  args[0] = rk_arg_of_tensor(rk_result(c, 0));
  for (uint32_t a = 2; a < c->call->n_args && n < 8; a++) args[n++] = c->call->args[a];
  AOT_TRY(geometry_of(c, view_name, args, n, &target));
  RK_CHECK(c, rk_same_shape(&target, src), "the source has another shape than the view it is written over");
  RK_CHECK(c, rk_tensor_fits(&target), "the view reaches outside its storage");
  rk_copy(&target, src);
  return AOT_OK;
}
static aot_status_t slice_scatter(rk_ctx_t *c) { return scatter_view(c, "aten.slice.Tensor"); }
static aot_status_t select_scatter(rk_ctx_t *c) { return scatter_view(c, "aten.select.int"); }
static aot_status_t diagonal_scatter(rk_ctx_t *c) { return scatter_view(c, "aten.diagonal.default"); }

/* as_strided_scatter(self, src, size, stride, offset): positions are those of self's declared storage, which must be
 * dense from its offset on; other layouts are refused */
static aot_status_t as_strided_scatter(rk_ctx_t *c) {
  const rk_tensor_t *self, *src, *given;
  rk_tensor_t storage, target, shifted;
  const int64_t *sizes, *strides;
  uint32_t n = rk_list(c, 2, &sizes), m = rk_list(c, 3, &strides);
  int64_t offset;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_need_tensor(c, 1, &given));
  src = given;
  offset = rk_int(c, 4, self->offset) - self->offset;
  RK_CHECK(c, n == m && n <= AOT_MAX_RANK, "%u sizes come with %u strides", n, m);
  storage = *self; /* same places in a fresh storage that starts at self's offset */
  {
    int64_t span = 1;
    char *bytes;
    for (int32_t d = 0; d < self->rank; d++) {
      RK_CHECK(c, self->strides[d] >= 0, "negative strides are not supported");
      if (self->sizes[d] > 0) span += (self->sizes[d] - 1) * self->strides[d];
    }
    storage.nbytes = (uint64_t)span * aot_dtype_size(self->dtype);
    RK_SCRATCH(c, (int64_t)storage.nbytes, bytes);
    storage.data = bytes;
    storage.offset = 0;
  }
  rk_copy(&storage, self);
  target = storage;
  target.rank = (int32_t)n;
  target.offset = offset;
  for (uint32_t d = 0; d < n; d++) {
    target.sizes[d] = sizes[d];
    target.strides[d] = strides[d];
  }
  AOT_TRY(rk_view_shown(c, &storage, &target));
  RK_CHECK(c, rk_same_shape(&target, src), "the source has another shape than the view it is written over");
  rk_copy(&target, src);
  shifted = storage;
  return rk_put_tensor(c, 0, &shifted);
}

/* slice_backward(grad, input_sizes, dim, start, end, step), select_backward(grad, input_sizes, dim, index),
 * diagonal_backward, unfold_backward: zeros with grad over (or added into) the view */
static aot_status_t view_backward(rk_ctx_t *c, const char *view_name) {
  const rk_tensor_t *grad;
  rk_tensor_t target, *r = rk_result(c, 0);
  const int64_t *sizes;
  rk_arg_t args[8];
  uint32_t n = rk_list(c, 1, &sizes), k = 1;
  AOT_TRY(rk_need_tensor(c, 0, &grad));
  AOT_TRY(rk_check_result(c, 0, (int32_t)n, sizes));
  rk_fill_i(r, 0);
  args[0] = rk_arg_of_tensor(r);
  for (uint32_t a = 2; a < c->call->n_args && k < 8; a++) args[k++] = c->call->args[a];
  AOT_TRY(geometry_of(c, view_name, args, k, &target));
  RK_CHECK(c, rk_same_shape(&target, grad), "the gradient has another shape than the view");
  rk_copy(&target, grad);
  return AOT_OK;
}
static aot_status_t slice_backward(rk_ctx_t *c) { return view_backward(c, "aten.slice.Tensor"); }
static aot_status_t select_backward(rk_ctx_t *c) { return view_backward(c, "aten.select.int"); }
static aot_status_t diagonal_backward(rk_ctx_t *c) { return view_backward(c, "aten.diagonal.default"); }

/* unfold_backward(grad, input_sizes, dim, size, step): windows may overlap, so it adds */
static aot_status_t unfold_backward(rk_ctx_t *c) {
  const int64_t *sizes;
  uint32_t n = rk_list(c, 1, &sizes);
  rk_array_t g, r;
  int32_t dim;
  int64_t outer, length, inner, size = rk_int(c, 3, 1), step = rk_int(c, 4, 1), windows;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_new_f(c, (int32_t)n, sizes, &r));
  AOT_TRY(rk_dim(c, rk_int(c, 2, 0), r.rank, &dim));
  rk_around(&r, dim, &outer, &length, &inner);
  windows = length >= size && step > 0 ? (length - size) / step + 1 : 0;
  RK_CHECK(c, g.numel == outer * windows * inner * size, "the gradient does not fit");
  for (int64_t o = 0; o < outer; o++)
    for (int64_t w = 0; w < windows; w++)
      for (int64_t i = 0; i < inner; i++)
        for (int64_t k = 0; k < size; k++)
          r.f[(o * length + w * step + k) * inner + i] += g.f[((o * windows + w) * inner + i) * size + k];
  return rk_put_f(c, 0, &r);
}

/* diag_embed(self, offset, dim1, dim2) */
static aot_status_t diag_embed(rk_ctx_t *c) {
  const rk_tensor_t *self;
  rk_tensor_t *r = rk_result(c, 0), d;
  int32_t a, b;
  int64_t offset = rk_int(c, 1, 0), n;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, self->rank >= 1 && r->rank == self->rank + 1, "the declared result does not fit");
  AOT_TRY(rk_dim(c, rk_int(c, 2, -2), r->rank, &a));
  AOT_TRY(rk_dim(c, rk_int(c, 3, -1), r->rank, &b));
  n = self->sizes[self->rank - 1] + (offset < 0 ? -offset : offset);
  RK_CHECK(c, a != b && r->sizes[a] == n && r->sizes[b] == n, "the declared result does not fit");
  d = *r;
  d.rank = 0;
  for (int32_t k = 0; k < r->rank; k++) {
    if (k == a || k == b) continue;
    d.sizes[d.rank] = r->sizes[k];
    d.strides[d.rank++] = r->strides[k];
  }
  d.offset += offset >= 0 ? offset * r->strides[b] : -offset * r->strides[a];
  d.sizes[d.rank] = self->sizes[self->rank - 1];
  d.strides[d.rank++] = r->strides[a] + r->strides[b];
  RK_CHECK(c, rk_same_shape(&d, self), "the declared result does not fit");
  rk_fill_i(r, 0);
  rk_copy(&d, self);
  return AOT_OK;
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("diag_embed.default", diag_embed),
    ROW("slice_scatter.default", slice_scatter),
    ROW("select_scatter.default", select_scatter),
    ROW("diagonal_scatter.default", diagonal_scatter),
    {"aten.as_strided_scatter.default", as_strided_scatter, NULL, NULL, RK_STORAGE},
    ROW("slice_backward.default", slice_backward),
    ROW("select_backward.default", select_backward),
    ROW("diagonal_backward.default", diagonal_backward),
    ROW("unfold_backward.default", unfold_backward),
};
const rk_family_t rk_family_view_scatter = RK_FAMILY(rows);
