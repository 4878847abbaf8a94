/* Calls into units, with their story reported whatever they do.
 *
 *   ends well                    -> AOT_OK
 *   status and a diagnostic      -> the status; the unit has reported why
 *   status and no diagnostic     -> "contract violation ..": it must say why
 *   a signal, or exit            -> where crashes are contained (crash.h): "contract violation ..", last node, the
 *                                bundle, the end
 *
 * Every struct that a unit answers with is imported by copy before anything of it is used. */
#include <sandbox/call.h>

#include <aot/float_env.h>
#include <aot/inline.h>
#include <sandbox/fault_attribution.h>
#include <sandbox/cancel.h>
#include <sandbox/kernel_guards.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <config/options.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

void *aoth_session_room(aoth_session_t *s, void *rows, uint32_t n, uint32_t *capacity, size_t row_size) {
  if (n < *capacity) return rows;
  const uint32_t wanted = *capacity ? *capacity * 2 : 8;
  void *bigger = kit_arena_alloc(s->arena, sizeof(void *), wanted * row_size);
  if (!bigger) return NULL;
  if (n) memcpy(bigger, rows, n * row_size);
  *capacity = wanted;
  return bigger;
}

static const char *status_text(aot_status_t status) {
  switch (status) {
#define STATUS_CASE(constant, number, text)                                                                            \
  case constant: return text;
    AOT_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    case AOTH_E_PLUGIN: return "contract violation by its unit";
    default: return "invalid status";
  }
}

/* ---- the call ---- */

typedef struct call {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  const char *doing;
} call_t;

/* Made once for a row of equal calls: a training run makes millions. */
static const char *about(aoth_session_t *s, const aoth_stage_t *stage, const char *doing) {
  if (s->about && s->about_unit == stage->unit && s->about_doing == doing) return s->about;
  kit_text_t t = {0};
  kit_text_f(&t, "%s of unit %s" AOTH_CALL_PLUGIN "%s", doing, stage->use, stage->unit->plugin->path);
  s->about = kit_arena_text(s->arena, t.data ? t.data : "", t.size);
  s->about_unit = stage->unit;
  s->about_doing = doing;
  kit_text_deinit(&t);
  return s->about;
}

static void report_misbehaviour(aoth_session_t *s, const aoth_stage_t *stage, const aoth_unit_t *u, const char *text) {
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "plugin.misbehaves",
                   "contract violation by plugin %s %s: unit %s %s %s", u->plugin->note.id, u->plugin->note.version,
                   u->id, u->version, text);
  aoth_sink_line(s->config.sink, "from %s", u->plugin->path);
}

aot_status_t aoth_contract_violation(aoth_session_t *s, const aoth_stage_t *stage, const char *format, ...) {
  kit_text_t t = {0};
  va_list args;
  va_start(args, format);
  kit_text_v(&t, format, args);
  va_end(args);
  report_misbehaviour(s, stage, stage->unit, t.data ? t.data : "");
  kit_text_deinit(&t);
  if (s->outcome != AOTH_CALL_CRASHED && s->outcome != AOTH_CALL_SILENT) s->outcome = AOTH_CALL_BROKE;
  return AOTH_E_PLUGIN;
}

static aot_status_t after_call(aoth_session_t *s) {
  s->last_node = s->ctx.last_node;
  for (; s->ctx.n_trials; s->ctx.n_trials--) aoth_journal_undo(s->now.prog);
  return s->status;
}

/* With AOT_VALIDATE=1: near whose memory it was. */
static void tell_whose(const aoth_session_t *s, uint64_t address, kit_text_t *out) {
  kit_text_t t = {0};
  const int is_known = (s->kernel_guards && aoth_kernel_guards_where(s->kernel_guards, address, &t)) ||
                       (s->queue.guards && aoth_guards_where(s->queue.guards, address, &t));
  if (is_known && t.data) kit_text_f(out, ", %s", t.data);
  kit_text_deinit(&t);
}

aot_status_t aoth_tell_crash(aoth_session_t *s, const aoth_stage_t *stage, const aoth_crash_t *crash,
                             const char *doing) {
  const aoth_blame_t blame = aoth_blame(s, stage->unit, crash);
  kit_text_t t = {0};
  if (crash->signal) kit_text_f(&t, "died of %s during %s", aoth_signal_name(crash->signal), doing);
  else if (crash->ends_thread) kit_text_f(&t, "ended the thread that called it during %s", doing);
  else kit_text_f(&t, "ended the process during %s", doing);
  if (blame.unit) kit_text_f(&t, " of unit %s", stage->use);
  if (blame.op.size) kit_text_f(&t, ", in its kernel of %.*s", (int)blame.op.size, blame.op.data);
  kit_text_f(&t, ": %s",
             crash->signal        ? aoth_signal_text(crash->signal)
             : crash->ends_thread ? "by pthread_exit(), or the system call"
                                  : "it called exit()");
  if (crash->address) kit_text_f(&t, ", at address 0x%llx", (unsigned long long)crash->address);
  tell_whose(s, crash->address, &t);
  report_misbehaviour(s, stage, blame.unit ? blame.unit : stage->unit, t.data ? t.data : "");
  kit_text_deinit(&t);
  return AOTH_E_PLUGIN;
}

/* On a thread of its own, as the last thing in the process: nothing of the call is used that it may hold locked. */
static void tell_crash(void *self, const aoth_crash_t *crash) {
  const call_t *c = self;
  aoth_session_t *s = c->s;
  if (s->tell_crash) {
    s->tell_crash(s, c->stage, crash, c->doing);
    return;
  }
  s->config.sink = s->ctx.sink = aoth_crash_sink();
  s->outcome = AOTH_CALL_CRASHED;
  s->status = AOTH_E_PLUGIN;
  s->crash = *crash;
  after_call(s);
  aoth_tell_crash(s, c->stage, crash, c->doing);
  aoth_session_fail(s, c->stage);
}

static void report_dropped(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_sink_report(s->config.sink, AOT_SEVERITY_WARNING, &stage->where, "plugin.diagnostics",
                   "unit %s: %u more diagnostics (%llu bytes) suppressed", stage->use, s->ctx.n_dropped,
                   (unsigned long long)s->ctx.n_dropped_bytes);
}

aot_status_t aoth_call(aoth_session_t *s, const aoth_stage_t *stage, const char *doing, aoth_call_fn fn, void *arg) {
  call_t c = {s, stage, doing};
  aoth_crash_frame_t frame = {.what = about(s, stage, doing),
                              .is_own = aoth_plugin_is_own(stage->unit->plugin),
                              .tell = tell_crash,
                              .self = &c};
  kit_arena_reset(s->scratch);
  s->ctx.stage = stage->name;
  s->ctx.where_file = stage->where.file;
  s->ctx.where_line = stage->where.line;
  s->ctx.n_diags = 0;
  s->ctx.n_given = s->ctx.n_dropped = 0;
  s->ctx.n_given_bytes = s->ctx.n_dropped_bytes = 0;
  s->ctx.last_node = AOT_NO_ID;
  s->ctx.report = &s->report;
  s->outcome = AOTH_CALL_OK;
  const aot_float_env_t before = aot_float_env();
  aoth_crash_enter(&frame);
  const aot_status_t status = fn(arg);
  aoth_crash_leave(&frame);
  const char *left = aot_float_env_change(before, aot_float_env());
  if (left) aot_float_env_restore(before);
  if (s->ctx.n_dropped) report_dropped(s, stage);
  const uint32_t n_trials = s->ctx.n_trials;
  if (status != AOT_OK) s->failed_doing = doing, s->failed_unit = stage->unit;
  if (status == AOT_E_CANCELLED && aoth_is_cancelled(&s->ctx) && s->ctx.n_diags == 0) {
    s->ctx.n_diags++;
    aoth_sink_report(s->ctx.sink, AOT_SEVERITY_ERROR, &stage->where, "stage.cancelled", "stage %s cancelled during %s",
                     stage->name, doing);
  }
  if (status == AOT_E_EXHAUSTED && s->ctx.n_diags == 0) { /* there may have been no memory to say so */
    s->ctx.n_diags++;
    aoth_sink_report(s->ctx.sink, AOT_SEVERITY_ERROR, &stage->where, "plugin.memory",
                     "unit %s of plugin %s ran out of memory during %s", stage->unit->id, stage->unit->plugin->note.id,
                     doing);
  }
  s->status = status;
  after_call(s);
  if (n_trials && status == AOT_OK) {
    s->status = aoth_contract_violation(s, stage, "returned from %s without undoing its trial", doing);
  } else if (status == AOT_OK && s->ctx.n_diags) {
    s->status = aoth_contract_violation(s, stage, "reported an error during %s but returned success", doing);
  } else if (left && status == AOT_OK) { /* what it computed may have come out otherwise */
    s->status = aoth_contract_violation(s, stage, "left %s after %s", left, doing);
  } else if (status != AOT_OK && s->ctx.n_diags == 0) {
    s->outcome = AOTH_CALL_SILENT;
    aoth_contract_violation(s, stage, "returned status %d (%s) from %s without a diagnostic", (int)status,
                            status_text(status), doing);
  } else if (status != AOT_OK) {
    s->outcome = AOTH_CALL_TOLD;
  }
  return s->status;
}

/* ---- after a failure ---- */

aot_status_t aoth_session_journal_begin(aoth_session_t *s) {
  AOT_TRY(aoth_journal_begin(s->now.prog));
  s->has_journal++;
  return AOT_OK;
}

void aoth_session_journal_commit(aoth_session_t *s) {
  aoth_journal_commit(s->now.prog);
  s->has_journal--;
}

static int node_exists(aot_prog_t *p, uint32_t id) {
  for (uint32_t g = 1; p && g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n))
      if (n.id == id) return 1;
  return 0;
}

static void tell_last_node(aoth_session_t *s, uint32_t node) {
  if (node == AOT_NO_ID || !s->now.prog) return;
  if (node_exists(s->now.prog, node))
    aoth_report_node(s->now.prog, (aot_node_t){node}, AOT_SEVERITY_NOTE, "plugin.last-node", NULL,
                     "last node accessed");
  else
    aoth_sink_report(s->config.sink, AOT_SEVERITY_NOTE, NULL, "plugin.last-node",
                     "last node accessed: %u, created by this stage and since rolled back", node);
}

int aoth_is_refusal(aot_status_t status) {
  switch (status) {
    case AOT_E_CANCELLED:
    case AOT_E_INVALID:
    case AOT_E_NOT_FOUND:
    case AOT_E_EXHAUSTED:
    case AOT_E_PRECONDITION:
    case AOT_E_RANGE:
    case AOT_E_UNIMPLEMENTED:
    case AOT_E_UNAVAILABLE:
    case AOT_E_DATA_LOSS:
    case AOT_E_OPTION: return 1;
    default: return 0;
  }
}

/* Another rank is gone or late, which is no fault of the stage that waited for it. */
static int is_other_ranks_fault(const aoth_session_t *s) {
  aot_str_t why;
  return s->ranks.n > 1 && s->status == AOT_E_UNAVAILABLE &&
         s->ranks.unit.table.communicator.failure(s->ranks.unit.self, s->ranks.group, &why) != AOT_OK;
}

aot_status_t aoth_session_fail(aoth_session_t *s, const aoth_stage_t *stage) {
  const uint32_t last_node = s->last_node;
  const int32_t outcome = s->outcome == AOTH_CALL_OK ? AOTH_CALL_TOLD : s->outcome; /* the host itself complained */
  const aot_status_t status = outcome == AOTH_CALL_TOLD && aoth_is_refusal(s->status) ? s->status : AOTH_E_PLUGIN;
  kit_text_t journal = {0};
  if (s->worker) return status; /* who waits for it does the rest */
  while (s->has_journal > 0) {
    if (journal.size == 0) aoth_journal_print(s->now.prog, &journal);
    aoth_journal_undo(s->now.prog);
    s->has_journal--;
  }
  if (outcome != AOTH_CALL_TOLD) tell_last_node(s, last_node);
  const int is_no_fault = (status == AOT_E_CANCELLED && aoth_is_cancelled(&s->ctx)) || is_other_ranks_fault(s);

  s->ctx.last_node = last_node; /* printing has moved it */
  /* of what did as it was queried to there is nothing to find out */
  if (s->config.bundle_dir && !is_no_fault) {
    s->config.write_bundle(s, stage, journal.data ? journal.data : "");
  } else if (!is_no_fault) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_NOTE, &stage->where, "stage.failed",
                     "stage %s failed (%s); rerun with --bundle-dir DIR to save a reproduction", stage->name,
                     status_text(s->status));
  }
  kit_text_deinit(&journal);
  s->ctx.stage = NULL;
  s->ctx.where_file = NULL;
  return status;
}

/* ---- units ---- */

static const struct kind {
  const char *kind;
  uint32_t size;        /* of the table, as this host knows it */
  uint32_t first, last; /* offsets of the functions that must be there, which are in a row; 0: none */
} kinds[] = {
    {"import/1", sizeof(aot_import_t), offsetof(aot_import_t, read), offsetof(aot_import_t, read)},
    {"opset/1", sizeof(aot_opset_t), 0, 0},
    {"pass/1", sizeof(aot_pass_t), offsetof(aot_pass_t, run), offsetof(aot_pass_t, run)},
    {"partition/1", sizeof(aot_partition_t), offsetof(aot_partition_t, choose), offsetof(aot_partition_t, choose)},
    {"backend/2", sizeof(aot_backend_t), offsetof(aot_backend_t, query), offsetof(aot_backend_t, load)},
    {"device/1", sizeof(aot_device_t), offsetof(aot_device_t, info), offsetof(aot_device_t, value)},
    {"communicator/1", sizeof(aot_communicator_t), offsetof(aot_communicator_t, join),
     offsetof(aot_communicator_t, abort)},
};

/* A unit may keep its options as long as it lives, which can be longer than the pipeline does. */
static const aot_opts_t *keep_options(aoth_session_t *s, const aoth_stage_t *stage) {
  const uint32_t n = stage->opts.n_values;
  aot_opts_t *opts = kit_arena_alloc(s->arena, sizeof(void *), sizeof *opts);
  aot_opt_value_t *values = kit_arena_alloc(s->arena, sizeof(void *), (n + 1) * sizeof *values);
  if (!opts || !values) return NULL;
  for (uint32_t i = 0; i < n; i++) {
    values[i] = stage->opts.values[i];
    if (!values[i].s.size) continue;
    values[i].s.data = kit_arena_text(s->arena, values[i].s.data, (size_t)values[i].s.size);
    if (!values[i].s.data) return NULL;
  }
  *opts = (aot_opts_t){sizeof *opts, n, values};
  return opts;
}

typedef struct create_call {
  aoth_session_t *s;
  const aot_opts_t *opts;
  const aoth_stage_t *stage;
  aoth_instance_t *out;
  const char *wrong;
} create_call_t;

static const char *import_table(const char *kind, const aot_table_t *table, aoth_instance_t *out) {
  const struct kind *k = kinds;
  while (strcmp(k->kind, kind) != 0) k++; /* resolve has let only these through */
  if (!table) return "returned no table";
  if (table->struct_size < sizeof *table || table->struct_size > 65536) return "returned a table of an invalid size";
  memset(&out->table, 0, sizeof out->table);
  if (aot_import(&out->table, k->size, table) != AOT_OK) return "returned a table for a newer host";
  for (uint32_t at = k->first; at && at <= k->last; at += sizeof(void *)) {
    void *function;
    memcpy(&function, (const char *)&out->table + at, sizeof function);
    if (!function) return "returned a table that lacks a function";
  }
  return NULL;
}

static aot_status_t do_create(void *arg) {
  create_call_t *c = arg;
  aoth_plugin_t *p = c->stage->unit->plugin;
  if (!p->is_initialised && p->desc.init) AOT_TRY(p->desc.init(p->self, p->host));
  p->is_initialised = 1;
  const aot_table_t *table = NULL;
  AOT_TRY(c->stage->unit->desc.create(&c->stage->unit->desc, &c->s->ctx, p->host, c->opts, &table));
  c->wrong = import_table(c->stage->unit->kind, table, c->out);
  if (!c->wrong) {
    c->out->unit = c->stage->unit;
    c->out->self = table;
  }
  return AOT_OK;
}

aot_status_t aoth_instance_try(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *out) {
  s->outcome = AOTH_CALL_OK;
  create_call_t c = {s, keep_options(s, stage), stage, out, NULL};
  memset(out, 0, sizeof *out);
  if (!c.opts) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "pipeline.memory",
                     "out of memory for the options of %s", stage->use);
    return AOT_E_EXHAUSTED;
  }
  const aot_status_t status = aoth_call(s, stage, "create", do_create, &c);
  if (status == AOT_OK && !c.wrong) return AOT_OK;
  if (status == AOT_OK) return aoth_contract_violation(s, stage, "%s", c.wrong);
  return status;
}

aot_status_t aoth_instance_create(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *out) {
  const aot_status_t status = aoth_instance_try(s, stage, out);
  if (status == AOT_OK) return AOT_OK;
  /* no memory; the user's option */
  if (s->outcome == AOTH_CALL_OK || (s->outcome == AOTH_CALL_TOLD && status == AOT_E_OPTION)) return status;
  return aoth_session_fail(s, stage);
}

static aot_status_t do_destroy(void *arg) {
  const aot_table_t *table = *(const aot_table_t *const *)arg;
  if (table->destroy) table->destroy(table);
  return AOT_OK;
}

void aoth_table_destroy(aoth_session_t *s, const aoth_stage_t *stage, const aot_table_t *table) {
  aoth_call(s, stage, "destroy", do_destroy, &table);
}

void aoth_instance_destroy(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *instance) {
  if (!instance->unit) return;
  aoth_stage_t standin = {.use = instance->unit->id, .name = instance->unit->id, .unit = instance->unit};
  const int32_t outcome = s->outcome;
  const aot_status_t status = s->status;
  const uint32_t last_node = s->last_node;
  aoth_table_destroy(s, stage ? stage : &standin, instance->self);
  s->outcome = outcome;
  s->status = status;
  s->last_node = last_node;
  instance->unit = NULL;
}

static aot_status_t check_pin(aoth_session_t *s, const aoth_stage_t *stage, const aoth_unit_t *u, kit_arena_t *arena) {
  char hex[KIT_SHA256_HEX] = "";
  if (!stage->sha256 || (aoth_file_sha256(u->plugin->path, hex) && strcmp(hex, stage->sha256) == 0)) return AOT_OK;
  aoth_yaml_error(s->config.sink, arena, stage->where_sha256, "load.pin",
                  "unit %s: SHA-256 mismatch with the pin in the pipeline; %s has %s", u->id, u->plugin->path, hex);
  return AOT_E_INVALID;
}

/* A unit that is in the place of another one is what the user wants, or what he should know. */
static void tell_hidden(aoth_session_t *s, const aoth_stage_t *stage, aoth_unit_t *u) {
  for (uint32_t i = 0; i < aoth_registry_n_plugins(s->registry) && !aoth_plugin_is_own(u->plugin); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
    for (uint32_t k = 0; k < p->n_units && !u->is_hiding_told; k++) {
      if (p->units[k].shadowed_by != u) continue;
      u->is_hiding_told = 1;
      aoth_sink_report(s->config.sink, AOT_SEVERITY_WARNING, stage->where.file ? &stage->where : NULL, "load.hidden",
                       "unit %s of %s shadows the same unit of %s", u->id, u->plugin->path, p->path);
    }
  }
}

aot_status_t aoth_stage_resolve(aoth_session_t *s, aoth_stage_t *stage, const char *allowed, kit_arena_t *arena) {
  aoth_sink_t *sink = s->config.sink;
  aoth_unit_t *u = aoth_registry_find(s->registry, stage->use);
  if (!u) {
    const char *near = aoth_registry_nearest(s->registry, stage->use, allowed);
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &stage->where, "pipeline.unit", "unknown unit '%s'%s%s%s", stage->use,
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    if (!near)
      aoth_sink_line(sink, "hint: `aothost plugins` lists all units, `aothost plugins -v` the searched folders");
    for (uint32_t i = 0, n = 0; i < aoth_registry_n_plugins(s->registry) && n < 5; i++) { /* it may be one of those */
      const aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
      if (p->state != AOTH_PLUGIN_REFUSED) continue;
      aoth_sink_line(sink, "skipped: %s: %s", p->path, p->why ? p->why : "");
      n++;
    }
    aoth_yaml_notes(sink, arena, stage->at, "pipeline.unit");
    return AOT_E_NOT_FOUND;
  }
  if (!aoth_kind_in(u->kind, allowed)) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &stage->where, "pipeline.kind",
                     "unit '%s' has kind %s, which is not allowed here", stage->use, u->kind);
    if (strcmp(u->kind, "import/1") == 0) aoth_sink_line(sink, "hint: set an importer in model.import");
    else if (strcmp(u->kind, "opset/1") == 0)
      aoth_sink_line(sink, "hint: opsets are loaded automatically; list them in 'opsets:' to select some");
    else if (strcmp(u->kind, "device/1") == 0) aoth_sink_line(sink, "hint: set a device in run.device");
    else if (strcmp(u->kind, "communicator/1") == 0) aoth_sink_line(sink, "hint: set a communicator in run.ranks");
    else aoth_sink_line(sink, "hint: expected a unit of kind %s", allowed);
    aoth_yaml_notes(sink, arena, stage->at, "pipeline.kind");
    return AOT_E_INVALID;
  }
  AOT_TRY(check_pin(s, stage, u, arena));
  AOT_TRY(aoth_plugin_open(s->registry, u->plugin, s->arena, &stage->where, sink));
  tell_hidden(s, stage, u);
  stage->unit = u;
  return aoth_options_resolve(stage, arena, sink);
}

aot_status_t aoth_stage_of_unit(aoth_session_t *s, const char *id, const char *allowed, const aoth_where_t *where,
                                aoth_stage_t *out) {
  memset(out, 0, sizeof *out);
  out->use = out->name = id;
  if (where) out->where = *where;
  return aoth_stage_resolve(s, out, allowed, s->arena);
}
