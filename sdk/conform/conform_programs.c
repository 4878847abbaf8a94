#include <sdk/conform/conform_programs.h>

#include <aot/inline.h>
#include <base/file.h>
#include <dirent.h>
#include <process/environment.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const dtypes[] = {
#define DTYPE_TEXT(constant, number, text, size) text,
    AOT_DTYPE_MAP(DTYPE_TEXT)
#undef DTYPE_TEXT
};
#define N_DTYPES (sizeof dtypes / sizeof *dtypes)

static const char *joined(kit_arena_t *arena, const char *a, const char *between, const char *b) {
  kit_text_t t = {0};
  kit_text_f(&t, "%s%s%s", a, between, b);
  const char *kept = kit_arena_text(arena, t.data ? t.data : "", t.size);
  kit_text_deinit(&t);
  return kept ? kept : "";
}

/* "dtype-each.ir": its class is what precedes the first '-'. */
static void add_file(aoth_conform_programs_t *out, const char *file, kit_arena_t *arena) {
  const size_t n_name = strlen(file) - strlen(".ir"), n_class = strcspn(file, "-.");
  const char *class = kit_arena_text(arena, file, n_class), *name = kit_arena_text(arena, file, n_name);
  const int has_dtypes = strncmp(file, "dtype-", 6) == 0;
  for (size_t i = 0; i < (has_dtypes ? N_DTYPES : 1) && out->n < AOTH_MOST_CONFORM_PROGRAMS; i++)
    out->rows[out->n++] = (aoth_conform_program_t){
        .class = class ? class : "",
        .name = has_dtypes ? joined(arena, name ? name : "", " ", dtypes[i])
                : name     ? name
                           : "",
        .path = joined(arena, out->folder, "/", file),
        .dtype = has_dtypes ? dtypes[i] : NULL,
    };
}

aot_status_t aoth_conform_programs_find(kit_arena_t *arena, aoth_sink_t *sink, aoth_conform_programs_t *out) {
  struct dirent **rows = NULL;
  char *exe = aoth_own_file(arena);
  for (int cut = 0; exe && cut < 2; cut++) { /* PREFIX/bin/aothost */
    char *slash = strrchr(exe, '/');
    if (slash) *slash = 0;
  }
  *out = (aoth_conform_programs_t){.folder = joined(arena, exe ? exe : "", "", "/share/aothost/conform")};
  const int n = scandir(out->folder, &rows, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    const size_t size = strlen(rows[i]->d_name);
    if (size > 3 && strcmp(rows[i]->d_name + size - 3, ".ir") == 0) add_file(out, rows[i]->d_name, arena);
    free(rows[i]);
  }
  free(rows);
  if (out->n) return AOT_OK;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "conform.programs", "there are no programs in %s", out->folder);
  aoth_sink_line(sink, "hint: they come with the SDK: `cmake --install`, or Debian's libaothost-dev");
  return AOT_E_NOT_FOUND;
}

aot_status_t aoth_conform_programs_add(aoth_conform_programs_t *p, const char *const *paths, uint32_t n,
                                       aoth_sink_t *sink) {
  if (n > AOTH_MOST_CONFORM_PROGRAMS - p->n) n = AOTH_MOST_CONFORM_PROGRAMS - p->n;
  memmove(p->rows + n, p->rows, p->n * sizeof *p->rows);
  for (uint32_t i = 0; i < n; i++) {
    p->rows[i] = (aoth_conform_program_t){.class = "plain", .name = paths[i], .path = paths[i], .is_own = 1};
    if (access(paths[i], R_OK) == 0) continue;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "conform.program", "--program %s: the file cannot be read",
                     paths[i]);
    return AOT_E_NOT_FOUND;
  }
  p->n += n;
  return AOT_OK;
}

/* A piece of the text with `$T` and, of a repeated line, '#' and '+' filled in. */
static void fill(const char *at, const char *end, const char *dtype, long k, kit_text_t *out) {
  for (; at < end; at++) {
    if (dtype && *at == '$' && at + 1 < end && at[1] == 'T') kit_text_z(out, dtype), at++;
    else if (k >= 0 && *at == '#') kit_text_f(out, "%ld", k);
    else if (k >= 0 && *at == '+') kit_text_f(out, "%ld", k + 1);
    else kit_text_add(out, at, 1);
  }
}

const char *aoth_conform_program_text(const aoth_conform_program_t *p, kit_arena_t *arena, aoth_sink_t *sink,
                                      size_t *out_size) {
  static const char repeat[] = "\n; repeat ", stop[] = "; end\n";
  aoth_map_t map;
  kit_text_t text = {0};
  if (aoth_file_map(p->path, sink, &map) != AOT_OK) return NULL;
  char *all = kit_arena_text(arena, map.data, (size_t)map.nbytes), *at = all;
  aoth_file_unmap(&map);
  for (char *begin; at && (begin = strstr(at, repeat));) {
    char *count = begin + strlen(repeat), *body = strchr(count, '\n'), *end = body ? strstr(body, stop) : NULL;
    if (!end) break;
    fill(at, begin, p->dtype, -1, &text);
    for (long k = 0, n = strtol(count, NULL, 10); k < n; k++) fill(body, end, p->dtype, k, &text);
    at = end + strlen(stop);
  }
  if (at) fill(at, at + strlen(at), p->dtype, -1, &text);
  const char *kept = all && !text.failed ? kit_arena_text(arena, text.data ? text.data : "", text.size) : NULL;
  *out_size = text.size;
  kit_text_deinit(&text);
  if (!kept)
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "conform.memory", "no memory for the text of %s", p->name);
  return kept;
}
