/* The kernels as the host sees them (aot/ext/kernels.h), one an operator. */
#ifndef TV_KERNELS_H
#define TV_KERNELS_H

#include <aot/ext/kernels.h>

extern const aot_ext_kernels_t tv_kernels;

#endif
