/* checksums.h - the CRC-32 of many members, on threads.
 *
 * zlib's runs at some 2.5 GB/s on one core, and parameters are gigabytes: pieces of the members are shared out among
 * threads, which also have the kernel map their pages. Sums of pieces are put together by crc32_combine. */
#ifndef P2_CHECKSUMS_H
#define P2_CHECKSUMS_H

#include "zip_directory.h"

/* CRC-32 of one run of bytes, on this thread. O(n) */
uint32_t p2_checksum(const uint8_t *data, uint64_t n);
/* Marks (is_checked) those of the stored members whose bytes in the file agree with the directory's checksum. It
 * reports of nothing: a member without the mark is compared, and complained about, where its content is requested. A
 * member may are there twice, and is read once. O(bytes) of work */
void p2_checksums_ahead(p2_member_t *const *members, uint32_t n);

#endif
