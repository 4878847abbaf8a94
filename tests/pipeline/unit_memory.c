/* Memory plans on the host's side: stages that query the pipeline's backend, trials, and what is said of a unit that
 * reports nonsense. */
#include "session_world.h"

#include <trainer/trial/memory_plan.h>

static void compile(fixture_t *w, const char *pass, const char *backend, aot_status_t expected) {
  char text[400];
  snprintf(text, sizeof text,
           "aot: 1\nmodel: {import: toy-import, path: m.toy}\nstages:\n  - use: toy-functional\n  - use: asker\n    "
           "with: {how: %s}\n  - %s\n",
           pass, backend);
  load(w, "TOY add mul", text);
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_pipeline_run_stages(w->session, w->pipeline, 0), expected);
}

/* The last that was reported. */
static double number(fixture_t *w, const char *name) {
  const aoth_record_t *r;
  for (uint32_t i = aoth_session_records(w->session, &r); i-- > 0;)
    for (uint32_t k = 0; k < r[i].n_numbers; k++)
      if (strcmp(r[i].numbers[k].name, name) == 0) return r[i].numbers[k].value;
  fail_msg("nobody reports %s", name);
  return 0;
}

static void a_stage_is_answered_by_the_backend_that_comes_later(void **state) {
  fixture_t *w = *state;
  compile(w, "ask", "{use: teller, with: {how: tell}}", AOT_OK);
  assert_true(number(w, "status") == AOT_OK && number(w, "peak") == 1000);
  assert_true(number(w, "cost-status") == AOT_OK && number(w, "flops") > 0 && number(w, "machine-status") == AOT_OK);
  assert_true(number(w, "launch") == 7000);
}

static void a_trial_is_asked_about_and_taken_back(void **state) {
  fixture_t *w = *state;
  compile(w, "trial", "{use: teller, with: {how: tell}}", AOT_OK);
  assert_true(number(w, "peak") == 2000 && number(w, "outputs") == 1);
  assert_int_equal(aoth_graph_n_outputs(aoth_session_prog(w->session),
                                        aoth_graph_graph_find(aoth_session_prog(w->session), AOT_GRAPH_FORWARD)),
                   1);
}

static void a_trial_left_open_is_undone_and_told(void **state) {
  fixture_t *w = *state;
  compile(w, "forget", "{use: teller, with: {how: tell}}", AOTH_E_PLUGIN);
  assert_non_null(strstr(aoth_sink_text(w->sink), "without undoing its trial"));
  assert_int_equal(aoth_graph_n_outputs(aoth_session_prog(w->session),
                                        aoth_graph_graph_find(aoth_session_prog(w->session), AOT_GRAPH_FORWARD)),
                   1);
}

/* Nothing is informed of it: the stage continues without an answer. */
static void a_backend_without_an_answer_is_no_failure(void **state) {
  static const char *const backends[] = {"{use: toy-backend}", "{use: teller, with: {how: silent}}",
                                         "{use: teller, with: {how: refuse}}"};
  static const aot_status_t costs[] = {AOT_E_UNIMPLEMENTED, AOT_E_UNIMPLEMENTED, AOT_OK};
  fixture_t *w = *state;
  for (int k = 0; k < 3; k++) {
    compile(w, "ask", backends[k], AOT_OK);
    assert_true(number(w, "status") == AOT_E_UNIMPLEMENTED && number(w, "peak") == -1);
    assert_true(number(w, "cost-status") == costs[k] && number(w, "machine-status") == costs[k]);
    assert_string_equal(aoth_sink_text(w->sink), "");
    aoth_pipeline_destroy(w->pipeline);
    w->pipeline = NULL;
  }
}

static void ask_what_crashes(fixture_t *w) { compile(w, "ask", "{use: teller, with: {how: crash}}", AOT_OK); }

/* By the name of the one that was queried, not of the stage that queries. */
static void a_backend_that_crashes_is_told_by_its_name(void **state) {
  char said[4096];
  assert_int_equal(end_of(ask_what_crashes, *state, said, sizeof said), 3);
  assert_non_null(strstr(said, "teller 0.1.0 died of SIGABRT during memory"));
}

static aot_status_t ask(fixture_t *w, uint32_t stage, aot_memory_plan_t *out) {
  kit_arena_t *arena = kit_arena_create();
  const aot_status_t status = aoth_session_memory(w->session, &w->pipeline->stages[stage], NULL, arena, out);
  if (status == AOT_OK) assert_true(out->buffers[0].nbytes == out->peak_nbytes);
  kit_arena_destroy(arena);
  return status;
}

static void the_host_checks_what_it_is_told(void **state) {
  static const struct {
    const char *backend;
    aot_status_t status;
    const char *says;
  } rows[] = {{"{use: teller, with: {how: tell}}", AOT_OK, ""},
              {"{use: teller, with: {how: refuse}}", AOT_E_UNIMPLEMENTED, "not for telling"},
              {"{use: toy-backend}", AOT_E_UNIMPLEMENTED, "toy-backend does not tell what memory"},
              {"{use: teller, with: {how: nonsense}}", AOTH_E_PLUGIN, "a buffer outside the steps"}};
  fixture_t *w = *state;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    aot_memory_plan_t plan;
    compile(w, "ask", rows[k].backend, AOT_OK);
    assert_int_equal(ask(w, 2, &plan), rows[k].status);
    assert_non_null(strstr(aoth_sink_text(w->sink), rows[k].says));
    assert_int_equal(plan.peak_nbytes, rows[k].status == AOT_OK ? 1000 : plan.peak_nbytes);
    aoth_pipeline_destroy(w->pipeline);
    w->pipeline = NULL;
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      TEST(a_stage_is_answered_by_the_backend_that_comes_later), TEST(a_trial_is_asked_about_and_taken_back),
      TEST(a_trial_left_open_is_undone_and_told),                TEST(a_backend_without_an_answer_is_no_failure),
      TEST(a_backend_that_crashes_is_told_by_its_name),          TEST(the_host_checks_what_it_is_told),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
