/* Values of places: stale views are replayed, writes are propagated to the base by the inverses of the view steps. */
#ifndef FZ_PLACES_H
#define FZ_PLACES_H

#include "rewriting.h"

/* The value of a place, replaying views before `before` (AOT_NO_ID: at the end) where it is stale; materialized: where
 * it is not what a view of the base is in memory, too. O(steps replayed). */
aot_status_t fz_read(fz_rewrite_t *w, uint32_t place, int materialized, aot_node_t before, aot_value_t *out);

/* `updated` is written over the place. unseen: autograd does not see it (no_grad). Through each view step the places
 * above get their new values too, up to the base. O(depth). */
aot_status_t fz_write(fz_rewrite_t *w, uint32_t place, aot_value_t updated, int unseen, aot_node_t before);

/* Is the value of the place in memory as its recorded type says? */
int fz_is_exact(const fz_rewrite_t *w, uint32_t place);
/* Make the view step of a place again on its parent's value, whether that is needed or not. */
aot_status_t fz_replay(fz_rewrite_t *w, uint32_t place, aot_node_t before);
/* The argument that says where in the storage a result begins (as_strided), or -1: such a view looks past its
 * operand. */
int32_t fz_storage_offset_arg(const aot_op_desc_t *d);

#endif
