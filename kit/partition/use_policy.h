/* Policies on a program: reads where its nodes come from, applies the rules, reports rules that match nothing. */
#ifndef PT_USE_POLICY_H
#define PT_USE_POLICY_H

#include "policy.h"
#include <aot/host.h>

/* Rules out of an option's text; what is malformed becomes an error. */
aot_status_t pt_policy_read(const aot_host_t *host, aot_ctx_t *ctx, aot_str_t text, pt_policy_t *out);
/* A pt_prepare_t; policy: a pt_policy_t. */
aot_status_t pt_policy_use(const void *policy, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, jg_joint_t *j);

#endif
