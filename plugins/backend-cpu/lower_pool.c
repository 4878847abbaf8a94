/* Max pooling over two dimensions of contiguous float32, forward and backward. */
#include "target.h"
#include "plane_kernels.h"

typedef struct pool_step {
  bc_ref_t x, y, index, gy, gx;
  int64_t n_planes;
  bc_pool2d_t pool;
} pool_step_t;

static int64_t *indices(const bc_frame_t *f, bc_ref_t r) {
  return r.storage == BC_NONE ? NULL : (int64_t *)(void *)bc_at(f, r);
}

static aot_status_t run_max_pool(const bc_frame_t *f, void *payload) {
  const pool_step_t *p = payload;
  bc_max_pool(p->n_planes, &p->pool, bc_f32(f, p->x), bc_f32_or_null(f, p->y), indices(f, p->index));
  return AOT_OK;
}

static aot_status_t run_max_pool_backward(const bc_frame_t *f, void *payload) {
  const pool_step_t *p = payload;
  bc_max_pool_backward(p->n_planes, &p->pool, bc_f32(f, p->gy), bc_f32(f, p->x), indices(f, p->index),
                       bc_f32(f, p->gx));
  return AOT_OK;
}

static int f32(const bc_tensor_t *t) { return t && t->dtype == AOT_F32; }

static int pair(const bc_build_t *b, uint32_t k, const int64_t *preset, int64_t *out) {
  int64_t list[AOT_MAX_RANK];
  uint32_t n = bc_arg_ints(b, k, list, AOT_MAX_RANK);
  for (int d = 0; d < 2; d++) out[d] = n == 0 ? preset[d] : n == 1 ? list[0] : list[d];
  return n <= 2;
}

/* Numbers that no arithmetic on windows overflows with. */
static int sane(const bc_pool2d_t *p) {
  for (int d = 0; d < 2; d++)
    if (p->kernel[d] < 1 || p->kernel[d] > INT32_MAX || p->stride[d] < 1 || p->stride[d] > INT32_MAX || p->pad[d] < 0 ||
        p->pad[d] > INT32_MAX || p->dilation[d] < 1 || p->dilation[d] > INT32_MAX)
      return 0;
  return 1;
}

/* x, y: [.., h, w]; kernel_size, stride, padding, dilation from argument `first` on */
static int describe(const bc_build_t *b, const bc_tensor_t *x, const bc_tensor_t *y, uint32_t first, pool_step_t *p) {
  static const int64_t one[2] = {1, 1}, zero[2] = {0, 0};
  int32_t r = x->rank;
  if (r < 2 || y->rank != r || bc_numel(x) == 0 || bc_numel(y) == 0) return 0;
  for (int d = 0; d < 2; d++) {
    p->pool.in[d] = x->sizes[r - 2 + d];
    p->pool.out[d] = y->sizes[r - 2 + d];
  }
  p->n_planes = bc_numel(x) / p->pool.in[0] / p->pool.in[1];
  return p->n_planes * p->pool.out[0] * p->pool.out[1] == bc_numel(y) && pair(b, first, one, p->pool.kernel) &&
         pair(b, first + 1, p->pool.kernel, p->pool.stride) && pair(b, first + 2, zero, p->pool.pad) &&
         pair(b, first + 3, one, p->pool.dilation) && sane(&p->pool);
}

/* max_pool2d, max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) */
static aot_status_t lower_forward(bc_build_t *b) {
  const bc_tensor_t *x = bc_arg_tensor(b, 0);
  bc_tensor_t in, out[2] = {{.storage = BC_NONE}, {.storage = BC_NONE}};
  pool_step_t shape = {0}, *p;
  if (!f32(x) || !f32(bc_type(b, 0)) || b->node->n_results > 2 || !describe(b, x, bc_type(b, 0), 1, &shape) ||
      (b->node->n_results == 2 &&
       (bc_type(b, 1)->dtype != AOT_I64 || bc_numel(bc_type(b, 1)) != bc_numel(bc_type(b, 0)))))
    return BC_DECLINED;
  AOT_TRY(bc_contiguous(b, x, &in));
  for (uint32_t r = 0; r < b->node->n_results; r++) AOT_TRY(bc_result_dense(b, r, &out[r]));
  BC_STEP(b, run_max_pool, p);
  *p = shape;
  p->x = bc_use(b, &in);
  p->y = bc_use(b, &out[0]);
  p->index = bc_use(b, &out[1]);
  return AOT_OK;
}

/* (grad, self, kernel_size, stride, padding, dilation, ceil_mode[, indices]) */
static aot_status_t backward(bc_build_t *b, const bc_tensor_t *index) {
  const bc_tensor_t *g = bc_arg_tensor(b, 0), *x = bc_arg_tensor(b, 1);
  bc_tensor_t up, in, at = {.storage = BC_NONE}, out;
  pool_step_t shape = {0}, *p;
  if (!f32(g) || !f32(x) || !describe(b, x, g, 2, &shape) || !f32(bc_type(b, 0)) || !bc_same_sizes(bc_type(b, 0), x) ||
      (index && !bc_same_sizes(index, g)))
    return BC_DECLINED;
  AOT_TRY(bc_contiguous(b, g, &up));
  AOT_TRY(bc_contiguous(b, x, &in));
  if (index) AOT_TRY(bc_contiguous(b, index, &at));
  AOT_TRY(bc_result_dense(b, 0, &out));
  BC_STEP(b, run_max_pool_backward, p);
  *p = shape;
  p->gy = bc_use(b, &up);
  p->x = bc_use(b, &in);
  p->index = bc_use(b, &at);
  p->gx = bc_use(b, &out);
  return AOT_OK;
}

static aot_status_t lower_backward(bc_build_t *b) { return backward(b, NULL); }
static aot_status_t lower_indices_backward(bc_build_t *b) {
  const bc_tensor_t *index = bc_arg_tensor(b, 7);
  return index && index->dtype == AOT_I64 ? backward(b, index) : BC_DECLINED;
}

static const bc_lowering_t rows[] = {
    {"aten.max_pool2d.default", lower_forward},
    {"aten.max_pool2d_with_indices.default", lower_forward},
    {"aot.max_pool2d_backward.default", lower_backward},
    {"aten.max_pool2d_with_indices_backward.default", lower_indices_backward},
};
const bc_lowering_table_t bc_lowerings_pool = BC_TABLE(rows);
