/* Kept files under damage: what is not whole, not its own or not there is not read. */
#include "kit/base/sealed_file.h"
#include "kit/base/work_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char content[] = "what was made";
static const kf_key_t key = {1, 2}, other = {2, 1};

typedef struct folder {
  char dir[64], path[80], link[80];
} folder_t;

static int make(void **state) {
  folder_t *f = calloc(1, sizeof *f);
  strcpy(f->dir, "/tmp/sealed-XXXXXX");
  if (!mkdtemp(f->dir)) return -1;
  snprintf(f->path, sizeof f->path, "%s/kept", f->dir);
  snprintf(f->link, sizeof f->link, "%s/link", f->dir);
  *state = f;
  return kf_write(f->dir, f->path, key, content, sizeof content);
}

/* Nothing else is in it: no work folder was left. */
static int clean(void **state) {
  folder_t *f = *state;
  unlink(f->path);
  unlink(f->link);
  const int failed = rmdir(f->dir);
  free(f);
  return failed;
}

static int is_read(const char *path, kf_key_t under) {
  size_t nbytes = 0;
  char *bytes = kf_read(path, under, &nbytes);
  const int is_same = bytes && nbytes == sizeof content && memcmp(bytes, content, nbytes) == 0;
  const int is_none = bytes == NULL;
  free(bytes);
  assert_true(is_same || is_none);
  return is_same;
}

static void a_whole_file_is_read(void **state) {
  const folder_t *f = *state;
  assert_true(is_read(f->path, key));
  assert_false(is_read(f->path, other));
  assert_false(is_read(f->link, key)); /* there is none */
}

static void a_changed_byte_is_found_wherever_it_is(void **state) {
  const folder_t *f = *state;
  struct stat st;
  assert_int_equal(stat(f->path, &st), 0);
  for (long at = 0; at < st.st_size; at++) {
    FILE *file = fopen(f->path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 0x40, file);
    fclose(file);
    assert_false(is_read(f->path, key));
    assert_int_equal(kf_write(f->dir, f->path, key, content, sizeof content), 0);
  }
  assert_true(is_read(f->path, key));
}

static void a_file_cut_short_is_none(void **state) {
  const folder_t *f = *state;
  struct stat st;
  assert_int_equal(stat(f->path, &st), 0);
  for (long n = st.st_size - 1; n >= 0; n -= 7) {
    assert_int_equal(truncate(f->path, n), 0);
    assert_false(is_read(f->path, key));
  }
}

static void links_are_not_followed(void **state) {
  const folder_t *f = *state;
  assert_int_equal(symlink(f->path, f->link), 0);
  assert_false(is_read(f->link, key));
}

/* One that no process writes would be waited for; it is replaced like any file that is none. */
static void pipes_are_not_waited_for(void **state) {
  const folder_t *f = *state;
  size_t nbytes;
  assert_int_equal(mkfifo(f->link, 0600), 0);
  assert_false(is_read(f->link, key));
  assert_null(kf_read_all(f->link, &nbytes));
  assert_int_equal(kf_seal(f->link, key), -1);
  assert_int_equal(kf_write(f->dir, f->link, key, content, sizeof content), 0);
  assert_true(is_read(f->link, key));
}

static void reading_is_using(void **state) {
  const folder_t *f = *state;
  const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  struct stat st;
  assert_int_equal(utimensat(0, f->path, old, 0), 0);
  assert_true(is_read(f->path, key));
  assert_int_equal(stat(f->path, &st), 0);
  assert_true(st.st_mtim.tv_sec > 1000);
}

static void without_its_folder_nothing_is_kept(void **state) {
  const folder_t *f = *state;
  assert_int_not_equal(kf_write("/nowhere/at/all", "/nowhere/at/all/kept", key, content, sizeof content), 0);
  assert_true(is_read(f->path, key));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_whole_file_is_read, make, clean),
      cmocka_unit_test_setup_teardown(a_changed_byte_is_found_wherever_it_is, make, clean),
      cmocka_unit_test_setup_teardown(a_file_cut_short_is_none, make, clean),
      cmocka_unit_test_setup_teardown(links_are_not_followed, make, clean),
      cmocka_unit_test_setup_teardown(pipes_are_not_waited_for, make, clean),
      cmocka_unit_test_setup_teardown(reading_is_using, make, clean),
      cmocka_unit_test_setup_teardown(without_its_folder_nothing_is_kept, make, clean),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
