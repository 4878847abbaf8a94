/* Files: mapped for reading, replaced atomically for writing. */
#ifndef AOTH_FILE_H
#define AOTH_FILE_H

#include <aot/status.h>
#include <base/sink.h>
#include "kit/base/file_open.h"
#include <stddef.h>
#include <stdint.h>

typedef struct aoth_map { /* a file mapped read-only, private */
  const void *data;
  uint64_t nbytes;
} aoth_map_t;

/* Each reports to the sink what failed (path, errno text). AOT_E_NOT_FOUND, AOT_E_INVALID, AOT_E_EXHAUSTED. */
aot_status_t aoth_file_map(const char *path, aoth_sink_t *sink, aoth_map_t *out);
aot_status_t aoth_file_map_own(const char *path, aoth_sink_t *sink, aoth_map_t *out); /* KIT_OPEN_OWN */
void aoth_file_unmap(aoth_map_t *m);

/* Write to PATH.tmp-N, fsync, rename: PATH is whole or untouched. The temporary is removed on failure; one that a
 * killed process left goes when PATH is written the next time (temporary.h). */
typedef struct aoth_writer aoth_writer_t;
aoth_writer_t *aoth_writer_begin(const char *path,
                                 aoth_sink_t *sink); /* a path that the user gave: links are followed */
/* A name that the program chose, in a cache, a dump folder, a bundle: a link or a pipe there is replaced, not
 * written. */
aoth_writer_t *aoth_writer_begin_own(const char *path, aoth_sink_t *sink);
void aoth_writer_write(aoth_writer_t *w, const void *data, size_t n); /* errors are stored for commit */
aot_status_t aoth_writer_commit(aoth_writer_t *w);                    /* frees w, also on failure */
void aoth_writer_abort(aoth_writer_t *w);

#endif
