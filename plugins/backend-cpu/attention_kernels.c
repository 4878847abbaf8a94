#include "attention_kernels.h"

#include "row_kernels.h"
#include "common/blas/openblas.h"
#include <math.h>

uint64_t bc_attention_work(const bc_attention_t *a) { return 2 * (uint64_t)a->n_query * (uint64_t)a->n_key; }

static float *at(bc_rows_t r, int64_t batch, int64_t head) { return r.data + batch * r.batch + head * r.head; }

/* Row-major C = alpha op(A) op(B) + beta C on strided rows; empty products leave beta C. */
static void gemm(int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  bl_library()->cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                            transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, alpha, a,
                            (int)(lda > 0 ? lda : 1), b, (int)(ldb > 0 ? ldb : 1), beta, c, (int)(ldc > 0 ? ldc : 1));
}

static void add_mask(const bc_attention_t *a, int64_t batch, int64_t head, float *s) {
  int64_t base = batch * a->mask_batch + head * a->mask_head;
  for (int64_t i = 0; i < a->n_query; i++)
    for (int64_t j = 0; j < a->n_key; j++) {
      int64_t m = base + i * a->mask_query + j * a->mask_key;
      if (a->mask) s[i * a->n_key + j] += a->mask[m];
      if (a->bool_mask && !a->bool_mask[m]) s[i * a->n_key + j] = -INFINITY;
    }
}

/* A row that sees nothing gets zeros, as PyTorch's safe softmax gives. */
static void softmax_rows(const bc_attention_t *a, float *s) {
  for (int64_t i = 0; i < a->n_query; i++) {
    float *row = s + i * a->n_key;
    int64_t seen = a->causal && i + 1 < a->n_key ? i + 1 : a->n_key;
    for (int64_t j = seen; j < a->n_key; j++) row[j] = 0;
    float most = -INFINITY;
    for (int64_t j = 0; j < seen; j++) most = row[j] > most || row[j] != row[j] ? row[j] : most;
    if (most == -INFINITY) {
      for (int64_t j = 0; j < seen; j++) row[j] = 0;
    } else {
      bc_softmax(row, 1, seen, row);
    }
  }
}

static void probabilities(const bc_attention_t *a, int64_t batch, int64_t head, int64_t kv, float *p) {
  gemm(0, 1, a->n_query, a->n_key, a->width, (float)a->scale, at(a->q, batch, head), a->q.position, at(a->k, batch, kv),
       a->k.position, 0, p, a->n_key);
  if (a->mask || a->bool_mask) add_mask(a, batch, head, p);
  softmax_rows(a, p);
}

void bc_attention_forward(const bc_attention_t *a, bc_rows_t o, int64_t begin, int64_t end, float *work) {
  int64_t share = a->n_head / a->n_head_kv;
  for (int64_t unit = begin * share; unit < end * share; unit++) {
    int64_t b = unit / a->n_head, h = unit % a->n_head;
    probabilities(a, b, h, h / share, work);
    gemm(0, 0, a->n_query, a->width_v, a->n_key, 1, work, a->n_key, at(a->v, b, h / share), a->v.position, 0,
         at(o, b, h), o.position);
  }
}

/* ds in place of dp: p * (dp - rowsum(p * dp)) */
static void softmax_gradient(const bc_attention_t *a, const float *p, float *dp) {
  bc_softmax_backward(dp, p, a->n_query, a->n_key, dp);
}

void bc_attention_backward(const bc_attention_t *a, bc_rows_t go, bc_rows_t dq, bc_rows_t dk, bc_rows_t dv,
                           int64_t begin, int64_t end, float *work) {
  int64_t share = a->n_head / a->n_head_kv;
  float *p = work, *dp = work + a->n_query * a->n_key;
  for (int64_t unit = begin * share; unit < end * share; unit++) {
    int64_t b = unit / a->n_head, h = unit % a->n_head, kv = h / share;
    float keep = h % share ? 1.0f : 0.0f; /* the first query head of a shared one overwrites, the others add */
    probabilities(a, b, h, kv, p);
    gemm(1, 0, a->n_key, a->width_v, a->n_query, 1, p, a->n_key, at(go, b, h), go.position, keep, at(dv, b, kv),
         dv.position);
    gemm(0, 1, a->n_query, a->n_key, a->width_v, 1, at(go, b, h), go.position, at(a->v, b, kv), a->v.position, 0, dp,
         a->n_key);
    softmax_gradient(a, p, dp);
    gemm(0, 0, a->n_query, a->width, a->n_key, (float)a->scale, dp, a->n_key, at(a->k, b, kv), a->k.position, 0,
         at(dq, b, h), dq.position);
    gemm(1, 0, a->n_key, a->width, a->n_query, (float)a->scale, dp, a->n_key, at(a->q, b, h), a->q.position, keep,
         at(dk, b, kv), dk.position);
  }
}
