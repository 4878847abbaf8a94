#include "order_kernels.h"

#include "half_kernels.h"
#include <aot/base.h>
#include <string.h>

/* ---- elements as numbers ---- */

/* A double's bits count up with its magnitude; those of negative ones are turned around. Both zeros are one, and so are
 * all NaN. */
static int64_t key_of_double(double x) {
  int64_t bits;
  if (x != x) return INT64_MAX;
  if (x == 0) return 0;
  memcpy(&bits, &x, sizeof bits);
  return bits >= 0 ? bits : INT64_MIN - bits;
}

static int64_t key_of_half(int32_t dtype, const uint16_t *x) {
  float f;
  bc_convert_to_f32(dtype, x, 1, &f);
  return key_of_double(f);
}

#define KEYS(type, text)                                                                                               \
  for (int64_t i = 0; i < n; i++) {                                                                                    \
    const type *e = (const type *)x + i * stride;                                                                      \
    out[i] = (bc_ranked_t){text, i};                                                                                   \
  }                                                                                                                    \
  break

int bc_rank_line(int32_t dtype, const void *x, int64_t stride, int64_t n, int descending, bc_ranked_t *out) {
  switch (dtype) {
    case AOT_F32: KEYS(float, key_of_double(*e));
    case AOT_F64: KEYS(double, key_of_double(*e));
    case AOT_BF16:
    case AOT_F16: KEYS(uint16_t, key_of_half(dtype, e));
    case AOT_I64: KEYS(int64_t, *e);
    case AOT_I32: KEYS(int32_t, *e);
    case AOT_I16: KEYS(int16_t, *e);
    case AOT_I8: KEYS(int8_t, *e);
    case AOT_BOOL:
    case AOT_U8: KEYS(uint8_t, *e);
    default: return 0;
  }
  for (int64_t i = 0; descending && i < n; i++) out[i].key = ~out[i].key;
  return 1;
}

/* ---- sorting ---- */

enum { RUN = 16 };

/* By insertion, where few are out of place or there are few. */
static void sort_run(bc_ranked_t *x, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const bc_ranked_t one = x[i];
    int64_t at = i;
    for (; at > 0 && x[at - 1].key > one.key; at--) x[at] = x[at - 1];
    x[at] = one;
  }
}

static void merge(const bc_ranked_t *a, int64_t n_a, const bc_ranked_t *b, int64_t n_b, bc_ranked_t *out) {
  int64_t i = 0, j = 0;
  while (i < n_a && j < n_b) *out++ = b[j].key < a[i].key ? b[j++] : a[i++];
  memcpy(out, a + i, (size_t)(n_a - i) * sizeof *a);
  memcpy(out + (n_a - i), b + j, (size_t)(n_b - j) * sizeof *b);
}

void bc_sort_line(bc_ranked_t *x, int64_t n, bc_ranked_t *spare) {
  bc_ranked_t *from = x, *to = spare;
  for (int64_t i = 0; i < n; i += RUN) sort_run(x + i, n - i < RUN ? n - i : RUN);
  for (int64_t width = RUN; width < n; width *= 2) {
    for (int64_t i = 0; i < n; i += 2 * width) {
      const int64_t n_a = n - i < width ? n - i : width, n_b = n - i - n_a < width ? n - i - n_a : width;
      merge(from + i, n_a, from + i + n_a, n_b, to + i);
    }
    bc_ranked_t *was = from;
    from = to;
    to = was;
  }
  if (from != x) memcpy(x, from, (size_t)n * sizeof *x);
}

void bc_first_of_line(bc_ranked_t *x, int64_t n, int64_t k) {
  if (k == 0) return;
  sort_run(x, k);
  for (int64_t i = k; i < n; i++) {
    const bc_ranked_t one = x[i];
    int64_t at = k;
    if (one.key >= x[k - 1].key) continue;
    for (; at > 0 && x[at - 1].key > one.key; at--)
      if (at < k) x[at] = x[at - 1];
    x[at] = one;
  }
}
