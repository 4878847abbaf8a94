#include <plugin/signature.h>

#include <base/file.h>
#include <base/text.h>
#include <errno.h>
#include <fcntl.h>
#include <plugin/ed25519.h>
#include <plugin/trust.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PUBLIC_WORD "ed25519 "
#define SECRET_WORD "ed25519-secret "

struct aoth_keys {
  const char *path;
  unsigned char (*keys)[AOTH_ED25519_PUBLIC];
  uint32_t n;
};

typedef struct message {
  char text[sizeof "aothost plugin " + AOTH_SHA256_HEX];
} message_t;

static int is_there(aoth_sink_t *sink) {
  if (aoth_ed25519_is_there()) return 1;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "sign.sodium",
                   "this build of aothost cannot sign plugins or check signatures: it was built without libsodium");
  aoth_sink_line(sink, "hint: install libsodium-dev and rebuild aothost");
  return 0;
}

/* ---- lines ---- */

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* n bytes of hexadecimal digits at *at, which moves after them; 0: they are not there. */
static int read_hex(const char **at, const char *end, unsigned char *out, size_t n) {
  if ((size_t)(end - *at) < 2 * n) return 0;
  for (size_t i = 0; i < n; i++, *at += 2) {
    const int high = digit((*at)[0]), low = digit((*at)[1]);
    if (high < 0 || low < 0) return 0;
    out[i] = (unsigned char)(high << 4 | low);
  }
  return 1;
}

static int read_word(const char **at, const char *end, const char *word) {
  const size_t n = strlen(word);
  if ((size_t)(end - *at) < n || memcmp(*at, word, n) != 0) return 0;
  *at += n;
  return 1;
}

static void add_hex(aoth_text_t *t, const unsigned char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) aoth_text_f(t, "%02x", bytes[i]);
}

/* The next line of the file that says something; 0: there is none. *number counts from 1. */
static int next_line(const aoth_map_t *map, const char **at, const char **end, uint32_t *number) {
  const char *const last = (const char *)map->data + map->nbytes;
  for (const char *line = *end ? *end + 1 : map->data; line < last; line = *end + 1) {
    const char *newline = memchr(line, '\n', (size_t)(last - line));
    *at = line;
    *end = newline ? newline : last;
    ++*number;
    if (*end > line && *line != '#') return 1;
  }
  return 0;
}

/* ---- keys ---- */

static int read_public(const char *at, const char *end, unsigned char out[AOTH_ED25519_PUBLIC]) {
  return read_word(&at, end, PUBLIC_WORD) && read_hex(&at, end, out, AOTH_ED25519_PUBLIC) && at == end;
}

aoth_keys_t *aoth_keys_read(const char *path, aoth_arena_t *arena, aoth_sink_t *sink) {
  aoth_map_t map;
  if (!is_there(sink) || aoth_file_map(path, sink, &map) != AOT_OK) return NULL;
  const uint64_t most = map.nbytes / (sizeof PUBLIC_WORD - 1 + 2 * AOTH_ED25519_PUBLIC) + 1;
  aoth_keys_t *k = aoth_arena_alloc(arena, sizeof(void *), sizeof *k);
  if (k) k->keys = aoth_arena_alloc(arena, 1, (size_t)most * sizeof *k->keys);
  if (k) k->path = aoth_arena_text(arena, path, strlen(path));
  int is_good = k && k->keys && k->path;
  aoth_where_t where = {.file = path};
  for (const char *at, *end = NULL; is_good && next_line(&map, &at, &end, &where.line); k->n++)
    is_good = read_public(at, end, k->keys[k->n]);
  aoth_file_unmap(&map);
  if (is_good && k->n) return k;
  aoth_sink_report(
      sink, AOT_SEVERITY_ERROR, &where, "sign.key",
      "expected a public key: a line with 'ed25519' and 64 hexadecimal digits, as written by `aothost sign --new-key`");
  return NULL;
}

/* The secret key's bytes are the caller's to forget. */
static aot_status_t read_secret(const char *path, aoth_sink_t *sink, unsigned char out[AOTH_ED25519_SEED]) {
  struct stat st;
  aoth_map_t map;
  AOT_TRY(aoth_file_map(path, sink, &map));
  uint32_t number = 0;
  const char *at, *end = NULL;
  const int is_good = next_line(&map, &at, &end, &number) && read_word(&at, end, SECRET_WORD) &&
                      read_hex(&at, end, out, AOTH_ED25519_SEED) && at == end;
  aoth_file_unmap(&map);
  if (!is_good) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "sign.key",
                     "%s is not a secret key; create one with `aothost sign --new-key F`", path);
    return AOT_E_INVALID;
  }
  if (stat(path, &st) == 0 && !(st.st_mode & (S_IRWXG | S_IRWXO))) return AOT_OK;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "sign.key",
                   "secret key %s has unsafe permissions: group or others have access", path);
  aoth_sink_line(sink, "hint: chmod 600 %s if no one else has read it; otherwise create a new key", path);
  return AOT_E_INVALID;
}

/* A file that was not there, of these bytes. */
static aot_status_t write_new(const char *path, mode_t mode, const aoth_text_t *text, aoth_sink_t *sink) {
  if (text->failed) return AOT_E_EXHAUSTED;
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  int is_written = fd >= 0 && write(fd, text->data, text->size) == (ssize_t)text->size && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) is_written = close(fd) == 0 && is_written;
  if (is_written) return AOT_OK;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "file.write", "cannot write %s: %s", path, strerror(error));
  if (fd >= 0) unlink(path);
  return AOT_E_INVALID;
}

aot_status_t aoth_key_make(const char *path, aoth_sink_t *sink) {
  unsigned char seed[AOTH_ED25519_SEED], key[AOTH_ED25519_PUBLIC];
  aoth_text_t secret = {0}, public = {0}, name = {0};
  if (!is_there(sink)) return AOT_E_UNIMPLEMENTED;
  aoth_ed25519_seed(seed);
  aoth_ed25519_public(seed, key);
  aoth_text_z(&secret, "# the secret key of aothost sign: whoever has it signs in your name\n" SECRET_WORD);
  add_hex(&secret, seed, sizeof seed);
  aoth_text_z(&secret, "\n");
  aoth_text_z(&public, PUBLIC_WORD);
  add_hex(&public, key, sizeof key);
  aoth_text_z(&public, "\n");
  aoth_text_f(&name, "%s.pub", path);
  aot_status_t status = name.failed ? AOT_E_EXHAUSTED : write_new(path, 0600, &secret, sink);
  if (status == AOT_OK) {
    status = write_new(name.data, 0644, &public, sink);
    if (status != AOT_OK) unlink(path);
  }
  aoth_ed25519_forget(seed, sizeof seed);
  if (secret.data) aoth_ed25519_forget(secret.data, secret.size);
  aoth_text_deinit(&secret);
  aoth_text_deinit(&public);
  aoth_text_deinit(&name);
  return status;
}

/* ---- signatures ---- */

static aot_status_t make_message(const char *file, aoth_sink_t *sink, message_t *out) {
  aoth_map_t map;
  char hex[AOTH_SHA256_HEX];
  AOT_TRY(aoth_file_map(file, sink, &map));
  aoth_sha256(map.data, (size_t)map.nbytes, hex);
  aoth_file_unmap(&map);
  snprintf(out->text, sizeof out->text, "aothost plugin %s", hex);
  return AOT_OK;
}

static aot_status_t sign_one(const unsigned char seed[AOTH_ED25519_SEED], const char *file, aoth_sink_t *sink) {
  unsigned char key[AOTH_ED25519_PUBLIC], signature[AOTH_ED25519_SIGNATURE];
  message_t message;
  aoth_text_t text = {0}, name = {0};
  AOT_TRY(make_message(file, sink, &message));
  aoth_ed25519_public(seed, key);
  aoth_ed25519_sign(seed, message.text, strlen(message.text), signature);
  aoth_text_z(&text, PUBLIC_WORD);
  add_hex(&text, key, sizeof key);
  aoth_text_z(&text, " ");
  add_hex(&text, signature, sizeof signature);
  aoth_text_z(&text, "\n");
  aoth_text_f(&name, "%s.sig", file);
  aoth_writer_t *w = text.failed || name.failed ? NULL : aoth_writer_begin_own(name.data, sink);
  if (w) aoth_writer_write(w, text.data, text.size);
  const aot_status_t status = w ? aoth_writer_commit(w) : AOT_E_EXHAUSTED;
  aoth_text_deinit(&text);
  aoth_text_deinit(&name);
  return status;
}

aot_status_t aoth_sign(const char *key, const char *const *files, uint32_t n_files, aoth_sink_t *sink) {
  unsigned char seed[AOTH_ED25519_SEED];
  if (!is_there(sink)) return AOT_E_UNIMPLEMENTED;
  aot_status_t status = read_secret(key, sink, seed);
  for (uint32_t i = 0; i < n_files && status == AOT_OK; i++) status = sign_one(seed, files[i], sink);
  aoth_ed25519_forget(seed, sizeof seed);
  return status;
}

static int is_asked_for(const aoth_keys_t *keys, const unsigned char key[AOTH_ED25519_PUBLIC]) {
  for (uint32_t i = 0; i < keys->n; i++)
    if (memcmp(keys->keys[i], key, AOTH_ED25519_PUBLIC) == 0) return 1;
  return 0;
}

/* What is wrong with the signatures of the file; NULL: one of them is by a key of those, and fits. */
static const char *judge(const aoth_keys_t *keys, const aoth_map_t *map, const message_t *message) {
  unsigned char key[AOTH_ED25519_PUBLIC], signature[AOTH_ED25519_SIGNATURE];
  const char *why = "is empty", *at, *end = NULL;
  uint32_t number = 0;
  while (next_line(map, &at, &end, &number)) {
    if (!read_word(&at, end, PUBLIC_WORD) || !read_hex(&at, end, key, sizeof key) || !read_word(&at, end, " ") ||
        !read_hex(&at, end, signature, sizeof signature) || at != end)
      return "is malformed or truncated";
    if (!is_asked_for(keys, key)) why = "is by a key that is not listed";
    else if (aoth_ed25519_fits(key, message->text, strlen(message->text), signature)) return NULL;
    else return "does not match: the file or the signature was changed";
  }
  return why;
}

const char *aoth_unsigned_why(const aoth_keys_t *keys, const char *file, aoth_arena_t *arena) {
  message_t message;
  aoth_map_t map;
  aoth_text_t name = {0}, t = {0};
  aoth_text_f(&name, "%s.sig", file);
  if (name.failed || make_message(file, NULL, &message) != AOT_OK) {
    aoth_text_z(&t, "cannot be read");
  } else if (aoth_file_map(name.data, NULL, &map) != AOT_OK) {
    aoth_text_f(&t, "not signed: %s does not exist", name.data);
  } else {
    const char *why = judge(keys, &map, &message);
    if (why) aoth_text_f(&t, "its signature %s %s (%s)", name.data, why, keys->path);
    aoth_file_unmap(&map);
  }
  const char *answer = t.data ? aoth_arena_text(arena, t.data, t.size) : NULL;
  if (t.data && !answer) answer = "out of memory while checking its signature";
  aoth_text_deinit(&name);
  aoth_text_deinit(&t);
  return answer;
}
