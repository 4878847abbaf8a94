/* An executable made of those of several backends, on one or several devices: a graph is a row of parts
 * (AOT_GRAPH_PART), which run one after the other.
 *
 * The program says which (hetero.h). A call of a graph is one bound call a part, a submission one a part, in order,
 * each on the queue of its device; what goes from device to device does so on their queues. Values between parts are in
 * the arena of their device, in front of what the parts there share as their own arena. */
#ifndef AOTH_HETERO_EXE_H
#define AOTH_HETERO_EXE_H

#include <aot/backend.h>
#include <device/hetero/hetero.h>

/* A backend of the pipeline, and the executable of its parts. */
typedef struct aoth_part_backend {
  const char *name;
  const aot_exe_t *exe, *self; /* the imported table, what its functions are called with; self NULL: it has no part */
  uint32_t lane;               /* whose device it is loaded on */
} aoth_part_backend_t;

/* Everything is borrowed as long as the executable. entering: a call into that backend comes next. NULL: reported. */
const aot_exe_t *aoth_parts_exe_create(aot_ctx_t *ctx, aot_prog_t *prog, aoth_multi_queue_t *lanes,
                                       const aoth_part_backend_t *backends, uint32_t n_backends, void *self,
                                       void (*entering)(void *self, uint32_t backend));

/* The lane on whose device a leaf lives: its ports are there. */
uint32_t aoth_parts_exe_home(const aot_exe_t *exe, uint32_t leaf);
/* What a leaf holds now: copies of it on other devices are stored as long as that stays the same number, above 0. */
void aoth_parts_exe_leaf_is(const aot_exe_t *exe, uint32_t leaf, uint64_t version);

#endif
