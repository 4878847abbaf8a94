/* aot/backend.h - unit kind backend/2: compiles the program's graphs to an artifact, and runs them on a device.
 *
 *     compile(program) -> artifact     bytes, relocatable and complete: cached on disk, loaded by another process
 *     load(artifact, device) -> executable
 *     bind(graph, tensors, arena) -> call     a graph with its memory: made once ..
 *     submit(call, queue, waits, signals)     .. put on a queue any number of times; nothing blocks
 *
 * One artifact holds every graph of the program that is no region. All memory at the boundary is the host's: inputs,
 * outputs, and the arena for what lies between. Several calls may be bound at once. */
#ifndef AOT_BACKEND_H
#define AOT_BACKEND_H

#include <aot/base.h>
#include <aot/device.h>
#include <aot/status.h>

/* One node's answer from query(). */
typedef struct aot_verdict {
  uint32_t struct_size;
  /* 1: runs as it is; 0: no, `reason` says why; the host asks the opset to decompose it; 2: runs as it is, but its
   * parts would run better; the host asks the opset, too, and it stays as it is where that cannot (hosts before 2026-12
   * take it for 1) */
  int32_t accepted;
  aot_node_t node;
  uint32_t reserved;
  aot_str_t reason;
} aot_verdict_t;

typedef struct aot_verdict_sink {
  aot_table_t head;
  aot_status_t(AOT_CALL *put)(const struct aot_verdict_sink *sink, const aot_verdict_t *verdict);
} aot_verdict_sink_t;

typedef struct aot_bytes_sink {
  aot_table_t head;
  /* appends a copy */
  aot_status_t(AOT_CALL *write)(const struct aot_bytes_sink *sink, const void *data, uint64_t nbytes);
} aot_bytes_sink_t;

/* What an executable reports about itself; all since load. */
typedef struct aot_exe_stats {
  uint32_t struct_size;
  uint32_t n_kernels;    /* launches or calls of one run of every graph */
  uint64_t arena_nbytes; /* planned memory for intermediates, the largest graph */
  uint64_t peak_nbytes;  /* highest intermediate memory in use in any run, as measured */
  uint64_t n_runs;
  uint64_t copied_nbytes; /* by one run of a STEP graph: outputs that could not be computed where they are to lie */
} aot_exe_stats_t;

/* ---- calls ---- */

#define AOT_SYMBOL_UNKNOWN INT64_MIN /* in symbols[]: a node of the graph will tell */
#define AOT_RANK_OPEN (-1)           /* rank of an output whose size a node of the graph will tell */

/* A graph of the program: the number-th (from 0) of its kind, by their ids; and the sizes that it is to be run with:
 * symbols[i] is the value of the i-th symbol of the shape environment. */
typedef struct aot_graph_at {
  uint32_t struct_size;
  int32_t kind; /* AOT_GRAPH_*, not REGION */
  uint32_t number;
  uint32_t reserved;
  const int64_t *symbols;
  uint64_t n_symbols;
} aot_graph_at_t;

/* What a call of the graph takes beside its ports. */
typedef struct aot_exe_plan {
  uint32_t struct_size, flags;
  aot_buffer_t arena; /* its nbytes; 0: none */
  uint64_t alignment; /* of the arena, bytes */
} aot_exe_plan_t;

/* Memory for one call. Tensors have the dtype, sizes and strides of their ports under the symbols; `data` is an address
 * of the device. Outputs share memory with nothing, but for those of a STEP graph that lie where an input does
 * (aot/graph.h). An output that is None has data NULL; one whose sizes need unknown symbols has rank AOT_RANK_OPEN and
 * no data. The struct is borrowed for the call, the arrays and the memory until unbind. */
typedef struct aot_binding {
  uint32_t struct_size, reserved;
  aot_graph_at_t graph;
  const aot_tensor_t *inputs, *outputs; /* by port */
  uint64_t n_inputs, n_outputs;
  aot_buffer_t arena; /* of at least the plan's size, shared by calls that never run at the same time */
} aot_binding_t;

typedef struct aot_bound aot_bound_t; /* a bound call, the executable's, opaque */

/* Where an executable has open outputs from. */
typedef struct aot_output_sink {
  aot_table_t head;
  /* The tensor of the open output port `output`: its type under these symbols, which must be known as far as the type
   * needs them. Memory is the host's, on the executable's device, and lives at least as long as the call.
   * [run-thread] */
  aot_status_t(AOT_CALL *allocate)(const struct aot_output_sink *sink, uint64_t output, const int64_t *symbols,
                                   uint64_t n_symbols, aot_tensor_t *out);
} aot_output_sink_t;

/* One run of a bound call. ctx and what is pointed to are borrowed until the last signal, the arrays of points not. */
typedef struct aot_submission {
  uint32_t struct_size, flags;
  aot_queue_t *queue;
  const aot_point_t *waits, *signals; /* before it, after it */
  uint64_t n_waits, n_signals;
  /* in: as bound; out: what the run has learned. A value outside its symbol's range is an error that names symbol,
   * range and node */
  int64_t *symbols;
  uint64_t n_symbols;
  const aot_output_sink_t *open; /* NULL: no output is open */
} aot_submission_t;

#define AOT_EXE_OPEN_OUTPUTS 1u /* results whose sizes depend on the data can be outputs */

typedef struct aot_exe {
  aot_table_t head; /* flags: AOT_EXE_*; destroyed once nothing is bound */
  /* set out->struct_size first [run-thread] */
  aot_status_t(AOT_CALL *plan)(const struct aot_exe *e, aot_ctx_t *ctx, const aot_graph_at_t *graph,
                               aot_exe_plan_t *out);
  /* [run-thread] */
  aot_status_t(AOT_CALL *bind)(const struct aot_exe *e, aot_ctx_t *ctx, const aot_binding_t *binding,
                               aot_bound_t **out);
  /* [run-thread] */
  aot_status_t(AOT_CALL *submit)(const struct aot_exe *e, aot_ctx_t *ctx, aot_bound_t *call, const aot_submission_t *s);
  void(AOT_CALL *unbind)(const struct aot_exe *e, aot_bound_t *call); /* [run-thread] nothing of it is under way */
  aot_status_t(AOT_CALL *stats)(const struct aot_exe *e, aot_exe_stats_t *out); /* set out->struct_size first */
} aot_exe_t;

typedef struct aot_backend {
  aot_table_t head;
  /* One verdict for every node of every graph, regions included; nodes without one are refused. [stage-exclusive] */
  aot_status_t(AOT_CALL *query)(const struct aot_backend *b, aot_ctx_t *ctx, aot_prog_t *prog,
                                const aot_verdict_sink_t *sink);
  aot_status_t(AOT_CALL *compile)(const struct aot_backend *b, aot_ctx_t *ctx, aot_prog_t *prog,
                                  const aot_bytes_sink_t *sink); /* [stage-exclusive] */
  /* bytes: borrowed until the executable is destroyed; the device as well. One that it cannot run on:
   * AOT_E_UNIMPLEMENTED, told. [host-main] */
  aot_status_t(AOT_CALL *load)(const struct aot_backend *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                               const aot_device_t *device, const aot_exe_t **out);
} aot_backend_t;

#endif
