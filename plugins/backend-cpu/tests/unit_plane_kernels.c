/* Convolution, batch norm, pooling and sums against plain loops. */
#include "naive_conv.h"

#include "blas.h"
#include "depthwise_kernels.h"
#include "plane_kernels.h"
#include <stdlib.h>
#include <string.h>

/* ---- convolution ---- */

typedef struct conv_data {
  float x[4096], w[4096], b[64], y[4096], gx[4096], gw[4096], gb[64];
  double sy[4096], sx[4096], sw[4096];
} conv_data_t;
static void product(int64_t y, int64_t x, int64_t w, void *self) {
  conv_data_t *d = self;
  d->sy[y] += (double)d->x[x] * d->w[w];
}
static void gradient(int64_t y, int64_t x, int64_t w, void *self) { /* d->y holds the gradient */
  conv_data_t *d = self;
  d->sx[x] += (double)d->y[y] * d->w[w];
  d->sw[w] += (double)d->y[y] * d->x[x];
}

/* Memory of float32 or float64, which holds floats. */
static void *packed(int32_t dtype, const float *x, int64_t n) {
  double *memory = malloc((size_t)n * sizeof *memory);
  for (int64_t i = 0; i < n; i++)
    if (dtype == AOT_F64) memory[i] = (double)x[i];
    else ((float *)(void *)memory)[i] = x[i];
  return memory;
}

/* Frees it. float64 is far nearer. */
static void compare(int32_t dtype, void *memory, const double *expected, int64_t n, const char *what) {
  const double allowed = dtype == AOT_F64 ? 1e-13 : 2e-5;
  for (int64_t i = 0; i < n; i++) {
    const double got = dtype == AOT_F64 ? ((double *)memory)[i] : (double)((float *)memory)[i];
    if (!(fabs(got - expected[i]) <= allowed * (1 + fabs(expected[i]))))
      fail_msg("%s, dtype %d: [%lld] is %.17g, not %.17g", what, dtype, (long long)i, got, expected[i]);
  }
  free(memory);
}

static void check_conv(int32_t dtype, bc_conv_t c) {
  conv_data_t *d = calloc(1, sizeof *d);
  find_output_size(&c);
  const int64_t plane = bc_conv_positions(&c), image = bc_conv_inputs(&c);
  const int64_t ny = c.n_batch * c.c_out * plane, nx = c.n_batch * c.c_in * image;
  const int64_t nw = c.c_out * (c.c_in / c.groups) * bc_conv_window(&c);
  void *work = malloc(bc_conv_work(&c) * sizeof(double));
  assert_true(ny <= 4096 && nx <= 4096 && nw <= 4096);
  naive_random(d->x, nx, 1);
  naive_random(d->w, nw, 2);
  naive_random(d->b, 64, 3);
  void *x = packed(dtype, d->x, nx), *w = packed(dtype, d->w, nw), *b = packed(dtype, d->b, 64);
  void *y = packed(dtype, d->y, ny), *gx = packed(dtype, d->gx, nx), *gw = packed(dtype, d->gw, nw);
  void *gb = packed(dtype, d->gb, 64);
  every_product(&c, product, d);
  for (int64_t i = 0; i < ny; i++) d->sy[i] += (double)d->b[i / plane % c.c_out];
  bc_conv_forward(dtype, &c, x, w, b, y, work);
  compare(dtype, y, d->sy, ny, "forward");
  naive_random(d->y, ny, 4);
  y = packed(dtype, d->y, ny);
  every_product(&c, gradient, d);
  memset(d->sy, 0, sizeof d->sy);
  for (int64_t i = 0; i < ny; i++) d->sy[i / plane % c.c_out] += (double)d->y[i];
  bc_conv_weights(dtype, &c, y, x, gw, work);
  compare(dtype, gw, d->sw, nw, "towards the weights");
  const bc_planes_t planes = {c.n_batch, c.c_out, plane};
  if (dtype == AOT_F64) bc_bias_gradient_f64(planes, y, gb, 0, c.c_out);
  else bc_bias_gradient(planes, y, gb, 0, c.c_out);
  compare(dtype, gb, d->sy, c.c_out, "towards the bias");
  void *transposed = packed(dtype, d->gx, nx); /* the same, with a bias */
  bc_conv_data(dtype, &c, y, w, NULL, gx, work);
  compare(dtype, gx, d->sx, nx, "towards the input");
  bc_conv_data(dtype, &c, y, w, b, transposed, work);
  for (int64_t i = 0; i < nx; i++) d->sx[i] += (double)d->b[i / image % c.c_in];
  compare(dtype, transposed, d->sx, nx, "transposed");
  void *const rest[] = {x, w, b, y, work, d};
  for (size_t k = 0; k < sizeof rest / sizeof *rest; k++) free(rest[k]);
}

static void convolutions(void **state) {
  static const bc_conv_t convs[] = {
      {2, 1, 3, 4, .in = {1, 7, 6}, .kernel = {1, 3, 3}, .stride = {1, 1, 1}, .pad = {0, 1, 1}, .dilation = {1, 1, 1}},
      {2, 1, 3, 4, .in = {1, 7, 6}, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .pad = {0, 0, 0}, .dilation = {1, 1, 1}},
      {2, 2, 4, 6, .in = {1, 9, 8}, .kernel = {1, 3, 2}, .stride = {1, 2, 3}, .pad = {0, 2, 1}, .dilation = {1, 1, 2}},
      {1, 3, 3, 3, .in = {1, 1, 11}, .kernel = {1, 1, 5}, .stride = {1, 1, 2}, .pad = {0, 0, 4}, .dilation = {1, 1, 2}},
      {2, 1, 3, 4, .in = {5, 6, 4}, .kernel = {3, 3, 3}, .stride = {1, 1, 1}, .pad = {1, 1, 1}, .dilation = {1, 1, 1}},
      {1, 2, 4, 6, .in = {6, 5, 7}, .kernel = {2, 3, 2}, .stride = {2, 1, 3}, .pad = {1, 0, 2}, .dilation = {2, 1, 1}},
      {2, 1, 3, 5, .in = {3, 4, 5}, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .pad = {0, 0, 0}, .dilation = {1, 1, 1}},
      {1, 1, 2, 2, .in = {4, 1, 3}, .kernel = {4, 1, 1}, .stride = {1, 1, 2}, .pad = {0, 0, 0}, .dilation = {1, 1, 1}},
  };
  (void)state;
  for (size_t k = 0; k < sizeof convs / sizeof *convs; k++) {
    check_conv(AOT_F32, convs[k]);
    check_conv(AOT_F64, convs[k]);
  }
}

static void put_channels_last(float *x, int64_t n, int64_t channels, int64_t plane) {
  float *copy = malloc((size_t)(n * channels * plane) * sizeof *copy);
  memcpy(copy, x, (size_t)(n * channels * plane) * sizeof *copy);
  for (int64_t i = 0; i < n * channels * plane; i++)
    x[(i / plane / channels * plane + i % plane) * channels + i / plane % channels] = copy[i];
  free(copy);
}

static void check_depthwise(int64_t n, int64_t channels, const int64_t in[2], const int64_t kernel[2], int64_t stride,
                            int64_t pad, int64_t dilation) {
  conv_data_t *d = calloc(1, sizeof *d);
  bc_conv_t c = {.n_batch = n,
                 .groups = channels,
                 .c_in = channels,
                 .c_out = channels,
                 .in = {1, in[0], in[1]},
                 .kernel = {1, kernel[0], kernel[1]},
                 .stride = {1, stride, stride + 1},
                 .pad = {0, pad, pad + 1},
                 .dilation = {1, dilation, 1}};
  find_output_size(&c);
  void *work = malloc(bc_depthwise_work(&c));
  naive_random(d->x, n * channels * in[0] * in[1], 1);
  naive_random(d->y, n * channels * bc_conv_positions(&c), 2);
  every_product(&c, gradient, d);
  bc_depthwise_weights(&c, d->y, d->x, d->gw, 0, 1, work);
  bc_depthwise_weights(&c, d->y, d->x, d->gw, 1, channels, work);
  assert_close(d->gw, d->sw, channels * kernel[0] * kernel[1]);
  free(work);
  work = malloc(bc_depthwise_last_work(&c));
  put_channels_last(d->x, n, channels, in[0] * in[1]);
  put_channels_last(d->y, n, channels, bc_conv_positions(&c));
  memset(work, 0xff, bc_depthwise_last_work(&c)); /* no number */
  memset(d->gw, 0xff, sizeof d->gw);
  bc_depthwise_weights_last(&c, d->y, d->x, d->gw, 0, 1, work);
  bc_depthwise_weights_last(&c, d->y, d->x, d->gw, 1, bc_depthwise_blocks(&c), work);
  assert_close(d->gw, d->sw, channels * kernel[0] * kernel[1]);
  free(work);
  free(d);
}

static void depthwise_convolutions_towards_the_weights(void **state) {
  (void)state;
  for (int64_t stride = 1; stride <= 3; stride++)
    for (int64_t dilation = 1; dilation <= 2; dilation++) {
      check_depthwise(2, 3, (int64_t[]){11, 13}, (int64_t[]){3, 3}, stride, 1, dilation);
      check_depthwise(1, 2, (int64_t[]){14, 9}, (int64_t[]){5, 7}, stride, 2, dilation);
      check_depthwise(2, 2, (int64_t[]){4, 20}, (int64_t[]){1, 9}, stride, 0, dilation);
      check_depthwise(1, 2, (int64_t[]){5, 3}, (int64_t[]){2, 2}, stride, 3, dilation);
      check_depthwise(2, 21, (int64_t[]){6, 5}, (int64_t[]){4, 6}, stride, 1, dilation);
    }
}

/* ---- batch norm ---- */

enum { B = 3, C = 2, P = 5 };

static void batch_norm(const double *x, const double *w, const double *b, double *y) {
  for (int c = 0; c < C; c++) {
    double mean = 0, var = 0;
    for (int i = 0; i < B * C * P; i++) mean += i / P % C == c ? x[i] / (B * P) : 0;
    for (int i = 0; i < B * C * P; i++) var += i / P % C == c ? (x[i] - mean) * (x[i] - mean) / (B * P) : 0;
    for (int i = 0; i < B * C * P; i++)
      if (i / P % C == c) y[i] = (x[i] - mean) / sqrt(var + 1e-5) * w[c] + b[c];
  }
}

static void batch_norm_and_its_gradients(void **state) {
  enum { N = B * C * P };
  float x[N], w[C], b[C], rm[C] = {0.5f, 1}, rv[C] = {2, 3}, y[N], mean[C], rstd[C], nm[C], nv[C], go[N], gx[N], gw[C],
                          gb[C];
  double wx[N], ww[C], wb[C], expected[N], out[N];
  bc_planes_t s = {B, C, P};
  bc_batch_norm_t a = {x, w, b, rm, rv, 0.1, 1e-5, y, mean, rstd, nm, nv};
  (void)state;
  naive_random(x, N, 1), naive_random(w, C, 2), naive_random(b, C, 3), naive_random(go, N, 4);
  for (int i = 0; i < N; i++) wx[i] = x[i];
  for (int c = 0; c < C; c++) ww[c] = w[c], wb[c] = b[c];
  batch_norm(wx, ww, wb, expected);
  bc_batch_norm_train(s, &a, 0, 1);
  bc_batch_norm_train(s, &a, 1, C);
  assert_close(y, expected, N);
  for (int c = 0; c < C; c++) {
    double var = 1 / ((double)rstd[c] * rstd[c]) - 1e-5, unbiased = var * B * P / (B * P - 1);
    assert_true(fabs(nm[c] - (0.9 * rm[c] + 0.1 * mean[c])) < 1e-5 &&
                fabs(nv[c] - (0.9 * rv[c] + 0.1 * unbiased)) < 1e-5);
  }
  const bc_batch_norm_gradient_t g = {go, x, w, mean, rstd, gx, gw, gb};
  bc_batch_norm_backward(s, &g, 0, C);
  for (int i = 0; i < N; i++) {
    expected[i] = 0;
    for (int side = -1; side <= 1; side += 2) {
      wx[i] = x[i] + side * 1e-5;
      batch_norm(wx, ww, wb, out);
      for (int k = 0; k < N; k++) expected[i] += side * out[k] * go[k] / 2e-5;
    }
    wx[i] = x[i];
  }
  assert_close(gx, expected, N);
  batch_norm(wx, (double[]){1, 1}, (double[]){0, 0}, out);
  for (int c = 0; c < C; c++) {
    double sum = 0, slope = 0;
    for (int i = 0; i < N; i++) sum += i / P % C == c ? go[i] : 0, slope += i / P % C == c ? go[i] * out[i] : 0;
    assert_close(&gb[c], &sum, 1);
    assert_close(&gw[c], &slope, 1);
  }
}

/* ---- pooling ---- */

static void max_pool_finds_the_first_maximum(void **state) {
  const float x[16] = {1, 5, 2, 2, 5, 0, 2, 9, 0, 0, -3, -1, 0, 0, -2, -4}, go[4] = {1, 2, 3, 4};
  const bc_pool2d_t p = {.in = {4, 4}, .out = {2, 2}, .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}};
  const float expected[4] = {5, 9, 0, -1};
  const int64_t places[4] = {1, 7, 8, 11};
  float y[4], gx[16], again[16], gradient_of[16] = {0};
  int64_t index[4];
  (void)state;
  bc_max_pool(1, &p, x, y, index);
  assert_close(y, expected, 4);
  for (int k = 0; k < 4; k++) {
    assert_int_equal(index[k], places[k]);
    gradient_of[places[k]] = go[k];
  }
  bc_max_pool_backward(1, &p, go, x, index, gx);
  bc_max_pool_backward(1, &p, go, x, NULL, again);
  assert_close(gx, gradient_of, 16);
  assert_close(again, gradient_of, 16);
}

static void max_pool_windows_may_overlap_and_leave_the_plane(void **state) {
  const float x[2 * 3] = {1, 2, 3, 9, 8, 7}, go[2 * 2] = {1, 10, 100, 1000}, expected[4] = {1, 3, 9, 9},
                    gradient_of[6] = {1, 0, 10, 1100, 0, 0};
  const bc_pool2d_t p = {
      .in = {1, 3}, .out = {1, 2}, .kernel = {1, 3}, .stride = {1, 2}, .pad = {0, 2}, .dilation = {1, 1}};
  float y[4], gx[6];
  (void)state;
  bc_max_pool(2, &p, x, y, NULL);
  assert_close(y, expected, 4);
  bc_max_pool_backward(2, &p, go, x, NULL, gx);
  assert_close(gx, gradient_of, 6);
}

/* Planes wider than what the kernel goes through at a time, against a search of every window. */
static void max_pool_of_wide_planes(void **state) {
  enum { H = 9, W = 203, MOST = H * W };
  const bc_pool2d_t p = {
      .in = {H, W}, .out = {5, 102}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .dilation = {1, 1}};
  float x[MOST], y[5 * 102];
  int64_t index[5 * 102];
  (void)state;
  naive_random(x, MOST, 1);
  for (int i = 0; i < MOST; i++) x[i] = floorf(x[i] * 2); /* many are equal */
  x[3 * W + 100] = NAN;
  bc_max_pool(1, &p, x, y, index);
  for (int h = 0; h < 5; h++)
    for (int w = 0; w < 102; w++) {
      int64_t best = -1;
      for (int i = 2 * h - 1; i <= 2 * h + 1; i++)
        for (int j = 2 * w - 1; j <= 2 * w + 1; j++)
          if (i >= 0 && i < H && j >= 0 && j < W && (best < 0 || x[i * W + j] > x[best] || isnan(x[i * W + j])))
            best = i * W + j;
      assert_int_equal(index[h * 102 + w], best);
      assert_true(y[h * 102 + w] == x[best] || isnan(x[best]));
    }
}

static void averages_and_their_gradients(void **state) {
  const bc_window_t lines[2] = {{0, 2, 3}, {1, 3, 2}}, columns[2] = {{0, 4, 4}, {2, 3, 1}};
  const float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, gy[4] = {12, 3, 8, 2};
  const float means[4] = {3, 10.0f / 3, 8.5f, 9}, fixed[4] = {18, 5, 34, 9};
  const float gradient[12] = {1, 1, 2, 1, 2, 2, 4, 2, 1, 1, 2, 1};
  bc_average_t p = {.in = {3, 4}, .out = {2, 2}, .windows = {lines, columns}};
  float y[4], gx[12];
  (void)state;
  bc_average_pool(1, &p, x, y);
  assert_close(y, means, 4);
  bc_average_pool_backward(1, &p, gy, gx);
  assert_close(gx, gradient, 12);
  p.divisor = 2;
  bc_average_pool(1, &p, x, y);
  assert_close(y, fixed, 4);
}

/* ---- products ---- */

/* Every way in which a and b may lie: each plain or transposed. */
static void products_of_transposed_matrices(void **state) {
  enum { M = 3, N = 4, K = 5, BATCH = 2 };
  float a[BATCH * M * K], b[BATCH * K * N], c[BATCH * M * N];
  double expected[BATCH * M * N];
  (void)state;
  naive_random(a, BATCH * M * K, 1);
  naive_random(b, BATCH * K * N, 2);
  for (int form = 0; form < 4; form++) {
    int ta = form & 1, tb = form >> 1;
    bc_product_t p = {.dtype = AOT_F32,
                      .rank = 1,
                      .alpha = 2,
                      .beta = -1,
                      .sizes = {BATCH},
                      .a_strides = {M * K},
                      .b_strides = {K * N},
                      .c_strides = {M * N}};
    assert_true(bc_matrix(M, K, ta ? 1 : K, ta ? M : 1, &p.a));
    assert_true(bc_matrix(K, N, tb ? 1 : N, tb ? K : 1, &p.b));
    assert_true(bc_matrix(M, N, N, 1, &p.c));
    naive_random(c, BATCH * M * N, 3);
    for (int q = 0; q < BATCH; q++)
      for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
          int at = q * M * N + i * N + j;
          expected[at] = -c[at];
          for (int k = 0; k < K; k++)
            expected[at] +=
                2.0 * a[q * M * K + (ta ? k * M + i : i * K + k)] * b[q * K * N + (tb ? j * K + k : k * N + j)];
        }
    bc_product(&p, a, b, c);
    assert_close(c, expected, BATCH * M * N);
  }
}

static void strides_that_no_blas_takes_are_refused(void **state) {
  bc_matrix_t m;
  (void)state;
  assert_false(bc_matrix(3, 4, 8, 2, &m)); /* every other column */
  assert_false(bc_matrix(3, 4, 0, 1, &m)); /* a broadcast row */
  assert_true(bc_matrix(1, 4, 0, 1, &m));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions),
                                     cmocka_unit_test(depthwise_convolutions_towards_the_weights),
                                     cmocka_unit_test(batch_norm_and_its_gradients),
                                     cmocka_unit_test(max_pool_finds_the_first_maximum),
                                     cmocka_unit_test(max_pool_windows_may_overlap_and_leave_the_plane),
                                     cmocka_unit_test(max_pool_of_wide_planes),
                                     cmocka_unit_test(averages_and_their_gradients),
                                     cmocka_unit_test(products_of_transposed_matrices),
                                     cmocka_unit_test(strides_that_no_blas_takes_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
