#include "bag_kernels.h"

#include "simd_dispatch.h"
#include <string.h>

static int64_t bag_end(const bc_bags_t *b, int64_t bag) {
  return bag + 1 < b->n_offsets ? b->offsets[bag + 1] : b->n_index;
}

int64_t bc_bags_check(const bc_bags_t *b) {
  for (int64_t bag = 0; bag < b->n_bags; bag++)
    if (b->offsets[bag] < 0 || b->offsets[bag] > bag_end(b, bag) || bag_end(b, bag) > b->n_index) return -2 - bag;
  if (b->n_bags && b->offsets[0] != 0) return -2;
  for (int64_t k = 0; k < b->n_index; k++)
    if (b->index[k] < 0 || b->index[k] >= b->n_table) return k;
  return -1;
}

BC_INLINE void add_row(float *restrict y, const float *restrict row, int64_t n, float scale) {
  for (int64_t i = 0; i < n; i++) y[i] += scale * row[i];
}

BC_WIDE void bc_bags_sum(const bc_bags_t *b, const float *table, int64_t begin, int64_t end, float *y,
                         int64_t *counts) {
  for (int64_t bag = begin; bag < end; bag++) {
    float *out = y + bag * b->width;
    int64_t count = 0;
    memset(out, 0, (size_t)b->width * sizeof *out);
    for (int64_t k = b->offsets[bag]; k < bag_end(b, bag); k++) {
      if (b->index[k] == b->padding) continue;
      add_row(out, table + b->index[k] * b->width, b->width, b->scale ? b->scale[k] : 1);
      count++;
    }
    for (int64_t i = 0; b->is_mean && count && i < b->width; i++) out[i] /= (float)count;
    if (counts) counts[bag] = count;
  }
}

BC_WIDE void bc_bags_backward(const bc_bags_t *b, const float *g, const int64_t *owner, const int64_t *counts,
                              int64_t begin, int64_t end, float *g_table) {
  for (int64_t r = 0; r < b->n_table; r++)
    memset(g_table + r * b->width + begin, 0, (size_t)(end - begin) * sizeof *g_table);
  for (int64_t k = 0; k < b->n_index; k++) {
    const float scale = b->scale ? b->scale[k] : 1;
    if (b->index[k] == b->padding) continue;
    add_row(g_table + b->index[k] * b->width + begin, g + owner[k] * b->width + begin, end - begin,
            b->is_mean ? scale / (float)counts[owner[k]] : scale);
  }
}
