/* Views of a part: an index or a range of one dimension, the pieces of a split, a diagonal, windows. */
#include "rk_view.h"

static aot_status_t select(rk_ctx_t *c) {
  const rk_tensor_t *self;
  uint8_t marks[AOT_MAX_RANK] = {0};
  int32_t dim;
  int64_t index = rk_int(c, 2, 0);
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, self->rank > 0, "a 0-dim tensor has nothing to select");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  RK_CHECK(c, index >= -self->sizes[dim] && index < self->sizes[dim],
           "index %lld is out of range for dimension %d of size %lld", (long long)index, dim,
           (long long)self->sizes[dim]);
  rk_result(c, 0)->offset += (index < 0 ? index + self->sizes[dim] : index) * self->strides[dim];
  marks[dim] = 1;
  rk_view_drop(self, marks, rk_result(c, 0));
  return AOT_OK;
}

static int64_t clamp_index(int64_t i, int64_t size) {
  if (i < 0) i += size;
  return i < 0 ? 0 : i > size ? size : i;
}

static aot_status_t sliced(rk_ctx_t *c, const rk_tensor_t *t, int32_t dim, int64_t start, int64_t end, int64_t step,
                           rk_tensor_t *out) {
  RK_CHECK(c, step > 0, "step %lld is not positive", (long long)step);
  start = clamp_index(start, t->sizes[dim]);
  end = clamp_index(end, t->sizes[dim]);
  if (end < start) end = start;
  *out = *t;
  out->sizes[dim] = (end - start) / step + ((end - start) % step != 0);
  out->strides[dim] = t->strides[dim] * step;
  if (out->sizes[dim] > 0) out->offset += start * t->strides[dim];
  return AOT_OK;
}

static aot_status_t slice(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int32_t dim;
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, self->rank > 0, "a 0-dim tensor cannot be sliced");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  return sliced(c, self, dim, rk_int(c, 2, 0), rk_int(c, 3, INT64_MAX), rk_int(c, 4, 1), rk_result(c, 0));
}

static aot_status_t narrow(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int32_t dim;
  int64_t start, length = rk_int(c, 3, 0);
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, self->rank > 0, "a 0-dim tensor cannot be narrowed");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  start = rk_int(c, 2, 0);
  if (start < 0) start += self->sizes[dim];
  RK_CHECK(c, start >= 0 && length >= 0 && start <= self->sizes[dim] - length,
           "%lld elements from %lld on exceed size %lld", (long long)length, (long long)start,
           (long long)self->sizes[dim]);
  return sliced(c, self, dim, start, start + length, 1, rk_result(c, 0));
}

/* Consecutive pieces along a dimension: sizes[k], or `each` when sizes is NULL (the last may be smaller). */
static aot_status_t pieces(rk_ctx_t *c, const rk_tensor_t *self, int32_t dim, const int64_t *sizes, int64_t n,
                           int64_t each) {
  int64_t start = 0;
  AOT_TRY(rk_view_expect(c, n));
  for (int64_t k = 0; k < n; k++) {
    int64_t length = sizes ? sizes[k] : each;
    RK_CHECK(c, length >= 0 && start <= self->sizes[dim], "the pieces exceed size %lld", (long long)self->sizes[dim]);
    AOT_TRY(sliced(c, self, dim, start, length > self->sizes[dim] - start ? self->sizes[dim] : start + length, 1,
                   rk_result(c, (uint32_t)k)));
    start += length;
  }
  RK_CHECK(c, !sizes || start == self->sizes[dim], "the pieces sum to %lld, not to size %lld", (long long)start,
           (long long)self->sizes[dim]);
  return AOT_OK;
}

static aot_status_t begin_pieces(rk_ctx_t *c, const rk_tensor_t **out_self, int32_t *out_dim) {
  AOT_TRY(rk_view_begin(c, out_self));
  RK_CHECK(c, (*out_self)->rank > 0, "a 0-dim tensor cannot be split");
  return rk_dim(c, rk_int(c, 2, 0), (*out_self)->rank, out_dim);
}

static aot_status_t split(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int32_t dim;
  int64_t each = rk_int(c, 1, 1), size;
  AOT_TRY(begin_pieces(c, &self, &dim));
  size = self->sizes[dim];
  RK_CHECK(c, each > 0 || (each == 0 && size == 0), "split size %lld is not possible", (long long)each);
  return pieces(c, self, dim, NULL, size && each ? (size + each - 1) / each : 1, each);
}

static aot_status_t split_sizes(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *list;
  int32_t dim;
  uint32_t n = rk_list(c, 1, &list);
  AOT_TRY(begin_pieces(c, &self, &dim));
  return pieces(c, self, dim, list, n, 0);
}

static aot_status_t chunk(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int32_t dim;
  int64_t n = rk_int(c, 1, 1), size, each;
  AOT_TRY(begin_pieces(c, &self, &dim));
  RK_CHECK(c, n > 0, "%lld chunks are not possible", (long long)n);
  size = self->sizes[dim];
  each = (size + n - 1) / n;
  return pieces(c, self, dim, NULL, each ? (size + each - 1) / each : n, each);
}

static aot_status_t unbind(rk_ctx_t *c) {
  const rk_tensor_t *self;
  uint8_t marks[AOT_MAX_RANK] = {0};
  int32_t dim;
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, self->rank > 0, "a 0-dim tensor cannot be unbound");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  AOT_TRY(rk_view_expect(c, self->sizes[dim]));
  marks[dim] = 1;
  for (int64_t k = 0; k < self->sizes[dim]; k++) {
    rk_tensor_t *r = rk_result(c, (uint32_t)k);
    rk_view_drop(self, marks, r);
    r->offset = self->offset + k * self->strides[dim];
  }
  return AOT_OK;
}

static aot_status_t diagonal(rk_ctx_t *c) {
  const rk_tensor_t *self;
  rk_tensor_t *r = rk_result(c, 0);
  int32_t a, b;
  int64_t offset = rk_int(c, 1, 0), length, n1, n2;
  uint8_t marks[AOT_MAX_RANK] = {0};
  AOT_TRY(rk_view_begin(c, &self));
  AOT_TRY(rk_dim(c, rk_int(c, 2, 0), self->rank, &a));
  AOT_TRY(rk_dim(c, rk_int(c, 3, 1), self->rank, &b));
  RK_CHECK(c, self->rank >= 2 && a != b, "two different dimensions are needed");
  n1 = self->sizes[a];
  n2 = self->sizes[b];
  length = offset >= 0 ? (n1 < n2 - offset ? n1 : n2 - offset) : (n1 + offset < n2 ? n1 + offset : n2);
  if (length < 0) length = 0;
  if (length > 0) r->offset += offset >= 0 ? offset * self->strides[b] : -offset * self->strides[a];
  marks[a] = marks[b] = 1;
  rk_view_drop(self, marks, r);
  r->sizes[r->rank] = length;
  r->strides[r->rank++] = self->strides[a] + self->strides[b];
  return AOT_OK;
}

static aot_status_t unfold(rk_ctx_t *c) {
  const rk_tensor_t *self;
  rk_tensor_t *r = rk_result(c, 0);
  int32_t dim;
  int64_t size = rk_int(c, 2, 1), step = rk_int(c, 3, 1), have, stride;
  AOT_TRY(rk_view_begin(c, &self));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  have = self->rank ? self->sizes[dim] : 1;
  stride = self->rank ? self->strides[dim] : 1;
  RK_CHECK(c, size >= 0 && size <= have && step > 0 && self->rank < AOT_MAX_RANK,
           "windows of %lld every %lld do not fit size %lld", (long long)size, (long long)step, (long long)have);
  if (self->rank) {
    r->sizes[dim] = (have - size) / step + 1;
    r->strides[dim] = stride * step;
  }
  r->sizes[r->rank] = size;
  r->strides[r->rank++] = stride;
  return AOT_OK;
}

static const rk_kernel_t rows[] = {
    RK_VIEW("select.int", select),
    RK_VIEW("select_copy.int", select),
    RK_VIEW("slice.Tensor", slice),
    RK_VIEW("slice_copy.Tensor", slice),
    RK_VIEW("narrow.default", narrow),
    RK_VIEW("narrow_copy.default", narrow),
    RK_VIEW("split.Tensor", split),
    RK_VIEW("split_copy.Tensor", split),
    RK_VIEW("unsafe_split.Tensor", split),
    RK_VIEW("split.sizes", split_sizes),
    RK_VIEW("split_with_sizes.default", split_sizes),
    RK_VIEW("split_with_sizes_copy.default", split_sizes),
    RK_VIEW("unsafe_split_with_sizes.default", split_sizes),
    RK_VIEW("chunk.default", chunk),
    RK_VIEW("unsafe_chunk.default", chunk),
    RK_VIEW("unbind.int", unbind),
    RK_VIEW("unbind_copy.int", unbind),
    RK_VIEW("diagonal.default", diagonal),
    RK_VIEW("diagonal_copy.default", diagonal),
    RK_VIEW("unfold.default", unfold),
    RK_VIEW("unfold_copy.default", unfold),
};
const rk_family_t rk_family_slice = RK_FAMILY(rows);
