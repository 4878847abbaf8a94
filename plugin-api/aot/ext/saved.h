/* aot/ext/saved.h - extension "aot.saved/1", offered by the host: who else holds the memory of what a partitioned
 * program saves. Computed from the alias marks of the operators: a view has the storage of its base. */
#ifndef AOT_EXT_SAVED_H
#define AOT_EXT_SAVED_H

#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_SAVED "aot.saved/1"

/* What a saved slot's storage is, beside the slot's. None of these: donated, the backward may overwrite it. */
#define AOT_HELD_INPUT 1u /* that of a forward input that comes with the call */
/* that of a parameter, buffer, constant or state: it stays where it is from call to call */
#define AOT_HELD_STATIC 2u
/* that of an output of the forward that the caller sees: user output, updated leaf, base of views */
#define AOT_HELD_OUTPUT 4u
#define AOT_HELD_GRADIENT 8u /* that of a gradient that the backward gives out */

typedef struct aot_ext_saved {
  aot_table_t head;
  /* out_held[slot]: AOT_HELD_*, for the first `capacity` slots; *out_n: how many slots there are. AOT_E_PRECONDITION
   * when the program is not partitioned. O(program). [stage-exclusive] */
  aot_status_t(AOT_CALL *held)(const struct aot_ext_saved *x, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *out_held,
                               uint32_t capacity, uint32_t *out_n);
} aot_ext_saved_t;

#endif
