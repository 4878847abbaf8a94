/* Elements copied about without arithmetic: casts and clones, repeat, flip, roll, triangles, blocks of channels. All
 * work on strided tensors, so that every dtype passes unchanged. */
#include "rk_core.h"
#include <string.h>

/* ---- whole copies ---- */

static aot_status_t copy_first(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  return rk_put_tensor(c, 0, self);
}

/* _local_scalar_dense(self): the one element as a 0-dim result */
static aot_status_t only_element(rk_ctx_t *c) {
  const rk_tensor_t *self;
  rk_tensor_t one;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, rk_numel(self) == 1, "a tensor of %lld elements is no number", (long long)rk_numel(self));
  one = *self;
  one.rank = 0;
  return rk_put_tensor(c, 0, &one);
}

/* copy(self, src): src broadcast to self */
static aot_status_t copy_second(rk_ctx_t *c) {
  const rk_tensor_t *self, *src;
  rk_iter_t it;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_need_tensor(c, 1, &src));
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  rk_iter_init(&it, self->rank, self->sizes);
  RK_CHECK(c, rk_iter_add(&it, src), "the source does not broadcast to self");
  rk_copy(rk_result(c, 0), src);
  return AOT_OK;
}

/* aot.with_history(history, value): the value; the other argument matters to differentiation only */
static aot_status_t with_history(rk_ctx_t *c) {
  const rk_tensor_t *value;
  AOT_TRY(rk_need_tensor(c, 1, &value));
  return rk_put_tensor(c, 0, value);
}

/* native_dropout(input, p, train) -> (output, mask), drawn only when p = 0 or not training: all kept */
static aot_status_t native_dropout(rk_ctx_t *c) {
  AOT_TRY(copy_first(c));
  if (rk_wants(c, 1)) rk_fill_i(rk_result(c, 1), 1);
  return AOT_OK;
}

/* ---- element by element: result[index] = self[f(index)] ---- */

typedef struct per_dim {
  int32_t lead; /* leading result dimensions that self lacks */
  int64_t v[AOT_MAX_RANK];
} per_dim_t;

static int map_repeat(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  const per_dim_t *p = data;
  for (int32_t d = 0; d < self->rank; d++) out[d] = self->sizes[d] ? index[d + p->lead] % self->sizes[d] : 0;
  return 1;
}
/* The last dimensions are repeated; where there are fewer numbers than dimensions, which tile allows, the first ones
 * are not. */
static aot_status_t repeats(rk_ctx_t *c, const rk_tensor_t *self, const int64_t *times, int32_t n) {
  per_dim_t p = {n > self->rank ? n - self->rank : 0, {0}};
  const int32_t rank = self->rank + p.lead;
  int64_t sizes[AOT_MAX_RANK];
  RK_CHECK(c, rank <= AOT_MAX_RANK, "%d repeats for rank %d", n, self->rank);
  for (int32_t d = 0; d < rank; d++) {
    sizes[d] = d < p.lead ? 1 : self->sizes[d - p.lead];
    if (d >= rank - n) sizes[d] *= times[d - (rank - n)];
  }
  AOT_TRY(rk_check_result(c, 0, rank, sizes));
  return rk_gather(c, self, map_repeat, &p);
}
static aot_status_t tile(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *times;
  const int32_t n = (int32_t)rk_list(c, 1, &times);
  AOT_TRY(rk_need_tensor(c, 0, &self));
  return repeats(c, self, times, n);
}
static aot_status_t repeat(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *times;
  const int32_t n = (int32_t)rk_list(c, 1, &times);
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, n >= self->rank, "%d repeats for rank %d", n, self->rank);
  return repeats(c, self, times, n);
}

static int map_flip(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  const uint8_t *marks = data;
  for (int32_t d = 0; d < self->rank; d++) out[d] = marks[d] ? self->sizes[d] - 1 - index[d] : index[d];
  return 1;
}
static aot_status_t flip(rk_ctx_t *c) {
  const rk_tensor_t *self;
  uint8_t marks[AOT_MAX_RANK];
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_dim_marks(c, 1, self->rank, 0, marks));
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  return rk_gather(c, self, map_flip, marks);
}

/* roll(self, shifts, dims): without dims the flattened tensor */
static int map_roll(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  const per_dim_t *p = data;
  for (int32_t d = 0; d < self->rank; d++) {
    int64_t k = self->sizes[d] ? (index[d] - p->v[d]) % self->sizes[d] : 0;
    out[d] = k < 0 ? k + self->sizes[d] : k;
  }
  return 1;
}
static int map_roll_flat(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  int64_t flat = 0, n = rk_numel(self);
  for (int32_t d = 0; d < self->rank; d++) flat = flat * self->sizes[d] + index[d];
  flat = n ? (flat - *(const int64_t *)data) % n : 0;
  if (flat < 0) flat += n;
  for (int32_t d = self->rank - 1; d >= 0; flat /= self->sizes[d], d--) out[d] = flat % self->sizes[d];
  return 1;
}
static aot_status_t roll(rk_ctx_t *c) {
  const rk_tensor_t *self;
  const int64_t *shifts, *dims;
  per_dim_t p = {0, {0}};
  uint32_t n = rk_list(c, 1, &shifts), m = rk_list(c, 2, &dims);
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  if (m == 0) return rk_gather(c, self, map_roll_flat, n ? shifts : p.v);
  RK_CHECK(c, n == m, "%u shifts for %u dimensions", n, m);
  for (uint32_t k = 0; k < n; k++) {
    int32_t d;
    AOT_TRY(rk_dim(c, dims[k], self->rank, &d));
    p.v[d] += shifts[k];
  }
  return rk_gather(c, self, map_roll, &p);
}

/* rot90(self, k, dims) */
typedef struct rotation {
  int32_t a, b;
  int64_t k;
} rotation_t;
static int map_rot90(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  const rotation_t *r = data;
  int64_t i = index[r->a], j = index[r->b];
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  if (r->k == 1) {
    out[r->a] = j;
    out[r->b] = self->sizes[r->b] - 1 - i;
  }
  if (r->k == 2) {
    out[r->a] = self->sizes[r->a] - 1 - i;
    out[r->b] = self->sizes[r->b] - 1 - j;
  }
  if (r->k == 3) {
    out[r->a] = self->sizes[r->a] - 1 - j;
    out[r->b] = i;
  }
  return 1;
}
static aot_status_t rot90(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int64_t preset[2] = {0, 1}, dims[2], sizes[AOT_MAX_RANK];
  rotation_t r;
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
  return rk_gather(c, self, map_rot90, &r);
}

typedef struct triangle {
  int64_t diagonal;
  int lower;
} triangle_t;
static int map_triangle(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  const triangle_t *t = data;
  int64_t away = index[self->rank - 1] - index[self->rank - 2];
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  return t->lower ? away <= t->diagonal : away >= t->diagonal;
}
static aot_status_t tri(rk_ctx_t *c, int lower) {
  const rk_tensor_t *self;
  triangle_t t = {rk_int(c, 1, 0), lower};
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, self->rank >= 2, "rank %d is less than 2", self->rank);
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  rk_fill_i(rk_result(c, 0), 0);
  return rk_gather(c, self, map_triangle, &t);
}
static aot_status_t tril(rk_ctx_t *c) { return tri(c, 1); }
static aot_status_t triu(rk_ctx_t *c) { return tri(c, 0); }

/* ---- blocks of channels ---- */

/* pixel_shuffle(self, r): [.., C*r*r, H, W] -> [.., C, H*r, W*r], and back */
static int map_shuffle(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  int64_t r = *(const int64_t *)data;
  int32_t ch = self->rank - 3;
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  out[ch] = (index[ch] * r + index[ch + 1] % r) * r + index[ch + 2] % r;
  out[ch + 1] = index[ch + 1] / r;
  out[ch + 2] = index[ch + 2] / r;
  return 1;
}
static int map_unshuffle(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  int64_t r = *(const int64_t *)data;
  int32_t ch = self->rank - 3;
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  out[ch] = index[ch] / (r * r);
  out[ch + 1] = index[ch + 1] * r + index[ch] / r % r;
  out[ch + 2] = index[ch + 2] * r + index[ch] % r;
  return 1;
}
static aot_status_t pixels(rk_ctx_t *c, int un) {
  const rk_tensor_t *self;
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
  return rk_gather(c, self, un ? map_unshuffle : map_shuffle, &r);
}
static aot_status_t pixel_shuffle(rk_ctx_t *c) { return pixels(c, 0); }
static aot_status_t pixel_unshuffle(rk_ctx_t *c) { return pixels(c, 1); }

static int map_channels(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  int64_t groups = *(const int64_t *)data, per = self->sizes[1] / groups;
  memcpy(out, index, (size_t)self->rank * sizeof *out);
  out[1] = index[1] % groups * per + index[1] / groups;
  return 1;
}
static aot_status_t channel_shuffle(rk_ctx_t *c) {
  const rk_tensor_t *self;
  int64_t groups = rk_int(c, 1, 1);
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, self->rank >= 2 && groups > 0 && self->sizes[1] % groups == 0, "channels do not divide by %lld groups",
           (long long)groups);
  AOT_TRY(rk_check_result(c, 0, self->rank, self->sizes));
  return rk_gather(c, self, map_channels, &groups);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
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
    ROW("repeat.default", repeat),
    ROW("tile.default", tile),
    ROW("flip.default", flip),
    ROW("roll.default", roll),
    ROW("rot90.default", rot90),
    ROW("tril.default", tril),
    ROW("triu.default", triu),
    ROW("pixel_shuffle.default", pixel_shuffle),
    ROW("pixel_unshuffle.default", pixel_unshuffle),
    ROW("channel_shuffle.default", channel_shuffle),
};
const rk_family_t rk_family_movement = RK_FAMILY(rows);
