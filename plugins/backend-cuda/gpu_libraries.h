/* The libraries of a program, opened side by side: each takes some ten to hundred ms to map and to start. */
#ifndef GC_GPU_LIBRARIES_H
#define GC_GPU_LIBRARIES_H

#include "kit/cuda/nvrtc.h"
#include "cublaslt.h"
#include "cuda_device.h"
#include "cudnn/cudnn.h"

typedef struct gc_libraries {
  nv_nvrtc_t *nvrtc;
  gc_cublaslt_t *cublaslt;
  gc_cudnn_t *cudnn;        /* NULL: the program has nothing for it */
  const char *nvrtc_folder; /* NULL: where the loader looks */
} gc_libraries_t;

/* The device may still be opening its context: what needs none continues in addition to that. 0, or -1: code and why
 * say which of the two that are needed is missing; code "told": there is no context. cuDNN is ready or not
 * (gc_cudnn_ready). */
int gc_libraries_open(const gc_libraries_t *l, gc_device_t *device, aot_ctx_t *ctx, const char **out_code, char *why,
                      size_t size);

#endif
