/* Surroundings: the environment, ignored where a program runs with more rights than its caller. */
#ifndef AOTH_ENVIRONMENT_H
#define AOTH_ENVIRONMENT_H

#include "kit/base/arena.h"

const char *aoth_env(const char *name); /* NULL: not set, or not to be trusted */
/* The folder `name` of $AOT_CACHE_DIR, $XDG_CACHE_HOME/aothost or ~/.cache/aothost; both are made where they are not
 * there (mode 0700). NULL: there is none, or one of the two belongs to another user or is writable by
 * others, or the folder `name` is a symbolic link. */
const char *aoth_cache_dir(kit_arena_t *arena, const char *name);
/* The absolute path of the file that this code was loaded from, libaothost.so or a program. NULL: it cannot be
 * reported. */
char *aoth_own_file(kit_arena_t *arena);
int aoth_make_dirs(const char *path, unsigned mode); /* mkdir -p; 0: errno says why not */

#endif
