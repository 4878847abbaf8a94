/* Tensors laid next to each other: concatenation, a new dimension, blocks on a diagonal. All work on strided tensors,
 * so that every dtype passes unchanged. */
#include "rk_core.h"

/* A window of the result. */
static rk_tensor_t window(const rk_tensor_t *t, int32_t dim, int64_t start, int64_t size) {
  rk_tensor_t w = *t;
  w.offset += start * t->strides[dim];
  w.sizes[dim] = size;
  return w;
}

static int is_legacy_empty(const rk_tensor_t *t) { return t->rank == 1 && t->sizes[0] == 0; }

static aot_status_t cat(rk_ctx_t *c) {
  const rk_tensor_t *const *list;
  rk_tensor_t *r = rk_result(c, 0);
  uint32_t n;
  int32_t dim;
  int64_t at = 0;
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), r->rank, &dim));
  for (uint32_t k = 0; k < n; k++) {
    rk_tensor_t w;
    RK_CHECK(c, list[k], "tensor %u is absent", k);
    if (is_legacy_empty(list[k])) continue;
    RK_CHECK(c, list[k]->rank == r->rank && r->rank > 0, "tensor %u has rank %d, the result %d", k, list[k]->rank,
             r->rank);
    for (int32_t d = 0; d < r->rank; d++)
      RK_CHECK(c, d == dim || list[k]->sizes[d] == r->sizes[d],
               "tensor %u has size %lld at dimension %d, the result %lld", k, (long long)list[k]->sizes[d], d,
               (long long)r->sizes[d]);
    RK_CHECK(c, list[k]->sizes[dim] <= r->sizes[dim] - at, "the tensors exceed size %lld of the result",
             (long long)r->sizes[dim]);
    w = window(r, dim, at, list[k]->sizes[dim]);
    rk_copy(&w, list[k]);
    at += list[k]->sizes[dim];
  }
  RK_CHECK(c, r->rank > 0 && (at == r->sizes[dim] || rk_numel(r) == 0), "the tensors fill %lld of size %lld",
           (long long)at, (long long)(r->rank ? r->sizes[dim] : 0));
  return AOT_OK;
}

/* The result without dimension dim, at index k of it. */
static rk_tensor_t slab(const rk_tensor_t *t, int32_t dim, int64_t k) {
  rk_tensor_t w = *t;
  w.offset += k * t->strides[dim];
  w.rank--;
  for (int32_t d = dim; d < w.rank; d++) {
    w.sizes[d] = t->sizes[d + 1];
    w.strides[d] = t->strides[d + 1];
  }
  return w;
}

static aot_status_t stack(rk_ctx_t *c) {
  const rk_tensor_t *const *list;
  rk_tensor_t *r = rk_result(c, 0);
  uint32_t n;
  int32_t dim;
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), r->rank, &dim));
  RK_CHECK(c, r->rank > 0 && r->sizes[dim] == (int64_t)n, "%u tensors do not fill the declared result", n);
  for (uint32_t k = 0; k < n; k++) {
    rk_tensor_t w = slab(r, dim, k);
    RK_CHECK(c, list[k] && rk_same_shape(&w, list[k]), "tensor %u has another shape than the result's slab", k);
    rk_copy(&w, list[k]);
  }
  return AOT_OK;
}

/* block_diag(tensors) */
static aot_status_t block_diag(rk_ctx_t *c) {
  const rk_tensor_t *const *list;
  rk_tensor_t *r = rk_result(c, 0);
  uint32_t n;
  int64_t row = 0, column = 0;
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  RK_CHECK(c, r->rank == 2, "the result is no matrix");
  rk_fill_i(r, 0);
  for (uint32_t k = 0; k < n; k++) {
    int64_t h, w;
    rk_tensor_t block = *r;
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

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("cat.default", cat),
    ROW("concat.default", cat),
    ROW("concatenate.default", cat),
    ROW("stack.default", stack),
    ROW("block_diag.default", block_diag),
};
const rk_family_t rk_family_join = RK_FAMILY(rows);
