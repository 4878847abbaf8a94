/* Deformable convolution: a convolution whose every sampling point is moved by a learned offset and weighted by a
 * learned mask. References: Dai et al., "Deformable Convolutional Networks" (2017); Zhu et al., "Deformable ConvNets
 * v2" (2018). O(batch x output elements x kernel x channels of a group). */
#ifndef TV_DEFORM_CONV_H
#define TV_DEFORM_CONV_H

#include <stdint.h>

/* Dense tensors: input [batch, channels, height, width], weight [filters, channels / groups, kernel_y, kernel_x],
 * offset [batch, 2 * offset_groups * kernel, out_y, out_x] with y before x, mask [batch, offset_groups * kernel, out_y,
 * out_x], bias [filters], output [batch, filters, out_y, out_x]. */
typedef struct tv_deform {
  int64_t batch, channels, height, width, filters, kernel_y, kernel_x, out_y, out_x;
  int64_t stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, groups, offset_groups;
  const double *input, *weight, *offset, *mask, *bias; /* mask NULL: all 1 */
} tv_deform_t;

void tv_deform_conv(const tv_deform_t *d, double *output);

/* Gradients of zeros at first; mask may be NULL. */
typedef struct tv_deform_gradients {
  double *input, *weight, *offset, *mask, *bias;
} tv_deform_gradients_t;
void tv_deform_conv_backward(const tv_deform_t *d, const double *output_gradient, const tv_deform_gradients_t *g);

#endif
