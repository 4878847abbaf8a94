/* Scaled dot-product attention of float32, forward and backward, one (batch, head) at a time through a BLAS.
 *
 * The element dimension is contiguous; queries, keys, values and outputs may have any stride between positions, so the
 * usual transposed views of one projection need no copy. Probabilities are computed again in the backward: nothing is
 * saved but the inputs. Work memory: bc_attention_work floats. Formulas: P = softmax(scale Q K^T + mask), O = P V; dV =
 * P^T dO, dS = P * (dO V^T - rowsum(dO * O)), dQ = scale dS K, dK = scale dS^T Q (rowsum(dO * O) = rowsum(P * dO
 * V^T)). */
#ifndef BC_ATTENTION_KERNELS_H
#define BC_ATTENTION_KERNELS_H

#include <stdint.h>

typedef struct bc_rows { /* [batch][head][position][element], element stride 1 */
  float *data;
  int64_t batch, head, position; /* strides in elements */
} bc_rows_t;

typedef struct bc_attention {
  int64_t n_batch, n_head, n_head_kv, n_query, n_key, width, width_v;
  double scale;
  int causal;               /* key j is seen by query i when j <= i */
  const float *mask;        /* added; strides below, 0 where broadcast; NULL: none */
  const uint8_t *bool_mask; /* nonzero: seen; same strides; NULL: none */
  int64_t mask_batch, mask_head, mask_query, mask_key;
  bc_rows_t q, k, v;
} bc_attention_t;

uint64_t bc_attention_work(const bc_attention_t *a); /* floats */
/* Units [begin, end) of n_batch * n_head_kv: a head of keys with the query heads that share it. Units are
 * independent. */
void bc_attention_forward(const bc_attention_t *a, bc_rows_t o, int64_t begin, int64_t end, float *work);
/* dq, dk, dv are overwritten. Heads of keys and values that several query heads share get the sum. */
void bc_attention_backward(const bc_attention_t *a, bc_rows_t go, bc_rows_t dq, bc_rows_t dk, bc_rows_t dv,
                           int64_t begin, int64_t end, float *work);

#endif
