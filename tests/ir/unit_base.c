/* The host's floor: arenas, text, nearest words, the diagnostic sink, files. */
#include <aot/inline.h>
#include "kit/base/arena.h"
#include <base/file.h>
#include <base/sink.h>
#include "kit/base/text.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void arenas_hand_out_zeros(void **state) {
  kit_arena_t *a = kit_arena_create();
  (void)state;
  for (int round = 0; round < 3; round++) {
    for (size_t size = 0; size < 300000; size = size * 2 + 1) {
      size_t align = (size_t)1 << (size % 7);
      unsigned char *p = kit_arena_alloc(a, align, size);
      assert_non_null(p);
      assert_int_equal((uintptr_t)p % align, 0);
      for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
      memset(p, 0xff, size); /* what a reset must not show again */
    }
    kit_arena_reset(a);
    assert_int_equal(kit_arena_nbytes(a), 0);
  }
  assert_null(kit_arena_alloc(a, 8, SIZE_MAX - 64));
  assert_null(kit_arena_alloc(a, 3, 8));
  assert_string_equal(kit_arena_text(a, "abcdef", 3), "abc");
  kit_arena_destroy(a);
  kit_arena_destroy(NULL);
}

static void doubles_read_back(void **state) {
  static const struct {
    double d;
    const char *text;
  } cases[] = {{0, "0"},
               {-0.0, "-0"},
               {1, "1"},
               {0.1, "0.1"},
               {1e-5, "1e-05"},
               {1e300, "1e+300"},
               {3e-4, "0.0003"},
               {1.0 / 3, "0.3333333333333333"},
               {5e-324, "5e-324"},
               {123456789, "123456789"},
               {(double)INFINITY, "inf"},
               {-(double)INFINITY, "-inf"},
               {(double)NAN, "nan"}};
  uint64_t seed = 88172645463325252u;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kit_text_t t = {0};
    kit_text_double(&t, cases[i].d);
    assert_string_equal(t.data, cases[i].text);
    kit_text_deinit(&t);
  }
  for (int i = 0; i < 2000; i++) {
    double d, back;
    kit_text_t t = {0};
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    memcpy(&d, &seed, sizeof d);
    if (!isfinite(d)) continue;
    kit_text_double(&t, d);
    back = strtod(t.data, NULL);
    assert_memory_equal(&d, &back, sizeof d);
    kit_text_deinit(&t);
  }
}

static void text_grows_and_escapes(void **state) {
  kit_text_t t = {0};
  (void)state;
  kit_text_i64(&t, INT64_MIN);
  kit_text_f(&t, "|%s|%d|", "x", 7);
  assert_string_equal(t.data, "-9223372036854775808|x|7|");
  char longer[500];
  memset(longer, 'y', sizeof longer - 1);
  longer[499] = 0;
  kit_text_f(&t, "%s", longer);
  assert_int_equal(t.size, 25 + 499);
  assert_int_equal(strlen(t.data), t.size);
  kit_text_deinit(&t);
  const aot_str_t odd = {"a\"\\\n\x01\xc3\xa4\xff", 8};
  kit_text_json(&t, odd);
  assert_string_equal(t.data, "\"a\\\"\\\\\\n\\u0001\xc3\xa4\\ufffd\"");
  kit_text_deinit(&t);
}

static void the_nearest_word(void **state) {
  const aot_str_t words[] = {AOT_STR_INIT("memory-budget"), AOT_STR_INIT("recompute"), AOT_STR_INIT("steps"),
                             AOT_STR_INIT("lr")};
  (void)state;
  assert_int_equal(kit_nearest(aot_str("memory-budgte"), words, 4), 0); /* a swap is one slip */
  assert_int_equal(kit_nearest(aot_str("memorybudget"), words, 4), 0);
  assert_int_equal(kit_nearest(aot_str("stps"), words, 4), 2);
  assert_int_equal(kit_nearest(aot_str("rl"), words, 4), 3);
  assert_int_equal(kit_nearest(aot_str("optimizer"), words, 4), -1);
  assert_int_equal(kit_nearest(aot_str("x"), words, 4), -1);
  assert_int_equal(kit_nearest(aot_str(""), words, 4), -1);
  assert_int_equal(kit_nearest(aot_str("steps"), words, 0), -1);
}

static void reports_have_place_caret_and_notes(void **state) {
  aoth_sink_t *s = aoth_sink_create(NULL);
  const aoth_where_t where = {"train.yaml", 7, 9, 21, "  with: {memory-budgt: 0.7}"};
  (void)state;
  aoth_sink_report(s, AOT_SEVERITY_ERROR, &where, "pipeline.unknown-option", "unknown option %s", "memory-budgt");
  aoth_sink_line(s, "hint: did you mean %s?", "memory-budget");
  assert_string_equal(aoth_sink_text(s),
                      "train.yaml:7:9: error: unknown option memory-budgt [pipeline.unknown-option]\n"
                      "      with: {memory-budgt: 0.7}\n"
                      "            ^~~~~~~~~~~~\n"
                      "  hint: did you mean memory-budget?\n");
  assert_int_equal(aoth_sink_count(s, AOT_SEVERITY_ERROR), 1);
  aoth_sink_min(s, AOT_SEVERITY_ERROR);
  aoth_sink_report(s, AOT_SEVERITY_WARNING, NULL, NULL, "hidden");
  aoth_sink_line(s, "hidden as well");
  aoth_sink_report(s, AOT_SEVERITY_NOTE, NULL, NULL, "hidden with it");
  assert_null(strstr(aoth_sink_text(s), "hidden"));
  assert_int_equal(aoth_sink_count(s, AOT_SEVERITY_WARNING), 2);
  aoth_sink_destroy(s);
  aoth_sink_report(NULL, AOT_SEVERITY_ERROR, NULL, NULL, "swallowed");
}

static void long_lines_and_control_characters(void **state) {
  aoth_sink_t *s = aoth_sink_create(NULL);
  char line[5000];
  (void)state;
  memset(line, 'a', sizeof line - 1);
  line[sizeof line - 1] = 0;
  line[3999] = '\033'; /* must not reach a terminal */
  const aoth_where_t where = {"f", 1, 4001, 4003, line};
  aoth_sink_report(s, AOT_SEVERITY_ERROR, &where, NULL, "here");
  assert_true(strlen(aoth_sink_text(s)) < 400);
  assert_null(strchr(aoth_sink_text(s), '\033'));
  assert_non_null(strstr(aoth_sink_text(s), "^~\n"));
  aoth_sink_destroy(s);
}

static void files_are_whole_or_untouched(void **state) {
  aoth_sink_t *s = aoth_sink_create(NULL);
  char dir[] = "aot-files-XXXXXX", path[64], link_path[64], temporary[96];
  aoth_map_t map;
  (void)state;
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/out", dir);
  snprintf(link_path, sizeof link_path, "%s/link", dir);
  snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
  aoth_writer_t *w = aoth_writer_begin(path, s);
  char *big = calloc(1, 200000);
  aoth_writer_write(w, "head", 4);
  aoth_writer_write(w, big, 200000);
  assert_int_not_equal(access(path, F_OK), 0); /* not there before it is whole */
  assert_int_equal(aoth_writer_commit(w), AOT_OK);
  assert_int_equal(aoth_file_map(path, s, &map), AOT_OK);
  assert_int_equal(map.nbytes, 200004);
  assert_memory_equal(map.data, "head", 4);
  aoth_file_unmap(&map);
  w = aoth_writer_begin(path, s); /* given up: the old contents stay */
  aoth_writer_write(w, "x", 1);
  aoth_writer_abort(w);
  assert_int_not_equal(access(temporary, F_OK), 0);
  assert_int_equal(symlink("out", link_path), 0); /* through a link: the link survives */
  w = aoth_writer_begin(link_path, s);
  aoth_writer_write(w, "new", 3);
  assert_int_equal(aoth_writer_commit(w), AOT_OK);
  struct stat st;
  assert_int_equal(lstat(link_path, &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_size, 3);
  unlink(link_path);
  unlink(path);
  rmdir(dir);
  free(big);
  aoth_sink_destroy(s);
}

/* A process that begins to write path and does not end. Answers once it is there. */
static pid_t writer_process(const char *path) {
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    aoth_writer_t *w = aoth_writer_begin(path, NULL);
    if (w && write(ready[1], "w", 1) == 1) pause();
    _exit(1);
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return pid;
}

static void write_file(const char *path, const char *text) {
  aoth_writer_t *w = aoth_writer_begin(path, NULL);
  assert_non_null(w);
  aoth_writer_write(w, text, strlen(text));
  assert_int_equal(aoth_writer_commit(w), AOT_OK);
}

/* What a killed writer leaves goes with the next write to the same path; what a living one has, and other names,
 * stay. */
static void killed_writers_leave_nothing(void **state) {
  /* the last: a link */
  static const char *const others[] = {"out.tmp-", "out.tmp-1.old", "out2.tmp-1", "out.tmp-x1", "out.tmp-7"};
  char dir[] = "aot-killed-XXXXXX", path[64], dead[96], alive[96], name[96];
  (void)state;
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/out", dir);
  for (size_t i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "%s/%s", dir, others[i]);
    write_file(name, "mine");
  }
  snprintf(name, sizeof name, "%s/%s", dir, others[4]);
  assert_int_equal(symlink("out2.tmp-1", name), 0);
  const pid_t killed = writer_process(path), living = writer_process(path);
  snprintf(dead, sizeof dead, "%s.tmp-%ld", path, (long)killed);
  snprintf(alive, sizeof alive, "%s.tmp-%ld", path, (long)living);
  kill(killed, SIGKILL);
  waitpid(killed, NULL, 0);
  assert_int_equal(access(dead, F_OK), 0);
  write_file(path, "whole");
  assert_int_not_equal(access(dead, F_OK), 0);
  assert_int_equal(access(alive, F_OK), 0);
  kill(living, SIGKILL);
  waitpid(living, NULL, 0);
  write_file(path, "whole");
  assert_int_not_equal(access(alive, F_OK), 0);
  for (size_t i = 0; i < 5; i++) {
    snprintf(name, sizeof name, "%s/%s", dir, others[i]);
    assert_int_equal(unlink(name), 0);
  }
  unlink(path);
  assert_int_equal(rmdir(dir), 0); /* nothing else was there */
}

/* Two writers of one path in one thread have a name each; the last to commit has the path. */
static void writers_do_not_meet(void **state) {
  char dir[] = "aot-two-XXXXXX", path[64];
  aoth_map_t map;
  (void)state;
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/out", dir);
  aoth_writer_t *first = aoth_writer_begin(path, NULL), *second = aoth_writer_begin(path, NULL);
  assert_non_null(first);
  assert_non_null(second);
  aoth_writer_write(first, "first", 5);
  aoth_writer_write(second, "2nd", 3);
  assert_int_equal(aoth_writer_commit(second), AOT_OK);
  assert_int_equal(aoth_writer_commit(first), AOT_OK);
  assert_int_equal(aoth_file_map(path, NULL, &map), AOT_OK);
  assert_int_equal(map.nbytes, 5);
  aoth_file_unmap(&map);
  unlink(path);
  assert_int_equal(rmdir(dir), 0);
}

/* A name that the program chose: what has it is replaced, and what a link points to stays. */
static void own_names_are_replaced(void **state) {
  char dir[] = "aot-files-XXXXXX", path[64], victim[64], text[16] = "";
  struct stat st;
  aoth_map_t map;
  (void)state;
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/entry", dir);
  snprintf(victim, sizeof victim, "%s/victim", dir);
  FILE *f = fopen(victim, "w");
  fputs("precious", f);
  fclose(f);
  for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
    if (is_pipe) assert_int_equal(mkfifo(path, 0600), 0);
    else assert_int_equal(symlink("victim", path), 0);
    aoth_writer_t *w = aoth_writer_begin_own(path, NULL);
    assert_non_null(w);
    aoth_writer_write(w, "new", 3);
    assert_int_equal(aoth_writer_commit(w), AOT_OK);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(aoth_file_map_own(path, NULL, &map), AOT_OK);
    assert_int_equal(map.nbytes, 3);
    aoth_file_unmap(&map);
    unlink(path);
  }
  f = fopen(victim, "r");
  assert_non_null(fgets(text, sizeof text, f));
  fclose(f);
  assert_string_equal(text, "precious");
  assert_int_equal(symlink("victim", path), 0);
  assert_int_equal(aoth_file_map(path, NULL, &map), AOT_OK); /* a path of the user's may be a link */
  aoth_file_unmap(&map);
  assert_int_equal(aoth_file_map_own(path, NULL, &map), AOT_E_INVALID);
  unlink(path);
  unlink(victim);
  assert_int_equal(rmdir(dir), 0);
}

/* None of these waits: a pipe that no process writes or reads, a device that never ends. */
static void only_regular_files_are_read(void **state) {
  aoth_sink_t *s = aoth_sink_create(NULL);
  char dir[] = "aot-files-XXXXXX", path[64];
  const char *why = NULL;
  struct stat st;
  aoth_map_t map;
  int ends[2];
  (void)state;
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof path, "%s/pipe", dir);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(aoth_file_map(path, s, &map), AOT_E_INVALID);
  assert_non_null(strstr(aoth_sink_text(s), "it is a named pipe, not a regular file"));
  assert_int_equal(kit_file_open(path, KIT_OPEN_PIPE, &st, &why), -1);
  assert_null(aoth_writer_begin(path, s));
  assert_non_null(strstr(aoth_sink_text(s), "it is a named pipe that no process reads"));
  assert_int_equal(aoth_file_map("/dev/zero", s, &map), AOT_E_INVALID);
  assert_non_null(strstr(aoth_sink_text(s), "cannot read /dev/zero: it is a device, not a regular file"));
  assert_int_equal(pipe(ends), 0); /* as from a shell's <(..) */
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  assert_int_equal(kit_file_open(path, 0, &st, &why), -1);
  const int fd = kit_file_open(path, KIT_OPEN_PIPE, &st, &why);
  assert_true(fd >= 0);
  close(fd);
  close(ends[0]);
  close(ends[1]);
  snprintf(path, sizeof path, "%s/pipe", dir);
  unlink(path);
  assert_int_equal(rmdir(dir), 0);
  aoth_sink_destroy(s);
}

static void same_files(void **state) {
  char dir[] = "aot-files-XXXXXX", a[64], link_path[64], hard[64], other[64], roundabout[96];
  (void)state;
  assert_non_null(mkdtemp(dir));
  snprintf(a, sizeof a, "%s/a", dir);
  snprintf(link_path, sizeof link_path, "%s/link", dir);
  snprintf(hard, sizeof hard, "%s/hard", dir);
  snprintf(other, sizeof other, "%s/other", dir);
  snprintf(roundabout, sizeof roundabout, "./%s/../%s/a", dir, dir);
  assert_true(kit_file_same(a, roundabout)); /* none of them exists yet */
  assert_false(kit_file_same(a, other));
  fclose(fopen(a, "w"));
  assert_int_equal(symlink("a", link_path), 0);
  assert_int_equal(link(a, hard), 0);
  assert_true(kit_file_same(a, roundabout));
  assert_true(kit_file_same(a, link_path));
  assert_true(kit_file_same(hard, link_path));
  assert_false(kit_file_same(a, other));
  fclose(fopen(other, "w"));
  assert_false(kit_file_same(a, other));
  assert_false(kit_file_same("/dev/null", "/dev/null"));
  unlink(a);
  unlink(link_path);
  unlink(hard);
  unlink(other);
  assert_int_equal(rmdir(dir), 0);
}

static void files_that_fail(void **state) {
  aoth_sink_t *s = aoth_sink_create(NULL);
  aoth_map_t map;
  (void)state;
  assert_int_equal(aoth_file_map("no-such-file", s, &map), AOT_E_NOT_FOUND);
  assert_non_null(strstr(aoth_sink_text(s), "cannot open no-such-file: No such file or directory"));
  assert_int_equal(aoth_file_map(".", s, &map), AOT_E_INVALID);
  assert_non_null(strstr(aoth_sink_text(s), "it is a directory"));
  assert_null(aoth_writer_begin("no-such-folder/out", s));
  if (access("/dev/full", W_OK) == 0) { /* a full disk, on demand */
    aoth_writer_t *w = aoth_writer_begin("/dev/full", s);
    aoth_writer_write(w, "x", 1);
    assert_int_equal(aoth_writer_commit(w), AOT_E_EXHAUSTED);
    assert_non_null(strstr(aoth_sink_text(s), "cannot write /dev/full: No space left on device"));
  }
  aoth_sink_destroy(s);
}

static void messages_obey_no_terminal(void **state) {
  static char most[100000];
  aoth_sink_t *s = aoth_sink_create(NULL);
  const aoth_where_t where = {"a\033.yaml", 1, 1, 2, NULL};
  (void)state;
  aoth_sink_report(s, AOT_SEVERITY_WARNING, &where, "c\nd", "%s",
                   "tab\t \033[2J \302\233 \342\200\256 \377 \303\244\nnext\n\n");
  aoth_sink_line(s, "hint: %s", "one\rtwo\nthree");
  assert_string_equal(aoth_sink_text(s),
                      "a\\x1b.yaml:1:1: warning: tab\t \\x1b[2J \\xc2\\x9b \\xe2\\x80\\xae \\xff \303\244\n"
                      "  | next [c\n  | d]\n  hint: one\\x0dtwo\n  | three\n");
  const size_t before = strlen(aoth_sink_text(s));
  memset(most, 'm', sizeof most - 1);
  aoth_sink_report(s, AOT_SEVERITY_ERROR, NULL, NULL, "%s", most);
  assert_non_null(strstr(aoth_sink_text(s), "mm .. (83615 bytes more)\n"));
  for (int i = 0; i < 2000; i++) aoth_sink_report(s, AOT_SEVERITY_ERROR, NULL, NULL, "%s", most);
  assert_true(strlen(aoth_sink_text(s)) - before < ((size_t)17 << 20));
  assert_int_equal(aoth_sink_count(s, AOT_SEVERITY_ERROR), 2001);
  aoth_sink_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arenas_hand_out_zeros),
                                     cmocka_unit_test(doubles_read_back),
                                     cmocka_unit_test(text_grows_and_escapes),
                                     cmocka_unit_test(the_nearest_word),
                                     cmocka_unit_test(reports_have_place_caret_and_notes),
                                     cmocka_unit_test(long_lines_and_control_characters),
                                     cmocka_unit_test(messages_obey_no_terminal),
                                     cmocka_unit_test(files_are_whole_or_untouched),
                                     cmocka_unit_test(killed_writers_leave_nothing),
                                     cmocka_unit_test(writers_do_not_meet),
                                     cmocka_unit_test(own_names_are_replaced),
                                     cmocka_unit_test(only_regular_files_are_read),
                                     cmocka_unit_test(same_files),
                                     cmocka_unit_test(files_that_fail)};
  return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
