/* Inputs that share memory, from C: the model alias_program.ir adds 1 to x in place, then takes sum(y * w).
 * alias_program PIPELINE MODEL BACKEND. */
#include <aothost.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char last_message[4096];
static int n_failed;

static void note(void *self, int32_t severity, const char *text) {
  (void)self;
  (void)severity;
  strncpy(last_message, text, sizeof last_message - 1);
}

static void check(int ok, const char *what, int line) {
  if (ok) return;
  n_failed++;
  fprintf(stderr, "line %d: %s; last message: %s\n", line, what, last_message);
}
#define CHECK(x) check((x) != 0, #x, __LINE__)

static const int64_t four[1] = {4}, one[1] = {1}, two[1] = {2};

static aot_tensor_t view(float *storage, uint64_t n, int64_t offset, const int64_t *stride) {
  aot_tensor_t t;
  memset(&t, 0, sizeof t);
  t.data = storage;
  t.nbytes = n * sizeof *storage;
  t.dtype = AOT_F32;
  t.rank = 1;
  t.sizes = four;
  t.strides = stride;
  t.offset = offset;
  return t;
}

static void fill(float *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (float)i;
}

static float element(aothost_t *h, const char *key, int64_t i) {
  aot_tensor_t t;
  if (aothost_get(h, key, &t) != AOT_OK) return -1000;
  return ((const float *)t.data)[t.offset + i * (t.rank ? t.strides[0] : 0)];
}

static void set_weights(aothost_t *h) {
  float ones[4] = {1, 1, 1, 1};
  aot_tensor_t w = view(ones, 4, 0, one);
  CHECK(aothost_set(h, "param.w", &w) == AOT_OK);
}

static void apart_and_together(aothost_t *h) {
  float s[10];
  aot_tensor_t in[2], a, b;
  fill(s, 10);
  in[0] = view(s, 10, 0, one);
  in[1] = view(s, 10, 4, one); /* side by side: nothing shared */
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(element(h, "output.0", 0) == 4 + 5 + 6 + 7);
  in[1] = in[0]; /* the same tensor */
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(element(h, "output.0", 0) == 1 + 2 + 3 + 4);
  CHECK(aothost_get(h, "output.1", &a) == AOT_OK && aothost_get(h, "output.2", &b) == AOT_OK && a.data == b.data);
  CHECK(element(h, "input_after.0", 3) == 4 && element(h, "input_after.1", 3) == 4);
  CHECK(s[3] == 3);            /* the caller's own memory is as it was */
  in[1] = view(s, 10, 2, one); /* two elements shared */
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(element(h, "output.0", 0) == 3 + 4 + 4 + 5);
  CHECK(aothost_get(h, "output.1", &a) == AOT_OK && aothost_get(h, "output.2", &b) == AOT_OK);
  CHECK((float *)a.data + a.offset + 2 == (float *)b.data + b.offset);
  in[0] = view(s, 10, 0, two);
  in[1] = view(s, 10, 1, two); /* every other element each */
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(element(h, "output.0", 0) == 1 + 3 + 5 + 7);
}

static void in_place(aothost_t *h) {
  float s[6];
  aot_tensor_t in[2];
  fill(s, 6);
  in[0] = view(s, 6, 0, one);
  in[1] = view(s, 6, 2, one);
  CHECK(aothost_forward_in_place(h, in, 2) == AOT_OK);
  CHECK(s[0] == 1 && s[1] == 2 && s[2] == 3 && s[3] == 4 && s[4] == 4 && s[5] == 5);
}

/* Results that share memory continue sharing it when they are given as inputs. */
static void feed_back(aothost_t *h) {
  float s[6];
  aot_tensor_t in[2];
  fill(s, 6);
  in[0] = view(s, 6, 0, one);
  in[1] = view(s, 6, 2, one);
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(aothost_get(h, "input_after.0", &in[0]) == AOT_OK && aothost_get(h, "input_after.1", &in[1]) == AOT_OK);
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(element(h, "input_after.1", 0) == 4 && element(h, "input_after.1", 3) == 5);
  CHECK(aothost_get(h, "input_after.0", &in[0]) == AOT_OK && aothost_get(h, "input_after.1", &in[1]) == AOT_OK);
  CHECK(aothost_forward_in_place(h, in, 2) == AOT_E_INVALID);
  CHECK(strstr(last_message, "cannot be written in place") != NULL);
}

/* Parameters and optimizer state belong to the model, whichever of its programs runs. */
static void train(aothost_t *h) {
  float s[8];
  aot_tensor_t in[2];
  fill(s, 8);
  in[0] = view(s, 8, 0, one);
  in[1] = view(s, 8, 0, one);
  CHECK(aothost_forward(h, in, 2) == AOT_OK && aothost_backward(h, NULL, 0) == AOT_OK &&
        aothost_update(h, 0.5) == AOT_OK);
  CHECK(element(h, "param.w", 3) == 1 - 0.5f * 4);
  in[1] = view(s, 8, 4, one);
  CHECK(aothost_forward(h, in, 2) == AOT_OK && aothost_backward(h, NULL, 0) == AOT_OK &&
        aothost_update(h, 0.5) == AOT_OK);
  CHECK(element(h, "param.w", 3) == 1 - 0.5f * 4 - 0.5f * 7);
  in[1] = in[0];
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(element(h, "param.w", 3) == 1 - 0.5f * 4 - 0.5f * 7);
  CHECK(aothost_reset(h) == AOT_OK);
  CHECK(element(h, "param.w", 3) == 0);
}

static void make_mistakes(aothost_t *h) {
  float s[8];
  aot_tensor_t in[2];
  fill(s, 8);
  in[0] = view(s, 8, 0, one);
  in[1] = view(s, 8, 1, one);
  in[1].data = (char *)s + 2; /* half an element further */
  in[1].nbytes -= 2;
  CHECK(aothost_forward(h, in, 2) == AOT_E_UNIMPLEMENTED);
  CHECK(strstr(last_message, "inputs 0 and 1 alias memory that the program writes, but they are not a whole number") !=
        NULL);
  in[1] = view(s, 8, 1, one);
  CHECK(aothost_forward(h, in, 2) == AOT_E_PRECONDITION); /* the third pattern */
  CHECK(strstr(last_message, "input.1 = [4] offset 1") != NULL);
  in[1] = in[0];
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
}

int main(int argc, char **argv) {
  const char *sets[] = {"run.train.optimizer=sgd", "run.alias-patterns=2", NULL};
  char backend[64];
  aothost_config_t config;
  aothost_t *h = NULL;
  if (argc < 4) return 2;
  snprintf(backend, sizeof backend, "vars.backend=%s", argv[3]);
  sets[2] = backend;
  memset(&config, 0, sizeof config);
  config.struct_size = sizeof config;
  config.model = argv[2];
  config.sets = sets;
  config.n_sets = 3;
  config.message = note;
  CHECK(aothost_open(argv[1], &config, &h) == AOT_OK && aothost_compile(h, AOTHOST_OPTIMIZER) == AOT_OK);
  if (n_failed) return 1;
  set_weights(h);
  apart_and_together(h);
  in_place(h);
  feed_back(h);
  train(h);
  make_mistakes(h);
  aothost_close(h);
  printf("%d failed\n", n_failed);
  return n_failed != 0;
}
