/* Running one stage.
 *
 *     needs, refuses -> create -> journal { run | choose, apply | query, decompose, compile } -> stage_check.c
 *                                   |                                                              |
 *                                   +---- any failure: undo, bundle, status 3                     commit, new
 *                                   properties
 *
 * The program is as before the stage until everything agrees. */
#include <compiler/stage.h>

#include <aot/ext/cache.h>
#include <aot/inline.h>
#include <base/file.h>
#include <ir/halves.h>
#include <ir/ports_kept.h>
#include <compiler/backend_stage.h>
#include <sandbox/call.h>
#include <process/environment.h>
#include <sandbox/extension.h>
#include <sandbox/isolation.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <compiler/partition_stage.h>
#include <sandbox/replay_check.h>
#include <compiler/stage_check.h>
#include <sandbox/worker.h>
#include <string.h>
#include <sys/resource.h>

uint64_t aoth_count_nodes(aot_prog_t *p) {
  uint64_t count = 0;
  for (uint32_t g = 1; p && g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) count++;
  return count;
}

/* ---- what the compile cache has to know ---- */

typedef struct asking_cache {
  aoth_session_t *s;
  const aoth_instance_t *unit;
  const aot_ext_cache_t *ext;
  aot_str_t reason;
} asking_cache_t;

static aot_status_t do_why_not(void *arg) {
  asking_cache_t *a = arg;
  return a->ext->why_not(a->ext, &a->s->ctx, &a->reason);
}

/* A unit's reason against keeping its result is remembered for the session. */
static void ask_why_not(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *unit) {
  aot_ext_cache_t ext;
  if (aoth_instance_extension(unit, AOT_EXT_CACHE, &ext, sizeof ext) != AOT_OK || !ext.why_not) return;
  asking_cache_t a = {s, unit, &ext, {NULL, 0}};
  const aot_status_t status = aoth_call(s, stage, "why_not", do_why_not, &a);
  if (status == AOT_OK && a.reason.size == 0) return;
  kit_text_t t = {0};
  kit_text_f(&t, "%s: %.*s", stage->name, status == AOT_OK ? (int)a.reason.size : 7,
             status == AOT_OK ? a.reason.data : "failed ");
  s->cache_why_not = kit_arena_text(s->arena, t.data ? t.data : "", t.size);
  kit_text_deinit(&t);
}

/* ---- passes and partitions ---- */

typedef struct run_state {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  aoth_instance_t unit;       /* no unit: it is made where it runs, in a worker */
  aoth_joint_record_t *joint; /* what a partition divides; NULL: it is a pass */
  aoth_ports_t *ports;        /* before a pass; NULL: it is a partition */
} run_state_t;

static int is_pass(const aoth_stage_t *stage) { return strcmp(stage->unit->kind, "pass/1") == 0; }

static aot_status_t do_pass(void *arg) {
  run_state_t *r = arg;
  return r->unit.table.pass.run(r->unit.self, &r->s->ctx, r->s->now.prog);
}

static aot_status_t run_unit(run_state_t *r) {
  return is_pass(r->stage) ? aoth_call(r->s, r->stage, "run", do_pass, r)
                           : aoth_stage_divide(r->s, r->stage, &r->unit, &r->joint);
}

/* All that a stage asks of its unit, from the beginning to the end. */
static aot_status_t do_in_worker(void *arg) {
  run_state_t *r = arg;
  AOT_TRY(aoth_instance_create(r->s, r->stage, &r->unit));
  const aot_status_t status = run_unit(r);
  if (status == AOT_OK) ask_why_not(r->s, r->stage, &r->unit);
  aoth_instance_destroy(r->s, r->stage, &r->unit);
  AOT_TRY(status);
  if (aoth_has_foreign_opset(r->s)) AOT_TRY(aoth_stage_check_types(r->s, r->stage));
  return aoth_stage_check_memory(r->s, r->stage); /* the parent gets only the edits that were made */
}

/* What is compared with afterwards is recorded before a worker can know that it will be. */
static aot_status_t run_in_worker(run_state_t *r) {
  aot_prog_t *p = r->s->now.prog;
  const aot_graph_t joint = is_pass(r->stage) ? (aot_graph_t){AOT_NO_ID} : aoth_graph_graph_find(p, AOT_GRAPH_JOINT);
  if (joint.id != AOT_NO_ID) r->joint = aoth_joint_record_create(p, joint);
  if (joint.id != AOT_NO_ID && !r->joint) return r->s->status = AOT_E_EXHAUSTED;
  return aoth_worker_run(r->s, r->stage, do_in_worker, r);
}

/* What the contract and the properties do not say: a pass keeps the ports, forward and backward graphs compute what
 * the joint did. */
static aot_status_t check_effect(aoth_session_t *s, const aoth_stage_t *stage, const run_state_t *r) {
  const uint32_t gives = stage->unit->has_contract ? stage->unit->contract.gives.known : 0;
  if (r->ports && aoth_ports_check(s->now.prog, r->ports, gives) != AOT_OK)
    return aoth_contract_violation(s, stage, "changed ports that its contract does not list");
  if (r->joint && aoth_halves_check(s->now.prog, r->joint) != AOT_OK)
    return aoth_contract_violation(s, stage, "partitioned the program into graphs that compute different results");
  return AOT_OK;
}

/* A watcher (config.watch) sees the program before and after the stage. */
static aot_status_t show_edits(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_watch_t *w = s->config.watch;
  if (!w || !w->edited) return AOT_OK;
  const uint64_t begin = aoth_now_ns();
  const aot_status_t status = w->edited(w->self, s, stage);
  w->spent_ns += aoth_now_ns() - begin;
  return status;
}

static aot_status_t run_rewriter(run_state_t *r, uint64_t *out_edits) {
  aoth_session_t *s = r->s;
  const aoth_stage_t *stage = r->stage;
  aot_status_t status = aoth_session_journal_begin(s);
  if (is_pass(stage)) r->ports = aoth_ports_record(s->now.prog);
  if (status == AOT_OK && is_pass(stage) && !r->ports) status = s->status = AOT_E_EXHAUSTED;
  if (status == AOT_OK) status = r->unit.unit ? run_unit(r) : run_in_worker(r);
  *out_edits = aoth_journal_count(s->now.prog);
  if (status == AOT_OK) status = aoth_stage_check(s, stage);
  if (status == AOT_OK) status = check_effect(s, stage, r);
  if (status == AOT_OK) status = aoth_stage_check_replay(s, stage);
  if (status == AOT_OK && (r->unit.unit || !aoth_has_foreign_opset(s))) status = aoth_stage_check_types(s, stage);
  if (status == AOT_OK) status = show_edits(s, stage);
  if (status == AOT_OK) status = aoth_stage_commit(s, stage);
  if (status != AOT_OK) status = aoth_session_fail(s, stage);
  aoth_joint_record_destroy(r->joint);
  aoth_ports_destroy(r->ports);
  return status;
}

/* ---- a stage ---- */

/* Records outlive the pipeline that the texts of a stage belong to. */
static const char *keep(aoth_session_t *s, const char *text) {
  const char *copy = kit_arena_text(s->arena, text, strlen(text));
  return copy ? copy : "";
}

static uint64_t peak_bytes(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0; /* Linux counts KiB */
}

/* The variables that the unit read, once each: what a cached result depends on. */
static void keep_environment(aoth_session_t *s) {
  for (uint32_t i = 0; i < s->report.n_env; i++) {
    uint32_t k = 0;
    while (k < s->n_env && strcmp(s->env[k].name, s->report.env[i].name) != 0) k++;
    if (k < s->n_env) continue;
    aoth_env_read_t *rows = aoth_session_room(s, s->env, s->n_env, &s->env_capacity, sizeof *rows);
    if (!rows) return;
    s->env = rows;
    rows[s->n_env++] = s->report.env[i];
  }
}

void aoth_session_record(aoth_session_t *s, const aoth_stage_t *stage, uint64_t begin_ns, uint64_t before,
                         uint64_t edits) {
  aoth_record_t *rows = aoth_session_room(s, s->records, s->n_records, &s->record_capacity, sizeof *rows);
  keep_environment(s);
  if (!rows) return;
  s->records = rows;
  const uint64_t after = aoth_count_nodes(s->now.prog);
  rows[s->n_records++] = (aoth_record_t){
      .unit = keep(s, stage->use),
      .name = keep(s, stage->name),
      .plugin = stage->unit ? stage->unit->plugin->note.id : "aothost",
      .version = stage->unit ? stage->unit->version : AOT_VERSION,
      .number = stage->number,
      .n_numbers = s->report.n_numbers,
      .ms = (double)(aoth_now_ns() - begin_ns) / 1e6,
      .nodes_before = before,
      .nodes_after = after,
      .edits = edits,
      .peak_bytes = peak_bytes(),
      .numbers = s->report.numbers,
  };
  kit_text_t args = {0};
  kit_text_f(&args, "\"plugin\": ");
  kit_text_json(&args, aot_str(rows[s->n_records - 1].plugin));
  kit_text_f(&args, ", \"nodes_before\": %llu, \"nodes_after\": %llu, \"edits\": %llu", (unsigned long long)before,
             (unsigned long long)after, (unsigned long long)edits);
  if (s->config.span) s->config.span(s->config.span_self, "stage", stage->name, begin_ns, args.data);
  kit_text_deinit(&args);
}

static int wants_dump(const aoth_session_t *s, const aoth_stage_t *stage) {
  if (s->config.n_dump_after == 0) return s->config.dump_dir != NULL;
  for (uint32_t i = 0; i < s->config.n_dump_after; i++)
    if (strcmp(s->config.dump_after[i], stage->name) == 0 || strcmp(s->config.dump_after[i], stage->use) == 0) return 1;
  return 0;
}

/* DIR/03.partition-mincut.ir, numbered in the order in which units ran; or the standard output. */
static aot_status_t dump(aoth_session_t *s, const aoth_stage_t *stage) {
  s->n_dumps++;
  if (!wants_dump(s, stage)) return AOT_OK;
  kit_text_t text = {0}, path = {0};
  aot_status_t status = AOT_OK;
  aoth_print(s->now.prog, &text);
  if (!s->config.dump_dir) {
    printf("; after %s\n", stage->name);
    fwrite(text.data ? text.data : "", 1, text.size, stdout);
    fflush(stdout);
  } else {
    kit_text_f(&path, "%s/%02u.%s.ir", s->config.dump_dir, s->n_dumps, stage->name);
    aoth_make_dirs(s->config.dump_dir, 0777);
    aoth_writer_t *w = aoth_writer_begin_own(path.data ? path.data : "", s->config.sink);
    if (w) aoth_writer_write(w, text.data, text.size);
    status = w ? aoth_writer_commit(w) : AOT_E_INVALID;
  }
  kit_text_deinit(&text);
  kit_text_deinit(&path);
  return status;
}

aot_status_t aoth_session_run_stage(aoth_session_t *s, const aoth_stage_t *stage) {
  run_state_t r = {.s = s, .stage = stage};
  uint64_t edits = 0;
  const uint64_t begin = aoth_now_ns(), before = aoth_count_nodes(s->now.prog);
  const uint64_t watched = s->config.watch ? s->config.watch->spent_ns : 0;
  AOT_TRY(aoth_contract_check(s, stage, aoth_prog_properties(s->now.prog)));
  s->report = (aoth_report_t){.arena = s->arena};
  if (!aoth_stage_is_isolated(s, stage)) AOT_TRY(aoth_instance_create(s, stage, &r.unit));
  const int is_backend = strcmp(stage->unit->kind, "backend/2") == 0;
  const aot_status_t status = is_backend ? aoth_stage_lower(s, stage, &r.unit, &edits) : run_rewriter(&r, &edits);
  const int lives_on = is_backend && status == AOT_OK; /* with its executable */
  if (status == AOT_OK && r.unit.unit) ask_why_not(s, stage, &r.unit);
  if (!lives_on) aoth_instance_destroy(s, stage, &r.unit);
  AOT_TRY(status);
  aoth_session_record(s, stage, begin + (s->config.watch ? s->config.watch->spent_ns - watched : 0), before, edits);
  return dump(s, stage);
}
