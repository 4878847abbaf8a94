/* Sums over ranks of what was cast for the sum: what was cast is exchanged, and each rank adds up its part.
 *
 *     %w = _to_copy %g, f32                        %x = aot.all_to_all %g           piece r of rank q's to rank r
 *     %s = reduce_scatter_tensor %w, "sum"   ->    %y = wait_tensor %x
 *     %p = wait_tensor %s                          %p = f32 of %y's piece 0 + f32 of piece 1 + ..
 *
 * The same numbers, added up in the order of ranks. Of gradients in bfloat16 half the bytes go over the links, the cast
 * and its memory are gone, and the sum is a part of the loop that reads it. What is exchanged is only moved: where a
 * communicator has that done by copy engines, it takes nothing from kernels. */
#ifndef OV_EXCHANGE_H
#define OV_EXCHANGE_H

#include "kit/emit/emit.h"

/* Pieces that are added up one by one. Among more ranks a piece is small, and a ring's messages are larger. */
enum { OV_MOST_PIECES = 16 };

/* In e's graph, of what has at least so many bytes, whole: smaller ones take what a message takes. Adds to *io_n how
 * many. */
aot_status_t ov_exchange(em_t *e, uint64_t least_nbytes, uint32_t *io_n);

#endif
