#include "attention_call.h"

#include "affine_values.h"

#include <aot/assert.h>
#include <math.h>
#include <string.h>

#define NONE LW_NONE
static const lw_attention_places_t places[] = {
    /* (query, key, value, attn_mask, dropout_p, is_causal, *, scale, enable_gqa) */
    {"aten.scaled_dot_product_attention.default", 0, 3, 4, 5, 6, 7, NONE, NONE, 0},
    /* (grad, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) */
    {"aot.scaled_dot_product_attention_backward.default", 1, 4, 5, 6, 7, 8, NONE, NONE, 1},
    /* (query, key, value, attn_mask, keep, dropout_p, is_causal, scale, enable_gqa) */
    {"aot.dropout_attention.default", 0, 3, 5, 6, 7, 8, 4, NONE, 0},
    /* (grad, query, key, value, attn_mask, keep, dropout_p, is_causal, scale, enable_gqa) */
    {"aot.dropout_attention_backward.default", 1, 4, 6, 7, 8, 9, 5, NONE, 1},
    /* (query, key, value, dropout_p, is_causal, *, attn_mask, scale) */
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", 0, 5, 3, 4, 6, NONE, NONE, NONE, 0},
    /* (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask, scale) */
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", 1, 8, 6, 7, 9, NONE, NONE, 4, 1},
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

/* Written out in full, side by side, one for each score. */
static int read_keep(const lw_build_t *b, const lw_attention_places_t *at, double p, lw_attention_t *a) {
  const lw_tensor_t *keep = lw_arg_tensor(b, at->keep);
  if (!keep || keep->rank != a->q->rank || lw_from_end(keep, 1) != lw_from_end(a->k, 2)) return 0;
  if (memcmp(keep->sizes, a->q->sizes, (size_t)(keep->rank - 1) * sizeof *keep->sizes)) return 0;
  a->keep = keep;
  a->keep_scale = p < 1 ? 1 / (1 - p) : 0;
  return 1;
}

/* ---- masks whose meaning the program's text reports ---- */

enum { SEES, HIDES, NEITHER };
/* Below HIDDEN what is added to a score leaves nothing of its exponential, unless the whole row is there. */
#define HIDDEN (-1e30)

static int effect_of(double v, int32_t dtype) {
  if (dtype == AOT_BOOL) return v != 0 ? SEES : HIDES;
  return v == 0 ? SEES : v <= HIDDEN ? HIDES : NEITHER;
}

/* Keys are seen where start + steps i >= 0: is that where the key's place is at most the query's? */
static int is_causal_form(const lw_form_t *f, int is_yes_seen) {
  const int64_t sign = is_yes_seen ? 1 : -1, start = is_yes_seen ? f->start : -f->start - 1;
  if (f->rank < 2) return 0;
  for (int32_t d = 0; d + 2 < f->rank; d++)
    if (f->steps[d]) return 0;
  const int64_t step = sign * f->steps[f->rank - 2];
  return step > 0 && sign * f->steps[f->rank - 1] == -step && start >= 0 && start < step;
}

/* The mask goes where it hides nothing, and becomes is_causal where that is what it says. */
static void read_mask(lw_build_t *b, const lw_attention_places_t *at, lw_attention_t *a) {
  const lw_form_t *f = a->is_causal ? NULL : lw_form_of(b, at->mask);
  if (!f || f->kind != LW_FORM_CHOICE) return;
  const int yes = effect_of(f->yes, a->mask->dtype), no = effect_of(f->no, a->mask->dtype);
  if (yes == SEES && no == SEES) a->mask = NULL;
  else if (yes != no && yes != NEITHER && no != NEITHER && is_causal_form(f, yes == SEES)) {
    a->mask = NULL;
    a->is_causal = 1;
  }
}

int lw_attention_call(lw_build_t *b, const lw_attention_places_t *at, lw_attention_t *out) {
  const lw_tensor_t *q = lw_arg_tensor(b, at->query), *k = lw_arg_tensor(b, at->query + 1);
  const lw_tensor_t *v = lw_arg_tensor(b, at->query + 2);
  if (!q || !k || !v || k->dtype != q->dtype || v->dtype != q->dtype) return 0;
  const double p = lw_arg_float(b, at->dropout, 0);
  if (q->rank < 2 || (at->keep == NONE && p != 0)) return 0;
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
  if (at->keep != NONE && !read_keep(b, at, p, out)) return 0;
  out->scale = lw_arg_float(b, at->scale, 1 / sqrt((double)lw_from_end(q, 1)));
  if (!out->mask) return lw_arg(b, at->mask)->kind == AOT_ARG_NONE;
  if (!fits_mask(out->mask, q, k)) return 0;
  read_mask(b, at, out);
  return 1;
}

int lw_is_attention_output(const lw_tensor_t *t, const lw_attention_t *a) {
  const lw_tensor_t *q = a->q;
  AOT_ASSERT(q->rank >= 2); /* lw_attention_call */
  return t->dtype == q->dtype && t->rank == q->rank && lw_from_end(t, 1) == lw_from_end(a->v, 1) &&
         memcmp(t->sizes, q->sizes, (size_t)(q->rank - 1) * sizeof *q->sizes) == 0;
}

int lw_is_attention_lse(const lw_tensor_t *t, const lw_attention_t *a) {
  return t->dtype == AOT_F32 && t->rank == a->q->rank - 1 &&
         memcmp(t->sizes, a->q->sizes, (size_t)t->rank * sizeof *t->sizes) == 0;
}
