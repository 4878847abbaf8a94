/* The memory that a step takes next to its leaves: the simulator's arena, and how much of it is what. */
#ifndef OV_MEMORY_OF_STEP_H
#define OV_MEMORY_OF_STEP_H

#include "kit/emit/emit.h"
#include <aot/snapshot.h>

/* Of the snapshot's graphs; 0: it has none of that number. O(graphs). */
uint32_t ov_graph_row(const aot_snapshot_t *s, aot_graph_t graph);

enum { OV_GATHERED, OV_GRADIENTS, OV_ACTIVATIONS, OV_N_PARTS };

/* most: bytes of a part at the position of the step where there are most of it; each part has its own, so they may
 * come to more than the arena. */
typedef struct ov_memory {
  uint64_t arena_nbytes;
  uint64_t most[OV_N_PARTS];
} ov_memory_t;

/* Of e's graph, for the machine that costs describe. Gathered: parameters that stand whole for a while. Gradients: what
 * is reduced over ranks, and what the update reads of the backward. Activations: whatever else is computed. *io becomes
 * the larger one of each number. O(n log n). */
aot_status_t ov_memory_of_step(const em_t *e, ov_memory_t *io);

#endif
