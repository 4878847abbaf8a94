/* Views of all elements: their dimensions in another order, expanded, squeezed, seen as another dtype; and
 * as_strided. */
#include "rk_view.h"
#include <aot/inline.h>
#include <string.h>

static aot_status_t alias(rk_ctx_t *c) {
  const rk_tensor_t *self;
  return rk_view_begin(c, &self);
}

/* to.dtype(self, dtype, ..): itself when nothing changes */
static aot_status_t to_dtype(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_view_begin(c, &self));
  return rk_int(c, 1, self->dtype) == self->dtype ? AOT_OK : AOT_E_UNIMPLEMENTED;
}

static aot_status_t expanded(rk_ctx_t *c, const rk_tensor_t *t, int32_t rank, const int64_t *sizes, rk_tensor_t *out) {
  int32_t lead = rank - t->rank;
  RK_CHECK(c, lead >= 0, "rank %d cannot be expanded to rank %d", t->rank, rank);
  *out = *t;
  out->rank = rank;
  for (int32_t d = 0; d < rank; d++) {
    int64_t have = d < lead ? 1 : t->sizes[d - lead], stride = d < lead ? 0 : t->strides[d - lead];
    int64_t want = sizes[d] == -1 ? have : sizes[d];
    RK_CHECK(c, want == have || have == 1, "size %lld cannot be expanded to %lld at dimension %d", (long long)have,
             (long long)want, d);
    out->sizes[d] = want;
    out->strides[d] = want == have ? stride : 0;
  }
  return AOT_OK;
}

static aot_status_t expand(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *list;
  uint32_t n = rk_list(c, 1, &list);
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, n <= AOT_MAX_RANK, "too many dimensions");
  return expanded(c, self, (int32_t)n, list, rk_result(c, 0));
}

static aot_status_t expand_as(rk_ctx_t *c) {
  const rk_tensor_t *self, *other;
  AOT_TRY(rk_view_begin(c, &self));
  AOT_TRY(rk_need_tensor(c, 1, &other));
  return expanded(c, self, other->rank, other->sizes, rk_result(c, 0));
}

static aot_status_t permuted(rk_ctx_t *c, const rk_tensor_t *t, const int32_t *dims, rk_tensor_t *out) {
  rk_tensor_t r = *t;
  (void)c;
  for (int32_t d = 0; d < t->rank; d++) {
    r.sizes[d] = t->sizes[dims[d]];
    r.strides[d] = t->strides[dims[d]];
  }
  *out = r;
  return AOT_OK;
}

static aot_status_t permute(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *list;
  int32_t dims[AOT_MAX_RANK];
  uint32_t seen = 0, n = rk_list(c, 1, &list);
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, (int32_t)n == self->rank, "%u dimensions are named for rank %d", n, self->rank);
  for (uint32_t k = 0; k < n; k++) {
    AOT_TRY(rk_dim(c, list[k], self->rank, &dims[k]));
    RK_CHECK(c, !(seen >> dims[k] & 1u), "dimension %d is named twice", dims[k]);
    seen |= 1u << dims[k];
  }
  return permuted(c, self, dims, rk_result(c, 0));
}

static aot_status_t swap(rk_ctx_t *c, int64_t a, int64_t b) {
  const rk_tensor_t *self;
  int32_t dims[AOT_MAX_RANK], first, second;
  AOT_TRY(rk_view_begin(c, &self));
  if (self->rank == 0) return AOT_OK;
  AOT_TRY(rk_dim(c, a, self->rank, &first));
  AOT_TRY(rk_dim(c, b, self->rank, &second));
  for (int32_t d = 0; d < self->rank; d++) dims[d] = d == first ? second : d == second ? first : d;
  return permuted(c, self, dims, rk_result(c, 0));
}
static aot_status_t transpose(rk_ctx_t *c) { return swap(c, rk_int(c, 1, 0), rk_int(c, 2, 1)); }
static aot_status_t last_two(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_view_begin(c, &self));
  return self->rank == 0 ? AOT_OK : swap(c, -2, -1);
}
static aot_status_t t(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, self->rank <= 2, "rank %d is more than 2", self->rank);
  return self->rank < 2 ? AOT_OK : swap(c, 0, 1);
}

static aot_status_t reversed(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int32_t dims[AOT_MAX_RANK];
  AOT_TRY(rk_view_begin(c, &self));
  for (int32_t d = 0; d < self->rank; d++) dims[d] = self->rank - 1 - d;
  return permuted(c, self, dims, rk_result(c, 0));
}

/* view.dtype(self, dtype): the same bytes; another element size scales the last dimension, whose elements must be
 * adjacent */
static aot_status_t view_dtype(rk_ctx_t *c) {
  const rk_tensor_t *self;
  rk_tensor_t *r = rk_result(c, 0);
  int32_t last, dtype = (int32_t)rk_int(c, 1, 0);
  int64_t old_width, width = (int64_t)aot_dtype_size(dtype);
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, rk_dtype_supported(dtype), "dtype %d is not supported", dtype);
  old_width = (int64_t)aot_dtype_size(self->dtype);
  r->dtype = dtype;
  if (width == old_width) return AOT_OK;
  last = self->rank - 1;
  RK_CHECK(c,
           self->rank > 0 && self->strides[last] == 1 && self->sizes[last] * old_width % width == 0 &&
               self->offset * old_width % width == 0,
           "elements of %lld bytes cannot be seen as %lld", (long long)old_width, (long long)width);
  r->sizes[last] = self->sizes[last] * old_width / width;
  r->offset = self->offset * old_width / width;
  for (int32_t d = 0; d < last; d++) {
    RK_CHECK(c, self->strides[d] * old_width % width == 0, "stride %lld does not divide", (long long)self->strides[d]);
    r->strides[d] = self->strides[d] * old_width / width;
  }
  return AOT_OK;
}

/* movedim(self, source, destination), one or several dimensions */
static aot_status_t movedim(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *from, *to;
  int32_t dims[AOT_MAX_RANK], a, b, next = 0;
  uint8_t used[AOT_MAX_RANK] = {0};
  uint32_t n = rk_list(c, 1, &from), m = rk_list(c, 2, &to);
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, n == m, "%u sources for %u destinations", n, m);
  for (int32_t d = 0; d < self->rank; d++) dims[d] = -1;
  for (uint32_t k = 0; k < n; k++) {
    AOT_TRY(rk_dim(c, from[k], self->rank, &a));
    AOT_TRY(rk_dim(c, to[k], self->rank, &b));
    if (self->rank == 0) continue; /* 0 and -1 name the only place there is */
    RK_CHECK(c, !used[a] && dims[b] < 0, "a dimension is named twice");
    dims[b] = a;
    used[a] = 1;
  }
  for (int32_t d = 0; d < self->rank; d++) {
    if (dims[d] >= 0) continue;
    while (used[next]) next++;
    dims[d] = next++;
  }
  return permuted(c, self, dims, rk_result(c, 0));
}

static aot_status_t unsqueeze(rk_ctx_t *c) {
  const rk_tensor_t *self;
  rk_tensor_t *r = rk_result(c, 0);
  int32_t dim;
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, self->rank < AOT_MAX_RANK, "too many dimensions");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank + 1, &dim));
  r->rank++;
  for (int32_t d = self->rank; d > dim; d--) {
    r->sizes[d] = self->sizes[d - 1];
    r->strides[d] = self->strides[d - 1];
  }
  r->strides[dim] = dim < self->rank ? self->sizes[dim] * self->strides[dim] : 1;
  r->sizes[dim] = 1;
  return AOT_OK;
}

static aot_status_t squeeze_marked(rk_ctx_t *c, int all) {
  const rk_tensor_t *self;
  uint8_t marks[AOT_MAX_RANK];
  AOT_TRY(rk_view_begin(c, &self));
  if (all) memset(marks, 1, sizeof marks);
  else AOT_TRY(rk_dim_marks(c, 1, self->rank, 0, marks));
  for (int32_t d = 0; d < self->rank; d++)
    if (self->sizes[d] != 1) marks[d] = 0;
  rk_view_drop(self, marks, rk_result(c, 0));
  return AOT_OK;
}
static aot_status_t squeeze(rk_ctx_t *c) { return squeeze_marked(c, 1); }
static aot_status_t squeeze_dims(rk_ctx_t *c) { return squeeze_marked(c, 0); }

static aot_status_t as_strided(rk_ctx_t *c) {
  const rk_tensor_t *self;
  rk_tensor_t *r = rk_result(c, 0);
  const int64_t *sizes, *strides;
  uint32_t n = rk_list(c, 1, &sizes), m = rk_list(c, 2, &strides);
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, n == m && n <= AOT_MAX_RANK, "%u sizes come with %u strides", n, m);
  r->rank = (int32_t)n;
  r->offset = rk_int(c, 3, self->offset);
  for (uint32_t d = 0; d < n; d++) {
    r->sizes[d] = sizes[d];
    r->strides[d] = strides[d];
  }
  return rk_view_shown(c, self, r);
}

/* broadcast_tensors(tensors): every one expanded to the common shape */
static aot_status_t broadcast_tensors(rk_ctx_t *c) {
  const rk_tensor_t *const *list;
  uint32_t n;
  int32_t rank = 0;
  int64_t sizes[AOT_MAX_RANK];
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  AOT_TRY(rk_view_expect(c, n));
  for (uint32_t k = 0; k < n; k++) {
    RK_CHECK(c, list[k], "tensor %u is absent", k);
    if (list[k]->rank > rank) rank = list[k]->rank;
  }
  for (int32_t d = 0; d < rank; d++) {
    sizes[d] = 1;
    for (uint32_t k = 0; k < n; k++) {
      int32_t own = d - (rank - list[k]->rank);
      if (own >= 0 && list[k]->sizes[own] != 1) sizes[d] = list[k]->sizes[own];
    }
  }
  for (uint32_t k = 0; k < n; k++) AOT_TRY(expanded(c, list[k], rank, sizes, rk_result(c, k)));
  return AOT_OK;
}

static const rk_kernel_t rows[] = {
    RK_VIEW("alias.default", alias),
    RK_VIEW("resolve_conj.default", alias),
    RK_VIEW("resolve_neg.default", alias),
    RK_VIEW("alias_copy.default", alias),
    RK_VIEW("detach.default", alias),
    RK_VIEW("detach_copy.default", alias),
    RK_VIEW("lift.default", alias),
    RK_VIEW("lift_fresh.default", alias),
    RK_VIEW("contiguous.default", alias),
    {"aten.dropout.default", rk_run_view, alias, NULL, RK_DROPOUT},
    {"aten.feature_dropout.default", rk_run_view, alias, NULL, RK_DROPOUT},
    {"aten.alpha_dropout.default", rk_run_view, alias, NULL, RK_DROPOUT},
    RK_VIEW("to.dtype", to_dtype),
    RK_VIEW("expand.default", expand),
    RK_VIEW("expand_copy.default", expand),
    RK_VIEW("broadcast_to.default", expand),
    RK_VIEW("expand_as.default", expand_as),
    RK_VIEW("broadcast_tensors.default", broadcast_tensors),
    RK_VIEW("permute.default", permute),
    RK_VIEW("permute_copy.default", permute),
    RK_VIEW("transpose.int", transpose),
    RK_VIEW("transpose_copy.int", transpose),
    RK_VIEW("swapaxes.default", transpose),
    RK_VIEW("swapdims.default", transpose),
    RK_VIEW("mT.default", last_two),
    RK_VIEW("adjoint.default", last_two),
    RK_VIEW("numpy_T.default", reversed),
    {"aten.view.dtype", rk_run_view, view_dtype, NULL, RK_STORAGE},
    RK_VIEW("t.default", t),
    RK_VIEW("t_copy.default", t),
    RK_VIEW("movedim.int", movedim),
    RK_VIEW("movedim.intlist", movedim),
    RK_VIEW("moveaxis.int", movedim),
    RK_VIEW("moveaxis.intlist", movedim),
    RK_VIEW("unsqueeze.default", unsqueeze),
    RK_VIEW("unsqueeze_copy.default", unsqueeze),
    RK_VIEW("squeeze.default", squeeze),
    RK_VIEW("squeeze.dim", squeeze_dims),
    RK_VIEW("squeeze.dims", squeeze_dims),
    RK_VIEW("squeeze_copy.default", squeeze),
    RK_VIEW("squeeze_copy.dim", squeeze_dims),
    RK_VIEW("squeeze_copy.dims", squeeze_dims),
    {"aten.as_strided.default", rk_run_view, as_strided, NULL, RK_STORAGE},
    {"aten.as_strided_copy.default", rk_run_view, as_strided, NULL, RK_STORAGE},
};
const rk_family_t rk_family_view = RK_FAMILY(rows);
