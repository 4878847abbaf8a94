/* The last step of every partitioner: a chosen cut becomes a FORWARD and a BACKWARD graph, through the host's edits. */
#ifndef PT_APPLY_H
#define PT_APPLY_H

#include <aot/host.h>
#include <aot/partition.h>

/* Splits the program's JOINT graph at cut->saved and erases it. Diagnoses what is wrong. O(program). */
aot_status_t pt_apply(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut);

/* Hands the split of `saved` (value indices of j) to the sink as an aot_cut_t. recompute_cost: 0 when unknown. */
struct pt_joint;
struct pt_split;
aot_status_t pt_put_cut(const struct pt_joint *j, const struct pt_split *s, double recompute_cost,
                        const aot_cut_sink_t *sink);

/* The joint graph of prog as plain arrays, with a diagnostic when there is none. Deinit it after use. */
aot_status_t pt_read_joint(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, struct pt_joint *out);

/* An error without a place. */
aot_status_t pt_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_value_t value);

#endif
