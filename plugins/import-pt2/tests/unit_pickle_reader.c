/* The whitelist pickle reader, on a file that PyTorch wrote and on pickles made here by hand. */
#include "pickle_reader.h"
#include "test_env.h"
#include "torch_save.h"
#include <string.h>

static p2_pv_t *read(test_env_t *t, const char *bytes, uint64_t n) {
  p2_pv_t *v = NULL;
  test_env_init(t);
  return p2_pickle_read(&t->env, "p", (const uint8_t *)bytes, n, &v) == AOT_OK ? v : NULL;
}
#define READ(t, s) read(t, s, sizeof s - 1)

static void reads_plain_data(void **state) {
  test_env_t t;
  /* {"a": [1, -2, 70000], "b": (None, True, 2.5)} in protocol 2 */
  p2_pv_t *v = READ(&t, "\x80\x02}q\x00(X\x01\x00\x00\x00"
                        "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00"
                        "eX\x01\x00\x00\x00"
                        "bN\x88G@\x04\x00\x00\x00\x00\x00\x00\x87u.");
  (void)state;
  assert_non_null(v);
  assert_int_equal(v->kind, P2_PV_DICT);
  assert_int_equal(v->n, 4);
  assert_int_equal(v->items[1]->kind, P2_PV_LIST);
  assert_int_equal(v->items[1]->items[1]->i, -2);
  assert_int_equal(v->items[1]->items[2]->i, 70000);
  assert_int_equal(v->items[3]->kind, P2_PV_TUPLE);
  assert_true(v->items[3]->items[2]->f == 2.5);
  test_env_deinit(&t);
}

static void never_calls_anything(void **state) {
  test_env_t t;
  (void)state;
  assert_null(READ(&t, "cos\nsystem\n(X\x04\x00\x00\x00"
                       "true"
                       "tR."));
  assert_says(&t, "os.system");
  test_env_deinit(&t);
  assert_null(READ(&t, "\x80\x04\x8c\x08"
                       "builtins\x8c\x04"
                       "eval\x93."));
  assert_says(&t, "builtins.eval");
  test_env_deinit(&t);
  assert_null(READ(&t, "ccollections\nOrderedDict\n(K\x01tR.")); /* allowed, but not with arguments */
  test_env_deinit(&t);
}

static void survives_damage(void **state) {
  static const char good[] = "\x80\x02}q\x00(X\x01\x00\x00\x00"
                             "aq\x01"
                             "ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00"
                             "storagectorch\nFloatStorage\nX\x01\x00\x00\x00"
                             "0X\x03\x00\x00\x00"
                             "cpuK\x06tQK\x00K\x02K\x03\x86"
                             "K\x03K\x01\x86\x89"
                             "ccollections\nOrderedDict\n)RtRu.";
  test_env_t t;
  uint64_t i;
  int k;
  (void)state;
  p2_pv_t *v = READ(&t, good);
  if (!v) fail_msg("%s", t.env.error.message);
  assert_int_equal(v->items[1]->kind, P2_PV_TENSOR);
  assert_int_equal(v->items[1]->dtype, AOT_F32);
  assert_int_equal(v->items[1]->rank, 2);
  assert_int_equal(v->items[1]->strides[0], 3);
  test_env_deinit(&t);
  for (i = 0; i < sizeof good - 1; i++)
    for (k = 0; k < 256; k += 5) {
      char copy[sizeof good];
      memcpy(copy, good, sizeof good);
      copy[i] = (char)k;
      read(&t, copy, sizeof good - 1);
      test_env_deinit(&t);
      read(&t, copy, i);
      test_env_deinit(&t);
    }
}

/* The sample inputs of an archive: a torch.save file of a tuple, written by PyTorch 2.11. */
static void reads_a_file_of_pytorch(void **state) {
  test_env_t t;
  p2_zip_t zip, inner;
  p2_member_t *m;
  p2_pv_t *v = NULL;
  const uint8_t *bytes, *file;
  uint64_t n;
  (void)state;
  test_env_init(&t);
  file = test_read(&t, FIXTURES "/models/mlp/train.pt2", &n);
  assert_int_equal(p2_zip_open(&t.env, "f", file, n, 0, &zip), AOT_OK);
  m = p2_zip_find(&zip, p2_str("data/sample_inputs/model.pt"));
  assert_int_equal(p2_zip_content(&t.env, m, 1, &bytes), AOT_OK);
  assert_int_equal(p2_zip_open(&t.env, "s", bytes, m->nbytes, m->at, &inner), AOT_OK);
  m = p2_zip_find(&inner, p2_str("data.pkl"));
  assert_non_null(m);
  assert_int_equal(p2_zip_content(&t.env, m, 1, &bytes), AOT_OK);
  if (p2_pickle_read(&t.env, "s", bytes, m->nbytes, &v) != AOT_OK) fail_msg("%s", t.env.error.message);
  assert_int_equal(v->kind, P2_PV_TUPLE); /* (args, kwargs) */
  assert_int_equal(v->items[0]->n, 2);
  assert_int_equal(v->items[0]->items[0]->kind, P2_PV_TENSOR);
  assert_int_equal(v->items[0]->items[0]->sizes[1], 16);
  assert_int_equal(v->items[0]->items[1]->dtype, AOT_I64);
  test_env_deinit(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reads_plain_data), cmocka_unit_test(never_calls_anything),
                                     cmocka_unit_test(survives_damage), cmocka_unit_test(reads_a_file_of_pytorch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
