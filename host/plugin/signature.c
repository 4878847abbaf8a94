#include <plugin/signature.h>

#include <base/file.h>
#include "kit/base/text.h"
#include <plugin/ed25519.h>
#include <string.h>

struct aoth_keys {
  const char *path;
  unsigned char (*keys)[AOTH_ED25519_PUBLIC];
  uint32_t n;
};

int aoth_can_sign(aoth_sink_t *sink) {
  if (aoth_ed25519_is_there()) return 1;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "sign.sodium",
                   "this build of aothost cannot sign plugins or check signatures: it was built without libsodium");
  aoth_sink_line(sink, "hint: install libsodium-dev and rebuild aothost");
  return 0;
}

/* ---- lines ---- */

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

int aoth_key_hex(const char **at, const char *end, unsigned char *out, size_t n) {
  if ((size_t)(end - *at) < 2 * n) return 0;
  for (size_t i = 0; i < n; i++, *at += 2) {
    const int high = digit((*at)[0]), low = digit((*at)[1]);
    if (high < 0 || low < 0) return 0;
    out[i] = (unsigned char)(high << 4 | low);
  }
  return 1;
}

int aoth_key_word(const char **at, const char *end, const char *word) {
  const size_t n = strlen(word);
  if ((size_t)(end - *at) < n || memcmp(*at, word, n) != 0) return 0;
  *at += n;
  return 1;
}

int aoth_key_line(const aoth_map_t *map, const char **at, const char **end, uint32_t *number) {
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
  return aoth_key_word(&at, end, AOTH_PUBLIC_WORD) && aoth_key_hex(&at, end, out, AOTH_ED25519_PUBLIC) && at == end;
}

aoth_keys_t *aoth_keys_read(const char *path, kit_arena_t *arena, aoth_sink_t *sink) {
  aoth_map_t map;
  if (!aoth_can_sign(sink) || aoth_file_map(path, sink, &map) != AOT_OK) return NULL;
  const uint64_t most = map.nbytes / (sizeof AOTH_PUBLIC_WORD - 1 + 2 * AOTH_ED25519_PUBLIC) + 1;
  aoth_keys_t *k = kit_arena_alloc(arena, sizeof(void *), sizeof *k);
  if (k) k->keys = kit_arena_alloc(arena, 1, (size_t)most * sizeof *k->keys);
  if (k) k->path = kit_arena_text(arena, path, strlen(path));
  int is_good = k && k->keys && k->path;
  aoth_where_t where = {.file = path};
  for (const char *at, *end = NULL; is_good && aoth_key_line(&map, &at, &end, &where.line); k->n++)
    is_good = read_public(at, end, k->keys[k->n]);
  aoth_file_unmap(&map);
  if (is_good && k->n) return k;
  aoth_sink_report(
      sink, AOT_SEVERITY_ERROR, &where, "sign.key",
      "expected a public key: a line with 'ed25519' and 64 hexadecimal digits, as written by `aothost sign --new-key`");
  return NULL;
}

/* ---- signatures ---- */

aot_status_t aoth_signed_message(const char *file, aoth_sink_t *sink, aoth_signed_message_t *out) {
  aoth_map_t map;
  char hex[KIT_SHA256_HEX];
  AOT_TRY(aoth_file_map(file, sink, &map));
  kit_sha256(map.data, (size_t)map.nbytes, hex);
  aoth_file_unmap(&map);
  snprintf(out->text, sizeof out->text, "aothost plugin %s", hex);
  return AOT_OK;
}

static int is_asked_for(const aoth_keys_t *keys, const unsigned char key[AOTH_ED25519_PUBLIC]) {
  for (uint32_t i = 0; i < keys->n; i++)
    if (memcmp(keys->keys[i], key, AOTH_ED25519_PUBLIC) == 0) return 1;
  return 0;
}

/* What is wrong with the signatures of the file; NULL: one of them is by a key of those, and fits. */
static const char *judge(const aoth_keys_t *keys, const aoth_map_t *map, const aoth_signed_message_t *message) {
  unsigned char key[AOTH_ED25519_PUBLIC], signature[AOTH_ED25519_SIGNATURE];
  const char *why = "is empty", *at, *end = NULL;
  uint32_t number = 0;
  while (aoth_key_line(map, &at, &end, &number)) {
    if (!aoth_key_word(&at, end, AOTH_PUBLIC_WORD) || !aoth_key_hex(&at, end, key, sizeof key) ||
        !aoth_key_word(&at, end, " ") || !aoth_key_hex(&at, end, signature, sizeof signature) || at != end)
      return "is malformed or truncated";
    if (!is_asked_for(keys, key)) why = "is by a key that is not listed";
    else if (aoth_ed25519_fits(key, message->text, strlen(message->text), signature)) return NULL;
    else return "does not match: the file or the signature was changed";
  }
  return why;
}

const char *aoth_unsigned_why(const aoth_keys_t *keys, const char *file, kit_arena_t *arena) {
  aoth_signed_message_t message;
  aoth_map_t map;
  kit_text_t name = {0}, t = {0};
  kit_text_f(&name, "%s.sig", file);
  if (name.failed || aoth_signed_message(file, NULL, &message) != AOT_OK) {
    kit_text_z(&t, "cannot be read");
  } else if (aoth_file_map(name.data, NULL, &map) != AOT_OK) {
    kit_text_f(&t, "not signed: %s does not exist", name.data);
  } else {
    const char *why = judge(keys, &map, &message);
    if (why) kit_text_f(&t, "its signature %s %s (%s)", name.data, why, keys->path);
    aoth_file_unmap(&map);
  }
  const char *answer = t.data ? kit_arena_text(arena, t.data, t.size) : NULL;
  if (t.data && !answer) answer = "out of memory while checking its signature";
  kit_text_deinit(&name);
  kit_text_deinit(&t);
  return answer;
}
