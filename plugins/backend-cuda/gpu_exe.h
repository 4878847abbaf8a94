/* A program on a GPU: graphs lowered for the sizes and the memory of each bound call (gpu_call.h), those with sizes
 * that only a run reports part by part (gpu_parts.h). */
#ifndef GC_GPU_EXE_H
#define GC_GPU_EXE_H

#include "kit/custom/custom.h"
#include "kit/lowering/dynamic_segments.h"
#include "kit/lowering/schedule.h"
#include "cuda_device.h"
#include "gpu_profile.h"
#include "gpu_target.h"
#include <aot/backend.h>
#include <aot/ext/check_nan.h>

enum { GC_MAX_FORMS = 8 }; /* of a part, for different sizes, that are stored */

typedef struct gc_call gc_call_t;

typedef struct gc_exe {
  aot_exe_t table;
  aot_host_t host;
  aot_ctx_t *ctx; /* of the call that is under way */
  gc_device_t *device;
  const aot_snapshot_t *s; /* with the parts of what is cut as further graphs */
  lw_cut_t cut;
  gc_call_t **parts; /* by graph row, GC_MAX_FORMS of each */
  uint64_t parts_clock;
  aot_buffer_t parts_arena;
  aot_point_t settled; /* that the host has waited for last, by itself (stream_sync.h); no timeline: it never has */
  void *own;           /* copy of bytes that came unaligned */
  custom_program_t custom;
  nv_nvrtc_t nvrtc;
  gc_cublaslt_t cublaslt;
  gc_cudnn_t cudnn;
  int wants_cudnn; /* it is there, and the program may have something for it */
  gc_code_t code;
  gc_algorithms_t algorithms;
  lp_gpu_machine_t machine;
  nc_rates_t limits;
  int is_synchronous; /* AOT_CUDA_SYNC: a step at a time, each waited for */
  aot_ext_check_nan_t check_nan;
  int is_watched; /* a step at a time, and what it gives is looked at */
  aot_ext_profile_t profile;
  int is_profiled;                            /* a step at a time, each timed */
  gc_call_t *profiled;                        /* a list, of those that are */
  gc_rows_t past, rows;                       /* of calls that are gone; of all, as they were read last */
  gc_call_t *planned;                         /* lowered by the last plan, for the bind that follows */
  double libraries_ms, lowering_ms, plans_ms; /* of the start; lowering: with plans and algorithms that are read */
  uint32_t n_lowered;                         /* times that a graph was */
  uint64_t arena_nbytes, live_nbytes, n_runs, copied_nbytes;
  uint32_t n_steps, n_fallback, n_groups, n_products, n_dnn, n_chunks, n_residuals, n_started;
  gc_choices_t choices;
  uint32_t n_waits;     /* for the device, by what decides when it runs: jumps, and nodes that report sizes */
  uint64_t loop_nbytes; /* that generated loops read and write */
  uint32_t *n_counted;  /* the same of the lowering that was last */
  uint32_t *n_on_host;  /* by operator of the snapshot: nodes that run there, of all that has been lowered */
} gc_exe_t;

struct aot_bound {
  uint32_t graph; /* snapshot row */
  aot_binding_t binding;
  gc_call_t *call; /* NULL: the graph is cut */
};

/* AOT_CUDNN: the one folder to take cuDNN from; NULL: not set. */
const char *gc_cudnn_folder(const aot_host_t *host, aot_ctx_t *ctx);
/* s is borrowed; own is the executable's from here on; choices are copied. Failures are reported. [host-main] */
aot_status_t gc_exe_create(const aot_host_t *host, aot_ctx_t *ctx, const custom_world_t *world, gc_device_t *device,
                           const aot_snapshot_t *s, void *own, const gc_choices_t *choices, gc_exe_t **out);
/* Every graph once, at the hints of its symbols, so that what cannot run is reported when the program is loaded. */
aot_status_t gc_exe_prepare(gc_exe_t *e, aot_ctx_t *ctx);

#endif
