/* From a checked pipeline to an executable: out of the compile cache, or by importer and stages, which then are
 * stored. */
#ifndef AOTH_COMPILE_H
#define AOTH_COMPILE_H

#include <compiler/cache_key.h>

#define AOTH_CACHE_HIT 1
#define AOTH_CACHE_MISS 2   /* compiled and kept */
#define AOTH_CACHE_BYPASS 3 /* compiled and not stored; `reason` says why */

/* What the cache had to do with a compile. */
typedef struct aoth_cache_outcome {
  int32_t outcome;    /* AOTH_CACHE_*; 0: nothing compiled yet */
  int reason;         /* AOTH_BYPASS_* */
  const char *detail; /* of the reason, or what was wrong with the entry found; may be NULL */
  const char *path;   /* of the entry; NULL: none */
  aoth_cache_key_t key;
  double ms; /* key, look-up and, at a hit, everything until the executable is ready */
} aoth_cache_outcome_t;

/* aoth_pipeline_import and aoth_pipeline_run_stages with the cache before them. flags: AOTH_STAGES_OPTIMIZER; the cache
 * is not asked when the session's configuration says so. */
aot_status_t aoth_pipeline_compile(aoth_session_t *s, const aoth_pipeline_t *p, uint32_t flags);
/* The same for inputs that share memory, next to the programs that the session has (session.h, "several programs"): on
 * success the new one is selected, *out is its number and *out_cached: the cache had it; else the one that was. The
 * session's records stay those of the first. */
aot_status_t aoth_pipeline_specialise(aoth_session_t *s, const aoth_pipeline_t *p, uint32_t flags,
                                      const struct aoth_aliasing *aliasing, uint32_t *out, int *out_cached);
const aoth_cache_outcome_t *aoth_session_cache(const aoth_session_t *s);

/* The key alone, for `aothost cache explain`. */
aot_status_t aoth_pipeline_key(aoth_session_t *s, const aoth_pipeline_t *p, uint32_t flags, aoth_cache_key_t *key);
/* What the units read of the environment when the entry was made reads the same now. NULL: yes; else the variable. */
struct json_t;
const char *aoth_cache_changed_variable(const struct json_t *about);

#endif
