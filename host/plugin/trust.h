/* Which plugin files are opened: what others may have changed is not, and what a user pins must be what he meant. */
#ifndef AOTH_TRUST_H
#define AOTH_TRUST_H

#include "kit/base/sha256.h"
#include <base/sink.h>

/* Why the file or folder is not to be trusted, or NULL. Of a file its folder counts, too: who may write there may put
 * another in its place, unless the folder keeps everybody to files of his own (sticky, as /tmp) and the file is ours,
 * or the system's. path is absolute, without links. */
const char *aoth_distrust(const char *path);
int aoth_file_sha256(const char *path, char out_hex[KIT_SHA256_HEX]); /* 0: it cannot be read */

/* Digests of the plugins that may be opened: lines as sha256sum writes and checks them. */
typedef struct aoth_lock aoth_lock_t;
aoth_lock_t *aoth_lock_read(const char *path, kit_arena_t *arena, aoth_sink_t *sink); /* NULL: reported */
int aoth_lock_has(const aoth_lock_t *lock, const char *hex);
const char *aoth_lock_path(const aoth_lock_t *lock);

#endif
