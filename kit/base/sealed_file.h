/* Files of the cache folder (aot/ext/env.h) that are stored under a hash of what they were made from. Each ends with a
 * seal, a hash of its content and that key, so that a file that was cut short, changed, or put under another's name is
 * found before anything is made of it; such a file is as good as none. */
#ifndef KF_SEALED_FILE_H
#define KF_SEALED_FILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct kf_key {
  uint64_t low64, high64;
} kf_key_t;

/* The hash of the bytes, with a seed for everything else that the file depends on. */
kf_key_t kf_key(const void *bytes, size_t nbytes, uint64_t seed);
int kf_key_compare(const kf_key_t *a, const kf_key_t *b); /* as memcmp */

/* Ends the file with its seal, on the disk, so that after a power failure it is whole or not there once it has been
 * renamed. 0, or -1 and errno. */
int kf_seal(const char *path, kf_key_t key);
/* All bytes of a regular file of this user, which the caller frees; a link is not followed. NULL: no such file. */
char *kf_read_all(const char *path, size_t *out_nbytes);
/* What precedes the seal, and it counts as used now; the caller frees it. NULL: no such file. */
char *kf_read(const char *path, kf_key_t key, size_t *out_nbytes);
/* Makes it, in a work folder of `dir`, and gives it its name. It does not wait for the disk: a start that keeps thirty
 * files would wait thirty times. What a power failure cuts short has no seal. 0, or -1: it is not stored. */
int kf_write(const char *dir, const char *path, kf_key_t key, const void *bytes, size_t nbytes);

#endif
