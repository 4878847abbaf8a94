/* Reductions in the order of ranks: element by element, rank 0 first, so that the bits do not depend on who computes
 * them or on what arrived first. Elements of f16 and bf16 are added up in f32 and rounded once. */
#ifndef PLUGINS_COMMON_RANKS_REDUCE_H
#define PLUGINS_COMMON_RANKS_REDUCE_H

#include <stdint.h>

int rn_can_reduce(int32_t dtype, int32_t reduce); /* is there a reduction of that kind for these elements? */
/* In addition to AOT_REDUCE_MAX or AOT_REDUCE_MIN: of the elements that are not NaN (AOT_COMMUNICATOR_DROPS_NAN). */
#define RN_DROPS_NAN 256
/* The reduction of a communicator with these flags. */
int32_t rn_reduction(int32_t reduce, uint64_t communicator_flags);
/* n elements of `out` from n_ranks arrays; `out` may be one of them. */
void rn_reduce(int32_t dtype, int32_t reduce, uint32_t n_ranks, const void *const *in, void *out, uint64_t n);

#endif
