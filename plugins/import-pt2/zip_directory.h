/* zip_directory.h - the members of a ZIP archive that is in memory.
 *
 * Only the central directory is trusted for sizes: PyTorch writes zeros into local headers. Stored members are used in
 * place, deflated ones inflated on demand. ZIP64 is read. Every offset is checked before use. Linear in the directory.
 * Format: PKWARE APPNOTE 6.3.9; PyTorch's writer: caffe2/serialize/inline_container.cc. */
#ifndef P2_ZIP_DIRECTORY_H
#define P2_ZIP_DIRECTORY_H

#include "name_table.h"

typedef struct p2_member {
  aot_str_t name;         /* without the archive's root folder */
  const uint8_t *data;    /* as it is in the file */
  uint64_t packed;        /* bytes in the file */
  uint64_t nbytes;        /* bytes of the content */
  uint64_t at;            /* offset of data in the whole file */
  uint32_t crc;           /* CRC-32 of the content; 0: the writer left it out (torch.serialization.set_crc32_options) */
  uint32_t method;        /* 0 stored, 8 deflated */
  const uint8_t *content; /* once p2_zip_content has been asked */
  uint32_t is_checked;    /* content has the checksum */
  uint32_t is_summed;     /* p2_checksums_ahead has compared it */
} p2_member_t;

typedef struct p2_zip {
  aot_str_t root; /* the folder that all members share, without its slash; empty: none */
  p2_member_t *members;
  uint32_t n_members;
  p2_names_t index;
} p2_zip_t;

/* `label` names the bytes in messages; `at` is their offset in the user's file (a torch.save file inside an
 * archive). */
aot_status_t p2_zip_open(p2_env_t *e, const char *label, const void *bytes, uint64_t nbytes, uint64_t at,
                         p2_zip_t *out);
p2_member_t *p2_zip_find(const p2_zip_t *z, aot_str_t name); /* NULL: not there */
/* The content, at an address that is a multiple of align (a power of two): in the file, or in the program's memory. The
 * first time it is compared with the directory's checksum. O(content) */
aot_status_t p2_zip_content(p2_env_t *e, p2_member_t *m, uint64_t align, const uint8_t **out);

#endif
