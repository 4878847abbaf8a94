/* Attention by its definition, and its gradients.
 *
 *     S = s q k^T + mask     P = softmax(S)     y = P v
 *     dv = P^T g     dP = g v^T     dS = P (dP - rowsum(dP P))     dq = s dS k     dk = s dS^T q
 *
 * is_causal lets row i see columns j <= i. A bool mask attends where it is true, another is added; a row that sees
 * nothing gives 0. With enable_gqa each head of k and v serves several heads of q, and gets the sum of their gradients.
 * The forward multiplies q and k each by sqrt(s), as PyTorch's math path does. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

typedef struct attention {
  em_x_t q, k, v; /* with as many heads each, in the dtype of computation */
  double scale;
  int may_be_empty; /* a row can see nothing */
} attention_t;

static em_x_t swapped(em_t *e, em_x_t x) { return EM(e, "transpose.int", x, em_i(-2), em_i(-1)); }

/* [.., h, S, E] becomes [.., h * n, S, E], each head n times in a row. */
static em_x_t repeat_heads(em_t *e, em_x_t x, int64_t n) {
  aot_type_t t = TYPE(x);
  int64_t sizes[AOT_MAX_RANK + 1];
  int32_t h = t.rank - 3, d;
  if (n == 1 || e->status != AOT_OK) return x;
  for (d = 0; d <= t.rank; d++) sizes[d] = d <= h ? t.sizes[d] : d == h + 1 ? n : t.sizes[d - 1];
  x = at_expanded(e, at_unsqueeze(e, x, h + 1), sizes, t.rank + 1);
  memcpy(sizes, t.sizes, (size_t)t.rank * sizeof *sizes);
  sizes[h] = at_mul(at_infer(e), t.sizes[h], n);
  return at_reshaped(e, x, sizes, t.rank);
}

static int64_t heads_per_group(em_t *e) {
  aot_type_t q = TYPE(IN("query")), k = TYPE(IN("key"));
  if (!at_in_int(e, "enable_gqa", 0) || q.rank < 3) return 1;
  return at_floordiv(at_infer(e), q.sizes[q.rank - 3], k.sizes[k.rank - 3]);
}

static attention_t read_call(em_t *e) {
  attention_t a;
  int64_t n = heads_per_group(e), width;
  aot_type_t t;
  memset(&a, 0, sizeof a);
  a.q = at_math(e, IN("query"));
  a.k = repeat_heads(e, at_math(e, IN("key")), n);
  a.v = repeat_heads(e, at_math(e, IN("value")), n);
  t = TYPE(a.q);
  width = t.rank ? at_hint(at_infer(e), t.sizes[t.rank - 1]) : 1;
  a.scale = at_in_has(e, "scale") ? em_in_float(e, "scale", 1.0) : 1.0 / sqrt((double)width);
  a.may_be_empty = at_in_has(e, "attn_mask");
  return a;
}

static em_x_t causal_mask(em_t *e, const attention_t *a) {
  aot_type_t q = TYPE(a->q), k = TYPE(a->k);
  em_x_t rows = at_unsqueeze(e, at_range(e, q.sizes[q.rank - 2], a->q), 1),
         columns = at_range(e, k.sizes[k.rank - 2], a->q);
  return LE(columns, rows);
}

static em_x_t scores(em_t *e, const attention_t *a) {
  double root = sqrt(fabs(a->scale));
  em_x_t q = MUL(a->q, em_f(a->scale < 0 ? -root : root)), k = MUL(a->k, em_f(root));
  em_x_t s = at_matmul(e, q, swapped(e, k)), mask = IN("attn_mask");
  if (at_in_int(e, "is_causal", 0)) s = WHERE(causal_mask(e, a), s, em_f(-INFINITY));
  if (em_is_none(mask)) return s;
  if (TYPE(mask).dtype == AOT_BOOL) return WHERE(mask, s, em_f(-INFINITY));
  return ADD(s, at_math(e, mask));
}

static em_x_t probabilities(em_t *e, const attention_t *a, em_x_t s) {
  int32_t last = TYPE(s).rank - 1;
  if (a->may_be_empty) return EM(e, "_safe_softmax", s, em_i(last));
  return EM(e, "_softmax", s, em_i(last), em_b(0)); /* backends have it whole */
}

/* x where `keep` is not 0, times 1 / (1 - p); 0 elsewhere */
static em_x_t dropped(em_t *e, em_x_t x) {
  double p = em_in_float(e, "dropout_p", 0.0);
  return MUL(MUL(x, at_math(e, IN("keep"))), em_f(p < 1.0 ? 1.0 / (1.0 - p) : 0.0));
}

aot_status_t at_dc_dropout_attention(em_t *e, aot_value_t *out) {
  attention_t a = read_call(e);
  em_x_t p = probabilities(e, &a, scores(e, &a));
  at_give_cast(e, at_matmul(e, dropped(e, p), a.v), out);
  return e->status;
}

aot_status_t at_dc_attention(em_t *e, aot_value_t *out) {
  attention_t a = read_call(e);
  em_x_t s = scores(e, &a), p = probabilities(e, &a, s);
  if (em_in_float(e, "dropout_p", 0.0) != 0.0) p = EM(e, "native_dropout", p, IN("dropout_p"), em_b(1));
  at_give_cast(e, at_matmul(e, p, a.v), out);
  if (e->status == AOT_OK) { /* in the query's memory order, as the fused kernel writes */
    aot_type_t t = at_result_type(e, 0);
    out[0] = VAL(at_laid_out(e, em_v(out[0]), &t));
  }
  if (strstr(at_name(e), "attention_math")) {
    out[1] = VAL(em_cast(e, p, at_result_type(e, 1).dtype));
  } else if (e->desc->n_results == 2) { /* the fused kernel: log sum exp of the scores, heads inside of steps */
    int64_t last = TYPE(s).rank - 1;
    aot_type_t t = at_result_type(e, 1);
    out[1] = VAL(at_laid_out(e, EM(e, "logsumexp", s, em_list(e, &last, 1), em_b(0)), &t));
  }
  return e->status;
}

/* A gradient of x after repeat_heads and broadcasting, summed back to the shape that x had. */
static em_x_t gathered(em_t *e, em_x_t g, em_x_t like, int64_t n) {
  aot_type_t t = TYPE(like), from = TYPE(g);
  int64_t sizes[AOT_MAX_RANK + 1], dims[AOT_MAX_RANK], dim;
  uint32_t k = 0;
  int32_t d, h = from.rank - 3;
  if (n != 1 && e->status == AOT_OK) {
    for (d = 0; d <= from.rank; d++)
      sizes[d] = d < h        ? from.sizes[d]
                 : d == h     ? at_floordiv(at_infer(e), from.sizes[h], n)
                 : d == h + 1 ? n
                              : from.sizes[d - 1];
    dim = h + 1;
    g = at_summed(e, at_reshaped(e, g, sizes, from.rank + 1), &dim, 1, 0);
    from = TYPE(g);
  }
  for (d = 0; d < from.rank; d++) {
    int32_t own = d - (from.rank - t.rank);
    if (own < 0 || (at_same(at_infer(e), t.sizes[own], 1) && !at_same(at_infer(e), from.sizes[d], 1))) dims[k++] = d;
  }
  g = at_summed(e, g, dims, k, 0);
  return em_cast(e, at_reshaped(e, g, t.sizes, t.rank), t.dtype);
}

/* weights: what the values were multiplied by, p or what dropout left of it. */
static void give_gradients(em_t *e, const attention_t *a, em_x_t ds, em_x_t weights, em_x_t g, aot_value_t *out) {
  int64_t n = heads_per_group(e);
  out[0] = VAL(gathered(e, at_matmul(e, ds, a->k), IN("query"), 1));
  out[1] = VAL(gathered(e, at_matmul(e, swapped(e, ds), a->q), IN("key"), n));
  out[2] = VAL(gathered(e, at_matmul(e, swapped(e, weights), g), IN("value"), n));
}

static em_x_t score_gradients(em_t *e, const attention_t *a, em_x_t p, em_x_t dp, em_x_t row_sum) {
  return MUL(MUL(p, SUB(dp, row_sum)), em_f(a->scale));
}

/* rowsum(drop(dP) P) is that of g y, too. */
aot_status_t at_dc_dropout_attention_backward(em_t *e, aot_value_t *out) {
  attention_t a = read_call(e);
  em_x_t g = at_math(e, IN("grad")), p = probabilities(e, &a, scores(e, &a));
  em_x_t dp = dropped(e, at_matmul(e, g, swapped(e, a.v)));
  int64_t last = -1;
  em_x_t ds = score_gradients(e, &a, p, dp, at_summed(e, MUL(dp, p), &last, 1, 1));
  give_gradients(e, &a, ds, dropped(e, p), g, out);
  return e->status;
}

/* The probabilities again. rowsum(dP P) = rowsum(g y). */
aot_status_t at_dc_attention_backward(em_t *e, aot_value_t *out) {
  attention_t a = read_call(e);
  em_x_t g = at_math(e, IN("grad")), p = probabilities(e, &a, scores(e, &a));
  int64_t last = -1;
  if (em_in_float(e, "dropout_p", 0.0) != 0.0)
    em_fail(e, AOT_E_UNIMPLEMENTED, "the stage rng knows the mask: put it before the partition",
            "%s cannot draw the dropout mask again", at_name(e));
  em_x_t row_sum = at_summed(e, MUL(g, at_matmul(e, p, a.v)), &last, 1, 1);
  give_gradients(e, &a, score_gradients(e, &a, p, at_matmul(e, g, swapped(e, a.v)), row_sum), p, g, out);
  return e->status;
}

/* The fused kernel saved y and the log sum exp: P = exp(S - lse). */
aot_status_t at_dc_flash_cpu_backward(em_t *e, aot_value_t *out) {
  attention_t a = read_call(e);
  em_x_t g = at_math(e, IN("grad_out")), s = scores(e, &a), p;
  int64_t last = -1;
  if (em_in_float(e, "dropout_p", 0.0) != 0.0)
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s with dropout is not rewritten", at_name(e));
  p = EXP(SUB(s, EM(e, "unsqueeze", IN("logsumexp"), em_i(-1))));
  em_x_t row_sum = at_summed(e, MUL(g, at_math(e, IN("out"))), &last, 1, 1);
  give_gradients(e, &a, score_gradients(e, &a, p, at_matmul(e, g, swapped(e, a.v)), row_sum), p, g, out);
  return e->status;
}
