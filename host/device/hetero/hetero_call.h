/* A call of a graph of parts, from its memory to its end, for the executable that parts make (hetero_exe.h):
 *
 *     hetero_bind.c     what the parts want of their lanes' arenas; each part bound to where its ports are
 *     hetero_submit.c   parts put on their queues, in order
 *     hetero_transfers.c    what goes from lane to lane before and after a part
 *     hetero_open.c    outputs whose size only the run reports */
#ifndef AOTH_HETERO_CALL_H
#define AOTH_HETERO_CALL_H

#include <device/hetero/hetero_exe.h>
#include <device/hetero/hetero_layout.h>
#include <device/hetero/hetero_buffers.h>

typedef struct aoth_parts_exe {
  aot_exe_t table;
  aot_prog_t *prog;
  aoth_multi_queue_t *lanes;
  const aoth_part_backend_t *backends;
  uint32_t n_backends;
  void *self;
  void (*entering)(void *self, uint32_t backend);
  kit_arena_t *arena; /* of what follows */
  aoth_parts_t parts;
  aoth_parts_memory_t memory;
  uint64_t pulled[AOTH_MAX_LANES]; /* by lane: its work up to the last that reads the host's memory */
  uint32_t n_bound;
  uint64_t arena_nbytes; /* the largest that was planned */
} aoth_parts_exe_t;

typedef struct aoth_bound_move {
  aot_buffer_t from, to; /* from of no bytes: there is nothing to move */
  void *staging;         /* the host's memory between two devices of which neither is the host; NULL: none */
  int is_due;            /* in the submission that is being put */
} aoth_bound_move_t;

/* An output whose size only the run has reported, on its way from another device. */
typedef struct aoth_bound_open {
  aot_buffer_t from; /* address 0: there is none */
  aot_buffer_t to;
  void *staging;
} aoth_bound_open_t;

struct aot_bound {
  aoth_parts_exe_t *exe;
  const aoth_part_graph_t *graph;
  aot_bound_t **calls;         /* by part */
  aot_tensor_t *tensors;       /* of all parts, in order */
  int64_t *dims;               /* of the values between them */
  aoth_bound_move_t *moves;    /* as the graph has them */
  aoth_parts_block_t **blocks; /* n_blocks that it has */
  uint32_t n_blocks;
  const aoth_part_t *open_part; /* whose outputs are open; NULL: none's are. Only one can: a graph with sizes that a run
                                   reports is whole */
  aoth_bound_open_t *opens;     /* by its outputs, where it runs on another lane than 0; NULL: it does not */
  aot_output_sink_t sink;       /* of its run, which counts outputs as the part does .. */
  aot_submission_t whole;       /* .. and the one for all of it */
  const aoth_part_t *written_by; /* of the last submission: the part that wrote what it may only read; NULL: none */
};

/* Of each lane: the arena of the parts, which begins where the cells end, `skip` bytes on. */
typedef struct aoth_parts_arenas {
  uint64_t nbytes[AOTH_MAX_LANES], skip[AOTH_MAX_LANES]; /* nbytes: of both */
  uint64_t alignment[AOTH_MAX_LANES];
} aoth_parts_arenas_t;

/* ---- hetero_bind.c ---- */

/* AOT_OK, or reported by the part's backend. O(parts), and what its plan takes. */
aot_status_t aoth_parts_plan_arenas(const aoth_parts_exe_t *x, aot_ctx_t *ctx, const aoth_part_graph_t *g,
                                    const aot_graph_at_t *at, const aoth_parts_layout_t *l, aoth_parts_arenas_t *out);
/* As aot_exe_t has them, of one of its graphs. */
aot_status_t aoth_parts_bind(aoth_parts_exe_t *x, aot_ctx_t *ctx, const aoth_part_graph_t *g,
                             const aot_binding_t *whole, aot_bound_t **out);
void aoth_parts_unbind(aot_bound_t *c);

/* ---- hetero_submit.c ---- */

/* As aot_exe_t has it. When a part fails, those after it are left out. */
aot_status_t aoth_parts_submit(aot_bound_t *c, aot_ctx_t *ctx, const aot_submission_t *whole);

/* ---- hetero_transfers.c ---- */

/* Those of the graph's moves from `begin` to `end`, which are together. */
aot_status_t aoth_parts_move(const aot_bound_t *c, aot_ctx_t *ctx, uint32_t begin, uint32_t end);
aot_status_t aoth_parts_move_one(aoth_parts_exe_t *x, aot_ctx_t *ctx, const aoth_part_move_t *m,
                                 const aoth_bound_move_t *b);

/* ---- hetero_open.c ---- */

/* Where the outputs of the call's open part are requested, while it runs. */
aot_output_sink_t aoth_parts_open_sink(aot_bound_t *c);
/* To lane 0, from a part on another. The host waits for that part. */
aot_status_t aoth_parts_bring_opens(const aot_bound_t *c, aot_ctx_t *ctx);
/* Memory of a run that is over. */
void aoth_parts_drop_opens(const aot_bound_t *c);

#endif
