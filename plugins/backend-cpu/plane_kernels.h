/* Kernels over planes of contiguous float32 [image][channel][position]: biases, batch norm in training, pooling. */
#ifndef BC_PLANE_KERNELS_H
#define BC_PLANE_KERNELS_H

#include <stdint.h>

typedef struct bc_planes {
  int64_t n_batch, n_channel, n_position;
} bc_planes_t;

/* What goes by channels takes those of [begin, end); what goes by planes takes as many from the pointers on. */

/* A bias to each channel, and its gradient, the sum over the channel. */
void bc_add_bias(bc_planes_t s, float *y, const float *bias, int64_t begin, int64_t end);
void bc_bias_gradient(bc_planes_t s, const float *gy, float *gb, int64_t begin, int64_t end);
void bc_bias_gradient_f64(bc_planes_t s, const double *gy, double *gb, int64_t begin, int64_t end);

/* y = (x - mean) * rstd * w + b by the statistics of each channel; w, b may be NULL. mean, rstd: the batch's. With
 * running statistics (not NULL) new_mean and new_var = (1 - momentum) * running + momentum * batch, the variance
 * unbiased. */
typedef struct bc_batch_norm {
  const float *x, *w, *b, *running_mean, *running_var;
  double momentum, eps;
  float *y, *mean, *rstd, *new_mean, *new_var;
} bc_batch_norm_t;
void bc_batch_norm_train(bc_planes_t s, const bc_batch_norm_t *a, int64_t begin, int64_t end);
/* gx, gw, gb may be NULL. gx = w * rstd * (gy - mean(gy) - xh * mean(gy * xh)), xh = (x - mean) * rstd */
typedef struct bc_batch_norm_gradient {
  const float *gy, *x, *w, *mean, *rstd;
  float *gx, *gw, *gb;
} bc_batch_norm_gradient_t;
void bc_batch_norm_backward(bc_planes_t s, const bc_batch_norm_gradient_t *a, int64_t begin, int64_t end);

/* height, width */
typedef struct bc_pool2d {
  int64_t in[2], out[2], kernel[2], stride[2], pad[2], dilation[2];
} bc_pool2d_t;
/* index: where each maximum is in its input plane; the first of equals. y or index may be NULL. */
void bc_max_pool(int64_t n_planes, const bc_pool2d_t *p, const float *x, float *y, int64_t *index);
/* gx is overwritten. index NULL: the maxima are found again in x. */
void bc_max_pool_backward(int64_t n_planes, const bc_pool2d_t *p, const float *gy, const float *x, const int64_t *index,
                          float *gx);

/* The windows of an average along one dimension, by output: inputs [begin, end), and how many count in the divisor. */
typedef struct bc_window {
  int64_t begin, end, count;
} bc_window_t;
typedef struct bc_average {
  int64_t in[2], out[2];
  const bc_window_t *windows[2];
  double divisor; /* 0: the counts of both dimensions, multiplied */
} bc_average_t;
void bc_average_pool(int64_t n_planes, const bc_average_t *p, const float *x, float *y);
void bc_average_pool_backward(int64_t n_planes, const bc_average_t *p, const float *gy, float *gx);

#endif
