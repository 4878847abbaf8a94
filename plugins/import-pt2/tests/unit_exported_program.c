/* JSON into records: a real archive, tolerance, and messages that name the place. */
#include "exported_program.h"
#include "test_env.h"
#include <math.h>
#include <string.h>

static aot_status_t decode(test_env_t *t, const char *json, p2_doc_t *doc, p2_program_t *out) {
  p2_member_t m;
  memset(&m, 0, sizeof m);
  memset(doc, 0, sizeof *doc);
  m.name = p2_str("model.json");
  m.data = (const uint8_t *)json;
  m.packed = m.nbytes = strlen(json);
  m.at = 1000;
  m.content = m.data;
  m.crc = 0;
  doc->label = "model.json";
  doc->text = json;
  doc->size = strlen(json);
  doc->file_at = 1000;
  doc->root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(doc->root);
  return p2_decode_program(&t->env, doc, out);
}

#define META                                                                                                           \
  "{\"dtype\":7,\"sizes\":[{\"as_int\":2}],\"requires_grad\":false,\"device\":{\"type\":\"cpu\",\"index\":null},"      \
  "\"strides\":[{\"as_int\":1}],\"storage_offset\":{\"as_int\":0},\"layout\":7}"
#define PROGRAM(version, nodes)                                                                                        \
  "{\"schema_version\":" version ",\n\"graph_module\":{\"graph\":{\"inputs\":[{\"as_tensor\":{\"name\":\"x\"}}],"      \
  "\"outputs\":[{\"as_tensor\":{\"name\":\"y\"}}],\n\"nodes\":[" nodes "],\"tensor_values\":{\"x\":" META              \
  ",\"y\":" META "},\"sym_int_values\":{}},\"signature\":{\"input_specs\":[{\"user_input\":{\"arg\":{\"as_tensor\":{"  \
  "\"name\":\"x\"}}}}],"                                                                                               \
  "\"output_specs\":[{\"user_output\":{\"arg\":{\"as_tensor\":{\"name\":\"y\"}}}}]}}}"
#define NODE(arg)                                                                                                      \
  "{\"target\":\"torch.ops.aten.f.default\",\"inputs\":[{\"name\":\"a\",\"arg\":" arg                                  \
  ",\"kind\":1}],\"outputs\":[{\"as_tensor\":{\"name\":\"y\"}}],\"metadata\":{}}"

static void reads_a_real_archive(void **state) {
  test_env_t t;
  p2_zip_t zip;
  p2_doc_t doc;
  p2_program_t p;
  uint64_t n;
  uint8_t *bytes;
  (void)state;
  test_env_init(&t);
  bytes = test_read(&t, FIXTURES "/models/resnet_tiny/train.pt2", &n);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  assert_int_equal(p2_json_open(&t.env, p2_zip_find(&zip, p2_str("models/model.json")), &doc), AOT_OK);
  if (p2_decode_program(&t.env, &doc, &p) != AOT_OK) fail_msg("%s", t.env.error.message);
  assert_int_equal(p.n_graphs, 1);
  assert_int_equal(p.graphs[0].n_nodes, 30);
  assert_int_equal(p.n_input_specs, 40);
  assert_int_equal(p.schema_major, 8);
  assert_int_equal(p.input_specs[20].kind, P2_IN_BUFFER);
  assert_memory_equal(p.input_specs[20].target.data, "m.n.running_mean", 16);
  assert_int_equal(p.graphs[0].nodes[0].inputs[3].arg.kind, P2_ARG_INTS); /* conv2d stride */
  p2_json_close(&doc);
  test_env_deinit(&t);
}

static void reads_nested_graphs_once_each(void **state) {
  test_env_t t;
  p2_zip_t zip;
  p2_doc_t doc;
  p2_program_t p;
  uint64_t n;
  uint8_t *bytes;
  (void)state;
  test_env_init(&t);
  bytes = test_read(&t, FIXTURES "/scenarios/mut_no_grad/train.pt2", &n);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  assert_int_equal(p2_json_open(&t.env, p2_zip_find(&zip, p2_str("models/model.json")), &doc), AOT_OK);
  if (p2_decode_program(&t.env, &doc, &p) != AOT_OK) fail_msg("%s", t.env.error.message);
  assert_int_equal(p.n_graphs, 2);
  assert_int_equal(p.graphs[0].nodes[0].inputs[1].arg.kind, P2_ARG_GRAPH);
  assert_int_equal(p.graphs[0].nodes[0].inputs[1].arg.u.i, 1);
  assert_int_equal(p.graphs[1].n_inputs, 2);
  p2_json_close(&doc);
  test_env_deinit(&t);
}

static void keeps_the_kinds_of_numbers(void **state) {
  static const struct {
    const char *json;
    int32_t kind;
  } rows[] = {
      {PROGRAM("{\"major\":8,\"minor\":99}", NODE("{\"as_int\":9223372036854775807}")), P2_ARG_INT},
      {PROGRAM("{\"major\":5,\"minor\":3}", NODE("{\"as_float\":\"-Infinity\"}")), P2_ARG_FLOAT},
      {PROGRAM("{\"major\":8,\"minor\":0}", NODE("{\"as_float\":3}")), P2_ARG_FLOAT},
      {PROGRAM("{\"major\":8,\"minor\":0}", NODE("{\"as_none\":[]}")), P2_ARG_NONE},
      {PROGRAM("{\"major\":8,\"minor\":0}", NODE("{\"as_sym_int\":{\"as_int\":4}}")), P2_ARG_INT},
      {PROGRAM("{\"major\":8,\"minor\":0}", NODE("{\"as_sym_ints\":[{\"as_int\":4},{\"as_name\":\"s\"}]}")),
       P2_ARG_SYM_INTS},
      {PROGRAM("{\"major\":8,\"minor\":0}", NODE("{\"as_optional_tensor\":{\"as_none\":true}}")), P2_ARG_NONE},
      {PROGRAM("{\"major\":8,\"minor\":0}",
               NODE("{\"as_optional_tensors\":[{\"as_none\":true},{\"as_tensor\":{\"name\":\"x\"}}]}")),
       P2_ARG_OPTIONAL_TENSORS},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    test_env_t t;
    p2_doc_t doc;
    p2_program_t p;
    test_env_init(&t);
    if (decode(&t, rows[i].json, &doc, &p) != AOT_OK) fail_msg("row %zu: %s", i, t.env.error.message);
    const p2_argument_t *a = &p.graphs[0].nodes[0].inputs[0].arg;
    assert_int_equal(a->kind, rows[i].kind);
    if (i == 0) assert_true(a->u.i == INT64_MAX);
    if (i == 1) assert_true(isinf(a->u.f) && a->u.f < 0);
    if (i == 7) assert_int_equal(a->u.names[0].size, 0);
    assert_memory_equal(p.graphs[0].nodes[0].name.data, "y", 1); /* the output's, where the schema had no name */
    p2_json_close(&doc);
    test_env_deinit(&t);
  }
}

static void names_the_place_of_a_mistake(void **state) {
  static const struct {
    const char *json, *says;
    uint64_t byte;
  } rows[] = {
      {PROGRAM("{\"major\":7,\"minor\":1}", ""), "line 1 column 19 (schema_version): schema version 7.1 is not known",
       1018},
      {PROGRAM("{\"major\":8,\"minor\":1}", NODE("{\"as_wat\":1}")),
       "(graph_module.graph.nodes[0].inputs[0].arg): 'as_wat' is no kind of argument", 0},
      {PROGRAM("{\"major\":8,\"minor\":1}", NODE("{\"as_int\":1,\"as_bool\":true}")), "exactly one key, this one has 2",
       0},
      {PROGRAM("{\"major\":8,\"minor\":1}", NODE("{\"as_int\":\"one\"}")),
       "an integer is expected here, this is a string", 0},
      {PROGRAM("{\"major\":8,\"minor\":1}", "{\"target\":\"t\"}"),
       "(graph_module.graph.nodes[0]): the field 'inputs' is missing", 0},
      {"[]", "an object is expected here, this is a list", 1000},
      {"{\"schema_version\":{\"major\":8,\"minor\":1}}", "the field 'graph_module' is missing", 1000},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    test_env_t t;
    p2_doc_t doc;
    p2_program_t p;
    test_env_init(&t);
    assert_int_equal(decode(&t, rows[i].json, &doc, &p), AOT_E_INVALID);
    assert_says(&t, rows[i].says);
    if (rows[i].byte) assert_int_equal(t.env.error.byte, rows[i].byte);
    p2_json_close(&doc);
    test_env_deinit(&t);
  }
}

static void finds_values_by_path(void **state) {
  static const char text[] = "{\"a\": [1, {\"b\\\"c\": 2, \"d\": [\"]\", 3]}, 4],\n \"e\": null}";
  p2_at_t root = {NULL, NULL, 0}, a = {&root, "a", 0}, a1 = {&a, NULL, 1}, d = {&a1, "d", 0}, d1 = {&d, NULL, 1};
  p2_at_t e = {&root, "e", 0}, none = {&root, "none", 0};
  char path[40];
  (void)state;
  assert_int_equal(text[p2_json_offset(text, sizeof text - 1, &d1)], '3');
  assert_int_equal(text[p2_json_offset(text, sizeof text - 1, &e)], 'n');
  assert_int_equal(p2_json_offset(text, sizeof text - 1, &none), sizeof text - 1);
  p2_json_path(&d1, path, sizeof path);
  assert_string_equal(path, "a[1].d[1]");
}

static void reads_the_bare_numbers_of_old_writers(void **state) {
  static const char text[] = "{\"x\": -Infinity, \"y\": NaN, \"z\": \"NaN Infinity\"}";
  test_member_t members[] = {{"r/m.json", text, sizeof text - 1, 1}, {"r/cut.json", text, sizeof text - 9, 0}};
  test_env_t t;
  p2_zip_t zip;
  p2_doc_t doc;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_zip(&t, members, 2, &n);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  assert_int_equal(p2_json_open(&t.env, &zip.members[0], &doc), AOT_OK);
  assert_string_equal(json_string_value(json_object_get(doc.root, "x")), "-inf");
  assert_string_equal(json_string_value(json_object_get(doc.root, "z")), "NaN Infinity");
  p2_json_close(&doc);
  assert_int_equal(p2_json_open(&t.env, &zip.members[1], &doc), AOT_E_INVALID);
  assert_says(&t, "cut.json, line 1 column");
  assert_true(t.env.error.byte > zip.members[1].at);
  test_env_deinit(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_a_real_archive),       cmocka_unit_test(reads_nested_graphs_once_each),
      cmocka_unit_test(keeps_the_kinds_of_numbers), cmocka_unit_test(names_the_place_of_a_mistake),
      cmocka_unit_test(finds_values_by_path),       cmocka_unit_test(reads_the_bare_numbers_of_old_writers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
