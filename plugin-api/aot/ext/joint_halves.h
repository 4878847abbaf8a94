/* aot/ext/joint_halves.h - extension "aot.joint-halves/1", offered by the host: makes the halves of a joint graph, for
 * partitioners that do more in their apply than that. One whose `apply` is NULL gets the same done for it. */
#ifndef AOT_EXT_JOINT_HALVES_H
#define AOT_EXT_JOINT_HALVES_H

#include <aot/base.h>
#include <aot/partition.h>
#include <aot/status.h>

#define AOT_EXT_JOINT_HALVES "aot.joint-halves/1"

typedef struct aot_ext_joint_halves {
  aot_table_t head;
  /* The program's JOINT graph becomes FORWARD and BACKWARD as partition.h says. Of the cut, saved values count alone;
   * those that the backward does not read get no slot. AOT_E_INVALID: no halves can be made of this cut; the host has
   * told why. The program is the one that the call is about; AOT_E_PRECONDITION otherwise. O(program).
   * [stage-exclusive] */
  aot_status_t(AOT_CALL *make)(const struct aot_ext_joint_halves *x, aot_ctx_t *ctx, aot_prog_t *prog,
                               const aot_cut_t *cut);
} aot_ext_joint_halves_t;

#endif
