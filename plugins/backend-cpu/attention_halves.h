/* The products of attention's blocks in bfloat16 by oneDNN, summed in float: keys and values in its layout, a kernel
 * for every size of blocks that comes up. */
#ifndef BC_ATTENTION_HALVES_H
#define BC_ATTENTION_HALVES_H

#include "attention_blocks.h"

/* n keys and a block of queries, which lies by rows and turned; a tile of scores or of their gradients is keys x
 * lanes. */
enum {
  BC_SCORES,          /* tile = scale keys turned queries */
  BC_SCORE_GRADIENTS, /* tile = values turned gradients */
  BC_OUTPUTS,         /* += tile^T values */
  BC_QUERY_GRADIENTS, /* += scale tile^T keys */
  BC_KEY_GRADIENTS,   /* += scale tile queries */
  BC_VALUE_GRADIENTS, /* += tile gradients */
  BC_ATTENTION_PRODUCTS,
};

typedef struct bc_attention_halves bc_attention_halves_t;

/* NULL: not bfloat16, oneDNN or the processor does not multiply it, or blocks so small that calls would be what
 * costs. */
bc_attention_halves_t *bc_attention_halves_create(const bc_attention_t *a, int is_backward, int32_t n_lanes);
void bc_attention_halves_destroy(void *halves); /* NULL is fine */

uint64_t bc_attention_halves_work(const bc_attention_halves_t *h); /* bytes a lane, aligned to 64 */
/* Operands: both factors, the result. 0: done. */
int bc_attention_halves_run(const bc_attention_halves_t *h, int what, int64_t n, int64_t rows, int32_t lane,
                            void *const *operands, void *work);

#endif
