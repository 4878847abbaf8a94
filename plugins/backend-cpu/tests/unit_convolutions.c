/* Convolutions by oneDNN in all directions, dtypes and layouts, against sums in double. */
#include "naive_conv.h"

#include "half_kernels.h"
#include "onednn_kernels.h"
#include <aot/base.h>
#include <stdlib.h>
#include <string.h>

enum { X, W, B, Y, N_OPERANDS, RANK = 2 + BC_CONV_RANK, MOST = 16384 };

typedef struct data {
  double in[N_OPERANDS][MOST], sum[N_OPERANDS][MOST], size[N_OPERANDS][MOST]; /* size: of the terms, without signs */
  float memory[N_OPERANDS][MOST];                                             /* or halves */
} data_t;

static void add_term(data_t *d, int operand, int64_t at, double term) {
  d->sum[operand][at] += term;
  d->size[operand][at] += fabs(term);
}

static void products(int64_t y, int64_t x, int64_t w, void *self) {
  data_t *d = self;
  add_term(d, Y, y, d->in[X][x] * d->in[W][w]);
  add_term(d, X, x, d->in[Y][y] * d->in[W][w]);
  add_term(d, W, w, d->in[Y][y] * d->in[X][x]);
}

/* Element number i of an array of these sizes that lies with these strides. */
static int64_t place(const int64_t sizes[RANK], const int64_t strides[RANK], int64_t i) {
  int64_t at = 0;
  for (int k = RANK - 1; k >= 0; i /= sizes[k], k--) at += i % sizes[k] * strides[k];
  return at;
}

static void set_strides(const int64_t sizes[RANK], int channels_last, int64_t out[RANK]) {
  static const int order[2][RANK] = {{4, 3, 2, 1, 0}, {1, 4, 3, 2, 0}};
  int64_t next = 1;
  for (int k = 0; k < RANK; k++) {
    out[order[channels_last][k]] = next;
    next *= sizes[order[channels_last][k]];
  }
}

static void store(int32_t dtype, float *memory, int64_t at, double value) {
  const float f = (float)value;
  if (dtype == AOT_F32) memory[at] = f;
  else bc_narrow(dtype, &f, 1, (uint16_t *)(void *)memory + at);
}

static double load(int32_t dtype, const float *memory, int64_t at) {
  float f = memory[at];
  if (dtype != AOT_F32) bc_convert_to_f32(dtype, (const uint16_t *)(const void *)memory + at, 1, &f);
  return (double)f;
}

static void check(bc_conv_t c, int32_t dtype, int channels_last, int *n_kernels) {
  data_t *d = calloc(1, sizeof *d);
  find_output_size(&c);
  const int64_t sizes[N_OPERANDS][RANK] = {{c.n_batch, c.c_in, c.in[0], c.in[1], c.in[2]},
                                           {c.c_out, c.c_in / c.groups, c.kernel[0], c.kernel[1], c.kernel[2]},
                                           {1, c.c_out, 1, 1, 1},
                                           {c.n_batch, c.c_out, c.out[0], c.out[1], c.out[2]}};
  bc_dnn_conv_t conv = {.conv = c, .dtype = dtype, .has_bias = 1};
  int64_t strides[N_OPERANDS][RANK], n[N_OPERANDS];
  for (int o = 0; o < N_OPERANDS; o++) {
    float wide[MOST];
    n[o] = 1;
    for (int k = 0; k < RANK; k++) n[o] *= sizes[o][k];
    assert_true(n[o] <= MOST);
    naive_random(wide, n[o], (uint32_t)o + 1);
    for (int64_t i = 0; i < n[o]; i++) {
      store(AOT_BF16, d->memory[o], i, (double)wide[i]);
      d->in[o][i] = load(AOT_BF16, d->memory[o], i);
    }
    set_strides(sizes[o], channels_last, strides[o]);
  }
  memcpy(conv.x_strides, strides[X], sizeof conv.x_strides);
  memcpy(conv.w_strides, strides[W], sizeof conv.w_strides);
  memcpy(conv.y_strides, strides[Y], sizeof conv.y_strides);
  every_product(&c, products, d);
  for (int64_t i = 0; i < n[Y]; i++) add_term(d, Y, i, d->in[B][i / bc_conv_positions(&c) % c.c_out]);
  for (int what = BC_CONV_FORWARD; what <= BC_CONV_WEIGHTS; what++) {
    const int result = what == BC_CONV_FORWARD ? Y : what == BC_CONV_DATA ? X : W;
    bc_dnn_t *kernel = bc_dnn_conv(&conv, what, 2);
    if (!kernel) continue; /* im2col is its fallback */
    ++*n_kernels;
    void *work = aligned_alloc(64, (size_t)bc_dnn_work(kernel) + 64);
    void *const operands[] = {d->memory[X], d->memory[W], d->memory[B], d->memory[Y]};
    memset(work, 0xff, (size_t)bc_dnn_work(kernel)); /* no number */
    for (int o = 0; o < N_OPERANDS; o++)
      for (int64_t i = 0; i < n[o]; i++)
        store(dtype, d->memory[o], place(sizes[o], strides[o], i), o == result ? NAN : d->in[o][i]);
    assert_int_equal(bc_dnn_run(kernel, 1, operands, work), 0);
    for (int64_t i = 0; i < n[result]; i++) {
      const double got = load(dtype, d->memory[result], place(sizes[result], strides[result], i));
      const double exact = d->sum[result][i], half_a_digit = dtype == AOT_BF16 ? 0x1p-8 : 0;
      if (!(fabs(got - exact) <= fabs(exact) * half_a_digit + d->size[result][i] * 0x1p-17))
        fail_msg("direction %d, channels last %d, dtype %d: [%lld] is %.9g, not %.9g", what, channels_last, dtype,
                 (long long)i, got, exact);
    }
    free(work);
    bc_dnn_destroy(kernel);
  }
  free(d);
}

static void every_direction_and_layout(void **state) {
  static const struct {
    int64_t n, groups, c_in, c_out, size, kernel, stride, pad, dilation;
  } squares[] = {
      {2, 1, 16, 32, 9, 3, 1, 1, 1},  {2, 1, 3, 16, 15, 7, 2, 3, 1},  {1, 1, 20, 24, 8, 1, 1, 0, 1},
      {2, 1, 16, 16, 9, 1, 2, 0, 1},  {1, 1, 16, 16, 12, 3, 1, 2, 2}, {2, 16, 16, 16, 9, 3, 1, 1, 1},
      {2, 24, 24, 24, 8, 3, 2, 1, 1}, {1, 4, 16, 32, 7, 3, 1, 1, 1},  {1, 2, 32, 32, 6, 3, 1, 1, 1},
  };
  static const bc_conv_t others[] = {
      {2, 1, 16, 16, .in = {1, 1, 40}, .kernel = {1, 1, 5}, .stride = {1, 1, 2}, .pad = {0, 0, 2},
       .dilation = {1, 1, 1}},
      {2, 1, 16, 32, .in = {4, 6, 5}, .kernel = {3, 3, 3}, .stride = {1, 1, 1}, .pad = {1, 1, 1},
       .dilation = {1, 1, 1}},
      {1, 1, 16, 16, .in = {5, 7, 6}, .kernel = {2, 3, 1}, .stride = {2, 1, 2}, .pad = {1, 0, 0},
       .dilation = {1, 2, 1}},
      {1, 2, 32, 32, .in = {3, 4, 4}, .kernel = {3, 1, 3}, .stride = {1, 1, 1}, .pad = {1, 0, 1},
       .dilation = {1, 1, 1}},
  };
  int n_kernels = 0;
  char about[240];
  (void)state;
  for (int layout = 0; layout < 2; layout++)
    for (int dtype = 0; dtype < 2; dtype++) {
      for (size_t i = 0; i < sizeof squares / sizeof *squares; i++) {
        const int64_t h = squares[i].size, k = squares[i].kernel, s = squares[i].stride, p = squares[i].pad;
        const int64_t d = squares[i].dilation;
        const bc_conv_t c = {squares[i].n,        squares[i].groups, squares[i].c_in,
                             squares[i].c_out,    .in = {1, h, h},   .kernel = {1, k, k},
                             .stride = {1, s, s}, .pad = {0, p, p},  .dilation = {1, d, d}};
        check(c, dtype ? AOT_BF16 : AOT_F32, layout, &n_kernels);
      }
      for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        check(others[i], dtype ? AOT_BF16 : AOT_F32, layout, &n_kernels);
    }
  bc_dnn_describe(about, sizeof about);
  if (strstr(about, "avx512_bf16") && n_kernels < 140) fail_msg("only %d kernels on %s", n_kernels, about);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_direction_and_layout)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
