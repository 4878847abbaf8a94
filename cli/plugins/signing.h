/* Signing plugin files (plugin/signature.h has the form of keys and signatures). */
#ifndef AOTH_SIGNING_H
#define AOTH_SIGNING_H

#include <base/sink.h>

/* A new secret key at `path`, and its public one at `path`.pub. Existing files are not overwritten: an error. */
aot_status_t aoth_key_make(const char *path, aoth_sink_t *sink);
/* Writes FILE.sig for each file, by the secret key at `key`. Stops at the first failure, which is reported. */
aot_status_t aoth_sign(const char *key, const char *const *files, uint32_t n_files, aoth_sink_t *sink);

#endif
