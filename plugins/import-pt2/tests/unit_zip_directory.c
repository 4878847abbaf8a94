/* The ZIP reader: PyTorch's own archives, re-zipped and deflated ones, and files that are cut or damaged. */
#include "test_env.h"
#include "zip_directory.h"
#include <string.h>

static const char text[] = "to be stored, to be deflated, to be stored again and to be deflated once more";

static void reads_an_archive_of_pytorch(void **state) {
  test_env_t t;
  p2_zip_t zip;
  uint64_t n;
  uint8_t *bytes;
  const uint8_t *content;
  p2_member_t *m;
  (void)state;
  test_env_init(&t);
  bytes = test_read(&t, FIXTURES "/models/mlp/train.pt2", &n);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  assert_int_equal(zip.n_members, 15);
  assert_int_equal(zip.root.size, 5);
  assert_memory_equal(zip.root.data, "train", 5);
  m = p2_zip_find(&zip, p2_str("archive_format"));
  assert_non_null(m);
  assert_int_equal(p2_zip_content(&t.env, m, 1, &content), AOT_OK);
  assert_int_equal(m->nbytes, 3);
  assert_memory_equal(content, "pt2", 3);
  assert_ptr_equal(content, bytes + m->at); /* used in place */
  assert_null(p2_zip_find(&zip, p2_str("train/archive_format")));
  test_env_deinit(&t);
}

static void inflates_and_aligns(void **state) {
  test_member_t members[] = {{"r/a", text, sizeof text, 0}, {"r/b", text, sizeof text, 1}, {"r/empty", "", 0, 0}};
  test_env_t t;
  p2_zip_t zip;
  const uint8_t *content;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_zip(&t, members, 3, &n);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(p2_zip_content(&t.env, &zip.members[i], 8, &content), AOT_OK);
    assert_memory_equal(content, text, sizeof text);
    assert_int_equal((uintptr_t)content % 8, 0);
  }
  assert_int_equal(p2_zip_content(&t.env, &zip.members[2], 8, &content), AOT_OK);
  test_env_deinit(&t);
}

static void finds_no_root_in_a_flat_archive(void **state) {
  test_member_t members[] = {{"version", "5.3", 3, 0}, {"extra_files/a", "x", 1, 0}};
  test_env_t t;
  p2_zip_t zip;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_zip(&t, members, 2, &n);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  assert_int_equal(zip.root.size, 0);
  assert_non_null(p2_zip_find(&zip, p2_str("extra_files/a")));
  test_env_deinit(&t);
}

static void refuses_duplicates(void **state) {
  test_member_t members[] = {{"r/a", "x", 1, 0}, {"r/a", "y", 1, 0}};
  test_env_t t;
  p2_zip_t zip;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_zip(&t, members, 2, &n);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_E_INVALID);
  assert_says(&t, "two members are named 'a'");
  test_env_deinit(&t);
}

static void says_what_is_wrong_with_a_file(void **state) {
  test_member_t members[] = {{"r/a", text, sizeof text, 0}};
  test_env_t t;
  p2_zip_t zip;
  const uint8_t *content;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_zip(&t, members, 1, &n);
  assert_int_equal(p2_zip_open(&t.env, "f", "hello world", 11, 0, &zip), AOT_E_INVALID);
  assert_says(&t, "not a ZIP archive");
  test_env_again(&t);
  assert_int_equal(p2_zip_open(&t.env, "f", "", 0, 0, &zip), AOT_E_INVALID);
  assert_says(&t, "fewer than 4 bytes");
  test_env_again(&t);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n - 1, 0, &zip), AOT_E_INVALID);
  assert_string_equal(t.env.error.code, "import-pt2.truncated");
  assert_int_equal(t.env.error.byte, n - 1);
  test_env_again(&t);
  bytes[40] ^= 1; /* a byte of the content */
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  assert_int_equal(p2_zip_content(&t.env, &zip.members[0], 1, &content), AOT_E_INVALID);
  assert_says(&t, "checksum");
  test_env_deinit(&t);
}

/* Every prefix and every damaged byte: an error or a reading, never a step outside the bytes (run under a
 * sanitizer). */
static void survives_damage(void **state) {
  test_member_t members[] = {{"r/a", text, sizeof text, 0}, {"r/b", text, sizeof text, 1}};
  test_env_t t;
  uint64_t n, i, k;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_zip(&t, members, 2, &n);
  for (i = 0; i < 2 * n; i++)
    for (k = 0; k < 4; k++) {
      test_env_t run;
      p2_zip_t zip;
      const uint8_t *content;
      uint64_t size = i < n ? i : n;
      test_env_init(&run);
      uint8_t *copy = run.env.alloc(&run, P2_SCRATCH, 1, size + 1);
      memcpy(copy, bytes, size);
      if (i >= n) copy[i - n] = (uint8_t)(k == 0 ? 0xff : k == 1 ? 0 : copy[i - n] ^ (1 << (k + 3)));
      if (p2_zip_open(&run.env, "f", copy, size, 0, &zip) == AOT_OK)
        for (uint32_t m = 0; m < zip.n_members; m++) p2_zip_content(&run.env, &zip.members[m], 8, &content);
      else assert_non_null(run.env.error.code);
      test_env_deinit(&run);
    }
  test_env_deinit(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_an_archive_of_pytorch),     cmocka_unit_test(inflates_and_aligns),
      cmocka_unit_test(finds_no_root_in_a_flat_archive), cmocka_unit_test(refuses_duplicates),
      cmocka_unit_test(says_what_is_wrong_with_a_file),  cmocka_unit_test(survives_damage)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
