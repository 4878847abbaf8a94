/* What is left of a failure, so that it can be had again:
 *
 *     DIR/                (--bundle-dir)
 *         program.ir      the program before the stage
 *         pipeline.yaml   the one stage, options resolved
 *         journal.txt     what it had edited
 *         info.json       plugin, version, build id, signal, last node, environment read
 *
 * For a failed run the program is the one given to the backends, the pipeline lists those, and there is also
 *
 *         call.safetensors    what the call was given (step.h, aoth_step_given)
 *
 * `aothost replay DIR` does it again, and so does `aothost opt program.ir --use UNIT --with ..` for a stage; the
 * command line is printed and written to info.json. */
#include <cli/base/bundle.h>

#include <aot/inline.h>
#include <errno.h>
#include <jansson.h>
#include <process/environment.h>
#include <sandbox/isolation.h>
#include <config/stage_print.h>
#include <string.h>
#include <unistd.h>

static int write_file(aoth_session_t *s, const char *dir, const char *name, const char *data, size_t size) {
  kit_text_t path = {0};
  kit_text_f(&path, "%s/%s", dir, name);
  aoth_writer_t *w = aoth_writer_begin_own(path.data ? path.data : "", s->config.sink);
  if (w) aoth_writer_write(w, data, size);
  const int ok = w && aoth_writer_commit(w) == AOT_OK;
  kit_text_deinit(&path);
  return ok;
}

static int write_text(aoth_session_t *s, const char *dir, const char *name, kit_text_t *text) {
  const int ok = !text->failed && write_file(s, dir, name, text->data ? text->data : "", text->size);
  kit_text_deinit(text);
  return ok;
}

static void print_stage(kit_text_t *t, const aoth_stage_t *stage) {
  kit_text_z(t, "  - use: ");
  aoth_yaml_print_text(t, aot_str(stage->use));
  kit_text_z(t, "\n");
  if (strcmp(stage->name, stage->use) != 0) {
    kit_text_z(t, "    as: ");
    aoth_yaml_print_text(t, aot_str(stage->name));
    kit_text_z(t, "\n");
  }
  aoth_print_options(t, "    with: ", stage);
  aoth_print_isolation(t, "    ", stage);
}

/* A run failed, or what came before it. */
static int is_of_run(const aoth_session_t *s, const aoth_stage_t *stage) {
  return strcmp(stage->unit->kind, "backend/2") == 0 && s->now.exe_self && s->lowered.size;
}

static int write_pipeline(aoth_session_t *s, const char *dir, const aoth_stage_t *stage) {
  kit_text_t t = {0};
  kit_text_f(&t, "# %s\naot: 1\n",
             is_of_run(s, stage) ? "A program whose run failed." : "The failed stage with its input program.");
  if (s->now.prog) kit_text_z(&t, "model: {import: ir, path: program.ir}\n");
  if (s->n_opsets) kit_text_z(&t, "opsets:\n");
  for (uint32_t i = 0; i < s->n_opsets; i++) {
    kit_text_z(&t, "  - ");
    aoth_yaml_print_text(&t, aot_str(s->opsets[i].unit->id));
    kit_text_z(&t, "\n");
  }
  if (s->n_declared) kit_text_z(&t, "operators:\n");
  for (uint32_t i = 0; i < s->n_declared; i++) {
    kit_text_z(&t, "  - ");
    aoth_yaml_print_text(&t, s->declared[i]);
    kit_text_z(&t, "\n");
  }
  if (aoth_kind_in(stage->unit->kind, AOTH_STAGE_KINDS)) {
    kit_text_z(&t, "stages:\n");
    if (is_of_run(s, stage)) kit_text_add(&t, s->backends.data, s->backends.size);
    else print_stage(&t, stage);
  }
  if (s->device_unit.unit && is_of_run(s, stage)) kit_text_f(&t, "run: {device: %s}\n", s->device_unit.unit->id);
  return write_text(s, dir, "pipeline.yaml", &t);
}

/* text as one word of a POSIX shell. */
static void shell_word(kit_text_t *out, const char *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:+,@%-";
  if (*text && strspn(text, plain) == strlen(text)) {
    kit_text_z(out, text);
    return;
  }
  kit_text_z(out, "'");
  for (; *text; text++) {
    if (*text == '\'') kit_text_z(out, "'\\''");
    else kit_text_add(out, text, 1);
  }
  kit_text_z(out, "'");
}

static void plugin_folders(const aoth_session_t *s, kit_text_t *out) {
  for (uint32_t i = 0; i < s->config.n_plugin_dirs; i++) {
    kit_text_z(out, " --plugin-dir ");
    shell_word(out, s->config.plugin_dirs[i]);
  }
}

/* A stage alone is for `aothost opt`; a run, and operators that the pipeline declared, want the whole bundle. */
static void replay_command(aoth_session_t *s, const char *dir, const aoth_stage_t *stage, kit_text_t *out) {
  if (is_of_run(s, stage) || s->n_declared) {
    kit_text_z(out, "aothost replay ");
    shell_word(out, dir);
    plugin_folders(s, out);
    return;
  }
  kit_text_z(out, "aothost opt ");
  kit_text_t path = {0};
  kit_text_f(&path, "%s/program.ir", dir);
  shell_word(out, path.data ? path.data : "program.ir");
  kit_text_deinit(&path);
  kit_text_z(out, " --use ");
  shell_word(out, stage->use);
  for (uint32_t i = 0; i < stage->opts.n_values; i++) {
    kit_text_t with = {0};
    kit_text_str(&with, aoth_unit_option(stage->unit, i)->name);
    kit_text_z(&with, "=");
    aoth_print_option_value(&with, stage, i);
    kit_text_z(out, " --with ");
    shell_word(out, with.data ? with.data : "");
    kit_text_deinit(&with);
  }
  if (aoth_stage_is_isolated(s, stage)) kit_text_z(out, " --isolate worker");
  if (aoth_stage_timeout(s, stage) > 0) kit_text_f(out, " --stage-timeout %g", aoth_stage_timeout(s, stage));
  if (s->config.watch && s->config.watch->edited) kit_text_z(out, " --check-stages");
  plugin_folders(s, out);
}

static json_t *text_json(aot_str_t s) { return s.size ? json_stringn(s.data, (size_t)s.size) : json_null(); }

static json_t *env_json(const aoth_session_t *s) {
  json_t *env = json_object();
  for (uint32_t i = 0; i < s->report.n_env; i++)
    json_object_set_new(env, s->report.env[i].name,
                        s->report.env[i].value ? json_string(s->report.env[i].value) : json_null());
  return env;
}

static int write_info(aoth_session_t *s, const char *dir, const aoth_stage_t *stage, const char *replay) {
  static const char *const ends[] = {"failed", "failed", "silent", "crashed", "broken"};
  const aoth_unit_t *u = stage->unit;
  const int crashed = s->outcome == AOTH_CALL_CRASHED && s->crash.signal; /* else it called exit */
  const uint32_t last_node = s->ctx.last_node;
  json_t *info = json_object();
  json_object_set_new(info, "aothost", json_string(AOT_VERSION));
  json_object_set_new(info, "end", json_string(ends[s->outcome]));
  json_object_set_new(info, "status", json_integer(s->status));
  json_object_set_new(info, "signal", crashed ? json_string(aoth_signal_name(s->crash.signal)) : json_null());
  json_object_set_new(info, "address", crashed ? json_integer((json_int_t)s->crash.address) : json_null());
  json_object_set_new(info, "unit", json_string(u->id));
  json_object_set_new(info, "kind", json_string(u->kind));
  json_object_set_new(info, "unit_version", json_string(u->version));
  json_object_set_new(info, "plugin", json_string(u->plugin->note.id));
  json_object_set_new(info, "plugin_version", json_string(u->plugin->note.version));
  json_object_set_new(info, "build_id", text_json(u->plugin->desc.build_id));
  json_object_set_new(info, "file", json_string(u->plugin->path));
  json_object_set_new(info, "stage", json_string(stage->name));
  json_object_set_new(info, "pipeline", stage->where.file ? json_string(stage->where.file) : json_null());
  json_object_set_new(info, "line", json_integer(stage->where.line));
  json_object_set_new(info, "last_node", last_node == AOT_NO_ID ? json_null() : json_integer(last_node));
  json_object_set_new(info, "environment", env_json(s));
  json_object_set_new(info, "check_stages", json_boolean(s->config.watch && s->config.watch->edited));
  json_object_set_new(info, "replay", replay ? json_string(replay) : json_null());
  char *text = json_dumps(info, JSON_INDENT(2));
  json_decref(info);
  kit_text_t t = {0};
  if (text) kit_text_f(&t, "%s\n", text);
  t.failed |= text == NULL;
  void (*release)(void *);
  json_get_alloc_funcs(NULL, &release);
  if (text) release(text);
  return write_text(s, dir, "info.json", &t);
}

void aoth_bundle_lowering(aoth_session_t *s, const aoth_stage_t *const *backends, uint32_t n,
                          const aoth_stage_t *assign) {
  kit_text_deinit(&s->lowered);
  kit_text_deinit(&s->backends);
  aoth_print(s->now.prog, &s->lowered);
  if (assign) print_stage(&s->backends, assign);
  for (uint32_t i = 0; i < n; i++) print_stage(&s->backends, backends[i]);
}

void aoth_bundle_write(aoth_session_t *s, const aoth_stage_t *stage, const char *journal) {
  kit_text_t dir = {0}, program = {0}, edits = {0}, replay = {0};
  const uint32_t last_node = s->ctx.last_node; /* printing moves it */
  kit_text_z(&dir, s->config.bundle_dir);
  const char *path = dir.data ? dir.data : "";
  int ok = aoth_make_dirs(path, 0777);
  if (!ok)
    aoth_sink_report(s->config.sink, AOT_SEVERITY_WARNING, NULL, "bundle.folder", "cannot write the bundle %s: %s",
                     path, strerror(errno));
  const int can_replay = s->now.prog && aoth_kind_in(stage->unit->kind, AOTH_STAGE_KINDS);
  if (ok && s->now.prog) {
    if (is_of_run(s, stage)) kit_text_add(&program, s->lowered.data, s->lowered.size);
    else aoth_print(s->now.prog, &program);
    ok = write_text(s, path, "program.ir", &program);
  }
  if (ok && is_of_run(s, stage) && s->keep_call) {
    kit_text_t call = {0};
    kit_text_f(&call, "%s/call.safetensors", path);
    ok = call.data && s->keep_call(s->keeper, call.data, s->config.sink) == AOT_OK;
    kit_text_deinit(&call);
  }
  kit_text_z(&edits, journal);
  if (ok) ok = write_text(s, path, "journal.txt", &edits);
  if (ok) ok = write_pipeline(s, path, stage);
  if (can_replay) replay_command(s, path, stage, &replay);
  s->ctx.last_node = last_node;
  if (ok) ok = write_info(s, path, stage, replay.data);
  if (ok) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_NOTE, NULL, "bundle.written", "reproduction bundle: %s", path);
    if (replay.data) aoth_sink_line(s->config.sink, "replay: %s", replay.data);
  }
  kit_text_deinit(&dir);
  kit_text_deinit(&edits);
  kit_text_deinit(&replay);
}
