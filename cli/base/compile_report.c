#include <cli/base/compile_report.h>

#include <jansson.h>
#include <process/environment.h>
#include <string.h>

/* ---- stages ---- */

void aoth_records_print(aoth_session_t *s, FILE *out) {
  const aoth_record_t *rows;
  const uint32_t n = aoth_session_records(s, &rows);
  double total = 0;
  fprintf(out, "%-24s %-20s %12s %10s %10s %10s\n", "stage", "plugin", "ms", "before", "after", "edits");
  for (uint32_t i = 0; i < n; i++) {
    const aoth_record_t *r = &rows[i];
    total += r->ms;
    if (r->is_cached) fprintf(out, "%-24s %-20s %12s", r->name, r->plugin, "cached");
    else fprintf(out, "%-24s %-20s %12.3f", r->name, r->plugin, r->ms);
    fprintf(out, " %10llu %10llu %10llu\n", (unsigned long long)r->nodes_before, (unsigned long long)r->nodes_after,
            (unsigned long long)r->edits);
    for (uint32_t k = 0; k < r->n_numbers; k++)
      if (r->numbers[k].text) fprintf(out, "  %s: %s\n", r->numbers[k].name, r->numbers[k].text);
      else
        fprintf(out, "  %s: %.6g%s%s\n", r->numbers[k].name, r->numbers[k].value, *r->numbers[k].unit ? " " : "",
                r->numbers[k].unit);
  }
  fprintf(out, "%-24s %-20s %12.3f\n", "total", "", total);
}

/* ---- the compile cache ---- */

static const char *outcome_word(int32_t outcome) {
  static const char *const words[] = {"none", "hit", "miss", "bypass"};
  return words[outcome];
}

void aoth_cache_print(const aoth_session_t *s, FILE *out) {
  const aoth_cache_outcome_t *c = aoth_session_cache(s);
  if (c->outcome == AOTH_CACHE_BYPASS)
    fprintf(out, "cache: bypassed (%s): %s%s%s\n", aoth_bypass_word(c->reason), aoth_bypass_sentence(c->reason),
            c->detail ? ": " : "", c->detail ? c->detail : "");
  else if (c->outcome)
    fprintf(out, "cache: %s, %.1f ms, entry %s%s%s\n", outcome_word(c->outcome), c->ms, c->key.hex,
            c->detail ? "; " : "", c->detail ? c->detail : "");
}

json_t *aoth_cache_json(const aoth_session_t *s) {
  const aoth_cache_outcome_t *c = aoth_session_cache(s);
  if (!c->outcome) return json_null();
  return json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:f}", "outcome", outcome_word(c->outcome), "reason",
                   c->outcome == AOTH_CACHE_BYPASS ? aoth_bypass_word(c->reason) : NULL, "detail", c->detail, "key",
                   c->key.hex[0] ? c->key.hex : NULL, "entry", c->outcome == AOTH_CACHE_BYPASS ? NULL : c->path, "ms",
                   c->ms);
}

static int same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static const char *row_value(const aoth_cache_key_t *key, const char *label) {
  for (uint32_t i = 0; i < key->n_rows; i++)
    if (strcmp(key->rows[i].label, label) == 0) return key->rows[i].value;
  return NULL;
}

uint32_t aoth_cache_differences(const json_t *about, const aoth_cache_key_t *key,
                                void (*each)(void *self, const char *what, const char *then, const char *now),
                                void *self) {
  json_t *rows = json_object_get(about, "key"), *value;
  const char *name;
  uint32_t n = 0;
  if (!json_is_object(rows)) return UINT32_MAX;
  json_object_foreach(rows, name, value) {
    const char *now = row_value(key, name), *then = json_string_value(value);
    if (same_text(now, then)) continue;
    n++;
    if (each) each(self, name, then, now);
  }
  for (uint32_t i = 0; i < key->n_rows; i++) {
    if (json_object_get(rows, key->rows[i].label)) continue;
    n++;
    if (each) each(self, key->rows[i].label, NULL, key->rows[i].value);
  }
  const char *variable = aoth_cache_changed_variable(about);
  if (variable && each)
    each(self, variable, json_string_value(json_object_get(json_object_get(about, "environment"), variable)),
         aoth_env(variable));
  return n + (variable != NULL);
}
