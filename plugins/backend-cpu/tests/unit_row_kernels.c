/* Row kernels against their definitions in double; backwards against central differences. */
#include "naive.h"

#include "row_kernels.h"
#include <string.h>

enum { R = 3, N = 21 };

/* d <f(x), go> / dx[i] for every i, f from n_in to n_out numbers */
typedef void (*function_t)(const double *x, double *y);
static void differences(function_t f, const float *x, int64_t n_in, const float *go, int64_t n_out, double *out) {
  static double at[4 * R * N], y[4 * R * N];
  for (int64_t i = 0; i < n_in; i++) at[i] = x[i];
  for (int64_t i = 0; i < n_in; i++) {
    double was = at[i];
    out[i] = 0;
    for (int side = -1; side <= 1; side += 2) {
      at[i] = was + side * 1e-5;
      f(at, y);
      for (int64_t k = 0; k < n_out; k++) out[i] += side * y[k] * go[k] / 2e-5;
    }
    at[i] = was;
  }
}

/* in: x [R][N], w [N], b [N] */
static void layer_norm(const double *in, double *y) {
  const double *w = in + R * N, *b = w + N;
  for (int r = 0; r < R; r++) {
    double mean = 0, var = 0;
    for (int i = 0; i < N; i++) mean += in[r * N + i] / N;
    for (int i = 0; i < N; i++) var += (in[r * N + i] - mean) * (in[r * N + i] - mean) / N;
    for (int i = 0; i < N; i++) y[r * N + i] = (in[r * N + i] - mean) / sqrt(var + 1e-5) * w[i] + b[i];
  }
}

static void layer_norm_s_gradients(void **state) {
  float in[R * N + 2 * N], go[R * N], gi[R * N], gw[N], gb[N], again[R * N], mean[R], rstd[R];
  double expected[R * N + 2 * N];
  (void)state;
  naive_random(in, R * N + 2 * N, 1);
  naive_random(go, R * N, 2);
  differences(layer_norm, in, R * N + 2 * N, go, R * N, expected);
  bc_layer_norm_backward(go, in, in + R * N, NULL, NULL, R, N, 1e-5, gi, gw, gb); /* statistics are found again */
  assert_close(gi, expected, R * N);
  assert_close(gw, expected + R * N, N);
  assert_close(gb, expected + R * N + N, N);
  for (int r = 0; r < R; r++) {
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) sum += in[r * N + i];
    for (int i = 0; i < N; i++) squares += (in[r * N + i] - sum / N) * (in[r * N + i] - sum / N);
    mean[r] = (float)(sum / N);
    rstd[r] = (float)(1 / sqrt(squares / N + 1e-5));
  }
  bc_layer_norm_backward(go, in, in + R * N, mean, rstd, R, N, 1e-5, again, NULL, NULL);
  assert_close(again, expected, R * N);
}

static void softmax(const double *x, double *y) {
  for (int r = 0; r < R; r++) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += exp(x[r * N + i]);
    for (int i = 0; i < N; i++) y[r * N + i] = exp(x[r * N + i]) / sum;
  }
}
static void log_softmax(const double *x, double *y) {
  softmax(x, y);
  for (int i = 0; i < R * N; i++) y[i] = log(y[i]);
}

static const int64_t targets[R] = {4, -100, 20};
static void cross_entropy(const double *x, double *loss) {
  double y[R * N];
  log_softmax(x, y);
  loss[0] = -(y[targets[0]] + y[2 * N + targets[2]]) / 2; /* row 1 is ignored */
}

static void cross_entropy_and_its_gradient(void **state) {
  float x[R * N], loss, go = 1.5f, gi[R * N];
  double wide[R * N], expected[R * N];
  (void)state;
  naive_random(x, R * N, 6);
  for (int i = 0; i < R * N; i++) wide[i] = x[i];
  cross_entropy(wide, expected);
  assert_int_equal(bc_cross_entropy(x, targets, R, N, 1, -100, &loss), -1);
  assert_close(&loss, expected, 1);
  assert_int_equal(bc_cross_entropy(x, targets, R, N, 2, -100, &loss), -1);
  assert_true(fabs(loss - 2 * expected[0]) < 1e-4);
  differences(cross_entropy, x, R * N, &go, 1, expected);
  bc_cross_entropy_backward(go, x, targets, R, N, 1, -100, gi);
  assert_close(gi, expected, R * N);
}

static void cross_entropy_names_the_row_of_a_bad_target(void **state) {
  float x[2 * N] = {0}, loss;
  const int64_t bad[2] = {0, N};
  (void)state;
  assert_int_equal(bc_cross_entropy(x, bad, 2, N, 1, -100, &loss), 1);
}

static void an_embedding_s_gradient(void **state) {
  float go[5 * 3], g[4 * 3], expected[4 * 3] = {0};
  const int64_t index[5] = {3, 0, 3, 1, 1}, bad[2] = {0, 4};
  (void)state;
  naive_random(go, 15, 8);
  for (int r = 0; r < 5; r++)
    for (int i = 0; index[r] != 1 && i < 3; i++) expected[3 * index[r] + i] += go[3 * r + i];
  assert_int_equal(bc_embedding_backward(go, index, 5, 4, 3, 1, g), -1); /* 1 is the padding */
  assert_close(g, expected, 12);
  assert_int_equal(bc_embedding_backward(go, bad, 2, 4, 3, 1, g), 1);
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layer_norm_s_gradients),  
      cmocka_unit_test(cross_entropy_and_its_gradient),
      cmocka_unit_test(cross_entropy_names_the_row_of_a_bad_target), cmocka_unit_test(an_embedding_s_gradient)};
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
