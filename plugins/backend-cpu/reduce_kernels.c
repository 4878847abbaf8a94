#include "reduce_kernels.h"

enum { LANES = 8, BLOCK = 64, COLUMNS = 256 };

static float sum_row(const float *x, int64_t n, float scale) {
  double lane[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) lane[k] += x[i + k];
  for (; i < n; i++) lane[0] += x[i];
  return (float)(scale * (((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]))));
}

/* A strip of columns: rows are added in float, a block at a time, blocks in double. */
static void sum_columns(const float *x, int64_t n, int64_t stride, int64_t width, float scale, float *y) {
  double total[COLUMNS] = {0};
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    float part[COLUMNS] = {0};
    int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
    for (int64_t k = begin; k < end; k++)
      for (int64_t i = 0; i < width; i++) part[i] += x[k * stride + i];
    for (int64_t i = 0; i < width; i++) total[i] += part[i];
  }
  for (int64_t i = 0; i < width; i++) y[i] = (float)(scale * total[i]);
}

void bc_sum_middle(const float *x, int64_t outer, int64_t n, int64_t inner, float scale, float *y) {
  for (int64_t o = 0; o < outer; o++, x += n * inner, y += inner) {
    if (inner == 1) {
      *y = sum_row(x, n, scale);
      continue;
    }
    for (int64_t i = 0; i < inner; i += COLUMNS)
      sum_columns(x + i, n, inner, inner - i < COLUMNS ? inner - i : COLUMNS, scale, y + i);
  }
}
