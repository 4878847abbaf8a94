/* A convolution by oneDNN, divided among the team by images or channels; weights' gradients by channels. */
#ifndef BC_PARALLEL_CONV_H
#define BC_PARALLEL_CONV_H

#include "onednn_kernels.h"
#include "target.h"

/* How it is divided, with a kernel for every shape that comes up; pool memory. */
typedef struct bc_conv_division bc_conv_division_t;

/* what: BC_CONV_FORWARD, .. *out NULL: oneDNN is not there, or not the faster one. */
aot_status_t bc_divide_conv(lw_build_t *b, const bc_dnn_conv_t *c, int what, const bc_conv_division_t **out);
/* operands: x, w, bias (no storage: none), y; they lie as the strides said; result: which of them is written */
aot_status_t bc_add_divided_conv(lw_build_t *b, const bc_conv_division_t *d, const lw_tensor_t operands[4], int result);

#endif
