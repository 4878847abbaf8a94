#include <cli/plugins/unit_json.h>

#include <math.h>
#include <config/options.h>
#include <string.h>

json_t *aoth_str_json(aot_str_t s) { return json_stringn(s.size ? s.data : "", (size_t)s.size); }

json_t *aoth_properties_json(aoth_properties_t properties) {
  json_t *list = json_array();
#define ADD_NAME(constant, bit, text, meaning)                                                                         \
  if (properties.known & (1u << bit)) json_array_append_new(list, json_string(text));
  AOT_PROPERTY_MAP(ADD_NAME)
#undef ADD_NAME
  for (uint32_t i = 0; i < properties.n_named; i++) json_array_append_new(list, aoth_str_json(properties.named[i]));
  return list;
}

static json_t *number(double d) { return isfinite(d) ? json_real(d) : json_null(); }

static json_t *preset(const aot_option_t *o) {
  if (o->flags & AOT_OPT_REQUIRED) return json_null();
  switch (o->kind) {
    case AOT_OPT_BOOL: return json_boolean(o->preset.i);
    case AOT_OPT_I64:
    case AOT_OPT_BYTES: return json_integer(o->preset.i);
    case AOT_OPT_F64: return number(o->preset.f);
    default: return aoth_str_json(o->preset.s);
  }
}

static json_t *choices(const aot_option_t *o) {
  json_t *list = json_array();
  for (uint32_t i = 0; o->kind == AOT_OPT_ENUM && i < o->n_choices; i++)
    json_array_append_new(list, aoth_str_json(o->choices[i]));
  return list;
}

static int is_number(const aot_option_t *o) {
  return o->kind == AOT_OPT_I64 || o->kind == AOT_OPT_F64 || o->kind == AOT_OPT_BYTES;
}
static int is_bounded(const aot_option_t *o) { return is_number(o) && (o->flags & AOT_OPT_HAS_RANGE); }

json_t *aoth_option_json(const aot_option_t *o) {
  return json_pack("{s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "name", aoth_str_json(o->name), "kind",
                   aoth_option_kind(o->kind), "required", (o->flags & AOT_OPT_REQUIRED) != 0, "default", preset(o),
                   "min", is_bounded(o) ? number(o->min) : json_null(), "max",
                   is_bounded(o) ? number(o->max) : json_null(), "choices", choices(o), "unit", aoth_str_json(o->unit),
                   "help", aoth_str_json(o->help), "affects_output", (o->flags & AOT_OPT_AFFECTS_OUTPUT) != 0,
                   "experimental", (o->flags & AOT_OPT_EXPERIMENTAL) != 0);
}

/* Any value may be written as a variable instead. */
static json_t *or_variable(json_t *schema) {
  return json_pack("{s:[o, {s:s, s:s}]}", "anyOf", schema, "type", "string", "pattern", "\\$\\{");
}

static void set_bound(json_t *schema, const char *key, double d, int as_integer) {
  if (!isfinite(d)) return;
  if (as_integer && fabs(d) < 9e15) json_object_set_new(schema, key, json_integer((json_int_t)d));
  else if (!as_integer) json_object_set_new(schema, key, json_real(d));
}

json_t *aoth_option_schema(const aot_option_t *o) {
  json_t *s = json_object();
  static const char *const types[] = {"", "boolean", "integer", "number", "string", "string", "string", "integer"};
  json_object_set_new(s, "type", json_string(types[o->kind]));
  if (o->kind == AOT_OPT_ENUM) json_object_set_new(s, "enum", choices(o));
  if (is_bounded(o)) {
    set_bound(s, "minimum", o->min, o->kind != AOT_OPT_F64);
    set_bound(s, "maximum", o->max, o->kind != AOT_OPT_F64);
  }
  if (o->kind == AOT_OPT_BYTES)
    s = json_pack("{s:[o, {s:s, s:s}]}", "anyOf", s, "type", "string", "pattern",
                  "^[0-9]+(\\.[0-9]+)? ?(B|[kMGT]B|[KMGT](iB)?)?$|\\$\\{");
  else if (o->kind != AOT_OPT_STRING && o->kind != AOT_OPT_PATH) s = or_variable(s);
  kit_text_t about = {0};
  kit_text_str(&about, o->help);
  if (o->unit.size) kit_text_f(&about, " (%.*s)", (int)o->unit.size, o->unit.data);
  json_object_set_new(s, "description", json_string(about.data ? about.data : ""));
  kit_text_deinit(&about);
  if (!(o->flags & AOT_OPT_REQUIRED)) json_object_set_new(s, "default", preset(o));
  return s;
}
