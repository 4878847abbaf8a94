/* Each option of the schema gets a value: the user's, checked, or its default. Types are strict: a quoted "1" is a
 * text, `yes` is no bool. Complaints are at the value, or at the stage when a required option is missing. */
#include <config/options.h>

#include <aot/inline.h>
#include "kit/base/byte_size.h"
#include <math.h>
#include <config/compose.h>
#include <config/stage_print.h>
#include <stdlib.h>
#include <string.h>

typedef struct resolver {
  const aoth_stage_t *stage;
  kit_arena_t *arena;
  aoth_sink_t *sink;
  int failed;
} resolver_t;

const char *aoth_option_kind(int32_t kind) {
  static const char *const names[] = {"?", "bool", "integer", "number", "text", "choice", "path", "bytes"};
  return kind >= AOT_OPT_BOOL && kind <= AOT_OPT_BYTES ? names[kind] : names[0];
}

static void bound(kit_text_t *out, const aot_option_t *o, double d) {
  if (o->kind == AOT_OPT_F64 || fabs(d) > 9e15) aoth_print_double(out, d);
  else kit_text_i64(out, (int64_t)d);
}

void aoth_option_range(const aot_option_t *o, kit_text_t *out) {
  const int is_number = o->kind == AOT_OPT_I64 || o->kind == AOT_OPT_F64 || o->kind == AOT_OPT_BYTES;
  const int bounded_above = isfinite(o->max) && o->max < 9.2e18, bounded_below = isfinite(o->min) && o->min > -9.2e18;
  if (!is_number || !(o->flags & AOT_OPT_HAS_RANGE)) return;
  if (bounded_below && bounded_above) {
    bound(out, o, o->min);
    kit_text_z(out, " to ");
    bound(out, o, o->max);
  } else if (bounded_below || bounded_above) {
    kit_text_z(out, bounded_below ? "at least " : "at most ");
    bound(out, o, bounded_below ? o->min : o->max);
  }
}

void aoth_option_preset(const aot_option_t *o, kit_text_t *out) {
  if (o->flags & AOT_OPT_REQUIRED) {
    kit_text_z(out, "required");
    return;
  }
  switch (o->kind) {
    case AOT_OPT_BOOL: kit_text_z(out, o->preset.i ? "true" : "false"); break;
    case AOT_OPT_I64:
    case AOT_OPT_BYTES: kit_text_i64(out, o->preset.i); break;
    case AOT_OPT_F64: aoth_print_double(out, o->preset.f); break;
    default: aoth_yaml_print_text(out, o->preset.s);
  }
}

static void wrong(resolver_t *r, const aot_option_t *o, const aoth_yaml_t *value, const char *wanted) {
  const int is_old_bool = o->kind == AOT_OPT_BOOL && strcmp(aoth_yaml_kind(value), "a string") == 0;
  aoth_yaml_error(r->sink, r->arena, value, "option.type", "option '%.*s' of %s: expected %s, got %s%s",
                  (int)o->name.size, o->name.data, r->stage->use, wanted, aoth_yaml_kind(value),
                  is_old_bool ? "; write true or false without quotes (yes and no are strings)" : "");
  r->failed = 1;
}

static void out_of_range(resolver_t *r, const aot_option_t *o, const aoth_yaml_t *value) {
  kit_text_t range = {0};
  aoth_option_range(o, &range);
  aoth_yaml_error(r->sink, r->arena, value, "option.range", "option '%.*s' of %s: value out of range; expected %s%s",
                  (int)o->name.size, o->name.data, r->stage->use,
                  strncmp(range.data ? range.data : "", "at ", 3) == 0 ? "" : "a value from ",
                  range.data ? range.data : "other values");
  kit_text_deinit(&range);
  r->failed = 1;
}

static int in_range(const aot_option_t *o, double d) {
  return !(o->flags & AOT_OPT_HAS_RANGE) || (d >= o->min && d <= o->max);
}

static void take_choice(resolver_t *r, const aot_option_t *o, const aoth_yaml_t *value, aot_opt_value_t *out) {
  kit_text_t list = {0};
  for (uint32_t i = 0; i < o->n_choices; i++) {
    if (aot_str_eq(o->choices[i], value->text)) {
      out->s = o->choices[i];
      kit_text_deinit(&list);
      return;
    }
    kit_text_f(&list, "%s%.*s", i ? ", " : "", (int)o->choices[i].size, o->choices[i].data);
  }
  const int near = kit_nearest(value->text, o->choices, o->n_choices);
  if (near >= 0) kit_text_f(&list, "; did you mean %.*s?", (int)o->choices[near].size, o->choices[near].data);
  aoth_yaml_error(r->sink, r->arena, value, "option.choice",
                  "option '%.*s' of %s: invalid value '%s'; expected one of: %s", (int)o->name.size, o->name.data,
                  r->stage->use, value->text.data, list.data ? list.data : "");
  kit_text_deinit(&list);
  r->failed = 1;
}

static void take_integer(resolver_t *r, const aot_option_t *o, const aoth_yaml_t *value, aot_opt_value_t *out) {
  const int is_bytes = o->kind == AOT_OPT_BYTES;
  int ok = aoth_yaml_i64(value, &out->i);
  if (!ok && is_bytes && value->kind == AOTH_YAML_SCALAR) ok = kit_byte_size(value->text.data, &out->i);
  if (!ok) wrong(r, o, value, is_bytes ? "a number of bytes (4096, 64MiB, 1.5GiB)" : "an integer");
  else if (!in_range(o, (double)out->i) || (is_bytes && out->i < 0)) out_of_range(r, o, value);
}

static void take_text(resolver_t *r, const aot_option_t *o, const aoth_yaml_t *value, aot_opt_value_t *out) {
  if (value->kind != AOTH_YAML_SCALAR || aoth_yaml_is_null(value)) {
    wrong(r, o, value, o->kind == AOT_OPT_PATH ? "a path" : "a string");
    return;
  }
  if (o->kind == AOT_OPT_ENUM) {
    take_choice(r, o, value, out);
    return;
  }
  out->s = value->text;
  if (o->kind == AOT_OPT_PATH) out->s = aot_str(aoth_path_resolve(r->arena, value, value->text.data));
}

static void take(resolver_t *r, const aot_option_t *o, const aoth_yaml_t *value, aot_opt_value_t *out) {
  int b = 0;
  if (value->failed) {
    r->failed = 1;
    return;
  }
  switch (o->kind) {
    case AOT_OPT_BOOL:
      if (!aoth_yaml_bool(value, &b)) wrong(r, o, value, "true or false");
      out->i = b;
      break;
    case AOT_OPT_I64:
    case AOT_OPT_BYTES: take_integer(r, o, value, out); break;
    case AOT_OPT_F64:
      if (!aoth_yaml_f64(value, &out->f)) wrong(r, o, value, "a number");
      else if (!in_range(o, out->f)) out_of_range(r, o, value);
      break;
    default: take_text(r, o, value, out);
  }
}

static uint32_t find_option(const aoth_unit_t *u, aot_str_t name) {
  uint32_t i = 0;
  while (i < u->desc.n_options && !aot_str_eq(u->options[i].name, name)) i++;
  return i;
}

static void unknown(resolver_t *r, const aoth_unit_t *u, const aoth_yaml_t *key) {
  aot_str_t names[256];
  for (uint32_t i = 0; i < u->desc.n_options; i++) names[i] = u->options[i].name;
  const int near = kit_nearest(key->text, names, (size_t)u->desc.n_options);
  kit_text_t list = {0};
  for (uint32_t i = 0; i < u->desc.n_options; i++)
    kit_text_f(&list, "%s%.*s", i ? ", " : "", (int)names[i].size, names[i].data);
  if (near >= 0)
    aoth_yaml_error(r->sink, r->arena, key, "option.unknown", "%s has no option '%s'; did you mean '%.*s'?", u->id,
                    key->text.data, (int)names[near].size, names[near].data);
  else if (list.size)
    aoth_yaml_error(r->sink, r->arena, key, "option.unknown", "%s has no option '%s'; it has: %s", u->id,
                    key->text.data, list.data);
  else
    aoth_yaml_error(r->sink, r->arena, key, "option.unknown", "%s has no option '%s'; it has none at all", u->id,
                    key->text.data);
  kit_text_deinit(&list);
  r->failed = 1;
}

aot_status_t aoth_options_resolve(aoth_stage_t *stage, kit_arena_t *arena, aoth_sink_t *sink) {
  const aoth_unit_t *u = stage->unit;
  const uint32_t n = (uint32_t)u->desc.n_options;
  resolver_t r = {stage, arena, sink, 0};
  aot_opt_value_t *values = kit_arena_alloc(arena, sizeof(void *), (n + 1) * sizeof *values);
  unsigned char *given = kit_arena_alloc(arena, 1, n + 1);
  if (!values || !given) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &stage->where, "pipeline.memory", "out of memory for the options of %s",
                     stage->use);
    return AOT_E_EXHAUSTED;
  }
  for (uint32_t i = 0; i < n; i++) values[i] = u->options[i].preset;
  for (uint32_t i = 0; stage->with && i < stage->with->n; i++) {
    const aoth_yaml_pair_t *pair = &stage->with->pairs[i];
    const uint32_t k = find_option(u, pair->key->text);
    if (k == n) {
      unknown(&r, u, pair->key);
      continue;
    }
    given[k] = 1;
    memset(&values[k], 0, sizeof values[k]);
    take(&r, &u->options[k], pair->value, &values[k]);
  }
  for (uint32_t i = 0; i < n; i++) {
    if (given[i] || !(u->options[i].flags & AOT_OPT_REQUIRED)) continue;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &stage->where, "option.missing", "%s needs the option '%.*s': %.*s",
                     stage->use, (int)u->options[i].name.size, u->options[i].name.data, (int)u->options[i].help.size,
                     u->options[i].help.data);
    aoth_yaml_notes(sink, arena, stage->at, "option.missing");
    r.failed = 1;
  }
  stage->opts = (aot_opts_t){sizeof(aot_opts_t), n, values};
  return r.failed ? AOT_E_OPTION : AOT_OK;
}

void aoth_option_set(const aoth_stage_t *stage, const char *name, aot_opt_value_t value) {
  if (stage->with && aoth_yaml_get(stage->with, name)) return;
  for (uint64_t k = 0; stage->unit && k < stage->opts.n_values; k++)
    if (aot_str_eq(stage->unit->options[k].name, aot_str(name)))
      *(aot_opt_value_t *)(uintptr_t)&stage->opts.values[k] = value;
}
