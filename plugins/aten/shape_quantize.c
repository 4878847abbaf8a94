/* Quantization: results have the input's shape; grids that are chosen have one scale and one zero point. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

void at_shape_fake_quantize(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_put_like(c, &t, t.dtype);
  at_put_like(c, &t, AOT_BOOL);
}

void at_shape_fake_quantize_learnable_backward(at_infer_t *c) {
  static const char *const of[] = {"self", "scale", "zero_point"};
  for (int k = 0; k < 3; k++) {
    aot_type_t t = at_tensor(c, of[k]);
    at_put_like(c, &t, t.dtype);
  }
}

/* Who chooses a grid counts its steps, in PyTorch in 32 bits; bounds that do not fit are cut there. */
static void check_bounds(at_infer_t *c) {
  static const char *const of[] = {"quant_min", "quant_max"};
  for (int k = 0; k < 2; k++)
    if (at_int(c, of[k]) < INT32_MIN || at_int(c, of[k]) > INT32_MAX)
      at_fail(c, "%s: %s = %lld is no int32", c->row->name, of[k], (long long)at_int(c, of[k]));
}

/* PyTorch observes float32 alone, channels along dimension 0 alone. An observer that has not run yet has statistics
 * without elements, which PyTorch resizes at the first call. */
void at_shape_observed_fake_quantize(at_infer_t *c) {
  static const char *const of[] = {"running_min", "running_max", "scale", "zero_point"};
  aot_type_t t = at_tensor(c, "self");
  const int by_channel = (int)at_int(c, "per_row_fake_quant");
  int64_t n = 1;
  check_bounds(c);
  if (t.dtype != AOT_F32) at_fail(c, "%s observes float32, not %s", c->row->name, aot_dtype_name(t.dtype));
  if (by_channel && (at_int(c, "ch_axis") != 0 || t.rank < 1))
    at_fail(c, "%s takes channels along dimension 0 only; PyTorch does so, too", c->row->name);
  else if (by_channel) n = at_hint(c, t.sizes[0]);
  at_put_like(c, &t, t.dtype);
  at_put_like(c, &t, AOT_BOOL);
  for (int k = 0; k < 4; k++) {
    aot_type_t s = at_tensor(c, of[k]);
    const int64_t has = at_hint(c, at_numel(c, s.sizes, s.rank));
    if (has == 0)
      at_fail(c, "%s has no elements: the observer has not run yet; run the model once before it is exported", of[k]);
    if (has != n) at_fail(c, "%s has %lld elements where the grid has %lld", of[k], (long long)has, (long long)n);
    at_put_like(c, &s, s.dtype);
  }
}

void at_shape_quantize(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "input");
  at_put_like(c, &t, at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : t.dtype);
}

void at_shape_dequantize(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "input");
  const char *name = at_has(c, "output_dtype") ? "output_dtype" : "out_dtype";
  at_put_like(c, &t, at_has(c, name) ? (int32_t)at_int(c, name) : AOT_F32);
}

void at_shape_choose_qparams(at_infer_t *c) {
  static const int64_t one = 1;
  check_bounds(c);
  at_put(c, AOT_F64, &one, 1);
  at_put(c, AOT_I64, &one, 1);
}

/* Float64 and int64, as exported programs record it; PyTorch's kernel of the symmetric form gives its result in the
 * input's dtype. */
void at_shape_choose_qparams_per_token(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "input");
  int64_t sizes[AOT_MAX_RANK];
  if (t.rank < 1) at_fail(c, "%s takes rows, not a number", c->row->name);
  if (strstr(c->row->name, "asymmetric") == NULL && at_int(c, "dtype") != AOT_I8)
    at_fail(c, "%s chooses grids of int8, not %s", c->row->name, aot_dtype_name((int32_t)at_int(c, "dtype")));
  for (int32_t d = 0; d < t.rank; d++) sizes[d] = d + 1 < t.rank ? t.sizes[d] : 1;
  at_put(c, AOT_F64, sizes, t.rank);
  at_put(c, AOT_I64, sizes, t.rank);
}
