/* Locks and keys for a user of the library: which plugin files a handle opens. What they are for is in
 * check_trust.sh. */
#include "session_world.h"
#include <aothost.h>
#include <plugin/ed25519.h>
#include <config/pipeline.h>
#include <cli/plugins/signing.h>
#include <plugin/signature.h>
#include <plugin/trust.h>

static const char text[] = "aot: 1\n"
                           "model: {import: toy-import, path: m.toy}\n"
                           "stages:\n"
                           "  - use: toy-functional\n"
                           "  - use: toy-backend\n";

/* The config and its texts are the caller's, and gone when the handle is opened: a file is refused later, too. */
static aothost_t *open_with(const char *lock, const char *keys, uint32_t struct_size, aot_status_t expected) {
  char *own_lock = lock ? strdup(lock) : NULL, *own_keys = keys ? strdup(keys) : NULL;
  const char *const dirs[] = {"own"};
  aothost_config_t *config = calloc(1, sizeof *config);
  aothost_t *h;
  *config = (aothost_config_t){.struct_size = struct_size,
                               .flags = AOTHOST_NO_CACHE,
                               .plugin_dirs = dirs,
                               .n_plugin_dirs = 1,
                               .lock = own_lock,
                               .keys = own_keys};
  const aot_status_t status = aothost_open_text(text, strlen(text), "p.yaml", config, &h);
  memset(config, 0x55, sizeof *config);
  if (own_lock) memset(own_lock, 'x', strlen(own_lock));
  if (own_keys) memset(own_keys, 'x', strlen(own_keys));
  free(own_lock);
  free(own_keys);
  free(config);
  if (status != expected) fail_msg("%d: %s", status, aothost_messages(h));
  return h;
}

static void refuses(const char *lock, const char *keys, aot_status_t status, const char *why) {
  aothost_t *h = open_with(lock, keys, sizeof(aothost_config_t), status);
  if (!strstr(aothost_messages(h), why)) fail_msg("does not say %s: %s", why, aothost_messages(h));
  aothost_close(h);
}

static void compiles(const char *lock, const char *keys, uint32_t struct_size) {
  aothost_t *h = open_with(lock, keys, struct_size, AOT_OK);
  if (aothost_compile(h, 0) != AOT_OK) fail_msg("%s", aothost_messages(h));
  aothost_close(h);
}

static void copy_plugin(void) {
  write_text("m.toy", "TOY add mul");
  assert_int_equal(
      system("mkdir -p own && chmod 755 own && cp " TEST_PLUGINS "/good/toy.so own && chmod 755 own/toy.so"), 0);
}

static void test_lock(void **state) {
  char hex[KIT_SHA256_HEX], line[KIT_SHA256_HEX + 32];
  (void)state;
  copy_plugin();
  assert_true(aoth_file_sha256("own/toy.so", hex));
  snprintf(line, sizeof line, "%s  own/toy.so\n", hex);
  write_text("p.lock", line);
  compiles("p.lock", NULL, sizeof(aothost_config_t));
  line[0] = line[0] == '0' ? '1' : '0';
  write_text("other.lock", line);
  refuses("other.lock", NULL, AOTH_E_PLUGIN, "is not listed in other.lock");
  write_text("bad.lock", "not a lock\n");
  refuses("bad.lock", NULL, AOT_E_INVALID, "bad.lock:1: error: expected lines of a SHA-256 digest");
  refuses("nowhere.lock", NULL, AOT_E_INVALID, "nowhere.lock");
}

static void test_keys(void **state) {
  const char *const file = "own/toy.so";
  (void)state;
  copy_plugin();
  if (!aoth_ed25519_is_there()) {
    refuses(NULL, "me.pub", AOT_E_INVALID, "this build of aothost cannot sign plugins or check signatures");
    return;
  }
  assert_int_equal(aoth_key_make("me", NULL), AOT_OK);
  assert_int_equal(aoth_key_make("they", NULL), AOT_OK);
  refuses(NULL, "me.pub", AOTH_E_PLUGIN, "not signed");
  assert_int_equal(aoth_sign("me", &file, 1, NULL), AOT_OK);
  compiles(NULL, "me.pub", sizeof(aothost_config_t));
  refuses(NULL, "they.pub", AOTH_E_PLUGIN, "is by a key that is not listed (they.pub)");
  refuses(NULL, "nowhere.pub", AOT_E_INVALID, "nowhere.pub");
}

/* A program that was built before they were there: what is after its struct is not looked at. */
static void test_older_program(void **state) {
  (void)state;
  copy_plugin();
  compiles("nowhere.lock", "nowhere.pub", offsetof(aothost_config_t, lock));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_lock, setup, teardown),
      cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
      cmocka_unit_test_setup_teardown(test_older_program, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
