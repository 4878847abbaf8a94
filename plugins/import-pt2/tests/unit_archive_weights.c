/* Weights by name: payload configs of the new layout, torch.save files of the old one, and data that does not fit. */
#include "archive_weights.h"
#include "test_env.h"
#include <string.h>

#define DIRECTORY_ENTRY 46 /* bytes of a directory entry before its name; the checksum is at 16 */
#define END_RECORD 22

static aot_status_t load(test_env_t *t, const uint8_t *bytes, uint64_t n, p2_weights_t *out) {
  p2_zip_t zip;
  p2_layout_t layout;
  AOT_TRY(p2_zip_open(&t->env, "f", bytes, n, 0, &zip));
  AOT_TRY(p2_layout_find(&t->env, &zip, p2_str(""), &layout));
  return p2_weights_load(&t->env, &zip, &layout, out);
}

static void ties_what_shares_a_payload(void **state) {
  test_env_t t;
  p2_weights_t w;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_read(&t, FIXTURES "/models/gpt_tiny/train.pt2", &n);
  if (load(&t, bytes, n, &w) != AOT_OK) fail_msg("%s", t.env.error.message);
  const p2_weight_t *a = p2_weights_find(&w, p2_str("wte.weight")), *b = p2_weights_find(&w, p2_str("head.weight"));
  assert_non_null(a);
  assert_non_null(b);
  assert_true(p2_weight_same(a, b));
  assert_int_equal(a->dtype, AOT_F32);
  assert_int_equal((uintptr_t)a->data % 4, 0);
  assert_null(p2_weights_find(&w, p2_str("no.such")));
  test_env_deinit(&t);
}

#define CONFIG(dtype, sizes, strides)                                                                                  \
  "{\"config\":{\"w\":{\"path_name\":\"weight_0\",\"is_param\":true,\"use_pickle\":false,\"tensor_meta\":{"            \
  "\"dtype\":" dtype ",\"sizes\":[{\"as_int\":" sizes                                                                  \
  "}],\"requires_grad\":true,\"device\":{\"type\":\"cpu\",\"index\":null},\"strides\":"                                \
  "[{\"as_int\":" strides "}],\"storage_offset\":{\"as_int\":0},\"layout\":7}}}}"

static void complains_about_data_that_does_not_fit(void **state) {
  /* clang-format off */
  static const struct { const char *config; uint64_t n; const char *says; } rows[] = {
      {CONFIG("7", "3", "1"), 12, NULL},
      {CONFIG("7", "3", "1"), 8, "too short: tensor 'w' needs 3 f32 elements, the member holds 2"},
      {CONFIG("7", "3", "2"), 12, "too short: tensor 'w' needs 5 f32 elements"},
      {CONFIG("7", "3", "1"), 11, "no whole number of f32 elements"},
      {CONFIG("29", "3", "1"), 12, "float8_e4m3fn (29), which is not supported"},
      {CONFIG("7", "-3", "1"), 12, "negative size"},
      {CONFIG("7", "4611686018427387905", "4611686018427387905"), 12, "larger than memory"},
      {CONFIG("7", "3", "1"), 0, NULL}, /* saved without contents: zeros */
  };
  /* clang-format on */
  static const uint8_t data[64];
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    test_member_t members[] = {{"r/archive_format", "pt2", 3, 0},
                               {"r/archive_version", "0", 1, 0},
                               {"r/models/model.json", "{}", 2, 0},
                               {"r/data/weights/model_weights_config.json", rows[i].config, strlen(rows[i].config), 0},
                               {"r/data/weights/weight_0", data, rows[i].n, 0}};
    test_env_t t;
    p2_weights_t w;
    uint64_t n;
    test_env_init(&t);
    uint8_t *bytes = test_zip(&t, members, 5, &n);
    aot_status_t status = load(&t, bytes, n, &w);
    if (rows[i].says) {
      assert_int_equal(status, AOT_E_INVALID);
      assert_says(&t, rows[i].says);
    } else if (status != AOT_OK) {
      fail_msg("row %zu: %s", i, t.env.error.message);
    }
    test_env_again(&t);
    bytes = test_zip(&t, members, 4, &n); /* without the payload */
    assert_int_equal(load(&t, bytes, n, &w), AOT_E_INVALID);
    test_env_deinit(&t);
  }
}

/* A bit of a weight that changed after the archive was written, raw and deflated; a checksum of 0 says that none was
 * computed. */
static void checks_what_a_weight_holds(void **state) {
  const float data[3] = {1, 2, 3};
  const char *config = CONFIG("7", "3", "1");
  (void)state;
  for (int deflate = 0; deflate < 2; deflate++) {
    test_member_t members[] = {{"r/archive_format", "pt2", 3, 0},
                               {"r/archive_version", "0", 1, 0},
                               {"r/models/model.json", "{}", 2, 0},
                               {"r/data/weights/model_weights_config.json", config, strlen(config), 0},
                               {"r/data/weights/weight_0", data, sizeof data, deflate}};
    test_env_t t;
    p2_weights_t w;
    p2_zip_t zip;
    uint64_t n;
    test_env_init(&t);
    uint8_t *bytes = test_zip(&t, members, 5, &n);
    if (load(&t, bytes, n, &w) != AOT_OK) fail_msg("%s", t.env.error.message);
    assert_memory_equal(p2_weights_find(&w, p2_str("w"))->data, data, sizeof data);
    assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
    const p2_member_t *m = p2_zip_find(&zip, p2_str("data/weights/weight_0"));
    bytes[m->at + 2] ^= 1;
    assert_int_equal(load(&t, bytes, n, &w), AOT_E_INVALID);
    assert_says(&t, "member 'data/weights/weight_0' at byte");
    assert_says(&t, "is damaged");
    assert_says(&t, "it holds the tensor 'w'");
    assert_int_equal(t.env.error.byte, m->at);
    test_env_deinit(&t);
  }
}

static void takes_weights_without_checksum(void **state) {
  const float data[3] = {1, 2, 3};
  test_member_t members[] = {{"r/w", data, sizeof data, 0}};
  test_env_t t;
  p2_zip_t zip;
  const uint8_t *content;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_zip(&t, members, 1, &n);
  for (uint64_t i = 0; i < 4; i++) bytes[n - END_RECORD - strlen("r/w") - DIRECTORY_ENTRY + 16 + i] = 0;
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  assert_int_equal(zip.members[0].crc, 0);
  assert_int_equal(p2_zip_content(&t.env, &zip.members[0], 4, &content), AOT_OK);
  assert_memory_equal(content, data, sizeof data);
  test_env_deinit(&t);
}

static void tells_what_a_file_is(void **state) {
  static const struct {
    const char *name, *says;
  } rows[] = {{"r/data.pkl", "torch.save file"}, {"r/readme.txt", "no PyTorch export archive"}};
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    test_member_t members[] = {{rows[i].name, "x", 1, 0}, {"r/version", "3", 1, 0}};
    test_env_t t;
    p2_weights_t w;
    uint64_t n;
    test_env_init(&t);
    uint8_t *bytes = test_zip(&t, members, 2, &n);
    assert_int_equal(load(&t, bytes, n, &w), AOT_E_INVALID);
    assert_says(&t, rows[i].says);
    test_env_deinit(&t);
  }
}

static void chooses_among_models(void **state) {
  test_member_t members[] = {
      {"r/archive_format", "pt2\n", 4, 0}, {"r/models/big.json", "{}", 2, 0}, {"r/models/small.json", "{}", 2, 0}};
  test_env_t t;
  p2_zip_t zip;
  p2_layout_t layout;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  uint8_t *bytes = test_zip(&t, members, 3, &n);
  assert_int_equal(p2_zip_open(&t.env, "f", bytes, n, 0, &zip), AOT_OK);
  assert_int_equal(p2_layout_find(&t.env, &zip, p2_str("small"), &layout), AOT_OK);
  assert_memory_equal(layout.model->name.data, "models/small.json", 17);
  assert_int_equal(p2_layout_find(&t.env, &zip, p2_str(""), &layout), AOT_E_INVALID);
  assert_says(&t, "2 models and none is named 'model'");
  assert_string_equal(t.env.error.hint, "choose one, 'model: {import: pt2, with: {model: NAME}}': big, small");
  test_env_deinit(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ties_what_shares_a_payload), cmocka_unit_test(complains_about_data_that_does_not_fit),
      cmocka_unit_test(checks_what_a_weight_holds), cmocka_unit_test(takes_weights_without_checksum),
      cmocka_unit_test(tells_what_a_file_is),       cmocka_unit_test(chooses_among_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
