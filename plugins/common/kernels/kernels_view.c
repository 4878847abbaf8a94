/* Views: operators whose results are other strides over the first argument's storage. Each row is a geometry function; the
 * kernel proper is "the view, copied". What no strides can express (reshape of a transposed tensor, a cast that changes
 * the dtype) is AOT_E_UNIMPLEMENTED from the geometry, and the copy then goes in element order. */
#include "common/kernels/rk_core.h"
#include <aot/inline.h>
#include <string.h>

/* Result r starts as self. */
static aot_status_t begin(rk_ctx *c, const rk_tensor **out_self) {
  AOT_TRY(rk_need_tensor(c, 0, out_self));
  for (uint32_t r = 0; r < c->call->n_results; r++) c->call->results[r] = **out_self;
  return AOT_OK;
}

static aot_status_t expect_results(rk_ctx *c, int64_t n) {
  RK_CHECK(c, (int64_t)c->call->n_results == n, "the operator gives %lld results, %u are declared", (long long)n,
           c->call->n_results);
  return AOT_OK;
}

aot_status_t rk_run_view(rk_ctx *c) {
  rk_tensor *views, *actual = c->call->results, *copy;
  rk_call call = *c->call;
  rk_ctx inner = *c;
  const rk_tensor *self;
  aot_status_t status;
  RK_SCRATCH(c, (int64_t)call.n_results + 1, views);
  call.results = views;
  inner = *c; /* with the scratch chunk in its list */
  inner.call = &call;
  status = c->kernel->view(&inner);
  c->chunks = inner.chunks;
  if (status == AOT_OK) {
    for (uint32_t r = 0; r < call.n_results; r++) {
      RK_CHECK(c, rk_tensor_fits(&views[r]), "the view reaches outside its storage");
      AOT_TRY(rk_put_tensor(c, r, &views[r]));
    }
    return AOT_OK;
  }
  if (status != AOT_E_UNIMPLEMENTED || !rk_wants(c, 0)) return status;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, rk_numel(self) == rk_numel(actual), "%lld elements do not fill the declared result of %lld",
           (long long)rk_numel(self), (long long)rk_numel(actual));
  /* a dense copy in element order, then any shape */
  RK_SCRATCH(c, 1, copy);
  {
    char *bytes;
    int64_t stride = 1;
    *copy = *self;
    copy->nbytes = (uint64_t)rk_numel(self) * aot_dtype_size(self->dtype);
    RK_SCRATCH(c, (int64_t)copy->nbytes, bytes);
    copy->data = bytes;
    copy->offset = 0;
    for (int32_t d = self->rank - 1; d >= 0; stride *= self->sizes[d], d--) copy->strides[d] = stride;
    rk_copy(copy, self);
    copy->rank = actual->rank;
    stride = 1;
    for (int32_t d = actual->rank - 1; d >= 0; stride *= actual->sizes[d], d--) {
      copy->sizes[d] = actual->sizes[d];
      copy->strides[d] = stride;
    }
    rk_copy(actual, copy);
  }
  return AOT_OK;
}

/* New sizes over the same elements: both shapes are walked from the back; a maximal run of dimensions that step through
 * memory evenly must be filled exactly by a run of new dimensions (operators.md section 3). */
static aot_status_t reshaped(rk_ctx *c, const rk_tensor *t, int32_t rank, const int64_t *sizes, rk_tensor *out) {
  int64_t numel = rk_numel(t), product = 1, stride = 1;
  int32_t v = rank - 1;
  for (int32_t d = 0; d < rank; d++) product *= sizes[d];
  RK_CHECK(c, product == numel, "%lld elements cannot be viewed as %lld", (long long)numel, (long long)product);
  *out = *t;
  out->rank = rank;
  for (int32_t d = rank - 1; d >= 0; stride *= sizes[d] ? sizes[d] : 1, d--) {
    out->sizes[d] = sizes[d];
    out->strides[d] = stride;
  }
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

static aot_status_t resolve_minus_one(rk_ctx *c, int64_t numel, const int64_t *in, uint32_t n, int64_t *out) {
  int64_t known = 1;
  int32_t open = -1;
  RK_CHECK(c, n <= AOT_MAX_RANK, "%u dimensions are more than %d", n, AOT_MAX_RANK);
  for (uint32_t d = 0; d < n; d++) {
    out[d] = in[d];
    if (in[d] == -1) open = (int32_t)d;
    else RK_CHECK(c, in[d] >= 0 && !__builtin_mul_overflow(known, in[d], &known), "size %lld is not possible", (long long)in[d]);
  }
  if (open >= 0) {
    RK_CHECK(c, known > 0 && numel % known == 0, "%lld elements do not divide by %lld", (long long)numel, (long long)known);
    out[open] = numel / known;
  }
  return AOT_OK;
}

static aot_status_t view(rk_ctx *c) {
  const rk_tensor *self;
  const int64_t *list;
  int64_t sizes[AOT_MAX_RANK];
  uint32_t n = rk_list(c, 1, &list);
  AOT_TRY(begin(c, &self));
  AOT_TRY(resolve_minus_one(c, rk_numel(self), list, n, sizes));
  return reshaped(c, self, (int32_t)n, sizes, rk_result(c, 0));
}

static aot_status_t view_as(rk_ctx *c) {
  const rk_tensor *self, *other;
  AOT_TRY(begin(c, &self));
  AOT_TRY(rk_need_tensor(c, 1, &other));
  return reshaped(c, self, other->rank, other->sizes, rk_result(c, 0));
}

static aot_status_t flatten(rk_ctx *c) {
  const rk_tensor *self;
  int64_t sizes[AOT_MAX_RANK] = {1};
  int32_t first, last, n = 0;
  AOT_TRY(begin(c, &self));
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

static aot_status_t unflatten(rk_ctx *c) {
  const rk_tensor *self;
  const int64_t *list;
  int64_t sizes[AOT_MAX_RANK], piece[AOT_MAX_RANK];
  int32_t dim, rank = 0;
  uint32_t n = rk_list(c, 2, &list);
  AOT_TRY(begin(c, &self));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  AOT_TRY(resolve_minus_one(c, self->rank ? self->sizes[dim] : 1, list, n, piece));
  RK_CHECK(c, self->rank - 1 + (int32_t)n <= AOT_MAX_RANK, "too many dimensions");
  for (int32_t d = 0; d < self->rank; d++) {
    if (d != dim) sizes[rank++] = self->sizes[d];
    for (uint32_t k = 0; d == dim && k < n; k++) sizes[rank++] = piece[k];
  }
  return reshaped(c, self, rank, sizes, rk_result(c, 0));
}

static aot_status_t alias(rk_ctx *c) {
  const rk_tensor *self;
  return begin(c, &self);
}

/* to.dtype(self, dtype, ..): itself when nothing changes */
static aot_status_t to_dtype(rk_ctx *c) {
  const rk_tensor *self;
  AOT_TRY(begin(c, &self));
  return rk_int(c, 1, self->dtype) == self->dtype ? AOT_OK : AOT_E_UNIMPLEMENTED;
}

static aot_status_t expanded(rk_ctx *c, const rk_tensor *t, int32_t rank, const int64_t *sizes, rk_tensor *out) {
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

static aot_status_t expand(rk_ctx *c) {
  const rk_tensor *self;
  const int64_t *list;
  uint32_t n = rk_list(c, 1, &list);
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, n <= AOT_MAX_RANK, "too many dimensions");
  return expanded(c, self, (int32_t)n, list, rk_result(c, 0));
}

static aot_status_t expand_as(rk_ctx *c) {
  const rk_tensor *self, *other;
  AOT_TRY(begin(c, &self));
  AOT_TRY(rk_need_tensor(c, 1, &other));
  return expanded(c, self, other->rank, other->sizes, rk_result(c, 0));
}

static aot_status_t permuted(rk_ctx *c, const rk_tensor *t, const int32_t *dims, rk_tensor *out) {
  rk_tensor r = *t;
  (void)c;
  for (int32_t d = 0; d < t->rank; d++) {
    r.sizes[d] = t->sizes[dims[d]];
    r.strides[d] = t->strides[dims[d]];
  }
  *out = r;
  return AOT_OK;
}

static aot_status_t permute(rk_ctx *c) {
  const rk_tensor *self;
  const int64_t *list;
  int32_t dims[AOT_MAX_RANK];
  uint32_t seen = 0, n = rk_list(c, 1, &list);
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, (int32_t)n == self->rank, "%u dimensions are named for rank %d", n, self->rank);
  for (uint32_t k = 0; k < n; k++) {
    AOT_TRY(rk_dim(c, list[k], self->rank, &dims[k]));
    RK_CHECK(c, !(seen >> dims[k] & 1u), "dimension %d is named twice", dims[k]);
    seen |= 1u << dims[k];
  }
  return permuted(c, self, dims, rk_result(c, 0));
}

static aot_status_t swap(rk_ctx *c, int64_t a, int64_t b) {
  const rk_tensor *self;
  int32_t dims[AOT_MAX_RANK], first, second;
  AOT_TRY(begin(c, &self));
  if (self->rank == 0) return AOT_OK;
  AOT_TRY(rk_dim(c, a, self->rank, &first));
  AOT_TRY(rk_dim(c, b, self->rank, &second));
  for (int32_t d = 0; d < self->rank; d++) dims[d] = d == first ? second : d == second ? first : d;
  return permuted(c, self, dims, rk_result(c, 0));
}
static aot_status_t transpose(rk_ctx *c) { return swap(c, rk_int(c, 1, 0), rk_int(c, 2, 1)); }
static aot_status_t last_two(rk_ctx *c) { return swap(c, -2, -1); }
static aot_status_t t(rk_ctx *c) {
  const rk_tensor *self;
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, self->rank <= 2, "rank %d is more than 2", self->rank);
  return self->rank < 2 ? AOT_OK : swap(c, 0, 1);
}

static aot_status_t reversed(rk_ctx *c) {
  const rk_tensor *self;
  int32_t dims[AOT_MAX_RANK];
  AOT_TRY(begin(c, &self));
  for (int32_t d = 0; d < self->rank; d++) dims[d] = self->rank - 1 - d;
  return permuted(c, self, dims, rk_result(c, 0));
}
static aot_status_t ravel(rk_ctx *c) {
  const rk_tensor *self;
  int64_t n;
  AOT_TRY(begin(c, &self));
  n = rk_numel(self);
  return reshaped(c, self, 1, &n, rk_result(c, 0));
}

/* view.dtype(self, dtype): the same bytes; another element size scales the last dimension, whose elements must be adjacent */
static aot_status_t view_dtype(rk_ctx *c) {
  const rk_tensor *self;
  rk_tensor *r = rk_result(c, 0);
  int32_t last, dtype = (int32_t)rk_int(c, 1, 0);
  int64_t old_width, width = (int64_t)aot_dtype_size(dtype);
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, rk_dtype_supported(dtype), "dtype %d is not supported", dtype);
  old_width = (int64_t)aot_dtype_size(self->dtype);
  r->dtype = dtype;
  if (width == old_width) return AOT_OK;
  last = self->rank - 1;
  RK_CHECK(c, self->rank > 0 && self->strides[last] == 1 && self->sizes[last] * old_width % width == 0 && self->offset * old_width % width == 0,
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
static aot_status_t movedim(rk_ctx *c) {
  const rk_tensor *self;
  const int64_t *from, *to;
  int32_t dims[AOT_MAX_RANK], a, b, next = 0;
  uint8_t used[AOT_MAX_RANK] = {0};
  uint32_t n = rk_list(c, 1, &from), m = rk_list(c, 2, &to);
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, n == m, "%u sources for %u destinations", n, m);
  for (int32_t d = 0; d < self->rank; d++) dims[d] = -1;
  for (uint32_t k = 0; k < n; k++) {
    AOT_TRY(rk_dim(c, from[k], self->rank, &a));
    AOT_TRY(rk_dim(c, to[k], self->rank, &b));
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

static aot_status_t unsqueeze(rk_ctx *c) {
  const rk_tensor *self;
  rk_tensor *r = rk_result(c, 0);
  int32_t dim;
  AOT_TRY(begin(c, &self));
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

static aot_status_t drop_marked(rk_ctx *c, const rk_tensor *self, const uint8_t *marks) {
  rk_tensor *r = rk_result(c, 0);
  r->rank = 0;
  for (int32_t d = 0; d < self->rank; d++) {
    if (marks[d]) continue;
    r->sizes[r->rank] = self->sizes[d];
    r->strides[r->rank++] = self->strides[d];
  }
  return AOT_OK;
}

static aot_status_t squeeze_marked(rk_ctx *c, int all) {
  const rk_tensor *self;
  uint8_t marks[AOT_MAX_RANK];
  AOT_TRY(begin(c, &self));
  if (all) memset(marks, 1, sizeof marks);
  else AOT_TRY(rk_dim_marks(c, 1, self->rank, 0, marks));
  for (int32_t d = 0; d < self->rank; d++)
    if (self->sizes[d] != 1) marks[d] = 0;
  return drop_marked(c, self, marks);
}
static aot_status_t squeeze(rk_ctx *c) { return squeeze_marked(c, 1); }
static aot_status_t squeeze_dims(rk_ctx *c) { return squeeze_marked(c, 0); }

static aot_status_t select(rk_ctx *c) {
  const rk_tensor *self;
  uint8_t marks[AOT_MAX_RANK] = {0};
  int32_t dim;
  int64_t index = rk_int(c, 2, 0);
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, self->rank > 0, "a 0-dim tensor has nothing to select");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  RK_CHECK(c, index >= -self->sizes[dim] && index < self->sizes[dim], "index %lld is out of range for dimension %d of size %lld",
           (long long)index, dim, (long long)self->sizes[dim]);
  rk_result(c, 0)->offset += (index < 0 ? index + self->sizes[dim] : index) * self->strides[dim];
  marks[dim] = 1;
  return drop_marked(c, self, marks);
}

static int64_t clamp_index(int64_t i, int64_t size) {
  if (i < 0) i += size;
  return i < 0 ? 0 : i > size ? size : i;
}

static aot_status_t sliced(rk_ctx *c, const rk_tensor *t, int32_t dim, int64_t start, int64_t end, int64_t step, rk_tensor *out) {
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

static aot_status_t slice(rk_ctx *c) {
  const rk_tensor *self;
  int32_t dim;
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, self->rank > 0, "a 0-dim tensor cannot be sliced");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  return sliced(c, self, dim, rk_int(c, 2, 0), rk_int(c, 3, INT64_MAX), rk_int(c, 4, 1), rk_result(c, 0));
}

static aot_status_t narrow(rk_ctx *c) {
  const rk_tensor *self;
  int32_t dim;
  int64_t start, length = rk_int(c, 3, 0);
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, self->rank > 0, "a 0-dim tensor cannot be narrowed");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  start = rk_int(c, 2, 0);
  if (start < 0) start += self->sizes[dim];
  RK_CHECK(c, start >= 0 && length >= 0 && start <= self->sizes[dim] - length, "%lld elements from %lld on exceed size %lld",
           (long long)length, (long long)start, (long long)self->sizes[dim]);
  return sliced(c, self, dim, start, start + length, 1, rk_result(c, 0));
}

/* Consecutive pieces along a dimension: sizes[k], or `each` when sizes is NULL (the last may be smaller). */
static aot_status_t pieces(rk_ctx *c, const rk_tensor *self, int32_t dim, const int64_t *sizes, int64_t n, int64_t each) {
  int64_t start = 0;
  AOT_TRY(expect_results(c, n));
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

static aot_status_t begin_pieces(rk_ctx *c, const rk_tensor **out_self, int32_t *out_dim) {
  AOT_TRY(begin(c, out_self));
  RK_CHECK(c, (*out_self)->rank > 0, "a 0-dim tensor cannot be split");
  return rk_dim(c, rk_int(c, 2, 0), (*out_self)->rank, out_dim);
}

static aot_status_t split(rk_ctx *c) {
  const rk_tensor *self;
  int32_t dim;
  int64_t each = rk_int(c, 1, 1), size;
  AOT_TRY(begin_pieces(c, &self, &dim));
  size = self->sizes[dim];
  RK_CHECK(c, each > 0 || (each == 0 && size == 0), "split size %lld is not possible", (long long)each);
  return pieces(c, self, dim, NULL, size && each ? (size + each - 1) / each : 1, each);
}

static aot_status_t split_sizes(rk_ctx *c) {
  const rk_tensor *self;
  const int64_t *list;
  int32_t dim;
  uint32_t n = rk_list(c, 1, &list);
  AOT_TRY(begin_pieces(c, &self, &dim));
  return pieces(c, self, dim, list, n, 0);
}

static aot_status_t chunk(rk_ctx *c) {
  const rk_tensor *self;
  int32_t dim;
  int64_t n = rk_int(c, 1, 1), size, each;
  AOT_TRY(begin_pieces(c, &self, &dim));
  RK_CHECK(c, n > 0, "%lld chunks are not possible", (long long)n);
  size = self->sizes[dim];
  each = (size + n - 1) / n;
  return pieces(c, self, dim, NULL, each ? (size + each - 1) / each : n, each);
}

static aot_status_t unbind(rk_ctx *c) {
  const rk_tensor *self;
  uint8_t marks[AOT_MAX_RANK] = {0};
  int32_t dim;
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, self->rank > 0, "a 0-dim tensor cannot be unbound");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  AOT_TRY(expect_results(c, self->sizes[dim]));
  marks[dim] = 1;
  for (int64_t k = 0; k < self->sizes[dim]; k++) {
    rk_tensor *r = rk_result(c, (uint32_t)k);
    r->rank = 0;
    for (int32_t d = 0; d < self->rank; d++) {
      if (marks[d]) continue;
      r->sizes[r->rank] = self->sizes[d];
      r->strides[r->rank++] = self->strides[d];
    }
    r->offset = self->offset + k * self->strides[dim];
  }
  return AOT_OK;
}

static aot_status_t as_strided(rk_ctx *c) {
  const rk_tensor *self;
  rk_tensor *r = rk_result(c, 0);
  const int64_t *sizes, *strides;
  uint32_t n = rk_list(c, 1, &sizes), m = rk_list(c, 2, &strides);
  AOT_TRY(begin(c, &self));
  RK_CHECK(c, n == m && n <= AOT_MAX_RANK, "%u sizes come with %u strides", n, m);
  r->rank = (int32_t)n;
  r->offset = rk_int(c, 3, self->offset);
  for (uint32_t d = 0; d < n; d++) {
    r->sizes[d] = sizes[d];
    r->strides[d] = strides[d];
  }
  return AOT_OK;
}

static aot_status_t diagonal(rk_ctx *c) {
  const rk_tensor *self;
  rk_tensor *r = rk_result(c, 0);
  int32_t a, b;
  int64_t offset = rk_int(c, 1, 0), length, n1, n2;
  uint8_t marks[AOT_MAX_RANK] = {0};
  AOT_TRY(begin(c, &self));
  AOT_TRY(rk_dim(c, rk_int(c, 2, 0), self->rank, &a));
  AOT_TRY(rk_dim(c, rk_int(c, 3, 1), self->rank, &b));
  RK_CHECK(c, self->rank >= 2 && a != b, "two different dimensions are needed");
  n1 = self->sizes[a];
  n2 = self->sizes[b];
  length = offset >= 0 ? (n1 < n2 - offset ? n1 : n2 - offset) : (n1 + offset < n2 ? n1 + offset : n2);
  if (length < 0) length = 0;
  if (length > 0) r->offset += offset >= 0 ? offset * self->strides[b] : -offset * self->strides[a];
  marks[a] = marks[b] = 1;
  AOT_TRY(drop_marked(c, self, marks));
  r->sizes[r->rank] = length;
  r->strides[r->rank++] = self->strides[a] + self->strides[b];
  return AOT_OK;
}

static aot_status_t unfold(rk_ctx *c) {
  const rk_tensor *self;
  rk_tensor *r = rk_result(c, 0);
  int32_t dim;
  int64_t size = rk_int(c, 2, 1), step = rk_int(c, 3, 1), have, stride;
  AOT_TRY(begin(c, &self));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), self->rank, &dim));
  have = self->rank ? self->sizes[dim] : 1;
  stride = self->rank ? self->strides[dim] : 1;
  RK_CHECK(c, size >= 0 && size <= have && step > 0 && self->rank < AOT_MAX_RANK, "windows of %lld every %lld do not fit size %lld",
           (long long)size, (long long)step, (long long)have);
  if (self->rank) {
    r->sizes[dim] = (have - size) / step + 1;
    r->strides[dim] = stride * step;
  }
  r->sizes[r->rank] = size;
  r->strides[r->rank++] = stride;
  return AOT_OK;
}

/* broadcast_tensors(tensors): every one expanded to the common shape */
static aot_status_t broadcast_tensors(rk_ctx *c) {
  const rk_tensor *const *list;
  uint32_t n;
  int32_t rank = 0;
  int64_t sizes[AOT_MAX_RANK];
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  AOT_TRY(expect_results(c, n));
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

#define VIEW(name, geometry) {"aten." name, rk_run_view, geometry, NULL, 0}
static const rk_kernel rows[] = {
    VIEW("view.default", view),
    VIEW("_unsafe_view.default", view),
    VIEW("reshape.default", view),
    VIEW("view_copy.default", view),
    VIEW("_reshape_copy.default", view),
    VIEW("_reshape_alias.default", view),
    VIEW("view_as.default", view_as),
    VIEW("reshape_as.default", view_as),
    VIEW("flatten.using_ints", flatten),
    VIEW("unflatten.int", unflatten),
    VIEW("alias.default", alias),
    VIEW("alias_copy.default", alias),
    VIEW("detach.default", alias),
    VIEW("detach_copy.default", alias),
    VIEW("lift.default", alias),
    VIEW("lift_fresh.default", alias),
    VIEW("contiguous.default", alias),
    {"aten.dropout.default", rk_run_view, alias, NULL, RK_DROPOUT},
    {"aten.feature_dropout.default", rk_run_view, alias, NULL, RK_DROPOUT},
    {"aten.alpha_dropout.default", rk_run_view, alias, NULL, RK_DROPOUT},
    VIEW("to.dtype", to_dtype),
    VIEW("expand.default", expand),
    VIEW("expand_copy.default", expand),
    VIEW("broadcast_to.default", expand),
    VIEW("expand_as.default", expand_as),
    VIEW("broadcast_tensors.default", broadcast_tensors),
    VIEW("permute.default", permute),
    VIEW("permute_copy.default", permute),
    VIEW("transpose.int", transpose),
    VIEW("transpose_copy.int", transpose),
    VIEW("swapaxes.default", transpose),
    VIEW("swapdims.default", transpose),
    VIEW("mT.default", last_two),
    VIEW("adjoint.default", last_two),
    VIEW("numpy_T.default", reversed),
    VIEW("ravel.default", ravel),
    VIEW("view.dtype", view_dtype),
    VIEW("t.default", t),
    VIEW("t_copy.default", t),
    VIEW("movedim.int", movedim),
    VIEW("movedim.intlist", movedim),
    VIEW("moveaxis.int", movedim),
    VIEW("moveaxis.intlist", movedim),
    VIEW("unsqueeze.default", unsqueeze),
    VIEW("unsqueeze_copy.default", unsqueeze),
    VIEW("squeeze.default", squeeze),
    VIEW("squeeze.dim", squeeze_dims),
    VIEW("squeeze.dims", squeeze_dims),
    VIEW("squeeze_copy.default", squeeze),
    VIEW("squeeze_copy.dim", squeeze_dims),
    VIEW("squeeze_copy.dims", squeeze_dims),
    VIEW("select.int", select),
    VIEW("select_copy.int", select),
    VIEW("slice.Tensor", slice),
    VIEW("slice_copy.Tensor", slice),
    VIEW("narrow.default", narrow),
    VIEW("narrow_copy.default", narrow),
    VIEW("split.Tensor", split),
    VIEW("split_copy.Tensor", split),
    VIEW("unsafe_split.Tensor", split),
    VIEW("split.sizes", split_sizes),
    VIEW("split_with_sizes.default", split_sizes),
    VIEW("split_with_sizes_copy.default", split_sizes),
    VIEW("unsafe_split_with_sizes.default", split_sizes),
    VIEW("chunk.default", chunk),
    VIEW("unsafe_chunk.default", chunk),
    VIEW("unbind.int", unbind),
    VIEW("unbind_copy.int", unbind),
    {"aten.as_strided.default", rk_run_view, as_strided, NULL, RK_STORAGE},
    {"aten.as_strided_copy.default", rk_run_view, as_strided, NULL, RK_STORAGE},
    VIEW("diagonal.default", diagonal),
    VIEW("diagonal_copy.default", diagonal),
    VIEW("unfold.default", unfold),
    VIEW("unfold_copy.default", unfold),
};
const rk_family rk_family_view = RK_FAMILY(rows);
