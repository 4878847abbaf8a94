#define _GNU_SOURCE /* secure_getenv, dladdr */
#include <process/environment.h>

#include "kit/base/text.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *aoth_env(const char *name) {
  const char *value = secure_getenv(name);
  return value && *value ? value : NULL;
}

char *aoth_own_file(kit_arena_t *arena) {
  char path[PATH_MAX];
  Dl_info here; /* of a program: the name that it was called by, a path or not */
  const int is_path =
      dladdr((const void *)(uintptr_t)aoth_own_file, &here) && here.dli_fname && strchr(here.dli_fname, '/');
  if (!realpath(is_path ? here.dli_fname : "/proc/self/exe", path)) return NULL;
  return kit_arena_text(arena, path, strlen(path));
}

int aoth_make_dirs(const char *path, unsigned mode) {
  char part[4096];
  const size_t size = strlen(path);
  if (size == 0 || size >= sizeof part) {
    errno = size ? ENAMETOOLONG : ENOENT;
    return 0;
  }
  for (size_t i = 1; i <= size; i++) {
    if (path[i] != '/' && path[i] != 0) continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (mkdir(part, (mode_t)mode) != 0 && errno != EEXIST) return 0;
  }
  struct stat st;
  if (stat(path, &st) != 0) return 0;
  if (!S_ISDIR(st.st_mode)) {
    errno = ENOTDIR;
    return 0;
  }
  return 1;
}

/* Programs and code are loaded from here, so no other user may write to it. The folder that the user names may be a
 * link; those in it are made by the host, which also removes what is in them: a link there would lead it to other
 * files. */
static int is_ours(const char *path, int (*look)(const char *, struct stat *)) {
  struct stat st;
  return look(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
         access(path, W_OK) == 0;
}

const char *aoth_cache_dir(kit_arena_t *arena, const char *name) {
  const char *own = aoth_env("AOT_CACHE_DIR"), *xdg = aoth_env("XDG_CACHE_HOME"), *home = aoth_env("HOME");
  kit_text_t path = {0};
  if (own) kit_text_z(&path, own);
  else if (xdg && xdg[0] == '/') /* the base directory specification: relative ones are ignored */
    kit_text_f(&path, "%s/aothost", xdg);
  else if (home && home[0] == '/') kit_text_f(&path, "%s/.cache/aothost", home);
  const char *made = NULL;
  if (path.data && aoth_make_dirs(path.data, 0700) && is_ours(path.data, stat)) {
    kit_text_f(&path, "/%s", name);
    if (!path.failed && aoth_make_dirs(path.data, 0700) && is_ours(path.data, lstat))
      made = kit_arena_text(arena, path.data, path.size);
  }
  kit_text_deinit(&path);
  return made;
}
