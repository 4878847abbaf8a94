#include <sandbox/record.h>

#include <jansson.h>
#include <math.h>
#include <process/environment.h>
#include <sandbox/session.h>
#include <string.h>

static void *room(kit_arena_t *arena, void *rows, uint32_t n, uint32_t *capacity, size_t row_size) {
  if (n < *capacity) return rows;
  *capacity = *capacity ? *capacity * 2 : 8;
  void *bigger = kit_arena_alloc(arena, sizeof(void *), *capacity * row_size);
  if (bigger && n) memcpy(bigger, rows, n * row_size);
  return bigger;
}

/* The last of a name counts. */
static aot_status_t keep_row(aoth_report_t *r, aot_str_t name, const char *unit, const char *text, double value) {
  if (name.size == 0 || name.size > 128) return AOT_E_INVALID;
  for (uint32_t i = 0; i < r->n_numbers; i++) {
    if (strlen(r->numbers[i].name) != name.size || memcmp(r->numbers[i].name, name.data, (size_t)name.size) != 0)
      continue;
    r->numbers[i].value = value;
    r->numbers[i].text = text;
    return AOT_OK;
  }
  r->numbers = room(r->arena, r->numbers, r->n_numbers, &r->number_capacity, sizeof *r->numbers);
  const char *n = kit_arena_text(r->arena, name.data, (size_t)name.size);
  if (!r->numbers || !n || !unit) {
    r->n_numbers = r->number_capacity = 0;
    return AOT_E_EXHAUSTED;
  }
  r->numbers[r->n_numbers++] = (aoth_number_t){n, unit, text, value};
  return AOT_OK;
}

aot_status_t aoth_report_number(aoth_report_t *r, aot_str_t name, double value, aot_str_t unit) {
  if (unit.size > 64) return AOT_E_INVALID;
  return keep_row(r, name, kit_arena_text(r->arena, unit.size ? unit.data : "", (size_t)unit.size), NULL, value);
}

aot_status_t aoth_report_text(aoth_report_t *r, aot_str_t name, aot_str_t text) {
  if (text.size > 128) return AOT_E_INVALID;
  const char *kept = kit_arena_text(r->arena, text.size ? text.data : "", (size_t)text.size);
  return kept ? keep_row(r, name, "", kept, 0) : AOT_E_EXHAUSTED;
}

const char *aoth_report_env(aoth_report_t *r, const char *name) {
  for (uint32_t i = 0; i < r->n_env; i++)
    if (strcmp(r->env[i].name, name) == 0) return r->env[i].value;
  const char *value = aoth_env(name);
  r->env = room(r->arena, r->env, r->n_env, &r->env_capacity, sizeof *r->env);
  if (!r->env) {
    r->n_env = r->env_capacity = 0;
    return NULL;
  }
  const char *kept = value ? kit_arena_text(r->arena, value, strlen(value)) : NULL;
  const char *kept_name = kit_arena_text(r->arena, name, strlen(name));
  if (kept_name) r->env[r->n_env++] = (aoth_env_read_t){kept_name, kept};
  return kept;
}

/* ---- summaries ---- */

uint32_t aoth_session_records(aoth_session_t *s, const aoth_record_t **out) {
  *out = s->records;
  return s->n_records;
}

static json_t *number_json(const aoth_number_t *n) {
  if (n->text) return json_pack("{s:s}", "text", n->text);
  return json_pack("{s:o, s:s}", "value", isfinite(n->value) ? json_real(n->value) : json_null(), "unit", n->unit);
}

json_t *aoth_records_json(aoth_session_t *s) {
  const aoth_record_t *rows;
  const uint32_t n = aoth_session_records(s, &rows);
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) {
    const aoth_record_t *r = &rows[i];
    json_t *numbers = json_object();
    for (uint32_t k = 0; k < r->n_numbers; k++)
      json_object_set_new(numbers, r->numbers[k].name, number_json(&r->numbers[k]));
    json_array_append_new(list,
                          json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:b, s:I, s:I, s:I, s:I, s:o}", "unit", r->unit,
                                    "name", r->name, "plugin", r->plugin, "version", r->version, "number",
                                    (int)r->number, "ms", r->ms, "cached", (int)r->is_cached, "nodes_before",
                                    (json_int_t)r->nodes_before, "nodes_after", (json_int_t)r->nodes_after, "edits",
                                    (json_int_t)r->edits, "peak_bytes", (json_int_t)r->peak_bytes, "numbers", numbers));
  }
  return list;
}
