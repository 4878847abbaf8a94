/* Kernels over rows of contiguous float32 that loops do not have. */
#ifndef BC_ROW_KERNELS_H
#define BC_ROW_KERNELS_H

#include <stdint.h>

/* g_table (zeroed here) += go[r] at index[r]; rows with index == padding are skipped (padding < 0: none). Returns the
 * first r whose index is out of range, or -1. */
int64_t bc_embedding_backward(const float *go, const int64_t *index, int64_t rows, int64_t n_table, int64_t width,
                              int64_t padding, float *g_table);

#endif
