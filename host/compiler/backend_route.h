/* The way from a stage that asks to the pipeline's backends, which follows it: aot.memory/1, aot.cost/1.
 *
 *     stages   ..  partition  hooks  optimizer  stitch  backend
 *                  asks -----------------------------> is queried
 *
 * Memory is informed of what the backend will get: passes that are between run on the program, and are undone. */
#ifndef AOTH_BACKEND_ROUTE_H
#define AOTH_BACKEND_ROUTE_H

#include <aot/ext/cost.h>
#include <aot/ext/memory.h>
#include <sandbox/session.h>

/* From begin to end stages that query the host are answered by the backends among these stages, which outlive the
 * route. Units are created when they are first needed. */
aot_status_t aoth_backend_route_begin(aoth_session_t *s, const aoth_stage_t *const *stages, uint32_t n_stages);
void aoth_backend_route_at(aoth_session_t *s, uint32_t i); /* which of them asks from here on */
void aoth_backend_route_end(aoth_session_t *s);

/* What the host's extensions do; ctx->backends is the session's route. Backends are counted from 1, in order of
 * preference; AOTH_LAST_BACKEND: the one that takes what those before it leave. Nothing is reported: no answer is no
 * failure. AOT_E_UNIMPLEMENTED: there is no such backend, or it does not answer. */
#define AOTH_LAST_BACKEND 0u
uint32_t aoth_backend_route_count(const aot_ctx_t *ctx);
const char *aoth_backend_route_name(const aot_ctx_t *ctx, uint32_t backend); /* as the pipeline calls it; NULL: none */
aot_status_t aoth_backend_route_query(aot_ctx_t *ctx, uint32_t backend, aot_prog_t *prog,
                                      const aot_verdict_sink_t *sink);
aot_status_t aoth_backend_route_plan(aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols, uint64_t n_symbols,
                                     const aot_memory_plan_t **out);
aot_status_t aoth_backend_route_machine(aot_ctx_t *ctx, uint32_t backend, aot_cost_machine_t *out);
aot_status_t aoth_backend_route_costs(aot_ctx_t *ctx, uint32_t backend, aot_prog_t *prog, aot_graph_t graph,
                                      const int64_t *symbols, uint64_t n_symbols, const aot_cost_sink_t *sink);

#endif
