/* run: -> aoth_run_spec_t. Every default is here, and nowhere else; docs/PIPELINE.md reports them. */
#include <config/run_section.h>

#include <aot/inline.h>
#include <config/compose.h>
#include <config/default_units.h>
#include <config/stage_print.h>
#include <string.h>

const char *const aoth_precisions[3] = {"f32", "bf16", "f16"};
const char *const aoth_loss_scales[2] = {"none", "dynamic"};
const char *const aoth_steps[2] = {"one-graph", "three-graphs"};
const char *const aoth_schedules[3] = {"constant", "linear", "cosine"};
const int32_t aoth_token_dtypes[6] = {AOT_U8, AOT_U16, AOT_I16, AOT_I32, AOT_U32, AOT_I64};

static int32_t read_dtype(const aoth_fields_t *f, const aoth_yaml_t *map) {
  const char *words[6];
  for (int i = 0; i < 6; i++) words[i] = aot_dtype_name(aoth_token_dtypes[i]);
  return aoth_token_dtypes[aoth_fields_word(f, map, "dtype", 0, words, 6)];
}

/* Which user inputs take the tokens and the tokens after them. */
static void read_pair(const aoth_fields_t *f, const aoth_yaml_t *map, uint32_t out[2]) {
  const aoth_yaml_t *list = aoth_fields_get(map, "inputs");
  out[0] = 0;
  out[1] = 1;
  if (!list) return;
  int64_t pair[2] = {0, 1};
  int ok = list->kind == AOTH_YAML_LIST && list->n == 2;
  for (uint32_t i = 0; ok && i < 2; i++)
    ok = aoth_yaml_i64(list->items[i], &pair[i]) && pair[i] >= 0 && pair[i] < 65536;
  if (!ok || pair[0] == pair[1]) {
    aoth_yaml_error(f->sink, f->arena, list, "pipeline.type",
                    "'inputs': expected the indices of two user inputs: [tokens, next tokens]");
    return;
  }
  out[0] = (uint32_t)pair[0];
  out[1] = (uint32_t)pair[1];
}

/* random | FILE.safetensors | {safetensors: F} | {tokens: F, dtype, batch, block, inputs} */
static void read_data(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key, aoth_data_spec_t *out) {
  static const char *const keys[] = {"tokens", "dtype", "batch", "block", "inputs", "safetensors"};
  const aoth_yaml_t *node = aoth_fields_get(map, key);
  if (!node) return;
  out->where = aoth_yaml_where(f->arena, node);
  if (node->kind == AOTH_YAML_SCALAR) {
    if (strcmp(node->text.data, "random") == 0) {
      out->kind = AOTH_DATA_RANDOM;
      return;
    }
    out->path = aoth_fields_path(f, map, key);
    if (out->path) out->kind = AOTH_DATA_SAFETENSORS;
    return;
  }
  if (!aoth_fields_known(f, node, key, keys, 6)) return;
  const aoth_yaml_t *tokens = aoth_fields_get(node, "tokens"), *file = aoth_fields_get(node, "safetensors");
  if (!tokens == !file) {
    aoth_yaml_error(f->sink, f->arena, node, "pipeline.data",
                    "'%s': expected 'random', a .safetensors file, {safetensors: FILE} or {tokens: FILE, ...}", key);
    return;
  }
  out->kind = tokens ? AOTH_DATA_TOKENS : AOTH_DATA_SAFETENSORS;
  out->path = aoth_fields_path(f, node, tokens ? "tokens" : "safetensors");
  if (!tokens) {
    for (uint32_t i = 1; i < 5; i++)
      if (aoth_yaml_get(node, keys[i]))
        aoth_yaml_error(f->sink, f->arena, aoth_yaml_get(node, keys[i]), "pipeline.data",
                        "'%s' requires 'tokens: FILE'", keys[i]);
    return;
  }
  out->dtype = read_dtype(f, node);
  out->batch = aoth_fields_i64(f, node, "batch", 0, 1, INT32_MAX);
  out->block = aoth_fields_i64(f, node, "block", 0, 1, INT32_MAX);
  read_pair(f, node, out->inputs);
}

static void read_checkpoint(const aoth_fields_t *f, const aoth_yaml_t *map, aoth_train_spec_t *t) {
  static const char *const keys[] = {"path", "every"};
  const aoth_yaml_t *node = aoth_fields_get(map, "checkpoint");
  t->where_checkpoint = aoth_fields_where(f, map, "checkpoint");
  if (node && node->kind == AOTH_YAML_SCALAR) {
    t->checkpoint_path = aoth_fields_path(f, map, "checkpoint");
  } else if (aoth_fields_known(f, node, "checkpoint", keys, 2)) {
    t->checkpoint_path = aoth_fields_path(f, node, "path");
    t->checkpoint_every = aoth_fields_i64(f, node, "every", 0, 0, INT64_MAX);
    if (!aoth_fields_get(node, "path"))
      aoth_yaml_error(f->sink, f->arena, node, "pipeline.missing", "'checkpoint': missing 'path'");
  }
}

/* A map of options: optimizer-with, device-with. */
static const aoth_yaml_t *read_options(const aoth_fields_t *f, const aoth_yaml_t *map, const char *key) {
  const aoth_yaml_t *with = aoth_fields_get(map, key);
  if (!with || with->kind == AOTH_YAML_MAP) return with;
  aoth_yaml_error(f->sink, f->arena, with, "pipeline.type", "'%s': expected a map of options, got %s", key,
                  aoth_yaml_kind(with));
  return NULL;
}

/* "unit:2" is the unit with the option ordinal: 2. */
static const aoth_yaml_t *add_ordinal(const aoth_fields_t *f, const aoth_yaml_t *at, const char *number,
                                      const aoth_yaml_t *with) {
  aoth_yaml_t *all = aoth_yaml_map(f->arena, at), *key = aoth_yaml_scalar(f->arena, at, "ordinal", 7);
  aoth_yaml_t *value = aoth_yaml_scalar(f->arena, at, number, strlen(number));
  if (!all || !key || !value) return with;
  for (uint32_t i = 0; with && i < with->n; i++) aoth_yaml_put(f->arena, all, with->pairs[i].key, with->pairs[i].value);
  aoth_yaml_put(f->arena, all, key, value);
  return all;
}

/* UNIT, UNIT:ORDINAL, or host. */
void aoth_device_read(const aoth_fields_t *f, const aoth_yaml_t *map, aoth_stage_t *out) {
  const char *text = aoth_fields_text(f, map, "device");
  const aoth_yaml_t *at = aoth_yaml_get(map, "device"), *with = read_options(f, map, "device-with");
  const size_t n = text ? strcspn(text, ":") : 0;
  if (text && text[n]) with = add_ordinal(f, at, text + n + 1, with);
  if (!text || (n == 4 && memcmp(text, "host", n) == 0)) {
    if (with) aoth_yaml_error(f->sink, f->arena, with, "pipeline.device", "device 'host' has no options");
    return;
  }
  out->use = out->name = kit_arena_text(f->arena, text, n);
  out->at = at;
  out->where = aoth_fields_where(f, map, "device");
  out->with = with;
}

const char *aoth_device_name(kit_arena_t *arena, const aoth_stage_t *device) {
  kit_text_t text = {0};
  kit_text_z(&text, device->use ? device->use : "host");
  if (device->use) aoth_print_options(&text, " ", device);
  const char *name = kit_arena_text(arena, text.data ? text.data : "", text.size);
  kit_text_deinit(&text);
  return name;
}

/* UNIT, or none. */
static void read_ranks(const aoth_fields_t *f, const aoth_yaml_t *map, aoth_stage_t *out) {
  const char *use = aoth_fields_text(f, map, "ranks");
  const aoth_yaml_t *with = read_options(f, map, "ranks-with");
  if (!use || strcmp(use, "none") == 0) {
    if (with) aoth_yaml_error(f->sink, f->arena, with, "pipeline.ranks", "'ranks-with' requires 'ranks: UNIT'");
    return;
  }
  out->use = out->name = use;
  out->at = aoth_yaml_get(map, "ranks");
  out->where = aoth_fields_where(f, map, "ranks");
  out->with = with;
}

static void read_optimizer(const aoth_fields_t *f, const aoth_yaml_t *map, const aoth_default_units_t *units,
                           aoth_train_spec_t *t) {
  const char *use = aoth_fields_text(f, map, "optimizer");
  aoth_default_units_stage(units, AOTH_UNIT_OPTIMIZER, &t->where, &t->optimizer);
  if (use) {
    t->optimizer.use = t->optimizer.name = use;
    t->optimizer.at = aoth_yaml_get(map, "optimizer");
    t->optimizer.where = aoth_fields_where(f, map, "optimizer");
  }
  t->where_optimizer = t->optimizer.where;
  t->optimizer.with = read_options(f, map, "optimizer-with");
}

static void read_precision(const aoth_fields_t *f, const aoth_yaml_t *map, const aoth_default_units_t *units,
                           aoth_train_spec_t *t) {
  const aoth_where_t where = aoth_fields_where(f, map, "precision");
  t->precision = aoth_fields_word(f, map, "precision", AOTH_PRECISION_F32, aoth_precisions, 3);
  t->autocast.at = aoth_yaml_get(map, "precision");
  aoth_default_units_stage(units, AOTH_UNIT_PRECISION, &where, &t->autocast);
}

/* none | dynamic | NUMBER; `loss-scale-with` belongs to dynamic. float16 has a small range: there it is what is
 * done. */
static void read_loss_scale(const aoth_fields_t *f, const aoth_yaml_t *map, aoth_train_spec_t *t) {
  static const char *const keys[] = {"init", "growth-factor", "backoff-factor", "growth-interval"};
  const aoth_yaml_t *node = aoth_fields_get(map, "loss-scale"), *with = aoth_fields_get(map, "loss-scale-with");
  aoth_loss_scale_t *scale = &t->loss_scale;
  scale->kind = t->precision == AOTH_PRECISION_F16 ? AOTH_SCALE_DYNAMIC : AOTH_SCALE_NONE;
  double number;
  if (node && aoth_yaml_f64(node, &number)) {
    scale->kind = AOTH_SCALE_CONSTANT;
    number = aoth_fields_f64(f, map, "loss-scale", 1, 1e-30, 1e30);
  } else {
    scale->kind = aoth_fields_word(f, map, "loss-scale", scale->kind, aoth_loss_scales, 2);
  }
  if (scale->kind == AOTH_SCALE_CONSTANT) *scale = (aoth_loss_scale_t){AOTH_SCALE_CONSTANT, number, 1, 1, 1};
  if (with && scale->kind != AOTH_SCALE_DYNAMIC)
    aoth_yaml_error(f->sink, f->arena, with, "pipeline.loss-scale", "'loss-scale-with' requires 'loss-scale: dynamic'");
  if (scale->kind != AOTH_SCALE_DYNAMIC || (with && !aoth_fields_known(f, with, "loss-scale-with", keys, 4))) return;
  scale->first = aoth_fields_f64(f, with, "init", 65536, 1e-30, 1e30);
  scale->growth = aoth_fields_f64(f, with, "growth-factor", 2, 1, 1e9);
  scale->backoff = aoth_fields_f64(f, with, "backoff-factor", 0.5, 1e-9, 1);
  scale->interval = aoth_fields_i64(f, with, "growth-interval", 2000, 1, INT64_C(1000000000000000));
}

static void read_check_finite(const aoth_fields_t *f, const aoth_yaml_t *map, aoth_train_spec_t *t) {
  static const char *const words[] = {"false", "true"};
  t->check_finite = aoth_fields_word(f, map, "check-finite", 0, words, 2);
  if (t->check_finite && t->loss_scale.kind != AOTH_SCALE_NONE)
    aoth_yaml_error(f->sink, f->arena, aoth_fields_get(map, "check-finite"), "pipeline.check-finite",
                    "'check-finite' and 'loss-scale' are mutually exclusive: one stops at a non-finite gradient, the "
                    "other skips the step; remove one");
}

static void read_train(const aoth_fields_t *f, const aoth_yaml_t *map, const aoth_default_units_t *units,
                       aoth_run_spec_t *run) {
  static const char *const keys[] = {
      "steps",      "optimizer", "optimizer-with", "lr",         "schedule",        "warmup",      "min-lr",
      "data",       "seed",      "log-every",      "loss",       "checkpoint",      "resume",      "step",
      "accumulate", "clip-norm", "precision",      "loss-scale", "loss-scale-with", "check-finite"};
  aoth_train_spec_t *t = &run->train;
  const aoth_yaml_t *node = aoth_fields_get(map, "train");
  if (!aoth_fields_known(f, node, "train", keys, 20)) return;
  t->present = 1;
  t->where = aoth_yaml_where(f->arena, node);
  t->steps = aoth_fields_i64(f, node, "steps", 0, 1, INT64_C(1) << 40);
  if (!aoth_fields_get(node, "steps"))
    aoth_yaml_error(f->sink, f->arena, node, "pipeline.missing", "'train': missing 'steps'");
  read_optimizer(f, node, units, t);
  t->step = aoth_fields_word(f, node, "step", AOTH_STEP_ONE_GRAPH, aoth_steps, 2);
  t->where_step = aoth_fields_get(node, "step") ? aoth_fields_where(f, node, "step") : t->where;
  t->accumulate = aoth_fields_i64(f, node, "accumulate", 1, 1, 1000000);
  t->clip_norm = aoth_fields_f64(f, node, "clip-norm", 0, 0, 1e9);
  read_precision(f, node, units, t);
  read_loss_scale(f, node, t);
  read_check_finite(f, node, t);
  const int wants_one = t->accumulate > 1 || t->clip_norm > 0 || t->loss_scale.kind || t->check_finite;
  t->is_step_said = aoth_fields_get(node, "step") || wants_one;
  if (t->step == AOTH_STEP_THREE_GRAPHS && wants_one)
    aoth_yaml_error(f->sink, f->arena, node, "pipeline.step",
                    "'accumulate', 'clip-norm', 'loss-scale' and 'check-finite' require 'step: one-graph'");
  t->lr = aoth_fields_f64(f, node, "lr", 1e-3, 0, 1e6);
  t->min_lr = aoth_fields_f64(f, node, "min-lr", 0, 0, 1e6);
  t->schedule = aoth_fields_word(f, node, "schedule", AOTH_SCHEDULE_CONSTANT, aoth_schedules, 3);
  t->warmup = aoth_fields_i64(f, node, "warmup", 0, 0, INT64_MAX);
  t->data = run->inputs;
  if (aoth_fields_get(node, "data")) {
    memset(&t->data, 0, sizeof t->data);
    read_data(f, node, "data", &t->data);
  } else if (t->data.kind == AOTH_DATA_NONE) {
    t->data.kind = AOTH_DATA_RANDOM;
    t->data.where = t->where;
  }
  t->seed = aoth_fields_i64(f, node, "seed", run->seed, INT64_MIN, INT64_MAX);
  t->log_every = aoth_fields_i64(f, node, "log-every", 10, 0, INT64_MAX);
  t->loss = aoth_fields_i64(f, node, "loss", 0, 0, INT32_MAX);
  t->where_loss = aoth_fields_where(f, node, "loss");
  /* where its errors point */
  aoth_default_units_stage(units, AOTH_UNIT_STEP, aoth_fields_get(node, "loss") ? &t->where_loss : &t->where_step,
                           &t->stitch);
  read_checkpoint(f, node, t);
  t->resume = aoth_fields_path(f, node, "resume");
  t->where_resume = aoth_fields_where(f, node, "resume");
}

void aoth_run_read(const aoth_fields_t *f, const aoth_yaml_t *node, const aoth_default_units_t *units,
                   aoth_run_spec_t *out) {
  static const char *const keys[] = {"inputs", "outputs",     "seed",  "train",     "alias-patterns",
                                     "device", "device-with", "ranks", "ranks-with"};
  memset(out, 0, sizeof *out);
  out->alias_patterns = 8;
  if (!aoth_fields_known(f, node, "run", keys, 9)) return;
  out->present = 1;
  out->where = aoth_yaml_where(f->arena, node);
  read_data(f, node, "inputs", &out->inputs);
  out->outputs = aoth_fields_path(f, node, "outputs");
  out->where_outputs = aoth_fields_where(f, node, "outputs");
  out->seed = aoth_fields_i64(f, node, "seed", 0, INT64_MIN, INT64_MAX);
  out->alias_patterns = (uint32_t)aoth_fields_i64(f, node, "alias-patterns", 8, 0, 65536);
  aoth_device_read(f, node, &out->device);
  read_ranks(f, node, &out->ranks);
  read_train(f, node, units, out);
}

/* ---- printing, with every default filled in ---- */

static void print_path(kit_text_t *out, const char *key, const char *path) {
  if (!path) return;
  kit_text_f(out, "%s: ", key);
  aoth_print_path(out, path);
  kit_text_z(out, "\n");
}

static void print_data(kit_text_t *out, const char *key, const aoth_data_spec_t *d) {
  if (d->kind == AOTH_DATA_NONE) return;
  kit_text_f(out, "%s: ", key);
  if (d->kind == AOTH_DATA_RANDOM) {
    kit_text_z(out, "random\n");
    return;
  }
  kit_text_z(out, d->kind == AOTH_DATA_TOKENS ? "{tokens: " : "{safetensors: ");
  aoth_print_path(out, d->path ? d->path : "");
  if (d->kind == AOTH_DATA_TOKENS) {
    kit_text_f(out, ", dtype: %s", aot_dtype_name(d->dtype));
    if (d->batch) kit_text_f(out, ", batch: %lld", (long long)d->batch);
    if (d->block) kit_text_f(out, ", block: %lld", (long long)d->block);
    kit_text_f(out, ", inputs: [%u, %u]", d->inputs[0], d->inputs[1]);
  }
  kit_text_z(out, "}\n");
}

static void print_loss_scale(kit_text_t *out, const aoth_loss_scale_t *scale) {
  kit_text_z(out, "\n    loss-scale: ");
  if (scale->kind == AOTH_SCALE_CONSTANT) aoth_print_double(out, scale->first);
  else kit_text_z(out, aoth_loss_scales[scale->kind]);
  if (scale->kind != AOTH_SCALE_DYNAMIC) return;
  kit_text_z(out, "\n    loss-scale-with: {init: ");
  aoth_print_double(out, scale->first);
  kit_text_z(out, ", growth-factor: ");
  aoth_print_double(out, scale->growth);
  kit_text_z(out, ", backoff-factor: ");
  aoth_print_double(out, scale->backoff);
  kit_text_f(out, ", growth-interval: %lld}", (long long)scale->interval);
}

static void print_train(kit_text_t *out, const aoth_train_spec_t *t) {
  kit_text_f(out, "  train:\n    steps: %lld\n    optimizer: ", (long long)t->steps);
  aoth_yaml_print_text(out, aot_str(t->optimizer.use));
  kit_text_z(out, "\n");
  aoth_print_options(out, "    optimizer-with: ", &t->optimizer);
  kit_text_z(out, "    lr: ");
  aoth_print_double(out, t->lr);
  kit_text_f(out, "\n    step: %s\n    accumulate: %lld\n    clip-norm: ", aoth_steps[t->step],
             (long long)t->accumulate);
  aoth_print_double(out, t->clip_norm);
  kit_text_f(out, "\n    precision: %s", aoth_precisions[t->precision]);
  print_loss_scale(out, &t->loss_scale);
  kit_text_f(out, "\n    check-finite: %s", t->check_finite ? "true" : "false");
  kit_text_f(out, "\n    schedule: %s\n    warmup: %lld\n    min-lr: ", aoth_schedules[t->schedule],
             (long long)t->warmup);
  aoth_print_double(out, t->min_lr);
  kit_text_z(out, "\n");
  print_data(out, "    data", &t->data);
  kit_text_f(out, "    seed: %lld\n    log-every: %lld\n    loss: %lld\n", (long long)t->seed, (long long)t->log_every,
             (long long)t->loss);
  if (t->checkpoint_path) {
    kit_text_z(out, "    checkpoint: {path: ");
    aoth_print_path(out, t->checkpoint_path);
    kit_text_f(out, ", every: %lld}\n", (long long)t->checkpoint_every);
  }
  print_path(out, "    resume", t->resume);
}

void aoth_run_print(const aoth_run_spec_t *run, kit_text_t *out) {
  if (!run->present) return;
  kit_text_z(out, "run:\n");
  print_data(out, "  inputs", &run->inputs);
  print_path(out, "  outputs", run->outputs);
  kit_text_f(out, "  seed: %lld\n  device: %s\n", (long long)run->seed, run->device.use ? run->device.use : "host");
  if (run->device.use) aoth_print_options(out, "  device-with: ", &run->device);
  if (run->ranks.use) {
    kit_text_f(out, "  ranks: %s\n", run->ranks.use);
    aoth_print_options(out, "  ranks-with: ", &run->ranks);
  }
  kit_text_f(out, "  alias-patterns: %u\n", run->alias_patterns);
  if (run->train.present) print_train(out, &run->train);
}
