/* What a step saves for later steps of the same graph, found by the tensors that both read: items whose tensors have
 * one hash are a chain, the newest first, and a map finds the newest. n items are saved and found in O(n) expected. All
 * of it is in the pool of the schedule. */
#ifndef GC_FORWARD_STASH_H
#define GC_FORWARD_STASH_H

#include "kit/base/map.h"
#include "kit/lowering/lower.h"

typedef struct gc_kept {  /* begins an item */
  struct gc_kept *before; /* the one with this hash that was saved before it; NULL: none */
  uint64_t hash;
} gc_kept_t;

typedef struct gc_kept_table {
  gc_kept_t **newest; /* by row: of each hash */
  uint32_t capacity;
  kit_map_t rows; /* by hash */
} gc_kept_table_t;

/* The table of the graph that is lowered, made when it is first requested: *table, as long as *in is that graph.
 * Tensors of another one are in memory that is gone. NULL: no memory. */
gc_kept_table_t *gc_kept_of(const lw_build_t *b, gc_kept_table_t **table, const aot_snap_graph_t **in);
/* Of where the tensors begin. */
uint64_t gc_kept_hash(const lw_tensor_t *const *tensors, uint32_t n);
/* item->hash is set; the item is the pool's. A lowering that declines keeps nothing. AOT_E_EXHAUSTED: no memory. */
aot_status_t gc_keep(lw_build_t *b, gc_kept_table_t *t, gc_kept_t *item);
/* The newest item with this hash, and the one that was kept before it; NULL: none. */
gc_kept_t *gc_kept_first(const gc_kept_table_t *t, uint64_t hash);
gc_kept_t *gc_kept_before(const gc_kept_t *item);

#endif
