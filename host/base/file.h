/* Files: mapped for reading, replaced atomically for writing. */
#ifndef AOTH_FILE_H
#define AOTH_FILE_H

#include <aot/status.h>
#include <base/sink.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct aoth_map { /* a file mapped read-only, private */
  const void *data;
  uint64_t nbytes;
} aoth_map_t;

/* Opens a regular file for reading and never waits for one: a directory, a named pipe, a socket or a device is refused.
 * A descriptor, with *out filled in; or -1, with errno and *out_why, which reads after "cannot read PATH: ". errno
 * EINVAL: the file is there, and refused. */
#define AOTH_OPEN_OWN 1u  /* a file whose name the program chose: no symbolic link, and this user's */
#define AOTH_OPEN_PIPE 2u /* or a pipe without a name, as /dev/stdin may be one */
struct stat;
int aoth_file_open(const char *path, unsigned how, struct stat *out, const char **out_why);
FILE *aoth_file_stream(const char *path, const char **out_why); /* the same, for lines of text; NULL: *out_why */

/* Are the two paths one file or folder, by device and inode? Two that do not exist are when their folder and name are.
 * Devices and pipes, of which nothing is lost, are not. */
int aoth_file_same(const char *a, const char *b);

/* Each reports to the sink what failed (path, errno text). AOT_E_NOT_FOUND, AOT_E_INVALID, AOT_E_EXHAUSTED. */
aot_status_t aoth_file_map(const char *path, aoth_sink_t *sink, aoth_map_t *out);
aot_status_t aoth_file_map_own(const char *path, aoth_sink_t *sink, aoth_map_t *out); /* AOTH_OPEN_OWN */
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
