#include <cli/ops/op_sources.h>

#include <base/file.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <sandbox/call.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINE 1024

/* "operator TAB what TAB file:line", cut at its tabs. 0: it has another form. */
static int cut_line(char *line, aoth_op_source_t *out) {
  char *what = strchr(line, '\t'), *place = what ? strchr(what + 1, '\t') : NULL;
  line[strcspn(line, "\n")] = 0;
  if (!place || strchr(place + 1, '\t')) return 0;
  *what++ = *place++ = 0;
  *out = (aoth_op_source_t){.op = line, .what = what, .place = place};
  return *line && *what && *place;
}

static aot_status_t add_line(aoth_session_t *s, const char *plugin, const char *line, aoth_op_sources_t *out) {
  char *own = kit_arena_text(s->arena, line, strlen(line));
  aoth_op_source_t row, *rows = aoth_session_room(s, out->rows, out->n, &out->capacity, sizeof *rows);
  if (!own || !rows) return AOT_E_EXHAUSTED;
  out->rows = rows;
  if (!cut_line(own, &row)) return AOT_OK;
  row.plugin = plugin;
  row.number = out->n;
  rows[out->n++] = row;
  return AOT_OK;
}

/* path: of the plugin's file. */
static aot_status_t read_plugin(aoth_session_t *s, const char *path, const char *ending, aoth_op_sources_t *out) {
  const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *dot = strrchr(base, '.');
  const size_t n = dot ? (size_t)(dot - path) : strlen(path);
  const char *plugin = kit_arena_text(s->arena, base, n - (size_t)(base - path)), *why;
  char line[MAX_LINE];
  kit_text_t name = {0};
  aot_status_t status = plugin ? AOT_OK : AOT_E_EXHAUSTED;
  kit_text_f(&name, "%.*s.%s", (int)n, path, ending);
  FILE *f = name.failed ? NULL : kit_file_stream(name.data, &why);
  while (f && status == AOT_OK && fgets(line, sizeof line, f)) status = add_line(s, plugin, line, out);
  if (f) fclose(f);
  kit_text_deinit(&name);
  return status;
}

static int by_operator(const void *a, const void *b) {
  const aoth_op_source_t *x = a, *y = b;
  const int order = strcmp(x->op, y->op);
  return order ? order : (x->number > y->number) - (x->number < y->number);
}

aot_status_t aoth_op_sources_read(aoth_session_t *s, const char *ending, aoth_op_sources_t *out) {
  aoth_registry_t *r = aoth_session_registry(s);
  *out = (aoth_op_sources_t){0};
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++)
    AOT_TRY(read_plugin(s, aoth_registry_plugin(r, i)->path, ending, out));
  if (out->n) qsort(out->rows, out->n, sizeof *out->rows, by_operator);
  return AOT_OK;
}

const aoth_op_source_t *aoth_op_sources_find(const aoth_op_sources_t *sources, const char *op, uint32_t *out_n) {
  uint32_t low = 0, high = sources->n;
  while (low < high) {
    const uint32_t mid = low + (high - low) / 2;
    if (strcmp(sources->rows[mid].op, op) < 0) low = mid + 1;
    else high = mid;
  }
  *out_n = 0;
  while (low + *out_n < sources->n && strcmp(sources->rows[low + *out_n].op, op) == 0) ++*out_n;
  return *out_n ? &sources->rows[low] : NULL;
}
