/* Padding that wraps around, and padding by a mode's number. */
#include "at_formula.h"

static em_x_t part(em_t *e, em_x_t x, int32_t dim, int64_t start, int64_t end) {
  return EM(e, "slice.Tensor", x, em_i(dim), em_i(start), em_i(end));
}

/* _pad_circular: dimension by dimension from the last. Negative numbers cut; then what ends it comes before, what
 * begins it after. */
aot_status_t at_dc_pad_circular(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  const int64_t *pad;
  uint32_t n = at_in_ints(e, "pad", &pad), i;
  for (i = 0; i < n / 2 && e->status == AOT_OK; i++) {
    int32_t dim = TYPE(x).rank - 1 - (int32_t)i;
    int64_t size = TYPE(x).sizes[dim], before = pad[2 * i], after = pad[2 * i + 1];
    uint32_t ids[3], k = 0;
    if (before < 0 || after < 0) {
      x = part(e, x, dim, before < 0 ? -before : 0, after < 0 ? at_add(at_infer(e), size, after) : size);
      size = TYPE(x).sizes[dim];
    }
    if (before > 0) ids[k++] = VAL(part(e, x, dim, at_sub(at_infer(e), size, before), size)).id;
    ids[k++] = VAL(x).id;
    if (after > 0) ids[k++] = VAL(part(e, x, dim, 0, after)).id;
    if (e->status == AOT_OK && k > 1) x = EM(e, "cat", aot_arg_values(ids, k), em_i(dim));
  }
  return at_give(e, x, out);
}

/* _pad_enum: pad, its mode a number */
aot_status_t at_dc_pad_enum(em_t *e, aot_value_t *out) {
  static const char *const modes[4] = {"reflect", "replicate", "circular", "constant"};
  int64_t mode = at_in_int(e, "mode", 3);
  if (mode < 0 || mode > 3) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "_pad_enum knows no mode %lld", (long long)mode);
    return e->status;
  }
  return at_give(e, EM(e, "pad", IN("self"), IN("pad"), aot_arg_str(aot_str(modes[mode])), IN("value")), out);
}
