#include "attention_call.h"

#include <math.h>
#include <string.h>

#define NONE LW_NONE
static const lw_attention_places_t places[] = {
    /* (query, key, value, attn_mask, dropout_p, is_causal, *, scale, enable_gqa) */
    {"aten.scaled_dot_product_attention.default", 0, 3, 4, 5, 6, 7, NONE, 0},
    /* (grad, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) */
    {"aot.scaled_dot_product_attention_backward.default", 1, 4, 5, 6, 7, 8, NONE, 1},
    /* (query, key, value, dropout_p, is_causal, *, attn_mask, scale) */
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", 0, 5, 3, 4, 6, NONE, NONE, 0},
    /* (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask, scale) */
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", 1, 8, 6, 7, 9, NONE, 4, 1},
};

const lw_attention_places_t *lw_attention_places(aot_str_t op) {
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (aot_str_eq(op, aot_str(places[i].op))) return &places[i];
  return NULL;
}

/* Heads of queries for one of keys; 0: leading dimensions do not fit. */
static int64_t share_of(const lw_tensor_t *q, const lw_tensor_t *k, const lw_tensor_t *v, int may_share) {
  const int32_t heads = q->rank - 3;
  if (k->rank != q->rank || v->rank != q->rank) return 0;
  for (int32_t d = 0; d < heads; d++)
    if (k->sizes[d] != q->sizes[d] || v->sizes[d] != q->sizes[d]) return 0;
  if (heads < 0) return 1;
  if (k->sizes[heads] != v->sizes[heads] || k->sizes[heads] == 0 || q->sizes[heads] % k->sizes[heads]) return 0;
  if (q->sizes[heads] == k->sizes[heads]) return 1;
  return may_share ? q->sizes[heads] / k->sizes[heads] : 0;
}

static int fits_mask(const lw_tensor_t *m, const lw_tensor_t *q, const lw_tensor_t *k) {
  if (m->rank > q->rank || (m->dtype != AOT_BOOL && m->dtype != AOT_F32 && m->dtype != q->dtype)) return 0;
  for (int32_t n = 1; n <= m->rank; n++)
    if (lw_from_end(m, n) != 1 && lw_from_end(m, n) != (n == 1 ? lw_from_end(k, 2) : lw_from_end(q, n))) return 0;
  return 1;
}

int lw_attention_call(const lw_build_t *b, const lw_attention_places_t *at, lw_attention_t *out) {
  const lw_tensor_t *q = lw_arg_tensor(b, at->query), *k = lw_arg_tensor(b, at->query + 1);
  const lw_tensor_t *v = lw_arg_tensor(b, at->query + 2);
  if (!q || !k || !v || k->dtype != q->dtype || v->dtype != q->dtype) return 0;
  if (q->rank < 2 || lw_arg_float(b, at->dropout, 0) != 0) return 0;
  *out = (lw_attention_t){
      .q = q,
      .k = k,
      .v = v,
      .mask = lw_arg_tensor(b, at->mask),
      .share = share_of(q, k, v, at->gqa != NONE && lw_arg_int(b, at->gqa, 0)),
      .is_causal = lw_arg_int(b, at->causal, 0) != 0,
  };
  if (!out->share || lw_numel(q) == 0 || lw_numel(k) == 0 || lw_numel(v) == 0) return 0;
  if (lw_from_end(k, 1) != lw_from_end(q, 1) || lw_from_end(v, 2) != lw_from_end(k, 2)) return 0;
  out->scale = lw_arg_float(b, at->scale, 1 / sqrt((double)lw_from_end(q, 1)));
  return out->mask ? fits_mask(out->mask, q, k) : lw_arg(b, at->mask)->kind == AOT_ARG_NONE;
}

int lw_is_attention_output(const lw_tensor_t *t, const lw_attention_t *a) {
  const lw_tensor_t *q = a->q;
  return t->dtype == q->dtype && t->rank == q->rank && lw_from_end(t, 1) == lw_from_end(a->v, 1) &&
         memcmp(t->sizes, q->sizes, (size_t)(q->rank - 1) * sizeof *q->sizes) == 0;
}

int lw_is_attention_lse(const lw_tensor_t *t, const lw_attention_t *a) {
  return t->dtype == AOT_F32 && t->rank == a->q->rank - 1 &&
         memcmp(t->sizes, a->q->sizes, (size_t)t->rank * sizeof *t->sizes) == 0;
}
