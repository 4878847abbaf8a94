/* Attention by its definition, and its gradients.
 *
 *     S = s q k^T + mask     P = softmax(S)     y = P v
 *     dv = P^T g     dP = g v^T     dS = P (dP - rowsum(dP P))     dq = s dS k     dk = s dS^T q
 *
 * is_causal lets row i see columns j <= i. A bool mask attends where it is true, another is added; a row that sees nothing
 * gives 0. With enable_gqa each head of k and v serves several heads of q, and gets the sum of their gradients. The forward
 * multiplies q and k each by sqrt(s), as PyTorch's math path does. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

typedef struct attention {
  at_x q, k, v; /* with as many heads each, in the dtype of computation */
  double scale;
  int may_be_empty; /* a row can see nothing */
} attention_t;

static at_x swapped(at_emit_t *e, at_x x) { return AT(e, "transpose.int", x, at_i(-2), at_i(-1)); }

/* [.., h, S, E] becomes [.., h * n, S, E], each head n times in a row. */
static at_x repeat_heads(at_emit_t *e, at_x x, int64_t n) {
  aot_type_t t = TYPE(x);
  int64_t sizes[AOT_MAX_RANK + 1];
  int32_t h = t.rank - 3, d;
  if (n == 1 || e->status != AOT_OK) return x;
  for (d = 0; d <= t.rank; d++) sizes[d] = d <= h ? t.sizes[d] : d == h + 1 ? n : t.sizes[d - 1];
  x = at_expanded(e, at_unsqueeze(e, x, h + 1), sizes, t.rank + 1);
  memcpy(sizes, t.sizes, (size_t)t.rank * sizeof *sizes);
  sizes[h] = at_mul(e->infer, t.sizes[h], n);
  return at_reshaped(e, x, sizes, t.rank);
}

static int64_t heads_per_group(at_emit_t *e) {
  aot_type_t q = TYPE(IN("query")), k = TYPE(IN("key"));
  if (!at_in_int(e, "enable_gqa", 0) || q.rank < 3) return 1;
  return at_floordiv(e->infer, q.sizes[q.rank - 3], k.sizes[k.rank - 3]);
}

static attention_t read_call(at_emit_t *e) {
  attention_t a;
  int64_t n = heads_per_group(e), width;
  aot_type_t t;
  memset(&a, 0, sizeof a);
  a.q = at_math(e, IN("query"));
  a.k = repeat_heads(e, at_math(e, IN("key")), n);
  a.v = repeat_heads(e, at_math(e, IN("value")), n);
  t = TYPE(a.q);
  width = t.rank ? at_hint(e->infer, t.sizes[t.rank - 1]) : 1;
  a.scale = at_in_has(e, "scale") ? at_in_float(e, "scale", 1.0) : 1.0 / sqrt((double)width);
  a.may_be_empty = at_in_has(e, "attn_mask");
  return a;
}

static at_x causal_mask(at_emit_t *e, const attention_t *a) {
  aot_type_t q = TYPE(a->q), k = TYPE(a->k);
  at_x rows = at_unsqueeze(e, at_range(e, q.sizes[q.rank - 2], a->q), 1), columns = at_range(e, k.sizes[k.rank - 2], a->q);
  return LE(columns, rows);
}

static at_x scores(at_emit_t *e, const attention_t *a) {
  double root = sqrt(fabs(a->scale));
  at_x q = MUL(a->q, at_f(a->scale < 0 ? -root : root)), k = MUL(a->k, at_f(root));
  at_x s = at_matmul(e, q, swapped(e, k)), mask = IN("attn_mask");
  if (at_in_int(e, "is_causal", 0)) s = WHERE(causal_mask(e, a), s, at_f(-INFINITY));
  if (at_is_none(mask)) return s;
  if (TYPE(mask).dtype == AOT_BOOL) return WHERE(mask, s, at_f(-INFINITY));
  return ADD(s, at_math(e, mask));
}

static at_x probabilities(at_emit_t *e, const attention_t *a, at_x s) {
  int32_t last = TYPE(s).rank - 1;
  if (a->may_be_empty) return AT(e, "_safe_softmax", s, at_i(last));
  return AT(e, "_softmax", s, at_i(last), at_b(0)); /* backends have it whole */
}

aot_status_t at_dc_attention(at_emit_t *e, aot_value_t *out) {
  attention_t a = read_call(e);
  at_x s = scores(e, &a), p = probabilities(e, &a, s);
  if (at_in_float(e, "dropout_p", 0.0) != 0.0) p = AT(e, "native_dropout", p, IN("dropout_p"), at_b(1));
  at_give_cast(e, at_matmul(e, p, a.v), out);
  if (strstr(e->row->name, "attention_math")) {
    out[1] = VAL(at_cast(e, p, at_result_type(e, 1).dtype));
  } else if (e->desc->n_results == 2) { /* the fused kernel: log sum exp of the scores */
    int64_t last = TYPE(s).rank - 1;
    out[1] = VAL(AT(e, "logsumexp", s, at_list(e, &last, 1), at_b(0)));
  }
  return e->status;
}

/* A gradient of x after repeat_heads and broadcasting, summed back to the shape that x had. */
static at_x gathered(at_emit_t *e, at_x g, at_x like, int64_t n) {
  aot_type_t t = TYPE(like), from = TYPE(g);
  int64_t sizes[AOT_MAX_RANK + 1], dims[AOT_MAX_RANK], dim;
  uint32_t k = 0;
  int32_t d, h = from.rank - 3;
  if (n != 1 && e->status == AOT_OK) {
    for (d = 0; d <= from.rank; d++)
      sizes[d] = d < h ? from.sizes[d] : d == h ? at_floordiv(e->infer, from.sizes[h],
                                                              n) : d == h + 1 ? n : from.sizes[d - 1];
    dim = h + 1;
    g = at_summed(e, at_reshaped(e, g, sizes, from.rank + 1), &dim, 1, 0);
    from = TYPE(g);
  }
  for (d = 0; d < from.rank; d++) {
    int32_t own = d - (from.rank - t.rank);
    if (own < 0 || (at_hint(e->infer, t.sizes[own]) == 1 && at_hint(e->infer, from.sizes[d]) != 1)) dims[k++] = d;
  }
  g = at_summed(e, g, dims, k, 0);
  return at_cast(e, at_reshaped(e, g, t.sizes, t.rank), t.dtype);
}

static void give_gradients(at_emit_t *e, const attention_t *a, at_x p, at_x g, at_x row_sum, aot_value_t *out) {
  int64_t n = heads_per_group(e);
  at_x dp = at_matmul(e, g, swapped(e, a->v)), ds = MUL(MUL(p, SUB(dp, row_sum)), at_f(a->scale));
  out[0] = VAL(gathered(e, at_matmul(e, ds, a->k), IN("query"), 1));
  out[1] = VAL(gathered(e, at_matmul(e, swapped(e, ds), a->q), IN("key"), n));
  out[2] = VAL(gathered(e, at_matmul(e, swapped(e, p), g), IN("value"), n));
}

/* The probabilities once more. rowsum(dP P) = rowsum(g y). */
aot_status_t at_dc_attention_backward(at_emit_t *e, aot_value_t *out) {
  attention_t a = read_call(e);
  at_x g = at_math(e, IN("grad")), p = probabilities(e, &a, scores(e, &a));
  int64_t last = -1;
  if (at_in_float(e, "dropout_p", 0.0) != 0.0)
    at_emit_fail(e, "the stage rng knows the mask: put it before the partition", "%s cannot draw the dropout mask again",
                 e->row->name);
  give_gradients(e, &a, p, g, at_summed(e, MUL(g, at_matmul(e, p, a.v)), &last, 1, 1), out);
  return e->status;
}

/* The fused kernel saved y and the log sum exp: P = exp(S - lse). */
aot_status_t at_dc_flash_cpu_backward(at_emit_t *e, aot_value_t *out) {
  attention_t a = read_call(e);
  at_x g = at_math(e, IN("grad_out")), s = scores(e, &a), p;
  int64_t last = -1;
  if (at_in_float(e, "dropout_p", 0.0) != 0.0) at_emit_fail(e, "", "%s with dropout is not rewritten", e->row->name);
  p = EXP(SUB(s, AT(e, "unsqueeze", IN("logsumexp"), at_i(-1))));
  give_gradients(e, &a, p, g, at_summed(e, MUL(g, at_math(e, IN("out"))), &last, 1, 1), out);
  return e->status;
}
