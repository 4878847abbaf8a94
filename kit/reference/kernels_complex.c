/* Complex numbers: operators that make them and decomposes them, and what every other operator does with them.
 *
 * Functions are those of C11 (complex.h, annex G for branch cuts and infinities) in double, rounded once to the
 * dtype. */
#include "rk_complex.h"
#include "rk_view.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* ---- operators of their own ---- */

/* [..] complex as [.., 2] real */
static aot_status_t view_as_real(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, aot_dtype_is_complex(self->dtype), "dtype %s is not complex", aot_dtype_name(self->dtype));
  RK_CHECK(c, self->rank < AOT_MAX_RANK, "there are too many dimensions");
  rk_tensor_t *r = rk_result(c, 0);
  *r = rk_part(self, 0);
  r->sizes[r->rank] = 2;
  r->strides[r->rank++] = 1;
  return AOT_OK;
}

static int32_t complex_of(int32_t part) { return part == AOT_F32 ? AOT_C64 : part == AOT_F64 ? AOT_C128 : 0; }

/* [.., 2] real as [..] complex: a view where pairs are together, and lie evenly. */
static aot_status_t view_as_complex(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_view_begin(c, &self));
  rk_tensor_t *r = rk_result(c, 0);
  RK_CHECK(c, complex_of(self->dtype), "dtype %s is no part of a complex one", aot_dtype_name(self->dtype));
  RK_CHECK(c, self->rank > 0 && self->sizes[self->rank - 1] == 2, "the last dimension is not of size 2");
  r->rank--;
  r->dtype = complex_of(self->dtype);
  if (self->strides[self->rank - 1] != 1 || self->offset % 2) return AOT_E_UNIMPLEMENTED;
  for (int32_t d = 0; d < r->rank; d++) {
    if (self->strides[d] % 2 && self->sizes[d] > 1) return AOT_E_UNIMPLEMENTED;
    r->strides[d] /= 2;
  }
  r->offset /= 2;
  return AOT_OK;
}

static aot_status_t copy_as_complex(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, self->rank > 0 && self->sizes[self->rank - 1] == 2, "the last dimension is not of size 2");
  AOT_TRY(rk_check_result(c, 0, self->rank - 1, self->sizes));
  for (int imaginary = 0; imaginary < 2; imaginary++) {
    rk_tensor_t part = rk_part(rk_result(c, 0), imaginary), from = *self;
    from.rank--;
    from.offset += imaginary * self->strides[from.rank];
    rk_copy(&part, &from);
  }
  return AOT_OK;
}

static aot_status_t part_view(rk_ctx_t *c, int imaginary) {
  const rk_tensor_t *self;
  AOT_TRY(rk_view_begin(c, &self));
  RK_CHECK(c, aot_dtype_is_complex(self->dtype) || !imaginary, "dtype %s is not complex", aot_dtype_name(self->dtype));
  if (aot_dtype_is_complex(self->dtype)) *rk_result(c, 0) = rk_part(self, imaginary);
  return AOT_OK;
}
static aot_status_t real(rk_ctx_t *c) { return part_view(c, 0); }
static aot_status_t imag(rk_ctx_t *c) { return part_view(c, 1); }

/* Elements as they are, where they are real. */
static aot_status_t copied(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  return rk_put_tensor(c, 0, self);
}
static double neg_f(const double *x, const pw_par_t *p) {
  (void)p;
  return -x[0];
}
static aot_status_t no_real_numbers(rk_ctx_t *c) { return rk_fail(c, AOT_E_INVALID, "its result must be complex"); }

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("complex.default", no_real_numbers),
    ROW("polar.default", no_real_numbers),
    RK_VIEW("view_as_real.default", view_as_real),
    {"aten.view_as_complex.default", copy_as_complex, view_as_complex, NULL, 0},
    RK_VIEW("real.default", real),
    RK_VIEW("imag.default", imag),
    ROW("_conj.default", copied),
    ROW("conj_physical.default", copied),
    ROW("_conj_physical.default", copied),
    PW("_neg_view.default", PW_RESULT, neg_f, NULL),
};
const rk_family_t rk_family_complex = RK_FAMILY(rows);

/* ---- functions ---- */

#define F(name, expression)                                                                                            \
  static rk_complex_t name##_c(const rk_complex_t *x, const pw_par_t *p) {                                             \
    (void)p;                                                                                                           \
    return expression;                                                                                                 \
  }

/* The textbook product: infinities are not recovered, as PyTorch does not. */
static rk_complex_t times(rk_complex_t a, rk_complex_t b) {
  return rk_complex_of(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}
static rk_complex_t scaled(rk_complex_t a, double f) { return rk_complex_of(creal(a) * f, cimag(a) * f); }
/* a times an argument that is a real number more often than not. */
static rk_complex_t times_number(rk_complex_t a, rk_complex_t f) {
  return cimag(f) == 0 ? scaled(a, creal(f)) : times(a, f);
}
static rk_complex_t over(rk_complex_t a, rk_complex_t b) { return cimag(b) == 0 ? scaled(a, 1 / creal(b)) : a / b; }
static rk_complex_t sigmoid(rk_complex_t z) { return 1 / (1 + cexp(-z)); }

/* Small whole powers are products; 0 to the power 0 is 1. */
static rk_complex_t power(rk_complex_t z, rk_complex_t e) {
  const double n = creal(e);
  if (cimag(e) == 0 && n == 0) return 1;
  if (cimag(e) == 0 && n == 0.5) return csqrt(z);
  if (cimag(e) == 0 && n == -0.5) return 1 / csqrt(z);
  if (cimag(e) == 0 && n == floor(n) && fabs(n) <= 16) {
    rk_complex_t y = z;
    for (int k = 1; k < (int)fabs(n); k++) y = times(y, z);
    return n < 0 ? 1 / y : y;
  }
  if (creal(z) == 0 && cimag(z) == 0 && n > 0) return 0;
  return cpow(z, e);
}

static rk_complex_t unit(rk_complex_t z) {
  const double size = cabs(z);
  return size == 0 ? 0 : scaled(z, 1 / size);
}

/* log(1 + z) without cancellation near 0: log|1 + z| = log1p(x (x + 2) + y^2) / 2. */
static rk_complex_t log_plus_one(rk_complex_t z) {
  const double x = creal(z), y = cimag(z);
  return rk_complex_of(log1p(x * (x + 2) + y * y) / 2, atan2(y, x + 1));
}

/* exp(z) - 1 = (e^x - 1) cos y - 2 sin^2(y / 2) + i e^x sin y */
static rk_complex_t exp_minus_one(rk_complex_t z) {
  const double x = creal(z), y = cimag(z), s = sin(y / 2);
  return rk_complex_of(expm1(x) * cos(y) - 2 * s * s, exp(x) * sin(y));
}

static rk_complex_t interpolated(rk_complex_t a, rk_complex_t b, rk_complex_t w) {
  return cabs(w) < 0.5 ? a + times(w, b - a) : b - times(b - a, 1 - w);
}

#define LN2 0.69314718055994530942
#define LN10 2.30258509299404568402
#define PI 3.14159265358979323846
#define NOT_ZERO(z) (creal(z) != 0 || cimag(z) != 0)

F(pair, rk_complex_of(creal(x[0]), creal(x[1])))
F(polar, rk_complex_of(creal(x[0]) * cos(creal(x[1])), creal(x[0]) * sin(creal(x[1]))))
F(conj, conj(x[0]))
F(positive, x[0])
F(neg, -x[0])
F(add, x[0] + times_number(x[1], x[2]))
F(sub, x[0] - times_number(x[1], x[2]))
F(rsub, x[1] - times_number(x[0], x[2]))
F(mul, times(x[0], x[1]))
F(div, over(x[0], x[1]))
F(abs, cabs(x[0]))
F(angle, carg(x[0]))
F(sgn, unit(x[0]))
F(reciprocal, 1 / x[0])
F(square, times(x[0], x[0]))
F(pow, power(x[0], x[1]))
F(sqrt, csqrt(x[0]))
F(rsqrt, 1 / csqrt(x[0]))
F(exp, cexp(x[0]))
F(exp2, cexp(scaled(x[0], LN2)))
F(expm1, exp_minus_one(x[0]))
F(log, clog(x[0]))
F(log2, scaled(clog(x[0]), 1 / LN2))
F(log10, scaled(clog(x[0]), 1 / LN10))
F(log1p, log_plus_one(x[0]))
F(sin, csin(x[0]))
F(cos, ccos(x[0]))
F(tan, ctan(x[0]))
F(asin, casin(x[0]))
F(acos, cacos(x[0]))
F(atan, catan(x[0]))
F(sinh, csinh(x[0]))
F(cosh, ccosh(x[0]))
F(tanh, ctanh(x[0]))
F(asinh, casinh(x[0]))
F(acosh, cacosh(x[0]))
F(atanh, catanh(x[0]))
F(sinc, NOT_ZERO(x[0]) ? csin(scaled(x[0], PI)) / scaled(x[0], PI) : 1)
F(sigmoid, sigmoid(x[0]))
F(silu, times(x[0], sigmoid(x[0])))
F(addcmul, x[0] + times_number(times(x[1], x[2]), x[3]))
F(addcdiv, x[0] + times_number(over(x[1], x[2]), x[3]))
F(lerp, interpolated(x[0], x[1], x[2]))
F(second, x[1])
F(where, NOT_ZERO(x[0]) ? x[1] : x[2])
F(masked_fill, NOT_ZERO(x[1]) ? x[2] : x[0])
F(eq, x[0] == x[1])
F(ne, x[0] != x[1])
F(logical_and, NOT_ZERO(x[0]) && NOT_ZERO(x[1]))
F(logical_or, NOT_ZERO(x[0]) || NOT_ZERO(x[1]))
F(logical_xor, NOT_ZERO(x[0]) != NOT_ZERO(x[1]))
F(logical_not, !NOT_ZERO(x[0]))
F(isnan, isnan(creal(x[0])) || isnan(cimag(x[0])))
F(isinf, isinf(creal(x[0])) || isinf(cimag(x[0])))
F(isfinite, isfinite(creal(x[0])) && isfinite(cimag(x[0])))

/* ---- products along a dimension ---- */

/* prod.dim_int(self, dim, keepdim), cumprod(self, dim): the running product, or its last element. */
static aot_status_t product_along(rk_ctx_t *c, int running) {
  rk_complex_array_t a, y;
  int64_t outer, size, inner, sizes[AOT_MAX_RANK];
  int32_t dim, rank = 0;
  AOT_TRY(rk_complex_need(c, 0, &a));
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), a.rank, &dim));
  rk_complex_around(&a, dim, &outer, &size, &inner);
  for (int32_t d = 0; d < a.rank; d++)
    if (d != dim || running || rk_bool(c, 2, 0)) sizes[rank++] = d == dim && !running ? 1 : a.sizes[d];
  AOT_TRY(rk_complex_new(c, rank, sizes, &y));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      rk_complex_t product = 1;
      for (int64_t k = 0; k < size; k++) {
        product = times(product, a.v[(o * size + k) * inner + i]);
        if (running) y.v[(o * size + k) * inner + i] = product;
      }
      if (!running) y.v[o * inner + i] = product;
    }
  return rk_complex_put(c, 0, &y);
}
static aot_status_t prod_dim(rk_ctx_t *c) { return product_along(c, 0); }
static aot_status_t cumprod(rk_ctx_t *c) { return product_along(c, 1); }

static aot_status_t prod_all(rk_ctx_t *c) {
  rk_complex_array_t a, y;
  AOT_TRY(rk_complex_need(c, 0, &a));
  AOT_TRY(rk_complex_new(c, 0, NULL, &y));
  y.v[0] = 1;
  for (int64_t k = 0; k < a.numel; k++) y.v[0] = times(y.v[0], a.v[k]);
  return rk_complex_put(c, 0, &y);
}

/* ---- the table ---- */

#define A0 1u
#define A1 2u
#define A2 4u
#define A3 8u
/* clang-format off */
#define SAME(op) {.name = op, .way = RK_COMPLEX_SAME}
#define PARTS(op, arguments) {.name = op, .way = RK_COMPLEX_PARTS, .slots = arguments}
#define PRODUCT(op, factors, plus) {.name = op, .way = RK_COMPLEX_PRODUCT, .slots = factors, .added = plus}
#define MAGNITUDE(op) {.name = op, .way = RK_COMPLEX_MAGNITUDE}
#define FUNCTION(op, fn) {.name = op, .way = RK_COMPLEX_POINTWISE, .f = fn##_c}
/* clang-format on */
#define UNARY(fn) FUNCTION(#fn ".default", fn)
/* clang-format off */
#define OWN(op, fn) {.name = op, .way = RK_COMPLEX_OWN, .run = fn}

static const rk_complex_row_t table[] = {
    /* pointwise */
    FUNCTION("complex.default", pair), UNARY(polar), FUNCTION("_conj.default", conj), FUNCTION("conj_physical.default",
        conj),
    FUNCTION("_conj_physical.default", conj), FUNCTION("_neg_view.default", neg), UNARY(positive), UNARY(neg),
    UNARY(abs),
    UNARY(angle), UNARY(sgn), UNARY(reciprocal), UNARY(square), UNARY(sqrt), UNARY(rsqrt), UNARY(exp), UNARY(exp2),
    UNARY(expm1),
    UNARY(log), UNARY(log2), UNARY(log10), UNARY(log1p), UNARY(sin), UNARY(cos), UNARY(tan), UNARY(asin), UNARY(acos),
    UNARY(atan), UNARY(sinh), UNARY(cosh), UNARY(tanh), UNARY(asinh), UNARY(acosh), UNARY(atanh), UNARY(sinc),
    UNARY(sigmoid),
    UNARY(silu), UNARY(addcmul), UNARY(addcdiv), UNARY(isnan), UNARY(isinf), UNARY(isfinite), UNARY(logical_and),
    UNARY(logical_or), UNARY(logical_xor), UNARY(logical_not), FUNCTION("add.Tensor", add), FUNCTION("add.Scalar", add),
    FUNCTION("sub.Tensor", sub), FUNCTION("sub.Scalar", sub), FUNCTION("rsub.Tensor", rsub), FUNCTION("rsub.Scalar",
        rsub),
    FUNCTION("mul.Tensor", mul), FUNCTION("mul.Scalar", mul), FUNCTION("div.Tensor", div), FUNCTION("div.Scalar", div),
    FUNCTION("pow.Tensor_Scalar", pow), FUNCTION("pow.Tensor_Tensor", pow), FUNCTION("pow.Scalar", pow),
    FUNCTION("lerp.Scalar", lerp), FUNCTION("lerp.Tensor", lerp), FUNCTION("fill.Scalar", second),
    FUNCTION("fill.Tensor", second),
    FUNCTION("where.self", where), FUNCTION("masked_fill.Scalar", masked_fill), FUNCTION("masked_fill.Tensor",
        masked_fill),
    FUNCTION("eq.Tensor", eq), FUNCTION("eq.Scalar", eq), FUNCTION("ne.Tensor", ne), FUNCTION("ne.Scalar", ne),
    /* elements copied about; a view is one of these unless the table says otherwise */
    {.name = "adjoint.default", .way = RK_COMPLEX_REFUSED},
    SAME("clone.default"), SAME("lift_fresh_copy.default"), SAME("_to_copy.default"), SAME("to.dtype_layout"),
    SAME("to.device"),
    SAME("to.other"), SAME("type_as.default"), SAME("copy.default"), {.name = "with_history.default",
        .way = RK_COMPLEX_SAME},
    SAME("repeat.default"), SAME("tile.default"), SAME("flip.default"), SAME("roll.default"), SAME("rot90.default"),
    SAME("tril.default"), SAME("triu.default"), SAME("pixel_shuffle.default"), SAME("pixel_unshuffle.default"),
    SAME("channel_shuffle.default"), PARTS("cat.default", A0), PARTS("concat.default", A0),
    PARTS("concatenate.default", A0),
    PARTS("stack.default", A0), PARTS("block_diag.default", A0), PARTS("constant_pad_nd.default", A0 | A2),
    PARTS("reflection_pad1d.default", A0), PARTS("reflection_pad2d.default", A0), PARTS("reflection_pad3d.default", A0),
    PARTS("replication_pad1d.default", A0), PARTS("replication_pad2d.default", A0), PARTS("replication_pad3d.default",
        A0),
    PARTS("reflection_pad1d_backward.default", A0 | A1), PARTS("reflection_pad2d_backward.default", A0 | A1),
    PARTS("reflection_pad3d_backward.default", A0 | A1), PARTS("replication_pad1d_backward.default", A0 | A1),
    PARTS("replication_pad2d_backward.default", A0 | A1), PARTS("replication_pad3d_backward.default", A0 | A1),
    PARTS("index.Tensor", A0), PARTS("_unsafe_index.Tensor", A0), PARTS("index_select.default", A0),
    PARTS("gather.default", A0),
    PARTS("take.default", A0), PARTS("scatter.src", A0 | A3), PARTS("scatter.value", A0 | A3),
    PARTS("scatter_add.default", A0 | A3),
    PARTS("index_add.default", A0 | A3), PARTS("index_copy.default", A0 | A3), PARTS("index_fill.int_Scalar", A0 | A3),
    PARTS("index_fill.int_Tensor", A0 | A3), PARTS("index_put.default", A0 | A2), PARTS("_unsafe_index_put.default",
        A0 | A2),
    PARTS("put.default", A0 | A2), PARTS("masked_scatter.default", A0 | A2), PARTS("diag_embed.default", A0),
    PARTS("slice_scatter.default", A0 | A1), PARTS("select_scatter.default", A0 | A1),
    PARTS("diagonal_scatter.default", A0 | A1),
    PARTS("slice_backward.default", A0), PARTS("select_backward.default", A0), PARTS("diagonal_backward.default", A0),
    PARTS("unfold_backward.default", A0),
    /* creation */
    SAME("zeros.default"), SAME("ones.default"), SAME("full.default"), SAME("empty.memory_format"),
    SAME("empty_strided.default"),
    SAME("zeros_like.default"), SAME("ones_like.default"), SAME("full_like.default"), SAME("empty_like.default"),
    SAME("new_zeros.default"), SAME("new_ones.default"), SAME("new_full.default"), SAME("new_empty.default"),
    SAME("new_empty_strided.default"), SAME("empty_permuted.default"), SAME("scalar_tensor.default"),
    SAME("eye.default"),
    SAME("eye.m"), SAME("zero.default"),
    /* reductions */
    PARTS("sum.default", A0), PARTS("sum.dim_IntList", A0), PARTS("mean.default", A0), PARTS("mean.dim", A0),
    PARTS("cumsum.default", A0), PARTS("trace.default", A0), OWN("prod.default", prod_all), OWN("prod.dim_int",
        prod_dim),
    OWN("cumprod.default", cumprod), MAGNITUDE("linalg_vector_norm.default"), MAGNITUDE("norm.ScalarOpt_dim"),
    MAGNITUDE("norm.Scalar"), MAGNITUDE("any.default"), MAGNITUDE("any.dim"), MAGNITUDE("any.dims"),
    MAGNITUDE("all.default"),
    MAGNITUDE("all.dim"), MAGNITUDE("all.dims"), MAGNITUDE("count_nonzero.default"),
    MAGNITUDE("count_nonzero.dim_IntList"),
    /* products */
    PRODUCT("mm.default", A0 | A1, 0), PRODUCT("bmm.default", A0 | A1, 0), PRODUCT("matmul.default", A0 | A1, 0),
    PRODUCT("linalg_matmul.default", A0 | A1, 0), PRODUCT("mv.default", A0 | A1, 0), PRODUCT("dot.default", A0 | A1, 0),
    {.name = "vdot.default", .way = RK_COMPLEX_PRODUCT, .slots = A0 | A1,
     .conjugate = 1}, PRODUCT("outer.default", A0 | A1, 0),
    PRODUCT("ger.default", A0 | A1, 0), PRODUCT("addmm.default", A1 | A2, A0), PRODUCT("addmv.default", A1 | A2, A0),
    PRODUCT("baddbmm.default", A1 | A2, A0), PRODUCT("addbmm.default", A1 | A2, A0), PRODUCT("addr.default", A1 | A2,
        A0),
    PRODUCT("linear.default", A0 | A1, A2), PRODUCT("convolution.default", A0 | A1, A2),
    /* Fourier transforms */
    SAME("_fft_r2c.default"), SAME("_fft_c2r.default"), SAME("_fft_c2c.default"),
};
/* clang-format on */

const rk_complex_row_t *rk_complex_find(const rk_kernel_t *k) {
  static const rk_complex_row_t view = {.name = "a view", .way = RK_COMPLEX_SAME};
  const char *name = strchr(k->name, '.') + 1; /* "aten.add.Tensor", "aot.with_history.default" */
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (strcmp(table[i].name, name) == 0) return table[i].way == RK_COMPLEX_REFUSED ? NULL : &table[i];
  return k->view ? &view : NULL;
}
