/* SHA-256 of files (FIPS 180-4): whether a plugin is the one that was meant. */
#ifndef KIT_SHA256_H
#define KIT_SHA256_H

#include <stddef.h>

#define KIT_SHA256_HEX 65 /* 64 digits, terminated */

void kit_sha256(const void *bytes, size_t nbytes, char out_hex[KIT_SHA256_HEX]);

#endif
