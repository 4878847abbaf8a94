/* aot/partition.h - unit kind partition/1: divides a joint graph into forward and backward.
 *
 * The choice is data, so that two partitioners can be compared; applying it is a second call, which the host makes
 * itself for a unit whose `apply` is NULL: a partitioner is then its choice of what to save, and nothing else. After
 * apply the program has a FORWARD graph (outputs: the joint's forward outputs, then SAVED slots) and a BACKWARD graph
 * (inputs: the leaves that it reads, SAVED slots, tangents; outputs: gradients), and no JOINT graph. A leaf that the
 * backward reads is an input of its own with the leaf's role, unless the forward updates it (it has an UPDATE output):
 * then its old value is a SAVED slot. The host checks that the backward reads nothing else. */
#ifndef AOT_PARTITION_H
#define AOT_PARTITION_H

#include <aot/base.h>
#include <aot/status.h>

typedef struct aot_cut {
  uint32_t struct_size;
  uint32_t n_saved;
  uint32_t n_recomputed;
  uint32_t reserved;
  /* values of the joint graph, in slot order; graph inputs reach the backward by themselves */
  const aot_value_t *saved;
  /* What follows from the above; with an `apply` that is NULL the host finds it. */
  const aot_node_t *recomputed; /* forward nodes that the backward runs again */
  uint64_t nbytes_saved;        /* activations only: graph inputs are free */
  double recompute_cost;        /* in the partitioner's own unit, 0: unknown */
} aot_cut_t;

typedef struct aot_cut_sink {
  aot_table_t head;
  aot_status_t(AOT_CALL *put)(const struct aot_cut_sink *sink, const aot_cut_t *cut); /* copies; once */
} aot_cut_sink_t;

typedef struct aot_partition {
  aot_table_t head;
  aot_status_t(AOT_CALL *choose)(const struct aot_partition *p, aot_ctx_t *ctx, aot_prog_t *prog,
                                 const aot_cut_sink_t *sink); /* [stage-exclusive] edits nothing */
  /* NULL: by the host. It copies what is saved of a larger tensor, so that a slot holds no more than its elements. A
   * choice that would run twice what may run once (random draws, effects, collectives), or that saves what only the
   * backward knows, is the unit's failure, told at the value. aot/ext/joint_halves.h is the same for an `apply` that
   * does more. [stage-exclusive] */
  aot_status_t(AOT_CALL *apply)(const struct aot_partition *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut);
} aot_partition_t;

#endif
