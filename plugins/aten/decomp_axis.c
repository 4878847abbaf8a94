/* Operators that work along a dimension which their name implies, or over a list from left to right. */
#include "at_formula.h"

#include <string.h>

/* hsplit along dim 1 (0 of a vector), vsplit along 0, dsplit along 2 */
static int32_t split_dim(em_t *e) {
  if (strstr(at_name(e), "vsplit")) return 0;
  if (strstr(at_name(e), "dsplit")) return 2;
  return TYPE(IN("self")).rank == 1 ? 0 : 1;
}

aot_status_t at_dc_axis_split(em_t *e, aot_value_t *out) {
  int32_t dim = split_dim(e);
  em_x_t first = at_in_has(e, "sections") ? EM(e, "tensor_split.sections", IN("self"), IN("sections"), em_i(dim))
                                          : EM(e, "tensor_split.indices", IN("self"), IN("indices"), em_i(dim));
  uint32_t i;
  for (i = 0; i < e->info.n_results; i++) out[i] = VAL(em_nth(first, i));
  return e->status;
}

/* Piece `index` starts where the pieces before it end. */
aot_value_t at_vi_axis_split(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  int32_t dim = split_dim(e);
  int64_t start = 0;
  uint32_t i;
  for (i = 0; i < index; i++) start = at_add(at_infer(e), start, at_result_type(e, i).sizes[dim]);
  return em_value(e, EM(e, "slice_scatter", em_v(base), em_v(updated), em_i(dim), em_i(start),
                        em_i(at_add(at_infer(e), start, at_result_type(e, index).sizes[dim])), em_i(1)));
}

/* max_pool1d_with_indices, adaptive_max_pool1d: over rows of height 1 */
aot_status_t at_dc_max_pool1d_with_indices(em_t *e, aot_value_t *out) {
  static const struct {
    const char *name;
    int64_t flat;
  } lists[4] = {{"kernel_size", 1}, {"stride", 1}, {"padding", 0}, {"dilation", 1}};
  int adaptive = strstr(at_name(e), "adaptive") != NULL;
  em_x_t args[6], y;
  int64_t pair[2] = {1, 0}, kernel = 1;
  const int64_t *list;
  uint32_t i, n;
  args[0] = at_unsqueeze(e, IN("self"), -2);
  if (adaptive) {
    n = at_in_ints(e, "output_size", &list);
    pair[1] = n ? list[0] : 1;
    y = EM(e, "adaptive_max_pool2d", args[0], em_list(e, pair, 2));
  } else {
    for (i = 0; i < 4; i++) {
      n = at_in_ints(e, lists[i].name, &list);
      pair[0] = lists[i].flat;
      pair[1] = n ? list[0] : i == 2 ? 0 : i == 3 ? 1 : kernel;
      if (i == 0) kernel = pair[1];
      args[1 + i] = em_list(e, pair, 2);
    }
    args[5] = IN("ceil_mode");
    y = em_call(e, "max_pool2d_with_indices", 6, args);
  }
  out[0] = VAL(EM(e, "squeeze.dim", y, em_i(-2)));
  out[1] = VAL(EM(e, "squeeze.dim", em_nth(y, 1), em_i(-2)));
  return e->status;
}

aot_status_t at_dc_msort(em_t *e, aot_value_t *out) {
  return at_give(e, em_nth(EM(e, "sort.stable", IN("self"), em_b(1), em_i(0), em_b(0)), 0), out);
}

/* cross: along dim, or the first dimension of size 3 */
aot_status_t at_dc_cross(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  int64_t dim = 0;
  if (at_in_has(e, "dim")) dim = at_in_int(e, "dim", 0);
  else
    while (dim + 1 < t.rank && !at_same(at_infer(e), t.sizes[dim], 3)) dim++;
  return at_give(e, EM(e, "linalg_cross", IN("self"), IN("other"), em_i(dim)), out);
}

/* _convolution: without its hints to cuDNN */
aot_status_t at_dc_convolution(em_t *e, aot_value_t *out) {
  return at_give(e, em_call(e, "convolution", 9, e->info.args), out);
}

/* upsample_*_backward.vec: the same without .vec, for the size that the gradient has */
aot_status_t at_dc_upsample_backward(em_t *e, aot_value_t *out) {
  em_x_t g = IN("grad_output"), scales = IN("scale_factors"), args[6];
  aot_type_t t = TYPE(g);
  uint32_t n = 3, i;
  char name[64];
  size_t size = strcspn(at_name(e) + sizeof "aten." - 1, ".");
  memcpy(name, at_name(e) + sizeof "aten." - 1, size);
  name[size] = '\0';
  args[0] = g;
  args[1] = em_list(e, t.sizes + 2, (uint32_t)t.rank - 2);
  args[2] = IN("input_size");
  if (at_in_has(e, "align_corners")) args[n++] = IN("align_corners");
  for (i = 0; i < 2; i++)
    args[n++] = scales.kind == AOT_ARG_FLOATS && scales.n ? em_f(scales.u.floats[scales.n > i ? i : 0]) : em_none();
  return at_give(e, em_call(e, name, n, args), out);
}
