/* Attention that is to be computed, and the blocks of queries in which it is: attention_kernels.h says how. */
#ifndef BC_ATTENTION_BLOCKS_H
#define BC_ATTENTION_BLOCKS_H

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

enum { BC_ATTENTION_QUERIES = 128, BC_ATTENTION_KEYS = 128 }; /* of a block, at most */

typedef struct bc_attention_block {
  int64_t head, first, rows, lanes; /* queries, and rounded up to vectors */
  int64_t seen;                     /* keys, of which none follows the last query where attention is causal */
  void *work;                       /* of `halves` */
} bc_attention_block_t;

/* Of a block, rounded up to vectors. */
int64_t bc_attention_queries(const bc_attention_t *a, int is_backward);
/* Of one head; in the backward there may be fewer queries in each. */
int64_t bc_attention_n_blocks(const bc_attention_t *a, int is_backward);
bc_attention_block_t bc_attention_block(const bc_attention_t *a, int is_backward, int64_t head, int64_t index);

/* Blocks of queries, of all heads; each is computed by itself. */
int64_t bc_attention_blocks(const bc_attention_t *a);
int64_t bc_attention_heads(const bc_attention_t *a); /* of queries */

#endif
