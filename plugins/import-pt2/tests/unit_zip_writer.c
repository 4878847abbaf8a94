/* Archives written front to back are opened by the reader: contents, alignment, equal bytes; members of 4 GiB in
 * ZIP64. */
#include "test_env.h"
#include "zip_directory.h"
#include "zip_writer.h"
#include <string.h>
#include <sys/mman.h>

typedef struct memory { /* where a test's archive goes; zeros are not written, the memory is zero already */
  uint8_t *bytes;
  uint64_t n, capacity;
} memory_t;

static aot_status_t keep(const aot_bytes_sink_t *sink, const void *data, uint64_t nbytes) {
  static const uint8_t zeros[4096];
  memory_t *m = sink->head.self;
  assert_true(nbytes <= m->capacity - m->n);
  if (nbytes != sizeof zeros || memcmp(data, zeros, sizeof zeros) != 0) memcpy(m->bytes + m->n, data, (size_t)nbytes);
  m->n += nbytes;
  return AOT_OK;
}

static void write_three(test_env_t *t, memory_t *m) {
  static uint8_t numbers[1000];
  const aot_bytes_sink_t sink = {.head = {.struct_size = sizeof sink, .self = m}, .write = keep};
  p2_zip_writer_t z = {.env = &t->env, .sink = &sink, .root = p2_str("model")};
  for (int i = 0; i < 1000; i++) numbers[i] = (uint8_t)i;
  assert_int_equal(p2_zip_member(&z, "archive_format", "pt2", 3), AOT_OK);
  assert_int_equal(p2_zip_member(&z, "data/weights/weight_0", numbers, sizeof numbers), AOT_OK);
  assert_int_equal(p2_zip_member(&z, "empty", "", 0), AOT_OK);
  assert_int_equal(p2_zip_member(&z, "zeros", NULL, 5000), AOT_OK);
  assert_int_equal(p2_zip_end(&z), AOT_OK);
}

static void members_read_back(void **state) {
  static uint8_t a[16384], b[16384];
  memory_t first = {a, 0, sizeof a}, second = {b, 0, sizeof b};
  const uint8_t *content;
  test_env_t t;
  p2_zip_t zip;
  (void)state;
  test_env_init(&t);
  write_three(&t, &first);
  write_three(&t, &second);
  assert_int_equal(first.n, second.n);
  assert_memory_equal(a, b, first.n);
  assert_int_equal(p2_zip_open(&t.env, "archive", a, first.n, 0, &zip), AOT_OK);
  assert_int_equal(zip.n_members, 4);
  assert_true(p2_str_is(zip.root, "model"));
  for (uint32_t i = 0; i < zip.n_members; i++) {
    if (zip.members[i].nbytes) assert_int_equal(zip.members[i].at % 64, 0);
    assert_int_equal(p2_zip_content(&t.env, &zip.members[i], 1, &content), AOT_OK); /* checks the checksum */
  }
  p2_member_t *numbers = p2_zip_find(&zip, p2_str("data/weights/weight_0"));
  assert_int_equal(p2_zip_content(&t.env, numbers, 64, &content), AOT_OK);
  assert_int_equal(content[999], 999 & 255);
  assert_int_equal(p2_zip_find(&zip, p2_str("zeros"))->nbytes, 5000);
  test_env_deinit(&t);
}

/* A member of 4 GiB and one after it: sizes and offsets that 32 bits do not hold. */
static void large_members_read_back(void **state) {
  const uint64_t large = (UINT64_C(1) << 32) + 4096, room = large + 65536;
  uint8_t *bytes = mmap(NULL, (size_t)room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) skip();
  memory_t m = {bytes, 0, room};
  const aot_bytes_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &m}, .write = keep};
  const uint8_t *content;
  test_env_t t;
  p2_zip_t zip;
  (void)state;
  test_env_init(&t);
  p2_zip_writer_t z = {.env = &t.env, .sink = &sink, .root = p2_str("model")};
  assert_int_equal(p2_zip_member(&z, "large", NULL, large), AOT_OK);
  assert_int_equal(p2_zip_member(&z, "behind", "end", 3), AOT_OK);
  assert_int_equal(p2_zip_end(&z), AOT_OK);
  assert_int_equal(p2_zip_open(&t.env, "archive", bytes, m.n, 0, &zip), AOT_OK);
  assert_int_equal(p2_zip_find(&zip, p2_str("large"))->nbytes, large);
  p2_member_t *behind = p2_zip_find(&zip, p2_str("behind"));
  assert_true(behind->at > UINT32_MAX);
  assert_int_equal(p2_zip_content(&t.env, behind, 1, &content), AOT_OK);
  assert_memory_equal(content, "end", 3);
  test_env_deinit(&t);
  munmap(bytes, (size_t)room);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(members_read_back), cmocka_unit_test(large_members_read_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
