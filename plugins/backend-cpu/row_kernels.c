#include "row_kernels.h"

#include <string.h>

int64_t bc_embedding_backward(const float *go, const int64_t *index, int64_t rows, int64_t n_table, int64_t width,
                              int64_t padding, float *g_table) {
  memset(g_table, 0, (size_t)(n_table * width) * sizeof *g_table);
  for (int64_t r = 0; r < rows; r++) {
    if (index[r] < 0 || index[r] >= n_table) return r;
    if (index[r] == padding) continue;
    float *row = g_table + index[r] * width;
    for (int64_t i = 0; i < width; i++) row[i] += go[r * width + i];
  }
  return -1;
}
