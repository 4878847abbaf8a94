/* cast:     narrower floats, and back
 * scaled:   q = code(x / s), x' = value(q) * s, s = max|x| / largest, in f32, for the tensor or for each row of its
 *           last
 * dimension int8   code: rounded to the nearest integer, halves to even e4m3, e5m2: floats of 8 bits (Micikevicius et
 *                  al.,
 * "FP8 Formats for Deep Learning", 2022, the variants without and with infinities), as u8: the program's types have no
 * float
 * of 8 bits, so that they are made by integer steps offload:  a copy on the host's device, and one back. Where the
 *                                                             value is
 * on the CPU it is a copy there
 *
 * PyTorch: torch.autograd.graph.saved_tensors_hooks, save_on_cpu; _inductor's activation quantisation has the same
 * scales. An infinity or a NaN makes the whole tensor (row) NaN: the scale is. */
#include "codecs.h"

#include "kit/emit/emit_layout.h"

#include <aot/inline.h>

typedef struct codec {
  int32_t dtype; /* of the codes */
  int by_row;
  double largest; /* magnitude that a code can have; 0: not scaled */
  int mantissa;   /* bits; 0: an integer */
  int lowest;     /* least exponent of a normal number */
} codec_t;

const aot_str_t hk_codec_names[HK_N_CODECS + 1] = {
    AOT_STR_INIT("none"),      AOT_STR_INIT("bf16"),     AOT_STR_INIT("f16"),      AOT_STR_INIT("int8"),
    AOT_STR_INIT("int8-rows"), AOT_STR_INIT("fp8-e4m3"), AOT_STR_INIT("fp8-e5m2"), AOT_STR_INIT("offload")};
static const codec_t codecs[HK_N_CODECS - 1] = {
    {.dtype = AOT_BF16},
    {.dtype = AOT_F16},
    {.dtype = AOT_I8, .largest = 127},
    {.dtype = AOT_I8, .largest = 127, .by_row = 1},
    {.dtype = AOT_U8, .largest = 448, .mantissa = 3, .lowest = -6},
    {.dtype = AOT_U8, .largest = 57344, .mantissa = 2, .lowest = -14},
};

/* ---- cast ---- */

static int cast_fits(const hk_hook_t *h, em_t *e, const aot_type_t *t) {
  const codec_t *c = h->self;
  (void)e;
  if (!aot_dtype_is_float(t->dtype)) return HK_DTYPE;
  return aot_dtype_size(t->dtype) > aot_dtype_size(c->dtype) ? HK_TAKEN : HK_SIZE;
}

static void cast_pack(const hk_hook_t *h, em_t *e, aot_value_t v, aot_value_t *out_parts, uint32_t *out_n) {
  const codec_t *c = h->self;
  out_parts[0] = em_value(e, em_cast(e, em_v(v), c->dtype));
  *out_n = 1;
}

static aot_value_t cast_unpack(const hk_hook_t *h, em_t *e, const aot_value_t *parts, uint32_t n,
                               const aot_type_t *like) {
  (void)h;
  (void)n;
  return em_value(e, em_cast(e, em_v(parts[0]), like->dtype));
}

/* ---- scaled ---- */

static int64_t n_scales(const codec_t *c, em_t *e, const aot_type_t *t) {
  if (!c->by_row || t->rank == 0) return 1;
  const int64_t row = e->host->graph->dim_hint(e->prog, t->sizes[t->rank - 1]);
  return row ? em_numel(e, t) / row : 0;
}

/* f64 is left alone: its range is not that of the scale. */
static int scaled_fits(const hk_hook_t *h, em_t *e, const aot_type_t *t) {
  const codec_t *c = h->self;
  if (!aot_dtype_is_float(t->dtype) || t->dtype == AOT_F64) return HK_DTYPE;
  const int64_t n = em_numel(e, t);
  return n > 0 && n + n_scales(c, e, t) * 4 < n * (int64_t)aot_dtype_size(t->dtype) ? HK_TAKEN : HK_SIZE;
}

/* A symbolic size that may turn out to be 0. */
static int may_be_zero(const em_t *e, int64_t size) {
  aot_expr_info_t x;
  aot_symbol_info_t symbol = {.struct_size = sizeof symbol};
  if (!AOT_DIM_IS_SYM(size)) return 0;
  if (e->host->graph->expr_info(e->prog, AOT_DIM_EXPR(size), &x) != AOT_OK || x.op != AOT_EXPR_SYMBOL) return 1;
  return e->host->graph->symbol_info(e->prog, (uint32_t)x.a, &symbol) != AOT_OK || symbol.min < 1;
}

/* Nothing has no largest element: where the last `n` dimensions may be empty, they get a 0 at their end. */
static em_x_t never_empty(em_t *e, em_x_t magnitude, int32_t n) {
  const aot_type_t t = em_type(e, magnitude);
  int64_t pads[2 * AOT_MAX_RANK] = {0}; /* before and after, from the last dimension on */
  int any = 0;
  for (int32_t k = 0; k < n && e->status == AOT_OK; k++)
    any |= (int)(pads[2 * k + 1] = may_be_zero(e, t.sizes[t.rank - 1 - k]));
  if (!any) return magnitude;
  return EM(e, "constant_pad_nd", magnitude, aot_arg_ints(pads, 2 * (uint32_t)n));
}

static em_x_t make_scale(const codec_t *c, em_t *e, em_x_t x) {
  static const int64_t last[] = {-1};
  const int32_t rank = em_type(e, x).rank;
  const int by_row = c->by_row && rank > 0;
  const em_x_t magnitude = never_empty(e, EM(e, "abs", x), by_row ? 1 : rank);
  const em_x_t largest = EM(e, "amax", magnitude, aot_arg_ints(last, by_row ? 1 : 0), em_b(by_row));
  return EM(e, "div.Tensor", EM(e, "clamp_min", largest, em_f(1e-30)), em_f(c->largest));
}

/* x, of magnitude at most c->largest, rounded to the nearest float of 8 bits, halves to even; its bits. Normal numbers
 * lose the low bits of their mantissa; below, where the 8-bit format counts in steps of one size, steps are counted. */
static em_x_t fp8_encode(const codec_t *c, em_t *e, em_x_t x) {
  const int drop = 23 - c->mantissa, bias = 1 - c->lowest;
  const em_x_t magnitude = EM(e, "abs", x);
  const em_x_t bits = EM(e, "view.dtype", magnitude, em_dtype(AOT_I32));
  const em_x_t odd = EM(e, "bitwise_and.Scalar", EM(e, "bitwise_right_shift.Tensor", bits, em_i(drop)), em_i(1));
  const em_x_t rounded = EM(e, "add.Scalar", EM(e, "add.Tensor", bits, odd), em_i((1 << (drop - 1)) - 1));
  const em_x_t normal = EM(e, "sub.Scalar", EM(e, "bitwise_right_shift.Tensor", rounded, em_i(drop)),
                           em_i((int64_t)(127 - bias) << c->mantissa));
  const double steps = (double)(INT64_C(1) << (c->mantissa - c->lowest));
  const em_x_t counted = em_cast(e, EM(e, "round", EM(e, "mul.Scalar", magnitude, em_f(steps))), AOT_I32);
  const em_x_t is_normal = EM(e, "ge.Scalar", magnitude, em_f(1.0 / (double)(INT64_C(1) << -c->lowest)));
  const em_x_t code = EM(e, "where.self", is_normal, normal, counted);
  const em_x_t sign =
      EM(e, "bitwise_and.Scalar",
         EM(e, "bitwise_right_shift.Tensor", EM(e, "view.dtype", x, em_dtype(AOT_I32)), em_i(24)), em_i(128));
  return em_cast(e, EM(e, "bitwise_or.Tensor", code, sign), AOT_U8);
}

static em_x_t fp8_decode(const codec_t *c, em_t *e, em_x_t code) {
  const int drop = 23 - c->mantissa, bias = 1 - c->lowest;
  const em_x_t wide = em_cast(e, code, AOT_I32), digits = EM(e, "bitwise_and.Scalar", wide, em_i(127));
  const em_x_t bits =
      EM(e, "add.Scalar", EM(e, "bitwise_left_shift.Tensor", digits, em_i(drop)), em_i((int64_t)(127 - bias) << 23));
  const em_x_t counted =
      EM(e, "mul.Scalar", em_cast(e, digits, AOT_F32), em_f(1.0 / (double)(INT64_C(1) << (c->mantissa - c->lowest))));
  const em_x_t is_normal = EM(e, "ge.Scalar", digits, em_i(INT64_C(1) << c->mantissa));
  const em_x_t magnitude = EM(e, "where.self", is_normal, EM(e, "view.dtype", bits, em_dtype(AOT_F32)), counted);
  const em_x_t negated = EM(e, "neg", magnitude); /* one after the other: C leaves the order of arguments open */
  return EM(e, "where.self", EM(e, "ge.Scalar", wide, em_i(128)), negated, magnitude);
}

static void scaled_pack(const hk_hook_t *h, em_t *e, aot_value_t v, aot_value_t *out_parts, uint32_t *out_n) {
  const codec_t *c = h->self;
  const em_x_t x = em_cast(e, em_v(v), AOT_F32), scale = make_scale(c, e, x);
  em_x_t scaled = EM(e, "div.Tensor", x, scale);
  if (!c->mantissa) scaled = EM(e, "round", scaled);
  scaled = EM(e, "clamp", scaled, em_f(-c->largest), em_f(c->largest));
  out_parts[0] = em_value(e, c->mantissa ? fp8_encode(c, e, scaled) : em_cast(e, scaled, c->dtype));
  out_parts[1] = em_value(e, scale);
  *out_n = 2;
}

static aot_value_t scaled_unpack(const hk_hook_t *h, em_t *e, const aot_value_t *parts, uint32_t n,
                                 const aot_type_t *like) {
  const codec_t *c = h->self;
  (void)n;
  const em_x_t codes = c->mantissa ? fp8_decode(c, e, em_v(parts[0])) : em_cast(e, em_v(parts[0]), AOT_F32);
  return em_value(e, em_cast(e, EM(e, "mul.Tensor", codes, em_v(parts[1])), like->dtype));
}

/* ---- offload ---- */

static int any_fits(const hk_hook_t *h, em_t *e, const aot_type_t *t) {
  (void)h;
  (void)e;
  (void)t;
  return HK_TAKEN;
}

static aot_value_t copy_to(em_t *e, aot_value_t v, int32_t device, int32_t index) {
  return em_value(e, EM(e, "_to_copy", em_v(v), em_none(), em_none(), em_device(device, index)));
}

static void offload_pack(const hk_hook_t *h, em_t *e, aot_value_t v, aot_value_t *out_parts, uint32_t *out_n) {
  (void)h;
  out_parts[0] = copy_to(e, v, AOT_DEVICE_CPU, 0);
  *out_n = 1;
}

static aot_value_t offload_unpack(const hk_hook_t *h, em_t *e, const aot_value_t *parts, uint32_t n,
                                  const aot_type_t *like) {
  (void)h;
  (void)n;
  return like->device == AOT_DEVICE_CPU ? parts[0] : copy_to(e, parts[0], like->device, like->device_index);
}

hk_hook_t hk_codec(uint32_t number) {
  if (number == HK_N_CODECS - 1) return (hk_hook_t){any_fits, offload_pack, offload_unpack, NULL};
  const codec_t *c = &codecs[number];
  if (c->largest == 0) return (hk_hook_t){cast_fits, cast_pack, cast_unpack, c};
  return (hk_hook_t){scaled_fits, scaled_pack, scaled_unpack, c};
}
