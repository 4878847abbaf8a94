/* Checksums ahead of their use: members in one piece, in several and in none, and what agrees with none. */
#include "checksums.h"
#include "test_env.h"
#include <string.h>

enum { LARGE = (9 << 20) + 5 /* bytes: three pieces */ };

static uint8_t large[LARGE];

static void open_archive(test_env_t *t, int deflate, p2_zip_t *out, uint8_t **out_bytes) {
  const test_member_t members[] = {
      {"r/a", "abc", 3, 0}, {"r/large", large, LARGE, deflate}, {"r/z", "z", 1, 0}, {"r/none", "", 0, 0}};
  uint64_t n;
  for (uint64_t i = 0; i < LARGE; i++) large[i] = (uint8_t)(i * 7 + i / 251);
  *out_bytes = test_zip(t, members, 4, &n);
  assert_int_equal(p2_zip_open(&t->env, "f", *out_bytes, n, 0, out), AOT_OK);
}

static void ahead_of_all(const p2_zip_t *zip) {
  p2_member_t *const list[] = {&zip->members[0], &zip->members[1], &zip->members[1], &zip->members[2],
                               &zip->members[3]};
  p2_checksums_ahead(list, 5);
}

static void marks_what_agrees(void **state) {
  test_env_t t;
  p2_zip_t zip;
  uint8_t *bytes;
  (void)state;
  test_env_init(&t);
  open_archive(&t, 0, &zip, &bytes);
  ahead_of_all(&zip);
  for (int i = 0; i < 3; i++) assert_true(zip.members[i].is_checked);
  test_env_deinit(&t);
}

/* One bit, in each of the three pieces: that member is not marked, its neighbours are; the complaint comes from where
 * its content is requested, with its place. */
static void leaves_what_is_damaged_to_its_reader(void **state) {
  static const uint64_t places[] = {0, (4 << 20) + 1, LARGE - 1};
  (void)state;
  for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
    test_env_t t;
    p2_zip_t zip;
    uint8_t *bytes;
    const uint8_t *content;
    test_env_init(&t);
    open_archive(&t, 0, &zip, &bytes);
    bytes[zip.members[1].at + places[k]] ^= 16;
    ahead_of_all(&zip);
    assert_true(zip.members[0].is_checked);
    assert_false(zip.members[1].is_checked);
    assert_true(zip.members[2].is_checked);
    assert_int_equal(p2_zip_content(&t.env, &zip.members[1], 1, &content), AOT_E_INVALID);
    assert_says(&t, "member 'large' at byte");
    assert_says(&t, "its checksum does not agree");
    test_env_deinit(&t);
  }
}

/* Nothing has inflated it yet. */
static void leaves_what_is_deflated(void **state) {
  test_env_t t;
  p2_zip_t zip;
  uint8_t *bytes;
  const uint8_t *content;
  (void)state;
  test_env_init(&t);
  open_archive(&t, 1, &zip, &bytes);
  ahead_of_all(&zip);
  assert_false(zip.members[1].is_checked);
  assert_int_equal(p2_zip_content(&t.env, &zip.members[1], 1, &content), AOT_OK);
  assert_memory_equal(content, large, LARGE);
  test_env_deinit(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(marks_what_agrees),
      cmocka_unit_test(leaves_what_is_damaged_to_its_reader),
      cmocka_unit_test(leaves_what_is_deflated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
