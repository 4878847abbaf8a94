/* Sums and means of float32 over any dimensions. The input is contiguous (copied when not); sizes of 1 are dropped and
 * neighbours of one kind merged, which leaves alternating kept and summed dimensions. Two kernels cover the forms that
 * occur: [kept, summed, kept]; anything with more alternations goes to the reference kernel. */
#include "lower.h"
#include "reduce_kernels.h"

typedef struct reduce_step {
  bc_ref_t x, y;
  int64_t outer, n, inner;
  float scale;
} reduce_step_t;

static aot_status_t run_sum(const bc_frame_t *f, void *payload) {
  const reduce_step_t *p = payload;
  bc_sum_middle(bc_f32(f, p->x), p->outer, p->n, p->inner, p->scale, bc_f32(f, p->y));
  return AOT_OK;
}

/* Marks of the dimensions to sum; none named: all. 0: a dimension that is not there. */
static int marks(const bc_build_t *b, const bc_tensor_t *x, uint8_t *out) {
  int64_t list[AOT_MAX_RANK];
  uint32_t n = bc_arg_ints(b, 1, list, AOT_MAX_RANK);
  for (int32_t d = 0; d < x->rank; d++) out[d] = n == 0;
  for (uint32_t k = 0; k < n; k++) {
    int64_t d = list[k] < 0 ? list[k] + x->rank : list[k];
    if (d < 0 || d >= x->rank) return 0;
    out[d] = 1;
  }
  return 1;
}

/* 0: kept and summed dimensions alternate more often than [kept, summed, kept]. */
static int factor(const bc_tensor_t *x, const uint8_t *summed, reduce_step_t *p) {
  int part = 0; /* 0: outer, 1: summed, 2: inner */
  p->outer = p->n = p->inner = 1;
  for (int32_t d = 0; d < x->rank; d++) {
    if (x->sizes[d] == 1) continue;
    if (summed[d] && part == 0) part = 1;
    if (!summed[d] && part == 1) part = 2;
    if (summed[d] && part == 2) return 0;
    *(part == 0 ? &p->outer : part == 1 ? &p->n : &p->inner) *= x->sizes[d];
  }
  return 1;
}

static aot_status_t lower_reduction(bc_build_t *b, int mean, int has_dims) {
  const bc_tensor_t *x = bc_arg_tensor(b, 0);
  uint8_t summed[AOT_MAX_RANK] = {0};
  bc_tensor_t in, out;
  reduce_step_t shape, *p;
  if (!x || x->dtype != AOT_F32 || bc_type(b, 0)->dtype != AOT_F32 || bc_numel(x) == 0) return BC_DECLINED;
  for (int32_t d = 0; d < x->rank; d++) summed[d] = 1;
  if (has_dims && !marks(b, x, summed)) return BC_DECLINED;
  if (!factor(x, summed, &shape) || bc_numel(bc_type(b, 0)) != shape.outer * shape.inner) return BC_DECLINED;
  AOT_TRY(bc_contiguous(b, x, &in));
  AOT_TRY(bc_result_dense(b, 0, &out));
  BC_STEP(b, run_sum, p);
  *p = shape;
  p->scale = mean ? 1.0f / (float)shape.n : 1.0f;
  p->x = bc_use(b, &in);
  p->y = bc_use(b, &out);
  return AOT_OK;
}

static aot_status_t lower_sum(bc_build_t *b) { return lower_reduction(b, 0, 0); }
static aot_status_t lower_sum_dim(bc_build_t *b) { return lower_reduction(b, 0, 1); }
static aot_status_t lower_mean(bc_build_t *b) { return lower_reduction(b, 1, 0); }
static aot_status_t lower_mean_dim(bc_build_t *b) { return lower_reduction(b, 1, 1); }

static const bc_lowering_t rows[] = {
    {"aten.sum.default", lower_sum},
    {"aten.sum.dim_IntList", lower_sum_dim},
    {"aten.mean.default", lower_mean},
    {"aten.mean.dim", lower_mean_dim},
};
const bc_lowering_table_t bc_lowerings_reduce = BC_TABLE(rows);
