/* A session used as a library: what the run time and the commands build on. */
#include "session_world.h"

#include <ir/tables.h>

static void the_run_section_has_its_defaults(void **state) {
  fixture_t *w = *state;
  load(w, "TOY add", whole);
  const aoth_train_spec_t *t = &w->pipeline->run.train;
  assert_true(t->present && t->steps == 1 && t->lr == 1e-3 && t->min_lr == 0 && t->warmup == 0 && t->log_every == 10 &&
              t->loss == 0);
  assert_int_equal(t->schedule, AOTH_SCHEDULE_CONSTANT);
  assert_int_equal(t->data.kind, AOTH_DATA_RANDOM);
  assert_string_equal(t->optimizer.use, "toy-fuse");
  assert_null(t->checkpoint_path);
}

static void options_are_typed_and_defaulted(void **state) {
  fixture_t *w = *state;
  load(
      w, "TOY add",
      "aot: 1\nstages:\n  - {use: toy-fuse, with: {budget: 1, limit: 2KiB, table: t.txt, label: 12, report: false}}\n");
  const aot_opt_value_t *v = w->pipeline->stages[0].opts.values;
  assert_int_equal(w->pipeline->stages[0].opts.n_values, 7);
  assert_true(aot_str_eq(v[0].s, aot_str("all")) && v[1].f == 1.0 && v[2].i == 1 && v[3].i == 0 && v[6].i == 2048);
  assert_true(aot_str_eq(v[4].s, aot_str("12")));
  assert_true(aot_str_eq(v[5].s, aot_str("t.txt")));
}

static void paths_follow_the_file_that_wrote_them(void **state) {
  fixture_t *w = *state;
  const char *sets[] = {"model.path=here.toy"};
  const aoth_overrides_t overrides = {.sets = sets, .n_sets = 1, .outputs = "o.safetensors"};
  assert_int_equal(mkdir("sub", 0700), 0);
  write_text("sub/p.yaml",
             "aot: 1\nmodel: {path: m.toy}\nrun: {inputs: in.safetensors, train: {steps: 1, resume: /abs/c}}\n");
  assert_int_equal(aoth_pipeline_load("sub/p.yaml", NULL, w->sink, &w->pipeline), AOT_OK);
  assert_string_equal(w->pipeline->model_path, "sub/m.toy");
  assert_string_equal(w->pipeline->run.inputs.path, "sub/in.safetensors");
  assert_string_equal(w->pipeline->run.train.resume, "/abs/c");
  aoth_pipeline_destroy(w->pipeline);
  assert_int_equal(aoth_pipeline_load("sub/p.yaml", &overrides, w->sink, &w->pipeline), AOT_OK);
  assert_string_equal(w->pipeline->model_path, "here.toy");
  assert_string_equal(w->pipeline->run.outputs, "o.safetensors");
}

static void stages_run_in_order_with_the_optimizer_before_the_backend(void **state) {
  fixture_t *w = *state;
  load(w, "TOY add mul mul", whole);
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_pipeline_run_stages(w->session, w->pipeline, AOTH_STAGES_OPTIMIZER), AOT_OK);
  const aoth_record_t *r;
  assert_int_equal(aoth_session_records(w->session, &r), 4);
  assert_string_equal(r[0].unit, "toy-import");
  assert_string_equal(r[1].unit, "toy-functional");
  assert_string_equal(r[2].unit, "toy-fuse");
  assert_string_equal(r[3].unit, "toy-backend");
  assert_true(r[2].number == 0 && r[3].number == 2 && r[2].edits == 3 && r[2].nodes_after == 3 && r[2].n_numbers == 1);
  assert_string_equal(r[2].numbers[0].name, "fused");
  assert_true(r[3].nodes_before == 3 && r[3].nodes_after == 4); /* the muladd was refused and decomposed */
  assert_int_equal(aoth_prog_properties(aoth_session_prog(w->session)).known,
                   AOTH_PROP_IMPORTED | AOTH_PROP_FUNCTIONAL | AOTH_PROP_LOWERED);
}

static void what_a_backend_would_rather_have_in_parts_is_decomposed_where_that_can_be(void **state) {
  fixture_t *w = *state;
  load(w, "TOY rather torn plain add", whole);
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_pipeline_run_stages(w->session, w->pipeline, 0), AOT_OK);
  const aoth_record_t *r;
  const uint32_t n = aoth_session_records(w->session, &r);
  assert_true(r[n - 1].nodes_before == 4 && r[n - 1].nodes_after == 5); /* torn and plain stay, nothing is left over */
  const char *told = aoth_sink_text(w->sink);
  assert_true(!told || !strstr(told, "torn"));
}

static void properties_are_asked_for_and_told_by_name(void **state) {
  fixture_t *w = *state;
  aot_graph_api_t g;
  kit_arena_t *arena = kit_arena_create();
  assert_non_null(arena);
  load(w, "TOY add", whole);
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  aoth_fill_graph_api(&g);
  aot_prog_t *prog = aoth_session_prog(w->session);
  assert_int_equal(g.has_property(prog, aot_str("imported")), 1);
  assert_int_equal(g.has_property(prog, aot_str("lowered")), 0);
  assert_int_equal(g.has_property(prog, aot_str("no such property")), 0);
  assert_string_equal(aoth_property_names(aoth_properties_known(AOTH_PROP_LOWERED | AOTH_PROP_STITCHED), arena),
                      "lowered, stitched");
  assert_string_equal(aoth_property_names(aoth_properties_known(1u << 31), arena), "property 31");
  kit_arena_destroy(arena);
}

static void without_its_flag_the_optimizer_stays_out(void **state) {
  fixture_t *w = *state;
  load(w, "TOY mul", whole);
  assert_int_equal(aoth_pipeline_import(w->session, w->pipeline), AOT_OK);
  assert_int_equal(aoth_pipeline_run_stages(w->session, w->pipeline, AOTH_STAGES_NO_BACKEND), AOT_OK);
  const aoth_record_t *r;
  assert_int_equal(aoth_session_records(w->session, &r), 2);
  assert_null(aoth_session_exe(w->session));
  assert_int_equal(world_run(w, AOT_GRAPH_FORWARD), AOT_E_PRECONDITION);
}

static void an_unknown_unit_is_found_out_before_anything_runs(void **state) {
  fixture_t *w = *state;
  write_text("p.yaml", "aot: 1\nmodel: {path: m.toy}\nstages: [{use: toy-fuse}, {use: nothing-like-it}]\n");
  assert_int_equal(aoth_pipeline_load("p.yaml", NULL, w->sink, &w->pipeline), AOT_OK);
  assert_int_equal(aoth_pipeline_check(w->session, w->pipeline), AOT_E_INVALID);
  assert_null(aoth_session_prog(w->session));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      TEST(the_run_section_has_its_defaults),         TEST(options_are_typed_and_defaulted),
      TEST(paths_follow_the_file_that_wrote_them),    TEST(stages_run_in_order_with_the_optimizer_before_the_backend),
      TEST(properties_are_asked_for_and_told_by_name),
      TEST(what_a_backend_would_rather_have_in_parts_is_decomposed_where_that_can_be),
      TEST(without_its_flag_the_optimizer_stays_out), TEST(an_unknown_unit_is_found_out_before_anything_runs),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
