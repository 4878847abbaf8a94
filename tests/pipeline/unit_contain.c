/* Crashes under a session used as a library: contained on request, each in a process of its own; else left to the
 * caller's handlers. */
#include "session_world.h"

#include <pthread.h>
#include <signal.h>

static void run_what_aborts(fixture_t *w) { world_run(w, AOT_GRAPH_UPDATE); }

static void an_executable_runs_and_its_crash_is_told(void **state) {
  fixture_t *w = *state;
  aot_exe_stats_t stats;
  char said[4096];
  load(w, "TOY add", whole);
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_pipeline_run_stages(w->session, w->pipeline, 0), AOT_OK);
  assert_int_equal(aoth_session_artifact_nbytes(w->session), 4);
  for (int i = 0; i < 1000; i++) assert_int_equal(world_run(w, AOT_GRAPH_FORWARD), AOT_OK);
  assert_int_equal(aoth_session_exe_stats(w->session, &stats), AOT_OK);
  assert_int_equal(end_of(run_what_aborts, w, said, sizeof said), 3);
  assert_non_null(strstr(said, "unit toy-backend 0.1.0 died of SIGABRT during run"));
  assert_non_null(strstr(said, "p.yaml:5:10"));
  assert_int_equal(access("bundle/program.ir", R_OK), 0);
}

static void run_second_stage(fixture_t *w) { aoth_session_run_stage(w->session, &w->pipeline->stages[1]); }

static void the_program_is_kept_as_it_was_before_the_stage(void **state) {
  fixture_t *w = *state;
  kit_text_t before = {0};
  char said[4096], kept[4096] = "";
  load(w, "TOY add mul",
       "aot: 1\nmodel: {path: m.toy}\nstages:\n  - use: toy-fuse\n  - {use: hostile, with: {how: segv}}\n");
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_session_run_stage(w->session, &w->pipeline->stages[0]), AOT_OK);
  aoth_print(aoth_session_prog(w->session), &before);
  assert_int_equal(end_of(run_second_stage, w, said, sizeof said), 3);
  assert_non_null(strstr(said, "unit hostile 6.6.6 died of SIGSEGV during run"));
  FILE *f = fopen("bundle/program.ir", "r");
  assert_non_null(f);
  assert_true(fread(kept, 1, sizeof kept - 1, f) > 0);
  fclose(f);
  assert_string_equal(before.data, kept);
  kit_text_deinit(&before);
}

/* ---- frames by themselves ---- */

static void tell_name(void *self, const aoth_crash_t *crash) {
  char line[64];
  const int n = snprintf(line, sizeof line, "%s: %s at %llu\n", (const char *)self, aoth_signal_name(crash->signal),
                         (unsigned long long)crash->address);
  if (write(STDERR_FILENO, line, (size_t)n) != n) _exit(98);
}

static void tell_badly(void *self, const aoth_crash_t *crash) {
  (void)self;
  raise(crash->signal == SIGSEGV ? SIGABRT : SIGKILL);
}

static void tell_never(void *self, const aoth_crash_t *crash) {
  (void)crash;
  pthread_mutex_lock(self);
}

static void crash_in(aoth_crash_frame_t frame) {
  aoth_crash_frame_t outer = {.what = "outer", .tell = tell_badly};
  aoth_crash_enter(&outer);
  aoth_crash_enter(&frame);
  raise(SIGSEGV);
}

static char unit_x[] = "unit x";
static void crash_once(fixture_t *w) {
  (void)w, crash_in((aoth_crash_frame_t){.what = unit_x, .tell = tell_name, .self = unit_x});
}
static void crash_twice(fixture_t *w) { (void)w, crash_in((aoth_crash_frame_t){.what = unit_x, .tell = tell_badly}); }
static void crash_with_a_lock(fixture_t *w) {
  pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
  (void)w;
  pthread_mutex_lock(&held);
  crash_in((aoth_crash_frame_t){.what = unit_x, .tell = tell_never, .self = &held});
}

static void leave_in_frame(fixture_t *w) {
  aoth_crash_frame_t frame = {.what = unit_x, .tell = tell_name, .self = unit_x};
  (void)w;
  aoth_crash_enter(&frame);
  exit(0);
}

static void leave_after_frame(fixture_t *w) {
  aoth_crash_frame_t frame = {.what = unit_x, .tell = tell_name, .self = unit_x};
  (void)w;
  aoth_crash_enter(&frame);
  aoth_crash_leave(&frame);
  exit(7);
}

static void crash_a_child(fixture_t *w) {
  aoth_crash_frame_t frame = {.what = unit_x, .tell = tell_name, .self = unit_x};
  int status;
  (void)w;
  aoth_crash_enter(&frame);
  const pid_t child = fork();
  if (child == 0) raise(SIGSEGV);
  waitpid(child, &status, 0);
  aoth_crash_leave(&frame);
  _exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 42 : 43);
}

static void each_crash_has_its_end(void **state) {
  static const struct {
    void (*body)(fixture_t *);
    int end;
    const char *said;
  } ways[] = {
      {crash_once, 3, "unit x: SIGSEGV at 0\n"}, /* sent, not met: no address */
      {crash_twice, 3, "aothost: SIGABRT while telling of a crash during unit x; giving up\n"},
      {crash_with_a_lock, 3, "aothost: SIGSEGV during unit x; giving up\n"},
      {leave_in_frame, 3, "unit x: exit at 0\n"},
      {leave_after_frame, 7, ""},
      {crash_a_child, 42, ""},
  };
  char said[512];
  (void)state;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    assert_int_equal(end_of(ways[i].body, NULL, said, sizeof said), ways[i].end);
    assert_string_equal(said, ways[i].said);
  }
}

/* ---- the handlers of others ---- */

static volatile sig_atomic_t n_others;
static void others(int signal) {
  (void)signal;
  n_others++;
}

static void (*handler_of(int signal))(int) {
  struct sigaction current;
  assert_int_equal(sigaction(signal, NULL, &current), 0);
  return current.sa_handler;
}

static void nothing_is_installed_unless_asked(void **state) {
  fixture_t *w = *state;
  struct sigaction mine = {.sa_handler = others}, cmocka;
  sigaction(SIGFPE, &mine, &cmocka);
  load(w, "TOY add", whole);
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_pipeline_run_stages(w->session, w->pipeline, 0), AOT_OK);
  assert_true(handler_of(SIGFPE) == others && handler_of(SIGALRM) == SIG_DFL);
  assert_true(aoth_contain_begin() && aoth_contain_begin());
  assert_true(handler_of(SIGFPE) != others);
  raise(SIGFPE); /* outside of a frame: theirs */
  assert_int_equal(n_others, 1);
  aoth_contain_end();
  assert_true(handler_of(SIGFPE) != others);
  aoth_contain_end();
  assert_true(handler_of(SIGFPE) == others);
  sigaction(SIGFPE, &cmocka, NULL);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(an_executable_runs_and_its_crash_is_told),
      TEST(the_program_is_kept_as_it_was_before_the_stage),
      cmocka_unit_test(each_crash_has_its_end),
      TEST(nothing_is_installed_unless_asked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
