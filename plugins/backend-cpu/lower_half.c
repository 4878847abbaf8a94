/* Halves as floats: steps that convert a tensor, for what is computed in float and rounded once. */
#include "half_kernels.h"
#include "target.h"

typedef struct convert_step {
  bc_ref_t half, full;
  int32_t dtype, narrows;
  int64_t n;
} convert_step_t;

typedef struct conversion {
  const convert_step_t *step;
  uint16_t *half;
  float *full;
} conversion_t;

static void convert_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const conversion_t *c = arg;
  (void)part;
  if (c->step->narrows) bc_narrow(c->step->dtype, c->full + begin, end - begin, c->half + begin);
  else bc_widen(c->step->dtype, c->half + begin, end - begin, c->full + begin);
}

static aot_status_t run_convert(const bc_frame_t *f, void *payload) {
  const convert_step_t *p = payload;
  conversion_t c = {p, (uint16_t *)(void *)bc_at(f, p->half), bc_f32(f, p->full)};
  bc_parallel(f->workers, p->n, 65536, convert_part, &c);
  return AOT_OK;
}

static aot_status_t add_conversion(bc_build_t *b, const bc_tensor_t *half, const bc_tensor_t *full, int narrows) {
  convert_step_t *p;
  if (bc_numel(half) == 0) return AOT_OK;
  BC_STEP(b, run_convert, p);
  *p = (convert_step_t){.dtype = half->dtype, .narrows = narrows, .n = bc_numel(half)};
  p->half = bc_use(b, half);
  p->full = bc_use(b, full);
  return AOT_OK;
}

/* What fills its storage without holes keeps its strides: elements are converted in the order in which they lie. */
aot_status_t bc_widened(bc_build_t *b, const bc_tensor_t *t, bc_tensor_t *out) {
  bc_tensor_t half = *t, dense = *t;
  bc_result_geometry(&dense);
  dense.offset = half.offset;
  if (!bc_same_geometry(&dense, &half)) AOT_TRY(bc_contiguous(b, t, &half));
  *out = half;
  out->offset = 0;
  out->dtype = AOT_F32;
  AOT_TRY(bc_new_tensor(b, out));
  return add_conversion(b, &half, out, 0);
}

aot_status_t bc_narrow_into(bc_build_t *b, const bc_tensor_t *full, const bc_tensor_t *half) {
  return add_conversion(b, half, full, 1);
}
