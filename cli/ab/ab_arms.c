/* An arm's text: [NAME=]UNIT[:OPTION=VALUE[,OPTION=VALUE]..]. Commas inside brackets, braces and quotes belong to the
 * value, which is YAML. UNIT "." is the pipeline's own stage, options and all. */
#include <cli/ab/ab.h>

#include <string.h>

static aot_status_t wrong(aoth_sink_t *sink, const char *text, const char *what) {
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "ab.with", "--with '%s': %s", text, what);
  aoth_sink_line(sink,
                 "hint: an arm is [NAME=]UNIT[:OPTION=VALUE,..], as in --with 'near=partition-mincut:distance-base=2'");
  return AOT_E_INVALID;
}

/* Where the option that begins at `at` ends: at a comma outside of brackets and quotes, or at the end. */
static const char *option_end(const char *at) {
  int depth = 0;
  char quote = 0;
  for (; *at; at++) {
    if (quote) {
      if (quote == '"' && *at == '\\' && at[1]) at++;
      else if (*at == quote) quote = 0;
    } else if (*at == '"' || *at == '\'') {
      quote = *at;
    } else if (*at == '[' || *at == '{') {
      depth++;
    } else if (*at == ']' || *at == '}') {
      depth--;
    } else if (*at == ',' && depth <= 0) {
      return at;
    }
  }
  return at;
}

static aot_status_t read_options(const char *at, kit_arena_t *arena, aoth_sink_t *sink, aoth_ab_arm_t *out) {
  out->withs = kit_arena_alloc(arena, sizeof(void *), (strlen(at) + 1) * sizeof *out->withs);
  if (!out->withs) return AOT_E_EXHAUSTED;
  for (const char *end; *at; at = *end ? end + 1 : end) {
    end = option_end(at);
    while (*at == ' ') at++;
    const char *equals = at < end ? memchr(at, '=', (size_t)(end - at)) : NULL;
    if (!equals || equals == at)
      return wrong(sink, out->text, "after ':' come options, OPTION=VALUE, with commas between them");
    out->withs[out->n_withs] = kit_arena_text(arena, at, (size_t)(end - at));
    if (!out->withs[out->n_withs++]) return AOT_E_EXHAUSTED;
    if (*end && !end[1]) return wrong(sink, out->text, "an option should follow the last comma");
  }
  return out->n_withs ? AOT_OK : wrong(sink, out->text, "after ':' come options, OPTION=VALUE");
}

aot_status_t aoth_ab_arm_parse(const char *text, kit_arena_t *arena, aoth_sink_t *sink, aoth_ab_arm_t *out) {
  const size_t n_before = strcspn(text, ":"), n_name = strcspn(text, "=");
  const char *unit = n_name < n_before ? text + n_name + 1 : text;
  const size_t n_unit = strcspn(unit, ":");
  *out = (aoth_ab_arm_t){.text = text, .name = text};
  if (unit != text) {
    if (n_name == 0) return wrong(sink, text, "the name before '=' is empty");
    out->name = kit_arena_text(arena, text, n_name);
  }
  if (n_unit == 0) return wrong(sink, text, "the unit is missing; '.' is the pipeline's own stage");
  const int is_own = n_unit == 1 && unit[0] == '.';
  if (!is_own) out->use = kit_arena_text(arena, unit, n_unit);
  if (!out->name || (!is_own && !out->use)) return AOT_E_EXHAUSTED;
  return unit[n_unit] ? read_options(unit + n_unit + 1, arena, sink, out) : AOT_OK;
}

aot_status_t aoth_ab_arms_name(aoth_ab_arm_t *arms, uint32_t n, kit_arena_t *arena, aoth_sink_t *sink) {
  for (uint32_t i = 1; i < n; i++) { /* at most 16 */
    kit_text_t numbered = {0};
    for (uint32_t k = 0; k < i; k++) {
      if (strcmp(arms[k].name, arms[i].name) != 0) continue;
      if (strcmp(arms[i].name, arms[i].text) != 0) {
        kit_text_deinit(&numbered);
        aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "ab.name", "--with '%s': there is an arm '%s' already",
                         arms[i].text, arms[i].name);
        return AOT_E_INVALID;
      }
      kit_text_f(&numbered, "%s (%u)", arms[i].text, i + 1);
    }
    if (numbered.data) arms[i].name = kit_arena_text(arena, numbered.data, numbered.size);
    kit_text_deinit(&numbered);
    if (!arms[i].name) return AOT_E_EXHAUSTED;
  }
  return AOT_OK;
}
