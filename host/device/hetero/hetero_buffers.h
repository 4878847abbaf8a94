/* Memory of the lanes next to the session's own, for calls of parts: an arena a lane, and copies of leaves on lanes
 * where they do not live. A call has the blocks that it was bound on; the next one that is bound finds them here, where
 * they are large enough. */
#ifndef AOTH_HETERO_BUFFERS_H
#define AOTH_HETERO_BUFFERS_H

#include "kit/base/arena.h"
#include <device/multi_queue.h>

/* As long as something else has it. */
typedef struct aoth_parts_block {
  uint32_t lane, n_owners;
  aot_buffer_t buffer;
} aoth_parts_block_t;

/* A copy of a leaf on a lane where it does not live. */
typedef struct aoth_parts_copy {
  aoth_parts_block_t *block;
  uint64_t version;    /* of the leaf when it was made; 0: nothing is in it */
  uint64_t n_failures; /* of the lanes by then: what was on its way when something failed is not in it */
} aoth_parts_copy_t;

typedef struct aoth_parts_memory {
  const aoth_multi_queue_t *lanes;
  uint32_t n_leaves;
  uint64_t *versions;                         /* by leaf: what it holds now */
  aoth_parts_copy_t *copies;                  /* [lane * n_leaves + leaf] */
  aoth_parts_block_t *arenas[AOTH_MAX_LANES]; /* by lane, for the next call that is bound; none of 0 */
} aoth_parts_memory_t;

/* Rows are the arena's. AOT_OK, or reported. */
aot_status_t aoth_parts_memory_init(aoth_parts_memory_t *m, aot_ctx_t *ctx, const aoth_multi_queue_t *lanes,
                                    uint32_t n_leaves, kit_arena_t *arena);
/* When no call is bound any more: it holds nothing, and can be used again. */
void aoth_parts_memory_clear(aoth_parts_memory_t *m);

/* A block of at least that size, as a lane's arena or for a leaf's copy, of which the caller is an owner from here on;
 * or reported. */
aot_status_t aoth_parts_memory_arena(aoth_parts_memory_t *m, aot_ctx_t *ctx, uint32_t lane, uint64_t nbytes,
                                     aoth_parts_block_t **out);
aot_status_t aoth_parts_memory_copy(aoth_parts_memory_t *m, aot_ctx_t *ctx, uint32_t leaf, uint32_t lane,
                                    uint64_t nbytes, aoth_parts_block_t **out);
/* Its owner no longer; the last one waits until its lane is idle. NULL: nothing. */
void aoth_parts_memory_drop(const aoth_parts_memory_t *m, aoth_parts_block_t *b);

/* Is the leaf to be moved to its copy on that lane? From here on it counts as moved. 0: it is as it was. */
int aoth_parts_memory_is_due(aoth_parts_memory_t *m, uint32_t leaf, uint32_t lane);

#endif
