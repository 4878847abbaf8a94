#include <compiler/backend_query.h>

#include <aot/inline.h>

typedef struct keep_state {
  const aoth_watch_t *watch;
  const aoth_stage_t *stage;
  const aot_verdict_sink_t *sink; /* that asked */
} keep_state_t;

static aot_status_t put(const aot_verdict_sink_t *sink, const aot_verdict_t *verdict) {
  const keep_state_t *k = sink->head.self;
  aot_verdict_t v;
  if (aot_import(&v, sizeof v, verdict) != AOT_OK) return AOT_E_TOO_NEW;
  if (v.accepted && !k->watch->takes(k->watch->self, k->stage, v.node)) {
    v.accepted = 0;
    v.reason = aot_str("it is kept from this backend");
  }
  return k->sink->put(k->sink, &v);
}

aot_status_t aoth_backend_query(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend,
                                aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const aot_backend_t *table = &backend->table.backend;
  if (!s->config.watch || !s->config.watch->takes) return table->query(backend->self, &s->ctx, prog, sink);
  keep_state_t k = {s->config.watch, stage, sink};
  const aot_verdict_sink_t own = {.head = {.struct_size = sizeof own, .self = &k}, .put = put};
  return table->query(backend->self, &s->ctx, prog, &own);
}
