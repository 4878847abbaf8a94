/* How images and weights of convolutions lie: channels first, before all places (PyTorch's contiguous memory format),
 * or last, after them (torch.channels_last). */
#ifndef GC_CONV_LAYOUT_H
#define GC_CONV_LAYOUT_H

#include "kit/lowering/lower.h"

int gc_is_channels_last(const lw_tensor_t *t);
lw_tensor_t gc_laid_out(const lw_tensor_t *t, int channels_last); /* again, without holes; without memory */
/* Strides of dimensions of size 1 say nothing, and cuDNN reads a layout out of them: as if it lay without holes. */
void gc_tidy_strides(const int64_t *sizes, int64_t *strides, int32_t rank, int is_channels_last);
/* 1: images outermost, channels first or last. What is in another order cuDNN 9.14 takes, and computes something
 * else: images that are [time, batch, channel] in memory. */
int gc_is_first_or_last(const int64_t *sizes, const int64_t *strides, int32_t rank);

#endif
