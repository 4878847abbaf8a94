/* zip_writer.h - a ZIP archive of stored members, written front to back.
 *
 * As PyTorch's reader likes it: every member under one folder, its bytes at a multiple of 64. Sizes and checksums are
 * known before the bytes are, so they are in the local headers. Dates are 1980-01-01, so equal members give equal
 * archives. ZIP64 where 4 GiB or 65535 members are reached. Format: PKWARE APPNOTE 6.3.9. */
#ifndef P2_ZIP_WRITER_H
#define P2_ZIP_WRITER_H

#include "pt2_env.h"
#include <aot/backend.h>

typedef struct p2_zip_entry {
  aot_str_t name; /* with the folder */
  uint64_t at, nbytes;
  uint32_t crc;
} p2_zip_entry_t;

typedef struct p2_zip_writer { /* zero-initialise but for env, sink and root */
  p2_env_t *env;
  const aot_bytes_sink_t *sink;
  aot_str_t root; /* the folder, without its slash */
  uint64_t at;    /* bytes written so far */
  p2_zip_entry_t *entries;
  uint32_t n_entries, capacity;
} p2_zip_writer_t;

/* One member; data NULL with nbytes > 0: that many zeros. The name is copied. O(nbytes) */
aot_status_t p2_zip_member(p2_zip_writer_t *z, const char *name, const void *data, uint64_t nbytes);
aot_status_t p2_zip_end(p2_zip_writer_t *z); /* the directory */

#endif
