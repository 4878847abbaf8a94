/* Elements copied about without arithmetic: casts and clones, cat, stack, repeat, flip, roll, triangles, padding, and the
 * *_scatter forms (a copy of self with src written over a view of it). All work on strided tensors, so that every dtype
 * passes unchanged. */
#include "common/kernels/rk_core.h"
#include <aot/inline.h>
#include <string.h>

/* ---- whole copies ---- */

static aot_status_t copy_first(rk_ctx *c) {
  const rk_tensor *self;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  return rk_put_tensor(c, 0, self);
}

/* _local_scalar_dense(self): the one element as a 0-dim result */
static aot_status_t only_element(rk_ctx *c) {
  const rk_tensor *self;
  rk_tensor one;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, rk_numel(self) == 1, "a tensor of %lld elements is no number", (long long)rk_numel(self));
  one = *self;
  one.rank = 0;
  return rk_put_tensor(c, 0, &one);
}

/* copy(self, src): src broadcast to self */
static aot_status_t copy_second(rk_ctx *c) {
  const rk_tensor *self, *src;
  rk_iter it;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_need_tensor(c, 1, &src));
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  rk_iter_init(&it, self->rank, self->sizes);
  RK_CHECK(c, rk_iter_add(&it, src), "the source does not broadcast to self");
  rk_copy(rk_result(c, 0), src);
  return AOT_OK;
}

/* aot.with_history(history, value): the value; the other argument matters to differentiation only */
static aot_status_t with_history(rk_ctx *c) {
  const rk_tensor *value;
  AOT_TRY(rk_need_tensor(c, 1, &value));
  return rk_put_tensor(c, 0, value);
}

/* native_dropout(input, p, train) -> (output, mask), drawn only when p = 0 or not training: all kept */
static aot_status_t native_dropout(rk_ctx *c) {
  AOT_TRY(copy_first(c));
  if (rk_wants(c, 1)) rk_fill_i(rk_result(c, 1), 1);
  return AOT_OK;
}

/* ---- concatenation ---- */

/* A window of the result. */
static rk_tensor window(const rk_tensor *t, int32_t dim, int64_t start, int64_t size) {
  rk_tensor w = *t;
  w.offset += start * t->strides[dim];
  w.sizes[dim] = size;
  return w;
}

static int is_legacy_empty(const rk_tensor *t) { return t->rank == 1 && t->sizes[0] == 0; }

static aot_status_t cat(rk_ctx *c) {
  const rk_tensor *const *list;
  rk_tensor *r = rk_result(c, 0);
  uint32_t n;
  int32_t dim;
  int64_t at = 0;
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), r->rank, &dim));
  for (uint32_t k = 0; k < n; k++) {
    rk_tensor w;
    RK_CHECK(c, list[k], "tensor %u is absent", k);
    if (is_legacy_empty(list[k])) continue;
    RK_CHECK(c, list[k]->rank == r->rank && r->rank > 0, "tensor %u has rank %d, the result %d", k, list[k]->rank, r->rank);
    for (int32_t d = 0; d < r->rank; d++)
      RK_CHECK(c, d == dim || list[k]->sizes[d] == r->sizes[d], "tensor %u has size %lld at dimension %d, the result %lld", k,
               (long long)list[k]->sizes[d], d, (long long)r->sizes[d]);
    RK_CHECK(c, list[k]->sizes[dim] <= r->sizes[dim] - at, "the tensors exceed size %lld of the result", (long long)r->sizes[dim]);
    w = window(r, dim, at, list[k]->sizes[dim]);
    rk_copy(&w, list[k]);
    at += list[k]->sizes[dim];
  }
  RK_CHECK(c, r->rank > 0 && (at == r->sizes[dim] || rk_numel(r) == 0), "the tensors fill %lld of size %lld", (long long)at,
           (long long)(r->rank ? r->sizes[dim] : 0));
  return AOT_OK;
}

/* The result without dimension dim, at index k of it. */
static rk_tensor slab(const rk_tensor *t, int32_t dim, int64_t k) {
  rk_tensor w = *t;
  w.offset += k * t->strides[dim];
  w.rank--;
  for (int32_t d = dim; d < w.rank; d++) {
    w.sizes[d] = t->sizes[d + 1];
    w.strides[d] = t->strides[d + 1];
  }
  return w;
}

static int same_shape(const rk_tensor *a, const rk_tensor *b) {
  return a->rank == b->rank && (a->rank == 0 || memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0);
}

static aot_status_t stack(rk_ctx *c) {
  const rk_tensor *const *list;
  rk_tensor *r = rk_result(c, 0);
  uint32_t n;
  int32_t dim;
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), r->rank, &dim));
  RK_CHECK(c, r->rank > 0 && r->sizes[dim] == (int64_t)n, "%u tensors do not fill the declared result", n);
  for (uint32_t k = 0; k < n; k++) {
    rk_tensor w = slab(r, dim, k);
    RK_CHECK(c, list[k] && same_shape(&w, list[k]), "tensor %u has another shape than the result's slab", k);
    rk_copy(&w, list[k]);
  }
  return AOT_OK;
}

/* block_diag(tensors) */
static aot_status_t block_diag(rk_ctx *c) {
  const rk_tensor *const *list;
  rk_tensor *r = rk_result(c, 0);
  uint32_t n;
  int64_t row = 0, column = 0;
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  RK_CHECK(c, r->rank == 2, "the result is no matrix");
  rk_fill_i(r, 0);
  for (uint32_t k = 0; k < n; k++) {
    int64_t h, w;
    rk_tensor block = *r;
    RK_CHECK(c, list[k] && list[k]->rank <= 2, "tensor %u is no matrix", k);
    h = list[k]->rank == 2 ? list[k]->sizes[0] : 1;
    w = list[k]->rank ? list[k]->sizes[list[k]->rank - 1] : 1;
    RK_CHECK(c, h <= r->sizes[0] - row && w <= r->sizes[1] - column, "the blocks exceed the declared result");
    block.offset += row * r->strides[0] + column * r->strides[1];
    block.sizes[0] = h;
    block.sizes[1] = w;
    rk_copy(&block, list[k]);
    row += h;
    column += w;
  }
  return AOT_OK;
}

/* ---- element by element: result[index] = self[f(index)] ---- */

/* Maps a result index to one of self; 0: no such element, leave the result alone. */
typedef int (*index_map)(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out_index);

static aot_status_t gather_map(rk_ctx *c, const rk_tensor *self, index_map map, const void *data) {
  rk_tensor *r = rk_result(c, 0);
  rk_iter it;
  rk_iter_init(&it, r->rank, r->sizes);
  rk_iter_add(&it, r);
  for (; it.more; rk_iter_next(&it))
    for (int64_t k = 0; k < it.run; k++) {
      int64_t from[AOT_MAX_RANK];
      rk_tensor one = *r, src = *self;
      if (r->rank) it.index[r->rank - 1] = k;
      if (map(data, self, it.index, from)) {
        one.rank = src.rank = 0;
        one.offset = it.at[0] + k * it.step[0];
        for (int32_t d = 0; d < self->rank; d++) src.offset += from[d] * self->strides[d];
        rk_copy(&one, &src);
      }
      if (r->rank) it.index[r->rank - 1] = 0;
    }
  return AOT_OK;
}

typedef struct per_dim {
  int32_t lead; /* leading result dimensions that self lacks */
  int64_t v[AOT_MAX_RANK];
} per_dim;

static int map_repeat(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  const per_dim *p = data;
  for (int32_t d = 0; d < self->rank; d++) out[d] = self->sizes[d] ? index[d + p->lead] % self->sizes[d] : 0;
  return 1;
}
static aot_status_t repeat(rk_ctx *c) {
  const rk_tensor *self;
  const int64_t *times;
  per_dim p = {0, {0}};
  int64_t sizes[AOT_MAX_RANK];
  uint32_t n = rk_list(c, 1, &times);
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, (int32_t)n >= self->rank && n <= AOT_MAX_RANK, "%u repeats for rank %d", n, self->rank);
  p.lead = (int32_t)n - self->rank;
  for (int32_t d = 0; d < (int32_t)n; d++) sizes[d] = times[d] * (d < p.lead ? 1 : self->sizes[d - p.lead]);
  AOT_TRY(rk_check_result(c, 0, (int32_t)n, sizes));
  return gather_map(c, self, map_repeat, &p);
}

static int map_flip(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  const uint8_t *marks = data;
  for (int32_t d = 0; d < self->rank; d++) out[d] = marks[d] ? self->sizes[d] - 1 - index[d] : index[d];
  return 1;
}
static aot_status_t flip(rk_ctx *c) {
  const rk_tensor *self;
  uint8_t marks[AOT_MAX_RANK];
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_dim_marks(c, 1, self->rank, 0, marks));
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  return gather_map(c, self, map_flip, marks);
}

/* roll(self, shifts, dims): without dims the flattened tensor */
static int map_roll(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  const per_dim *p = data;
  for (int32_t d = 0; d < self->rank; d++) {
    int64_t k = self->sizes[d] ? (index[d] - p->v[d]) % self->sizes[d] : 0;
    out[d] = k < 0 ? k + self->sizes[d] : k;
  }
  return 1;
}
static int map_roll_flat(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  int64_t flat = 0, n = rk_numel(self);
  for (int32_t d = 0; d < self->rank; d++) flat = flat * self->sizes[d] + index[d];
  flat = n ? (flat - *(const int64_t *)data) % n : 0;
  if (flat < 0) flat += n;
  for (int32_t d = self->rank - 1; d >= 0; flat /= self->sizes[d], d--) out[d] = flat % self->sizes[d];
  return 1;
}
static aot_status_t roll(rk_ctx *c) {
  const rk_tensor *self;
  const int64_t *shifts, *dims;
  per_dim p = {0, {0}};
  uint32_t n = rk_list(c, 1, &shifts), m = rk_list(c, 2, &dims);
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  if (m == 0) return gather_map(c, self, map_roll_flat, n ? shifts : p.v);
  RK_CHECK(c, n == m, "%u shifts for %u dimensions", n, m);
  for (uint32_t k = 0; k < n; k++) {
    int32_t d;
    AOT_TRY(rk_dim(c, dims[k], self->rank, &d));
    p.v[d] += shifts[k];
  }
  return gather_map(c, self, map_roll, &p);
}

/* rot90(self, k, dims) */
typedef struct rotation { int32_t a, b; int64_t k; } rotation;
static int map_rot90(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  const rotation *r = data;
  int64_t i = index[r->a], j = index[r->b];
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  if (r->k == 1) { out[r->a] = j; out[r->b] = self->sizes[r->b] - 1 - i; }
  if (r->k == 2) { out[r->a] = self->sizes[r->a] - 1 - i; out[r->b] = self->sizes[r->b] - 1 - j; }
  if (r->k == 3) { out[r->a] = self->sizes[r->a] - 1 - j; out[r->b] = i; }
  return 1;
}
static aot_status_t rot90(rk_ctx *c) {
  const rk_tensor *self;
  int64_t preset[2] = {0, 1}, dims[2], sizes[AOT_MAX_RANK];
  rotation r;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_ints(c, 2, 2, preset, dims));
  AOT_TRY(rk_dim(c, dims[0], self->rank, &r.a));
  AOT_TRY(rk_dim(c, dims[1], self->rank, &r.b));
  RK_CHECK(c, self->rank >= 2 && r.a != r.b, "two different dimensions are needed");
  r.k = ((rk_int(c, 1, 1) % 4) + 4) % 4;
  memcpy(sizes, self->sizes, sizeof sizes);
  if (r.k % 2) {
    sizes[r.a] = self->sizes[r.b];
    sizes[r.b] = self->sizes[r.a];
  }
  AOT_TRY(rk_check_result(c, 0, self->rank, sizes));
  return gather_map(c, self, map_rot90, &r);
}

typedef struct triangle { int64_t diagonal; int lower; } triangle;
static int map_triangle(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  const triangle *t = data;
  int64_t away = index[self->rank - 1] - index[self->rank - 2];
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  return t->lower ? away <= t->diagonal : away >= t->diagonal;
}
static aot_status_t tri(rk_ctx *c, int lower) {
  const rk_tensor *self;
  triangle t = {rk_int(c, 1, 0), lower};
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, self->rank >= 2, "rank %d is less than 2", self->rank);
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  rk_fill_i(rk_result(c, 0), 0);
  return gather_map(c, self, map_triangle, &t);
}
static aot_status_t tril(rk_ctx *c) { return tri(c, 1); }
static aot_status_t triu(rk_ctx *c) { return tri(c, 0); }

/* ---- padding: pad lists (left, right) of the last dimension first ---- */

#define PAD_CONSTANT 0
#define PAD_REFLECT 1
#define PAD_REPLICATE 2
#define PAD_CIRCULAR 3
typedef struct padding { int mode; int64_t left[AOT_MAX_RANK]; } padding;

static int map_pad(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  const padding *p = data;
  for (int32_t d = 0; d < self->rank; d++) {
    int64_t k = index[d] - p->left[d], n = self->sizes[d];
    if (k < 0 || k >= n) {
      if (p->mode == PAD_CONSTANT) return 0;
      if (p->mode == PAD_REPLICATE) k = k < 0 ? 0 : n - 1;
      if (p->mode == PAD_REFLECT) k = k < 0 ? -k : 2 * (n - 1) - k;
      if (p->mode == PAD_CIRCULAR) k = ((k % n) + n) % n;
      if (k < 0 || k >= n) return 0;
    }
    out[d] = k;
  }
  return 1;
}

static aot_status_t read_padding(rk_ctx *c, const rk_tensor *self, int mode, padding *p) {
  const int64_t *list;
  int64_t sizes[AOT_MAX_RANK];
  uint32_t n = rk_list(c, 1, &list);
  memset(p, 0, sizeof *p);
  p->mode = mode;
  RK_CHECK(c, n % 2 == 0 && (int32_t)n / 2 <= self->rank, "%u padding numbers for rank %d", n, self->rank);
  memcpy(sizes, self->sizes, sizeof sizes);
  for (uint32_t k = 0; k < n / 2; k++) {
    int32_t d = self->rank - 1 - (int32_t)k;
    p->left[d] = list[2 * k];
    sizes[d] += list[2 * k] + list[2 * k + 1];
    RK_CHECK(c, mode != PAD_REFLECT || (list[2 * k] < self->sizes[d] && list[2 * k + 1] < self->sizes[d]),
             "reflection padding %lld is not less than size %lld", (long long)list[2 * k], (long long)self->sizes[d]);
  }
  return rk_check_result(c, 0, self->rank, sizes);
}

static aot_status_t pad(rk_ctx *c, int mode) {
  const rk_tensor *self;
  padding p;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(read_padding(c, self, mode, &p));
  return gather_map(c, self, map_pad, &p);
}
static aot_status_t constant_pad(rk_ctx *c) {
  if (rk_has(c, 2) && c->call->args[2].kind == AOT_ARG_FLOAT) rk_fill_f(rk_result(c, 0), rk_float(c, 2, 0));
  else rk_fill_i(rk_result(c, 0), rk_int(c, 2, 0));
  return pad(c, PAD_CONSTANT);
}
static aot_status_t reflection_pad(rk_ctx *c) { return pad(c, PAD_REFLECT); }
static aot_status_t replication_pad(rk_ctx *c) { return pad(c, PAD_REPLICATE); }

/* *_pad_backward(grad, self, padding): every gradient element is added where its value came from */
static aot_status_t pad_backward(rk_ctx *c, int mode) {
  const rk_tensor *grad, *self;
  rk_array g, r;
  padding p = {mode, {0}};
  const int64_t *list;
  int64_t index[AOT_MAX_RANK] = {0};
  uint32_t n = rk_list(c, 2, &list);
  AOT_TRY(rk_need_tensor(c, 0, &grad));
  AOT_TRY(rk_need_tensor(c, 1, &self));
  AOT_TRY(rk_dense_f(c, grad, &g));
  RK_CHECK(c, grad->rank == self->rank && (int32_t)n / 2 <= self->rank, "gradient and input differ in rank");
  AOT_TRY(rk_new_f(c, self->rank, self->sizes, &r));
  for (uint32_t k = 0; k < n / 2; k++) p.left[self->rank - 1 - (int32_t)k] = list[2 * k];
  for (int64_t e = 0; e < g.numel; e++) {
    int64_t from[AOT_MAX_RANK], flat = 0;
    if (map_pad(&p, self, index, from)) {
      for (int32_t d = 0; d < self->rank; d++) flat = flat * self->sizes[d] + from[d];
      r.f[flat] += g.f[e];
    }
    for (int32_t d = g.rank - 1; d >= 0 && ++index[d] == g.sizes[d]; d--) index[d] = 0;
  }
  return rk_put_f(c, 0, &r);
}
static aot_status_t reflection_pad_backward(rk_ctx *c) { return pad_backward(c, PAD_REFLECT); }
static aot_status_t replication_pad_backward(rk_ctx *c) { return pad_backward(c, PAD_REPLICATE); }

/* ---- blocks of channels ---- */

/* pixel_shuffle(self, r): [.., C*r*r, H, W] -> [.., C, H*r, W*r], and back */
static int map_shuffle(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  int64_t r = *(const int64_t *)data;
  int32_t ch = self->rank - 3;
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  out[ch] = (index[ch] * r + index[ch + 1] % r) * r + index[ch + 2] % r;
  out[ch + 1] = index[ch + 1] / r;
  out[ch + 2] = index[ch + 2] / r;
  return 1;
}
static int map_unshuffle(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  int64_t r = *(const int64_t *)data;
  int32_t ch = self->rank - 3;
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  out[ch] = index[ch] / (r * r);
  out[ch + 1] = index[ch + 1] * r + index[ch] / r % r;
  out[ch + 2] = index[ch + 2] * r + index[ch] % r;
  return 1;
}
static aot_status_t pixels(rk_ctx *c, int un) {
  const rk_tensor *self;
  int64_t r = rk_int(c, 1, 1), sizes[AOT_MAX_RANK];
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, self->rank >= 3 && r > 0, "rank %d is less than 3", self->rank);
  memcpy(sizes, self->sizes, sizeof sizes);
  for (int32_t d = self->rank - 2; d < self->rank; d++) {
    RK_CHECK(c, !un || sizes[d] % r == 0, "size %lld does not divide by %lld", (long long)sizes[d], (long long)r);
    sizes[d] = un ? sizes[d] / r : sizes[d] * r;
  }
  RK_CHECK(c, un || sizes[self->rank - 3] % (r * r) == 0, "channels do not divide by %lld", (long long)(r * r));
  sizes[self->rank - 3] = un ? sizes[self->rank - 3] * r * r : sizes[self->rank - 3] / (r * r);
  AOT_TRY(rk_check_result(c, 0, self->rank, sizes));
  return gather_map(c, self, un ? map_unshuffle : map_shuffle, &r);
}
static aot_status_t pixel_shuffle(rk_ctx *c) { return pixels(c, 0); }
static aot_status_t pixel_unshuffle(rk_ctx *c) { return pixels(c, 1); }

static int map_channels(const void *data, const rk_tensor *self, const int64_t *index, int64_t *out) {
  int64_t groups = *(const int64_t *)data, per = self->sizes[1] / groups;
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  out[1] = index[1] % groups * per + index[1] / groups;
  return 1;
}
static aot_status_t channel_shuffle(rk_ctx *c) {
  const rk_tensor *self;
  int64_t groups = rk_int(c, 1, 1);
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, self->rank >= 2 && groups > 0 && self->sizes[1] % groups == 0, "channels do not divide by %lld groups", (long long)groups);
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  return gather_map(c, self, map_channels, &groups);
}

/* diag_embed(self, offset, dim1, dim2) */
static aot_status_t diag_embed(rk_ctx *c) {
  const rk_tensor *self;
  rk_tensor *r = rk_result(c, 0), d;
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
  RK_CHECK(c, same_shape(&d, self), "the declared result does not fit");
  rk_fill_i(r, 0);
  rk_copy(&d, self);
  return AOT_OK;
}

/* ---- a copy of self with src over a view of it: the view's own geometry, taken of the result ---- */

static aot_status_t geometry_of(rk_ctx *c, const char *view_name, const rk_arg *args, uint32_t n_args, rk_tensor *out) {
  const rk_kernel *k = rk_find(aot_str(view_name));
  rk_call call = {args, n_args, out, 1};
  rk_ctx inner = *c;
  aot_status_t status;
  inner.call = &call;
  inner.kernel = k;
  status = k->view(&inner);
  c->chunks = inner.chunks;
  return status;
}

/* xxx_scatter(self, src, rest..) with xxx(self, rest..) */
static aot_status_t scatter_view(rk_ctx *c, const char *view_name) {
  const rk_tensor *self, *src;
  rk_tensor target;
  rk_arg args[8];
  uint32_t n = 1;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_need_tensor(c, 1, &src));
  AOT_TRY(rk_put_tensor(c, 0, self));
  args[0] = rk_arg_of_tensor(rk_result(c, 0));
  for (uint32_t a = 2; a < c->call->n_args && n < 8; a++) args[n++] = c->call->args[a];
  AOT_TRY(geometry_of(c, view_name, args, n, &target));
  RK_CHECK(c, same_shape(&target, src), "the source has another shape than the view it is written over");
  RK_CHECK(c, rk_tensor_fits(&target), "the view reaches outside its storage");
  rk_copy(&target, src);
  return AOT_OK;
}
static aot_status_t slice_scatter(rk_ctx *c) { return scatter_view(c, "aten.slice.Tensor"); }
static aot_status_t select_scatter(rk_ctx *c) { return scatter_view(c, "aten.select.int"); }
static aot_status_t diagonal_scatter(rk_ctx *c) { return scatter_view(c, "aten.diagonal.default"); }

/* as_strided_scatter(self, src, size, stride, offset): positions are those of self's declared storage, which must be dense
 * from its offset on; other layouts are refused */
static aot_status_t as_strided_scatter(rk_ctx *c) {
  const rk_tensor *self, *src, *given;
  rk_tensor storage, target, shifted;
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
  RK_CHECK(c, rk_tensor_fits(&target), "the strided view reaches outside self");
  RK_CHECK(c, same_shape(&target, src), "the source has another shape than the view it is written over");
  rk_copy(&target, src);
  shifted = storage;
  return rk_put_tensor(c, 0, &shifted);
}

/* slice_backward(grad, input_sizes, dim, start, end, step), select_backward(grad, input_sizes, dim, index),
 * diagonal_backward, unfold_backward: zeros with grad over (or added into) the view */
static aot_status_t view_backward(rk_ctx *c, const char *view_name) {
  const rk_tensor *grad;
  rk_tensor target, *r = rk_result(c, 0);
  const int64_t *sizes;
  rk_arg args[8];
  uint32_t n = rk_list(c, 1, &sizes), k = 1;
  AOT_TRY(rk_need_tensor(c, 0, &grad));
  AOT_TRY(rk_check_result(c, 0, (int32_t)n, sizes));
  rk_fill_i(r, 0);
  args[0] = rk_arg_of_tensor(r);
  for (uint32_t a = 2; a < c->call->n_args && k < 8; a++) args[k++] = c->call->args[a];
  AOT_TRY(geometry_of(c, view_name, args, k, &target));
  RK_CHECK(c, same_shape(&target, grad), "the gradient has another shape than the view");
  rk_copy(&target, grad);
  return AOT_OK;
}
static aot_status_t slice_backward(rk_ctx *c) { return view_backward(c, "aten.slice.Tensor"); }
static aot_status_t select_backward(rk_ctx *c) { return view_backward(c, "aten.select.int"); }
static aot_status_t diagonal_backward(rk_ctx *c) { return view_backward(c, "aten.diagonal.default"); }

/* unfold_backward(grad, input_sizes, dim, size, step): windows may overlap, so it adds */
static aot_status_t unfold_backward(rk_ctx *c) {
  const int64_t *sizes;
  uint32_t n = rk_list(c, 1, &sizes);
  rk_array g, r;
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

/* one_hot(self, num_classes) */
static aot_status_t one_hot(rk_ctx *c) {
  rk_array x, y;
  rk_tensor *r = rk_result(c, 0);
  int64_t sizes[AOT_MAX_RANK], classes = rk_int(c, 1, -1);
  AOT_TRY(rk_need_i(c, 0, &x));
  RK_CHECK(c, x.rank < AOT_MAX_RANK && r->rank == x.rank + 1, "the declared result does not fit");
  if (classes < 0) classes = r->sizes[x.rank];
  memcpy(sizes, x.sizes, sizeof sizes);
  sizes[x.rank] = classes;
  AOT_TRY(rk_new_i(c, x.rank + 1, sizes, &y));
  for (int64_t k = 0; k < x.numel; k++) {
    RK_CHECK(c, x.i[k] >= 0 && x.i[k] < classes, "class %lld is out of range for %lld classes", (long long)x.i[k], (long long)classes);
    y.i[k * classes + x.i[k]] = 1;
  }
  return rk_put_i(c, 0, &y);
}

#define ROW(name, fn) {"aten." name, fn, NULL, NULL, 0}
static const rk_kernel rows[] = {
    ROW("clone.default", copy_first),
    ROW("lift_fresh_copy.default", copy_first),
    ROW("_to_copy.default", copy_first),
    ROW("to.dtype_layout", copy_first),
    ROW("to.device", copy_first),
    ROW("to.other", copy_first),
    ROW("type_as.default", copy_first),
    ROW("copy.default", copy_second),
    {"aot.with_history.default", with_history, NULL, NULL, 0},
    ROW("_local_scalar_dense.default", only_element),
    ROW("item.default", only_element),
    {"aten.native_dropout.default", native_dropout, NULL, NULL, RK_DROPOUT},
    ROW("cat.default", cat),
    ROW("concat.default", cat),
    ROW("concatenate.default", cat),
    ROW("stack.default", stack),
    ROW("block_diag.default", block_diag),
    ROW("repeat.default", repeat),
    ROW("tile.default", repeat),
    ROW("flip.default", flip),
    ROW("roll.default", roll),
    ROW("rot90.default", rot90),
    ROW("tril.default", tril),
    ROW("triu.default", triu),
    ROW("constant_pad_nd.default", constant_pad),
    ROW("reflection_pad1d.default", reflection_pad),
    ROW("reflection_pad2d.default", reflection_pad),
    ROW("reflection_pad3d.default", reflection_pad),
    ROW("replication_pad1d.default", replication_pad),
    ROW("replication_pad2d.default", replication_pad),
    ROW("replication_pad3d.default", replication_pad),
    ROW("reflection_pad1d_backward.default", reflection_pad_backward),
    ROW("reflection_pad2d_backward.default", reflection_pad_backward),
    ROW("reflection_pad3d_backward.default", reflection_pad_backward),
    ROW("replication_pad1d_backward.default", replication_pad_backward),
    ROW("replication_pad2d_backward.default", replication_pad_backward),
    ROW("replication_pad3d_backward.default", replication_pad_backward),
    ROW("pixel_shuffle.default", pixel_shuffle),
    ROW("pixel_unshuffle.default", pixel_unshuffle),
    ROW("channel_shuffle.default", channel_shuffle),
    ROW("diag_embed.default", diag_embed),
    ROW("slice_scatter.default", slice_scatter),
    ROW("select_scatter.default", select_scatter),
    ROW("diagonal_scatter.default", diagonal_scatter),
    {"aten.as_strided_scatter.default", as_strided_scatter, NULL, NULL, RK_STORAGE},
    ROW("slice_backward.default", slice_backward),
    ROW("select_backward.default", select_backward),
    ROW("diagonal_backward.default", diagonal_backward),
    ROW("unfold_backward.default", unfold_backward),
    ROW("one_hot.default", one_hot),
};
const rk_family rk_family_movement = RK_FAMILY(rows);
