/* Images resized along one dimension or two: nearest, linear and cubic of contiguous float32, by plane. Three
 * dimensions, bytes, halves: the reference kernel. */
#include "kit/reference/rk_taps.h"
#include "resample_kernels.h"
#include "target.h"

enum { WORTH_A_THREAD = 16384 }; /* elements */

typedef struct resample_step {
  bc_resample_t image;
  lw_ref_t from, to, work;
  int64_t n_planes, n_work; /* floats a thread */
  int is_back;
} resample_step_t;

typedef struct job {
  const resample_step_t *p;
  const lw_frame_t *f;
} job_t;

static void run_planes(void *arg, int32_t part, int64_t begin, int64_t end) {
  const job_t *j = arg;
  const resample_step_t *p = j->p;
  float *work = lw_f32(j->f, p->work) + part * p->n_work;
  (p->is_back ? bc_resample_backward : bc_resample)(&p->image, begin, end, lw_f32(j->f, p->from), lw_f32(j->f, p->to),
                                                    work);
}

static aot_status_t run_resample(const lw_frame_t *f, void *payload) {
  const resample_step_t *p = payload;
  job_t job = {p, f};
  const int64_t n = p->image.in[0] * p->image.in[1] + p->image.out[0] * p->image.out[1];
  bc_parallel(f->workers, p->n_planes, WORTH_A_THREAD / n + 1, run_planes, &job);
  return AOT_OK;
}

/* ---- lowering ---- */

/* (image, output_size, [align_corners,] scale a dimension..), backward (gradient, output_size, input_size, ..) */
typedef struct resample_op {
  const char *op;
  int32_t dims, mode;
  int align_arg, scale_arg, is_back; /* align_arg -1: none */
} resample_op_t;

static const resample_op_t ops[] = {
    {"aten.upsample_nearest1d.default", 1, RK_NEAREST, -1, 2, 0},
    {"aten.upsample_nearest2d.default", 2, RK_NEAREST, -1, 2, 0},
    {"aten._upsample_nearest_exact1d.default", 1, RK_NEAREST_EXACT, -1, 2, 0},
    {"aten._upsample_nearest_exact2d.default", 2, RK_NEAREST_EXACT, -1, 2, 0},
    {"aten.upsample_linear1d.default", 1, RK_LINEAR, 2, 3, 0},
    {"aten.upsample_bilinear2d.default", 2, RK_LINEAR, 2, 3, 0},
    {"aten.upsample_bicubic2d.default", 2, RK_CUBIC, 2, 3, 0},
    {"aten.upsample_nearest2d_backward.default", 2, RK_NEAREST, -1, 3, 1},
    {"aten.upsample_bilinear2d_backward.default", 2, RK_LINEAR, 3, 4, 1},
    {"aten.upsample_bicubic2d_backward.default", 2, RK_CUBIC, 3, 4, 1},
};

/* Dimension d of the image, counted from the last two; of one that is not resized, each place reads itself. */
static aot_status_t make_taps(lw_build_t *b, const resample_op_t *op, int d, bc_resample_t *r) {
  const int resized = d - (2 - op->dims);
  bc_taps_t *taps = lw_pool_alloc(b->pool, (uint64_t)r->out[d] * sizeof *taps);
  if (!taps) return lw_no_memory(b->error, "for the schedule");
  const double factor = resized >= 0 ? lw_arg_float(b, (uint32_t)(op->scale_arg + resized), 0) : 0;
  const int align = op->align_arg >= 0 && lw_arg_int(b, (uint32_t)op->align_arg, 0);
  for (int64_t i = 0; i < r->out[d]; i++) {
    const rk_taps_t t = rk_taps_at(resized >= 0 ? op->mode : RK_NEAREST, align, r->in[d], r->out[d], i, factor);
    for (int k = 0; k < 4; k++) {
      taps[i].at[k] = (int32_t)t.at[k];
      taps[i].weight[k] = k < t.n ? (float)t.weight[k] : 0;
    }
    r->n[d] = t.n;
  }
  r->taps[d] = taps;
  return AOT_OK;
}

static const resample_op_t *find_op(const lw_build_t *b) {
  const aot_str_t name = aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
  const resample_op_t *op = ops;
  while (!aot_str_eq(name, aot_str(op->op))) op++;
  return op;
}

static aot_status_t lower(lw_build_t *b) {
  const resample_op_t *op = find_op(b);
  const lw_tensor_t *given = lw_arg_tensor(b, 0), *result = lw_type(b, 0);
  const lw_tensor_t *in = op->is_back ? result : given, *out = op->is_back ? given : result;
  const int32_t rank = given ? given->rank : 0;
  resample_step_t shape = {.n_planes = 1, .is_back = op->is_back}, *p;
  lw_tensor_t from, to, work;
  if (!given || given->dtype != AOT_F32 || result->dtype != AOT_F32 || result->rank != rank || rank <= op->dims ||
      rank < 2 || lw_numel(given) == 0 || lw_numel(result) == 0)
    return LW_DECLINED;
  for (int32_t d = 0; d < rank; d++) {
    const int of_image = d - (rank - 2);
    if (d < rank - op->dims && in->sizes[d] != out->sizes[d]) return LW_DECLINED;
    if (in->sizes[d] > INT32_MAX || out->sizes[d] > INT32_MAX) return LW_DECLINED;
    if (of_image < 0) shape.n_planes *= in->sizes[d];
    else shape.image.in[of_image] = in->sizes[d], shape.image.out[of_image] = out->sizes[d];
  }
  for (int d = 0; d < 2; d++) AOT_TRY(make_taps(b, op, d, &shape.image));
  shape.n_work = (shape.image.in[1] + 15) / 16 * 16;
  AOT_TRY(lw_contiguous(b, given, &from));
  AOT_TRY(lw_result_dense(b, 0, &to));
  AOT_TRY(lw_scratch(b, (uint64_t)shape.n_work * sizeof(float) * (uint64_t)b->machine->n_threads, &work));
  LW_STEP(b, run_resample, p);
  *p = shape;
  p->from = lw_use_read(b, &from);
  p->to = lw_use(b, &to);
  p->work = lw_use(b, &work);
  return AOT_OK;
}

static const lw_lowering_t rows[] = {
    {"aten.upsample_nearest1d.default", lower},
    {"aten.upsample_nearest2d.default", lower},
    {"aten._upsample_nearest_exact1d.default", lower},
    {"aten._upsample_nearest_exact2d.default", lower},
    {"aten.upsample_linear1d.default", lower},
    {"aten.upsample_bilinear2d.default", lower},
    {"aten.upsample_bicubic2d.default", lower},
    {"aten.upsample_nearest2d_backward.default", lower},
    {"aten.upsample_bilinear2d_backward.default", lower},
    {"aten.upsample_bicubic2d_backward.default", lower},
};
const lw_lowering_table_t bc_lowerings_resample = LW_TABLE(rows);
