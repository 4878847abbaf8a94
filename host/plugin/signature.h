/* Who vouches for a plugin file: a signature next to it, FILE.sig, by a key that the user requests.
 *
 *     secret key  "ed25519-secret " 64 digits            a file that its owner alone may read
 *     public key  "ed25519 " 64 digits                   several lines: any of these keys
 *     signature   "ed25519 " public key " " 128 digits   several lines: signed by several keys
 *
 * Lines that begin with # are remarks. What is signed is "aothost plugin " and the SHA-256 of the file, so that no
 * signature of something else passes for one of a plugin. */
#ifndef AOTH_SIGNATURE_H
#define AOTH_SIGNATURE_H

#include <aot/status.h>
#include <base/arena.h>
#include <base/sink.h>

/* Public keys of which one must have signed. NULL: reported; so it is where this build has no libsodium. */
typedef struct aoth_keys aoth_keys_t;
aoth_keys_t *aoth_keys_read(const char *path, aoth_arena_t *arena, aoth_sink_t *sink);
/* Why the file is not opened when one of the keys has to have signed it, in the arena; NULL: one has. */
const char *aoth_unsigned_why(const aoth_keys_t *keys, const char *file, aoth_arena_t *arena);

/* A new secret key at `path`, and its public one at `path`.pub. Files that are there are left alone: reported. */
aot_status_t aoth_key_make(const char *path, aoth_sink_t *sink);
/* Writes FILE.sig for each file, by the secret key at `key`. The first failure ends it: reported. */
aot_status_t aoth_sign(const char *key, const char *const *files, uint32_t n_files, aoth_sink_t *sink);

#endif
