/* Primitives of oneDNN on operands that lie as the caller says, with the conversions of layout that they need around
 * them. A kernel is made for one shape, once, and run in any number of lanes at the same time, one thread a lane.
 *
 * NULL instead of a kernel: the library is not there, or what it has for this shape is not worth calling (a reference
 * implementation, or im2col with a product, which conv_kernels.c does, too). */
#ifndef BC_ONEDNN_KERNELS_H
#define BC_ONEDNN_KERNELS_H

#include "blas.h"
#include "conv_kernels.h"
#include <stddef.h>

typedef struct bc_dnn bc_dnn_t;

/* c = alpha * a @ b + beta * c, or a @ b + bias, summed in float and rounded once. dtype: AOT_F32, AOT_BF16; batch
 * dimensions are the caller's. Operands: a, b, c, bias. */
bc_dnn_t *bc_dnn_product(const bc_product_t *p, int32_t n_lanes);

/* The same for halves in a cache, with c in float; NULL also where the processor does not multiply bfloat16. */
bc_dnn_t *bc_dnn_tile_product(const bc_product_t *p, int32_t n_lanes);

/* A convolution, or a part of one: some images, some channels. Strides in elements: image or output channel first, then
 * channel, depth, height, width. */
typedef struct bc_dnn_conv {
  bc_conv_t conv;
  int32_t dtype, has_bias; /* AOT_F32, AOT_BF16 */
  int64_t x_strides[2 + BC_CONV_RANK], w_strides[2 + BC_CONV_RANK], y_strides[2 + BC_CONV_RANK];
} bc_dnn_conv_t;

/* y from x, w and bias; the gradient x from w and the gradient y; the gradient w from x and the gradient y. Operands:
 * x, w, bias, y. */
enum { BC_CONV_FORWARD, BC_CONV_DATA, BC_CONV_WEIGHTS };
bc_dnn_t *bc_dnn_conv(const bc_dnn_conv_t *c, int what, int32_t n_lanes);

/* operands: in the order of the function that made the kernel; work: bc_dnn_work bytes of the lane's own, aligned to 64
 */
uint64_t bc_dnn_work(const bc_dnn_t *k);
int bc_dnn_run(const bc_dnn_t *k, int32_t lane, void *const *operands, void *work); /* 0: done */
void bc_dnn_destroy(void *k);                                                       /* NULL is fine */

/* For people: the release and its vectors, or why there is none. */
void bc_dnn_describe(char *out, size_t size);

#endif
