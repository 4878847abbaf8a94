/* safetensors: what is written reads back; every way in which a file can be wrong is refused with a word about
 * where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <trainer/tensors/safetensors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

/* ---- a private folder ---- */

static char folder[64];

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "aothost-st-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[100];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static const char *in_folder(const char *name) {
  static char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int n_files(void) {
  int n = 0;
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (struct dirent *e = readdir(d); e; e = readdir(d)) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

/* ---- round trip ---- */

static void test_round_trip(void **state) {
  (void)state;
  aoth_sink_t *sink = aoth_sink_create(NULL);
  float square[6] = {1, 2, 3, 4, 5, 6};
  int64_t count = 7;
  unsigned char flag = 1;
  uint16_t half[2] = {0x3f80, 0x4000};
  aoth_st_entry_t rows[5] = {{.name = "flag", .tensor = aoth_tensor_make(&flag, AOT_BOOL, 1, (int64_t[]){1})},
                             {.name = "w", .tensor = aoth_tensor_make(square, AOT_F32, 2, (int64_t[]){2, 3})},
                             {.name = "count", .tensor = aoth_tensor_scalar(&count, AOT_I64)},
                             {.name = "empty", .tensor = aoth_tensor_make(NULL, AOT_F32, 2, (int64_t[]){0, 3})},
                             {
                                 .name = "a \"quoted\" name",
                                 .tensor = aoth_tensor_make(half, AOT_BF16, 1, (int64_t[]){2}),
                             }};
  rows[1].tensor.sizes[0] = 3; /* its transpose, with strides */
  rows[1].tensor.sizes[1] = 2;
  rows[1].tensor.strides[0] = 1;
  rows[1].tensor.strides[1] = 3;
  const aoth_st_meta_t meta[] = {{"step", "12"}, {"format", "x\ny"}};
  assert_int_equal(aoth_st_write(in_folder("a.safetensors"), rows, 5, meta, 2, sink), AOT_OK);
  assert_int_equal(n_files(), 1);

  aoth_st_t *st;
  assert_int_equal(aoth_st_open(in_folder("a.safetensors"), sink, &st), AOT_OK);
  assert_int_equal(aoth_st_count(st), 5);
  assert_string_equal(aoth_st_meta(st, "format"), "x\ny");
  assert_null(aoth_st_meta(st, "absent"));
  const aoth_st_entry_t *w = aoth_st_find(st, "w");
  assert_non_null(w);
  const float transposed[6] = {1, 4, 2, 5, 3, 6};
  assert_memory_equal(w->tensor.data, transposed, sizeof transposed);
  assert_int_equal(w->tensor.sizes[0], 3);
  assert_int_equal(kit_element_load_int(AOT_I64, aoth_st_find(st, "count")->tensor.data), 7);
  assert_int_equal(aoth_st_find(st, "empty")->tensor.nbytes, 0);
  assert_int_equal(aoth_st_find(st, "a \"quoted\" name")->tensor.dtype, AOT_BF16);
  assert_null(aoth_st_find(st, "v"));
  for (uint32_t i = 0; i < 5; i++) { /* larger dtypes first, so that all are aligned */
    const aoth_tensor_t *t = &aoth_st_entries(st)[i].tensor;
    if (t->nbytes) assert_int_equal((uintptr_t)t->data % (t->dtype == AOT_I64 ? 8 : t->dtype == AOT_F32 ? 4 : 1), 0);
  }
  aoth_st_close(st);
  aoth_sink_destroy(sink);
}

static void test_no_tensors(void **state) {
  (void)state;
  aoth_sink_t *sink = aoth_sink_create(NULL);
  aoth_st_t *st;
  assert_int_equal(aoth_st_write(in_folder("none.safetensors"), NULL, 0, NULL, 0, sink), AOT_OK);
  assert_int_equal(aoth_st_open(in_folder("none.safetensors"), sink, &st), AOT_OK);
  assert_int_equal(aoth_st_count(st), 0);
  aoth_st_close(st);
  aoth_sink_destroy(sink);
}

/* ---- bad files ---- */

typedef struct bad_file {
  const char *header; /* NULL: `raw` is the whole file */
  size_t n_data;
  const char *says; /* part of the message */
} bad_file_t;

static const bad_file_t bad_files[] = {
    {"", 0, "does not begin with '{'"},
    {"{", 0, "no valid JSON"},
    {"[1]", 0, "does not begin with '{'"},
    {"{\"a\":1}", 0, "\"a\" is not described"},
    {"{\"a\":{}}", 0, "\"a\" has no \"dtype\""},
    {"{\"a\":{\"dtype\":\"F33\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "dtype \"F33\" is not supported"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "\"a\" has no \"shape\""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "dimension 0 is not a size"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "dimension 0 is not a size"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
     "17 dimensions"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]}}", 4, "larger than memory"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "no \"data_offsets\""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "no \"data_offsets\""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 4, "outside the 4 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "outside"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "dtype and shape make 8"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
     "offsets\":[2,6]}}",
     6, "\"b\" overlaps"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
     "offsets\":[8,12]}}",
     12, "bytes 4..8 of the data, before tensor \"b\""},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "last 1 bytes"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_"
     "offsets\":[0,0]}}",
     0, "no valid JSON"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "the value of \"a\" is no string"},
    {"{\"__metadata__\":[]}", 0, "is not an object"},
};

static aot_status_t parse(const char *header, size_t n_data, aoth_sink_t *sink, aoth_st_t **out) {
  size_t n = strlen(header);
  unsigned char *bytes = calloc(1, 8 + n + n_data);
  assert_non_null(bytes);
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(n >> (8 * i));
  memcpy(bytes + 8, header, n);
  aot_status_t status = aoth_st_parse("bad.safetensors", bytes, 8 + n + n_data, sink, out);
  free(bytes);
  return status;
}

static void test_bad_files(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
    aoth_sink_t *sink = aoth_sink_create(NULL);
    aoth_st_t *st;
    aot_status_t status = parse(bad_files[i].header, bad_files[i].n_data, sink, &st);
    if (status != AOT_E_INVALID) fail_msg("accepted: %s", bad_files[i].header);
    assert_null(st);
    if (!strstr(aoth_sink_text(sink), bad_files[i].says) || !strstr(aoth_sink_text(sink), "bad.safetensors"))
      fail_msg("%s\nsays %s\nnot %s", bad_files[i].header, aoth_sink_text(sink), bad_files[i].says);
    aoth_sink_destroy(sink);
  }
}

static void test_bad_lengths(void **state) {
  (void)state;
  static const unsigned char files[][16] = {
      {1, 2, 3}, {9, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, {255, 255, 255, 255, 255, 255, 255, 255, '{'}};
  static const size_t sizes[] = {3, 10, 9};
  for (size_t i = 0; i < 3; i++) {
    aoth_sink_t *sink = aoth_sink_create(NULL);
    aoth_st_t *st;
    assert_int_equal(aoth_st_parse("x", files[i], sizes[i], sink, &st), AOT_E_INVALID);
    assert_int_equal(aoth_sink_count(sink, AOT_SEVERITY_ERROR), 1);
    aoth_sink_destroy(sink);
  }
}

/* ---- writing that cannot succeed ---- */

static void test_refused_writes(void **state) {
  (void)state;
  aoth_sink_t *sink = aoth_sink_create(NULL);
  double z[2] = {0};
  aoth_st_entry_t twice[2] = {{.name = "a", .tensor = aoth_tensor_scalar(z, AOT_F64)},
                              {.name = "a", .tensor = aoth_tensor_scalar(z, AOT_F64)}};
  int before = n_files();
  assert_int_equal(aoth_st_write(in_folder("twice"), twice, 2, NULL, 0, sink), AOT_E_INVALID);
  twice[0].tensor.dtype = AOT_C128;
  assert_int_equal(aoth_st_write(in_folder("complex"), twice, 1, NULL, 0, sink), AOT_E_INVALID);
  assert_int_not_equal(aoth_st_write(in_folder("absent/x"), twice + 1, 1, NULL, 0, sink), AOT_OK);
  assert_int_equal(n_files(), before);
  assert_int_equal(aoth_sink_count(sink, AOT_SEVERITY_ERROR), 3);
  aoth_sink_destroy(sink);
}

/* A full disk, played by a limit on file sizes: an error, the old file untouched, nothing left over. */
static void test_full_disk(void **state) {
  (void)state;
  aoth_sink_t *sink = aoth_sink_create(NULL);
  static float big[1 << 16];
  float small[1] = {1};
  aoth_st_entry_t row = {.name = "t", .tensor = aoth_tensor_make(small, AOT_F32, 1, (int64_t[]){1})};
  assert_int_equal(aoth_st_write(in_folder("full"), &row, 1, NULL, 0, sink), AOT_OK);
  int before = n_files();
  struct rlimit old, low;
  getrlimit(RLIMIT_FSIZE, &old);
  low = old;
  low.rlim_cur = 4096;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &low);
  row.tensor = aoth_tensor_make(big, AOT_F32, 1, (int64_t[]){1 << 16});
  aot_status_t status = aoth_st_write(in_folder("full"), &row, 1, NULL, 0, sink);
  setrlimit(RLIMIT_FSIZE, &old);
  assert_int_equal(status, AOT_E_EXHAUSTED);
  assert_int_equal(aoth_sink_count(sink, AOT_SEVERITY_ERROR), 1);
  assert_int_equal(n_files(), before);
  aoth_st_t *st;
  assert_int_equal(aoth_st_open(in_folder("full"), sink, &st), AOT_OK);
  assert_int_equal(aoth_st_find(st, "t")->tensor.nbytes, 4);
  aoth_st_close(st);
  aoth_sink_destroy(sink);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_no_tensors),     cmocka_unit_test(test_bad_files),
      cmocka_unit_test(test_bad_lengths), cmocka_unit_test(test_refused_writes), cmocka_unit_test(test_full_disk),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
