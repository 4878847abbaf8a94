/* Layer normalisation, forward and backward, by row kernels on contiguous float32. */
#include "lower.h"
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
} norm_step_t;

static aot_status_t run_forward(const bc_frame_t *f, void *payload) {
  const norm_step_t *p = payload;
  bc_layer_norm(bc_f32(f, p->x), bc_f32_or_null(f, p->w), bc_f32_or_null(f, p->b), p->rows, p->n, p->eps, bc_f32(f, p->y),
                bc_f32_or_null(f, p->mean), bc_f32_or_null(f, p->rstd));
  return AOT_OK;
}

static aot_status_t run_backward(const bc_frame_t *f, void *payload) {
  const norm_step_t *p = payload;
  bc_layer_norm_backward(bc_f32(f, p->go), bc_f32(f, p->x), bc_f32_or_null(f, p->w), bc_f32_or_null(f, p->mean),
                         bc_f32_or_null(f, p->rstd), p->rows, p->n, p->eps, bc_f32_or_null(f, p->y),
                         bc_f32_or_null(f, p->gw), bc_f32_or_null(f, p->gb));
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

static aot_status_t contiguous_or_none(bc_build_t *b, uint32_t k, bc_tensor_t *out) {
  const bc_tensor_t *t = bc_arg_tensor(b, k);
  *out = (bc_tensor_t){.storage = BC_NONE};
  return t ? bc_contiguous(b, t, out) : AOT_OK;
}

/* layer_norm, native_layer_norm(input, normalized_shape, weight?, bias?, eps) */
static aot_status_t lower_layer_norm(bc_build_t *b) {
  const bc_tensor_t *x = bc_arg_tensor(b, 0);
  bc_tensor_t tx, tw, tb, out[3];
  int64_t rows, n;
  norm_step_t *p;
  if (!f32(x) || !f32_or_none(b, 2) || !f32_or_none(b, 3) || !shape(b, x, 1, &rows, &n)) return BC_DECLINED;
  AOT_TRY(bc_contiguous(b, x, &tx));
  AOT_TRY(contiguous_or_none(b, 2, &tw));
  AOT_TRY(contiguous_or_none(b, 3, &tb));
  for (uint32_t r = 0; r < 3; r++) {
    out[r] = (bc_tensor_t){.storage = BC_NONE};
    if (r < b->node->n_results) AOT_TRY(bc_result_dense(b, r, &out[r]));
  }
  BC_STEP(b, run_forward, p);
  *p = (norm_step_t){.x = bc_use(b, &tx), .w = bc_use(b, &tw), .b = bc_use(b, &tb), .rows = rows, .n = n};
  p->go = p->gw = p->gb = bc_use(b, NULL);
  p->eps = bc_arg_float(b, 4, 1e-5);
  p->y = bc_use(b, &out[0]);
  p->mean = bc_use(b, &out[1]);
  p->rstd = bc_use(b, &out[2]);
  return AOT_OK;
}

/* gradients of input, weight, bias; mean, rstd, weight: their argument positions */
static aot_status_t lower_backward(bc_build_t *b, uint32_t mean, uint32_t rstd, uint32_t weight, double eps) {
  const bc_tensor_t *go = bc_arg_tensor(b, 0), *x = bc_arg_tensor(b, 1);
  bc_tensor_t tg, tx, tw, tm, ts, out[3];
  int64_t rows, n;
  norm_step_t *p;
  if (!f32(go) || !f32(x) || !f32_or_none(b, weight) || !f32_or_none(b, mean) || !f32_or_none(b, rstd) ||
      !shape(b, x, 2, &rows, &n) || b->node->n_results != 3)
    return BC_DECLINED;
  AOT_TRY(bc_contiguous(b, go, &tg));
  AOT_TRY(bc_contiguous(b, x, &tx));
  AOT_TRY(contiguous_or_none(b, weight, &tw));
  AOT_TRY(contiguous_or_none(b, mean, &tm));
  AOT_TRY(contiguous_or_none(b, rstd, &ts));
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(bc_result_dense(b, r, &out[r]));
  BC_STEP(b, run_backward, p);
  *p = (norm_step_t){.go = bc_use(b, &tg), .x = bc_use(b, &tx), .w = bc_use(b, &tw), .rows = rows, .n = n, .eps = eps};
  p->b = bc_use(b, NULL);
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
    {"aten.layer_norm.default", lower_layer_norm},
    {"aten.native_layer_norm.default", lower_layer_norm},
    {"aot.layer_norm_backward.default", lower_layer_norm_backward},
    {"aten.native_layer_norm_backward.default", lower_native_backward},
};
const bc_lowering_table_t bc_lowerings_norm = BC_TABLE(rows);
