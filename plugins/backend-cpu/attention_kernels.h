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

#include "attention_blocks.h"

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
