/* Steps that launch a hand-written kernel (direct_conv.h, mask_kernels.h): text printed for one call, pointers as
 * arguments. */
#ifndef GC_NVRTC_KERNEL_H
#define GC_NVRTC_KERNEL_H

#include "gpu_target.h"

enum { GC_OWN_MOST_POINTERS = 9 };

typedef struct gc_own_kernel {
  const char *kind; /* static; what profiles and errors call the step */
  gc_print_fn print;
  const void *self; /* of print; not stored */
  uint32_t blocks, threads;
  uint32_t shared;          /* bytes of shared memory that it requests */
  uint32_t writes, updates; /* which of the tensors, as bits; it reads all others */
  const int64_t *number;    /* after the pointers; NULL: none; not stored */
} gc_own_kernel_t;

/* Adds the step; a tensor without storage is a NULL pointer there. AOT_E_EXHAUSTED: no memory. */
aot_status_t gc_add_own_kernel(lw_build_t *b, const gc_own_kernel_t *kernel, const lw_tensor_t *const *tensors, int n);

#endif
