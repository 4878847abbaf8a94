/* Numbers of bytes as people write them. */
#ifndef KIT_BYTE_SIZE_H
#define KIT_BYTE_SIZE_H

#include <stdint.h>

/* "64MiB" -> bytes. Suffixes B, kB, MB, GB, TB (1000) and K, M, G, T, KiB, MiB, GiB, TiB (1024). 0: not one. */
int kit_byte_size(const char *text, int64_t *out);

#endif
