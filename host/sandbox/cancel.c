#include <sandbox/cancel.h>

int aoth_is_cancelled(const aot_ctx_t *ctx) { return ctx->cancelled || (ctx->asked && atomic_load(ctx->asked)); }

/* First the flag, then the look: code that ends meanwhile looks in the other order, so that one of both sees it. */
int aoth_session_cancel(aoth_session_t *s) {
  atomic_store(&s->cancelled, 1);
  return atomic_load(&s->n_compiling) > 0;
}

aot_status_t aoth_session_go_on(aoth_session_t *s) {
  if (!aoth_is_cancelled(&s->ctx)) return AOT_OK;
  if (s->n_records)
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "stage.cancelled",
                     "cancelled after stage %s; later stages were skipped", s->records[s->n_records - 1].name);
  else
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "stage.cancelled", "cancelled before the first stage");
  return s->status = AOT_E_CANCELLED;
}

void aoth_compiling_begin(aoth_session_t *s) { atomic_fetch_add(&s->n_compiling, 1); }

aot_status_t aoth_compiling_end(aoth_session_t *s, aot_status_t status) {
  const int is_outermost = atomic_fetch_sub(&s->n_compiling, 1) == 1;
  return is_outermost && status == AOT_OK ? aoth_session_go_on(s) : status;
}
