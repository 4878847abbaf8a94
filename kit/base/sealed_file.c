#include "sealed_file.h"

#include "file_open.h"
#include "work_folder.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL /* who links the kit links no library for it */
#include <xxhash.h>

typedef struct seal {
  char magic[8];
  kf_key_t key;
  XXH128_hash_t hash; /* of the key and the bytes before */
} seal_t;

kf_key_t kf_key(const void *bytes, size_t nbytes, uint64_t seed) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(bytes, nbytes, seed);
  return (kf_key_t){.low64 = h.low64, .high64 = h.high64};
}

int kf_key_compare(const kf_key_t *a, const kf_key_t *b) {
  if (a->high64 != b->high64) return a->high64 < b->high64 ? -1 : 1;
  return a->low64 < b->low64 ? -1 : a->low64 > b->low64;
}

static seal_t seal_of(const void *bytes, size_t nbytes, kf_key_t key) {
  seal_t seal = {.magic = "AOTKEPT", .key = key};
  XXH3_state_t *state = XXH3_createState();
  if (!state) return seal;
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, &key, sizeof key);
  XXH3_128bits_update(state, bytes, nbytes);
  seal.hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return seal;
}

char *kf_read_all(const char *path, size_t *out_nbytes) {
  struct stat st;
  char *bytes = NULL;
  const char *why;
  const int fd = kit_file_open(path, KIT_OPEN_OWN, &st, &why);
  if (fd >= 0) bytes = malloc((size_t)st.st_size + 1);
  size_t n = 0;
  for (ssize_t got = 1; bytes && n < (size_t)st.st_size && got > 0; n += got > 0 ? (size_t)got : 0)
    got = read(fd, bytes + n, (size_t)st.st_size - n);
  if (fd >= 0) close(fd);
  *out_nbytes = n;
  return bytes;
}

int kf_seal(const char *path, kf_key_t key) {
  size_t nbytes;
  char *bytes = kf_read_all(path, &nbytes);
  const seal_t seal = seal_of(bytes, bytes ? nbytes : 0, key);
  const int fd = bytes ? open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
  const int failed = fd < 0 || write(fd, &seal, sizeof seal) != (ssize_t)sizeof seal || fsync(fd) != 0;
  if (fd >= 0) close(fd);
  free(bytes);
  return failed ? -1 : 0;
}

char *kf_read(const char *path, kf_key_t key, size_t *out_nbytes) {
  size_t nbytes;
  seal_t found, right;
  char *bytes = kf_read_all(path, &nbytes);
  int is_whole = bytes && nbytes > sizeof found;
  if (is_whole) {
    memcpy(&found, bytes + nbytes - sizeof found, sizeof found);
    right = seal_of(bytes, nbytes - sizeof found, key);
    is_whole = memcmp(&found, &right, sizeof found) == 0;
  }
  if (!is_whole) {
    free(bytes);
    return NULL;
  }
  utimensat(AT_FDCWD, path, NULL, 0); /* what is unused for longest is removed first */
  *out_nbytes = nbytes - sizeof found;
  return bytes;
}

static int write_file(const char *path, const void *bytes, size_t nbytes, const seal_t *seal) {
  FILE *f = fopen(path, "wb");
  if (!f) return -1;
  const size_t put = fwrite(bytes, 1, nbytes, f) + fwrite(seal, 1, sizeof *seal, f);
  return fclose(f) == 0 && put == nbytes + sizeof *seal ? 0 : -1;
}

int kf_write(const char *dir, const char *path, kf_key_t key, const void *bytes, size_t nbytes) {
  char made[KF_PATH_SIZE + KF_NAME_SIZE];
  kf_work_t w;
  if (kf_work_begin(dir, &w)) return -1;
  kf_work_path(&w, "file", made);
  const seal_t seal = seal_of(bytes, nbytes, key);
  const int failed = write_file(made, bytes, nbytes, &seal) || rename(made, path);
  kf_work_end(&w);
  return failed ? -1 : 0;
}
