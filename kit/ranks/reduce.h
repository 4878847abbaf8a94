/* Reductions in the order of ranks: element by element, rank 0 first, so that the bits do not depend on who computes
 * them or on what arrived first. Elements of f16 and bf16 are added up in f32 and rounded once. */
#ifndef PLUGINS_COMMON_RANKS_REDUCE_H
#define PLUGINS_COMMON_RANKS_REDUCE_H

#include <stdint.h>

int rn_can_reduce(int32_t dtype, int32_t reduce); /* is there a reduction of that kind for these elements? */
/* n elements of `out` from n_ranks arrays; `out` may be one of them. */
void rn_reduce(int32_t dtype, int32_t reduce, uint32_t n_ranks, const void *const *in, void *out, uint64_t n);

#endif
