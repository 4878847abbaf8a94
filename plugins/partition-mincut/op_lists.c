#include "op_lists.h"

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* Sorted. Those with the tag `pointwise` are in it too; forms that write are not, since programs are functional
 * here. */
/* clang-format off */
static const char *const recomputable[] = {
    "aten.__and__", "aten.__ilshift__", "aten.__ixor__", "aten.__lshift__", "aten.__or__", "aten.__rshift__",
    "aten.__xor__", "aten._grad_sum_to_size", "aten._to_copy", "aten._unsafe_view", "aten.abs", "aten.acos",
    "aten.acosh",
    "aten.add", "aten.addcdiv", "aten.addcmul", "aten.alias", "aten.amax", "aten.angle", "aten.any", "aten.arange",
    "aten.argmax", "aten.as_strided", "aten.asin", "aten.asinh", "aten.atan", "aten.atan2", "aten.atanh",
    "aten.bitwise_and", "aten.bitwise_left_shift", "aten.bitwise_not", "aten.bitwise_or", "aten.bitwise_right_shift",
    "aten.bitwise_xor", "aten.broadcast_tensors", "aten.ceil", "aten.celu", "aten.clamp", "aten.clamp_max",
    "aten.clamp_min", "aten.clip", "aten.clone", "aten.conj_physical", "aten.copysign", "aten.cos", "aten.cosh",
    "aten.deg2rad", "aten.digamma", "aten.div", "aten.elu", "aten.empty", "aten.empty_like", "aten.eq", "aten.equal",
    "aten.erf", "aten.erfc", "aten.erfinv", "aten.exp", "aten.exp2", "aten.expand", "aten.expm1", "aten.float_power",
    "aten.floor", "aten.fmax", "aten.fmin", "aten.fmod", "aten.frac", "aten.frexp", "aten.full", "aten.full_like",
    "aten.gather", "aten.gcd", "aten.ge", "aten.gelu", "aten.gelu_backward", "aten.gt", "aten.hardshrink",
    "aten.hardsigmoid", "aten.hardtanh", "aten.heaviside", "aten.hypot", "aten.i0", "aten.igamma", "aten.igammac",
    "aten.index", "aten.isfinite", "aten.isinf", "aten.isnan", "aten.isneginf", "aten.isposinf", "aten.lcm",
    "aten.ldexp",
    "aten.le", "aten.lerp", "aten.lgamma", "aten.lift_fresh_copy", "aten.log", "aten.log10", "aten.log1p", "aten.log2",
    "aten.logaddexp", "aten.logaddexp2", "aten.logical_and", "aten.logical_not", "aten.logical_or", "aten.logical_xor",
    "aten.logit", "aten.logit_backward", "aten.lt", "aten.masked_fill", "aten.max", "aten.maximum", "aten.mean",
    "aten.min", "aten.minimum", "aten.mish", "aten.mul", "aten.mvlgamma", "aten.nan_to_num",
    "aten.native_dropout_backward", "aten.ne", "aten.neg", "aten.new_zeros", "aten.nextafter", "aten.ones",
    "aten.permute", "aten.polygamma", "aten.positive", "aten.pow", "aten.rad2deg", "aten.reciprocal", "aten.relu",
    "aten.relu6", "aten.remainder", "aten.reshape", "aten.round", "aten.rrelu", "aten.rsqrt", "aten.rsub",
    "aten.scalar_tensor", "aten.select", "aten.selu", "aten.sgn", "aten.sigmoid", "aten.sigmoid_backward", "aten.sign",
    "aten.signbit", "aten.silu", "aten.silu_backward", "aten.sin", "aten.sinc", "aten.sinh", "aten.slice",
    "aten.softplus", "aten.softshrink", "aten.special_airy_ai", "aten.special_bessel_j0", "aten.special_bessel_j1",
    "aten.special_bessel_y0", "aten.special_bessel_y1", "aten.special_chebyshev_polynomial_t",
    "aten.special_chebyshev_polynomial_u", "aten.special_chebyshev_polynomial_v", "aten.special_chebyshev_polynomial_w",
    "aten.special_entr", "aten.special_erfcx", "aten.special_hermite_polynomial_h",
    "aten.special_hermite_polynomial_he",
    "aten.special_i0e", "aten.special_i1", "aten.special_i1e", "aten.special_laguerre_polynomial_l",
    "aten.special_legendre_polynomial_p", "aten.special_log_ndtr", "aten.special_modified_bessel_i0",
    "aten.special_modified_bessel_i1", "aten.special_modified_bessel_k0", "aten.special_modified_bessel_k1",
    "aten.special_ndtri", "aten.special_scaled_modified_bessel_k0", "aten.special_scaled_modified_bessel_k1",
    "aten.special_shifted_chebyshev_polynomial_t", "aten.special_shifted_chebyshev_polynomial_u",
    "aten.special_shifted_chebyshev_polynomial_v", "aten.special_shifted_chebyshev_polynomial_w",
    "aten.special_spherical_bessel_j0", "aten.special_xlog1py", "aten.special_zeta", "aten.split", "aten.sqrt",
    "aten.square", "aten.squeeze", "aten.std", "aten.sub", "aten.sum", "aten.sum_to_size", "aten.t", "aten.tan",
    "aten.tanh", "aten.tanh_backward", "aten.threshold", "aten.threshold_backward", "aten.to", "aten.triu",
    "aten.true_divide", "aten.trunc", "aten.type_as", "aten.unsqueeze", "aten.var", "aten.var_mean", "aten.view",
    "aten.where", "aten.xlogy", "aten.zeros", "aten.zeros_like", "prims._low_memory_max_pool_offsets_to_indices",
    "prims.broadcast_in_dim", "prims.convert_element_type", "prims.div", "prims.iota", "prims.sum", "prims.var"};
/* clang-format on */

static const char *const views[] = {"aten.alias",  "aten.as_strided", "aten.expand", "aten.permute",
                                    "aten.select", "aten.slice",      "aten.split",  "aten.squeeze",
                                    "aten.t",      "aten.unsqueeze",  "aten.view",   "prims.broadcast_in_dim"};

static const char *const random_ops[] = {"aten.native_dropout", "aten.rand_like", "aten.randn_like"};

static const char *const compute_intensive[] = {"aten._efficient_attention_forward",
                                                "aten._flash_attention_forward",
                                                "aten._scaled_dot_product_efficient_attention",
                                                "aten._scaled_dot_product_flash_attention",
                                                "aten._scaled_mm",
                                                "aten.addmm",
                                                "aten.bmm",
                                                "aten.convolution",
                                                "aten.convolution_backward",
                                                "aten.mm",
                                                "aten.upsample_bilinear2d"};

static const char *const joins[] = {"aten.cat"};

typedef struct list {
  const char *const *names;
  size_t n;
  uint32_t bit;
} list_t;
#define LIST(a, bit)                                                                                                   \
  { a, sizeof a / sizeof *a, bit }
static const list_t lists[] = {LIST(recomputable, OL_CHEAP), LIST(views, OL_VIEW), LIST(random_ops, OL_RANDOM),
                               LIST(compute_intensive, OL_HEAVY), LIST(joins, OL_JOINS)};

static int compare_name(const void *key, const void *entry) {
  const aot_str_t *k = key;
  const char *name = *(const char *const *)entry;
  size_t n = strlen(name), common = n < k->size ? n : (size_t)k->size;
  int order = memcmp(k->data, name, common);
  return order ? order : (k->size > n) - (k->size < n);
}

/* "aten.add" of "aten.add.Tensor": PyTorch's lists name operators without their overload. */
static aot_str_t without_overload(aot_str_t name) {
  uint32_t dots = 0;
  for (uint64_t i = 0; i < name.size; i++)
    if (name.data[i] == '.' && ++dots == 2) name.size = i;
  return name;
}

/* Python's arithmetic on sizes, and taking a tuple apart. */
static int is_builtin(aot_str_t name) {
  static const char prefix[] = "<built-in function ";
  return name.size >= sizeof prefix - 1 && memcmp(name.data, prefix, sizeof prefix - 1) == 0;
}

uint32_t mc_listed(aot_str_t name) {
  if (is_builtin(name)) return OL_CHEAP;
  const aot_str_t packet = without_overload(name);
  uint32_t bits = 0;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (bsearch(&packet, lists[i].names, lists[i].n, sizeof *lists[i].names, compare_name)) bits |= lists[i].bit;
  return bits;
}
