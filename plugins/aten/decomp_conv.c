/* Convolutions in one general operator, pools in the ones that keep what a backward needs. */
#include "at_formula.h"

#include <string.h>

#define MAX_SPACE 3

static em_x_t spread(em_t *e, const char *name, int32_t n, int64_t otherwise) {
  const int64_t *list;
  uint32_t have = at_in_ints(e, name, &list);
  int64_t out[MAX_SPACE];
  int32_t i;
  for (i = 0; i < n; i++) out[i] = have == 0 ? otherwise : list[have == 1 ? 0 : i];
  return em_list(e, out, (uint32_t)n);
}

/* padding="same": d (k - 1) in all, the extra one at the end. What both sides have goes to the convolution, the rest is
 * padded before. */
static em_x_t same_padding(em_t *e, em_x_t *x, em_x_t w, int32_t space) {
  em_x_t dilation = spread(e, "dilation", space, 1);
  aot_type_t t = TYPE(w);
  int64_t even[MAX_SPACE], extra[2 * MAX_SPACE];
  int32_t d;
  int any = 0;
  memset(extra, 0, sizeof extra);
  for (d = 0; d < space; d++) {
    int64_t total = dilation.u.ints[d] * (at_hint(at_infer(e), t.sizes[2 + d]) - 1);
    even[d] = total / 2;
    extra[2 * (space - 1 - d) + 1] = total % 2;
    any |= total % 2 != 0;
  }
  if (any) *x = EM(e, "constant_pad_nd", *x, em_list(e, extra, 2 * (uint32_t)space));
  return em_list(e, even, (uint32_t)space);
}

/* conv1d, conv2d, conv3d, their padding= forms, conv_transpose*: an input without batch gets one for the call. */
aot_status_t at_dc_conv(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), w = IN("weight"), padding, y;
  int32_t space = TYPE(w).rank - 2;
  int transposed = strstr(at_name(e), "transpose") != NULL, single = TYPE(x).rank == space + 1;
  if (single) x = at_unsqueeze(e, x, 0);
  if (IN("padding").kind != AOT_ARG_STR) padding = spread(e, "padding", space, 0);
  else if (at_in_str_is(e, "padding", "same")) padding = same_padding(e, &x, w, space);
  else padding = em_list(e, (const int64_t[MAX_SPACE]){0, 0, 0}, (uint32_t)space);
  y = EM(e, "convolution", x, w, IN("bias"), spread(e, "stride", space, 1), padding, spread(e, "dilation", space, 1),
         em_b(transposed), spread(e, "output_padding", space, 0), IN("groups"));
  return at_give(e, single ? EM(e, "squeeze.dim", y, em_i(0)) : y, out);
}

aot_status_t at_dc_conv_tbc(em_t *e, aot_value_t *out) {
  static const int64_t channels_second[3] = {1, 2, 0}, out_first[3] = {2, 1, 0}, time_first[3] = {2, 0, 1};
  em_x_t x = EM(e, "permute", IN("self"), em_list(e, channels_second, 3)), y;
  em_x_t weight = EM(e, "permute", IN("weight"), em_list(e, out_first, 3));
  y = EM(e, "conv1d", x, weight, IN("bias"), em_i(1), IN("pad"));
  return at_give(e, EM(e, "permute", y, em_list(e, time_first, 3)), out);
}

aot_status_t at_dc_max_pool2d(em_t *e, aot_value_t *out) {
  return at_give(e,
                 EM(e, "max_pool2d_with_indices", IN("self"), IN("kernel_size"), IN("stride"), IN("padding"),
                    IN("dilation"), IN("ceil_mode")),
                 out);
}

/* The convolutions of vendors' libraries: the general one. */
aot_status_t at_dc_vendor_convolution(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), w = IN("weight");
  int32_t space = TYPE(w).rank - 2;
  if (space < 1 || space > MAX_SPACE) return AOT_E_UNIMPLEMENTED;
  return at_give(e,
                 EM(e, "convolution", x, w, IN("bias"), spread(e, "stride", space, 1), spread(e, "padding", space, 0),
                    spread(e, "dilation", space, 1), em_b(0), spread(e, "output_padding", space, 0), IN("groups")),
                 out);
}

/* avg_pool1d: avg_pool2d over rows of height 1 */
aot_status_t at_dc_avg_pool1d(em_t *e, aot_value_t *out) {
  int64_t kernel[2] = {1, 0}, stride[2] = {1, 0}, padding[2] = {0, 0};
  const int64_t *list;
  uint32_t n = at_in_ints(e, "kernel_size", &list);
  em_x_t y;
  kernel[1] = n ? list[0] : 1;
  n = at_in_ints(e, "stride", &list);
  stride[1] = n ? list[0] : kernel[1];
  n = at_in_ints(e, "padding", &list);
  padding[1] = n ? list[0] : 0;
  y = EM(e, "avg_pool2d", EM(e, "unsqueeze", IN("self"), em_i(-2)), em_list(e, kernel, 2), em_list(e, stride, 2),
         em_list(e, padding, 2), IN("ceil_mode"), IN("count_include_pad"));
  return at_give(e, EM(e, "squeeze.dim", y, em_i(-2)), out);
}

/* adaptive_avg_pool1d, 2d: a mean when one window covers all, the native form otherwise */
aot_status_t at_dc_adaptive_avg_pool(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  int32_t space = strstr(at_name(e), "pool1d") ? 1 : 2, d;
  int64_t dims[2], size[2] = {1, 0};
  int all_one = 1;
  em_x_t y;
  for (d = 0; d < space; d++) {
    dims[d] = d - space;
    all_one &= at_same(at_infer(e), t.sizes[t.rank - space + d], 1);
  }
  if (all_one) return at_give(e, EM(e, "mean.dim", IN("self"), em_list(e, dims, (uint32_t)space), em_b(1)), out);
  if (space == 2) return at_give(e, EM(e, "_adaptive_avg_pool2d", IN("self"), IN("output_size")), out);
  size[1] = t.sizes[t.rank - 1];
  y = EM(e, "_adaptive_avg_pool2d", EM(e, "unsqueeze", IN("self"), em_i(-2)), em_list(e, size, 2));
  return at_give(e, EM(e, "squeeze.dim", y, em_i(-2)), out);
}

/* upsample_*.vec: the same without .vec; the size that the factors give, and the factors as they are */
aot_status_t at_dc_upsample(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  em_x_t scales = IN("scale_factors"), args[6];
  uint32_t n = 2, space = (uint32_t)t.rank - 2, i;
  char name[64];
  size_t size = strcspn(at_name(e) + sizeof "aten." - 1, ".");
  memcpy(name, at_name(e) + sizeof "aten." - 1, size);
  name[size] = '\0';
  args[0] = IN("input");
  args[1] = em_list(e, t.sizes + 2, space);
  if (at_in_has(e, "align_corners")) args[n++] = IN("align_corners");
  for (i = 0; i < space; i++)
    args[n++] = scales.kind == AOT_ARG_FLOATS && scales.n ? em_f(scales.u.floats[scales.n > i ? i : 0]) : em_none();
  return at_give(e, em_call(e, name, n, args), out);
}
