#include <trainer/trial/memory_plan.h>

#include <compiler/backend_route.h>
#include <sandbox/call.h>
#include <sandbox/extension.h>
#include <aot/inline.h>
#include <string.h>

/* ---- a unit's table ---- */

static int offered(const aoth_instance_t *u, aot_ext_memory_t *out) {
  return aoth_instance_extension(u, AOT_EXT_MEMORY, out, sizeof *out) == AOT_OK && out->plan;
}

typedef struct query {
  aoth_session_t *s;
  const aoth_instance_t *unit;
  aot_prog_t *prog;
  const int64_t *symbols;
  uint64_t n_symbols;
  int is_offered;
  const aot_memory_plan_t *given;
  aot_ext_memory_t ext;
} query_t;

static aot_status_t do_ask(void *arg) {
  query_t *a = arg;
  a->is_offered = offered(a->unit, &a->ext);
  if (!a->is_offered || !a->prog) return AOT_OK;
  return a->ext.plan(&a->ext, &a->s->ctx, a->prog, a->symbols, a->n_symbols, &a->given);
}

/* ---- checking what it says ---- */

/* No smaller row was ever known. */
#define LEAST_STEP (2 * sizeof(uint32_t))
#define LEAST_BUFFER (4 * sizeof(uint32_t) + 2 * sizeof(uint64_t))

static const char *check_counts(const aot_memory_plan_t *p) {
  if ((p->n_steps && !p->steps) || (p->n_buffers && !p->buffers)) return "tells a memory plan without its rows";
  if (p->n_steps > UINT32_MAX || p->n_forward_steps > p->n_steps || (p->n_steps && p->peak_step >= p->n_steps))
    return "tells a memory plan with impossible steps";
  if (p->n_buffers > UINT32_MAX) return "tells a memory plan with impossible buffers";
  if ((p->n_steps && p->step_stride < LEAST_STEP) || (p->n_buffers && p->buffer_stride < LEAST_BUFFER))
    return "tells a memory plan whose rows have no size";
  return NULL;
}

static const char *check_buffers(const aot_memory_plan_t *p) {
  for (uint64_t i = 0; i < p->n_buffers; i++) {
    const aot_memory_buffer_t *b = &p->buffers[i];
    if (b->kind < AOT_MEMORY_TEMPORARY || b->kind > AOT_MEMORY_INPUT) return "tells of a buffer of an unknown kind";
    if (b->first > b->last || b->last >= p->n_steps) return "tells of a buffer outside the steps of its memory plan";
    if (b->place != UINT64_MAX && (b->nbytes > p->arena_nbytes || b->place > p->arena_nbytes - b->nbytes))
      return "tells of a buffer outside the arena of its memory plan";
  }
  return NULL;
}

static aot_status_t copy_plan(const aot_memory_plan_t *given, kit_arena_t *arena, aot_memory_plan_t *out,
                              const char **wrong) {
  *wrong = "answered without a memory plan";
  if (!given) return AOT_OK;
  *wrong = "tells a memory plan that this host cannot use";
  if (aot_import(out, sizeof *out, given) != AOT_OK) return AOT_OK;
  *wrong = check_counts(out);
  if (*wrong) return AOT_OK;
  aot_memory_step_t *steps = kit_arena_alloc(arena, sizeof(uint32_t), ((size_t)out->n_steps + 1) * sizeof *steps);
  aot_memory_buffer_t *buffers =
      kit_arena_alloc(arena, sizeof(uint64_t), ((size_t)out->n_buffers + 1) * sizeof *buffers);
  if (!steps || !buffers) return AOT_E_EXHAUSTED;
  aot_import_rows(steps, sizeof *steps, out->steps, out->step_stride, out->n_steps);
  aot_import_rows(buffers, sizeof *buffers, out->buffers, out->buffer_stride, out->n_buffers);
  out->steps = steps;
  out->buffers = buffers;
  out->step_stride = sizeof *steps;
  out->buffer_stride = sizeof *buffers;
  *wrong = check_buffers(out);
  return AOT_OK;
}

/* ---- asking ---- */

static aot_status_t no_plan(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "memory.unit",
                   "%s does not tell what memory a program takes", stage->use);
  aoth_sink_line(s->config.sink, "hint: backends and partitioners may (extension %s); backend-cpu does",
                 AOT_EXT_MEMORY);
  return AOT_E_UNIMPLEMENTED;
}

static aot_status_t ask(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *unit, kit_arena_t *arena,
                        aot_memory_plan_t *out) {
  query_t a = {.s = s, .unit = unit, .prog = s->now.prog};
  const char *wrong;
  const aot_status_t status = aoth_call(s, stage, "memory", do_ask, &a);
  if (status != AOT_OK && s->outcome == AOTH_CALL_TOLD) return status; /* it knows no answer: nothing failed */
  if (status != AOT_OK) return aoth_session_fail(s, stage);
  if (!a.is_offered) return no_plan(s, stage);
  AOT_TRY(copy_plan(a.given, arena, out, &wrong));
  if (!wrong) return AOT_OK;
  aoth_contract_violation(s, stage, "%s", wrong);
  return aoth_session_fail(s, stage);
}

aot_status_t aoth_session_memory(aoth_session_t *s, const aoth_stage_t *stage, const aoth_stage_t *backend,
                                 kit_arena_t *arena, aot_memory_plan_t *out) {
  aoth_instance_t unit;
  memset(out, 0, sizeof *out);
  AOT_TRY(aoth_backend_route_begin(s, &backend, backend != NULL));
  aot_status_t status = aoth_instance_create(s, stage, &unit);
  if (status == AOT_OK) {
    status = ask(s, stage, &unit, arena, out);
    aoth_instance_destroy(s, stage, &unit);
  }
  aoth_backend_route_end(s);
  return status;
}

int aoth_unit_offers_memory(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_instance_t unit;
  query_t a = {.s = s, .unit = &unit};
  if (aoth_instance_create(s, stage, &unit) != AOT_OK) return 0;
  if (aoth_call(s, stage, "get_ext", do_ask, &a) != AOT_OK) aoth_session_fail(s, stage);
  aoth_instance_destroy(s, stage, &unit);
  return a.is_offered;
}
