/* Kernels over rows of contiguous float32 that loops do not have: the derivative of layer norm, cross entropy, gradient
 * of embedding. Rows are the leading dimensions folded into one. Sums accumulate in double where a row is long enough for
 * float to lose digits. NULL
 * stands for an absent optional tensor. Formulas: the closed forms of PyTorch's ATen kernels. */
#ifndef BC_ROW_KERNELS_H
#define BC_ROW_KERNELS_H

#include <stdint.h>

/* Of layer norm, y = (x - mean) * rstd * w + b. gi, gw, gb may be NULL. mean and rstd NULL: computed again from x. */
void bc_layer_norm_backward(const float *go, const float *x, const float *w, const float *mean, const float *rstd,
                            int64_t rows, int64_t n, double eps, float *gi, float *gw, float *gb);

/* Mean (reduction 1) or sum (2) over rows of -log softmax(x)[target], rows with target == ignore left out. Returns the
 * first row whose target is out of range, or -1. */
int64_t bc_cross_entropy(const float *x, const int64_t *target, int64_t rows, int64_t n, int32_t reduction,
                         int64_t ignore, float *out);
/* gi = (softmax(x) - onehot(target)) * g (/ kept rows for the mean). Targets are in range. */
void bc_cross_entropy_backward(float g, const float *x, const int64_t *target, int64_t rows, int64_t n,
                               int32_t reduction, int64_t ignore, float *gi);

/* g_table (zeroed here) += go[r] at index[r]; rows with index == padding are skipped (padding < 0: none). Returns the
 * first r whose index is out of range, or -1. */
int64_t bc_embedding_backward(const float *go, const int64_t *index, int64_t rows, int64_t n_table, int64_t width,
                              int64_t padding, float *g_table);

#endif
