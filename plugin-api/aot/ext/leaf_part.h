/* aot/ext/leaf_part.h - extension "aot.leaf-part/1", offered by the host: an edit that makes of a leaf one part of
 * it. */
#ifndef AOT_EXT_LEAF_PART_H
#define AOT_EXT_LEAF_PART_H

#include <aot/graph.h>

#define AOT_EXT_LEAF_PART "aot.leaf-part/1"

/* Among the flags of a leaf (aot/graph.h): this was done to it, along dim 0; and, from bit 16 on, how many rows all
 * parts together have without what the last ones are filled up with, modulo 65536. A state with an element for each of
 * a parameter's is as many parts: whoever makes it gives it the parameter's AOT_LEAF_PART_FLAGS. */
#define AOT_LEAF_PART 4u
#define AOT_LEAF_PART_ROWS_SHIFT 16
#define AOT_LEAF_PART_FLAGS 0xFFFF0004u

typedef struct aot_ext_leaf_part {
  aot_table_t head;
  /* The leaf keeps its id, role and names, is AOT_LEAF_PART, and has this type and these contents instead: those of one
   * rank of several. Its ports are the caller's to change (type_set); the program is to be `sharded` then
   * (aot/contract.h). data is kept, not copied: [graph]; NULL: zeros. Undone with the stage's other edits.
   * [stage-exclusive] */
  aot_status_t(AOT_CALL *take)(const struct aot_ext_leaf_part *x, aot_ctx_t *ctx, aot_prog_t *prog, aot_leaf_t leaf,
                               const aot_type_t *type, const void *data, uint64_t nbytes);
} aot_ext_leaf_part_t;

#endif
