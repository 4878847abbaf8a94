#include "attention_kernels.h"

#include "row_kernels.h"
#include "common/blas/openblas.h"
#include <math.h>
#include <string.h>

uint64_t bc_attention_work(const bc_attention_t *a) { return 2 * (uint64_t)a->n_query * (uint64_t)a->n_key; }

/* Rows of `width` floats, `stride` apart. */
typedef struct matrix {
  float *data;
  int64_t rows, width, stride;
} matrix_t;

static matrix_t head_of(bc_rows_t r, int64_t batch, int64_t head, int64_t rows, int64_t width) {
  return (matrix_t){r.data + batch * r.batch + head * r.head, rows, width, r.position};
}

#define OF 0
#define TRANSPOSED 1

/* c = alpha op(a) op(b) + beta c; empty products leave beta c. */
static void multiply(float alpha, int op_a, matrix_t a, int op_b, matrix_t b, float beta, matrix_t c) {
  const int64_t inner = op_a == TRANSPOSED ? a.rows : a.width;
  if (c.rows == 0 || c.width == 0) return;
  bl_library()->cblas_sgemm(CblasRowMajor, op_a == TRANSPOSED ? CblasTrans : CblasNoTrans,
                            op_b == TRANSPOSED ? CblasTrans : CblasNoTrans, (int)c.rows, (int)c.width, (int)inner,
                            alpha, a.data, (int)(a.stride > 0 ? a.stride : 1), b.data,
                            (int)(b.stride > 0 ? b.stride : 1), beta, c.data, (int)(c.stride > 0 ? c.stride : 1));
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
    const int64_t seen = a->causal && i + 1 < a->n_key ? i + 1 : a->n_key;
    memset(row + seen, 0, (size_t)(a->n_key - seen) * sizeof *row);
    bc_safe_softmax(row, 1, seen, row);
  }
}

/* P = softmax(scale Q K^T + mask) */
static void probabilities(const bc_attention_t *a, int64_t batch, int64_t head, matrix_t q, matrix_t k, matrix_t p) {
  multiply((float)a->scale, OF, q, TRANSPOSED, k, 0, p);
  if (a->mask || a->bool_mask) add_mask(a, batch, head, p.data);
  softmax_rows(a, p.data);
}

void bc_attention_forward(const bc_attention_t *a, bc_rows_t o, int64_t begin, int64_t end, float *work) {
  const int64_t share = a->n_head / a->n_head_kv;
  const matrix_t p = {work, a->n_query, a->n_key, a->n_key};
  for (int64_t unit = begin * share; unit < end * share; unit++) {
    const int64_t b = unit / a->n_head, h = unit % a->n_head, kv = h / share;
    probabilities(a, b, h, head_of(a->q, b, h, a->n_query, a->width), head_of(a->k, b, kv, a->n_key, a->width), p);
    multiply(1, OF, p, OF, head_of(a->v, b, kv, a->n_key, a->width_v), 0, head_of(o, b, h, a->n_query, a->width_v));
  }
}

/* ds in place of dp: p * (dp - rowsum(p * dp)) */
static void softmax_gradient(const bc_attention_t *a, const float *p, float *dp) {
  bc_softmax_backward(dp, p, a->n_query, a->n_key, dp);
}

void bc_attention_backward(const bc_attention_t *a, bc_rows_t go, bc_rows_t dq, bc_rows_t dk, bc_rows_t dv,
                           int64_t begin, int64_t end, float *work) {
  const int64_t share = a->n_head / a->n_head_kv, n_query = a->n_query, n_key = a->n_key;
  const matrix_t p = {work, n_query, n_key, n_key}, dp = {work + n_query * n_key, n_query, n_key, n_key};
  for (int64_t unit = begin * share; unit < end * share; unit++) {
    const int64_t b = unit / a->n_head, h = unit % a->n_head, kv = h / share;
    const float keep = h % share ? 1.0f : 0.0f; /* the first query head of a shared one overwrites, the others add */
    const matrix_t q = head_of(a->q, b, h, n_query, a->width), k = head_of(a->k, b, kv, n_key, a->width);
    const matrix_t out = head_of(go, b, h, n_query, a->width_v);
    probabilities(a, b, h, q, k, p);
    multiply(1, TRANSPOSED, p, OF, out, keep, head_of(dv, b, kv, n_key, a->width_v));
    multiply(1, OF, out, TRANSPOSED, head_of(a->v, b, kv, n_key, a->width_v), 0, dp);
    softmax_gradient(a, p.data, dp.data); /* dS in the place of dP */
    multiply((float)a->scale, OF, dp, OF, k, 0, head_of(dq, b, h, n_query, a->width));
    multiply((float)a->scale, TRANSPOSED, dp, OF, q, keep, head_of(dk, b, kv, n_key, a->width));
  }
}
