/* The folder of the compile cache: one file an entry, KEY.aotc, in `compiled` of the cache folder (environment.h).
 *
 * Files appear whole or not at all (written beside, renamed) and are never changed, so that readers need no lock; one that is
 * removed while it is mapped lives on for its reader. The time of the last use is the file's modification time. When the
 * folder outgrows its limit, the entries unused for longest go; two processes that clear at once find files gone, which is
 * what they wanted. */
#ifndef AOTH_CACHE_FOLDER_H
#define AOTH_CACHE_FOLDER_H

#include <aot/status.h>
#include <base/arena.h>
#include <stdint.h>

#define AOTH_CACHE_SUFFIX ".aotc"
#define AOTH_CACHE_LIMIT (INT64_C(1) << 30) /* bytes, unless AOT_CACHE_LIMIT says otherwise */

typedef struct aoth_cache_file {
  const char *path, *hex;
  uint64_t nbytes;
  int64_t used; /* seconds since 1970 */
} aoth_cache_file_t;

const char *aoth_cache_folder(aoth_arena_t *arena); /* made when it is not there; NULL: none to be had */
int64_t aoth_cache_limit(void);                     /* AOT_CACHE_LIMIT ("256MiB"), else the constant */
const char *aoth_cache_path(aoth_arena_t *arena, const char *folder, const char *hex); /* NULL: no memory */
/* Every entry, the one used last first. NULL with n 0: none, or no memory. */
aoth_cache_file_t *aoth_cache_files(aoth_arena_t *arena, const char *folder, uint32_t *out_n);
void aoth_cache_touch(const char *path); /* used now */
/* Removes the entries unused for longest until the rest fits into limit; leftovers of killed writers, too. `keep` stays (its
 * path, or NULL). Answers how many went. */
uint32_t aoth_cache_evict(const char *folder, int64_t limit, const char *keep);

#endif
