/* A GPU as a target of lowering (kit/lowering): steps that put work on a stream.
 *
 *     loop        a generated kernel (kit/loops), compiled by NVRTC
 *     product     cuBLASLt
 *     attention   cuDNN (gpu_attention.h), or kernels of its own (flash_attention.h)
 *     convolution cuDNN, or kernels of their own (gpu_conv.c)
 *     copy, add   generated kernels of one instruction; dense copies by the driver
 *     jump        the host waits for what decides, and continues with another step (kit/lowering/region_steps.h)
 *     kernel      what nothing else takes runs on the host: operands there, results back, both on the stream */
#ifndef GC_TARGET_H
#define GC_TARGET_H

#include "gpu_code.h"
#include "kit/lowering/group_loop.h"
#include "cudnn/cudnn.h"
#include "side_stream.h"
#include "gpu_options.h"
#include "product_algorithms.h"

extern const lw_target_t gc_gpu;

/* lw_machine_t.self while a graph is lowered. */
typedef struct gc_lowering {
  /* NULL, all three: the graph is not to run, and all its generated kernels are the stand-in */
  gc_code_t *code;
  const gc_cublaslt_t *cublaslt;
  gc_algorithms_t *algorithms;
  gc_kernel_t stand_in;
  lp_gpu_machine_t machine;
  uint32_t align;          /* bytes that every port is at a multiple of, up to LW_ALIGN */
  uint64_t staging_nbytes; /* the most that a step on the host takes of host memory */
  uint32_t n_checks;       /* loops that report a wrong index */
  uint32_t n_products;
  uint32_t *n_on_host;                   /* by operator of the snapshot: nodes that run there */
  gc_cudnn_t *cudnn;                     /* opened when it is first needed */
  uint32_t n_dnn;                        /* steps of cuDNN's */
  struct gc_kept_table *attentions;      /* that were run forward (attention_steps.h) */
  const aot_snap_graph_t *attentions_in; /* the graph that they are of */
  const gc_choices_t *choices;
  struct gc_kept_table *masks; /* gpu_masks.h */
  const aot_snap_graph_t *masks_in;
  uint32_t n_beside;   /* steps whose work goes next to the stream .. */
  uint32_t n_started;  /* .. of which so many continue until another step waits for them */
  uint32_t *beside_of; /* by storage, n_beside_of of them: the work that makes it, counted from 1; 0: none */
  uint32_t n_beside_of;
} gc_lowering_t;

enum { GC_DECIDES_NBYTES = 16 }; /* one element of any dtype */

/* lw_frame_t.self of a run. */
typedef struct gc_run {
  const gc_driver_t *driver;
  struct gc_device *device;
  gc_stream_t stream;
  char *staging;           /* pinned */
  char **staged;           /* by storage: where it is in staging; of the step that runs */
  _Atomic int64_t *checks; /* pinned: set by loops whose index was wrong */
  gc_result_t *result;     /* of the driver's call that failed */
  int *cublas;             /* of cuBLASLt's */
  int *dnn;                /* of cuDNN's */
  gc_beside_t *beside;
  int waits_at_once; /* for what continues next to the stream: each step by itself */
  char *decides;     /* pinned, of GC_DECIDES_NBYTES: what a jump reads */
  /* waits until all that was put on the stream has run */
  aot_status_t (*settle)(void *self, lw_error_t *error);
  void (*fault)(void *self, aot_status_t status, const lw_error_t *error); /* of work on the host; from any thread */
  void *self;
} gc_run_t;

/* A kernel with pointers as its arguments. */
gc_result_t gc_launch(const gc_run_t *run, gc_function_t function, uint32_t blocks, uint32_t threads, uint32_t shared,
                      gc_address_t *pointers, uint32_t n);

/* A workspace of a library, which wants multiples of 256 where the arena gives those of LW_ALIGN: it is taken larger,
 * and begins where gc_workspace_at says. An H200's cuBLASLt 13.1 refuses others with CUBLAS_STATUS_INVALID_VALUE. */
enum { GC_WORKSPACE_ALIGN = 256 };
static inline aot_status_t gc_workspace(lw_build_t *b, uint64_t nbytes, lw_tensor_t *out) {
  return lw_scratch(b, nbytes + GC_WORKSPACE_ALIGN - LW_ALIGN, out);
}
static inline gc_address_t gc_workspace_at(gc_address_t scratch) {
  return (scratch + GC_WORKSPACE_ALIGN - 1) / GC_WORKSPACE_ALIGN * GC_WORKSPACE_ALIGN;
}

/* The alignment that a tensor's first element has wherever the ports lie, in bytes. */
uint32_t gc_alignment_of(const lw_build_t *b, const lw_tensor_t *t);
/* A generated loop: dst, which has src's sizes and steps by 0 along the reduced dimensions (bits, at least one), is
 * src's sums over these. */
aot_status_t gc_add_sums(lw_build_t *b, const lw_tensor_t *dst, const lw_tensor_t *src, uint32_t reduced);
/* Kernels that the steps call are to be compiled. */
void gc_want_kernels(const lw_schedule_t *s);
/* Of a jump, the step that it leads to; LW_NONE: it is none. Does it wait for the device? */
uint32_t gc_jump_target(const lw_step_t *step);
int gc_jump_waits(const lw_step_t *step);
/* What it runs, in words: the name of its generated kernel, or what kind of step it is. */
const char *gc_step_name(const lw_step_t *step);
/* The first wrong index since the words were looked at, if there was one: reports it, with its node. The words are
 * cleared. */
aot_status_t gc_check_indices(const lw_schedule_t *s, _Atomic int64_t *checks, lw_error_t *error);

#endif
