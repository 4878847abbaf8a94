/* The fused attention kernels of other devices, in terms of the one that is here and of the composite.
 *
 * They differ in layout ([batch, steps, heads, features] for _flash_attention_* and _efficient_attention_*), in the
 * name of the bias, in the shape of the log sum exp, and in where a causal mask of unequal lengths ends: flash
 * attention 2.1 aligns it with the last row and column, the others with the first. State of random generators is given
 * as zeros: dropout becomes native_dropout here. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

typedef struct fused {
  em_x_t q, k, v; /* [batch, heads, steps, features] */
  em_x_t mask;    /* None, bool, or added */
  int causal, steps_first;
} fused_t;

static int named(em_t *e, const char *part) { return strstr(at_name(e), part) != NULL; }

static em_x_t heads_first(em_t *e, const fused_t *f, em_x_t x) {
  return f->steps_first ? EM(e, "transpose.int", x, em_i(1), em_i(2)) : x;
}

/* Row i sees column j <= i, or j <= i + columns - rows. */
static em_x_t causal_mask(em_t *e, const fused_t *f, int aligns_ends) {
  aot_type_t q = TYPE(f->q), k = TYPE(f->k);
  em_x_t rows = at_unsqueeze(e, at_range(e, q.sizes[2], f->q), 1), columns = at_range(e, k.sizes[2], f->q);
  if (aligns_ends) rows = ADD(rows, em_i(at_sub(at_infer(e), k.sizes[2], q.sizes[2])));
  return LE(columns, rows);
}

static void refuse(em_t *e, const char *name) {
  if (at_in_has(e, name)) em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s with '%s' is not supported", at_name(e), name);
}

static fused_t read_call(em_t *e) {
  static const char *const unsupported[] = {"cu_seqlens_q",      "cu_seqlens_k", "window_size_left",
                                            "window_size_right", "window_size",  "seqlen_k",
                                            "seqused_k",         "alibi_slopes", "dropout_mask"};
  int64_t kind = at_in_int(e, "custom_mask_type", 0);
  int aligns_ends;
  fused_t f;
  size_t i;
  for (i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++) refuse(e, unsupported[i]);
  if (named(e, "aten._flash")) refuse(e, "cum_seq_q");
  f.steps_first = !named(e, "_scaled_dot_product");
  f.q = heads_first(e, &f, IN("query"));
  f.k = heads_first(e, &f, IN("key"));
  f.v = heads_first(e, &f, IN("value"));
  f.mask = at_in_has(e, "attn_bias") ? IN("attn_bias") : at_in_has(e, "bias") ? IN("bias") : em_none();
  f.causal = at_in_int(e, "is_causal", 0) != 0 || kind == 1;
  aligns_ends =
      kind == 2 || (f.causal && named(e, "flash") && !at_same(at_infer(e), TYPE(f.q).sizes[2], TYPE(f.k).sizes[2]));
  if (aligns_ends || (f.causal && !em_is_none(f.mask))) { /* the kernel here takes a mask or is causal */
    em_x_t seen = causal_mask(e, &f, aligns_ends);
    f.causal = 0;
    f.mask = em_is_none(f.mask) ? seen : WHERE(seen, f.mask, em_f(-INFINITY));
  }
  return f;
}

static em_x_t forward(em_t *e, const fused_t *f) {
  return EM(e, "_scaled_dot_product_flash_attention_for_cpu", f->q, f->k, f->v, em_f(0.0), em_b(f->causal), f->mask,
            IN("scale"));
}

/* The log sum exp as the kernel shapes it: padded with zeros, or with one more dimension; [..., 0] is none. */
static em_x_t shaped_lse(em_t *e, em_x_t lse, const aot_type_t *to) {
  int64_t missing, pad[2] = {0, 0};
  if (to->rank == 4) return at_unsqueeze(e, lse, 3);
  if (at_same(at_infer(e), to->sizes[2], 0)) return at_filled(e, to->sizes, 3, em_f(0.0), to->dtype, lse);
  missing = pad[1] = at_sub(at_infer(e), to->sizes[2], TYPE(lse).sizes[2]);
  return missing == 0 ? lse : EM(e, "constant_pad_nd", lse, em_list(e, pad, 2));
}

/* What only the kernels' own backwards read. */
static void give_state(em_t *e, uint32_t i, aot_value_t *out) {
  aot_type_t t = at_result_type(e, i);
  out[i] = aot_no_value();
  if (t.kind == AOT_TYPE_TENSOR) out[i] = VAL(at_filled(e, t.sizes, t.rank, em_i(0), t.dtype, IN("query")));
}

/* Result i is the number of steps of a tensor [.., steps, features]. */
static void give_steps(em_t *e, uint32_t i, em_x_t x, aot_value_t *out) {
  out[i] = VAL(EM(e, "sym_size.int", x, em_i(2)));
}

aot_status_t at_dc_fused_attention(em_t *e, aot_value_t *out) {
  fused_t f = read_call(e);
  double p = em_in_float(e, "dropout_p", 0.0);
  em_x_t y = forward(e, &f), lse = em_nth(y, 1);
  aot_type_t t = at_result_type(e, 1);
  uint32_t i;
  /* the kernel here knows neither dropout nor the gradient of a bias */
  if (p != 0.0 || !em_is_none(f.mask))
    y = EM(e, "scaled_dot_product_attention", f.q, f.k, f.v, f.mask, em_f(p), em_b(f.causal), IN("scale"));
  out[0] = VAL(heads_first(e, &f, y));
  out[1] = VAL(shaped_lse(e, em_cast(e, lse, t.dtype), &t));
  for (i = 2; i < e->desc->n_results; i++) {
    int numbers = e->desc->n_results == 9 ? 4 : e->desc->n_results == 6 ? 4 : -1; /* where max_q and max_k stand */
    if ((int)i == numbers) give_steps(e, i, f.q, out);
    else if ((int)i == numbers + 1 && numbers >= 0) give_steps(e, i, f.k, out);
    else give_state(e, i, out);
  }
  return e->status;
}

/* P = exp(S - lse), dP = g v^T, dS = P (dP - rowsum(g y)), summed to the bias's shape */
static em_x_t bias_gradient(em_t *e, const fused_t *f, em_x_t g, em_x_t y, em_x_t lse) {
  aot_type_t bias = TYPE(IN("attn_bias")), tq = TYPE(f->q);
  int64_t last = -1;
  double scale =
      at_in_has(e, "scale") ? em_in_float(e, "scale", 1.0) : 1.0 / sqrt((double)at_hint(at_infer(e), tq.sizes[3]));
  em_x_t q = at_math(e, f->q), k = EM(e, "transpose.int", at_math(e, f->k), em_i(2), em_i(3)), s, p, dp;
  g = at_math(e, g);
  s = ADD(MUL(at_matmul(e, q, k), em_f(scale)), at_math(e, f->mask));
  p = EXP(SUB(s, at_unsqueeze(e, lse, 3)));
  dp = at_matmul(e, g, EM(e, "transpose.int", at_math(e, f->v), em_i(2), em_i(3)));
  s = MUL(p, SUB(dp, at_summed(e, MUL(g, at_math(e, y)), &last, 1, 1)));
  return em_cast(e, EM(e, "sum_to_size", s, em_list(e, bias.sizes, (uint32_t)bias.rank)), bias.dtype);
}

/* The backwards: lse cut to the rows there are. */
aot_status_t at_dc_fused_attention_backward(em_t *e, aot_value_t *out) {
  fused_t f = read_call(e);
  em_x_t g = heads_first(e, &f, at_in_has(e, "grad_out_") ? IN("grad_out_") : IN("grad_out")),
         y = heads_first(e, &f, IN("out"));
  em_x_t lse = IN("logsumexp"), d;
  uint32_t i;
  if (em_in_float(e, "dropout_p", 0.0) != 0.0)
    em_fail(e, AOT_E_UNIMPLEMENTED, "the stage rng knows the mask: put it before the partition",
            "%s cannot draw the dropout mask again", at_name(e));
  if (e->status != AOT_OK) return e->status;
  if (TYPE(lse).rank == 4) lse = EM(e, "squeeze.dim", lse, em_i(3));
  if (!at_same(at_infer(e), TYPE(lse).sizes[2], TYPE(f.q).sizes[2]))
    lse = EM(e, "slice.Tensor", lse, em_i(2), em_i(0), em_i(TYPE(f.q).sizes[2]));
  d = EM(e, "_scaled_dot_product_flash_attention_for_cpu_backward", g, f.q, f.k, f.v, y, lse, em_f(0.0), em_b(f.causal),
         f.mask, IN("scale"));
  for (i = 0; i < 3; i++) out[i] = VAL(heads_first(e, &f, em_nth(d, i)));
  if (e->desc->n_results == 4) {
    out[3] = aot_no_value();
    if (at_result_type(e, 3).kind == AOT_TYPE_TENSOR) out[3] = VAL(bias_gradient(e, &f, g, y, lse));
  }
  return e->status;
}
