#include <cli/run/run_memory.h>

#include <trainer/trial/memory_plan.h>
#include <cli/inspect/memory_view.h>
#include <string.h>

enum { MOST_MODULES = 12, MOST_NAMED = 6 };

static const aoth_stage_t *backend_of(const aoth_pipeline_t *p) {
  for (uint32_t i = p->n_stages; i-- > 0;)
    if (p->stages[i].unit && strcmp(p->stages[i].unit->kind, "backend/2") == 0) return &p->stages[i];
  return NULL;
}

static int has_nodes(aoth_session_t *s) {
  const aoth_record_t *records;
  const uint32_t n = aoth_session_records(s, &records);
  for (uint32_t i = 0; i < n; i++)
    if (records[i].is_cached) return 0;
  return n > 0;
}

static aot_status_t tell(const aoth_run_t *r, const aoth_memory_view_t *v, kit_arena_t *arena) {
  char held[AOTH_BYTES_SIZE], block[AOTH_BYTES_SIZE], alive[AOTH_BYTES_SIZE], share[AOTH_BYTES_SIZE];
  aoth_module_share_t *rows;
  kit_text_t text = {0};
  uint32_t n = 0;
  AOT_TRY(aoth_memory_by_module(v, MOST_MODULES, arena, &rows, &n));
  for (uint32_t i = 0; i < n && i < MOST_NAMED; i++)
    kit_text_f(&text, "%s%s %s", i ? ", " : "", rows[i].module[0] ? rows[i].module : "without a module",
               aoth_bytes_text(rows[i].nbytes, share));
  if (!text.failed)
    aoth_sink_report(
        r->cli->sink, AOT_SEVERITY_NOTE, NULL, "run.memory",
        "a step takes %s beside parameters and optimizer states: an arena of %s, and what graphs hand on; of "
        "the %s alive at its peak: %s",
        aoth_bytes_text(v->plan.peak_nbytes, held), aoth_bytes_text(v->plan.arena_nbytes, block),
        aoth_bytes_text(v->peak_alive, alive), text.data);
  if (!text.failed)
    aoth_sink_line(r->cli->sink, "hint: partition-mincut with `objective: memory` and a `budget` recomputes more and "
                                 "takes less; a budget that cannot be kept names the least that can");
  kit_text_deinit(&text);
  return AOT_OK;
}

void aoth_run_tell_memory(const aoth_run_t *r) {
  const aoth_stage_t *backend = r->pipeline ? backend_of(r->pipeline) : NULL;
  kit_arena_t *arena = kit_arena_create();
  aot_memory_plan_t plan;
  aoth_memory_view_t view;
  const int is_named = has_nodes(r->session);
  if (!is_named) aoth_sink_line(r->cli->sink, "hint: with --no-cache what holds the memory is named");
  if (arena && backend && is_named && aoth_unit_offers_memory(r->session, backend) &&
      aoth_session_memory(r->session, backend, backend, arena, &plan) == AOT_OK &&
      aoth_memory_view_make(aoth_session_prog(r->session), &plan, backend->name, arena, &view) == AOT_OK)
    tell(r, &view, arena);
  kit_arena_destroy(arena);
}
