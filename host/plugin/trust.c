#include <plugin/trust.h>

#include <base/file.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *aoth_distrust(const char *path) {
  struct stat st, folder;
  char name[PATH_MAX];
  if (stat(path, &st) != 0) return NULL;
  if (st.st_mode & S_IWOTH) return S_ISDIR(st.st_mode) ? "writable by everyone" : "writable by everyone";
  if (S_ISDIR(st.st_mode) || snprintf(name, sizeof name, "%s", path) >= (int)sizeof name) return NULL;
  char *slash = strrchr(name, '/');
  if (!slash) return NULL;
  slash[slash == name] = 0;
  if (stat(name, &folder) != 0 || !(folder.st_mode & S_IWOTH)) return NULL;
  const int is_ours = st.st_uid == geteuid() || st.st_uid == 0;
  return (folder.st_mode & S_ISVTX) && is_ours ? NULL : "replaceable by everyone: its folder is writable by everyone";
}

int aoth_file_sha256(const char *path, char out_hex[KIT_SHA256_HEX]) {
  aoth_map_t map;
  if (aoth_file_map(path, NULL, &map) != AOT_OK) return 0;
  kit_sha256(map.data, (size_t)map.nbytes, out_hex);
  aoth_file_unmap(&map);
  return 1;
}

struct aoth_lock {
  const char *path, *text;
};

/* The digest that a line begins with; 0: none. */
static int has_digest(const char *line) {
  for (int i = 0; i < KIT_SHA256_HEX - 1; i++)
    if (!isxdigit((unsigned char)line[i]) || isupper((unsigned char)line[i])) return 0;
  return line[KIT_SHA256_HEX - 1] == ' ';
}

static const char *next_line(const char *line) {
  line += strcspn(line, "\n");
  return *line ? line + 1 : line;
}

aoth_lock_t *aoth_lock_read(const char *path, kit_arena_t *arena, aoth_sink_t *sink) {
  aoth_map_t map;
  aoth_where_t where = {.file = path, .line = 1};
  if (aoth_file_map(path, sink, &map) != AOT_OK) return NULL;
  aoth_lock_t *lock = kit_arena_alloc(arena, sizeof(void *), sizeof *lock);
  if (lock) {
    lock->path = kit_arena_text(arena, path, strlen(path));
    lock->text = kit_arena_text(arena, map.data, (size_t)map.nbytes);
  }
  aoth_file_unmap(&map);
  if (!lock || !lock->path || !lock->text) return NULL;
  for (const char *line = lock->text; *line; line = next_line(line), where.line++) {
    if (*line == '#' || *line == '\n' || has_digest(line)) continue;
    aoth_sink_report(
        sink, AOT_SEVERITY_ERROR, &where, "load.lock",
        "expected lines of a SHA-256 digest, two spaces and a file name, as written by `aothost plugins --lock`");
    return NULL;
  }
  return lock;
}

int aoth_lock_has(const aoth_lock_t *lock, const char *hex) {
  for (const char *line = lock->text; *line; line = next_line(line))
    if (strncmp(line, hex, KIT_SHA256_HEX - 1) == 0) return 1;
  return 0;
}

const char *aoth_lock_path(const aoth_lock_t *lock) { return lock->path; }
