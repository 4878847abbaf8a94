/* Convolutions over one to three dimensions, transposed ones too: by oneDNN where it is the faster one, else im2col and
 * a BLAS, or sums of products towards the weights of a depthwise one; halves that oneDNN does not take are computed as
 * copies in float, float64 always by im2col.
 *
 * A transposed convolution is the gradient of a convolution towards its input, and has gradients of the same kind. So
 * three directions over one description serve them all. */
#include "kit/lowering/conv_call.h"
#include "conv_kernels.h"
#include "depthwise_kernels.h"
#include "parallel_conv.h"
#include "target.h"
#include "plane_kernels.h"

enum { X, W, B, Y, N_OPERANDS };

/* Of BC_CONV_FORWARD, .. */
static const int result_of[] = {Y, X, W};

typedef struct conv_step {
  lw_ref_t operands[N_OPERANDS], work;
  bc_conv_t conv;
  int32_t dtype;
  int what;
} conv_step_t;

/* ---- im2col ---- */

typedef struct im2col_job {
  const conv_step_t *step;
  char *at[N_OPERANDS], *work;
} im2col_job_t;

/* Images [begin, end). */
static void im2col_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const im2col_job_t *j = arg;
  const int32_t dtype = j->step->dtype;
  const int64_t size = (int64_t)aot_dtype_size(dtype);
  bc_conv_t c = j->step->conv;
  char *work = j->work + (uint64_t)part * bc_conv_work(&c) * (uint64_t)size, *w = j->at[W], *bias = j->at[B];
  char *x = j->at[X] + begin * c.c_in * bc_conv_inputs(&c) * size;
  char *y = j->at[Y] + begin * c.c_out * bc_conv_positions(&c) * size;
  c.n_batch = end - begin;
  if (j->step->what == BC_CONV_FORWARD) bc_conv_forward(dtype, &c, x, w, bias, y, work);
  else if (j->step->what == BC_CONV_DATA) bc_conv_data(dtype, &c, y, w, bias, x, work);
  else bc_conv_weights(dtype, &c, y, x, w, work);
}

/* Towards the weights images are added up, in their order. */
static aot_status_t run_im2col(const lw_frame_t *f, void *payload) {
  const conv_step_t *p = payload;
  const int64_t n = p->conv.n_batch;
  im2col_job_t job = {.step = p, .work = lw_at(f, p->work)};
  for (int o = 0; o < N_OPERANDS; o++) job.at[o] = p->operands[o].storage == LW_NONE ? NULL : lw_at(f, p->operands[o]);
  bc_parallel(f->workers, n, p->what == BC_CONV_WEIGHTS ? n : 1, im2col_part, &job);
  return AOT_OK;
}

/* ---- depthwise, towards the weights: channels are divided ---- */

typedef struct depthwise_step {
  lw_ref_t gy, x, gw, work;
  bc_conv_t conv;
  int is_last; /* images lie channels last */
} depthwise_step_t;

typedef struct depthwise_job {
  const depthwise_step_t *step;
  const float *gy, *x;
  float *gw;
  char *work;
} depthwise_job_t;

static uint64_t depthwise_work(const bc_conv_t *c, int is_last) {
  return is_last ? bc_depthwise_last_work(c) : bc_depthwise_work(c);
}

static void depthwise_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const depthwise_job_t *j = arg;
  const bc_conv_t *c = &j->step->conv;
  char *work = j->work + (uint64_t)part * depthwise_work(c, j->step->is_last);
  if (j->step->is_last) bc_depthwise_weights_last(c, j->gy, j->x, j->gw, begin, end, work);
  else bc_depthwise_weights(c, j->gy, j->x, j->gw, begin, end, work);
}

static aot_status_t run_depthwise_weights(const lw_frame_t *f, void *payload) {
  const depthwise_step_t *p = payload;
  const bc_conv_t *c = &p->conv;
  const int64_t n = p->is_last ? bc_depthwise_blocks(c) : c->groups;
  const int64_t each = 2 * c->n_batch * bc_conv_positions(c) * bc_conv_window(c) * (c->groups / n);
  depthwise_job_t job = {p, lw_f32(f, p->gy), lw_f32(f, p->x), lw_f32(f, p->gw), lw_at(f, p->work)};
  bc_parallel(f->workers, n, 1 + 1000000 / each, depthwise_part, &job);
  return AOT_OK;
}

static int is_channels_last(const lw_tensor_t *t) {
  int64_t expected = t->sizes[1];
  for (int32_t d = t->rank - 1; d > 1; expected *= t->sizes[d--])
    if (t->sizes[d] != 1 && t->strides[d] != expected) return 0;
  return t->strides[1] == 1 && (t->sizes[0] == 1 || t->strides[0] == expected);
}

/* What depthwise_kernels.h takes. */
static int is_depthwise(const bc_conv_t *c, int32_t dtype) {
  return dtype == AOT_F32 && bc_conv_is_flat(c) && c->groups == c->c_in && c->groups == c->c_out;
}

static aot_status_t add_depthwise_weights(lw_build_t *b, const bc_conv_t *c, const lw_tensor_t t[N_OPERANDS]) {
  const int is_last = is_channels_last(&t[X]) && is_channels_last(&t[Y]);
  lw_tensor_t x = t[X], y = t[Y], w = t[W], work;
  depthwise_step_t *p;
  if (!is_last) {
    AOT_TRY(lw_contiguous(b, &t[X], &x));
    AOT_TRY(lw_contiguous(b, &t[Y], &y));
  }
  if (!lw_is_contiguous(&w)) {
    lw_make_contiguous(&w);
    AOT_TRY(lw_new_tensor(b, &w));
  }
  AOT_TRY(lw_scratch(b, depthwise_work(c, is_last) * (uint64_t)b->machine->n_threads, &work));
  LW_STEP(b, run_depthwise_weights, p);
  p->gy = lw_use_read(b, &y);
  p->x = lw_use_read(b, &x);
  p->gw = lw_use(b, &w);
  p->work = lw_use(b, &work);
  p->conv = *c;
  p->is_last = is_last;
  return w.storage == t[W].storage ? AOT_OK : lw_copy(b, &t[W], &w);
}

/* ---- what takes contiguous operands ---- */

static aot_status_t add_dense(lw_build_t *b, const bc_conv_t *c, int what, const lw_tensor_t t[N_OPERANDS]) {
  const int result = result_of[what];
  lw_tensor_t dense[N_OPERANDS], work;
  conv_step_t *p;
  for (int o = 0; o < N_OPERANDS; o++) {
    dense[o] = t[o];
    if (o != result && t[o].storage != LW_NONE) AOT_TRY(lw_contiguous(b, &t[o], &dense[o]));
  }
  if (!lw_is_contiguous(&t[result])) {
    lw_make_contiguous(&dense[result]);
    AOT_TRY(lw_new_tensor(b, &dense[result]));
  }
  const uint64_t n_lanes = what == BC_CONV_WEIGHTS ? 1 : (uint64_t)b->machine->n_threads;
  AOT_TRY(lw_scratch(b, bc_conv_work(c) * n_lanes * aot_dtype_size(t[result].dtype), &work));
  LW_STEP(b, run_im2col, p);
  *p = (conv_step_t){.conv = *c, .what = what, .dtype = t[result].dtype, .work = lw_use(b, &work)};
  for (int o = 0; o < N_OPERANDS; o++) {
    const lw_tensor_t *operand = dense[o].storage == LW_NONE ? NULL : &dense[o];
    p->operands[o] = o == result ? lw_use(b, operand) : lw_use_read(b, operand);
  }
  return dense[result].storage == t[result].storage ? AOT_OK : lw_copy(b, &t[result], &dense[result]);
}

/* ---- bias ---- */

typedef struct bias_step {
  lw_ref_t image, bias;
  bc_planes_t planes;
  int32_t dtype;
} bias_step_t;

typedef struct bias_job {
  bc_planes_t planes;
  void *image, *bias;
} bias_job_t;

static void add_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const bias_job_t *j = arg;
  (void)part;
  bc_add_bias(j->planes, j->image, j->bias, begin, end);
}

static void sum_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const bias_job_t *j = arg;
  (void)part;
  bc_bias_gradient(j->planes, j->image, j->bias, begin, end);
}

static void sum_part_f64(void *arg, int32_t part, int64_t begin, int64_t end) {
  const bias_job_t *j = arg;
  (void)part;
  bc_bias_gradient_f64(j->planes, j->image, j->bias, begin, end);
}

static aot_status_t run_bias(const lw_frame_t *f, const bias_step_t *p, bc_part_fn fn) {
  bias_job_t job = {p->planes, lw_at(f, p->image), lw_at(f, p->bias)};
  const int64_t each = p->planes.n_batch * p->planes.n_position;
  bc_parallel(f->workers, p->planes.n_channel, 1 + 65536 / (each + 1), fn, &job);
  return AOT_OK;
}

static aot_status_t run_add_bias(const lw_frame_t *f, void *payload) { return run_bias(f, payload, add_part); }
static aot_status_t run_bias_gradient(const lw_frame_t *f, void *payload) {
  const bias_step_t *p = payload;
  return run_bias(f, p, p->dtype == AOT_F64 ? sum_part_f64 : sum_part);
}

/* adds: the bias to the image; else the image is summed into it. */
static bias_step_t of_bias(lw_build_t *b, const lw_tensor_t *image, const lw_tensor_t *bias, int adds) {
  const bc_planes_t planes = {image->sizes[0], image->sizes[1], lw_numel(image) / image->sizes[0] / image->sizes[1]};
  return (bias_step_t){.image = adds ? lw_use_update(b, image) : lw_use_read(b, image),
                       .bias = adds ? lw_use_read(b, bias) : lw_use(b, bias),
                       .planes = planes,
                       .dtype = image->dtype};
}

/* To what lies contiguous, or in a contiguous copy of it. */
static aot_status_t add_bias(lw_build_t *b, const lw_tensor_t *image, const lw_tensor_t *bias) {
  lw_tensor_t dense, dense_bias;
  bias_step_t *p;
  AOT_TRY(lw_contiguous(b, bias, &dense_bias));
  AOT_TRY(lw_contiguous(b, image, &dense));
  LW_STEP(b, run_add_bias, p);
  *p = of_bias(b, &dense, &dense_bias, 1);
  return dense.storage == image->storage ? AOT_OK : lw_copy(b, image, &dense);
}

static aot_status_t add_bias_gradient(lw_build_t *b, const lw_tensor_t *gy, const lw_tensor_t *gb) {
  lw_tensor_t wide = *gy, sums = *gb, dense;
  bias_step_t *p;
  if (lw_is_half(gy)) {
    AOT_TRY(bc_widened(b, gy, &wide));
    sums.dtype = AOT_F32;
    sums.offset = 0;
    AOT_TRY(lw_new_tensor(b, &sums));
  }
  AOT_TRY(lw_contiguous(b, &wide, &dense));
  LW_STEP(b, run_bias_gradient, p);
  *p = of_bias(b, &dense, &sums, 0);
  return lw_is_half(gy) ? bc_narrow_into(b, &sums, gb) : AOT_OK;
}

/* ---- one direction ---- */

static aot_status_t add_conv(lw_build_t *b, const bc_conv_t *c, int what, const lw_tensor_t t[N_OPERANDS]);

static aot_status_t add_in_float(lw_build_t *b, const bc_conv_t *c, int what, const lw_tensor_t t[N_OPERANDS]) {
  const int result = result_of[what];
  lw_tensor_t wide[N_OPERANDS];
  for (int o = 0; o < N_OPERANDS; o++) {
    wide[o] = t[o];
    if (o != result && t[o].storage != LW_NONE) AOT_TRY(bc_widened(b, &t[o], &wide[o]));
  }
  wide[result].dtype = AOT_F32;
  wide[result].offset = 0;
  AOT_TRY(lw_new_tensor(b, &wide[result]));
  AOT_TRY(add_conv(b, c, what, wide));
  return bc_narrow_into(b, &wide[result], &t[result]);
}

/* Strides of [n, c, depth, height, width]; those of dimensions of size 1, or that are not there, as if it lay without
 * holes. */
static void strides_of(const lw_tensor_t *t, int64_t out[2 + BC_CONV_RANK]) {
  int64_t next = 1;
  for (int d = 1 + BC_CONV_RANK, from = t->rank - 1; d >= 0; d--) {
    const int is_there = d < 2 || from > 1;
    const int64_t size = is_there ? t->sizes[from] : 1;
    out[d] = size == 1 ? next : t->strides[from];
    next = out[d] * size;
    from -= is_there;
  }
}

static int has_holes_or_overlaps(const lw_tensor_t *t) {
  lw_tensor_t dense = *t;
  lw_result_geometry(&dense);
  dense.offset = t->offset;
  return !lw_same_geometry(&dense, t);
}

/* A window of one element on contiguous images: a product for each image, without copies. Where images have few
 * positions the blocks of a convolution are filled better. */
static int is_product(const bc_conv_t *c, int what, const lw_tensor_t t[N_OPERANDS]) {
  enum { LEAST_POSITIONS = 400 };
  for (int d = 0; d < BC_CONV_RANK; d++)
    if (c->kernel[d] != 1 || c->stride[d] != 1 || c->pad[d] != 0) return 0;
  return what != BC_CONV_WEIGHTS && c->groups == 1 && bc_conv_inputs(c) >= LEAST_POSITIONS && t[B].storage == LW_NONE &&
         lw_is_contiguous(&t[X]) && lw_is_contiguous(&t[W]) && lw_is_contiguous(&t[Y]);
}

static lw_tensor_t as_batch(const lw_tensor_t *t, int64_t n, int64_t rows, int64_t columns, int64_t row_stride,
                            int64_t column_stride) {
  lw_tensor_t m = *t;
  m.rank = 3;
  m.sizes[0] = n;
  m.sizes[1] = rows;
  m.sizes[2] = columns;
  m.strides[0] = rows * columns;
  m.strides[1] = row_stride;
  m.strides[2] = column_stride;
  return m;
}

/* y = w x, or x = w^T y, on [n, c, position] */
static aot_status_t add_as_product(lw_build_t *b, const bc_conv_t *c, int what, const lw_tensor_t t[N_OPERANDS]) {
  const int64_t n = c->n_batch, in = c->c_in, out = c->c_out, positions = bc_conv_inputs(c);
  const lw_tensor_t x = as_batch(&t[X], n, in, positions, positions, 1);
  const lw_tensor_t y = as_batch(&t[Y], n, out, positions, positions, 1);
  lw_tensor_t w = what == BC_CONV_FORWARD ? as_batch(&t[W], n, out, in, in, 1) : as_batch(&t[W], n, in, out, 1, in);
  w.strides[0] = 0;
  return what == BC_CONV_FORWARD ? bc_add_product(b, &w, &x, NULL, &y, 1, 0)
                                 : bc_add_product(b, &w, &y, NULL, &x, 1, 0);
}

/* t: x, w, bias, y of the convolution, images of rank 3 to 5; the result has memory without holes. A bias of the
 * direction BC_CONV_DATA is that of a transposed convolution. */
static aot_status_t add_conv(lw_build_t *b, const bc_conv_t *c, int what, const lw_tensor_t t[N_OPERANDS]) {
  const int result = result_of[what], dtype = t[result].dtype;
  const int late_bias = what == BC_CONV_DATA && t[B].storage != LW_NONE;
  const bc_conv_division_t *division = NULL;
  bc_dnn_conv_t d = {.conv = *c, .dtype = dtype, .has_bias = what == BC_CONV_FORWARD && t[B].storage != LW_NONE};
  lw_tensor_t readable[N_OPERANDS];
  if (is_product(c, what, t)) return add_as_product(b, c, what, t);
  if (lw_is_half(&t[result]) && late_bias) return add_in_float(b, c, what, t);
  for (int o = 0; o < N_OPERANDS; o++) {
    readable[o] = t[o];
    if (o != result && t[o].storage != LW_NONE && has_holes_or_overlaps(&t[o])) lw_make_contiguous(&readable[o]);
  }
  strides_of(&readable[X], d.x_strides);
  strides_of(&readable[W], d.w_strides);
  strides_of(&readable[Y], d.y_strides);
  if (dtype == AOT_F32 || dtype == AOT_BF16) AOT_TRY(bc_divide_conv(b, &d, what, &division));
  if (lw_is_half(&t[result]) && !division) return add_in_float(b, c, what, t);
  if (division) {
    for (int o = 0; o < N_OPERANDS; o++)
      if (o != result && t[o].storage != LW_NONE && has_holes_or_overlaps(&t[o]))
        AOT_TRY(lw_contiguous(b, &t[o], &readable[o]));
    if (late_bias) readable[B].storage = LW_NONE;
    AOT_TRY(bc_add_divided_conv(b, division, readable, result));
    return late_bias ? add_bias(b, &t[result], &t[B]) : AOT_OK;
  }
  if (what == BC_CONV_WEIGHTS && is_depthwise(c, dtype)) return add_depthwise_weights(b, c, t);
  return add_dense(b, c, what, t);
}

/* ---- nodes ---- */

/* The dimensions that it has are the last ones. */
static int describe(const lw_conv_t *call, bc_conv_t *c) {
  const lw_tensor_t *x = call->x, *w = call->weight, *y = call->y;
  const int32_t n = call->rank;
  if (!bc_is_float(x) && x->dtype != AOT_F64) return 0;
  *c = (bc_conv_t){.n_batch = x->sizes[0], .groups = call->groups, .c_in = x->sizes[1], .c_out = w->sizes[0]};
  for (int d = 0; d < BC_CONV_RANK; d++) c->in[d] = c->out[d] = c->kernel[d] = c->stride[d] = c->dilation[d] = 1;
  for (int32_t d = 0; d < n; d++) {
    const int32_t at = BC_CONV_RANK - n + d;
    c->in[at] = x->sizes[2 + d];
    c->out[at] = y->sizes[2 + d];
    c->kernel[at] = w->sizes[2 + d];
    c->stride[at] = call->stride[d];
    c->pad[at] = call->pad[d];
    c->dilation[at] = call->dilation[d];
  }
  return 1;
}

static aot_status_t lower_forward(lw_build_t *b) {
  lw_tensor_t t[N_OPERANDS] = {[B] = {.storage = LW_NONE}};
  lw_conv_t call;
  bc_conv_t conv;
  if (!lw_conv_call(b, &call) || !describe(&call, &conv)) return LW_DECLINED;
  t[call.is_transposed ? Y : X] = *call.in;
  t[W] = *call.weight;
  if (call.bias) AOT_TRY(lw_contiguous(b, call.bias, &t[B]));
  AOT_TRY(lw_result(b, 0, &t[call.is_transposed ? X : Y]));
  return add_conv(b, &conv, call.is_transposed ? BC_CONV_DATA : BC_CONV_FORWARD, t);
}

static aot_status_t lower_backward(lw_build_t *b) {
  lw_tensor_t t[N_OPERANDS] = {[B] = {.storage = LW_NONE}}, grad, out[3];
  lw_conv_t call;
  bc_conv_t conv;
  if (!lw_conv_backward_call(b, &call) || !describe(&call, &conv)) return LW_DECLINED;
  const int transposed = call.is_transposed;
  grad = *call.out;
  t[X] = *call.x;
  t[Y] = *call.y;
  t[W] = *call.weight;
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(lw_result(b, r, &out[r]));
  if (out[0].dtype) {
    lw_tensor_t of[N_OPERANDS] = {t[X], t[W], t[B], t[Y]};
    of[transposed ? Y : X] = out[0];
    AOT_TRY(add_conv(b, &conv, transposed ? BC_CONV_FORWARD : BC_CONV_DATA, of));
  }
  if (out[1].dtype) {
    const lw_tensor_t of[N_OPERANDS] = {t[X], out[1], t[B], t[Y]};
    AOT_TRY(add_conv(b, &conv, BC_CONV_WEIGHTS, of));
  }
  return out[2].dtype ? add_bias_gradient(b, &grad, &out[2]) : AOT_OK;
}

static const lw_lowering_t rows[] = {
    {"aten.conv1d.default", lower_forward},         {"aten.conv2d.default", lower_forward},
    {"aten.conv3d.default", lower_forward},         {"aten.conv_transpose1d.default", lower_forward},
    {"aten.conv_transpose2d.input", lower_forward}, {"aten.conv_transpose3d.input", lower_forward},
    {"aten.convolution.default", lower_forward},    {"aten.convolution_backward.default", lower_backward},
};
const lw_lowering_table_t bc_lowerings_conv = LW_TABLE(rows);
