/* Convolutions as CUDA C of their own, for what cuDNN does not take: every type and layout, slower. A thread makes an
 * element of an image; a block an element of the weights, whose sums are long. Fixed order, so that every
 * run gives the same. */
#ifndef GC_DIRECT_CONV_H
#define GC_DIRECT_CONV_H

#include "cudnn/conv_graphs.h"

typedef struct gc_conv_kernel {
  gc_conv_t conv; /* of float64, too */
  int32_t kind;   /* GC_DNN_CONV_FORWARD, .. */
} gc_conv_kernel_t;

/* Its pointers are X, W, Y. */
void gc_print_conv(const void *self, const char *name, lp_text_t *out);
double gc_conv_flops(const gc_conv_kernel_t *c);
void gc_conv_launch(const gc_conv_kernel_t *c, uint32_t *out_blocks, uint32_t *out_threads);

#endif
