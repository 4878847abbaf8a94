/* cast:     narrower floats, and back
 * scaled:   q = code(x / s), x' = value(q) * s, s = max|x| / largest, in f32, for the tensor or for each row of its last
 * dimension int8   code: rounded to the nearest integer, halves to even e4m3, e5m2: floats of 8 bits (Micikevicius et al.,
 * "FP8 Formats for Deep Learning", 2022, the variants without and with infinities), as u8: the program's types have no float
 * of 8 bits, so that they are made by integer steps offload:  a copy on the host's device, and one back. Where the value is
 * on the CPU it is a copy there
 *
 * PyTorch: torch.autograd.graph.saved_tensors_hooks, save_on_cpu; _inductor's activation quantisation has the same scales.
 * An infinity or a NaN makes the whole tensor (row) NaN: the scale is. */
#include "codecs.h"

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

static int cast_fits(const hk_hook_t *h, hk_emit_t *e, const aot_type_t *t) {
  const codec_t *c = h->self;
  (void)e;
  if (!aot_dtype_is_float(t->dtype)) return HK_DTYPE;
  return aot_dtype_size(t->dtype) > aot_dtype_size(c->dtype) ? HK_TAKEN : HK_SIZE;
}

static void cast_pack(const hk_hook_t *h, hk_emit_t *e, hk_v v, hk_v *out_parts, uint32_t *out_n) {
  const codec_t *c = h->self;
  out_parts[0] = hk_cast(e, v, c->dtype);
  *out_n = 1;
}

static hk_v cast_unpack(const hk_hook_t *h, hk_emit_t *e, const hk_v *parts, uint32_t n, const aot_type_t *like) {
  (void)h;
  (void)n;
  return hk_cast(e, parts[0], like->dtype);
}

/* ---- scaled ---- */

static int64_t n_scales(const codec_t *c, hk_emit_t *e, const aot_type_t *t) {
  if (!c->by_row || t->rank == 0) return 1;
  const int64_t row = e->host->graph->dim_hint(e->prog, t->sizes[t->rank - 1]);
  return row ? hk_numel(e, t) / row : 0;
}

/* f64 is left alone: its range is not that of the scale. */
static int scaled_fits(const hk_hook_t *h, hk_emit_t *e, const aot_type_t *t) {
  const codec_t *c = h->self;
  if (!aot_dtype_is_float(t->dtype) || t->dtype == AOT_F64) return HK_DTYPE;
  const int64_t n = hk_numel(e, t);
  return n > 0 && n + n_scales(c, e, t) * 4 < n * (int64_t)aot_dtype_size(t->dtype) ? HK_TAKEN : HK_SIZE;
}

/* A symbolic size that may turn out to be 0. */
static int may_be_zero(const hk_emit_t *e, int64_t size) {
  aot_expr_info_t x;
  aot_symbol_info_t symbol = {.struct_size = sizeof symbol};
  if (!AOT_DIM_IS_SYM(size)) return 0;
  if (e->host->graph->expr_info(e->prog, AOT_DIM_EXPR(size), &x) != AOT_OK || x.op != AOT_EXPR_SYMBOL) return 1;
  return e->host->graph->symbol_info(e->prog, (uint32_t)x.a, &symbol) != AOT_OK || symbol.min < 1;
}

/* Nothing has no largest element: where the last `n` dimensions may be empty, they get a 0 at their end. */
static hk_v never_empty(hk_emit_t *e, hk_v magnitude, int32_t n) {
  const aot_type_t t = hk_type(e, magnitude);
  int64_t pads[2 * AOT_MAX_RANK] = {0}; /* before and after, from the last dimension on */
  int any = 0;
  for (int32_t k = 0; k < n && e->status == AOT_OK; k++)
    any |= (int)(pads[2 * k + 1] = may_be_zero(e, t.sizes[t.rank - 1 - k]));
  if (!any) return magnitude;
  return hk_make(e, "aten.constant_pad_nd.default",
                 (aot_arg_t[]){aot_arg_value(magnitude), aot_arg_ints(pads, 2 * (uint32_t)n)}, 2);
}

static hk_v make_scale(const codec_t *c, hk_emit_t *e, hk_v x) {
  static const int64_t last[] = {-1};
  const int32_t rank = hk_type(e, x).rank;
  const int by_row = c->by_row && rank > 0;
  const hk_v magnitude = never_empty(e, hk_unary(e, "aten.abs.default", x), by_row ? 1 : rank);
  const aot_arg_t args[] = {aot_arg_value(magnitude), aot_arg_ints(last, by_row ? 1 : 0), aot_arg_bool(by_row)};
  const hk_v largest = hk_make(e, "aten.amax.default", args, 3);
  return hk_with_float(e, "aten.div.Tensor", hk_with_float(e, "aten.clamp_min.default", largest, 1e-30), c->largest);
}

/* x, of magnitude at most c->largest, rounded to the nearest float of 8 bits, halves to even; its bits. Normal numbers lose
 * the low bits of their mantissa; below, where the 8-bit format counts in steps of one size, steps are counted. */
static hk_v fp8_encode(const codec_t *c, hk_emit_t *e, hk_v x) {
  const int drop = 23 - c->mantissa, bias = 1 - c->lowest;
  const hk_v magnitude = hk_unary(e, "aten.abs.default", x);
  const hk_v bits = hk_bits(e, magnitude, AOT_I32);
  const hk_v odd =
      hk_with_int(e, "aten.bitwise_and.Scalar", hk_with_int(e, "aten.bitwise_right_shift.Tensor", bits, drop), 1);
  const hk_v rounded = hk_with_int(e, "aten.add.Scalar", hk_binary(e, "aten.add.Tensor", bits, odd), (1 << (drop - 1)) - 1);
  const hk_v normal = hk_with_int(e, "aten.sub.Scalar", hk_with_int(e, "aten.bitwise_right_shift.Tensor", rounded, drop),
                                  (int64_t)(127 - bias) << c->mantissa);
  const double steps = (double)(INT64_C(1) << (c->mantissa - c->lowest));
  const hk_v counted =
      hk_cast(e, hk_unary(e, "aten.round.default", hk_with_float(e, "aten.mul.Scalar", magnitude, steps)), AOT_I32);
  const hk_v is_normal = hk_with_float(e, "aten.ge.Scalar", magnitude, 1.0 / (double)(INT64_C(1) << -c->lowest));
  const hk_v code = hk_where(e, is_normal, normal, counted);
  const hk_v sign = hk_with_int(e, "aten.bitwise_and.Scalar",
                                hk_with_int(e, "aten.bitwise_right_shift.Tensor", hk_bits(e, x, AOT_I32), 24), 128);
  return hk_cast(e, hk_binary(e, "aten.bitwise_or.Tensor", code, sign), AOT_U8);
}

static hk_v fp8_decode(const codec_t *c, hk_emit_t *e, hk_v code) {
  const int drop = 23 - c->mantissa, bias = 1 - c->lowest;
  const hk_v wide = hk_cast(e, code, AOT_I32), digits = hk_with_int(e, "aten.bitwise_and.Scalar", wide, 127);
  const hk_v bits = hk_with_int(e, "aten.add.Scalar", hk_with_int(e, "aten.bitwise_left_shift.Tensor", digits, drop),
                                (int64_t)(127 - bias) << 23);
  const hk_v counted = hk_with_float(e, "aten.mul.Scalar", hk_cast(e, digits, AOT_F32),
                                     1.0 / (double)(INT64_C(1) << (c->mantissa - c->lowest)));
  const hk_v is_normal = hk_with_int(e, "aten.ge.Scalar", digits, INT64_C(1) << c->mantissa);
  const hk_v magnitude = hk_where(e, is_normal, hk_bits(e, bits, AOT_F32), counted);
  const hk_v negated = hk_unary(e, "aten.neg.default", magnitude); /* one after the other: C leaves the order of arguments open */
  return hk_where(e, hk_with_int(e, "aten.ge.Scalar", wide, 128), negated, magnitude);
}

static void scaled_pack(const hk_hook_t *h, hk_emit_t *e, hk_v v, hk_v *out_parts, uint32_t *out_n) {
  const codec_t *c = h->self;
  const hk_v x = hk_cast(e, v, AOT_F32), scale = make_scale(c, e, x);
  hk_v scaled = hk_binary(e, "aten.div.Tensor", x, scale);
  if (!c->mantissa) scaled = hk_unary(e, "aten.round.default", scaled);
  scaled = hk_clamp(e, scaled, -c->largest, c->largest);
  out_parts[0] = c->mantissa ? fp8_encode(c, e, scaled) : hk_cast(e, scaled, c->dtype);
  out_parts[1] = scale;
  *out_n = 2;
}

static hk_v scaled_unpack(const hk_hook_t *h, hk_emit_t *e, const hk_v *parts, uint32_t n, const aot_type_t *like) {
  const codec_t *c = h->self;
  (void)n;
  const hk_v codes = c->mantissa ? fp8_decode(c, e, parts[0]) : hk_cast(e, parts[0], AOT_F32);
  return hk_cast(e, hk_binary(e, "aten.mul.Tensor", codes, parts[1]), like->dtype);
}

/* ---- offload ---- */

static int any_fits(const hk_hook_t *h, hk_emit_t *e, const aot_type_t *t) {
  (void)h;
  (void)e;
  (void)t;
  return HK_TAKEN;
}

static hk_v copy_to(hk_emit_t *e, hk_v v, int32_t device, int32_t index) {
  const aot_arg_t args[] = {aot_arg_value(v), aot_arg_none(), aot_arg_none(),
                            aot_arg_int_kind(AOT_ARG_DEVICE, device + 256 * (int64_t)(index + 1))};
  return hk_make(e, "aten._to_copy.default", args, 4);
}

static void offload_pack(const hk_hook_t *h, hk_emit_t *e, hk_v v, hk_v *out_parts, uint32_t *out_n) {
  (void)h;
  out_parts[0] = copy_to(e, v, AOT_DEVICE_CPU, -1);
  *out_n = 1;
}

static hk_v offload_unpack(const hk_hook_t *h, hk_emit_t *e, const hk_v *parts, uint32_t n, const aot_type_t *like) {
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
