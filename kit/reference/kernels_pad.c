/* Padding by a constant, by reflection or by the edge, and the derivatives. Lists are (left, right) of the last
 * dimension first. */
#include "rk_core.h"
#include <string.h>

#define PAD_CONSTANT 0
#define PAD_REFLECT 1
#define PAD_REPLICATE 2
#define PAD_CIRCULAR 3
typedef struct padding {
  int mode;
  int64_t left[AOT_MAX_RANK];
} padding_t;

static int map_pad(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out) {
  const padding_t *p = data;
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

static aot_status_t read_padding(rk_ctx_t *c, const rk_tensor_t *self, int mode, padding_t *p) {
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

static aot_status_t pad(rk_ctx_t *c, int mode) {
  const rk_tensor_t *self;
  padding_t p;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(read_padding(c, self, mode, &p));
  return rk_gather(c, self, map_pad, &p);
}
static aot_status_t constant_pad(rk_ctx_t *c) {
  if (rk_has(c, 2) && c->call->args[2].kind == AOT_ARG_FLOAT) rk_fill_f(rk_result(c, 0), rk_float(c, 2, 0));
  else rk_fill_i(rk_result(c, 0), rk_int(c, 2, 0));
  return pad(c, PAD_CONSTANT);
}
static aot_status_t reflection_pad(rk_ctx_t *c) { return pad(c, PAD_REFLECT); }
static aot_status_t replication_pad(rk_ctx_t *c) { return pad(c, PAD_REPLICATE); }

/* *_pad_backward(grad, self, padding): every gradient element is added where its value came from */
static aot_status_t pad_backward(rk_ctx_t *c, int mode) {
  const rk_tensor_t *grad, *self;
  rk_array_t g, r;
  padding_t p = {mode, {0}};
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
    rk_advance(index, g.rank, g.sizes);
  }
  return rk_put_f(c, 0, &r);
}
static aot_status_t reflection_pad_backward(rk_ctx_t *c) { return pad_backward(c, PAD_REFLECT); }
static aot_status_t replication_pad_backward(rk_ctx_t *c) { return pad_backward(c, PAD_REPLICATE); }

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
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
};
const rk_family_t rk_family_pad = RK_FAMILY(rows);
