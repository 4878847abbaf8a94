/* What kernels of matrices of halves are written with (attention_text.h): tensor cores, by warps, on capability 8.0 and
 * later. PTX ISA, "Warp-level matrix instructions": mma.m16n8k16, ldmatrix. On the CPU kit/cuda stands for it.
 *
 *     lp_product_bf16(d, a, b)     d (16 x 8, float) += a (16 x 16) b (16 x 8)
 *     lp_load_matrices(to, at)     four of 8 x 8; thread 8 k + i of a warp says where row i of matrix k lies
 *     lp_load_turned(to, at)       the same, transposed
 *     lp_two_bf16(low, high)       two floats rounded, in a word
 *     lp_copy_tile(..)             rows of a matrix to shared memory, behind the thread's back
 *
 * In shared memory a row's pieces of 16 bytes stand in an order of its own, piece ^ row % 8, so that eight rows of one
 * piece lie in different banks: lp_piece_at. */
#ifndef GC_MATRIX_TEXT_H
#define GC_MATRIX_TEXT_H

#include "kit/loops/loop.h"

/* Before the first kernel that needs it; once more does no harm. */
void gc_print_matrices(lp_text_t *out);

#endif
