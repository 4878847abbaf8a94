/* The merged tree -> aoth_pipeline_t, and back to YAML with every default filled in. */
#include <config/pipeline.h>

#include <aot/inline.h>
#include <config/compose.h>
#include <config/default_units.h>
#include <config/fields.h>
#include <plugin/registry.h>
#include <config/run_section.h>
#include <config/stage_print.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The options of a unit; NULL: none, or they are no map, which is reported. */
static const aoth_yaml_t *read_with(const aoth_fields_t *f, const aoth_yaml_t *node) {
  const aoth_yaml_t *with = aoth_fields_get(node, "with");
  if (!with || with->kind == AOTH_YAML_MAP) return with;
  aoth_yaml_error(f->sink, f->arena, with, "pipeline.type", "'with': expected a map of options, got %s",
                  aoth_yaml_kind(with));
  return NULL;
}

static void read_model(const aoth_fields_t *f, aoth_pipeline_t *p) {
  static const char *const keys[] = {"import", "path", "with"};
  const aoth_yaml_t *model = aoth_fields_get(p->tree, "model");
  if (!aoth_fields_known(f, model, "model", keys, 3)) return;
  p->importer.use = p->importer.name = aoth_fields_text(f, model, "import");
  p->importer.where = aoth_fields_where(f, model, "import");
  p->importer.at = p->importer.use ? aoth_yaml_get(model, "import") : NULL;
  p->importer.with = read_with(f, model);
  if (p->importer.with && (!p->importer.use || strcmp(p->importer.use, "ir") == 0))
    aoth_yaml_error(f->sink, f->arena, p->importer.with, "pipeline.model",
                    p->importer.use ? "the importer of .ir text has no options"
                                    : "'with' requires an importer; add 'import: UNIT'");
  p->model_path = aoth_fields_path(f, model, "path");
  p->where_model = aoth_fields_where(f, model, "path");
}

static void read_opsets(const aoth_fields_t *f, aoth_pipeline_t *p) {
  const aoth_yaml_t *list = aoth_fields_get(p->tree, "opsets");
  if (!list) return;
  if (list->kind != AOTH_YAML_LIST || list->n == 0) {
    aoth_yaml_error(f->sink, f->arena, list, "pipeline.type",
                    "'opsets': expected a list of opset units; omit the key to load the installed opsets");
    return;
  }
  p->opsets = kit_arena_alloc(p->arena, sizeof(void *), list->n * sizeof *p->opsets);
  p->where_opsets = kit_arena_alloc(p->arena, sizeof(void *), list->n * sizeof *p->where_opsets);
  if (!p->opsets || !p->where_opsets) return;
  for (uint32_t i = 0; i < list->n; i++) {
    const aoth_yaml_t *item = list->items[i];
    if (item->kind != AOTH_YAML_SCALAR || aoth_yaml_is_null(item)) {
      aoth_yaml_error(f->sink, f->arena, item, "pipeline.type", "'opsets': expected a unit id, got %s",
                      aoth_yaml_kind(item));
      continue;
    }
    p->where_opsets[p->n_opsets] = aoth_yaml_where(p->arena, item);
    p->opsets[p->n_opsets++] = item->text.data;
  }
}

static void read_operators(const aoth_fields_t *f, aoth_pipeline_t *p) {
  const aoth_yaml_t *list = aoth_fields_get(p->tree, "operators");
  if (!list) return;
  if (list->kind != AOTH_YAML_LIST) {
    aoth_yaml_error(
        f->sink, f->arena, list, "pipeline.type",
        "'operators': expected a list of schema strings, e.g. \"mylib::name(Tensor x, Tensor(a!) out) -> ()\", got %s",
        aoth_yaml_kind(list));
    return;
  }
  p->operators = kit_arena_alloc(p->arena, sizeof(void *), (list->n + 1) * sizeof *p->operators);
  for (uint32_t i = 0; p->operators && i < list->n; i++) {
    const aoth_yaml_t *item = list->items[i];
    if (item->kind != AOTH_YAML_SCALAR || aoth_yaml_is_null(item))
      aoth_yaml_error(f->sink, f->arena, item, "pipeline.type", "'operators': expected a schema in quotes, got %s",
                      aoth_yaml_kind(item));
    else p->operators[p->n_operators++] = item;
  }
}

static const char *const isolations[] = {"none", "worker"}; /* by AOTH_ISOLATE_*, from NONE on */

/* A stage can be stopped where it has a process of its own. */
static void read_isolation(const aoth_fields_t *f, const aoth_yaml_t *node, aoth_stage_t *out) {
  out->isolate = aoth_fields_word(f, node, "isolate", -1, isolations, 2) + AOTH_ISOLATE_NONE;
  out->timeout = aoth_fields_f64(f, node, "timeout", 0, 0.001, 1e9);
  if (out->timeout == 0) return;
  if (out->isolate == AOTH_ISOLATE_NONE)
    aoth_yaml_error(f->sink, f->arena, aoth_yaml_get(node, "timeout"), "pipeline.stage",
                    "'timeout' requires a worker process; remove 'isolate: none'");
  else out->isolate = AOTH_ISOLATE_WORKER;
}

/* UNIT, or {unit: UNIT, sha256: DIGEST}. */
static void read_use(const aoth_fields_t *f, const aoth_yaml_t *node, aoth_stage_t *out) {
  static const char *const keys[] = {"unit", "sha256"};
  const aoth_yaml_t *use = aoth_fields_get(node, "use");
  if (!use || use->kind != AOTH_YAML_MAP) {
    out->use = aoth_fields_text(f, node, "use");
    out->at = use;
    return;
  }
  if (!aoth_fields_known(f, use, "'use'", keys, 2)) return;
  out->use = aoth_fields_text(f, use, "unit");
  out->at = aoth_yaml_get(use, "unit");
  out->sha256 = aoth_fields_text(f, use, "sha256");
  out->where_sha256 = aoth_yaml_get(use, "sha256");
  if (out->sha256 && strlen(out->sha256) != KIT_SHA256_HEX - 1)
    aoth_yaml_error(f->sink, f->arena, out->where_sha256, "pipeline.stage", "a SHA-256 has 64 hexadecimal digits");
}

static void read_stage(const aoth_fields_t *f, const aoth_yaml_t *node, aoth_stage_t *out) {
  static const char *const keys[] = {"use", "with", "as", "isolate", "timeout", "device", "device-with"};
  if (node->kind == AOTH_YAML_SCALAR && node->text.size) {
    aoth_yaml_error(f->sink, f->arena, node, "pipeline.stage", "expected a stage as a map; write '- use: %s'",
                    node->text.data);
    return;
  }
  if (!aoth_fields_known(f, node, "a stage", keys, 7)) {
    if (aoth_yaml_is_null(node))
      aoth_yaml_error(f->sink, f->arena, node, "pipeline.stage", "empty stage; write '- use: UNIT'");
    return;
  }
  read_use(f, node, out);
  if (!aoth_fields_get(node, "use"))
    aoth_yaml_error(f->sink, f->arena, node, "pipeline.stage", "stage has no unit; add 'use: UNIT'");
  const char *as = aoth_fields_text(f, node, "as");
  out->name = as ? as : out->use;
  if (as && strchr(as, '/'))
    aoth_yaml_error(f->sink, f->arena, aoth_yaml_get(node, "as"), "pipeline.stage", "a stage name cannot contain '/'");
  if (!out->use) out->at = node;
  out->where = aoth_yaml_where(f->arena, out->at);
  out->with = read_with(f, node);
  read_isolation(f, node, out);
  if (!aoth_yaml_get(node, "device") && !aoth_yaml_get(node, "device-with")) return;
  out->device = kit_arena_alloc(f->arena, sizeof(void *), sizeof *out->device);
  if (out->device) aoth_device_read(f, node, out->device);
}

static void read_stages(const aoth_fields_t *f, aoth_pipeline_t *p) {
  const aoth_yaml_t *list = aoth_fields_get(p->tree, "stages");
  if (!list) return; /* a model that is only imported */
  if (list->kind != AOTH_YAML_LIST) {
    aoth_yaml_error(f->sink, f->arena, list, "pipeline.type", "'stages': expected a list of '- use: UNIT', got %s",
                    aoth_yaml_kind(list));
    return;
  }
  p->stages = kit_arena_alloc(p->arena, sizeof(void *), (list->n + 1) * sizeof *p->stages);
  if (!p->stages) return;
  for (uint32_t i = 0; i < list->n; i++) {
    aoth_stage_t *stage = &p->stages[p->n_stages++];
    stage->number = i + 1;
    read_stage(f, list->items[i], stage);
    for (uint32_t k = 0; k < i; k++) /* names are what --set and --dump-after go by */
      if (stage->name && stage->name != stage->use && p->stages[k].name && strcmp(p->stages[k].name, stage->name) == 0)
        aoth_yaml_error(f->sink, f->arena, aoth_yaml_get(list->items[i], "as"), "pipeline.stage",
                        "duplicate stage name; stage %u already has it", k + 1);
  }
}

static aot_status_t keep_files(aoth_pipeline_t *p, const aoth_compose_t *c) {
  const uint32_t n = c->n_files < AOTH_MAX_FILES ? c->n_files : AOTH_MAX_FILES;
  p->files = kit_arena_alloc(p->arena, sizeof(void *), ((size_t)n + 1) * sizeof *p->files);
  if (!p->files) return AOT_E_EXHAUSTED;
  memcpy(p->files, c->files, n * sizeof *p->files);
  p->n_files = n;
  return AOT_OK;
}

static aot_status_t read_all(const aoth_overrides_t *overrides, aoth_sink_t *sink, aoth_pipeline_t *p) {
  static const char *const keys[] = {"aot", "vars", "model", "opsets", "operators", "stages", "run", "default-units"};
  const uint32_t before = aoth_sink_count(sink, AOT_SEVERITY_ERROR);
  const aoth_overrides_t none = {.n_sets = 0};
  aoth_compose_t c = {.arena = p->arena, .sink = sink, .overrides = overrides ? overrides : &none};
  const aoth_fields_t f = {p->arena, sink};
  p->tree = aoth_compose(&c, p->path);
  AOT_TRY(keep_files(p, &c));
  p->model_bytes = c.overrides->model_bytes;
  if (!p->tree) return AOT_E_INVALID;
  aoth_fields_known(&f, p->tree, "a pipeline", keys, 8);
  const aoth_yaml_t *vars = aoth_fields_get(p->tree, "vars");
  if (vars && vars->kind != AOTH_YAML_MAP)
    aoth_yaml_error(sink, p->arena, vars, "pipeline.type", "'vars': expected a map of names to defaults, got %s",
                    aoth_yaml_kind(vars));
  read_model(&f, p);
  read_opsets(&f, p);
  read_operators(&f, p);
  read_stages(&f, p);
  aoth_default_units_read(&f, aoth_fields_get(p->tree, "default-units"), &p->default_units);
  aoth_run_read(&f, aoth_fields_get(p->tree, "run"), &p->default_units, &p->run);
  return aoth_sink_count(sink, AOT_SEVERITY_ERROR) > before ? AOT_E_INVALID : AOT_OK;
}

aot_status_t aoth_pipeline_load(const char *path, const aoth_overrides_t *overrides, aoth_sink_t *sink,
                                aoth_pipeline_t **out) {
  *out = NULL;
  kit_arena_t *arena = kit_arena_create();
  aoth_pipeline_t *p = arena ? kit_arena_alloc(arena, sizeof(void *), sizeof *p) : NULL;
  if (!p) {
    kit_arena_destroy(arena);
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "pipeline.memory", "%s: no memory to read it", path);
    return AOT_E_EXHAUSTED;
  }
  p->arena = arena;
  p->path = kit_arena_text(arena, path, strlen(path));
  aot_status_t status = read_all(overrides, sink, p);
  if (kit_arena_failed(arena)) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "pipeline.memory", "%s: no memory to read it", path);
    aoth_pipeline_destroy(p);
    return AOT_E_EXHAUSTED;
  }
  if (status == AOT_OK || p->tree) *out = p; /* with complaints: good enough to look for more of them */
  else aoth_pipeline_destroy(p);
  return status;
}

void aoth_pipeline_destroy(aoth_pipeline_t *p) {
  if (p) kit_arena_destroy(p->arena);
}

/* ---- printing ---- */

static void print_pair(kit_text_t *out, const char *key, const char *text) {
  kit_text_z(out, key);
  aoth_yaml_print_text(out, aot_str(text));
  kit_text_z(out, "\n");
}

void aoth_pipeline_print(const aoth_pipeline_t *p, kit_text_t *out) {
  kit_text_z(out, "aot: 1\n");
  if (p->importer.use || p->model_path) {
    kit_text_z(out, "model:\n");
    if (p->importer.use) print_pair(out, "  import: ", p->importer.use);
    aoth_print_options(out, "  with: ", &p->importer);
    if (p->model_path) {
      kit_text_z(out, "  path: ");
      aoth_print_path(out, p->model_path);
      kit_text_z(out, "\n");
    }
  }
  if (p->n_opsets) kit_text_z(out, "opsets:\n");
  for (uint32_t i = 0; i < p->n_opsets; i++) print_pair(out, "  - ", p->opsets[i]);
  if (p->n_operators) kit_text_z(out, "operators:\n");
  for (uint32_t i = 0; i < p->n_operators; i++) print_pair(out, "  - ", p->operators[i]->text.data);
  if (p->n_stages) kit_text_z(out, "stages:\n");
  for (uint32_t i = 0; i < p->n_stages; i++) {
    const aoth_stage_t *s = &p->stages[i];
    if (s->sha256) kit_text_f(out, "  - use: {unit: %s, sha256: \"%s\"}\n", s->use, s->sha256);
    else print_pair(out, "  - use: ", s->use ? s->use : "");
    if (s->name != s->use && s->name) print_pair(out, "    as: ", s->name);
    aoth_print_options(out, "    with: ", s);
    aoth_print_isolation(out, "    ", s);
    if (s->device) kit_text_f(out, "    device: %s\n", s->device->use ? s->device->use : "host");
    if (s->device && s->device->use) aoth_print_options(out, "    device-with: ", s->device);
  }
  aoth_default_units_print(&p->default_units, out);
  aoth_run_print(&p->run, out);
}
