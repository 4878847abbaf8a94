#include "replay.h"

#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_pipeline(const char *path, const char *stages) {
  FILE *f = fopen(path, "w");
  char copy[256], *rest, *word;
  assert_non_null(f);
  snprintf(copy, sizeof copy, "%s", stages);
  fputs("# in: any model; out: nothing; for a test\naot: 1\nstages:\n", f);
  for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    char *colon = strchr(word, ':'), *options, *option;
    if (colon) *colon = '\0';
    fprintf(f, "  - use: %s\n", word);
    if (colon) fputs("    with:\n", f);
    for (option = colon ? strtok_r(colon + 1, ",", &options) : NULL; option; option = strtok_r(NULL, ",", &options))
      fprintf(f, "      %.*s: %s\n", (int)strcspn(option, "="), option, option + strcspn(option, "=") + 1);
  }
  fclose(f);
}

static void tell(void *self, int32_t severity, const char *text) {
  (void)self;
  if (severity >= 3) fprintf(stderr, "%s", text);
}

aothost_t *replay_open(const char *model, const char *stages) {
  char path[] = "replay_XXXXXX", file[512];
  const char *dirs[] = {TEST_PLUGINS};
  const aothost_config_t config = {
      .struct_size = sizeof config,
      .n_plugin_dirs = 1,
      .plugin_dirs = dirs,
      .flags = AOTHOST_NO_CACHE,
      .model = file,
      .message = tell,
  };
  aothost_t *h = NULL;
  const int fd = mkstemp(path);
  snprintf(file, sizeof file, "%s/%s", TEST_ROOT, model);
  assert_true(fd >= 0);
  close(fd);
  write_pipeline(path, stages);
  aot_status_t status = aothost_open(path, &config, &h);
  if (status == AOT_OK) status = aothost_compile(h, 0);
  unlink(path);
  if (status != AOT_OK) fail_msg("%s over '%s' does not compile", model, stages);
  return h;
}

aoth_step_t *replay_step(aothost_t *h) { return aoth_api_step(h); }

static void append(replay_bits_t *b, const void *data, size_t size) {
  if (b->size + size > b->capacity) {
    b->capacity = 2 * b->capacity + size;
    b->data = realloc(b->data, b->capacity);
    assert_non_null(b->data);
  }
  if (size) memcpy(b->data + b->size, data, size);
  b->size += size;
}

/* Row-major bytes of a tensor; free them. */
static char *dense(const aoth_tensor_t *t) {
  const size_t size = (size_t)aoth_tensor_numel(t) * aot_dtype_size(t->dtype);
  char *data = calloc(1, size + 1);
  assert_non_null(data);
  const aoth_tensor_t to = aoth_tensor_make(data, t->dtype, t->rank, t->sizes);
  aoth_tensor_copy(&to, t);
  return data;
}

static aot_status_t keep_one(void *self, const char *key, const aoth_tensor_t *t) {
  char *data = dense(t);
  append(self, key, strlen(key));
  append(self, data, (size_t)aoth_tensor_numel(t) * aot_dtype_size(t->dtype));
  free(data);
  return AOT_OK;
}

void replay_keep(aothost_t *h, replay_bits_t *bits) {
  const uint32_t what = AOTH_KEYS_OUTPUTS | (aothost_has_backward(h) ? AOTH_KEYS_GRADIENTS : 0);
  assert_int_equal(aoth_step_keys(aoth_api_step(h), what, keep_one, bits), AOT_OK);
}

int replay_same(const replay_bits_t *a, const replay_bits_t *b) {
  return a->size == b->size && a->size > 0 && memcmp(a->data, b->data, a->size) == 0;
}

void replay_free(replay_bits_t *bits) {
  free(bits->data);
  memset(bits, 0, sizeof *bits);
}

aot_tensor_t replay_tensor(void *data, int32_t dtype, int32_t rank, const int64_t *sizes, const int64_t *strides) {
  int64_t n = 1;
  for (int32_t d = 0; d < rank; d++) n *= sizes[d];
  return (aot_tensor_t){
      .data = data,
      .nbytes = (uint64_t)n * aot_dtype_size(dtype),
      .dtype = dtype,
      .rank = rank,
      .sizes = sizes,
      .strides = strides,
  };
}

double *replay_numbers(aothost_t *h, const char *key, int64_t *out_n) {
  aoth_tensor_t t;
  if (!aoth_step_get(aoth_api_step(h), key, &t)) fail_msg("there is no %s", key);
  const int64_t n = *out_n = aoth_tensor_numel(&t);
  double *out = calloc((size_t)n + 1, sizeof *out);
  assert_non_null(out);
  char *data = dense(&t);
  for (int64_t i = 0; i < n; i++) out[i] = kit_element_load(t.dtype, data + (size_t)i * aot_dtype_size(t.dtype));
  free(data);
  return out;
}
