/* The partition stage: the choice as data, then the forward and backward graphs.
 *
 *     choose -> does the cut name what there is? -> [what follows from it, found by the host] -> report, show -> apply
 *     | by the host
 *
 * A unit without apply leaves the forward and backward graphs, and what the cut says beyond saved values, to the host
 * (kit/graph/make_halves.h). */
#include <compiler/partition_stage.h>

#include <aot/inline.h>
#include <ir/cut_check.h>
#include <ir/halves.h>
#include <ir/tables.h>
#include <kit/graph/make_halves.h>
#include <sandbox/call.h>
#include <process/environment.h>

typedef struct partitioner {
  aoth_session_t *s;
  const aoth_instance_t *unit;
  aot_cut_t cut; /* the host's copy */
  kit_arena_t *arena;
  uint32_t n_cuts;
  aoth_kit_host_t tables;
  jg_halves_t *halves; /* what the host makes of the cut for a unit without apply */
} partitioner_t;

static aot_status_t put_cut(const aot_cut_sink_t *sink, const aot_cut_t *cut) {
  partitioner_t *r = sink->head.self;
  aot_cut_t copy;
  if (aot_import(&copy, sizeof copy, cut) != AOT_OK) return AOT_E_TOO_NEW;
  if (++r->n_cuts > 1) return AOT_E_EXISTS;
  if ((copy.n_saved && !copy.saved) || (copy.n_recomputed && !copy.recomputed)) return AOT_E_INVALID;
  copy.saved = kit_arena_copy(r->arena, sizeof(uint32_t), copy.saved, copy.n_saved * sizeof *copy.saved);
  copy.recomputed =
      kit_arena_copy(r->arena, sizeof(uint32_t), copy.recomputed, copy.n_recomputed * sizeof *copy.recomputed);
  if ((copy.n_saved && !copy.saved) || (copy.n_recomputed && !copy.recomputed)) return AOT_E_EXHAUSTED;
  copy.struct_size = sizeof copy;
  r->cut = copy;
  return AOT_OK;
}

static aot_status_t do_choose(void *arg) {
  partitioner_t *r = arg;
  const aot_cut_sink_t sink = {.head = {.struct_size = sizeof sink, .self = r}, .put = put_cut};
  return r->unit->table.partition.choose(r->unit->self, &r->s->ctx, r->s->now.prog, &sink);
}

static aot_status_t do_apply(void *arg) {
  partitioner_t *r = arg;
  return r->unit->table.partition.apply(r->unit->self, &r->s->ctx, r->s->now.prog, &r->cut);
}

static aot_status_t do_plan(void *arg) {
  partitioner_t *r = arg;
  return jg_halves_plan(aoth_kit_host(&r->tables), &r->s->ctx, r->s->now.prog, &r->cut, &r->halves);
}

static aot_status_t do_make(void *arg) {
  partitioner_t *r = arg;
  return jg_halves_make(r->halves);
}

static void show_cut(aoth_session_t *s, const aoth_stage_t *stage, const aot_cut_t *cut) {
  aoth_watch_t *w = s->config.watch;
  const uint64_t begin = aoth_now_ns();
  if (!w || !w->cut) return;
  w->cut(w->self, s, stage, cut);
  w->spent_ns += aoth_now_ns() - begin;
}

static void report_cut(aoth_session_t *s, const aot_cut_t *cut) {
  aoth_report_number(&s->report, aot_str("saved-values"), cut->n_saved, aot_str(""));
  aoth_report_number(&s->report, aot_str("recomputed-nodes"), cut->n_recomputed, aot_str("nodes"));
  aoth_report_number(&s->report, aot_str("saved-bytes"), (double)cut->nbytes_saved, aot_str("bytes"));
}

/* The unit has only chosen: what follows from it is the host's to find. */
static aot_status_t plan_halves(aoth_session_t *s, const aoth_stage_t *stage, partitioner_t *r) {
  const aot_status_t status = aoth_call(s, stage, "the plan of the halves", do_plan, r);
  if (status == AOT_OK) jg_halves_complete(r->halves, &r->cut);
  return status == AOT_E_INVALID
             ? aoth_contract_violation(s, stage, "chose a cut from which no forward and backward graph can be built")
             : status;
}

static aot_status_t choose(aoth_session_t *s, const aoth_stage_t *stage, partitioner_t *r) {
  AOT_TRY(aoth_call(s, stage, "choose", do_choose, r));
  if (r->n_cuts != 1) return aoth_contract_violation(s, stage, "chose %u cuts instead of one", r->n_cuts);
  if (aoth_journal_count(s->now.prog)) return aoth_contract_violation(s, stage, "edited the program during choose");
  const char *wrong = aoth_cut_wrong(s->now.prog, &r->cut);
  return wrong ? aoth_contract_violation(s, stage, "%s", wrong) : AOT_OK;
}

static aot_status_t divide(aoth_session_t *s, const aoth_stage_t *stage, partitioner_t *r,
                           aoth_joint_record_t **out_joint) {
  const int by_host = !r->unit->table.partition.apply;
  AOT_TRY(choose(s, stage, r));
  if (by_host) AOT_TRY(plan_halves(s, stage, r));
  report_cut(s, &r->cut);
  show_cut(s, stage, &r->cut);
  *out_joint = aoth_joint_record_create(s->now.prog, aoth_graph_graph_find(s->now.prog, AOT_GRAPH_JOINT));
  if (!*out_joint) return s->status = AOT_E_EXHAUSTED;
  return aoth_call(s, stage, "apply", by_host ? do_make : do_apply, r);
}

aot_status_t aoth_stage_divide(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *unit,
                               aoth_joint_record_t **out_joint) {
  partitioner_t r = {.s = s, .unit = unit, .arena = kit_arena_create()};
  if (!r.arena) return s->status = AOT_E_EXHAUSTED;
  const aot_status_t status = divide(s, stage, &r, out_joint);
  jg_halves_destroy(r.halves);
  kit_arena_destroy(r.arena);
  return status;
}
