/* SHA-256 of files (FIPS 180-4): whether a plugin is the one that was meant. */
#ifndef AOTH_SHA256_H
#define AOTH_SHA256_H

#include <stddef.h>

#define AOTH_SHA256_HEX 65 /* 64 digits, terminated */

void aoth_sha256(const void *bytes, size_t nbytes, char out_hex[AOTH_SHA256_HEX]);

#endif
