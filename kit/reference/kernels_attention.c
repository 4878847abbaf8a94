/* Scaled dot-product attention and its derivative, row by row in double: P = softmax(scale * q k^T + bias), out = P v.
 *
 * Shapes: query [.., Hq, Lq, E], key [.., Hkv, Lk, E], value [.., Hkv, Lk, Ev]; leading dimensions of size 1 broadcast,
 * and with enable_gqa Hq / Hkv query heads share a key head. is_causal keeps j <= i (aligned top-left). A bool mask
 * keeps where true, a float mask is added. A row with nothing to attend to gives 0. Backward (operators.md section 4):
 *     D = sum(P * (g v^T)),  dS = P * (g v^T - D),  dq = scale dS k,  dk = scale dS^T q,  dv = P^T g
 * with P made again, so that nothing needs to be saved. Sources: Dao et al. 2022, section 3. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

typedef struct attention {
  rk_array_t q, k, v, mask; /* mask expanded to [batch.., Lq, Lk]; f NULL and i NULL: none */
  rk_array_t keep;          /* of that shape: what remains of a probability, 0 or 1 / (1 - p); f NULL: all */
  int32_t n_batch;          /* leading dimensions */
  int64_t batch[AOT_MAX_RANK], batches, lq, lk, e, ev;
  double scale;
  int causal;
  int64_t gqa; /* query heads of a key head */
  double *p;   /* one row of probabilities */
} attention_t;

static aot_status_t leading(rk_ctx_t *c, attention_t *a) {
  const rk_array_t *all[3] = {&a->q, &a->k, &a->v};
  a->n_batch = a->q.rank - 2;
  a->batches = 1;
  for (int32_t d = 0; d < a->n_batch; d++) {
    int is_head = d == a->n_batch - 1;
    a->batch[d] = 1;
    for (int t = 0; t < 3; t++) {
      int64_t n = all[t]->sizes[d] * (t && is_head ? a->gqa : 1);
      RK_CHECK(c, n == a->batch[d] || n == 1 || a->batch[d] == 1, "leading sizes %lld and %lld differ",
               (long long)a->batch[d], (long long)n);
      if (n != 1) a->batch[d] = n;
    }
    a->batches *= a->batch[d];
  }
  return AOT_OK;
}

static aot_status_t read_mask(rk_ctx_t *c, attention_t *a, uint32_t arg) {
  const rk_tensor_t *mask;
  int64_t sizes[AOT_MAX_RANK];
  AOT_TRY(rk_tensor_of(c, arg, &mask));
  if (!mask) return AOT_OK;
  RK_CHECK(c, !a->causal, "is_causal and attn_mask exclude each other");
  memcpy(sizes, a->batch, sizeof sizes);
  sizes[a->n_batch] = a->lq;
  sizes[a->n_batch + 1] = a->lk;
  return rk_dense_expanded(c, mask, a->n_batch + 2, sizes, &a->mask);
}

/* Factors of the probabilities out of a tensor of zeros and others. */
static aot_status_t read_keep(rk_ctx_t *c, attention_t *a, uint32_t arg, double dropout_p) {
  const rk_tensor_t *keep;
  rk_array_t drawn;
  int64_t sizes[AOT_MAX_RANK];
  AOT_TRY(rk_need_tensor(c, arg, &keep));
  memcpy(sizes, a->batch, sizeof sizes);
  sizes[a->n_batch] = a->lq;
  sizes[a->n_batch + 1] = a->lk;
  AOT_TRY(rk_dense_expanded(c, keep, a->n_batch + 2, sizes, &drawn));
  AOT_TRY(rk_new_f(c, a->n_batch + 2, sizes, &a->keep));
  for (int64_t i = 0; i < drawn.numel; i++) {
    const int is_kept = drawn.f ? drawn.f[i] != 0 : drawn.i[i] != 0;
    a->keep.f[i] = is_kept && dropout_p < 1 ? 1 / (1 - dropout_p) : 0;
  }
  return AOT_OK;
}

typedef struct attention_args {
  uint32_t first, mask, causal, scale, gqa; /* gqa: UINT32_MAX when the operator has none */
} attention_args_t;

static aot_status_t read_attention(rk_ctx_t *c, attention_args_t at, attention_t *a) {
  memset(a, 0, sizeof *a);
  AOT_TRY(rk_need_f(c, at.first, &a->q));
  AOT_TRY(rk_need_f(c, at.first + 1, &a->k));
  AOT_TRY(rk_need_f(c, at.first + 2, &a->v));
  RK_CHECK(c, a->q.rank >= 2 && a->k.rank == a->q.rank && a->v.rank == a->q.rank,
           "query, key and value have ranks %d, %d, %d", a->q.rank, a->k.rank, a->v.rank);
  a->lq = a->q.sizes[a->q.rank - 2];
  a->e = a->q.sizes[a->q.rank - 1];
  a->lk = a->k.sizes[a->k.rank - 2];
  a->ev = a->v.sizes[a->v.rank - 1];
  RK_CHECK(c, a->k.sizes[a->k.rank - 1] == a->e && a->v.sizes[a->v.rank - 2] == a->lk,
           "key and value do not fit the query");
  a->causal = rk_bool(c, at.causal, 0);
  a->scale = rk_float(c, at.scale, 1 / sqrt((double)a->e));
  a->gqa = 1;
  if (at.gqa != UINT32_MAX && rk_bool(c, at.gqa, 0) && a->q.rank >= 3) {
    int64_t hq = a->q.sizes[a->q.rank - 3], hk = a->k.sizes[a->k.rank - 3];
    RK_CHECK(c, hk > 0 && hq % hk == 0 && a->v.sizes[a->v.rank - 3] == hk,
             "%lld query heads do not divide by %lld key heads", (long long)hq, (long long)hk);
    a->gqa = hq / hk;
  }
  AOT_TRY(leading(c, a));
  AOT_TRY(read_mask(c, a, at.mask));
  RK_SCRATCH(c, a->lk, a->p);
  return AOT_OK;
}

/* Which matrix of x belongs to batch number b; shared: x has key heads. */
static int64_t matrix_of(const attention_t *a, const rk_array_t *x, int64_t b, int shared) {
  int64_t index[AOT_MAX_RANK], at = 0;
  for (int32_t d = a->n_batch - 1; d >= 0; b /= a->batch[d], d--) index[d] = b % a->batch[d];
  if (shared && a->n_batch) index[a->n_batch - 1] /= a->gqa;
  for (int32_t d = 0; d < a->n_batch; d++) at = at * x->sizes[d] + (x->sizes[d] == 1 ? 0 : index[d]);
  return at;
}

/* Row i of the probabilities of batch b into a->p; returns the log of the sum of exponentials. */
static double row_of(const attention_t *a, int64_t b, int64_t i) {
  const double *q = a->q.f + (matrix_of(a, &a->q, b, 0) * a->lq + i) * a->e;
  const double *k = a->k.f + matrix_of(a, &a->k, b, 1) * a->lk * a->e;
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < a->lk; j++) {
    int64_t m = (b * a->lq + i) * a->lk + j;
    double s = 0;
    for (int64_t e = 0; e < a->e; e++) s += q[e] * k[j * a->e + e];
    s *= a->scale;
    if (a->mask.f) s += a->mask.f[m];
    if ((a->mask.i && !a->mask.i[m]) || (a->causal && j > i)) s = -INFINITY;
    a->p[j] = s;
    if (s > top || s != s) top = s;
  }
  for (int64_t j = 0; j < a->lk; j++) sum += a->p[j] = top == -INFINITY ? 0 : exp(a->p[j] - top);
  for (int64_t j = 0; j < a->lk; j++) a->p[j] = top == -INFINITY ? 0 : a->p[j] / sum;
  return top == -INFINITY ? top : top + log(sum);
}

static double keep_of(const attention_t *a, int64_t b, int64_t i, int64_t j) {
  return a->keep.f ? a->keep.f[(b * a->lq + i) * a->lk + j] : 1;
}

static aot_status_t forward(rk_ctx_t *c, attention_t *a) {
  rk_array_t out, lse;
  int64_t sizes[AOT_MAX_RANK];
  memcpy(sizes, a->batch, sizeof sizes);
  sizes[a->n_batch] = a->lq;
  sizes[a->n_batch + 1] = a->ev;
  AOT_TRY(rk_new_f(c, a->n_batch + 2, sizes, &out));
  AOT_TRY(rk_new_f(c, a->n_batch + 1, sizes, &lse));
  for (int64_t b = 0; b < a->batches; b++) {
    const double *v = a->v.f + matrix_of(a, &a->v, b, 1) * a->lk * a->ev;
    for (int64_t i = 0; i < a->lq; i++) {
      double *o = out.f + (b * a->lq + i) * a->ev;
      lse.f[b * a->lq + i] = row_of(a, b, i);
      for (int64_t j = 0; j < a->lk; j++)
        for (int64_t e = 0; e < a->ev; e++) o[e] += keep_of(a, b, i, j) * a->p[j] * v[j * a->ev + e];
    }
  }
  AOT_TRY(rk_put_f(c, 1, &lse));
  return rk_put_f(c, 0, &out);
}

static aot_status_t backward(rk_ctx_t *c, attention_t *a, const rk_array_t *g) {
  rk_array_t gq, gk, gv;
  double *gp;
  RK_CHECK(c, g->numel == a->batches * a->lq * a->ev, "the gradient does not fit the output");
  AOT_TRY(rk_new_f(c, a->q.rank, a->q.sizes, &gq));
  AOT_TRY(rk_new_f(c, a->k.rank, a->k.sizes, &gk));
  AOT_TRY(rk_new_f(c, a->v.rank, a->v.sizes, &gv));
  RK_SCRATCH(c, a->lk, gp);
  for (int64_t b = 0; b < a->batches; b++) {
    int64_t mq = matrix_of(a, &a->q, b, 0) * a->lq * a->e, mk = matrix_of(a, &a->k, b, 1) * a->lk * a->e;
    int64_t mv = matrix_of(a, &a->v, b, 1) * a->lk * a->ev;
    for (int64_t i = 0; i < a->lq; i++) {
      const double *up = g->f + (b * a->lq + i) * a->ev;
      double sum = 0;
      row_of(a, b, i);
      for (int64_t j = 0; j < a->lk; j++) {
        const double keep = keep_of(a, b, i, j);
        gp[j] = 0;
        for (int64_t e = 0; e < a->ev; e++) {
          gp[j] += keep * up[e] * a->v.f[mv + j * a->ev + e];
          gv.f[mv + j * a->ev + e] += keep * a->p[j] * up[e];
        }
        sum += a->p[j] * gp[j];
      }
      for (int64_t j = 0; j < a->lk; j++) {
        double s = a->p[j] * (gp[j] - sum) * a->scale;
        for (int64_t e = 0; e < a->e; e++) {
          gq.f[mq + i * a->e + e] += s * a->k.f[mk + j * a->e + e];
          gk.f[mk + j * a->e + e] += s * a->q.f[mq + i * a->e + e];
        }
      }
    }
  }
  AOT_TRY(rk_put_f(c, 0, &gq));
  AOT_TRY(rk_put_f(c, 1, &gk));
  return rk_put_f(c, 2, &gv);
}

/* scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, *, scale, enable_gqa) */
static aot_status_t sdpa(rk_ctx_t *c) {
  attention_t a;
  AOT_TRY(read_attention(c, (attention_args_t){0, 3, 5, 6, 7}, &a));
  return forward(c, &a);
}

/* _scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, *, attn_mask, scale) */
static aot_status_t flash_cpu(rk_ctx_t *c) {
  attention_t a;
  AOT_TRY(read_attention(c, (attention_args_t){0, 5, 4, 6, UINT32_MAX}, &a));
  return forward(c, &a);
}

/* aot.scaled_dot_product_attention_backward(grad, query, key, value, attn_mask, dropout_p, is_causal, scale,
 * enable_gqa) */
static aot_status_t sdpa_backward(rk_ctx_t *c) {
  attention_t a;
  rk_array_t g;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_attention(c, (attention_args_t){1, 4, 6, 7, 8}, &a));
  return backward(c, &a, &g);
}

/* .._for_cpu_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask, scale) */
static aot_status_t flash_cpu_backward(rk_ctx_t *c) {
  attention_t a;
  rk_array_t g;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_attention(c, (attention_args_t){1, 8, 7, 9, UINT32_MAX}, &a));
  return backward(c, &a, &g);
}

/* aot.dropout_attention(query, key, value, attn_mask, keep, dropout_p, is_causal, scale, enable_gqa) */
static aot_status_t dropped(rk_ctx_t *c) {
  attention_t a;
  AOT_TRY(read_attention(c, (attention_args_t){0, 3, 6, 7, 8}, &a));
  AOT_TRY(read_keep(c, &a, 4, rk_float(c, 5, 0)));
  return forward(c, &a);
}

/* aot.dropout_attention_backward: the same after the gradient */
static aot_status_t dropped_backward(rk_ctx_t *c) {
  attention_t a;
  rk_array_t g;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_attention(c, (attention_args_t){1, 4, 7, 8, 9}, &a));
  AOT_TRY(read_keep(c, &a, 5, rk_float(c, 6, 0)));
  return backward(c, &a, &g);
}

#define ROW(name, fn)                                                                                                  \
  { name, fn, NULL, NULL, RK_DROPOUT_P }
static const rk_kernel_t rows[] = {
    ROW("aten.scaled_dot_product_attention.default", sdpa),
    ROW("aot.scaled_dot_product_attention_backward", sdpa_backward),
    ROW("aot.scaled_dot_product_attention_backward.default", sdpa_backward),
    {"aot.dropout_attention.default", dropped, NULL, NULL, 0},
    {"aot.dropout_attention_backward.default", dropped_backward, NULL, NULL, 0},
    ROW("aten._scaled_dot_product_flash_attention_for_cpu.default", flash_cpu),
    ROW("aten._scaled_dot_product_flash_attention_for_cpu_backward.default", flash_cpu_backward),
};
const rk_family_t rk_family_attention = RK_FAMILY(rows);
