/* Convolution over two dimensions of contiguous float32 by im2col and a BLAS, forward and backward.
 *
 * For one image and one group: columns[c * kh * kw][oh * ow] holds under every output position the inputs that its
 * window covers (zeros in the padding); then out = W columns, gW += gout columns^T, gcolumns = W^T gout, and col2im
 * adds gcolumns back. A 1x1 window with stride 1 and no padding reads the input as its own columns. One dimension is a
 * height of 1. (Chellapilla, Puri, Simard 2006.) */
#ifndef BC_CONV_KERNELS_H
#define BC_CONV_KERNELS_H

#include <stdint.h>

typedef struct bc_conv {
  int64_t n_batch, groups, c_in, c_out;                             /* channels of all groups */
  int64_t in[2], out[2], kernel[2], stride[2], pad[2], dilation[2]; /* height, width */
} bc_conv_t;

uint64_t bc_conv_work(const bc_conv_t *c); /* floats */
/* y[n, c_out, oh, ow]; b may be NULL */
void bc_conv_forward(const bc_conv_t *c, const float *x, const float *w, const float *b, float *y, float *work);
/* gx, gw may be NULL; they are overwritten. */
void bc_conv_backward(const bc_conv_t *c, const float *gy, const float *x, const float *w, float *gx, float *gw,
                      float *work);

#endif
