/* aot/ext/ranks.h - extension "aot.ranks/1", offered by the host: the ranks that run this pipeline. */
#ifndef AOT_EXT_RANKS_H
#define AOT_EXT_RANKS_H

#include <aot/base.h>
#include <aot/communicator.h>
#include <aot/status.h>

#define AOT_EXT_RANKS "aot.ranks/1"

/* How operators name groups of ranks. Of a mesh with n columns, in the order of ranks: "rows:n", ranks with the same r
 * / n, and "columns:n", those with the same r % n. */
#define AOT_RANKS_ALL "world"
#define AOT_RANKS_ROWS "rows:"
#define AOT_RANKS_COLUMNS "columns:"

typedef struct aot_run_ranks {
  uint32_t struct_size;
  uint32_t rank, n_ranks; /* 0 and 1 where nobody else runs it */
  uint32_t reserved;
  const aot_communicator_t *communicator; /* [session]; NULL: there is one rank */
  aot_group_t *group;                     /* all ranks */
  /* Minor 6. The host's memory as a device, whose queues of kind COLLECTIVE go on by themselves; NULL: not said */
  const aot_device_t *device;
} aot_run_ranks_t;

typedef struct aot_ext_ranks {
  aot_table_t head;
  /* set out->struct_size first [host-main] */
  aot_status_t(AOT_CALL *get)(const struct aot_ext_ranks *x, aot_ctx_t *ctx, aot_run_ranks_t *out);
  /* A call of the program takes so many of the draws that its offset counts, and moves it on by those of all ranks:
   * rank r begins r times so many behind the run's offset, as if one rank took the ranks' batches one after the other.
   * [stage-exclusive] */
  aot_status_t(AOT_CALL *draws)(const struct aot_ext_ranks *x, aot_ctx_t *ctx, uint64_t n);
  /* Minor 6. Leaves of the program that are parts (aot.leaf-part/1) are so many, of which rank r has part r modulo n;
   * not called: as many as there are ranks. [stage-exclusive] */
  aot_status_t(AOT_CALL *parts)(const struct aot_ext_ranks *x, aot_ctx_t *ctx, uint32_t n);
} aot_ext_ranks_t;

#endif
