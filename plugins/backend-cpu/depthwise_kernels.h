/* The gradient of a depthwise convolution towards its weights, in float32: each channel has a window of its own, so
 * that there is no product of matrices in it. The weights are contiguous. */
#ifndef BC_DEPTHWISE_KERNELS_H
#define BC_DEPTHWISE_KERNELS_H

#include "conv_kernels.h"

uint64_t bc_depthwise_work(const bc_conv_t *c); /* bytes */
/* Of channels [begin, end) of contiguous images; groups, c_in and c_out are one number. */
void bc_depthwise_weights(const bc_conv_t *c, const float *gy, const float *x, float *gw, int64_t begin, int64_t end,
                          void *work);

/* Of images [n, height, width, channels], which lie channels last; of blocks [begin, end) of channels. */
int64_t bc_depthwise_blocks(const bc_conv_t *c);
uint64_t bc_depthwise_last_work(const bc_conv_t *c); /* bytes */
void bc_depthwise_weights_last(const bc_conv_t *c, const float *gy, const float *x, float *gw, int64_t begin,
                               int64_t end, void *work);

#endif
