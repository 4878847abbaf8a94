#ifndef GC_GPU_CONV_H
#define GC_GPU_CONV_H

#include "gpu_target.h"

extern const lw_lowering_table_t gc_lowerings_conv;

/* Of images and weights. */
int gc_is_channels_last(const lw_tensor_t *t);
lw_tensor_t gc_laid_out(const lw_tensor_t *t, int channels_last); /* anew, without holes; without memory */

#endif
