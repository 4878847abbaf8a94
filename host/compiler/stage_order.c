/* The stages of a pipeline in the order in which they run: those of its list, and those that the run section asks
 * for. */
#include <aot/inline.h>
#include <compiler/backend_route.h>
#include <sandbox/cancel.h>
#include <compiler/devices.h>
#include <config/options.h>
#include <config/run_section.h>
#include <compiler/several_backends.h>
#include <compiler/stage.h>
#include <string.h>

/* Backends that stand one after the other, in one list; at least 1. */
static uint32_t count_together(const aoth_stage_t *const *stages, uint32_t n_stages) {
  uint32_t n = 1;
  while (n < n_stages && stages[n] == stages[0] + n) n++;
  n = aoth_count_backends(stages[0], n);
  return n ? n : 1;
}

/* n_run: of n_stages; those after are there to be queried. assign: divides what several backends run; NULL: each runs
 * alone. */
static aot_status_t run_in_order(aoth_session_t *s, const aoth_stage_t *const *stages, uint32_t n_stages,
                                 uint32_t n_run, const aoth_stage_t *assign) {
  AOT_TRY(aoth_backend_route_begin(s, stages, n_stages));
  aoth_compiling_begin(s);
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0, n = 1; i < n_run && status == AOT_OK; i += n) {
    status = aoth_session_go_on(s);
    if (status != AOT_OK) break;
    n = assign ? count_together(stages + i, n_run - i) : 1;
    aoth_backend_route_at(s, i);
    if (aoth_count_backends(stages[i], 1) && s->config.bundle_dir)
      s->config.note_lowering(s, stages + i, n, n > 1 ? assign : NULL);
    status = n == 1 ? aoth_session_run_stage(s, stages[i]) : aoth_session_lower_to_several(s, stages[i], n, assign);
  }
  aoth_backend_route_end(s);
  if (status == AOT_OK) status = aoth_session_go_on(s); /* what is compiled is not to be stored either */
  return aoth_compiling_end(s, status);
}

/* A pipeline that trains with one graph may also be run by halves (verify, the library): what is planned is what
 * runs. */
static void tell_partitions(const aoth_pipeline_t *p, int32_t step) {
  for (uint32_t i = 0; i < p->n_stages; i++)
    if (strcmp(p->stages[i].unit->kind, "partition/1") == 0)
      aoth_option_set(&p->stages[i], "step", (aot_opt_value_t){.s = aot_str(aoth_steps[step])});
}

/* Of the step graph: it follows what makes one, and is left out where the graphs stay separate. */
static int is_of_step(const aoth_stage_t *stage) {
  return stage->unit->has_contract && (stage->unit->contract.needs.known & AOTH_PROP_STITCHED);
}

aot_status_t aoth_pipeline_run_stages(aoth_session_t *s, const aoth_pipeline_t *p, uint32_t flags) {
  const aoth_stage_t *optimizer =
      (flags & AOTH_STAGES_OPTIMIZER) && p->run.train.optimizer.unit ? &p->run.train.optimizer : NULL;
  const aoth_stage_t *stitch =
      optimizer && (flags & AOTH_STAGES_STITCH) && p->run.train.stitch.unit ? &p->run.train.stitch : NULL;
  const aoth_stage_t *autocast =
      (flags & AOTH_STAGES_OPTIMIZER) && p->run.train.autocast.unit ? &p->run.train.autocast : NULL;
  const aoth_stage_t **order = kit_arena_alloc(s->arena, sizeof(void *), ((size_t)p->n_stages + 3) * sizeof *order);
  uint32_t n = 0, first_backend = UINT32_MAX;
  if (!order) return AOT_E_EXHAUSTED;
  if (!(flags & AOTH_STAGES_NO_BACKEND)) AOT_TRY(aoth_session_take_devices(s, p));
  if (p->run.train.stitch.unit) tell_partitions(p, stitch ? AOTH_STEP_ONE_GRAPH : AOTH_STEP_THREE_GRAPHS);
  const int has_step = stitch != NULL || !p->run.train.present;
  for (uint32_t i = 0; i < p->n_stages; i++) {
    const int is_backend = strcmp(p->stages[i].unit->kind, "backend/2") == 0;
    const int is_behind = is_backend || (has_step && is_of_step(&p->stages[i]));
    if (autocast && p->run.train.autocast_at == i) order[n++] = autocast;
    if (is_behind && optimizer) order[n++] = optimizer;
    if (is_behind && stitch) order[n++] = stitch;
    if (is_behind) optimizer = stitch = NULL;
    if (is_backend && first_backend == UINT32_MAX) first_backend = n;
    if (p->assign.unit && p->stages[i].unit == p->assign.unit) continue; /* it runs with the backends */
    if (!has_step && is_of_step(&p->stages[i])) continue;
    order[n++] = &p->stages[i];
  }
  if (optimizer) order[n++] = optimizer;
  return run_in_order(s, order, n, (flags & AOTH_STAGES_NO_BACKEND) && first_backend < n ? first_backend : n,
                      p->assign.unit ? &p->assign : NULL);
}

aot_status_t aoth_session_run_backends(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n_stages,
                                       const aoth_stage_t *assign) {
  const aoth_stage_t **order = kit_arena_alloc(s->arena, sizeof(void *), ((size_t)n_stages + 1) * sizeof *order);
  if (!order) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n_stages; i++) order[i] = &stages[i];
  return run_in_order(s, order, n_stages, n_stages, assign);
}

aot_status_t aoth_session_run_list(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n_stages) {
  return aoth_session_run_backends(s, stages, n_stages, NULL);
}
