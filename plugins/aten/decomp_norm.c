/* Normalizations in closed form, forward and backward.
 *
 * Letters: x input, m mean, r 1 / sqrt(variance + eps), h = (x - m) r, w weight, g gradient of the result, gh = g w, N
 * the number of elements that share m and r. Then
 *
 *     y = h w + b        gx = r (gh - mean(gh) - h mean(gh h))        gw = sum g h        gb = sum g
 *
 * where means run over the N elements, sums over everything that shares a weight. rms norm has m = 0 and no mean(gh)
 * term. All in float32 for half inputs. Statistics that do not depend on x (batch norm in evaluation): gx = gh r. */
#include "at_formula.h"

#include <float.h>
#include <string.h>

typedef struct norm {
  em_x_t x, m, r, h; /* m: None for rms norm */
  int64_t dims[AOT_MAX_RANK], count;
  uint32_t n_dims;
} norm_t;

static em_x_t mean_over(em_t *e, const norm_t *n, em_x_t x) {
  return DIV(at_summed(e, x, n->dims, n->n_dims, 1), em_i(n->count));
}

static norm_t over_dims(em_t *e, em_x_t x, const int64_t *dims, uint32_t n_dims) {
  norm_t n;
  aot_type_t t = TYPE(x);
  uint32_t i;
  memset(&n, 0, sizeof n);
  n.x = x;
  n.m = n.r = n.h = em_none();
  n.n_dims = n_dims;
  n.count = 1;
  for (i = 0; i < n_dims; i++) {
    n.dims[i] = dims[i];
    n.count = at_mul(at_infer(e), n.count, t.sizes[dims[i]]);
  }
  return n;
}

static void standardize(em_t *e, norm_t *n, em_x_t eps) {
  em_x_t d;
  n->m = mean_over(e, n, n->x);
  d = SUB(n->x, n->m);
  n->r = RSQRT(ADD(mean_over(e, n, MUL(d, d)), eps));
  n->h = MUL(d, n->r);
}

static em_x_t input_gradient(em_t *e, const norm_t *n, em_x_t gh, int has_mean) {
  em_x_t along = MUL(n->h, mean_over(e, n, MUL(gh, n->h)));
  if (has_mean) gh = SUB(gh, mean_over(e, n, gh));
  return MUL(n->r, SUB(gh, along));
}

/* The last dimensions, as normalized_shape names them. */
static norm_t over_rows(em_t *e, em_x_t x) {
  const int64_t *shape;
  uint32_t k = at_in_ints(e, "normalized_shape", &shape), i;
  int64_t dims[AOT_MAX_RANK];
  int32_t rank = TYPE(x).rank;
  for (i = 0; i < k; i++) dims[i] = rank - (int32_t)k + (int32_t)i;
  return over_dims(e, x, dims, k);
}

/* Sum over the dimensions that come before the normalized ones. */
static em_x_t over_outer(em_t *e, const norm_t *n, em_x_t x) {
  int64_t dims[AOT_MAX_RANK];
  uint32_t k = (uint32_t)TYPE(n->x).rank - n->n_dims, i;
  for (i = 0; i < k; i++) dims[i] = i;
  return at_summed(e, x, dims, k, 0);
}

static em_x_t scaled(em_t *e, em_x_t h, em_x_t w, em_x_t b) {
  if (!em_is_none(w)) h = MUL(h, at_math(e, w));
  return em_is_none(b) ? h : ADD(h, at_math(e, b));
}

static void give(em_t *e, uint32_t i, em_x_t x, aot_value_t *out) {
  aot_type_t t = at_result_type(e, i);
  out[i] = aot_no_value();
  if (!em_is_none(x) && t.kind == AOT_TYPE_TENSOR)
    out[i] = VAL(em_cast(e, at_reshaped(e, x, t.sizes, t.rank), t.dtype));
}

static int wanted(em_t *e, uint32_t i) {
  const int64_t *mask;
  return i < at_in_ints(e, "output_mask", &mask) && mask[i] != 0;
}

/* ---- layer norm ---- */

aot_status_t at_dc_layer_norm(em_t *e, aot_value_t *out) {
  return at_give(
      e, EM(e, "native_layer_norm", IN("input"), IN("normalized_shape"), IN("weight"), IN("bias"), IN("eps")), out);
}

aot_status_t at_dc_native_layer_norm(em_t *e, aot_value_t *out) {
  norm_t n = over_rows(e, at_math(e, IN("input")));
  standardize(e, &n, IN("eps"));
  give(e, 0, scaled(e, n.h, IN("weight"), IN("bias")), out);
  give(e, 1, n.m, out);
  give(e, 2, n.r, out);
  return e->status;
}

static void give_row_gradients(em_t *e, const norm_t *n, em_x_t g, int has_mean, const int *want, aot_value_t *out) {
  em_x_t w = at_math(e, IN("weight"));
  uint32_t i;
  for (i = 0; i < e->desc->n_results; i++) out[i] = aot_no_value();
  if (want[0]) give(e, 0, input_gradient(e, n, em_is_none(w) ? g : MUL(g, w), has_mean), out);
  if (want[1]) give(e, 1, over_outer(e, n, MUL(g, n->h)), out);
  if (e->desc->n_results > 2 && want[2]) give(e, 2, over_outer(e, n, g), out);
}

aot_status_t at_dc_native_layer_norm_backward(em_t *e, aot_value_t *out) {
  int want[3] = {wanted(e, 0), wanted(e, 1) && at_in_has(e, "weight"), wanted(e, 2) && at_in_has(e, "bias")};
  norm_t n = over_rows(e, at_math(e, IN("input")));
  n.m = at_math(e, IN("mean"));
  n.r = at_math(e, IN("rstd"));
  n.h = MUL(SUB(n.x, n.m), n.r);
  give_row_gradients(e, &n, at_math(e, IN("grad_out")), 1, want, out);
  return e->status;
}

/* The statistics again. */
aot_status_t at_dc_layer_norm_backward(em_t *e, aot_value_t *out) {
  int want[3] = {1, at_in_has(e, "weight"), at_in_has(e, "bias")};
  norm_t n = over_rows(e, at_math(e, IN("input")));
  standardize(e, &n, IN("eps"));
  give_row_gradients(e, &n, at_math(e, IN("grad")), 1, want, out);
  return e->status;
}

/* ---- rms norm ---- */

/* Without eps: that of the dtype computed in. */
static em_x_t rms_eps(em_t *e, em_x_t x) {
  if (at_in_has(e, "eps")) return IN("eps");
  return em_f(TYPE(x).dtype == AOT_F64 ? DBL_EPSILON : (double)FLT_EPSILON);
}

static norm_t rms(em_t *e) {
  norm_t n = over_rows(e, at_math(e, IN("input")));
  n.r = RSQRT(ADD(mean_over(e, &n, MUL(n.x, n.x)), rms_eps(e, n.x)));
  n.h = MUL(n.x, n.r);
  return n;
}

aot_status_t at_dc_rms_norm(em_t *e, aot_value_t *out) {
  norm_t n = rms(e);
  give(e, 0, scaled(e, n.h, IN("weight"), em_none()), out);
  if (e->desc->n_results == 2) give(e, 1, n.r, out);
  return e->status;
}

aot_status_t at_dc_rms_norm_backward(em_t *e, aot_value_t *out) {
  int want[2] = {1, at_in_has(e, "weight")};
  norm_t n = rms(e);
  give_row_gradients(e, &n, at_math(e, IN("grad")), 0, want, out);
  return e->status;
}

aot_status_t at_dc_fused_rms_norm_backward(em_t *e, aot_value_t *out) {
  int want[2] = {wanted(e, 0), wanted(e, 1) && at_in_has(e, "weight")};
  norm_t n = over_rows(e, at_math(e, IN("input")));
  n.r = at_math(e, IN("rstd"));
  n.h = MUL(n.x, n.r);
  give_row_gradients(e, &n, at_math(e, IN("grad_out")), 0, want, out);
  return e->status;
}

/* ---- group norm: the input as [N, group, C / group, HxW] ---- */

aot_status_t at_dc_group_norm(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input");
  aot_type_t t = TYPE(x);
  int64_t space = at_numel(at_infer(e), t.sizes + 2, t.rank - 2);
  return at_give(e,
                 EM(e, "native_group_norm", x, IN("weight"), IN("bias"), em_i(t.sizes[0]), em_i(t.sizes[1]),
                    em_i(space), IN("num_groups"), IN("eps")),
                 out);
}

static void group_sizes(em_t *e, int64_t *out) {
  int64_t groups = at_in_int(e, "group", 1);
  out[0] = at_in_int(e, "N", 0);
  out[1] = groups;
  out[2] = at_floordiv(at_infer(e), at_in_int(e, "C", 0), groups);
  out[3] = at_in_int(e, "HxW", 0);
}

/* A per-channel vector as [1, group, C / group, 1]. */
static em_x_t per_channel(em_t *e, em_x_t w, const int64_t *sizes) {
  int64_t shape[4] = {1, sizes[1], sizes[2], 1};
  return em_is_none(w) ? w : at_reshaped(e, at_math(e, w), shape, 4);
}

static const int64_t group_dims[2] = {2, 3};

/* Groups are rows of a layer norm without weights. */
aot_status_t at_dc_native_group_norm(em_t *e, aot_value_t *out) {
  int64_t sizes[4], rows[3];
  em_x_t y, h;
  group_sizes(e, sizes);
  rows[0] = sizes[0];
  rows[1] = sizes[1];
  rows[2] = at_mul(at_infer(e), sizes[2], sizes[3]);
  y = EM(e, "native_layer_norm", at_reshaped(e, at_math(e, IN("input")), rows, 3), em_list(e, &rows[2], 1), em_none(),
         em_none(), IN("eps"));
  h = at_reshaped(e, y, sizes, 4);
  give(e, 0, scaled(e, h, per_channel(e, IN("weight"), sizes), per_channel(e, IN("bias"), sizes)), out);
  give(e, 1, em_nth(y, 1), out);
  give(e, 2, em_nth(y, 2), out);
  return e->status;
}

aot_status_t at_dc_native_group_norm_backward(em_t *e, aot_value_t *out) {
  static const int64_t per_weight[2] = {0, 3};
  int64_t sizes[4], stats[4];
  norm_t n;
  em_x_t g, w;
  group_sizes(e, sizes);
  stats[0] = sizes[0];
  stats[1] = sizes[1];
  stats[2] = stats[3] = 1;
  n = over_dims(e, at_reshaped(e, at_math(e, IN("input")), sizes, 4), group_dims, 2);
  n.m = at_reshaped(e, at_math(e, IN("mean")), stats, 4);
  n.r = at_reshaped(e, at_math(e, IN("rstd")), stats, 4);
  n.h = MUL(SUB(n.x, n.m), n.r);
  g = at_reshaped(e, at_math(e, IN("grad_out")), sizes, 4);
  w = per_channel(e, IN("weight"), sizes);
  out[0] = out[1] = out[2] = aot_no_value();
  if (wanted(e, 0)) give(e, 0, input_gradient(e, &n, em_is_none(w) ? g : MUL(g, w), 1), out);
  if (wanted(e, 1)) give(e, 1, at_summed(e, MUL(g, n.h), per_weight, 2, 0), out);
  if (wanted(e, 2)) give(e, 2, at_summed(e, g, per_weight, 2, 0), out);
  return e->status;
}

/* ---- batch norm: all dimensions but the channels' ---- */

static norm_t over_batch(em_t *e, em_x_t x) {
  int64_t dims[AOT_MAX_RANK];
  int32_t rank = TYPE(x).rank, d;
  uint32_t k = 0;
  for (d = 0; d < rank; d++)
    if (d != 1) dims[k++] = d;
  return over_dims(e, x, dims, k);
}

static em_x_t channels(em_t *e, em_x_t v, em_x_t x) {
  return em_is_none(v) ? v : at_along(e, at_math(e, v), 1, TYPE(x).rank);
}

/* batch_norm itself: native form; in training the running statistics are written. */
aot_status_t at_dc_batch_norm(em_t *e, aot_value_t *out) {
  em_x_t mean = IN("running_mean"), var = IN("running_var"), y;
  if (!at_in_int(e, "training", 0) && !em_is_none(mean)) {
    y = EM(e, "_native_batch_norm_legit_no_training", IN("input"), IN("weight"), IN("bias"), mean, var, IN("momentum"),
           IN("eps"));
  } else if (em_is_none(mean)) {
    y = EM(e, "_native_batch_norm_legit.no_stats", IN("input"), IN("weight"), IN("bias"), em_b(1), IN("momentum"),
           IN("eps"));
  } else {
    y = EM(e, "_native_batch_norm_legit_functional", IN("input"), IN("weight"), IN("bias"), mean, var, em_b(1),
           IN("momentum"), IN("eps"));
    EM(e, "copy_", mean, em_nth(y, 3));
    EM(e, "copy_", var, em_nth(y, 4));
  }
  return at_give(e, y, out);
}

/* (1 - momentum) old + momentum new; a batch of nothing changes nothing. */
static em_x_t running(em_t *e, const norm_t *n, em_x_t old, em_x_t new_value) {
  const double momentum = em_in_float(e, "momentum", 0.1);
  const int64_t any = at_min(at_infer(e), n->count, 1);
  if (any == 0) return old;
  const em_x_t next = ADD(MUL(old, em_f(1.0 - momentum)), MUL(new_value, em_f(momentum)));
  if (any == 1) return next;
  return WHERE(EM(e, "ne.Scalar", at_filled(e, NULL, 0, em_i(any), AOT_I64, old), em_i(0)), next, old);
}

/* Sums of x over the batch's dimensions, the innermost of an image first: stored as dimensions of 1. */
static em_x_t over_images(em_t *e, const norm_t *n, em_x_t x) { return at_summed(e, x, n->dims, n->n_dims, 1); }

/* The sum of the squares of x - m, of f16 or bf16: with m found in the same pass over them, from what they are more
 * than the first of the channel, so that what cancels is no larger than they spread. */
static em_x_t squares_in_one_pass(em_t *e, norm_t *n) {
  em_x_t first = IN("input");
  for (uint32_t k = 0; k < n->n_dims; k++) first = EM(e, "slice.Tensor", first, em_i(n->dims[k]), em_i(0), em_i(1));
  first = at_math(e, first);
  const em_x_t more = SUB(n->x, first), sum = over_images(e, n, more), squares = over_images(e, n, MUL(more, more));
  const em_x_t mean = DIV(sum, em_i(n->count));
  n->m = ADD(mean, first);
  return EM(e, "clamp_min", SUB(squares, MUL(sum, mean)), em_i(0));
}

static em_x_t squares_in_two_passes(em_t *e, norm_t *n) {
  n->m = mean_over(e, n, n->x);
  const em_x_t d = SUB(n->x, n->m);
  return over_images(e, n, MUL(d, d));
}

/* The statistics of a batch, and the sum of the squares of x - m. */
static em_x_t standardize_batch(em_t *e, norm_t *n, em_x_t eps) {
  const int are_halves = aot_dtype_size(TYPE(IN("input")).dtype) == 2 && at_min(at_infer(e), n->count, 1) == 1;
  const em_x_t squares = are_halves ? squares_in_one_pass(e, n) : squares_in_two_passes(e, n);
  n->r = RSQRT(ADD(DIV(squares, em_i(n->count)), eps));
  n->h = MUL(SUB(n->x, n->m), n->r);
  return squares;
}

/* The native forms. Training: the batch's statistics, which are saved; the running variance takes the unbiased one. */
aot_status_t at_dc_native_batch_norm(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("input")), mean = IN("running_mean"), var = IN("running_var");
  norm_t n = over_batch(e, x);
  int training = at_in_int(e, "training", 0) != 0;
  uint32_t i;
  if (!training) {
    n.m = channels(e, mean, x);
    n.r = RSQRT(ADD(channels(e, var, x), IN("eps")));
    give(e, 0, scaled(e, MUL(SUB(x, n.m), n.r), channels(e, IN("weight"), x), channels(e, IN("bias"), x)), out);
    for (i = 1; i < 3; i++) {
      aot_type_t t = at_result_type(e, i);
      out[i] = VAL(at_filled(e, t.sizes, t.rank, em_f(0.0), t.dtype, x));
    }
    if (e->desc->n_results == 5) {
      out[3] = VAL(mean);
      out[4] = VAL(var);
    }
    return e->status;
  }
  if (!em_is_none(mean) && e->desc->n_results == 3) { /* the running statistics are written */
    em_x_t y = EM(e, "_native_batch_norm_legit_functional", x, IN("weight"), IN("bias"), mean, var, em_b(1),
                  IN("momentum"), IN("eps"));
    for (i = 0; i < 3; i++) give(e, i, em_nth(y, i), out);
    EM(e, "copy_", mean, em_nth(y, 3));
    EM(e, "copy_", var, em_nth(y, 4));
    return e->status;
  }
  const em_x_t squares = standardize_batch(e, &n, IN("eps"));
  give(e, 0, scaled(e, n.h, channels(e, IN("weight"), x), channels(e, IN("bias"), x)), out);
  give(e, 1, n.m, out);
  give(e, 2, n.r, out);
  if (e->desc->n_results == 5) {
    const em_x_t unbiased = DIV(squares, em_i(at_sub(at_infer(e), n.count, 1)));
    aot_type_t t = TYPE(mean);
    give(e, 3, running(e, &n, mean, at_reshaped(e, n.m, t.sizes, t.rank)), out);
    give(e, 4, running(e, &n, var, at_reshaped(e, unbiased, t.sizes, t.rank)), out);
  }
  return e->status;
}

/* gw and gb are the sums that gx has as means: w is the same for all elements of one. */
static void batch_gradients(em_t *e, norm_t *n, em_x_t g, int training, const int *want, aot_value_t *out) {
  const em_x_t w = channels(e, IN("weight"), n->x), scale = em_is_none(w) ? n->r : MUL(n->r, w);
  em_x_t sum = em_none(), along = em_none();
  n->h = MUL(SUB(n->x, n->m), n->r);
  if (training || want[2]) sum = over_images(e, n, g);
  if (training || want[1]) along = over_images(e, n, MUL(g, n->h));
  out[0] = out[1] = out[2] = aot_no_value();
  if (want[1]) give(e, 1, along, out);
  if (want[2]) give(e, 2, sum, out);
  if (want[0] && training) g = SUB(SUB(g, DIV(sum, em_i(n->count))), MUL(n->h, DIV(along, em_i(n->count))));
  if (want[0]) give(e, 0, MUL(g, scale), out);
}

/* native_batch_norm_backward(.., save_mean, save_invstd, train, eps, output_mask) and the private form, which differ in
 * the names of two arguments. */
aot_status_t at_dc_batch_norm_backward(em_t *e, aot_value_t *out) {
  int native = at_in_has(e, "grad_out"), training = at_in_int(e, native ? "train" : "training", 0) != 0;
  int want[3] = {1, at_in_has(e, "weight"), 1};
  em_x_t x = at_math(e, IN("input"));
  norm_t n = over_batch(e, x);
  uint32_t i;
  for (i = 0; native && i < 3; i++) want[i] = wanted(e, i);
  if (training) {
    n.m = channels(e, at_in_has(e, "save_mean") ? IN("save_mean") : em_none(), x);
    n.r = channels(e, IN("save_invstd"), x);
  } else {
    n.m = channels(e, IN("running_mean"), x);
    n.r = RSQRT(ADD(channels(e, IN("running_var"), x), IN("eps")));
  }
  batch_gradients(e, &n, at_math(e, IN(native ? "grad_out" : "grad")), training, want, out);
  return e->status;
}

/* ---- cuDNN's batch norm: the native one; what cuDNN would note for its backward is empty ---- */

aot_status_t at_dc_cudnn_batch_norm(em_t *e, aot_value_t *out) {
  static const int64_t none[1] = {0};
  em_x_t y = EM(e, "native_batch_norm", IN("input"), IN("weight"), IN("bias"), IN("running_mean"), IN("running_var"),
                IN("training"), IN("exponential_average_factor"), IN("epsilon"));
  uint32_t i;
  for (i = 0; i < 3; i++) out[i] = VAL(em_nth(y, i));
  out[3] = VAL(at_filled(e, none, 1, em_i(0), AOT_U8, IN("input")));
  return e->status;
}

aot_status_t at_dc_cudnn_batch_norm_backward(em_t *e, aot_value_t *out) {
  static const int64_t all[3] = {1, 1, 1};
  em_x_t mask = em_list(e, all, 3), dx;
  uint32_t i;
  mask.kind = AOT_ARG_BOOLS;
  dx = EM(e, "native_batch_norm_backward", IN("grad_output"), IN("input"), IN("weight"), IN("running_mean"),
          IN("running_var"), IN("save_mean"), IN("save_var"), em_b(1), IN("epsilon"), mask);
  for (i = 0; i < 3; i++) out[i] = VAL(em_nth(dx, i));
  return e->status;
}
