/* Crashes under a session used as a library. What a crashed unit had allocated is lost, so leaks are not counted here. */
#include "session_world.h"

#include <signal.h>
#include <sys/wait.h>

static void an_executable_runs_and_its_crash_is_contained(void **state) {
  world_t *w = *state;
  aot_exe_stats_t stats;
  load(w, "TOY add", whole);
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_pipeline_run_stages(w->session, w->pipeline, 0), AOT_OK);
  assert_int_equal(aoth_session_artifact_nbytes(w->session), 4);
  for (int i = 0; i < 1000; i++)
    assert_int_equal(aoth_session_run_exe(w->session, AOT_GRAPH_FORWARD, NULL, 0, NULL, 0, NULL, 0), AOT_OK);
  assert_int_equal(aoth_session_exe_stats(w->session, &stats), AOT_OK);
  const aot_status_t status = aoth_session_run_exe(w->session, AOT_GRAPH_UPDATE, NULL, 0, NULL, 0, NULL, 0);
  assert_int_equal(status, AOTH_E_PLUGIN);
  assert_int_equal(aoth_exit_code(status), 3);
  assert_non_null(strstr(aoth_sink_text(w->sink), "unit toy-backend 0.1.0 died of SIGABRT during run"));
  assert_non_null(strstr(aoth_sink_text(w->sink), "p.yaml:5:10"));
  assert_int_equal(access("bundle/program.ir", R_OK), 0);
}

static void a_failed_stage_leaves_the_program_as_it_was(void **state) {
  world_t *w = *state;
  aoth_text_t before = {0}, after = {0};
  load(w, "TOY add mul",
       "aot: 1\nmodel: {path: m.toy}\nstages:\n  - use: toy-fuse\n  - {use: hostile, with: {how: segv}}\n");
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_session_run_stage(w->session, &w->pipeline->stages[0]), AOT_OK);
  aot_prog_t *prog = aoth_session_prog(w->session);
  const uint32_t n_nodes = aoth_graph_n_nodes(prog), n_values = aoth_graph_n_values(prog);
  aoth_print(prog, &before);
  assert_true(aoth_crash_install()); /* cmocka has put its own handlers there */
  assert_int_equal(aoth_session_run_stage(w->session, &w->pipeline->stages[1]), AOTH_E_PLUGIN);
  aoth_print(prog, &after);
  assert_string_equal(before.data, after.data);
  assert_true(n_nodes == aoth_graph_n_nodes(prog) && n_values == aoth_graph_n_values(prog)); /* ids included */
  assert_int_equal(aoth_session_run_stage(w->session, &w->pipeline->stages[0]), AOT_OK);     /* the session lives on */
  aoth_text_deinit(&before);
  aoth_text_deinit(&after);
}

static void crash_now(void *arg) {
  (void)arg;
  raise(SIGSEGV);
}

/* In a child: it must end by itself, with status 3 and a line that says what it was doing. */
static void a_second_crash_ends_the_process(void **state) {
  int out[2], status;
  char text[512] = "";
  (void)state;
  assert_int_equal(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    aoth_crash_t crash;
    dup2(out[1], STDERR_FILENO);
    aoth_crash_install();
    if (!aoth_guard(crash_now, NULL, "run of unit x", &crash)) raise(crash.signal == SIGSEGV ? SIGABRT : SIGKILL);
    _exit(0);
  }
  close(out[1]);
  for (size_t n = 0; n + 1 < sizeof text;) {
    const ssize_t got = read(out[0], text + n, sizeof text - 1 - n);
    if (got <= 0) break;
    n += (size_t)got;
  }
  close(out[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  assert_string_equal(text, "aothost: SIGABRT while cleaning up after run of unit x; giving up\n");
}

static void a_guard_works_again_and_again(void **state) {
  aoth_crash_t crash;
  (void)state;
  assert_true(aoth_crash_install());
  for (int i = 0; i < 3; i++) { /* the second time, too */
    assert_false(aoth_guard(crash_now, NULL, "x", &crash));
    assert_int_equal(crash.signal, SIGSEGV);
    assert_true(crash.address == 0); /* sent, not met */
    aoth_crash_done();
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(an_executable_runs_and_its_crash_is_contained),
      TEST(a_failed_stage_leaves_the_program_as_it_was),
      cmocka_unit_test(a_second_crash_ends_the_process),
      cmocka_unit_test(a_guard_works_again_and_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
