/* What every partitioner does the same way: reading the joint graph before the choice, and, where equal nodes were
 * merged before it, merging them in the program, too, before the host makes the forward and backward graphs. */
#ifndef PT_APPLY_H
#define PT_APPLY_H

#include "kit/graph/joint_error.h"
#include <aot/partition.h>

/* What a partitioner decides: fills out_saved (room for n_values) with values of j to keep. 0; -1: impossible,
 * *out_value is at fault; -2: no memory; PT_TOLD: impossible, and it has said why; PT_STOPPED: it was requested to
 * stop; PT_EXHAUSTED: no memory, and that has been said. */
#define PT_TOLD (-3)
#define PT_STOPPED (-4)
#define PT_EXHAUSTED (-5)
struct jg_joint;
typedef int (*pt_pick_t)(const void *self, const struct jg_joint *j, uint32_t *out_saved, uint32_t *out_n_saved,
                         uint32_t *out_value);
/* What is done to the arrays before; node_flags are then the checkpoint tags of the model. Diagnoses. */
typedef aot_status_t (*pt_prepare_t)(const void *self, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog,
                                     struct jg_joint *j);

typedef struct pt_how {
  pt_pick_t pick;
  const void *self;     /* of pick */
  pt_prepare_t prepare; /* NULL: nothing */
  const void *prepare_self;
  int merge_equal; /* common subexpressions are one value (equal_nodes.h) */
} pt_how_t;

/* The first half of every partitioner: reads the joint graph, queries how->pick, hands the cut to the sink and reports
 * its numbers (saved-bytes, saved-values, recomputed-nodes; merged-nodes; tagged-but-stored where checkpoint tags ask
 * to run again what must not). Diagnoses what is wrong. */
aot_status_t pt_choose(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink,
                       const pt_how_t *how);

/* The second half: merges equal nodes if how says so, and has the host divide the program's JOINT graph at cut->saved.
 * Where there is nothing to merge, aot_partition_t.apply may be NULL as well. O(program). */
aot_status_t pt_apply(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut,
                      const pt_how_t *how);

/* kit/partition/tags.h with the region tags of the program; *out_n counts tagged nodes that are stored all the
 * same. */
aot_status_t pt_resolve_tags(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, struct jg_joint *j,
                             uint32_t *out_n);

#endif
