/* Masks of attention for cuDNN, as CUDA C: what is added to scores, and rows that see no key.
 *
 * A hidden key's score gets a large negative number, not -inf, so that a row without any key has numbers, and not NaN.
 * Such a row's output is zeros, as PyTorch has it, and its log sum of exponentials is set so high that its
 * probabilities, made again for the gradients, are 0. A row whose scores all drown in finite numbers is the mean of the
 * values of those keys; its probabilities come out as 1 then, and the gradient that enters is divided by their number
 * instead. */
#ifndef GC_MASK_KERNELS_H
#define GC_MASK_KERNELS_H

#include "kit/loops/loop.h"

enum { GC_MASK_BIAS = 1, GC_MASK_HIDE, GC_MASK_WEIGH };
typedef struct gc_mask_kernel {
  int32_t kind;
  int32_t dtype;             /* of the mask; of what is written or read otherwise */
  int32_t bias_dtype;        /* BIAS */
  int64_t sizes[4];          /* BIAS: of the bias, [batch, head, query, key]; else of the output */
  int64_t strides[4];        /* of the mask; of the output or its gradient */
  int64_t of_batch, of_head; /* HIDE, WEIGH: sizes of the mask, which the output's broadcast from */
} gc_mask_kernel_t;

/* Pointers of
 *     BIAS    mask, bias, weights: a float for each of the bias's rows, 0: it sees nothing, 1, or 1 / keys that share
 *     it HIDE    weights, output, log sums: of rows of weight 0
 *     WEIGH   weights, gradient, result: each row times its weight; dense */
enum { GC_MASK_N_POINTERS = 3 };
void gc_print_mask(const void *self, const char *name, lp_text_t *out);
void gc_mask_launch(const gc_mask_kernel_t *m, uint32_t *out_blocks, uint32_t *out_threads);

#endif
