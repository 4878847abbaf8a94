/* Scaled dot-product attention, forward and backward, in blocks of queries: work memory grows with the number of keys,
 * never with queries times keys. Float32, bfloat16 and float16; everything between operands and results is float32, but
 * for what oneDNN multiplies as bfloat16 (attention_halves.h).
 *
 *     S = scale Q K^T + mask    P = exp(S - lse)    O = P V
 *     dV = P^T dO    dP = dO V^T    D = rowsum(P * dP)    dS = P * (dP - D)    dQ = scale dS K    dK = scale dS^T Q
 *
 * Forward: a block of queries meets blocks of keys one after the other, with the running maximum and sum of each row
 * (Milakov and Gimelshein 2018; Rabe and Staats 2021; Dao et al. 2022, algorithm 1, and 2023, section 3.1: queries
 * outside, one division at the end). Backward: scores are computed again, for a block of queries and all of its keys
 * at once, so that maximum, sum and D are known without an output or a logsumexp that the forward would have to save:
 * five products, as with them. Keys after the last query of a block are not looked at when attention is causal.
 *
 * Scores lie transposed, keys by queries: what a row of the softmax needs is then a column, and 16 queries are one
 * vector in every step of it; operands are read where they lie, but for the block of queries, which is turned. */
#ifndef BC_ATTENTION_KERNELS_H
#define BC_ATTENTION_KERNELS_H

#include <aot/base.h>
#include <stdint.h>

typedef struct bc_rows { /* [leading ..][position][element], elements are contiguous */
  void *data;
  int64_t lead[AOT_MAX_RANK], position; /* strides in elements */
} bc_rows_t;

typedef struct bc_attention {
  int32_t dtype;  /* of queries, keys, values, outputs and their gradients */
  int32_t n_lead; /* leading dimensions of queries; the last is that of heads */
  int64_t lead[AOT_MAX_RANK];
  int64_t share; /* heads of queries that share one of keys and values */
  int64_t n_query, n_key, width, width_v;
  double scale;
  int causal; /* key j is seen by query i when j <= i */
  bc_rows_t q, k, v;
  const struct bc_attention_halves *halves; /* multiplies bfloat16 as it is; NULL: floats do (attention_halves.h) */
  int32_t lane;                             /* of `halves` */
  int *failed;                              /* set where it failed */
  const void *mask;                         /* NULL: none; strides are 0 where it is broadcast */
  int32_t mask_dtype;                       /* AOT_BOOL: nonzero is seen; others are added */
  int64_t mask_lead[AOT_MAX_RANK], mask_query, mask_key;
  const void *keep; /* of `dtype`, dense: 0 where a probability is dropped; NULL: none is */
  float keep_scale; /* of those that are not */
} bc_attention_t;

enum { BC_ATTENTION_KEYS = 128 }; /* of a block */

typedef struct bc_attention_block {
  int64_t head, first, rows, lanes; /* queries, and rounded up to vectors */
  int64_t seen;                     /* keys, of which none follows the last query where attention is causal */
  void *work;                       /* of `halves` */
} bc_attention_block_t;

/* Of one head; in the backward there may be fewer queries in each. */
int64_t bc_attention_n_blocks(const bc_attention_t *a, int is_backward);
bc_attention_block_t bc_attention_block(const bc_attention_t *a, int is_backward, int64_t head, int64_t index);

/* Blocks of queries, of all heads; each is computed by itself. */
int64_t bc_attention_blocks(const bc_attention_t *a);
uint64_t bc_attention_forward_work(const bc_attention_t *a); /* floats */
/* Blocks [begin, end). lse: [leading ..][query], log of the sum of exponentials; NULL: not wanted. */
void bc_attention_forward(const bc_attention_t *a, bc_rows_t o, float *lse, int64_t begin, int64_t end, float *work);

/* Heads of keys: the gradients of one are a sum over all queries that see them. Where there are fewer heads than
 * threads, a head's queries are dealt to parts, each with a sum of its own. */
int64_t bc_attention_key_heads(const bc_attention_t *a);
int64_t bc_attention_parts(const bc_attention_t *a, int64_t n_threads); /* of a head of keys */
uint64_t bc_attention_backward_work(const bc_attention_t *a);           /* floats */
uint64_t bc_attention_sums(const bc_attention_t *a);                    /* floats that hold a part's dK and dV */
/* Part `part` of n_parts of one head of keys: rows of dq are written, sums overwritten. */
void bc_attention_backward(const bc_attention_t *a, bc_rows_t go, bc_rows_t dq, int64_t key_head, int64_t part,
                           int64_t n_parts, float *sums, float *work);
/* Adds the sums of a head's parts, in order, into the first, and writes the rows of dk and dv. */
void bc_attention_finish(const bc_attention_t *a, bc_rows_t dk, bc_rows_t dv, int64_t key_head, int64_t n_parts,
                         float *sums);

#endif
