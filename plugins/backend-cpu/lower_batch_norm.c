/* Batch norm in training, forward and backward, on contiguous [n, c, ..], halves as floats. Evaluation mode: the
 * reference kernel. */
#include "target.h"
#include "plane_kernels.h"

typedef struct norm_step {
  lw_ref_t x, w, b, running_mean, running_var, y, mean, rstd, new_mean, new_var, gy, gx, gw, gb;
  bc_planes_t planes;
  double momentum, eps;
} norm_step_t;

/* Channels are divided. */
typedef struct norm_job {
  bc_planes_t planes;
  bc_batch_norm_t forward;
  bc_batch_norm_gradient_t backward;
} norm_job_t;

static void train_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const norm_job_t *j = arg;
  (void)part;
  bc_batch_norm_train(j->planes, &j->forward, begin, end);
}

static void backward_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const norm_job_t *j = arg;
  (void)part;
  bc_batch_norm_backward(j->planes, &j->backward, begin, end);
}

static void run_channels(const lw_frame_t *f, bc_part_fn fn, norm_job_t *job) {
  const int64_t each = job->planes.n_batch * job->planes.n_position;
  bc_parallel(f->workers, job->planes.n_channel, 1 + 32768 / (each + 1), fn, job);
}

static aot_status_t run_batch_norm(const lw_frame_t *f, void *payload) {
  const norm_step_t *p = payload;
  norm_job_t job = {.planes = p->planes};
  job.forward = (bc_batch_norm_t){
      .x = lw_f32(f, p->x),
      .w = lw_f32_or_null(f, p->w),
      .b = lw_f32_or_null(f, p->b),
      .running_mean = lw_f32_or_null(f, p->running_mean),
      .running_var = lw_f32_or_null(f, p->running_var),
      .momentum = p->momentum,
      .eps = p->eps,
      .y = lw_f32(f, p->y),
      .mean = lw_f32_or_null(f, p->mean),
      .rstd = lw_f32_or_null(f, p->rstd),
      .new_mean = lw_f32_or_null(f, p->new_mean),
      .new_var = lw_f32_or_null(f, p->new_var),
  };
  run_channels(f, train_part, &job);
  return AOT_OK;
}

static aot_status_t run_batch_norm_backward(const lw_frame_t *f, void *payload) {
  const norm_step_t *p = payload;
  norm_job_t job = {.planes = p->planes};
  job.backward = (bc_batch_norm_gradient_t){
      .gy = lw_f32(f, p->gy),
      .x = lw_f32(f, p->x),
      .w = lw_f32_or_null(f, p->w),
      .mean = lw_f32(f, p->mean),
      .rstd = lw_f32(f, p->rstd),
      .gx = lw_f32_or_null(f, p->gx),
      .gw = lw_f32_or_null(f, p->gw),
      .gb = lw_f32_or_null(f, p->gb),
  };
  run_channels(f, backward_part, &job);
  return AOT_OK;
}

static int float_or_none(const lw_build_t *b, uint32_t k) {
  return lw_arg(b, k)->kind == AOT_ARG_NONE || bc_is_float(lw_arg_tensor(b, k));
}

static int planes(const lw_tensor_t *x, bc_planes_t *out) {
  if (!bc_is_float(x) || x->rank < 2 || lw_numel(x) == 0) return 0;
  *out = (bc_planes_t){x->sizes[0], x->sizes[1], lw_numel(x) / x->sizes[0] / x->sizes[1]};
  return out->n_batch * out->n_position > 1;
}

/* A tensor argument, if there, has one element a channel; so have the results but the first, which is like the
 * input. */
static int per_channel(const lw_build_t *b, uint32_t k, int64_t n) {
  return !lw_arg_tensor(b, k) || lw_numel(lw_arg_tensor(b, k)) == n;
}
static int results_fit(const lw_build_t *b, const lw_tensor_t *x) {
  for (uint32_t r = 0; r < b->node->n_results; r++)
    if (lw_type(b, r)->dtype &&
        (!bc_is_float(lw_type(b, r)) || lw_numel(lw_type(b, r)) != (r ? x->sizes[1] : lw_numel(x))))
      return 0;
  return 1;
}

static aot_status_t dense(lw_build_t *b, uint32_t k, lw_tensor_t *out) {
  const lw_tensor_t *t = lw_arg_tensor(b, k);
  *out = (lw_tensor_t){.storage = LW_NONE};
  return t ? bc_dense_float(b, t, out) : AOT_OK;
}

/* (input, weight?, bias?, [running_mean, running_var,] training, momentum, eps); n_stats: 2 or 0 */
static aot_status_t train(lw_build_t *b, uint32_t n_stats) {
  const lw_tensor_t *x = lw_arg_tensor(b, 0);
  lw_tensor_t in[5] = {
      {.storage = LW_NONE}, {.storage = LW_NONE}, {.storage = LW_NONE}, {.storage = LW_NONE}, {.storage = LW_NONE}};
  lw_tensor_t out[5] = {
      {.storage = LW_NONE}, {.storage = LW_NONE}, {.storage = LW_NONE}, {.storage = LW_NONE}, {.storage = LW_NONE}};
  bc_planes_t shape;
  norm_step_t *p;
  if (!planes(x, &shape) || b->node->n_results != 3 + n_stats || !lw_arg_int(b, 3 + n_stats, 0)) return LW_DECLINED;
  for (uint32_t k = 1; k < 3; k++)
    if (!float_or_none(b, k)) return LW_DECLINED;
  for (uint32_t k = 3; k < 3 + n_stats; k++)
    if (!bc_is_float(lw_arg_tensor(b, k))) return LW_DECLINED;
  for (uint32_t k = 1; k < 3 + n_stats; k++)
    if (!per_channel(b, k, x->sizes[1])) return LW_DECLINED;
  if (!results_fit(b, x) || !lw_type(b, 0)->dtype) return LW_DECLINED;
  for (uint32_t k = 0; k < 3 + n_stats; k++) AOT_TRY(dense(b, k, &in[k]));
  for (uint32_t r = 0; r < 3 + n_stats; r++) AOT_TRY(bc_float_result(b, r, &out[r]));
  LW_STEP(b, run_batch_norm, p);
  *p = (norm_step_t){
      .x = lw_use_read(b, &in[0]), .w = lw_use_read(b, &in[1]), .b = lw_use_read(b, &in[2]), .planes = shape};
  p->running_mean = lw_use_read(b, &in[3]);
  p->running_var = lw_use_read(b, &in[4]);
  p->y = lw_use(b, &out[0]);
  p->mean = lw_use(b, &out[1]);
  p->rstd = lw_use(b, &out[2]);
  p->new_mean = lw_use(b, &out[3]);
  p->new_var = lw_use(b, &out[4]);
  p->momentum = lw_arg_float(b, 4 + n_stats, 0.1);
  p->eps = lw_arg_float(b, 5 + n_stats, 1e-5);
  for (uint32_t r = 0; r < 3 + n_stats; r++) AOT_TRY(bc_finish_result(b, r, &out[r]));
  return AOT_OK;
}

static aot_status_t lower_functional(lw_build_t *b) { return train(b, 2); }
static aot_status_t lower_no_stats(lw_build_t *b) { return train(b, 0); }

/* native_batch_norm_backward(grad, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train,
 * eps, mask) */
static aot_status_t lower_backward(lw_build_t *b) {
  const lw_tensor_t *x = lw_arg_tensor(b, 1);
  lw_tensor_t gy, tx, tw, mean, rstd, out[3];
  bc_planes_t shape;
  norm_step_t *p;
  if (!planes(x, &shape) || !bc_is_float(lw_arg_tensor(b, 0)) || !float_or_none(b, 2) ||
      !bc_is_float(lw_arg_tensor(b, 5)) || !bc_is_float(lw_arg_tensor(b, 6)) || !lw_arg_int(b, 7, 0) ||
      b->node->n_results != 3 || !lw_same_sizes(lw_arg_tensor(b, 0), x) || !per_channel(b, 2, x->sizes[1]) ||
      !per_channel(b, 5, x->sizes[1]) || !per_channel(b, 6, x->sizes[1]) || !results_fit(b, x))
    return LW_DECLINED;
  AOT_TRY(dense(b, 0, &gy));
  AOT_TRY(dense(b, 1, &tx));
  AOT_TRY(dense(b, 2, &tw));
  AOT_TRY(dense(b, 5, &mean));
  AOT_TRY(dense(b, 6, &rstd));
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(bc_float_result(b, r, &out[r]));
  LW_STEP(b, run_batch_norm_backward, p);
  *p = (norm_step_t){.gy = lw_use_read(b, &gy), .x = lw_use_read(b, &tx), .w = lw_use_read(b, &tw), .planes = shape};
  p->mean = lw_use_read(b, &mean);
  p->rstd = lw_use_read(b, &rstd);
  p->gx = lw_use(b, &out[0]);
  p->gw = lw_use(b, &out[1]);
  p->gb = lw_use(b, &out[2]);
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(bc_finish_result(b, r, &out[r]));
  return AOT_OK;
}

static const lw_lowering_t rows[] = {
    {"aten._native_batch_norm_legit_functional.default", lower_functional},
    {"aten._native_batch_norm_legit.no_stats", lower_no_stats},
    {"aten.native_batch_norm_backward.default", lower_backward},
};
const lw_lowering_table_t bc_lowerings_batch_norm = LW_TABLE(rows);
