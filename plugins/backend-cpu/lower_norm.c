/* The derivative of layer normalisation by row kernels on contiguous float32. */
#include "target.h"
#include "row_kernels.h"

static int f32(const bc_tensor_t *t) { return t && t->dtype == AOT_F32; }
/* An optional tensor argument: absent, or f32. */
static int f32_or_none(const bc_build_t *b, uint32_t k) {
  return bc_arg(b, k)->kind == AOT_ARG_NONE || f32(bc_arg_tensor(b, k));
}

typedef struct norm_step {
  bc_ref_t go, x, w, b, mean, rstd, y, gw, gb;
  int64_t rows, n;
  double eps;
  bc_ref_t partial;        /* gradients of weight and bias by part: [part][2][n] */
  const bc_frame_t *frame; /* of the run */
} norm_step_t;

enum { WORTH_A_THREAD = 16384 /* elements */ };
static float *shifted(float *p, int64_t n) { return p ? p + n : NULL; }

static void backward_rows(void *payload, int32_t part, int64_t begin, int64_t end) {
  const norm_step_t *p = payload;
  const bc_frame_t *f = p->frame;
  int64_t at = begin * p->n;
  float *partial = bc_f32(f, p->partial) + 2 * part * p->n;
  bc_layer_norm_backward(bc_f32(f, p->go) + at, bc_f32(f, p->x) + at, bc_f32_or_null(f, p->w),
                         shifted(bc_f32_or_null(f, p->mean), begin), shifted(bc_f32_or_null(f, p->rstd), begin),
                         end - begin, p->n, p->eps, shifted(bc_f32_or_null(f, p->y), at), partial, partial + p->n);
}

/* Parts in order: the sum depends on the number of threads and nothing else. */
static void add_parts(const float *partial, int32_t n_parts, int64_t n, float *out) {
  for (int64_t i = 0; out && i < n; i++) {
    float sum = partial[i];
    for (int32_t k = 1; k < n_parts; k++) sum += partial[2 * k * n + i];
    out[i] = sum;
  }
}

static aot_status_t run_layer_norm_backward(const bc_frame_t *f, void *payload) {
  norm_step_t *p = payload;
  p->frame = f;
  int32_t n_parts = bc_parallel(f->workers, p->rows, WORTH_A_THREAD / p->n + 1, backward_rows, p);
  add_parts(bc_f32(f, p->partial), n_parts, p->n, bc_f32_or_null(f, p->gw));
  add_parts(bc_f32(f, p->partial) + p->n, n_parts, p->n, bc_f32_or_null(f, p->gb));
  return AOT_OK;
}

/* rows x n of the input; n: the product of normalized_shape, argument k */
static int shape(const bc_build_t *b, const bc_tensor_t *x, uint32_t k, int64_t *rows, int64_t *n) {
  int64_t list[AOT_MAX_RANK];
  uint32_t rank = bc_arg_ints(b, k, list, AOT_MAX_RANK);
  *n = 1;
  for (uint32_t d = 0; d < rank; d++) *n *= list[d];
  if (!rank || *n <= 0) return 0;
  *rows = bc_numel(x) / *n;
  return *rows > 0;
}

/* An optional tensor of n elements. */
static int counts(const bc_build_t *b, uint32_t k, int64_t n) {
  const bc_tensor_t *t = bc_arg_tensor(b, k);
  return !t || bc_numel(t) == n;
}
/* Results, absent ones aside, have these numbers of elements. */
static int results_count(const bc_build_t *b, int64_t n0, int64_t n1, int64_t n2) {
  const int64_t n[3] = {n0, n1, n2};
  for (uint32_t r = 0; r < b->node->n_results; r++)
    if (r > 2 || (bc_type(b, r)->dtype && (bc_type(b, r)->dtype != AOT_F32 || bc_numel(bc_type(b, r)) != n[r])))
      return 0;
  return 1;
}

static aot_status_t contiguous_or_none(bc_build_t *b, uint32_t k, bc_tensor_t *out) {
  const bc_tensor_t *t = bc_arg_tensor(b, k);
  *out = (bc_tensor_t){.storage = BC_NONE};
  return t ? bc_contiguous(b, t, out) : AOT_OK;
}

/* gradients of input, weight, bias; mean, rstd, weight: their argument positions */
static aot_status_t lower_backward(bc_build_t *b, uint32_t mean, uint32_t rstd, uint32_t weight, double eps) {
  const bc_tensor_t *go = bc_arg_tensor(b, 0), *x = bc_arg_tensor(b, 1);
  bc_tensor_t tg, tx, tw, tm, ts, partial, out[3];
  int64_t rows, n;
  norm_step_t *p;
  if (!f32(go) || !f32(x) || !f32_or_none(b, weight) || !f32_or_none(b, mean) || !f32_or_none(b, rstd) ||
      !shape(b, x, 2, &rows, &n) || rows * n != bc_numel(x) || bc_numel(go) != rows * n || !counts(b, weight, n) ||
      !counts(b, mean, rows) || !counts(b, rstd, rows) || b->node->n_results != 3 || !results_count(b, rows * n, n, n))
    return BC_DECLINED;
  AOT_TRY(bc_contiguous(b, go, &tg));
  AOT_TRY(bc_contiguous(b, x, &tx));
  AOT_TRY(contiguous_or_none(b, weight, &tw));
  AOT_TRY(contiguous_or_none(b, mean, &tm));
  AOT_TRY(contiguous_or_none(b, rstd, &ts));
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(bc_result_dense(b, r, &out[r]));
  AOT_TRY(bc_scratch(b, 2 * (uint64_t)n * sizeof(float) * (uint64_t)b->machine->n_threads, &partial));
  BC_STEP(b, run_layer_norm_backward, p);
  *p = (norm_step_t){.go = bc_use(b, &tg), .x = bc_use(b, &tx), .w = bc_use(b, &tw), .rows = rows, .n = n, .eps = eps};
  p->b = bc_use(b, NULL);
  p->partial = bc_use(b, &partial);
  p->mean = bc_use(b, &tm);
  p->rstd = bc_use(b, &ts);
  p->y = bc_use(b, &out[0]);
  p->gw = bc_use(b, &out[1]);
  p->gb = bc_use(b, &out[2]);
  return AOT_OK;
}

#define ABSENT 1000u /* past every argument list */
/* aot.layer_norm_backward(grad, input, normalized_shape, weight?, bias?, eps) */
static aot_status_t lower_layer_norm_backward(bc_build_t *b) {
  return lower_backward(b, ABSENT, ABSENT, 3, bc_arg_float(b, 5, 1e-5));
}
/* native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight?, bias?, output_mask) */
static aot_status_t lower_native_backward(bc_build_t *b) { return lower_backward(b, 3, 4, 5, 0); }

static const bc_lowering_t rows[] = {
    {"aot.layer_norm_backward.default", lower_layer_norm_backward},
    {"aten.native_layer_norm_backward.default", lower_native_backward},
};
const bc_lowering_table_t bc_lowerings_norm = BC_TABLE(rows);
