/* The folders of the compile cache, in the cache folder (environment.h): `compiled` has one file an entry, KEY.aotc;
 * `units` is what aot.env/1 hands to units, which name the files in it.
 *
 * Files appear whole or not at all (written in addition, renamed) and are never changed, so that readers need no lock;
 * one that is removed while it is mapped lives on for its reader. The time of the last use is the file's modification
 * time. When both folders outgrow their limit, the files unused for longest go; two processes that clear at once find
 * files gone, which is what they wanted. */
#ifndef AOTH_CACHE_FOLDER_H
#define AOTH_CACHE_FOLDER_H

#include <aot/status.h>
#include "kit/base/arena.h"
#include <stdint.h>

#define AOTH_CACHE_SUFFIX ".aotc"
#define AOTH_ENTRIES_FOLDER "compiled"
#define AOTH_UNITS_FOLDER "units"
#define AOTH_CACHE_LIMIT (INT64_C(1) << 30) /* bytes, unless AOT_CACHE_LIMIT says otherwise */

typedef struct aoth_cache_file {
  const char *path, *hex;
  uint64_t nbytes;
  int64_t used; /* seconds since 1970 */
} aoth_cache_file_t;

int64_t aoth_cache_limit(void); /* AOT_CACHE_LIMIT ("256MiB"), else the constant */
const char *aoth_cache_path(kit_arena_t *arena, const char *folder, const char *hex); /* NULL: no memory */
/* Every file with the suffix ("": all; `hex` is the name without it), the one used last first. NULL with n 0: none,
 * or no memory. */
aoth_cache_file_t *aoth_cache_files(kit_arena_t *arena, const char *folder, const char *suffix, uint32_t *out_n);
void aoth_cache_touch(const char *path); /* used now */
/* Removes entries and files of units, those unused for longest, until the rest fits into limit; leftovers of killed
 * writers, too. `keep` stays (its path, or NULL). Answers how many went. */
uint32_t aoth_cache_evict(int64_t limit, const char *keep);

#endif
