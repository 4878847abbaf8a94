#include <cli/plugins/plugin_template.h>

#include <aot/inline.h>
#include <base/file.h>
#include "kit/base/text.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <process/environment.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES 64u
#define MOST_NAME 64u
#define SDK_HINT "they come with the SDK: `cmake --install`, or Debian's libaothost-dev"

static const char *keep(kit_arena_t *arena, kit_text_t *text) {
  const char *kept = text->failed ? NULL : kit_arena_text(arena, text->data ? text->data : "", text->size);
  kit_text_deinit(text);
  return kept ? kept : "";
}

/* ---- where they are ---- */

/* Names in the folder but those with a dot in front, in order; at most `most` of them. */
static uint32_t list_folder(const char *path, kit_arena_t *arena, const char **out, uint32_t most) {
  struct dirent **rows = NULL;
  const int n = scandir(path, &rows, NULL, alphasort);
  uint32_t n_out = 0;
  for (int i = 0; i < n; i++) {
    const char *name = rows[i]->d_name;
    if (name[0] != '.' && n_out < most) out[n_out] = kit_arena_text(arena, name, strlen(name));
    n_out += name[0] != '.' && n_out < most && out[n_out];
    free(rows[i]);
  }
  free(rows);
  return n_out;
}

/* The heading of a README without its mark. */
static const char *title_of(const char *folder, const char *kind, kit_arena_t *arena) {
  char line[256] = "";
  kit_text_t path = {0}, title = {0};
  kit_text_f(&path, "%s/%s/README.md", folder, kind);
  const char *why;
  FILE *f = path.data ? kit_file_stream(path.data, &why) : NULL;
  if (f && fgets(line, sizeof line, f)) line[strcspn(line, "\n")] = 0;
  if (f) fclose(f);
  kit_text_deinit(&path);
  kit_text_z(&title, strncmp(line, "# ", 2) == 0 ? line + 2 : line);
  return keep(arena, &title);
}

aot_status_t aoth_templates_find(kit_arena_t *arena, aoth_sink_t *sink, aoth_templates_t *out) {
  kit_text_t prefix = {0}, folder = {0};
  char *exe = aoth_own_file(arena);
  for (int cut = 0; exe && cut < 2; cut++) { /* PREFIX/bin/aothost */
    char *slash = strrchr(exe, '/');
    if (slash) *slash = 0;
  }
  kit_text_z(&prefix, exe ? exe : "");
  kit_text_f(&folder, "%s/share/aothost/templates", exe ? exe : "");
  out->prefix = keep(arena, &prefix);
  out->folder = keep(arena, &folder);
  out->n = list_folder(out->folder, arena, out->kinds, AOTH_MOST_TEMPLATES);
  for (uint32_t i = 0; i < out->n; i++) out->titles[i] = title_of(out->folder, out->kinds[i], arena);
  if (out->n) return AOT_OK;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "new.templates", "there are no templates in %s", out->folder);
  aoth_sink_line(sink, "hint: %s", SDK_HINT);
  return AOT_E_NOT_FOUND;
}

/* ---- names ---- */

static aot_status_t check_name(const char *name, aoth_sink_t *sink) {
  static const char *const of_cmake[] = {"all", "clean", "help", "install", "package", "test"};
  size_t n = 0;
  while (isalnum((unsigned char)name[n]) || (n && strchr(".-_", name[n]) && name[n])) n++;
  const int is_word =
      n && !name[n] && n <= MOST_NAME && isalpha((unsigned char)name[0]) && isalnum((unsigned char)name[n - 1]);
  if (!is_word)
    aoth_sink_report(
        sink, AOT_SEVERITY_ERROR, NULL, "new.name",
        "'%s' is no name of a plugin: it begins with a letter and goes on with at most %u letters, digits, "
        "'.', '-' and '_'",
        name, MOST_NAME - 1);
  for (size_t i = 0; is_word && i < sizeof of_cmake / sizeof *of_cmake; i++) {
    if (strcmp(of_cmake[i], name) != 0) continue;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "new.name", "'%s' is a word of CMake's own; choose another name",
                     name);
    return AOT_E_INVALID;
  }
  return is_word ? AOT_OK : AOT_E_INVALID;
}

/* org.acme.fuse -> org_acme_fuse */
static const char *as_word(const char *name, kit_arena_t *arena) {
  char *word = kit_arena_text(arena, name, strlen(name));
  for (char *c = word; c && *c; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return word;
}

/* What the template's CMakeLists.txt calls its plugin. NULL: nothing. */
static const char *name_of_template(const aoth_map_t *list, kit_arena_t *arena) {
  static const char call[] = "aot_add_plugin(";
  const size_t n_call = sizeof call - 1;
  const char *at = list->data, *end = at + list->nbytes;
  for (; (size_t)(end - at) > n_call; at++) {
    if (memcmp(at, call, n_call) != 0) continue;
    const char *name = at + n_call;
    for (at = name; at < end && !isspace((unsigned char)*at) && *at != ')';) at++;
    return kit_arena_text(arena, name, (size_t)(at - name));
  }
  return NULL;
}

/* ---- copying ---- */

typedef struct rename_state {
  const char *from[2], *to[2]; /* the name, and the name as a word of C */
} rename_state_t;

static void rename_all(const rename_state_t *r, const aoth_map_t *file, kit_text_t *out) {
  const char *at = file->data, *end = at + file->nbytes;
  while (at < end) {
    int k = 0;
    size_t n = 0;
    for (; k < 2; k++) {
      n = strlen(r->from[k]);
      if ((size_t)(end - at) >= n && memcmp(at, r->from[k], n) == 0) break;
    }
    if (k < 2) kit_text_z(out, r->to[k]);
    else kit_text_add(out, at, 1);
    at += k < 2 ? n : 1;
  }
}

static aot_status_t copy_file(const char *from, const char *to, const rename_state_t *r, aoth_sink_t *sink) {
  aoth_map_t map;
  kit_text_t text = {0};
  AOT_TRY(aoth_file_map(from, sink, &map));
  rename_all(r, &map, &text);
  aoth_file_unmap(&map);
  aoth_writer_t *w = text.failed ? NULL : aoth_writer_begin_own(to, sink);
  if (w) aoth_writer_write(w, text.data ? text.data : "", text.size);
  const aot_status_t status = w             ? aoth_writer_commit(w)
                              : text.failed ? aoth_sink_no_memory(sink, NULL, "new.memory", "for the templates")
                                            : AOT_E_INVALID;
  kit_text_deinit(&text);
  return status;
}

static aot_status_t copy_files(const char *source, const char *folder, const rename_state_t *r, kit_arena_t *arena,
                               aoth_sink_t *sink, const char **out_files) {
  const char *names[MOST_FILES];
  const uint32_t n = list_folder(source, arena, names, MOST_FILES);
  kit_text_t from = {0}, to = {0}, files = {0};
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < n && status == AOT_OK; i++) {
    struct stat about;
    from.size = to.size = 0;
    kit_text_f(&from, "%s/%s", source, names[i]);
    kit_text_f(&to, "%s/%s", folder, names[i]);
    if (from.failed || to.failed) status = aoth_sink_no_memory(sink, NULL, "new.memory", "for the templates");
    else if (stat(from.data, &about) != 0 || !S_ISREG(about.st_mode)) continue; /* a build folder */
    else status = copy_file(from.data, to.data, r, sink);
    kit_text_f(&files, "%s%s", files.size ? " " : "", names[i]);
  }
  for (uint32_t i = 0; i < n && status != AOT_OK; i++) { /* nothing stays */
    to.size = 0;
    kit_text_f(&to, "%s/%s", folder, names[i]);
    if (to.data) unlink(to.data);
  }
  kit_text_deinit(&from);
  kit_text_deinit(&to);
  *out_files = keep(arena, &files);
  return status;
}

static aot_status_t unknown_kind(const aoth_templates_t *t, const char *kind, aoth_sink_t *sink) {
  aot_str_t names[AOTH_MOST_TEMPLATES];
  kit_text_t list = {0};
  for (uint32_t i = 0; i < t->n; i++) {
    names[i] = aot_str(t->kinds[i]);
    kit_text_f(&list, "%s%s", i ? ", " : "", t->kinds[i]);
  }
  const int near = kit_nearest(aot_str(kind), names, t->n);
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "new.kind", "there is no template of kind '%s'%s%s%s; there are: %s",
                   kind, near >= 0 ? "; did you mean '" : "", near >= 0 ? names[near].data : "", near >= 0 ? "'?" : "",
                   list.data ? list.data : "");
  kit_text_deinit(&list);
  return AOT_E_NOT_FOUND;
}

aot_status_t aoth_template_copy(const aoth_templates_t *t, const char *kind, const char *name, const char *folder,
                                kit_arena_t *arena, aoth_sink_t *sink, const char **out_files) {
  kit_text_t path = {0};
  aoth_map_t list;
  uint32_t i = 0;
  AOT_TRY(check_name(name, sink));
  while (i < t->n && strcmp(t->kinds[i], kind) != 0) i++;
  if (i == t->n) return unknown_kind(t, kind, sink);
  kit_text_f(&path, "%s/%s", t->folder, kind);
  const char *source = keep(arena, &path);
  kit_text_f(&path, "%s/CMakeLists.txt", source);
  AOT_TRY(aoth_file_map(keep(arena, &path), sink, &list));
  const char *own = name_of_template(&list, arena);
  aoth_file_unmap(&list);
  if (!own || !*own) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "new.template", "%s/CMakeLists.txt adds no plugin", source);
    return AOT_E_INVALID;
  }
  const rename_state_t r = {{own, as_word(own, arena)}, {name, as_word(name, arena)}};
  if (!r.from[1] || !r.to[1]) return aoth_sink_no_memory(sink, NULL, "new.memory", "for the templates");
  if (mkdir(folder, 0777) != 0) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "new.folder",
                     errno == EEXIST ? "%s is there already; nothing is written%.0s" : "cannot make the folder %s: %s",
                     folder, strerror(errno));
    return AOT_E_INVALID;
  }
  const aot_status_t status = copy_files(source, folder, &r, arena, sink, out_files);
  if (status != AOT_OK) rmdir(folder);
  return status;
}
