#include "sparse_product.h"

#include "half_kernels.h"
#include "kit/base/half.h"
#include "simd_dispatch.h"
#include <string.h>

enum {
  ZEROS = 32, /* elements for each one that is not zero */
  SAMPLES = 16,
  PIECE = 32, /* elements that are looked at together */
  TILE = 512, /* columns of the result that are summed together */
};
static const double least_terms = 4e6;

typedef struct element {
  int32_t next, column; /* of its row; next: -1 after the last */
  float value;
} element_t;

typedef struct lists {
  int32_t *first, *last; /* of each row; first: -1 where there is none */
  element_t *elements;
} lists_t;

static int64_t most_elements(const bc_product_t *p) { return p->a.rows * p->a.columns / ZEROS; }

static lists_t lists_in(const bc_product_t *p, void *work) {
  int32_t *const first = work;
  return (lists_t){first, first + p->a.rows, (element_t *)(void *)(first + 2 * p->a.rows)};
}

uint64_t bc_sparse_work(const bc_product_t *p) {
  const double n_terms = (double)p->c.rows * (double)p->c.columns * (double)p->a.columns;
  if (p->rank > 0 || n_terms < least_terms || p->b.transposed || p->c.transposed || most_elements(p) > INT32_MAX)
    return 0;
  if (p->dtype != AOT_F32 && p->dtype != AOT_BF16) return 0;
  return (uint64_t)p->a.rows * 2 * sizeof(int32_t) + (uint64_t)most_elements(p) * sizeof(element_t);
}

/* ---- looking ---- */

/* Of bits: a zero has no magnitude, what is not finite has all bits of the exponent. */
typedef uint32_t __attribute__((may_alias)) float_bits_t;

#define LOOK(name, bits_t, magnitude, exponent)                                                                        \
  BC_WIDE static int64_t zeros_##name(const bits_t *x, int64_t n) { /* at the beginning, in whole pieces */            \
    int64_t i = 0;                                                                                                     \
    for (; i + PIECE <= n; i += PIECE) {                                                                               \
      bits_t found = 0;                                                                                                \
      for (int k = 0; k < PIECE; k++) found |= x[i + k];                                                               \
      if (found & (magnitude)) break;                                                                                  \
    }                                                                                                                  \
    return i;                                                                                                          \
  }                                                                                                                    \
  BC_WIDE static int finite_##name(const bits_t *x, int64_t n) {                                                       \
    bits_t found = 0;                                                                                                  \
    for (int64_t i = 0; i < n; i++) found |= (x[i] & (exponent)) == (exponent);                                        \
    return !found;                                                                                                     \
  }
LOOK(f32, float_bits_t, 0x7fffffff, 0x7f800000)
LOOK(bf16, uint16_t, 0x7fff, 0x7f80)

static float load(int32_t dtype, const char *x, int64_t at) {
  if (dtype == AOT_F32) return ((const float *)(const void *)x)[at];
  return kit_bf16_to_f32(((const uint16_t *)(const void *)x)[at]);
}

/* Lines are rows, or columns where they are what lies together. */
static int64_t n_lines(const bc_matrix_t *m) { return m->transposed ? m->columns : m->rows; }
static int64_t line_size(const bc_matrix_t *m) { return m->transposed ? m->rows : m->columns; }

/* Of a few pieces, spread over lines and along them. */
static int looks_sparse(const bc_product_t *p, const char *a) {
  const int64_t size = line_size(&p->a), piece = size < PIECE ? size : PIECE;
  int64_t found = 0;
  for (int64_t s = 0; s < SAMPLES; s++) {
    const int64_t line = s * n_lines(&p->a) / SAMPLES, from = s * (size - piece) / SAMPLES;
    for (int64_t i = 0; i < piece; i++) found += load(p->dtype, a, line * p->a.ld + from + i) != 0;
    if (found > SAMPLES * piece / 8) return 0;
  }
  return 1;
}

static int is_finite(const bc_product_t *p, const void *b) {
  for (int64_t i = 0; i < p->b.rows; i++)
    if (!(p->dtype == AOT_F32 ? finite_f32((const float_bits_t *)b + i * p->b.ld, p->b.columns)
                              : finite_bf16((const uint16_t *)b + i * p->b.ld, p->b.columns)))
      return 0;
  return 1;
}

static int64_t zeros(const bc_product_t *p, const char *a, int64_t at, int64_t n) {
  return p->dtype == AOT_F32 ? zeros_f32((const float_bits_t *)(const void *)a + at, n)
                             : zeros_bf16((const uint16_t *)(const void *)a + at, n);
}

static void append(const lists_t *l, int32_t row, int32_t at) {
  if (l->first[row] < 0) l->first[row] = at;
  else l->elements[l->last[row]].next = at;
  l->last[row] = at;
}

int bc_sparse_find(const bc_product_t *p, const void *a, const void *b, void *work) {
  const lists_t l = lists_in(p, work);
  const int64_t size = line_size(&p->a), most = most_elements(p);
  int64_t n = 0;
  if (!looks_sparse(p, a)) return 0;
  memset(l.first, -1, (size_t)p->a.rows * sizeof *l.first);
  for (int64_t line = 0; line < n_lines(&p->a); line++)
    for (int64_t i = 0; i < size; i++) {
      if (i % PIECE == 0) i += zeros(p, a, line * p->a.ld + i, size - i);
      const float value = i < size ? load(p->dtype, a, line * p->a.ld + i) : 0;
      if (value == 0) continue;
      if (n == most) return 0;
      l.elements[n] = (element_t){-1, (int32_t)(p->a.transposed ? line : i), value};
      append(&l, (int32_t)(p->a.transposed ? i : line), (int32_t)n++);
    }
  return is_finite(p, b);
}

/* ---- summing ---- */

BC_WIDE static void add_f32(const float *restrict x, int64_t n, float factor, float *restrict sum) {
  for (int64_t i = 0; i < n; i++) sum[i] += factor * x[i];
}

BC_WIDE static void scale(float *restrict sum, int64_t n, float alpha, const float *restrict before, float beta) {
  for (int64_t i = 0; i < n; i++) sum[i] *= alpha;
  for (int64_t i = 0; i < n && before; i++) sum[i] += beta * before[i];
}

void bc_sparse_rows(const bc_product_t *p, void *work, const void *b, void *c, int64_t begin, int64_t end) {
  const lists_t l = lists_in(p, work);
  const float alpha = (float)p->alpha, beta = (float)p->beta;
  float sum[TILE], other[TILE];
  for (int64_t row = begin; row < end; row++)
    for (int64_t from = 0; from < p->c.columns; from += TILE) {
      const int64_t n = p->c.columns - from < TILE ? p->c.columns - from : TILE, to = row * p->c.ld + from;
      memset(sum, 0, (size_t)n * sizeof *sum);
      for (int32_t at = l.first[row]; at >= 0; at = l.elements[at].next) {
        const int64_t source = l.elements[at].column * p->b.ld + from;
        if (p->dtype == AOT_F32) {
          add_f32((const float *)b + source, n, l.elements[at].value, sum);
          continue;
        }
        bc_convert_to_f32(p->dtype, (const uint16_t *)b + source, n, other);
        add_f32(other, n, l.elements[at].value, sum);
      }
      if (p->dtype == AOT_F32) {
        float *result = (float *)c + to;
        scale(sum, n, alpha, beta != 0 ? result : NULL, beta);
        memcpy(result, sum, (size_t)n * sizeof *sum);
        continue;
      }
      if (beta != 0) bc_convert_to_f32(p->dtype, (const uint16_t *)c + to, n, other);
      scale(sum, n, alpha, beta != 0 ? other : NULL, beta);
      bc_narrow(p->dtype, sum, n, (uint16_t *)c + to);
    }
}
