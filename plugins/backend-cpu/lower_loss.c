/* Cross entropy's classes: a loop takes them as they are, so they are looked at before it. */
#include "target.h"

typedef struct classes_step {
  lw_ref_t classes, out;
  int64_t rows, step, n, ignore;
  int32_t is_mean;
} classes_step_t;

static aot_status_t run_classes(const lw_frame_t *f, void *payload) {
  const classes_step_t *p = payload;
  const int64_t *classes = (const int64_t *)(const void *)lw_at(f, p->classes);
  int64_t n = 0;
  for (int64_t r = 0; r < p->rows; r++) {
    const int64_t k = classes[r * p->step];
    n += k != p->ignore;
    if (k != p->ignore && (k < 0 || k >= p->n))
      return lw_fail(f->error, AOT_E_RANGE, "bad-target", "target %lld of row %lld is no class of %lld", (long long)k,
                     (long long)r, (long long)p->n);
  }
  *(double *)(void *)lw_at(f, p->out) = p->is_mean ? 1.0 / (double)n : 1.0; /* of none there is no mean */
  return AOT_OK;
}

aot_status_t bc_count_classes(lw_build_t *b, uint32_t k, int64_t n_classes, lw_tensor_t *out) {
  const lw_tensor_t *classes = lw_arg_tensor(b, k);
  classes_step_t *p;
  AOT_TRY(lw_scratch(b, sizeof(double), out));
  LW_STEP(b, run_classes, p);
  *p = (classes_step_t){.classes = lw_use_read(b, classes), .out = lw_use(b, out), .rows = classes->sizes[0]};
  p->step = classes->strides[0];
  p->n = n_classes;
  p->is_mean = lw_arg_int(b, k + 2, 1) == 1;
  p->ignore = lw_arg_int(b, k + 3, -100);
  return AOT_OK;
}
