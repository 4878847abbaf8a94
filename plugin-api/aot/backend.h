/* aot/backend.h - unit kind backend/1: compiles the program's graphs to an artifact and runs it.
 *
 * The artifact is bytes, relocatable and complete: it can be cached on disk and loaded by another process. One artifact
 * holds every FORWARD, BACKWARD and UPDATE graph of the program. The host owns all boundary tensors. */
#ifndef AOT_BACKEND_H
#define AOT_BACKEND_H

#include <aot/base.h>
#include <aot/status.h>

/* One node's answer from query(). */
typedef struct aot_verdict {
  uint32_t struct_size;
  int32_t accepted; /* 1: runs as it is; 0: no, `reason` says why; the host asks the opset to decompose it */
  aot_node_t node;
  uint32_t reserved;
  aot_str_t reason;
} aot_verdict_t;

typedef struct aot_verdict_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void *self;
  aot_status_t (AOT_CALL *put)(void *self, const aot_verdict_t *verdict);
} aot_verdict_sink_t;

typedef struct aot_bytes_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void *self;
  aot_status_t (AOT_CALL *write)(void *self, const void *data, uint64_t nbytes); /* appends a copy */
} aot_bytes_sink_t;

/* What an executable reports about itself; all since load. */
typedef struct aot_exe_stats {
  uint32_t struct_size;
  uint32_t n_kernels;        /* launches or calls of one run of every graph */
  uint64_t arena_nbytes;     /* planned memory for intermediates, the largest graph */
  uint64_t peak_nbytes;      /* highest intermediate memory in use in any run, as measured */
  uint64_t n_runs;
} aot_exe_stats_t;

typedef struct aot_exe {
  uint32_t struct_size, flags;
  void *self;
  /* Run the graph of this kind. inputs[i], outputs[i] belong to the graph's i-th port; outputs are allocated by the caller
   * with the port's type (its sizes, its strides) and never overlap inputs; a None output has data NULL. symbols[i] is the
   * value of the i-th symbol of the shape environment, INT64_MIN where a node of the graph will tell it. [run-thread] */
  aot_status_t (AOT_CALL *run)(const struct aot_exe *e, aot_ctx_t *ctx, int32_t graph_kind, const aot_tensor_t *inputs,
                               uint64_t n_inputs, const aot_tensor_t *outputs, uint64_t n_outputs,
                               const int64_t *symbols, uint64_t n_symbols);
  aot_status_t (AOT_CALL *stats)(const struct aot_exe *e, aot_exe_stats_t *out); /* set out->struct_size first */
  void (AOT_CALL *destroy)(const struct aot_exe *e);                             /* [host-main] */
  const void *(AOT_CALL *get_ext)(const struct aot_exe *e, const char *id);
} aot_exe_t;

typedef struct aot_backend {
  uint32_t struct_size, flags;
  void *self;
  /* One verdict for every node of every graph, regions included; nodes without one are refused. [stage-exclusive] */
  aot_status_t (AOT_CALL *query)(const struct aot_backend *b, aot_ctx_t *ctx, aot_prog_t *prog,
                                 const aot_verdict_sink_t *sink);
  aot_status_t (AOT_CALL *compile)(const struct aot_backend *b, aot_ctx_t *ctx, aot_prog_t *prog,
                                   const aot_bytes_sink_t *sink); /* [stage-exclusive] */
  aot_status_t (AOT_CALL *load)(const struct aot_backend *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                                const aot_exe_t **out); /* [host-main] bytes borrowed until destroy of the exe */
  void (AOT_CALL *destroy)(const struct aot_backend *b);
  const void *(AOT_CALL *get_ext)(const struct aot_backend *b, const char *id);
} aot_backend_t;

#endif
