/* All checking before anything runs: units, options, the order of stages, contracts simulated over the list, files.
 * Every complaint is made; the first that is a plugin's fault and not the user's decides nothing about the others. */
#include <sandbox/call.h>
#include <config/options.h>
#include <config/default_units.h>
#include <config/run_section.h>
#include <sandbox/session.h>
#include <compiler/stage_check.h>

#include <aot/inline.h>
#include <ir/text/words.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct checker {
  aoth_session_t *s;
  aoth_pipeline_t *p;
  int input_failed, plugin_failed;
} checker_t;

static void note_status(checker_t *c, aot_status_t status) {
  if (status == AOTH_E_PLUGIN) c->plugin_failed = 1;
  else if (status != AOT_OK) c->input_failed = 1;
}

static void out_of_order(checker_t *c, const aoth_stage_t *stage, const char *message) {
  aoth_sink_report(c->s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "pipeline.order", "'%s': %s", stage->name,
                   message);
  aoth_yaml_notes(c->s->config.sink, c->s->arena, stage->at, "pipeline.order");
  c->input_failed = 1;
}

static int is_backend(const aoth_stage_t *stage) { return stage->unit && strcmp(stage->unit->kind, "backend/2") == 0; }

/* At most one partition; backends at the end. */
static void check_order(checker_t *c) {
  const aoth_stage_t *partition = NULL;
  for (uint32_t i = 0; i < c->p->n_stages; i++) {
    const aoth_stage_t *stage = &c->p->stages[i];
    if (!stage->unit) continue;
    if (strcmp(stage->unit->kind, "partition/1") == 0) {
      if (partition) out_of_order(c, stage, "second partition stage; a pipeline can have only one, remove one of them");
      partition = stage;
    }
    const aoth_unit_t *next = i + 1 < c->p->n_stages ? c->p->stages[i + 1].unit : NULL;
    if (is_backend(stage) && i + 1 < c->p->n_stages && (!next || strcmp(next->kind, "backend/2") != 0))
      out_of_order(c, stage, "a backend must be the last stage or be followed by another backend");
    for (uint32_t k = 0; is_backend(stage) && k < i; k++)
      if (is_backend(&c->p->stages[k]) && strcmp(c->p->stages[k].name, stage->name) == 0)
        out_of_order(c, stage, "duplicate backend name; set another one with 'as:'");
  }
}

/* A backend's executable lives in the process that compiles it. */
static void check_isolation(checker_t *c) {
  for (uint32_t i = 0; i < c->p->n_stages; i++)
    if (is_backend(&c->p->stages[i]) && c->p->stages[i].isolate == AOTH_ISOLATE_WORKER)
      out_of_order(c, &c->p->stages[i],
                   "a backend always runs in the host process; remove 'isolate: worker' and 'timeout'");
}

static int is_assign(const aoth_pipeline_t *p, const aoth_stage_t *stage) {
  return stage->use && strcmp(stage->use, p->default_units.ids[AOTH_UNIT_SEVERAL_BACKENDS]) == 0;
}

/* Where each backend runs, for the stage that divides: names, where that is not where the run does. */
static void tell_devices(const checker_t *c, uint32_t first) {
  const aoth_pipeline_t *p = c->p;
  const char *own = aoth_device_name(p->arena, &p->run.device);
  kit_text_t text = {0};
  for (uint32_t i = first; i < p->n_stages; i++) {
    const aoth_stage_t *device = p->stages[i].device;
    const char *name = device ? aoth_device_name(p->arena, device) : NULL;
    if (i > first) kit_text_z(&text, ",");
    if (name && own && strcmp(name, own) != 0) kit_text_z(&text, device->use ? device->use : "host");
  }
  const char *kept = kit_arena_text(p->arena, text.data ? text.data : "", text.size);
  if (kept) aoth_option_set(&p->assign, "devices", (aot_opt_value_t){.s = aot_str(kept)});
  kit_text_deinit(&text);
}

/* Several backends: a stage that divides the program among them is added, unless the pipeline has it right before
 * them, with options. */
static void check_assign(checker_t *c) {
  aoth_pipeline_t *p = c->p;
  uint32_t first = p->n_stages;
  while (first && is_backend(&p->stages[first - 1])) first--;
  for (uint32_t i = 0; i < p->n_stages; i++)
    if (is_assign(p, &p->stages[i]) && (i + 1 != first || p->n_stages - first < 2))
      out_of_order(c, &p->stages[i], "it partitions the program among several backends; they must follow it directly");
  if (p->n_stages - first < 2) return;
  if (first && is_assign(p, &p->stages[first - 1])) {
    p->assign = p->stages[first - 1];
  } else {
    aoth_default_units_stage(&p->default_units, AOTH_UNIT_SEVERAL_BACKENDS, &p->stages[p->n_stages - 1].where,
                             &p->assign);
    note_status(c, aoth_stage_resolve(c->s, &p->assign, "pass/1", p->arena));
  }
  tell_devices(c, first);
}

/* The properties that a textual program says it has (`properties imported "vendor.tiled"`); none: none are found. */
static aoth_properties_t properties_in(kit_arena_t *arena, aot_str_t text) {
  const char *at = text.data, *end = text.data + text.size;
  aoth_properties_t properties = {0};
  for (int i = 0; i < 100 && at < end && aoth_properties_are_none(properties); i++) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const size_t size = (size_t)((newline ? newline : end) - at);
    char *line = size > 11 && memcmp(at, "properties ", 11) == 0 ? kit_arena_text(arena, at, size) : NULL;
    for (char *rest = line ? line + 11 : NULL, *word; rest && (word = strtok_r(rest, " \t\r\"", &rest));) {
      aot_str_t *name = kit_arena_alloc(arena, 8, sizeof *name);
      if (!name) break;
      *name = aot_str(word);
      if (aoth_property_find(*name) || aoth_is_vendor_name(*name))
        aoth_properties_union(arena, properties, aoth_properties_one(name), &properties);
    }
    at = newline ? newline + 1 : end;
  }
  return properties;
}

static aoth_properties_t properties_of_text(kit_arena_t *arena, const aoth_pipeline_t *p) {
  aoth_map_t map;
  if (p->model_bytes.data) return properties_in(arena, p->model_bytes);
  if (!p->model_path || aoth_file_map(p->model_path, NULL, &map) != AOT_OK) return aoth_properties_known(0);
  const aoth_properties_t properties = properties_in(arena, (aot_str_t){map.data, map.nbytes});
  aoth_file_unmap(&map);
  return properties;
}

/* A list with a unit for joint programs, and before it none that makes a program functional or joint, is meant for a
 * model that was exported with its backward. Whether the model is one shows when it is read. */
static uint32_t imported_properties(const aoth_pipeline_t *p) {
  const uint32_t joint = AOTH_PROP_FUNCTIONAL | AOTH_PROP_JOINT;
  for (uint32_t i = 0; p->model_path && i < p->n_stages; i++) {
    const aoth_unit_t *unit = p->stages[i].unit;
    if (!unit || !unit->has_contract) break;
    if (unit->contract.needs.known & AOTH_PROP_JOINT) return AOTH_PROP_IMPORTED | joint;
    if (unit->contract.gives.known & joint) break;
  }
  return AOTH_PROP_IMPORTED;
}

/* What the program is before the first stage. None: not known, so nothing is held against the stages before they
 * run. */
static aoth_properties_t first_properties(kit_arena_t *arena, const aoth_pipeline_t *p) {
  const size_t n = p->model_path ? strlen(p->model_path) : 0;
  const int is_text =
      p->importer.use ? strcmp(p->importer.use, "ir") == 0 : n > 3 && strcmp(p->model_path + n - 3, ".ir") == 0;
  return is_text ? properties_of_text(arena, p) : aoth_properties_known(imported_properties(p));
}

/* needs, refuses, gives and drops over the list. After a stage that lacks something the rest is checked as if it had
 * it, so that one mistake is reported once. */
static void check_contracts(checker_t *c) {
  aoth_properties_t properties = first_properties(c->s->arena, c->p);
  kit_arena_t *arena = c->s->arena;
  int n_partitions = 0;
  const aoth_stage_t *optimizer = c->p->run.train.present ? &c->p->run.train.optimizer : NULL;
  const aoth_stage_t *stitch = &c->p->run.train.stitch;
  const aoth_stage_t *cast = c->p->run.train.present ? &c->p->run.train.autocast : NULL;
  for (uint32_t i = 0; i < c->p->n_stages; i++) {
    const aoth_stage_t *stage = &c->p->stages[i];
    if (!stage->unit) {
      properties = aoth_properties_known(0); /* unknown from here on */
      continue;
    }
    const int is_known = !aoth_properties_are_none(properties);
    if (cast && cast->unit && is_known && c->p->run.train.autocast_at == i)
      note_status(c, aoth_contract_check(c->s, cast, properties));
    const int is_of_step = stage->unit->has_contract && (stage->unit->contract.needs.known & AOTH_PROP_STITCHED);
    if ((is_backend(stage) || is_of_step) && optimizer && optimizer->unit && is_known) {
      note_status(c, aoth_contract_check(c->s, optimizer, properties));
      if (is_of_step && stitch->unit) aoth_properties_after(stitch->unit, arena, properties, &properties);
    }
    if (is_backend(stage) || is_of_step) optimizer = NULL;
    const int is_partition = strcmp(stage->unit->kind, "partition/1") == 0;
    if (is_partition && n_partitions++) continue; /* reported by check_order */
    if (!is_known) continue;
    note_status(c, aoth_contract_check(c->s, stage, properties));
    if (stage->unit->has_contract) aoth_properties_union(arena, properties, stage->unit->contract.needs, &properties);
    aoth_properties_after(stage->unit, arena, properties, &properties);
  }
}

static void check_file(checker_t *c, const char *path, const aoth_where_t *where, const char *what) {
  if (path && access(path, R_OK) != 0)
    aoth_sink_report(c->s->config.sink, AOT_SEVERITY_WARNING, where, "pipeline.file", "the %s '%s' is not readable",
                     what, path);
}

static void check_files(checker_t *c) {
  const aoth_run_spec_t *run = &c->p->run;
  if (!c->p->model_bytes.data) check_file(c, c->p->model_path, &c->p->where_model, "model");
  check_file(c, run->inputs.path, &run->inputs.where, "input file");
  if (run->train.present && run->train.data.path != run->inputs.path)
    check_file(c, run->train.data.path, &run->train.data.where, "data file");
  check_file(c, run->train.resume, &run->train.where_resume, "checkpoint");
}

static void check_model(checker_t *c) {
  aoth_stage_t opset;
  if (c->p->importer.use && strcmp(c->p->importer.use, "ir") != 0)
    note_status(c, aoth_stage_resolve(c->s, &c->p->importer, "import/1", c->p->arena));
  for (uint32_t i = 0; i < c->p->n_opsets; i++)
    note_status(c, aoth_stage_of_unit(c->s, c->p->opsets[i], "opset/1", &c->p->where_opsets[i], &opset));
}

static void check_device(checker_t *c) {
  aoth_stage_t *device = &c->p->run.device;
  if (device->use) note_status(c, aoth_stage_resolve(c->s, device, "device/1", c->p->arena));
  for (uint32_t i = 0; i < c->p->n_stages; i++) {
    const aoth_stage_t *stage = &c->p->stages[i];
    if (!stage->device) continue;
    if (stage->device->use) note_status(c, aoth_stage_resolve(c->s, stage->device, "device/1", c->p->arena));
    if (stage->unit && !is_backend(stage))
      out_of_order(c, stage, "'device' requires a backend, and this stage is not one");
  }
}

static void check_ranks(checker_t *c) {
  aoth_stage_t *ranks = &c->p->run.ranks;
  if (ranks->use) note_status(c, aoth_stage_resolve(c->s, ranks, "communicator/1", c->p->arena));
}

/* What the step is, to a unit that requests it by options of these names. */
static void tell_step(const aoth_stage_t *stage, const aoth_train_spec_t *train) {
  const aoth_loss_scale_t *scale = &train->loss_scale;
  aoth_option_set(stage, "step", (aot_opt_value_t){.s = aot_str("one-graph")});
  aoth_option_set(stage, "loss", (aot_opt_value_t){.i = train->loss});
  aoth_option_set(stage, "accumulate", (aot_opt_value_t){.i = train->accumulate});
  aoth_option_set(stage, "clip-norm", (aot_opt_value_t){.f = train->clip_norm});
  aoth_option_set(stage, "loss-scale", (aot_opt_value_t){.f = scale->first});
  aoth_option_set(stage, "check-finite", (aot_opt_value_t){.i = train->check_finite});
  if (scale->kind == AOTH_SCALE_NONE) return;
  aoth_option_set(stage, "growth-factor", (aot_opt_value_t){.f = scale->growth});
  aoth_option_set(stage, "backoff-factor", (aot_opt_value_t){.f = scale->backoff});
  aoth_option_set(stage, "growth-interval", (aot_opt_value_t){.i = scale->interval});
}

static int plans_for_step(const aoth_unit_t *unit) {
  const int is_sharding = unit->has_contract && (unit->contract.gives.known & AOTH_PROP_SHARDED);
  return is_sharding || strcmp(unit->kind, "partition/1") == 0;
}

/* One graph is what training takes where it can have it: a host without that unit trains with three. */
static void check_stitch(checker_t *c, aoth_train_spec_t *train) {
  if (train->step != AOTH_STEP_ONE_GRAPH ||
      (!train->is_step_said && !aoth_registry_find(c->s->registry, train->stitch.use)))
    return;
  note_status(c, aoth_stage_resolve(c->s, &train->stitch, "pass/1", c->p->arena));
  if (!train->stitch.unit) return;
  tell_step(&train->stitch, train);
  for (uint32_t i = 0; i < c->p->n_stages; i++) /* those that plan for it */
    if (c->p->stages[i].unit && plans_for_step(c->p->stages[i].unit)) tell_step(&c->p->stages[i], train);
}

/* Casts are right after the stage that makes the program functional, before any that would look at dtypes. */
static void check_precision(checker_t *c, aoth_train_spec_t *train) {
  aoth_stage_t *cast = &train->autocast;
  if (train->precision == AOTH_PRECISION_F32) return;
  note_status(c, aoth_stage_resolve(c->s, cast, "pass/1", c->p->arena));
  aoth_option_set(cast, "dtype", (aot_opt_value_t){.s = aot_str(aoth_precisions[train->precision])});
  train->autocast_at = 0;
  for (uint32_t i = c->p->n_stages; i-- > 0;) {
    const aoth_stage_t *stage = &c->p->stages[i];
    if (!stage->unit) continue;
    if (stage->unit == cast->unit) out_of_order(c, stage, "'precision' already adds this stage; remove one of the two");
    if (stage->unit->has_contract && (stage->unit->contract.gives.known & AOTH_PROP_FUNCTIONAL))
      train->autocast_at = i + 1;
  }
}

static void check_train(checker_t *c) {
  aoth_train_spec_t *train = &c->p->run.train;
  if (!train->present) return;
  note_status(c, aoth_stage_resolve(c->s, &train->optimizer, "pass/1", c->p->arena));
  check_stitch(c, train);
  check_precision(c, train);
  const aoth_stage_t *last = c->p->n_stages ? &c->p->stages[c->p->n_stages - 1] : NULL;
  if (last && (!last->unit || strcmp(last->unit->kind, "backend/2") == 0)) return;
  aoth_sink_report(c->s->config.sink, AOT_SEVERITY_ERROR, &train->where, "pipeline.train",
                   "training requires a backend as the last stage, found %s; append one with '- use: BACKEND'",
                   last ? last->name : "no stage");
  c->input_failed = 1;
}

aot_status_t aoth_pipeline_check(aoth_session_t *s, aoth_pipeline_t *p) {
  checker_t c = {s, p, 0, 0};
  check_model(&c);
  for (uint32_t i = 0; i < p->n_stages; i++)
    if (p->stages[i].use) note_status(&c, aoth_stage_resolve(s, &p->stages[i], AOTH_STAGE_KINDS, p->arena));
  check_device(&c);
  check_ranks(&c);
  check_train(&c);
  check_order(&c);
  check_isolation(&c);
  check_assign(&c);
  check_contracts(&c);
  check_files(&c);
  if (c.input_failed) return AOT_E_INVALID;
  return c.plugin_failed ? AOTH_E_PLUGIN : AOT_OK;
}
