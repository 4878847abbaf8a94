/* Cross entropy over the last dimension, by row kernels on contiguous float32. */
#include "target.h"
#include "row_kernels.h"

static int f32(const bc_tensor_t *t) { return t && t->dtype == AOT_F32; }

typedef struct loss_step {
  bc_ref_t g, x, target, out;
  int64_t rows, n, ignore;
  int32_t reduction;
} loss_step_t;

static aot_status_t out_of_range(const bc_frame_t *f, const loss_step_t *p, const int64_t *target, int64_t row) {
  return bc_fail(f->error, AOT_E_RANGE, "bad-target", "target %lld of row %lld is no class of %lld",
                 (long long)target[row], (long long)row, (long long)p->n);
}

static aot_status_t run_loss(const bc_frame_t *f, void *payload) {
  const loss_step_t *p = payload;
  const int64_t *target = (const int64_t *)(const void *)bc_at(f, p->target);
  int64_t wrong = bc_cross_entropy(bc_f32(f, p->x), target, p->rows, p->n, p->reduction, p->ignore, bc_f32(f, p->out));
  return wrong < 0 ? AOT_OK : out_of_range(f, p, target, wrong);
}

static aot_status_t run_loss_backward(const bc_frame_t *f, void *payload) {
  const loss_step_t *p = payload;
  const int64_t *target = (const int64_t *)(const void *)bc_at(f, p->target);
  for (int64_t r = 0; r < p->rows; r++)
    if (target[r] != p->ignore && (target[r] < 0 || target[r] >= p->n)) return out_of_range(f, p, target, r);
  bc_cross_entropy_backward(*bc_f32(f, p->g), bc_f32(f, p->x), target, p->rows, p->n, p->reduction, p->ignore,
                            bc_f32(f, p->out));
  return AOT_OK;
}

/* The plain form: class indices, scores [rows, classes], no weights, no smoothing, reduced. k: position of self. */
static int plain_loss(const bc_build_t *b, uint32_t k) {
  const bc_tensor_t *x = bc_arg_tensor(b, k), *t = bc_arg_tensor(b, k + 1);
  int64_t reduction = bc_arg_int(b, k + 3, 1);
  return f32(x) && x->rank == 2 && t && t->dtype == AOT_I64 && t->rank == 1 && t->sizes[0] == x->sizes[0] &&
         bc_arg(b, k + 2)->kind == AOT_ARG_NONE && (reduction == 1 || reduction == 2) &&
         bc_arg_float(b, k + 5, 0) == 0 && bc_numel(x) > 0;
}

static aot_status_t add_loss(bc_build_t *b, bc_run_fn run_cross_entropy, uint32_t k) {
  const bc_tensor_t *x = bc_arg_tensor(b, k);
  bc_tensor_t in, target, out;
  loss_step_t *p;
  AOT_TRY(bc_contiguous(b, x, &in));
  AOT_TRY(bc_contiguous(b, bc_arg_tensor(b, k + 1), &target));
  AOT_TRY(bc_result_dense(b, 0, &out));
  BC_STEP(b, run_cross_entropy, p);
  *p = (loss_step_t){.x = bc_use(b, &in), .target = bc_use(b, &target), .out = bc_use(b, &out)};
  p->g = bc_use(b, k ? bc_arg_tensor(b, 0) : NULL);
  p->rows = in.sizes[0];
  p->n = in.sizes[1];
  p->reduction = (int32_t)bc_arg_int(b, k + 3, 1);
  p->ignore = bc_arg_int(b, k + 4, -100);
  return AOT_OK;
}

/* cross_entropy_loss(self, target, weight?, reduction, ignore_index, label_smoothing) */
static aot_status_t lower_cross_entropy(bc_build_t *b) {
  if (!plain_loss(b, 0) || !f32(bc_type(b, 0)) || bc_numel(bc_type(b, 0)) != 1) return BC_DECLINED;
  return add_loss(b, run_loss, 0);
}

/* aot.cross_entropy_loss_backward(grad, self, ..) */
static aot_status_t lower_cross_entropy_backward(bc_build_t *b) {
  const bc_tensor_t *g = bc_arg_tensor(b, 0);
  if (!plain_loss(b, 1) || !f32(g) || bc_numel(g) != 1 || !f32(bc_type(b, 0)) ||
      !bc_same_sizes(bc_arg_tensor(b, 1), bc_type(b, 0)))
    return BC_DECLINED;
  return add_loss(b, run_loss_backward, 1);
}

static const bc_lowering_t rows[] = {
    {"aten.cross_entropy_loss.default", lower_cross_entropy},
    {"aot.cross_entropy_loss_backward.default", lower_cross_entropy_backward},
};
const bc_lowering_table_t bc_lowerings_loss = BC_TABLE(rows);
