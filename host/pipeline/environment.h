/* The environment, ignored where a program runs with more rights than its caller. */
#ifndef AOTH_ENVIRONMENT_H
#define AOTH_ENVIRONMENT_H

#include <base/arena.h>

const char *aoth_env(const char *name); /* NULL: not set, or not to be trusted */
/* $AOT_CACHE_DIR, $XDG_CACHE_HOME/aothost or ~/.cache/aothost, made when it is not there (mode 0700). NULL: none. */
const char *aoth_cache_dir(aoth_arena_t *arena);
int aoth_make_dirs(const char *path, unsigned mode); /* mkdir -p; 0: errno says why not */

#endif
