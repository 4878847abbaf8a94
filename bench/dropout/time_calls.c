/* Calls several pipelines in turn, in this process, and prints the median milliseconds of each and its ratio to the
 * first.
 *
 *     time_calls ROUNDS PIPELINE...
 *
 * Inputs: x, filled with numbers around 0, and seed and offset, of which a pipeline takes as many as it has. */
#include <aothost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_PIPELINES = 32, MAX_ROUNDS = 1000, ROWS = 4096, COLUMNS = 1024 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void make_inputs(float *x, int64_t *key, aot_tensor_t out[3]) {
  static const int64_t sizes[2] = {ROWS, COLUMNS}, strides[2] = {COLUMNS, 1};
  for (int64_t k = 0; k < ROWS * COLUMNS; k++) x[k] = (float)(k % 1009) / 1009.0f - 0.1f;
  out[0] = (aot_tensor_t){
      .data = x, .nbytes = ROWS * COLUMNS * 4, .dtype = AOT_F32, .rank = 2, .sizes = sizes, .strides = strides};
  for (int k = 0; k < 2; k++) {
    key[k] = 42 + k;
    out[1 + k] = (aot_tensor_t){.data = &key[k], .nbytes = 8, .dtype = AOT_I64};
  }
}

int main(int argc, char **argv) {
  static double times[MAX_PIPELINES][MAX_ROUNDS];
  static aothost_t *hosts[MAX_PIPELINES];
  int64_t key[2];
  aot_tensor_t inputs[3];
  float *x = malloc(sizeof *x * ROWS * COLUMNS);
  int n = argc - 2, rounds = argc > 2 ? atoi(argv[1]) : 0;
  if (n < 1 || n > MAX_PIPELINES || rounds < 1 || rounds > MAX_ROUNDS || !x) return 2;
  make_inputs(x, key, inputs);
  for (int k = 0; k < n; k++) {
    aothost_config_t config = {.struct_size = sizeof config};
    if (aothost_open(argv[2 + k], &config, &hosts[k]) != AOT_OK || aothost_compile(hosts[k], 0) != AOT_OK) {
      fprintf(stderr, "%s: %s\n", argv[2 + k], aothost_messages(hosts[k]));
      return 1;
    }
  }
  for (int round = -3; round < rounds; round++) /* three to warm up */
    for (int k = 0; k < n; k++) {
      double start = now();
      if (aothost_forward_in_place(hosts[k], inputs, aothost_n_inputs(hosts[k])) != AOT_OK) return 1;
      if (round >= 0) times[k][round] = now() - start;
    }
  for (int k = 0; k < n; k++) {
    const char *slash = strrchr(argv[2 + k], '/'), *name = slash ? slash + 1 : argv[2 + k];
    qsort(times[k], (size_t)rounds, sizeof times[k][0], by_value);
    printf("| %.*s | %.3f | %.2f | %.2f |\n", (int)strcspn(name, "."), name, times[k][rounds / 2], times[k][0],
           times[k][rounds / 2] / times[0][rounds / 2]);
    aothost_close(hosts[k]);
  }
  free(x);
  return 0;
}
