/* Quantization: results have the input's shape; grids that are chosen have one scale and one zero point. */
#include "shape_rules.h"

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

void at_shape_quantize(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "input");
  at_put_like(c, &t, (int32_t)at_int(c, "dtype"));
}

void at_shape_dequantize(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "input");
  const char *name = at_has(c, "output_dtype") ? "output_dtype" : "out_dtype";
  at_put_like(c, &t, at_has(c, name) ? (int32_t)at_int(c, name) : AOT_F32);
}

void at_shape_choose_qparams(at_infer_t *c) {
  static const int64_t one = 1;
  at_put(c, AOT_F64, &one, 1);
  at_put(c, AOT_I64, &one, 1);
}
