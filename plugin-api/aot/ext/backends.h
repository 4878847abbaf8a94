/* aot/ext/backends.h - extension "aot.backends/1", offered by the host to stages: the pipeline's backends, each for
 * itself, in order of preference. For a stage that divides a program among them; who wants to know what the program
 * costs where it runs asks aot.cost/1.
 *
 * Backends are counted from 1. Failures have been told. [stage-exclusive] */
#ifndef AOT_EXT_BACKENDS_H
#define AOT_EXT_BACKENDS_H

#include <aot/backend.h>
#include <aot/base.h>
#include <aot/ext/cost.h>
#include <aot/status.h>

#define AOT_EXT_BACKENDS "aot.backends/1"

typedef struct aot_ext_backends {
  aot_table_t head;
  uint32_t(AOT_CALL *count)(const struct aot_ext_backends *x, aot_ctx_t *ctx);
  /* What the pipeline calls it; parts name it so (aot.part). size 0: there is no such backend. [session] */
  aot_str_t(AOT_CALL *name)(const struct aot_ext_backends *x, aot_ctx_t *ctx, uint32_t backend);
  /* As aot_backend_t has it: a verdict for every node. */
  aot_status_t(AOT_CALL *query)(const struct aot_ext_backends *x, aot_ctx_t *ctx, uint32_t backend, aot_prog_t *prog,
                                const aot_verdict_sink_t *sink);
  /* As aot_ext_cost_t has them. AOT_E_UNIMPLEMENTED: it does not tell. */
  aot_status_t(AOT_CALL *machine)(const struct aot_ext_backends *x, aot_ctx_t *ctx, uint32_t backend,
                                  aot_cost_machine_t *out);
  aot_status_t(AOT_CALL *costs)(const struct aot_ext_backends *x, aot_ctx_t *ctx, uint32_t backend, aot_prog_t *prog,
                                aot_graph_t graph, const int64_t *symbols, uint64_t n_symbols,
                                const aot_cost_sink_t *sink);
} aot_ext_backends_t;

#endif
