/* Nearest and linear resampling in any number of dimensions. It is separable, so the derivative adds g back to the
 * source elements one dimension at a time. Coordinates as in PyTorch (UpSample.h). */
#include "rules.h"

/* Input elements per output element along the k-th resized dimension. */
static double ratio(em_t *a, uint32_t k, uint32_t n, int64_t in, int64_t out, int align) {
  static const char *const names[3][3] = {
      {"scales", "", ""}, {"scales_h", "scales_w", ""}, {"scales_d", "scales_h", "scales_w"}};
  em_x_t given = ag_arg(a, names[n - 1][k]);
  if (AOT_DIM_IS_SYM(in) || AOT_DIM_IS_SYM(out)) {
    em_fail(a, AOT_E_INVALID, "specialise the size when exporting",
            "the derivative of resizing to a symbolic size is not supported");
    return 1;
  }
  if (align) return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
  if (given.kind != AOT_ARG_NONE && ag_number(a, given, 1) > 0) return 1 / ag_number(a, given, 1);
  return out > 0 ? (double)in / (double)out : 1;
}

/* scale * ((0, 1, ..) + shift), in the precision and the order that PyTorch has: where a coordinate is a whole number,
 * the last bit decides which element is read. */
static em_x_t coordinates(em_t *a, const ag_type_t *t, int64_t out, double scale, double shift) {
  int32_t dtype = t->dtype == AOT_F64 ? AOT_F64 : AOT_F32;
  em_x_t i;
  if (scale == 0) { /* corners aligned, one element: the first; ag_mul would make no gradient of it */
    return AG_OP(a, "full", em_list(a, &out, 1), em_i(0), aot_arg_dtype(dtype), em_none(), ag_device(t));
  }
  i = AG_OP(a, "arange", em_i(out), aot_arg_dtype(dtype), em_none(), ag_device(t));
  return ag_mul(a, shift != 0 ? ag_add(a, i, em_f(shift)) : i, em_f(scale));
}

static em_x_t as_index(em_t *a, em_x_t x, int64_t n) {
  return AG_OP(a, "clamp", ag_cast(a, AG_OP(a, "floor", x), AOT_I64), em_i(0), em_i(n - 1));
}

static int is_exact(const em_t *a) {
  static const char exact[] = "aten._upsample_nearest_exact";
  return a->desc->name.size > sizeof exact && memcmp(a->desc->name.data, exact, sizeof exact - 1) == 0;
}

static int is_symbolic(const ag_type_t *x, const ag_type_t *g) {
  return AOT_DIM_IS_SYM(x->sizes[2]) || AOT_DIM_IS_SYM(g->sizes[2]);
}

/* Of a row whose sizes are not known yet: as an image of one line, whose derivative is an operator that reads them when
 * it runs. */
static void row_as_image(em_t *a, const char *op, em_x_t g, const ag_type_t *x, const ag_type_t *out, int is_linear) {
  const int64_t output[] = {1, out->sizes[2]}, input[] = {x->sizes[0], x->sizes[1], 1, x->sizes[2]};
  em_x_t to = em_list(a, output, 2), from = em_list(a, input, 4), scale = ag_arg(a, "scales");
  g = AG_OP(a, "unsqueeze", g, em_i(2));
  if (is_linear) g = AG_OP(a, op, g, to, from, ag_arg(a, "align_corners"), em_none(), scale);
  else g = AG_OP(a, op, g, to, from, em_none(), scale);
  ag_set(a, "self", AG_OP(a, "squeeze.dim", g, em_i(2)));
}

/* Element i reads floor(i r), or with exact floor((i + 1/2) r). */
void ag_rule_nearest(em_t *a) {
  em_x_t g = ag_wide(a, ag_g(a, 0)), x = ag_arg(a, "self");
  ag_type_t tx = ag_type(a, x), t = ag_type(a, g);
  uint32_t n = (uint32_t)t.rank - 2, k;
  if (n == 1 && is_symbolic(&tx, &t) && !is_exact(a)) {
    row_as_image(a, "upsample_nearest2d_backward", g, &tx, &t, 0);
    return;
  }
  for (k = 0; k < n && a->status == AOT_OK; k++) {
    int64_t out = t.sizes[k + 2], in = tx.sizes[k + 2];
    double r = ratio(a, k, n, in, out, 0);
    em_x_t at = as_index(a, coordinates(a, &t, out, r, is_exact(a) ? 0.5 : 0), in);
    t.sizes[k + 2] = in;
    g = AG_OP(a, "index_add", ag_zeros(a, &t), em_i(k + 2), at, g);
  }
  ag_set(a, "self", g);
}

/* Element i reads two neighbours of the coordinate c = i r (corners aligned), or max(0, (i + 1/2) r - 1/2). */
void ag_rule_linear_resize(em_t *a) {
  em_x_t g = ag_wide(a, ag_g(a, 0)), x = ag_arg(a, "self");
  ag_type_t tx = ag_type(a, x), t = ag_type(a, g);
  int align = ag_is_set(a, "align_corners", 0);
  uint32_t n = (uint32_t)t.rank - 2, k;
  if (n == 1 && is_symbolic(&tx, &t)) {
    row_as_image(a, "upsample_bilinear2d_backward", g, &tx, &t, 1);
    return;
  }
  for (k = 0; k < n && a->status == AOT_OK; k++) {
    int64_t out = t.sizes[k + 2], in = tx.sizes[k + 2], shape[AOT_MAX_RANK];
    double r = ratio(a, k, n, in, out, align);
    em_x_t c = coordinates(a, &t, out, r, align ? 0 : 0.5), low, high, weight, sum;
    uint32_t d;
    if (!align) c = AG_OP(a, "clamp", ag_sub(a, c, em_f(0.5)), em_i(0));
    low = as_index(a, c, in);
    high = AG_OP(a, "clamp", ag_add(a, low, em_i(1)), em_none(), em_i(in - 1));
    weight = ag_cast(a, ag_sub(a, c, low), t.dtype);
    for (d = 0; d < (uint32_t)t.rank; d++) shape[d] = d == k + 2 ? out : 1;
    weight = ag_reshape(a, weight, shape, t.rank);
    t.sizes[k + 2] = in;
    sum = AG_OP(a, "index_add", ag_zeros(a, &t), em_i(k + 2), low, ag_mul(a, g, ag_sub(a, em_i(1), weight)));
    g = AG_OP(a, "index_add", sum, em_i(k + 2), high, ag_mul(a, g, weight));
  }
  ag_set(a, "self", g);
}
