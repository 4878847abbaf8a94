/* An aot.memory/1 plan in the making: steps and buffers in growing arrays, the buffers of the boundary, the peak.
 *
 *     step    0   1   2 | 3   4        forward | backward
 *     input   ============----->       comes with the call
 *     saved       ========----->       from the step that writes it
 *     grad                    =>
 *
 * or the axis of one step graph (of a micro step and what applies its sums), in which these are values of the arena:
 *
 *     step    0   1   2   3   4   5    forward, backward, and updates between them
 *     input   ======================
 *     saved       ========             made by the forward, read by others for the last time
 *     grad                    ===      made by the backward, read by an update
 *
 * Boundary memory belongs to the host. It has one block for the whole step (host/step/step_plan.c) and gives nothing of
 * it back before the end, so each row ends with the last step; that of a leaf that both graphs read is once. Sizes
 * are what is used: with the padding up to the next multiple of 64 that the host's block and arenas have. */
#ifndef MR_ROWS_H
#define MR_ROWS_H

#include <aot/ext/memory.h>
#include <aot/snapshot.h>
#include <aot/status.h>

#define MR_ALIGN 64u      /* of the host's block */
#define MR_OWN UINT64_MAX /* place: in memory of its own */

/* What a step of the axis belongs to. */
enum { MR_FORWARD, MR_BACKWARD, MR_UPDATE };

typedef struct mr_rows {  /* zero-initialise */
  aot_memory_plan_t plan; /* after mr_finish; points into the arrays */
  aot_memory_step_t *steps;
  uint8_t *part; /* by step: MR_FORWARD .. */
  aot_memory_buffer_t *buffers;
  uint64_t n_steps, step_capacity, part_capacity, n_buffers, buffer_capacity;
  int failed; /* no memory; later calls do nothing */
} mr_rows_t;

/* One graph on the axis: its steps begin .. end - 1, at least one. */
typedef struct mr_graph {
  uint32_t graph; /* snapshot row */
  uint64_t begin, end;
  const uint32_t *written; /* by output port: the step of the axis that writes it first */
} mr_graph_t;

void mr_clear(mr_rows_t *r); /* empties, keeps the arrays */
void mr_deinit(mr_rows_t *r);
/* Rows of the graphs that the axis has, in their order, at most two: forward and backward, or the step graphs.
 * Returns how many. */
uint32_t mr_graphs_of(const aot_snapshot_t *s, uint32_t out[2]);
int mr_part_of(const aot_snapshot_t *s, uint32_t node);              /* of a node's row, in any graph */
void mr_step(mr_rows_t *r, uint32_t graph, uint32_t node, int part); /* ids */
/* row number; nothing is stored of 0 bytes: UINT64_MAX */
uint64_t mr_buffer(mr_rows_t *r, const aot_memory_buffer_t *b);
uint64_t mr_padded(uint64_t nbytes); /* up to the next multiple of MR_ALIGN */

/* Inputs, saved slots, outputs and gradients of the graphs; what a step graph leaves in the memory of its inputs is
 * outside. exprs: sn_exprs_eval's. AOT_E_RANGE: a size without a value, or larger than memory can be. Call it when
 * all steps are there. O(ports). */
aot_status_t mr_boundary(mr_rows_t *r, const aot_snapshot_t *s, const int64_t *exprs, const mr_graph_t *graphs,
                         uint32_t n_graphs);

/* Fills r->plan; temporaries that live from one part of a step graph into another become what they are to it.
 * arena_nbytes: held from the first step to the last, whatever is in it. peak_nbytes: that and the most that buffers
 * of their own take at one step; peak_step: the first at which all buffers alive are largest together.
 * AOT_E_EXHAUSTED. O(steps + buffers). */
aot_status_t mr_finish(mr_rows_t *r, uint64_t arena_nbytes);

#endif
