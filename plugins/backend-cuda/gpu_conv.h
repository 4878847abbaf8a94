#ifndef GC_GPU_CONV_H
#define GC_GPU_CONV_H

#include "gpu_target.h"

extern const lw_lowering_table_t gc_lowerings_conv;

#endif
