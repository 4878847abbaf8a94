/* aot/ext/memory.h - extension "aot.memory/1": the memory that one training step of a partitioned or stitched program
 * takes, over time.
 *
 * Offered by a backend's table: what its plan will take, exactly. Offered by a partitioner's table: what its own
 * simulator says. Offered by the host to stages: the pipeline's backend, asked about the program as it will
 * get it: passes that stand between run on it and are taken back, so that ids in the answer may be of nodes that are
 * gone (AOT_E_UNIMPLEMENTED, without a diagnostic, when the pipeline has no backend that answers).
 *
 * Time is one axis of steps: the forward's from 0, then the backward's; of a step graph its own, in which nodes marked
 * AOT_NODE_UPDATE stand between those of the backward. Parameters, buffers, constants and optimizer state lie
 * outside the step and are not counted. */
#ifndef AOT_EXT_MEMORY_H
#define AOT_EXT_MEMORY_H

#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_MEMORY "aot.memory/1"

/* What a buffer is for. */
#define AOT_MEMORY_TEMPORARY 1 /* between two steps of one graph, or of one part of a step graph */
#define AOT_MEMORY_SCRATCH 2   /* no value of the program: what a step works in, a copy that a kernel asks for */
#define AOT_MEMORY_SAVED 3     /* from the forward to the backward, in a step graph to its last reader */
#define AOT_MEMORY_OUTPUT 4    /* handed to the caller by the forward */
#define AOT_MEMORY_GRADIENT 5  /* handed to the caller by the backward, in a step graph to the update */
#define AOT_MEMORY_INPUT 6     /* comes with the call: user inputs, tangents */

typedef struct aot_memory_step {
  aot_graph_t graph;
  aot_node_t node; /* AOT_NO_ID: a step of the backend's own */
} aot_memory_step_t;

typedef struct aot_memory_buffer {
  int32_t kind;         /* AOT_MEMORY_* */
  uint32_t first, last; /* steps, both included */
  aot_value_t value;    /* of the program, the one that the memory was made for; AOT_NO_ID: scratch */
  uint64_t nbytes;      /* that it takes, padding included */
  uint64_t place;       /* first byte in the arena; UINT64_MAX: in memory of its own */
} aot_memory_buffer_t;

typedef struct aot_memory_plan {
  uint32_t struct_size, flags;
  uint64_t n_steps, n_buffers;
  uint64_t n_forward_steps; /* of n_steps, those before the backward's first */
  const aot_memory_step_t *steps;
  const aot_memory_buffer_t *buffers;
  uint64_t step_stride, buffer_stride; /* the sizes of a row, as their maker knows them */
  uint64_t peak_nbytes;                /* most memory held at one time, gaps between buffers included */
  uint64_t arena_nbytes;               /* of it, one block that buffers share; 0: none */
  uint64_t peak_step;                  /* the first at which the buffers alive are largest together */
} aot_memory_plan_t;

typedef struct aot_ext_memory {
  aot_table_t head;
  /* symbols[i]: the value of the i-th symbol of the shape environment; n_symbols 0: their hints. *out_plan is valid
   * until the next call with this table, or until the table's unit is destroyed. AOT_E_UNIMPLEMENTED: sizes that
   * only a run tells, and no values for them. Diagnoses what is wrong. O(n log n). [stage-exclusive] */
  aot_status_t(AOT_CALL *plan)(const struct aot_ext_memory *x, aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols,
                               uint64_t n_symbols, const aot_memory_plan_t **out_plan);
} aot_ext_memory_t;

#endif
