/* Convolution over three dimensions of contiguous float32 or float64 by im2col and a BLAS, in its three directions.
 *
 * For one image and one group: columns[c * kd * kh * kw][od * oh * ow] holds under every output position the inputs
 * that its window covers (zeros in the padding); then out = W columns, gW += gout columns^T, gcolumns = W^T gout, and
 * col2im adds gcolumns back. A window of one element with stride 1 and no padding reads the input as its own columns.
 * Two dimensions are a depth of 1, one a height of 1, too. (Chellapilla, Puri, Simard 2006.) */
#ifndef BC_CONV_KERNELS_H
#define BC_CONV_KERNELS_H

#include <stdint.h>

enum { BC_DEPTH, BC_HEIGHT, BC_WIDTH, BC_CONV_RANK };

typedef struct bc_conv {
  int64_t n_batch, groups, c_in, c_out; /* channels of all groups */
  int64_t in[BC_CONV_RANK], out[BC_CONV_RANK], kernel[BC_CONV_RANK], stride[BC_CONV_RANK], pad[BC_CONV_RANK],
      dilation[BC_CONV_RANK];
} bc_conv_t;

/* Elements of an image in one channel, of a result, of the window; and whether there are two dimensions alone. */
static inline int64_t bc_conv_volume(const int64_t n[BC_CONV_RANK]) { return n[BC_DEPTH] * n[BC_HEIGHT] * n[BC_WIDTH]; }
static inline int64_t bc_conv_inputs(const bc_conv_t *c) { return bc_conv_volume(c->in); }
static inline int64_t bc_conv_positions(const bc_conv_t *c) { return bc_conv_volume(c->out); }
static inline int64_t bc_conv_window(const bc_conv_t *c) { return bc_conv_volume(c->kernel); }
static inline int bc_conv_is_flat(const bc_conv_t *c) {
  return c->in[BC_DEPTH] == 1 && c->out[BC_DEPTH] == 1 && c->kernel[BC_DEPTH] == 1 && c->pad[BC_DEPTH] == 0;
}

uint64_t bc_conv_work(const bc_conv_t *c); /* elements */
/* dtype: AOT_F32 or AOT_F64, of all operands. y[n, c_out, od, oh, ow]; bias: of c_out, may be NULL. */
void bc_conv_forward(int32_t dtype, const bc_conv_t *c, const void *x, const void *w, const void *bias, void *y,
                     void *work);
/* The gradient towards the input; bias: of c_in, added to it, may be NULL (a transposed convolution has one). */
void bc_conv_data(int32_t dtype, const bc_conv_t *c, const void *gy, const void *w, const void *bias, void *gx,
                  void *work);
void bc_conv_weights(int32_t dtype, const bc_conv_t *c, const void *gy, const void *x, void *gw, void *work);

#endif
