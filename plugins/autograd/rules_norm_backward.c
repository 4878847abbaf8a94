/* Second derivatives of normalizations. With h = (x - m) r the normalized input, f = G w the gradient of h, and means
 * over the N elements that share m and r, the backward is
 *
 *     gx = r (f - mean(f) - h mean(f h))        gw = sum G h        gb = sum G
 *
 * The cotangents of gx, gw, gb contribute to G, w and x. m and r are functions of x in PyTorch
 * (layer_norm_double_backward, batchnorm_double_backward in FunctionsManual.cpp), so x also gets the gradient through
 * them: dr/dx = -r^2 h / N. Statistics independent of x (batch norm in evaluation): gx = f r. Group and rms norm need
 * no rule: their statistics are differentiable results, so their decomposition is enough. */
#include "rules.h"

typedef struct norm {
  em_x_t h, r, w, dims, count;
  int32_t rank;
  int channels; /* a weight is per dimension 1, not per normalized element */
} norm_t;

static em_x_t mean_of(em_t *a, const norm_t *n, em_x_t x) {
  return ag_div(a, AG_OP(a, "sum.dim_IntList", x, n->dims, em_b(1)), n->count);
}

/* A weight, or what is shaped like one, as it broadcasts over the input. */
static em_x_t over_input(em_t *a, const norm_t *n, em_x_t w) {
  int64_t sizes[AOT_MAX_RANK];
  int32_t d;
  if (!em_is_value(w) || !n->channels) return ag_wide(a, w);
  for (d = 0; d < n->rank; d++) sizes[d] = d == 1 ? ag_type(a, w).sizes[0] : 1;
  return ag_reshape(a, ag_wide(a, w), sizes, n->rank);
}

static em_x_t weighted(em_t *a, const norm_t *n, em_x_t x) { return em_is_value(n->w) ? ag_mul(a, x, n->w) : x; }

/* x - mean(x) - h mean(x h) */
static em_x_t projected(em_t *a, const norm_t *n, em_x_t x) {
  em_x_t along;
  if (x.kind == AOT_ARG_NONE) return x;
  along = ag_mul(a, n->h, mean_of(a, n, ag_mul(a, x, n->h)));
  return ag_sub(a, ag_sub(a, x, mean_of(a, n, x)), along);
}

/* What x gets from gx, through h and through r. */
static em_x_t to_input(em_t *a, const norm_t *n, em_x_t g, em_x_t at_gx, em_x_t at_gw) {
  em_x_t f = weighted(a, n, g), through_h = ag_mul(a, at_gw, g), through_r = em_none(), p, q, both;
  if (at_gx.kind != AOT_ARG_NONE) {
    p = mean_of(a, n, ag_mul(a, at_gx, n->h));
    q = mean_of(a, n, ag_mul(a, f, n->h));
    both = ag_add(a, ag_mul(a, at_gx, q), ag_mul(a, f, p));
    through_h = ag_sub(a, through_h, ag_mul(a, n->r, both));
    through_r = ag_sub(a, mean_of(a, n, ag_mul(a, at_gx, f)), ag_mul(a, p, q));
    through_r = ag_sub(a, through_r, ag_mul(a, mean_of(a, n, at_gx), mean_of(a, n, f)));
    through_r = ag_mul(a, ag_mul(a, n->r, n->r), ag_mul(a, n->h, through_r));
  }
  return ag_sub(a, ag_mul(a, n->r, projected(a, n, through_h)), through_r);
}

static void set_weight(em_t *a, const norm_t *n, em_x_t d) {
  ag_type_t t;
  if (!ag_needs(a, "weight") || d.kind == AOT_ARG_NONE) return;
  t = ag_type(a, n->w);
  ag_set(a, "weight", ag_reshape_like(a, ag_sum_to(a, d, t.sizes, t.rank), ag_arg(a, "weight")));
}

/* fixed: m and r do not depend on x */
static void differentiate(em_t *a, const norm_t *n, int fixed) {
  em_x_t g = ag_wide(a, ag_arg(a, "grad_out")), at_gx = ag_wide(a, ag_g(a, 0)), at_gw = over_input(a, n, ag_g(a, 1));
  em_x_t at_gb = over_input(a, n, ag_g(a, 2)), slope = ag_mul(a, n->r, fixed ? at_gx : projected(a, n, at_gx));
  if (ag_needs(a, "grad_out"))
    ag_set(a, "grad_out",
           ag_add(a, ag_add(a, weighted(a, n, slope), ag_mul(a, at_gw, n->h)),
                  at_gb.kind == AOT_ARG_NONE ? at_gb : ag_add(a, ag_zeros_like(a, g), at_gb)));
  set_weight(a, n, ag_mul(a, g, slope));
  if (ag_needs(a, "input"))
    ag_set(a, "input", fixed ? ag_mul(a, ag_mul(a, at_gw, g), n->r) : to_input(a, n, g, at_gx, at_gw));
}

static norm_t normalized(em_t *a, em_x_t m, em_x_t r, em_x_t dims, int channels) {
  em_x_t x = ag_wide(a, ag_arg(a, "input"));
  norm_t n;
  memset(&n, 0, sizeof n);
  n.rank = ag_type(a, x).rank;
  n.channels = channels;
  n.dims = dims;
  n.count = ag_extent(a, x, dims);
  n.r = over_input(a, &n, r);
  n.h = ag_mul(a, ag_sub(a, x, over_input(a, &n, m)), n.r);
  n.w = over_input(a, &n, ag_arg(a, "weight"));
  return n;
}

static em_x_t last_dims(em_t *a) {
  int64_t dims[AOT_MAX_RANK];
  uint32_t k = ag_arg(a, "normalized_shape").n, i;
  for (i = 0; i < k && i < AOT_MAX_RANK; i++) dims[i] = (int64_t)i - k;
  return em_list(a, dims, i);
}

void ag_rule_layer_norm_backward(em_t *a) {
  norm_t n = normalized(a, ag_arg(a, "mean"), ag_arg(a, "rstd"), last_dims(a), 0);
  differentiate(a, &n, 0);
}

void ag_rule_batch_norm_backward(em_t *a) {
  int64_t dims[AOT_MAX_RANK];
  int32_t rank = ag_type(a, ag_arg(a, "input")).rank, d, k = 0;
  int train = ag_is_set(a, "train", 1);
  em_x_t m = ag_arg(a, train ? "save_mean" : "running_mean"), r = ag_arg(a, "save_invstd");
  norm_t n;
  for (d = 0; d < rank; d++)
    if (d != 1) dims[k++] = d;
  if (!train) r = AG_OP(a, "rsqrt", ag_add(a, ag_arg(a, "running_var"), ag_arg(a, "eps")));
  n = normalized(a, m, r, em_list(a, dims, (uint32_t)k), 1);
  differentiate(a, &n, !train);
}
