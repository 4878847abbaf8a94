/* Views with the same elements in the same order under other sizes. */
#include "rk_view.h"
#include "kit/base/geometry.h"
#include <string.h>

/* New sizes over the same elements: both shapes are walked from the back; a maximal run of dimensions that step through
 * memory evenly must be filled exactly by a run of new dimensions (operators.md section 3). */
static aot_status_t reshaped(rk_ctx_t *c, const rk_tensor_t *t, int32_t rank, const int64_t *sizes, rk_tensor_t *out) {
  int64_t numel = rk_numel(t), product = tn_numel(rank, sizes);
  int32_t v = rank - 1;
  RK_CHECK(c, product == numel, "%lld elements cannot be viewed as %lld", (long long)numel, (long long)product);
  *out = *t;
  out->rank = rank;
  memcpy(out->sizes, sizes, (size_t)rank * sizeof *sizes);
  tn_row_major(rank, sizes, out->strides);
  if (numel == 0) return AOT_OK;
  for (int32_t d = t->rank - 1; d >= 0;) {
    int64_t run = t->sizes[d], filled = 1, step = t->strides[d];
    while (d > 0 && (t->sizes[d - 1] == 1 || run == 1 || t->strides[d - 1] == step * run)) {
      if (run == 1) step = t->strides[d - 1];
      run *= t->sizes[--d];
    }
    while (v >= 0 && (filled < run || sizes[v] == 1)) {
      out->strides[v] = step * filled;
      filled *= sizes[v--];
    }
    if (filled != run) return AOT_E_UNIMPLEMENTED;
    d--;
  }
  for (; v >= 0; v--) out->strides[v] = 1;
  return AOT_OK;
}

static aot_status_t resolve_minus_one(rk_ctx_t *c, int64_t numel, const int64_t *in, uint32_t n, int64_t *out) {
  int64_t known = 1;
  int32_t open = -1;
  RK_CHECK(c, n <= AOT_MAX_RANK, "%u dimensions are more than %d", n, AOT_MAX_RANK);
  for (uint32_t d = 0; d < n; d++) {
    out[d] = in[d];
    if (in[d] == -1) open = (int32_t)d;
    else
      RK_CHECK(c, in[d] >= 0 && !__builtin_mul_overflow(known, in[d], &known), "size %lld is not possible",
               (long long)in[d]);
  }
  if (open >= 0) {
    RK_CHECK(c, known > 0 && numel % known == 0, "%lld elements do not divide by %lld", (long long)numel,
             (long long)known);
    out[open] = numel / known;
  }
  return AOT_OK;
}

static aot_status_t view(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *list;
  int64_t sizes[AOT_MAX_RANK];
  uint32_t n = rk_list(c, 1, &list);
  AOT_TRY(rk_view_begin(c, &self));
  AOT_TRY(resolve_minus_one(c, rk_numel(self), list, n, sizes));
  return reshaped(c, self, (int32_t)n, sizes, rk_result(c, 0));
}

static aot_status_t view_as(rk_ctx_t *c) {
  const rk_tensor_t *self, *other;
  AOT_TRY(rk_view_begin(c, &self));
  AOT_TRY(rk_need_tensor(c, 1, &other));
  return reshaped(c, self, other->rank, other->sizes, rk_result(c, 0));
}

static aot_status_t flatten(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int64_t sizes[AOT_MAX_RANK] = {1};
  int32_t first, last, n = 0;
  AOT_TRY(rk_view_begin(c, &self));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &first));
  AOT_TRY(rk_dim(c, rk_int(c, 2, -1), self->rank, &last));
  RK_CHECK(c, first <= last, "start_dim %d comes after end_dim %d", first, last);
  if (self->rank == 0) return reshaped(c, self, 1, sizes, rk_result(c, 0));
  for (int32_t d = 0; d < self->rank; d++) {
    if (d > first && d <= last) sizes[n - 1] *= self->sizes[d];
    else sizes[n++] = self->sizes[d];
  }
  return reshaped(c, self, n, sizes, rk_result(c, 0));
}

static aot_status_t unflatten(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *list;
  int64_t sizes[AOT_MAX_RANK], piece[AOT_MAX_RANK];
  int32_t dim, rank = 0;
  uint32_t n = rk_list(c, 2, &list);
  AOT_TRY(rk_view_begin(c, &self));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  AOT_TRY(resolve_minus_one(c, self->rank ? self->sizes[dim] : 1, list, n, piece));
  RK_CHECK(c, self->rank - 1 + (int32_t)n <= AOT_MAX_RANK, "too many dimensions");
  for (int32_t d = 0; d < self->rank; d++) {
    if (d != dim) sizes[rank++] = self->sizes[d];
    for (uint32_t k = 0; d == dim && k < n; k++) sizes[rank++] = piece[k];
  }
  return reshaped(c, self, rank, sizes, rk_result(c, 0));
}

static aot_status_t ravel(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int64_t n;
  AOT_TRY(rk_view_begin(c, &self));
  n = rk_numel(self);
  return reshaped(c, self, 1, &n, rk_result(c, 0));
}

static const rk_kernel_t rows[] = {
    RK_VIEW("view.default", view),          RK_VIEW("_unsafe_view.default", view),
    RK_VIEW("reshape.default", view),       RK_VIEW("view_copy.default", view),
    RK_VIEW("_reshape_copy.default", view), RK_VIEW("_reshape_alias.default", view),
    RK_VIEW("view_as.default", view_as),    RK_VIEW("reshape_as.default", view_as),
    RK_VIEW("flatten.using_ints", flatten), RK_VIEW("unflatten.int", unflatten),
    RK_VIEW("ravel.default", ravel),
};
const rk_family_t rk_family_reshape = RK_FAMILY(rows);
