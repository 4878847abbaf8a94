#include <sandbox/isolation.h>

int aoth_has_foreign_opset(const aoth_session_t *s) {
  for (uint32_t i = 0; i < s->n_opsets; i++)
    if (!aoth_plugin_is_own(s->opsets[i].unit->plugin)) return 1;
  return 0;
}

double aoth_stage_timeout(const aoth_session_t *s, const aoth_stage_t *stage) {
  return stage->timeout > 0 ? stage->timeout : s->config.timeout;
}

int aoth_stage_is_isolated(const aoth_session_t *s, const aoth_stage_t *stage) {
  if (!aoth_kind_in(stage->unit->kind, "pass/1 partition/1")) return 0;
  if (stage->isolate != AOTH_ISOLATE_UNSAID) return stage->isolate == AOTH_ISOLATE_WORKER;
  if (s->config.isolate != AOTH_ISOLATE_UNSAID) return s->config.isolate == AOTH_ISOLATE_WORKER;
  return aoth_stage_timeout(s, stage) > 0 || !aoth_plugin_is_own(stage->unit->plugin) || aoth_has_foreign_opset(s);
}
