/* The life of a session, and the way from a model file to its program. */
#include <compiler/session_lifetime.h>

#include <aot/inline.h>
#include <bridge.h>
#include <compiler/compile.h>
#include <config/default_units.h>
#include <device/host_device.h>
#include <sandbox/call.h>
#include <sandbox/cancel.h>
#include <compiler/devices.h>
#include <sandbox/kernel_guards.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <compiler/operators_section.h>
#include <compiler/opsets.h>
#include <compiler/programs.h>
#include <compiler/run_ranks.h>
#include <compiler/stage.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define MAGIC_SCORE 1 /* the least answer of probe() that counts as "mine" */

aoth_session_t *aoth_session_create(const aoth_session_config_t *config) {
  aoth_session_t *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->config = *config;
  s->device = aoth_host_device();
  s->arena = kit_arena_create();
  s->scratch = kit_arena_create();
  s->ops = aoth_ops_create();
  if (s->arena && s->scratch && s->ops)
    s->registry =
        aoth_registry_create(s->arena, config->plugin_dirs, config->n_plugin_dirs, config->sink, aoth_bridge_host);
  const aoth_lock_t *lock = s->registry && config->lock ? aoth_lock_read(config->lock, s->arena, config->sink) : NULL;
  const aoth_keys_t *keys = s->registry && config->keys ? aoth_keys_read(config->keys, s->arena, config->sink) : NULL;
  if (aoth_guards_are_wanted()) s->kernel_guards = aoth_kernel_guards_create(s);
  if (s->arena) s->cache = kit_arena_alloc(s->arena, sizeof(void *), sizeof *s->cache);
  if (!s->registry || !s->cache || (config->lock && !lock) || (config->keys && !keys) ||
      (aoth_guards_are_wanted() && !s->kernel_guards)) {
    aoth_session_destroy(s);
    return NULL;
  }
  aoth_registry_set_lock(s->registry, lock);
  aoth_registry_set_keys(s->registry, keys);
  aoth_registry_set_vet(s->registry, config->vet_plugin);
  s->report.arena = s->arena;
  s->ctx.session = s->arena;
  s->ctx.scratch = s->scratch;
  s->ctx.sink = config->sink;
  s->ctx.ops = s->ops;
  s->ctx.kernel_guards = s->kernel_guards;
  s->ctx.asked = &s->cancelled;
  s->ctx.last_node = AOT_NO_ID;
  return s;
}

static aot_status_t do_shutdown(void *arg) {
  const aoth_plugin_t *p = arg;
  p->desc.shutdown(p->self);
  return AOT_OK;
}

static void shutdown_plugins(aoth_session_t *s) {
  for (uint32_t i = 0; i < aoth_registry_n_plugins(s->registry); i++) {
    aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
    if (p->state != AOTH_PLUGIN_OPEN || !p->is_initialised || !p->desc.shutdown || p->n_units == 0) continue;
    const aoth_stage_t stage = {.use = p->units[0].id, .name = p->units[0].id, .unit = &p->units[0]};
    aoth_call(s, &stage, "shutdown", do_shutdown, p);
  }
}

void aoth_session_destroy(aoth_session_t *s) {
  if (!s) return;
  if (s->past_worker > 0) waitpid(s->past_worker, NULL, 0);
  if (s->registry) {
    aoth_session_drop_programs(s);
    aoth_session_drop_queue(s);
    for (uint32_t i = s->n_opsets; i > 0; i--) aoth_instance_destroy(s, NULL, &s->opsets[i - 1]);
    aoth_session_leave(s); /* after kernels that have groups of ranks */
    for (aoth_other_device_t *d = s->others; d; d = d->next) aoth_instance_destroy(s, NULL, &d->unit);
    aoth_instance_destroy(s, NULL, &s->device_unit);
    shutdown_plugins(s);
  }
  for (uint32_t i = 0; i < s->n_maps; i++) aoth_file_unmap(&s->maps[i]);
  aoth_kernel_guards_destroy(s->kernel_guards);
  aoth_ops_destroy(s->ops);
  kit_text_deinit(&s->lowered);
  kit_text_deinit(&s->backends);
  kit_arena_destroy(s->scratch);
  kit_arena_destroy(s->arena);
  free(s);
}

void aoth_session_keep_calls(aoth_session_t *s, aoth_keep_call_t keep, void *self) {
  s->keep_call = keep;
  s->keeper = self;
}

int aoth_session_crashed(const aoth_session_t *s) { return s->outcome == AOTH_CALL_CRASHED; }
aot_prog_t *aoth_session_prog(aoth_session_t *s) { return s->now.prog; }
aot_ctx_t *aoth_session_ctx(aoth_session_t *s) { return &s->ctx; }
aoth_sink_t *aoth_session_sink(aoth_session_t *s) { return s->config.sink; }
aoth_ops_t *aoth_session_ops(aoth_session_t *s) { return s->ops; }
aoth_registry_t *aoth_session_registry(aoth_session_t *s) { return s->registry; }

/* ---- import ---- */

typedef struct import_call {
  aoth_session_t *s;
  const aoth_instance_t *unit;
  const aot_file_t *file;
  int32_t score;
} import_call_t;

static aot_status_t do_probe(void *arg) {
  import_call_t *i = arg;
  if (i->unit->table.import.probe) return i->unit->table.import.probe(i->unit->self, &i->s->ctx, i->file, &i->score);
  return AOT_OK;
}

static aot_status_t do_read(void *arg) {
  const import_call_t *i = arg;
  return i->unit->table.import.read(i->unit->self, &i->s->ctx, i->file, i->s->now.prog);
}

/* The importer that is surest about the file. A probe that fails says no more than "not mine". */
static aot_status_t choose_importer(aoth_session_t *s, const aot_file_t *file, const aoth_where_t *where,
                                    aoth_stage_t *out) {
  int32_t best = MAGIC_SCORE - 1;
  out->use = NULL;
  for (uint32_t i = 0; i < aoth_registry_n_plugins(s->registry); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
    for (uint32_t k = 0; k < p->n_units; k++) {
      aoth_stage_t stage;
      aoth_instance_t unit;
      if (p->units[k].shadowed_by || strcmp(p->units[k].kind, "import/1") != 0) continue;
      AOT_TRY(aoth_stage_of_unit(s, p->units[k].id, "import/1", where, &stage));
      AOT_TRY(aoth_instance_create(s, &stage, &unit));
      import_call_t probe = {s, &unit, file, 0};
      const aot_status_t status = aoth_call(s, &stage, "probe", do_probe, &probe);
      aoth_instance_destroy(s, &stage, &unit);
      if (status != AOT_OK || probe.score <= best) continue;
      best = probe.score;
      *out = stage;
    }
  }
  if (out->use) return AOT_OK;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, where, "import.unknown",
                   "unrecognised model format: %.*s; set model.import (`aothost plugins` lists importers)",
                   (int)file->path.size, file->path.data);
  return AOT_E_INVALID;
}

/* What a program is that an importer has made: one with its gradients is joint, and no stage before the partition is
 * left to it. */
static uint32_t imported_properties(aot_prog_t *p) {
  const int is_joint = aoth_graph_graph_find(p, AOT_GRAPH_JOINT).id != AOT_NO_ID;
  return AOTH_PROP_IMPORTED | (is_joint ? AOTH_PROP_FUNCTIONAL | AOTH_PROP_JOINT : 0);
}

static aot_status_t read_with_unit(aoth_session_t *s, aoth_stage_t *stage, const aot_file_t *file) {
  aoth_instance_t unit;
  AOT_TRY(aoth_instance_create(s, stage, &unit));
  import_call_t reading = {s, &unit, file, 0};
  aot_status_t status = aoth_call(s, stage, "read", do_read, &reading);
  if (status == AOT_OK && aoth_verify(s->now.prog, imported_properties(s->now.prog)) != AOT_OK) {
    aoth_contract_violation(s, stage, "produced an invalid program");
    status = AOTH_E_PLUGIN;
  }
  if (status != AOT_OK && s->outcome != AOTH_CALL_TOLD)
    status = aoth_session_fail(s, stage); /* else the file is at fault: exit 2 */
  aoth_instance_destroy(s, stage, &unit);
  if (status != AOT_OK) return status;
  aoth_properties_t properties = aoth_prog_properties(s->now.prog);
  properties.known |= imported_properties(s->now.prog);
  return aoth_prog_set_properties(s->now.prog, properties);
}

static aot_status_t read_text(aoth_session_t *s, const char *path, const aoth_map_t *map) {
  s->ctx.stage = NULL;
  s->ctx.n_diags = 0;
  AOT_TRY(aoth_parse(s->now.prog, path, map->data, (size_t)map->nbytes));
  return aoth_verify(s->now.prog, aoth_prog_properties(s->now.prog).known);
}

static int ends_with(const char *text, const char *tail) {
  const size_t n = strlen(text), k = strlen(tail);
  return n >= k && strcmp(text + n - k, tail) == 0;
}

static aot_status_t map_model(aoth_session_t *s, const char *path, const aoth_where_t *where, aoth_map_t *out) {
  aoth_map_t *maps = aoth_session_room(s, s->maps, s->n_maps, &s->map_capacity, sizeof *maps);
  if (!maps) return AOT_E_EXHAUSTED;
  s->maps = maps;
  const uint32_t errors = aoth_sink_count(s->config.sink, AOT_SEVERITY_ERROR);
  const aot_status_t status = aoth_file_map(path, s->config.sink, &maps[s->n_maps]);
  if (status == AOT_OK) *out = maps[s->n_maps++];
  else if (where && where->line && aoth_sink_count(s->config.sink, AOT_SEVERITY_ERROR) > errors)
    aoth_sink_report(s->config.sink, AOT_SEVERITY_NOTE, where, "import.file", "the model is named here");
  return status;
}

static aot_status_t open_model(aoth_session_t *s, const aoth_stage_t *importer, const char *path, aot_str_t bytes,
                               const aoth_where_t *where_model, aoth_model_t *out) {
  aoth_map_t map = {bytes.data, bytes.size};
  memset(out, 0, sizeof *out);
  out->begin_ns = aoth_now_ns();
  if (!bytes.data) AOT_TRY(map_model(s, path, where_model, &map));
  out->where = where_model && where_model->line ? where_model : NULL;
  out->stage = (aoth_stage_t){.use = "ir", .name = "ir"};
  out->file =
      (aot_file_t){.struct_size = sizeof out->file, .path = aot_str(path), .data = map.data, .nbytes = map.nbytes};
  if (importer->use ? strcmp(importer->use, "ir") == 0 : ends_with(path, ".ir")) return AOT_OK;
  if (importer->use) {
    out->stage = *importer;
    AOT_TRY(aoth_stage_resolve(s, &out->stage, "import/1", s->arena));
  } else {
    AOT_TRY(choose_importer(s, &out->file, where_model, &out->stage));
  }
  return AOT_OK;
}

aot_status_t aoth_session_new_program(aoth_session_t *s, const aoth_model_t *model) {
  if (s->now.prog) aoth_prog_destroy(s->now.prog);
  s->now.prog = s->ctx.prog = aoth_prog_create(s->ops, &s->ctx);
  s->ctx.graph = s->now.prog ? aoth_prog_arena(s->now.prog) : NULL;
  if (!s->now.prog) return AOT_E_EXHAUSTED;
  aoth_prog_set_model(s->now.prog, model->file.path.data);
  s->report = (aoth_report_t){.arena = s->arena};
  return AOT_OK;
}

aot_status_t aoth_session_read_model(aoth_session_t *s, aoth_model_t *model) {
  const aoth_map_t map = {model->file.data, model->file.nbytes};
  AOT_TRY(aoth_session_new_program(s, model));
  if (!model->stage.unit) {
    AOT_TRY(read_text(s, model->file.path.data, &map));
  } else {
    const aot_status_t status = read_with_unit(s, &model->stage, &model->file);
    if (status != AOT_OK) { /* an importer sees bytes: it knows the place in the file, not which file */
      aoth_sink_report(s->config.sink, AOT_SEVERITY_NOTE, model->where, "import.file", "while reading the model %s",
                       model->file.path.data);
      return status;
    }
  }
  aoth_session_record(s, &model->stage, model->begin_ns, 0, 0);
  return AOT_OK;
}

static aot_status_t import(aoth_session_t *s, const char *import_id, const aoth_where_t *where_import, const char *path,
                           const aoth_where_t *where_model) {
  aoth_stage_t importer = {.use = import_id, .name = import_id};
  aoth_model_t model;
  if (where_import) importer.where = *where_import;
  AOT_TRY(open_model(s, &importer, path, (aot_str_t){0}, where_model, &model));
  AOT_TRY(aoth_session_open_needed(s, &model, NULL, 0));
  AOT_TRY(aoth_session_declare_found(s, aoth_default_unit(AOTH_UNIT_OPERATORS), &model));
  return aoth_session_read_model(s, &model);
}

aot_status_t aoth_session_import(aoth_session_t *s, const char *import_id, const aoth_where_t *where_import,
                                 const char *path, const aoth_where_t *where_model) {
  aoth_compiling_begin(s);
  return aoth_compiling_end(s, import(s, import_id, where_import, path, where_model));
}

aot_status_t aoth_pipeline_open_model(aoth_session_t *s, const aoth_pipeline_t *p, aoth_model_t *out) {
  if (!p->model_path) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "pipeline.model",
                     "%s: no model; add 'model: {path: FILE}' or pass --model FILE", p->path);
    return AOT_E_INVALID;
  }
  for (uint32_t i = 0; i < p->n_opsets; i++)
    AOT_TRY(aoth_session_open_opset(s, p->opsets[i], p->where_opsets ? &p->where_opsets[i] : NULL));
  AOT_TRY(open_model(s, &p->importer, p->model_path, p->model_bytes, &p->where_model, out));
  if (p->n_opsets == 0) AOT_TRY(aoth_session_open_needed(s, out, p->operators, p->n_operators));
  const char *declaring = p->default_units.ids[AOTH_UNIT_OPERATORS];
  AOT_TRY(aoth_session_declare(s, declaring, p->operators, p->n_operators));
  return aoth_session_declare_found(s, declaring, out);
}

aot_status_t aoth_pipeline_import(aoth_session_t *s, const aoth_pipeline_t *p) {
  aoth_model_t model;
  AOT_TRY(aoth_pipeline_open_model(s, p, &model));
  return aoth_session_read_model(s, &model);
}
