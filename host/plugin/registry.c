/* Search path -> notes -> units. Files are read in name order within a folder, so the same folders give the same
 * units. */
#include <plugin/registry.h>

#include <base/file.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <process/environment.h>
#include <plugin/trust.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct search_dir {
  const char *path, *from, *note; /* note: why it was left out; NULL: searched */
} search_dir_t;

struct aoth_registry {
  kit_arena_t *arena;
  const aoth_lock_t *lock; /* NULL: none */
  const aoth_keys_t *keys; /* NULL: none */
  aoth_vet_plugin_t vet;   /* NULL: none */
  aoth_sink_t *sink;
  aoth_host_maker_t make_host;
  int debug;
  search_dir_t *dirs;
  uint32_t n_dirs, dir_capacity;
  aoth_plugin_t **plugins;
  uint32_t n_plugins, plugin_capacity;
  const char **texts; /* scratch for names of one folder */
};

void aoth_registry_debug(const aoth_registry_t *r, const char *format, ...) {
  if (!r->debug) return;
  va_list args;
  va_start(args, format);
  fputs("aothost loader: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

/* Room for one more pointer-sized row; the old array stays after in the arena. */
static void *room(kit_arena_t *arena, void *rows, uint32_t n, uint32_t *capacity, size_t row_size) {
  if (n < *capacity) return rows;
  *capacity = *capacity ? *capacity * 2 : 16;
  void *bigger = kit_arena_alloc(arena, sizeof(void *), *capacity * row_size);
  if (bigger && n) memcpy(bigger, rows, n * row_size);
  return bigger;
}

static const char *keep(aoth_registry_t *r, const char *text) { return kit_arena_text(r->arena, text, strlen(text)); }

/* ---- one file ---- */

static void add_units(aoth_registry_t *r, aoth_plugin_t *p) {
  p->units = kit_arena_alloc(r->arena, sizeof(void *), (p->note.n_units + 1) * sizeof *p->units);
  if (!p->units) return;
  for (uint32_t i = 0; i < p->note.n_units; i++) {
    aoth_unit_t *u = &p->units[i];
    u->plugin = p;
    u->kind = p->note.units[i].kind;
    u->id = p->note.units[i].id;
    u->help = p->note.units[i].help;
    u->claims = p->note.units[i].claims;
    u->version = p->note.version;
    u->shadowed_by = aoth_registry_find(r, u->id);
    if (u->shadowed_by)
      aoth_registry_debug(r, "%s: unit %s is shadowed by that of %s", p->path, u->id, u->shadowed_by->plugin->path);
    p->n_units = i + 1;
  }
}

static void add_file(aoth_registry_t *r, const char *path, const char *from, int is_explicit) {
  char absolute[PATH_MAX];
  aoth_map_t map;
  aoth_plugin_t *p = kit_arena_alloc(r->arena, sizeof(void *), sizeof *p);
  if (!p || !realpath(path, absolute)) return;
  for (uint32_t i = 0; i < r->n_plugins; i++)
    if (strcmp(r->plugins[i]->path, absolute) == 0) return;
  r->plugins = room(r->arena, r->plugins, r->n_plugins, &r->plugin_capacity, sizeof *r->plugins);
  if (!r->plugins) {
    r->n_plugins = r->plugin_capacity = 0;
    return;
  }
  p->path = keep(r, absolute);
  if (!p->path) return;
  p->from = from;
  aoth_sink_t *quiet = aoth_sink_create(NULL);
  if (aoth_distrust(p->path)) {
    p->state = AOTH_PLUGIN_REFUSED;
    p->why = aoth_distrust(p->path);
    p->cure = "check that the file is the right one, then remove the write permission of others (chmod o-w on it or "
              "its folder)";
  } else if (aoth_file_map(p->path, quiet, &map) != AOT_OK) {
    p->state = AOTH_PLUGIN_REFUSED;
    p->why = keep(r, aoth_sink_text(quiet));
    p->cure = "check the file and its permissions";
  } else {
    if (aoth_note_read(map.data, map.nbytes, r->arena, &p->note, &p->why) != AOT_OK) {
      p->state = AOTH_PLUGIN_REFUSED;
      p->cure = "rebuild it for this machine from headers of the SDK; plugins/template shows a complete one";
    }
    aoth_file_unmap(&map);
  }
  aoth_sink_destroy(quiet);
  if (p->state == AOTH_PLUGIN_REFUSED) {
    aoth_registry_debug(r, "%s: skipped: %s", p->path, p->why);
    if (is_explicit) {
      aoth_sink_report(r->sink, AOT_SEVERITY_ERROR, NULL, "load.refused", "cannot load plugin %s: %s", p->path, p->why);
      aoth_sink_line(r->sink, "hint: %s", p->cure);
    }
  } else {
    aoth_registry_debug(r, "%s: plugin %s %s, ABI %u.%u, %u units", p->path, p->note.id, p->note.version, p->note.epoch,
                        p->note.minor, p->note.n_units);
    add_units(r, p);
  }
  r->plugins[r->n_plugins++] = p;
}

/* ---- folders ---- */

static int is_library(const struct dirent *e) {
  const size_t n = strlen(e->d_name);
  return n > 3 && e->d_name[0] != '.' && strcmp(e->d_name + n - 3, ".so") == 0;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void scan(aoth_registry_t *r, const char *dir, const char *from) {
  DIR *d = opendir(dir);
  if (!d) return;
  const char **names = NULL;
  uint32_t n = 0, capacity = 0;
  for (struct dirent *e; (e = readdir(d));) {
    if (!is_library(e)) continue;
    kit_text_t path = {0};
    kit_text_f(&path, "%s/%s", dir, e->d_name);
    names = room(r->arena, names, n, &capacity, sizeof *names);
    const char *name = names && path.data && !path.failed ? keep(r, path.data) : NULL;
    if (name) names[n++] = name;
    kit_text_deinit(&path);
    if (!name) break;
  }
  closedir(d);
  if (!names) return;
  if (n) qsort(names, n, sizeof *names, compare_names);
  for (uint32_t i = 0; i < n; i++) add_file(r, names[i], from, 0);
}

static void add_dir(aoth_registry_t *r, const char *path, const char *from, int is_explicit) {
  char absolute[PATH_MAX];
  struct stat st;
  const char *note = NULL, *seen = path;
  if (!realpath(path, absolute) || stat(absolute, &st) != 0) {
    note = strerror(errno);
  } else if (S_ISREG(st.st_mode) && is_explicit) {
    add_file(r, path, from, 1);
    note = "a file";
    seen = absolute;
  } else if (!S_ISDIR(st.st_mode)) {
    note = "not a folder";
  } else if (access(absolute, R_OK | X_OK) != 0) {
    note = strerror(errno);
    seen = absolute;
  } else if (aoth_distrust(absolute)) {
    note = aoth_distrust(absolute);
    seen = absolute;
  } else {
    seen = absolute;
    for (uint32_t i = 0; i < r->n_dirs; i++)
      if (!r->dirs[i].note && strcmp(r->dirs[i].path, absolute) == 0) note = "searched already";
  }
  if (note && strcmp(note, "a file") != 0) {
    aoth_registry_debug(r, "%s (%s): skipped: %s", path, from, note);
    if (is_explicit && strcmp(note, "searched already") != 0)
      aoth_sink_report(r->sink, AOT_SEVERITY_ERROR, NULL, "load.dir", "%s %s: %s", from, path, note);
  }
  r->dirs = room(r->arena, r->dirs, r->n_dirs, &r->dir_capacity, sizeof *r->dirs);
  if (!r->dirs) {
    r->n_dirs = r->dir_capacity = 0;
    return;
  }
  const char *kept = keep(r, seen), *kept_note = note ? keep(r, note) : NULL;
  if (!kept || (note && !kept_note)) return;
  r->dirs[r->n_dirs++] = (search_dir_t){kept, from, kept_note};
  if (note) return;
  aoth_registry_debug(r, "%s (%s): searching", seen, from);
  scan(r, seen, from);
}

static void add_env_path(aoth_registry_t *r) {
  const char *s = aoth_env("AOT_PLUGIN_PATH");
  while (s && *s) {
    const size_t n = strcspn(s, ":");
    const char *dir = kit_arena_text(r->arena, s, n);
    if (dir && dir[0] == '/') add_dir(r, dir, "AOT_PLUGIN_PATH", 0);
    else if (n)
      aoth_registry_debug(r, "%s (AOT_PLUGIN_PATH): skipped: only absolute paths are searched", dir ? dir : "");
    s += n + (s[n] == ':');
  }
}

/* path with its last n parts removed, in place. */
static void cut_parts(char *path, int n) {
  for (; n > 0; n--) {
    char *slash = strrchr(path, '/');
    if (!slash || slash == path) return;
    *slash = 0;
  }
}

static void add_builtin(aoth_registry_t *r) {
  char exe[PATH_MAX], build[] = AOTH_PLUGIN_DIR_BUILD;
  kit_text_t path = {0};
  const char *home = aoth_env("HOME");
  if (home && home[0] == '/') {
    kit_text_f(&path, "%s/.local/lib/aothost", home);
    add_dir(r, path.data ? path.data : "", "user", 0);
  }
  const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  exe[n > 0 ? n : 0] = 0;
  char *own = aoth_own_file(r->arena);
  if (own && strcmp(own, exe) != 0) { /* not a program with the archive in it */
    cut_parts(own, 1);
    kit_text_deinit(&path);
    kit_text_f(&path, "%s/aothost", own);
    add_dir(r, path.data ? path.data : "", "library", 0);
  }
  if (n > 0) {
    char root[PATH_MAX];
    memcpy(root, exe, (size_t)n + 1);
    cut_parts(root, 2);
    kit_text_deinit(&path);
    kit_text_f(&path, "%s/lib/aothost", root);
    add_dir(r, path.data ? path.data : "", "executable", 0);
    cut_parts(build, 2); /* programs of this build, tests among them; no other program looks into a build tree */
    const size_t size = strlen(build);
    if (size > 1 && strncmp(exe, build, size) == 0 && exe[size] == '/') add_dir(r, AOTH_PLUGIN_DIR_BUILD, "build", 0);
  }
  kit_text_deinit(&path);
  add_dir(r, AOTH_PLUGIN_DIR_INSTALLED, "installed", 0);
}

aoth_registry_t *aoth_registry_create(kit_arena_t *arena, const char *const *plugin_dirs, uint32_t n_plugin_dirs,
                                      aoth_sink_t *sink, aoth_host_maker_t make_host) {
  aoth_registry_t *r = kit_arena_alloc(arena, sizeof(void *), sizeof *r);
  if (!r) return NULL;
  const char *debug = aoth_env("AOT_LOADER_DEBUG");
  r->arena = arena;
  r->sink = sink;
  r->make_host = make_host;
  r->debug = debug && strcmp(debug, "0") != 0;
  for (uint32_t i = 0; i < n_plugin_dirs; i++) add_dir(r, plugin_dirs[i], "--plugin-dir", 1);
  add_env_path(r);
  add_builtin(r);
  return kit_arena_failed(arena) ? NULL : r; /* with half of the plugins it would miss units that are there */
}

/* ---- questions ---- */

aot_host_t *aoth_registry_make_host(const aoth_registry_t *r, kit_arena_t *arena, uint32_t minor) {
  return r->make_host(arena, minor);
}

void aoth_registry_set_lock(aoth_registry_t *r, const aoth_lock_t *lock) { r->lock = lock; }
const aoth_lock_t *aoth_registry_lock(const aoth_registry_t *r) { return r->lock; }
void aoth_registry_set_keys(aoth_registry_t *r, const aoth_keys_t *keys) { r->keys = keys; }
const aoth_keys_t *aoth_registry_keys(const aoth_registry_t *r) { return r->keys; }
void aoth_registry_set_vet(aoth_registry_t *r, aoth_vet_plugin_t vet) { r->vet = vet; }
aoth_vet_plugin_t aoth_registry_vet(const aoth_registry_t *r) { return r->vet; }
uint32_t aoth_registry_n_plugins(const aoth_registry_t *r) { return r->n_plugins; }
aoth_plugin_t *aoth_registry_plugin(aoth_registry_t *r, uint32_t i) { return r->plugins[i]; }
int aoth_plugin_is_own(const aoth_plugin_t *p) {
  static const char *const own[] = {"library", "executable", "build", "installed"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (strcmp(p->from, own[i]) == 0) return 1;
  return 0;
}

uint32_t aoth_registry_n_dirs(const aoth_registry_t *r) { return r->n_dirs; }

const char *aoth_registry_dir(const aoth_registry_t *r, uint32_t i, const char **out_from, const char **out_note) {
  *out_from = r->dirs[i].from;
  *out_note = r->dirs[i].note;
  return r->dirs[i].path;
}

aoth_unit_t *aoth_registry_find(aoth_registry_t *r, const char *id) {
  for (uint32_t i = 0; i < r->n_plugins; i++)
    for (uint32_t k = 0; k < r->plugins[i]->n_units; k++)
      if (!r->plugins[i]->units[k].shadowed_by && strcmp(r->plugins[i]->units[k].id, id) == 0)
        return &r->plugins[i]->units[k];
  return NULL;
}

int aoth_kind_in(const char *kind, const char *kinds) {
  const size_t n = strlen(kind);
  for (const char *s = kinds; *s; s += strcspn(s, " ") + (s[strcspn(s, " ")] == ' '))
    if (strcspn(s, " ") == n && memcmp(s, kind, n) == 0) return 1;
  return 0;
}

const char *aoth_registry_nearest(aoth_registry_t *r, const char *id, const char *kinds) {
  aot_str_t names[512];
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n_plugins; i++)
    for (uint32_t k = 0; k < r->plugins[i]->n_units && n < 512; k++) {
      const aoth_unit_t *u = &r->plugins[i]->units[k];
      if (!kinds || aoth_kind_in(u->kind, kinds)) names[n++] = (aot_str_t){u->id, strlen(u->id)};
    }
  const int near = kit_nearest((aot_str_t){id, strlen(id)}, names, n);
  return near >= 0 ? names[near].data : NULL;
}

const aot_option_t *aoth_unit_option(const aoth_unit_t *unit, uint32_t i) { return &unit->options[i]; }

const char *aoth_property_names(aoth_properties_t properties, kit_arena_t *arena) {
  kit_text_t t = {0};
#define ADD_NAME(constant, bit, text, meaning)                                                                         \
  if (properties.known & (1u << bit)) kit_text_f(&t, "%s%s", t.size ? ", " : "", text);
  AOT_PROPERTY_MAP(ADD_NAME)
#undef ADD_NAME
  for (uint32_t bit = AOTH_N_PROPERTIES; bit < 32; bit++)
    if (properties.known & (1u << bit)) kit_text_f(&t, "%sproperty %u", t.size ? ", " : "", bit);
  for (uint32_t i = 0; i < properties.n_named; i++)
    kit_text_f(&t, "%s%.*s", t.size ? ", " : "", (int)properties.named[i].size, properties.named[i].data);
  const char *names = kit_arena_text(arena, t.data ? t.data : "", t.size);
  kit_text_deinit(&t);
  return names ? names : "";
}
