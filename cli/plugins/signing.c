#include <cli/plugins/signing.h>

#include <aot/inline.h>
#include <errno.h>
#include <fcntl.h>
#include <plugin/ed25519.h>
#include <plugin/signature.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_WORD "ed25519-secret "

static void add_hex(kit_text_t *t, const unsigned char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) kit_text_f(t, "%02x", bytes[i]);
}

/* The secret key's bytes are the caller's to forget. */
static aot_status_t read_secret(const char *path, aoth_sink_t *sink, unsigned char out[AOTH_ED25519_SEED]) {
  struct stat st;
  aoth_map_t map;
  AOT_TRY(aoth_file_map(path, sink, &map));
  uint32_t number = 0;
  const char *at, *end = NULL;
  const int is_good = aoth_key_line(&map, &at, &end, &number) && aoth_key_word(&at, end, SECRET_WORD) &&
                      aoth_key_hex(&at, end, out, AOTH_ED25519_SEED) && at == end;
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
static aot_status_t write_new(const char *path, mode_t mode, const kit_text_t *text, aoth_sink_t *sink) {
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
  kit_text_t secret = {0}, public = {0}, name = {0};
  if (!aoth_can_sign(sink)) return AOT_E_UNIMPLEMENTED;
  aoth_ed25519_seed(seed);
  aoth_ed25519_public(seed, key);
  kit_text_z(&secret, "# the secret key of aothost sign: whoever has it signs in your name\n" SECRET_WORD);
  add_hex(&secret, seed, sizeof seed);
  kit_text_z(&secret, "\n");
  kit_text_z(&public, AOTH_PUBLIC_WORD);
  add_hex(&public, key, sizeof key);
  kit_text_z(&public, "\n");
  kit_text_f(&name, "%s.pub", path);
  aot_status_t status = name.failed ? AOT_E_EXHAUSTED : write_new(path, 0600, &secret, sink);
  if (status == AOT_OK) {
    status = write_new(name.data, 0644, &public, sink);
    if (status != AOT_OK) unlink(path);
  }
  aoth_ed25519_forget(seed, sizeof seed);
  if (secret.data) aoth_ed25519_forget(secret.data, secret.size);
  kit_text_deinit(&secret);
  kit_text_deinit(&public);
  kit_text_deinit(&name);
  return status;
}

static aot_status_t sign_one(const unsigned char seed[AOTH_ED25519_SEED], const char *file, aoth_sink_t *sink) {
  unsigned char key[AOTH_ED25519_PUBLIC], signature[AOTH_ED25519_SIGNATURE];
  aoth_signed_message_t message;
  kit_text_t text = {0}, name = {0};
  AOT_TRY(aoth_signed_message(file, sink, &message));
  aoth_ed25519_public(seed, key);
  aoth_ed25519_sign(seed, message.text, strlen(message.text), signature);
  kit_text_z(&text, AOTH_PUBLIC_WORD);
  add_hex(&text, key, sizeof key);
  kit_text_z(&text, " ");
  add_hex(&text, signature, sizeof signature);
  kit_text_z(&text, "\n");
  kit_text_f(&name, "%s.sig", file);
  aoth_writer_t *w = text.failed || name.failed ? NULL : aoth_writer_begin_own(name.data, sink);
  if (w) aoth_writer_write(w, text.data, text.size);
  const aot_status_t status = w ? aoth_writer_commit(w) : AOT_E_EXHAUSTED;
  kit_text_deinit(&text);
  kit_text_deinit(&name);
  return status;
}

aot_status_t aoth_sign(const char *key, const char *const *files, uint32_t n_files, aoth_sink_t *sink) {
  unsigned char seed[AOTH_ED25519_SEED];
  if (!aoth_can_sign(sink)) return AOT_E_UNIMPLEMENTED;
  aot_status_t status = read_secret(key, sink, seed);
  for (uint32_t i = 0; i < n_files && status == AOT_OK; i++) status = sign_one(seed, files[i], sink);
  aoth_ed25519_forget(seed, sizeof seed);
  return status;
}
