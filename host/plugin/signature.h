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
#include "kit/base/arena.h"
#include <base/file.h>
#include <base/sink.h>
#include <plugin/trust.h>

/* Public keys of which one must have signed. NULL: reported; so it is where this build has no libsodium. */
typedef struct aoth_keys aoth_keys_t;
aoth_keys_t *aoth_keys_read(const char *path, kit_arena_t *arena, aoth_sink_t *sink);
/* Why the file is not opened when one of the keys has to have signed it, in the arena; NULL: one has. */
const char *aoth_unsigned_why(const aoth_keys_t *keys, const char *file, kit_arena_t *arena);

/* For those who sign (cli/plugins/signing.c): the lines of such files, and what is signed. */
#define AOTH_PUBLIC_WORD "ed25519 "
typedef struct aoth_signed_message {
  char text[sizeof "aothost plugin " + KIT_SHA256_HEX];
} aoth_signed_message_t;
int aoth_can_sign(aoth_sink_t *sink); /* 0: this build has no libsodium, which is reported */
aot_status_t aoth_signed_message(const char *file, aoth_sink_t *sink, aoth_signed_message_t *out);
/* The next line of the file that is neither empty nor a remark; 0: there is none. *number counts from 1. */
int aoth_key_line(const aoth_map_t *map, const char **at, const char **end, uint32_t *number);
/* A word, or n bytes as hexadecimal digits, at *at, which moves to their end; 0: they are not there. */
int aoth_key_word(const char **at, const char *end, const char *word);
int aoth_key_hex(const char **at, const char *end, unsigned char *out, size_t n);

#endif
