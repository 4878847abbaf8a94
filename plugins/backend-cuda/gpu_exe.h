/* A program on a GPU: graphs lowered for the sizes and the memory of each bound call, kernels compiled, and the whole
 * call captured as one CUDA graph the first time that it is submitted. */
#ifndef GC_GPU_EXE_H
#define GC_GPU_EXE_H

#include "common/custom/custom.h"
#include "common/lowering/schedule.h"
#include "cuda_device.h"
#include "gpu_profile.h"
#include "gpu_target.h"
#include <aot/backend.h>

typedef struct gc_exe {
  aot_exe_t table;
  aot_host_t host;
  gc_device_t *device;
  const aot_snapshot_t *s;
  void *own; /* copy of bytes that came unaligned */
  cu_program_t custom;
  nv_nvrtc_t nvrtc;
  gc_cublaslt_t cublaslt;
  gc_cudnn_t cudnn;
  int wants_cudnn; /* it is there, and the program may have something for it */
  gc_code_t code;
  gc_algorithms_t algorithms;
  lp_gpu_machine_t machine;
  nc_rates_t limits;
  int is_synchronous; /* AOT_CUDA_SYNC: a step at a time, each waited for */
  aot_ext_profile_t profile;
  int is_profiled;                            /* a step at a time, each timed */
  struct aot_bound *bound;                    /* a list, of those that are profiled */
  gc_rows_t past, rows;                       /* of calls that are gone; of all, as they were read last */
  struct aot_bound *planned;                  /* lowered by the last plan, for the bind that follows */
  double libraries_ms, lowering_ms, plans_ms; /* of the start; lowering: with plans that are read and algorithms */
  uint64_t arena_nbytes, live_nbytes, n_runs, copied_nbytes;
  uint32_t n_steps, n_fallback, n_groups, n_products, n_dnn;
  uint64_t loop_nbytes; /* that generated loops read and write */
  uint32_t *n_counted;  /* the same of the lowering that was last */
  uint32_t *n_on_host;  /* by operator of the snapshot: nodes that run there, of all that has been lowered */
} gc_exe_t;

/* AOT_CUDNN: the one folder to take cuDNN from; NULL: not set. */
const char *gc_cudnn_folder(const aot_host_t *host, aot_ctx_t *ctx);
/* s is borrowed; own is the executable's from here on. are_timed: algorithms of products (product_algorithms.h).
 * Failures are told. [host-main] */
aot_status_t gc_exe_create(const aot_host_t *host, aot_ctx_t *ctx, const cu_world_t *world, gc_device_t *device,
                           const aot_snapshot_t *s, void *own, int are_timed, gc_exe_t **out);
/* Every graph once, at the hints of its symbols, so that what cannot run is told when the program is loaded. */
aot_status_t gc_exe_prepare(gc_exe_t *e, aot_ctx_t *ctx);

#endif
