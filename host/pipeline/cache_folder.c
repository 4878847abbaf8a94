#include <pipeline/cache_folder.h>

#include <base/temporary.h>
#include <base/text.h>
#include <dirent.h>
#include <fcntl.h>
#include <pipeline/environment.h>
#include <pipeline/options.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *join(aoth_arena_t *arena, const char *folder, const char *name, const char *suffix) {
  aoth_text_t path = {0};
  aoth_text_f(&path, "%s/%s%s", folder, name, suffix);
  const char *kept = path.failed ? NULL : aoth_arena_text(arena, path.data, path.size);
  aoth_text_deinit(&path);
  return kept;
}

const char *aoth_cache_folder(aoth_arena_t *arena) {
  const char *parent = aoth_cache_dir(arena);
  const char *folder = parent ? join(arena, parent, "compiled", "") : NULL;
  return folder && aoth_make_dirs(folder, 0700) ? folder : NULL;
}

int64_t aoth_cache_limit(void) {
  const char *given = aoth_env("AOT_CACHE_LIMIT");
  int64_t bytes;
  return given && aoth_option_bytes(given, &bytes) ? bytes : AOTH_CACHE_LIMIT;
}

const char *aoth_cache_path(aoth_arena_t *arena, const char *folder, const char *hex) {
  return join(arena, folder, hex, AOTH_CACHE_SUFFIX);
}

static int by_use(const void *a, const void *b) {
  const aoth_cache_file_t *x = a, *y = b;
  if (x->used != y->used) return x->used < y->used ? 1 : -1;
  return strcmp(x->hex, y->hex);
}

/* 1: name is HEX.aotc and a regular file. */
static int read_row(aoth_arena_t *arena, const char *folder, const char *name, aoth_cache_file_t *out) {
  const size_t size = strlen(name), tail = strlen(AOTH_CACHE_SUFFIX);
  struct stat st;
  if (size <= tail || strcmp(name + size - tail, AOTH_CACHE_SUFFIX) != 0) return 0;
  out->hex = aoth_arena_text(arena, name, size - tail);
  out->path = join(arena, folder, name, "");
  if (!out->hex || !out->path || lstat(out->path, &st) != 0 || !S_ISREG(st.st_mode)) return 0;
  out->nbytes = (uint64_t)st.st_size;
  out->used = (int64_t)st.st_mtime;
  return 1;
}

aoth_cache_file_t *aoth_cache_files(aoth_arena_t *arena, const char *folder, uint32_t *out_n) {
  aoth_cache_file_t *rows = NULL, row;
  uint32_t n = 0, capacity = 0;
  DIR *dir = opendir(folder);
  *out_n = 0;
  for (struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
    if (!read_row(arena, folder, d->d_name, &row)) continue;
    if (n == capacity) {
      aoth_cache_file_t *bigger = aoth_arena_alloc(arena, sizeof(void *), (capacity ? capacity * 2u : 64u) * sizeof *rows);
      if (!bigger) break;
      if (n) memcpy(bigger, rows, n * sizeof *rows);
      capacity = capacity ? capacity * 2u : 64u;
      rows = bigger;
    }
    rows[n++] = row;
  }
  if (dir) closedir(dir);
  if (n) qsort(rows, n, sizeof *rows, by_use);
  *out_n = n;
  return rows;
}

void aoth_cache_touch(const char *path) { utimensat(AT_FDCWD, path, NULL, 0); }

/* What killed writers left. */
static uint32_t remove_leftovers(const char *folder) {
  uint32_t n = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
    if (strstr(d->d_name, AOTH_CACHE_SUFFIX ".tmp-")) n += (uint32_t)aoth_temporary_remove(dirfd(dir), d->d_name);
  if (dir) closedir(dir);
  return n;
}

uint32_t aoth_cache_evict(const char *folder, int64_t limit, const char *keep) {
  aoth_arena_t *arena = aoth_arena_create();
  uint32_t n = 0, n_gone = remove_leftovers(folder);
  uint64_t total = 0;
  aoth_cache_file_t *rows = arena ? aoth_cache_files(arena, folder, &n) : NULL;
  for (uint32_t i = 0; i < n; i++) total += rows[i].nbytes;
  for (uint32_t i = n; i > 0 && total > (uint64_t)(limit > 0 ? limit : 0); i--) {
    if (keep && strcmp(rows[i - 1].path, keep) == 0) continue;
    n_gone += unlink(rows[i - 1].path) == 0;
    total -= rows[i - 1].nbytes;
  }
  aoth_arena_destroy(arena);
  return n_gone;
}
