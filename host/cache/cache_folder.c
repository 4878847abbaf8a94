#define _GNU_SOURCE /* d_type */
#include <cache/cache_folder.h>

#include "kit/base/byte_size.h"
#include "kit/base/temporary.h"
#include "kit/base/text.h"
#include <dirent.h>
#include <fcntl.h>
#include <process/environment.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *join(kit_arena_t *arena, const char *folder, const char *name, const char *suffix) {
  kit_text_t path = {0};
  kit_text_f(&path, "%s/%s%s", folder, name, suffix);
  const char *kept = path.failed ? NULL : kit_arena_text(arena, path.data, path.size);
  kit_text_deinit(&path);
  return kept;
}

int64_t aoth_cache_limit(void) {
  const char *given = aoth_env("AOT_CACHE_LIMIT");
  int64_t bytes;
  return given && kit_byte_size(given, &bytes) ? bytes : AOTH_CACHE_LIMIT;
}

const char *aoth_cache_path(kit_arena_t *arena, const char *folder, const char *hex) {
  return join(arena, folder, hex, AOTH_CACHE_SUFFIX);
}

static int by_use(const void *a, const void *b) {
  const aoth_cache_file_t *x = a, *y = b;
  if (x->used != y->used) return x->used < y->used ? 1 : -1;
  return strcmp(x->hex, y->hex);
}

/* 1: name ends with the suffix and is a regular file. */
static int read_row(kit_arena_t *arena, const char *folder, const char *name, const char *suffix,
                    aoth_cache_file_t *out) {
  const size_t size = strlen(name), tail = strlen(suffix);
  struct stat st;
  if (size <= tail || strcmp(name + size - tail, suffix) != 0) return 0;
  out->hex = kit_arena_text(arena, name, size - tail);
  out->path = join(arena, folder, name, "");
  if (!out->hex || !out->path || lstat(out->path, &st) != 0 || !S_ISREG(st.st_mode)) return 0;
  out->nbytes = (uint64_t)st.st_size;
  out->used = (int64_t)st.st_mtime;
  return 1;
}

aoth_cache_file_t *aoth_cache_files(kit_arena_t *arena, const char *folder, const char *suffix, uint32_t *out_n) {
  aoth_cache_file_t *rows = NULL, row;
  uint32_t n = 0, capacity = 0;
  DIR *dir = opendir(folder);
  *out_n = 0;
  for (struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
    if (!read_row(arena, folder, d->d_name, suffix, &row)) continue;
    if (n == capacity) {
      aoth_cache_file_t *bigger =
          kit_arena_alloc(arena, sizeof(void *), (capacity ? capacity * 2u : 64u) * sizeof *rows);
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

/* A folder in which a unit works belongs to code that holds its lock; one that nothing holds was left by a killed
 * process. */
static uint32_t remove_folder(int parent, const char *name) {
  struct stat st;
  const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != geteuid() || flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (fd >= 0) close(fd);
    return 0;
  }
  DIR *dir = fdopendir(fd);
  for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
    if (d->d_name[0] != '.') unlinkat(fd, d->d_name, 0);
  const int gone = unlinkat(parent, name, AT_REMOVEDIR) == 0;
  if (dir) closedir(dir); /* and the lock with it */
  else close(fd);
  return gone ? 1 : 0;
}

/* Neither the host nor a unit makes links, pipes or devices there: one under the name of a file would be followed, or
 * waited for. */
static uint32_t remove_trap(int folder, const char *name) {
  struct stat st;
  if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) return 0;
  return unlinkat(folder, name, 0) == 0 ? 1 : 0;
}

/* What killed writers left, and what is no file. */
static uint32_t remove_leftovers(const char *folder) {
  uint32_t n = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
    if (d->d_type != DT_REG && d->d_type != DT_DIR) n += remove_trap(dirfd(dir), d->d_name);
    else if (strstr(d->d_name, AOTH_CACHE_SUFFIX ".tmp-")) n += (uint32_t)kit_temporary_remove(dirfd(dir), d->d_name);
    else if (d->d_name[0] != '.' && d->d_type == DT_DIR) n += remove_folder(dirfd(dir), d->d_name);
  if (dir) closedir(dir);
  return n;
}

static uint32_t evict(kit_arena_t *arena, int64_t limit, const char *keep) {
  const char *const folders[2][2] = {{aoth_cache_dir(arena, AOTH_ENTRIES_FOLDER), AOTH_CACHE_SUFFIX},
                                     {aoth_cache_dir(arena, AOTH_UNITS_FOLDER), ""}};
  aoth_cache_file_t *rows[2] = {NULL, NULL};
  uint32_t n[2] = {0, 0}, n_gone = 0;
  uint64_t total = 0;
  for (int k = 0; k < 2; k++) {
    if (!folders[k][0]) continue;
    n_gone += remove_leftovers(folders[k][0]);
    rows[k] = aoth_cache_files(arena, folders[k][0], folders[k][1], &n[k]);
    for (uint32_t i = 0; i < n[k]; i++) total += rows[k][i].nbytes;
  }
  /* both lists end with the one unused for longest */
  while ((n[0] || n[1]) && total > (uint64_t)(limit > 0 ? limit : 0)) {
    const int k = !n[0] || (n[1] && rows[1][n[1] - 1].used < rows[0][n[0] - 1].used);
    const aoth_cache_file_t *oldest = &rows[k][--n[k]];
    if (keep && strcmp(oldest->path, keep) == 0) continue;
    n_gone += unlink(oldest->path) == 0;
    total -= oldest->nbytes;
  }
  return n_gone;
}

uint32_t aoth_cache_evict(int64_t limit, const char *keep) {
  kit_arena_t *arena = kit_arena_create();
  const uint32_t n_gone = arena ? evict(arena, limit, keep) : 0;
  kit_arena_destroy(arena);
  return n_gone;
}
