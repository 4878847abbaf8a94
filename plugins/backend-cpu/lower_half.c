/* Halves as floats: steps that convert a tensor, for what is computed in float and rounded once; and lowerings that
 * know floats alone, for halves. */
#include "kit/lowering/transaction.h"
#include "half_kernels.h"
#include "target.h"

typedef struct convert_step {
  lw_ref_t half, full;
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
  else bc_convert_to_f32(c->step->dtype, c->half + begin, end - begin, c->full + begin);
}

static aot_status_t run_convert(const lw_frame_t *f, void *payload) {
  const convert_step_t *p = payload;
  conversion_t c = {p, (uint16_t *)(void *)lw_at(f, p->half), lw_f32(f, p->full)};
  bc_parallel(f->workers, p->n, 65536, convert_part, &c);
  return AOT_OK;
}

static aot_status_t add_conversion(lw_build_t *b, const lw_tensor_t *half, const lw_tensor_t *full, int narrows) {
  convert_step_t *p;
  if (lw_numel(half) == 0) return AOT_OK;
  LW_STEP(b, run_convert, p);
  *p = (convert_step_t){.dtype = half->dtype, .narrows = narrows, .n = lw_numel(half)};
  p->half = narrows ? lw_use(b, half) : lw_use_read(b, half);
  p->full = narrows ? lw_use_read(b, full) : lw_use(b, full);
  return AOT_OK;
}

/* What fills its storage without holes keeps its strides: elements are converted in the order in which they lie. */
aot_status_t bc_widened(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  lw_tensor_t half = *t, dense = *t;
  lw_result_geometry(&dense);
  dense.offset = half.offset;
  if (!lw_same_geometry(&dense, &half)) AOT_TRY(lw_contiguous(b, t, &half));
  *out = half;
  out->offset = 0;
  out->dtype = AOT_F32;
  AOT_TRY(lw_new_tensor(b, out));
  return add_conversion(b, &half, out, 0);
}

aot_status_t bc_narrow_into(lw_build_t *b, const lw_tensor_t *full, const lw_tensor_t *half) {
  return add_conversion(b, half, full, 1);
}

/* ---- lowerings of floats, for halves ---- */

/* What is in the place of a value while a lowering looks at it. */
typedef struct stand_in {
  lw_value_t *value;
  lw_tensor_t real;
} stand_in_t;

static void restore(lw_build_t *b, const stand_in_t *at, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) lw_set_value(b, at[i].value, &at[i].real);
}

/* 0: no memory, a number that is read out of a tensor. */
static int widen_operands(lw_build_t *b, stand_in_t *at, uint32_t *n, aot_status_t *status) {
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + b->node->operand_begin;
  for (uint32_t k = 0; k < b->node->n_operands; k++) {
    lw_value_t *v = rows[k] == AOT_NO_ID ? NULL : lw_value(b, rows[k]);
    lw_tensor_t wide;
    if (v && v->kind == AOT_TYPE_SYMFLOAT) return 0;
    if (!v || v->kind != AOT_TYPE_TENSOR || !lw_is_half(&v->t)) continue; /* or it has one already */
    *status = bc_widened(b, &v->t, &wide);
    if (*status != AOT_OK) return 0;
    at[(*n)++] = (stand_in_t){v, v->t};
    lw_set_value(b, v, &wide);
  }
  return 1;
}

/* Result r lies as floats where `full` says. */
static aot_status_t narrow_result(lw_build_t *b, uint32_t r, const lw_tensor_t *full) {
  lw_tensor_t half = *full, dense = *full;
  lw_result_geometry(&dense);
  if (!lw_same_geometry(&dense, full)) AOT_TRY(lw_contiguous(b, full, &dense));
  half = dense;
  half.dtype = lw_type(b, r)->dtype;
  AOT_TRY(lw_new_tensor(b, &half));
  lw_bind(b, r, &half);
  return bc_narrow_into(b, &dense, &half);
}

static aot_status_t lower_in_float(lw_build_t *b, lw_lower_fn lower) {
  const uint32_t n_results = b->node->n_results;
  stand_in_t *at = lw_pool_alloc(b->pool, ((uint64_t)b->node->n_operands + n_results + 1) * sizeof *at), *results;
  lw_tensor_t *full = lw_pool_alloc(b->pool, ((uint64_t)n_results + 1) * sizeof *full);
  aot_status_t status = AOT_OK;
  uint32_t n = 0, n_narrow = 0;
  if (!at || !full) return lw_no_memory(b->error, "for a node's operands");
  const int is_wide = widen_operands(b, at, &n, &status);
  results = at + n;
  for (uint32_t r = 0; r < n_results; r++) {
    lw_value_t *v = lw_value(b, b->node->result_begin + r);
    if (v->kind != AOT_TYPE_TENSOR || !lw_is_half(&v->t)) continue;
    results[n_narrow++] = (stand_in_t){v, v->t};
    lw_tensor_t wide = v->t;
    wide.dtype = AOT_F32;
    lw_set_value(b, v, &wide);
  }
  if (status == AOT_OK) status = is_wide && n + n_narrow > 0 ? lower(b) : LW_DECLINED;
  for (uint32_t i = 0; i < n_narrow; i++) full[i] = results[i].value->t;
  restore(b, at, n + n_narrow);
  for (uint32_t i = 0; i < n_narrow && status == AOT_OK; i++)
    status = narrow_result(b, (uint32_t)(results[i].value - lw_value(b, b->node->result_begin)), &full[i]);
  return status;
}

aot_status_t bc_lower_in_float(lw_build_t *b, lw_lower_fn lower) {
  lw_transaction_t t;
  lw_begin(b, &t);
  return lw_end(b, &t, lower_in_float(b, lower));
}

int bc_is_float(const lw_tensor_t *t) {
  return t && (t->dtype == AOT_F32 || t->dtype == AOT_BF16 || t->dtype == AOT_F16);
}

aot_status_t bc_dense_float(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  lw_tensor_t dense;
  AOT_TRY(lw_contiguous(b, t, &dense));
  if (t->dtype != AOT_F32) return bc_widened(b, &dense, out);
  *out = dense;
  return AOT_OK;
}

aot_status_t bc_float_result(lw_build_t *b, uint32_t k, lw_tensor_t *out) {
  *out = *lw_type(b, k);
  out->storage = LW_NONE;
  if (!out->dtype || out->dtype == AOT_F32) return lw_result_dense(b, k, out);
  out->dtype = AOT_F32;
  lw_make_contiguous(out);
  return lw_new_tensor(b, out);
}

aot_status_t bc_finish_result(lw_build_t *b, uint32_t k, const lw_tensor_t *out) {
  lw_tensor_t half;
  if (out->storage == LW_NONE || lw_type(b, k)->dtype == AOT_F32) return AOT_OK;
  AOT_TRY(lw_result_dense(b, k, &half));
  return bc_narrow_into(b, out, &half);
}
