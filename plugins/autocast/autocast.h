/* Mixed precision as torch.autocast has it: casts in front of operators, by the list that an operator is on, and
 * the dtypes of all results after that again. Parameters stay what they are. */
#ifndef AC_AUTOCAST_H
#define AC_AUTOCAST_H

#include <aot/host.h>

typedef struct ac_options {
  int32_t dtype;  /* the low precision: AOT_BF16 or AOT_F16 */
  int32_t device; /* AOT_DEVICE_*, whose lists count */
} ac_options_t;

typedef struct ac_counts {
  uint64_t lower, f32, casts; /* nodes in the low precision; nodes held in float32; casts put in */
} ac_counts_t;

/* Diagnoses. O(nodes + operands). */
aot_status_t ac_run(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const ac_options_t *options,
                    ac_counts_t *out);

#endif
