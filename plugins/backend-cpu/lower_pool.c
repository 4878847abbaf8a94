/* Maximum and average pooling over two dimensions of contiguous planes, forward and backward; halves as floats. */
#include "plane_kernels.h"
#include "target.h"

typedef struct pool_step {
  lw_ref_t x, y, index, gy, gx;
  int64_t n_planes;
  bc_pool2d_t pool;
  bc_average_t average; /* windows NULL: of maxima */
} pool_step_t;

/* ---- running: planes are divided ---- */

typedef struct pool_job {
  const pool_step_t *step;
  const float *x, *gy;
  float *y, *gx;
  int64_t *index, in, out; /* elements of a plane */
} pool_job_t;

static void max_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const pool_job_t *j = arg;
  (void)part;
  bc_max_pool(end - begin, &j->step->pool, j->x + begin * j->in, j->y ? j->y + begin * j->out : NULL,
              j->index ? j->index + begin * j->out : NULL);
}

static void max_backward_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const pool_job_t *j = arg;
  (void)part;
  bc_max_pool_backward(end - begin, &j->step->pool, j->gy + begin * j->out, j->x + begin * j->in,
                       j->index ? j->index + begin * j->out : NULL, j->gx + begin * j->in);
}

static void average_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const pool_job_t *j = arg;
  (void)part;
  bc_average_pool(end - begin, &j->step->average, j->x + begin * j->in, j->y + begin * j->out);
}

static void average_backward_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const pool_job_t *j = arg;
  (void)part;
  bc_average_pool_backward(end - begin, &j->step->average, j->gy + begin * j->out, j->gx + begin * j->in);
}

static aot_status_t run_parts(const lw_frame_t *f, const pool_step_t *p, bc_part_fn fn) {
  pool_job_t job = {.step = p, .x = lw_f32_or_null(f, p->x), .gy = lw_f32_or_null(f, p->gy)};
  job.y = lw_f32_or_null(f, p->y);
  job.gx = lw_f32_or_null(f, p->gx);
  job.index = p->index.storage == LW_NONE ? NULL : (int64_t *)(void *)lw_at(f, p->index);
  job.in = p->pool.in[0] * p->pool.in[1];
  job.out = p->pool.out[0] * p->pool.out[1];
  bc_parallel(f->workers, p->n_planes, 1 + 32768 / (job.in + job.out), fn, &job);
  return AOT_OK;
}

static aot_status_t run_max_pool(const lw_frame_t *f, void *p) { return run_parts(f, p, max_part); }
static aot_status_t run_max_pool_backward(const lw_frame_t *f, void *p) { return run_parts(f, p, max_backward_part); }
static aot_status_t run_average(const lw_frame_t *f, void *p) { return run_parts(f, p, average_part); }
static aot_status_t run_average_backward(const lw_frame_t *f, void *p) {
  return run_parts(f, p, average_backward_part);
}

/* ---- planes and windows ---- */

static int pair(const lw_build_t *b, uint32_t k, const int64_t *preset, int64_t *out) {
  int64_t list[AOT_MAX_RANK];
  uint32_t n = lw_arg_ints(b, k, list, AOT_MAX_RANK);
  for (int d = 0; d < 2; d++) out[d] = n == 0 ? preset[d] : n == 1 ? list[0] : list[d];
  return n <= 2;
}

/* Numbers that no arithmetic on windows overflows with. */
static int sane(const bc_pool2d_t *p) {
  for (int d = 0; d < 2; d++)
    if (p->kernel[d] < 1 || p->kernel[d] > INT32_MAX || p->stride[d] < 1 || p->stride[d] > INT32_MAX || p->pad[d] < 0 ||
        p->pad[d] > INT32_MAX || p->dilation[d] < 1 || p->dilation[d] > INT32_MAX || p->in[d] > INT32_MAX ||
        p->out[d] > INT32_MAX)
      return 0;
  return p->in[0] * p->in[1] <= INT32_MAX;
}

/* x, y: [.., h, w] of one dtype */
static int describe_planes(const lw_tensor_t *x, const lw_tensor_t *y, pool_step_t *p) {
  int32_t r = x->rank;
  if (r < 2 || y->rank != r || lw_numel(x) == 0 || lw_numel(y) == 0) return 0;
  if (!bc_is_float(x) || x->dtype != y->dtype) return 0;
  for (int d = 0; d < 2; d++) {
    p->pool.in[d] = x->sizes[r - 2 + d];
    p->pool.out[d] = y->sizes[r - 2 + d];
  }
  p->n_planes = lw_numel(x) / p->pool.in[0] / p->pool.in[1];
  return p->n_planes * p->pool.out[0] * p->pool.out[1] == lw_numel(y);
}

/* kernel_size, stride, padding, and dilation where there is one, from argument `first` on */
static int describe(const lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, uint32_t first, int has_dilation,
                    pool_step_t *p) {
  static const int64_t one[2] = {1, 1}, zero[2] = {0, 0};
  p->pool.dilation[0] = p->pool.dilation[1] = 1;
  return describe_planes(x, y, p) && pair(b, first, one, p->pool.kernel) &&
         pair(b, first + 1, p->pool.kernel, p->pool.stride) && pair(b, first + 2, zero, p->pool.pad) &&
         (!has_dilation || pair(b, first + 3, one, p->pool.dilation)) && sane(&p->pool);
}

/* ---- maxima ---- */

/* max_pool2d, max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) */
static aot_status_t lower_max(lw_build_t *b) {
  const lw_tensor_t *x = lw_arg_tensor(b, 0);
  lw_tensor_t in, out, index = {.storage = LW_NONE};
  pool_step_t shape = {0}, *p;
  if (!x || b->node->n_results > 2 || !describe(b, x, lw_type(b, 0), 1, 1, &shape) ||
      (b->node->n_results == 2 &&
       (lw_type(b, 1)->dtype != AOT_I64 || lw_numel(lw_type(b, 1)) != lw_numel(lw_type(b, 0)))))
    return LW_DECLINED;
  AOT_TRY(bc_dense_float(b, x, &in));
  AOT_TRY(bc_float_result(b, 0, &out));
  if (b->node->n_results == 2) AOT_TRY(lw_result_dense(b, 1, &index));
  LW_STEP(b, run_max_pool, p);
  *p = shape;
  p->gy = p->gx = lw_use(b, NULL);
  p->x = lw_use_read(b, &in);
  p->y = lw_use(b, &out);
  p->index = lw_use(b, &index);
  return bc_finish_result(b, 0, &out);
}

/* (grad, self, kernel_size, stride, padding, dilation, ceil_mode[, indices]) */
static aot_status_t max_backward(lw_build_t *b, const lw_tensor_t *index) {
  const lw_tensor_t *g = lw_arg_tensor(b, 0), *x = lw_arg_tensor(b, 1);
  lw_tensor_t up, in, at = {.storage = LW_NONE}, out;
  pool_step_t shape = {0}, *p;
  if (!g || !x || !describe(b, x, g, 2, 1, &shape) || lw_type(b, 0)->dtype != x->dtype ||
      !lw_same_sizes(lw_type(b, 0), x) || (index && !lw_same_sizes(index, g)))
    return LW_DECLINED;
  AOT_TRY(bc_dense_float(b, g, &up));
  AOT_TRY(bc_dense_float(b, x, &in));
  if (index) AOT_TRY(lw_contiguous(b, index, &at));
  AOT_TRY(bc_float_result(b, 0, &out));
  LW_STEP(b, run_max_pool_backward, p);
  *p = shape;
  p->y = lw_use(b, NULL);
  p->gy = lw_use_read(b, &up);
  p->x = lw_use_read(b, &in);
  p->index = lw_use_read(b, &at);
  p->gx = lw_use(b, &out);
  return bc_finish_result(b, 0, &out);
}

static aot_status_t lower_max_backward(lw_build_t *b) { return max_backward(b, NULL); }
static aot_status_t lower_indices_backward(lw_build_t *b) {
  const lw_tensor_t *index = lw_arg_tensor(b, 7);
  return index && index->dtype == AOT_I64 ? max_backward(b, index) : LW_DECLINED;
}

/* ---- averages ---- */

static bc_window_t window_of(const bc_pool2d_t *p, int d, int64_t o, int counts_padding) {
  const int64_t first = o * p->stride[d] - p->pad[d], past = first + p->kernel[d], limit = p->in[d] + p->pad[d];
  bc_window_t w = {first > 0 ? first : 0, past < p->in[d] ? past : p->in[d], (past < limit ? past : limit) - first};
  if (!counts_padding) w.count = w.end - w.begin;
  return w;
}

/* As many windows as queried, as even as whole numbers allow. */
static bc_window_t adaptive_window(const bc_pool2d_t *p, int d, int64_t o) {
  const int64_t begin = o * p->in[d] / p->out[d], end = ((o + 1) * p->in[d] + p->out[d] - 1) / p->out[d];
  return (bc_window_t){begin, end, end - begin};
}

/* Into pool memory. 0 in *out_ok: a window that covers nothing. */
static aot_status_t list_windows(lw_build_t *b, pool_step_t *p, int is_adaptive, int counts_padding, double divisor,
                                 int *out_ok) {
  *out_ok = 1;
  p->average.divisor = divisor;
  for (int d = 0; d < 2; d++) {
    bc_window_t *w = lw_pool_alloc(b->pool, (uint64_t)p->pool.out[d] * sizeof *w);
    if (!w) return lw_no_memory(b->error, "for the schedule");
    for (int64_t o = 0; o < p->pool.out[d]; o++) {
      w[o] = is_adaptive ? adaptive_window(&p->pool, d, o) : window_of(&p->pool, d, o, counts_padding);
      *out_ok &= w[o].begin < w[o].end && w[o].end <= p->pool.in[d];
    }
    p->average.windows[d] = w;
    p->average.in[d] = p->pool.in[d];
    p->average.out[d] = p->pool.out[d];
  }
  return AOT_OK;
}

/* Forward of (x, ..), or backward of (grad, x, ..): from the larger or the smaller of the planes to the other. */
static aot_status_t add_average(lw_build_t *b, const pool_step_t *shape, const lw_tensor_t *from, int backward) {
  lw_tensor_t in, out;
  pool_step_t *p;
  AOT_TRY(bc_dense_float(b, from, &in));
  AOT_TRY(bc_float_result(b, 0, &out));
  if (backward) LW_STEP(b, run_average_backward, p);
  else LW_STEP(b, run_average, p);
  *p = *shape;
  p->x = p->y = p->gx = p->gy = p->index = lw_use(b, NULL);
  *(backward ? &p->gy : &p->x) = lw_use_read(b, &in);
  *(backward ? &p->gx : &p->y) = lw_use(b, &out);
  return bc_finish_result(b, 0, &out);
}

/* [grad,] self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override */
static aot_status_t average(lw_build_t *b, int backward) {
  const lw_tensor_t *from = lw_arg_tensor(b, 0), *x = lw_arg_tensor(b, (uint32_t)backward);
  const uint32_t first = backward ? 2 : 1;
  pool_step_t shape = {0};
  int ok;
  if (!from || !x || !describe(b, x, backward ? from : lw_type(b, 0), first, 0, &shape) ||
      (backward && (!lw_same_sizes(lw_type(b, 0), x) || lw_type(b, 0)->dtype != x->dtype)))
    return LW_DECLINED;
  const double divisor = (double)lw_arg_int(b, first + 5, 0);
  AOT_TRY(list_windows(b, &shape, 0, lw_arg_int(b, first + 4, 1) != 0, divisor, &ok));
  return ok ? add_average(b, &shape, from, backward) : LW_DECLINED;
}

static aot_status_t lower_average(lw_build_t *b) { return average(b, 0); }
static aot_status_t lower_average_backward(lw_build_t *b) { return average(b, 1); }

/* adaptive_avg_pool2d(self, output_size), _adaptive_avg_pool2d_backward(grad, self) */
static aot_status_t adaptive(lw_build_t *b, int backward) {
  const lw_tensor_t *from = lw_arg_tensor(b, 0), *x = lw_arg_tensor(b, (uint32_t)backward);
  pool_step_t shape = {0};
  int ok;
  if (!from || !x || !describe_planes(x, backward ? from : lw_type(b, 0), &shape) ||
      (backward && (!lw_same_sizes(lw_type(b, 0), x) || lw_type(b, 0)->dtype != x->dtype)))
    return LW_DECLINED;
  AOT_TRY(list_windows(b, &shape, 1, 0, 0, &ok));
  return ok ? add_average(b, &shape, from, backward) : LW_DECLINED;
}

static aot_status_t lower_adaptive(lw_build_t *b) { return adaptive(b, 0); }
static aot_status_t lower_adaptive_backward(lw_build_t *b) { return adaptive(b, 1); }

static const lw_lowering_t rows[] = {
    {"aten.max_pool2d.default", lower_max},
    {"aten.max_pool2d_with_indices.default", lower_max},
    {"aot.max_pool2d_backward.default", lower_max_backward},
    {"aten.max_pool2d_with_indices_backward.default", lower_indices_backward},
    {"aten.avg_pool2d.default", lower_average},
    {"aten.avg_pool2d_backward.default", lower_average_backward},
    {"aten.adaptive_avg_pool2d.default", lower_adaptive},
    {"aten._adaptive_avg_pool2d.default", lower_adaptive},
    {"aten._adaptive_avg_pool2d_backward.default", lower_adaptive_backward},
};
const lw_lowering_table_t bc_lowerings_pool = LW_TABLE(rows);
