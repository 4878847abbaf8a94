/* aot/pass.h - unit kind pass/1: rewrites a program. No "changed" result: an empty journal says it. */
#ifndef AOT_PASS_H
#define AOT_PASS_H

#include <aot/base.h>
#include <aot/status.h>

typedef struct aot_pass {
  aot_table_t head;
  aot_status_t(AOT_CALL *run)(const struct aot_pass *p, aot_ctx_t *ctx, aot_prog_t *prog); /* [stage-exclusive] */
} aot_pass_t;

#endif
