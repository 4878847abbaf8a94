/* aot/ext/trial.h - extension "aot.trial/1", offered by the host: edits that are taken back, for units that ask what a
 * program would be like (aot.memory/1) before they choose.
 *
 *     trial->begin(trial, ctx, prog);  edit as in apply();  memory->plan(..);  trial->undo(trial, ctx, prog);
 *
 * After undo the program is as it was at begin, ids included, and what was counted as edited since is not. */
#ifndef AOT_EXT_TRIAL_H
#define AOT_EXT_TRIAL_H

#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_TRIAL "aot.trial/1"

typedef struct aot_ext_trial {
  aot_table_t head;
  /* Trials nest. One that is open when the call into the unit ends is undone; behind AOT_OK that is told as
   * misbehaviour. The program is the one that the call is about; AOT_E_PRECONDITION otherwise, and for undo without
   * begin. O(edits). [stage-exclusive] */
  aot_status_t(AOT_CALL *begin)(const struct aot_ext_trial *x, aot_ctx_t *ctx, aot_prog_t *prog);
  aot_status_t(AOT_CALL *undo)(const struct aot_ext_trial *x, aot_ctx_t *ctx, aot_prog_t *prog);
} aot_ext_trial_t;

#endif
