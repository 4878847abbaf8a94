/* A build without libsodium (it is linked with ed25519_none.c): the caller for signatures is reported so, and nothing
 * passes for signed. What signatures are for is in check_trust.sh. */
#include <plugin/ed25519.h>
#include <config/pipeline.h>
#include <cli/plugins/signing.h>
#include <plugin/signature.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void is_told(aoth_sink_t *sink) {
  assert_non_null(strstr(aoth_sink_text(sink), "this build of aothost cannot sign plugins or check signatures"));
  assert_non_null(strstr(aoth_sink_text(sink), "install libsodium-dev"));
  aoth_sink_destroy(sink);
}

static void no_key_is_made(void **state) {
  (void)state;
  char folder[] = "/tmp/aot_no_signatures_XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/key", folder);
  aoth_sink_t *sink = aoth_sink_create(NULL);
  assert_int_equal(aoth_key_make(path, sink), AOT_E_UNIMPLEMENTED);
  assert_int_not_equal(access(path, F_OK), 0);
  is_told(sink);
  assert_int_equal(rmdir(folder), 0);
}

static void nothing_is_signed(void **state) {
  (void)state;
  const char *file = TEST_PLUGINS "/good/toy.so";
  aoth_sink_t *sink = aoth_sink_create(NULL);
  assert_int_equal(aoth_sign("key", &file, 1, sink), AOT_E_UNIMPLEMENTED);
  assert_int_not_equal(access(TEST_PLUGINS "/good/toy.so.sig", F_OK), 0);
  is_told(sink);
}

static void no_key_can_be_required(void **state) {
  (void)state;
  kit_arena_t *arena = kit_arena_create();
  aoth_sink_t *sink = aoth_sink_create(NULL);
  assert_null(aoth_keys_read("key.pub", arena, sink));
  is_told(sink);
  kit_arena_destroy(arena);
}

static void nothing_fits(void **state) {
  (void)state;
  const unsigned char key[AOTH_ED25519_PUBLIC] = {0}, signature[AOTH_ED25519_SIGNATURE] = {0};
  assert_false(aoth_ed25519_is_there());
  assert_false(aoth_ed25519_fits(key, "", 0, signature));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_key_is_made), cmocka_unit_test(nothing_is_signed),
                                     cmocka_unit_test(no_key_can_be_required), cmocka_unit_test(nothing_fits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
