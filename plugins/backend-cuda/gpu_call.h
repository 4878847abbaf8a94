/* A graph of a program at certain sizes, lowered and with its kernels compiled; and, once it has memory, put on a
 * stream.
 *
 * Steps that stand one after the other whatever happens make a piece, which is captured as a CUDA graph the first time
 * that it runs. Most calls are one piece: a run is one launch. A step that hangs on the run (lw_step_t.depends_on_run)
 * is between two: a jump waits for the device, reads what decides, and continues with the piece that it leads to. */
#ifndef GC_GPU_CALL_H
#define GC_GPU_CALL_H

#include "gpu_exe.h"
#include "gpu_profile.h"

typedef struct gc_piece {
  uint32_t begin, end; /* steps */
  int depends_on_run;  /* one step, which is put on the stream each time */
  gc_graph_exec_t exec;
} gc_piece_t;

struct gc_call {
  gc_exe_t *exe;
  uint32_t graph; /* snapshot row */
  int64_t *symbols;
  uint32_t align; /* of the ports, as it was assumed */
  lw_schedule_t schedule;
  gc_piece_t *pieces;
  uint32_t n_pieces, n_waits; /* jumps that wait for the device */
  uint32_t *piece_at;         /* by step: the piece that begins there */
  int is_by_steps;            /* nothing is captured: its memory changes from run to run */
  uint64_t last_used;         /* gpu_parts.c */
  char **base, **staged;      /* by storage */
  gc_run_t run;
  uint64_t staging_nbytes;
  uint32_t n_checks, n_beside;
  gc_lookout_t lookout; /* at the checks, once there is memory */
  gc_beside_t beside;
  int64_t *numbers;        /* pinned: integers that outputs are, by output */
  aot_buffer_t *number_at; /* and where they go; 0 bytes: nowhere */
  aot_ctx_t *ctx;          /* of the run, and its queue */
  aot_queue_t *queue;
  gc_times_t times;
  gc_call_t *next; /* that is profiled */
  char *looked_at; /* pinned, of so many bytes: what is looked at of a storage (aot.check-nan/1) */
  uint64_t looked_at_nbytes;
  gc_result_t result;
  int cublas, dnn; /* what the libraries answered last */
};

/* Ports are at multiples of `align` bytes. */
aot_status_t gc_call_create(gc_exe_t *e, uint32_t graph, const int64_t *symbols, uint32_t align, gc_call_t **out,
                            lw_error_t *error);
void gc_call_destroy(gc_call_t *c);
int gc_call_is_for(const gc_call_t *c, uint32_t graph, const int64_t *symbols, uint32_t align);
/* Once, or, of a call by steps, before each run. */
aot_status_t gc_call_bind(gc_call_t *c, aot_buffer_t arena, const aot_tensor_t *inputs, uint64_t n_inputs,
                          const aot_tensor_t *outputs, uint64_t n_outputs, lw_error_t *error);
/* Captures what is to be captured before anything is put on a stream, where that is all of it. */
aot_status_t gc_call_prepare(gc_call_t *c, lw_error_t *error);
aot_status_t gc_call_run(gc_call_t *c, aot_ctx_t *ctx, aot_queue_t *queue, lw_error_t *error);

/* Alignment that all have, at most `align`. */
uint32_t gc_alignment_of_ports(const aot_tensor_t *tensors, uint64_t n, uint32_t align);

/* ---- aot.profile/1 ---- */
void gc_calls_profile_start(gc_exe_t *e);
int gc_calls_profile_read(gc_exe_t *e); /* into e->rows; 0: no memory */

#endif
