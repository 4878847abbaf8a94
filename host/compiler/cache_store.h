/* Between a session and an entry of the compile cache: packing what was compiled, and setting it up again. */
#ifndef AOTH_CACHE_STORE_H
#define AOTH_CACHE_STORE_H

#include <cache/cache_entry.h>
#include <sandbox/session.h>

/* Keep what the session has compiled at s->cache.path. Answers AOTH_BYPASS_NONE, or why it could not be stored; no
 * complaints. */
int aoth_cache_store(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_model_t *model);
/* Program, records and executable out of an entry; the map passes to the session. NULL: done. Else what is wrong, the
 * session as before and the map the caller's. */
const char *aoth_cache_restore(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_model_t *model,
                               aoth_entry_t *entry, struct json_t *about);

#endif
