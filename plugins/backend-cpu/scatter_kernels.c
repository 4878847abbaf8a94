#include "scatter_kernels.h"

#include "half_kernels.h"
#include <aot/inline.h>
#include <string.h>

static int varies(const bc_scatter_t *s, int32_t d) {
  for (int32_t k = 0; k < s->n_indices; k++)
    if (s->index[k].strides[d] != 0) return 1;
  return 0;
}

static void set_dimension(bc_scatter_t *to, int32_t at, const bc_scatter_t *from, int32_t d) {
  to->sizes[at] = from->sizes[d];
  to->to_strides[at] = from->to_strides[d];
  to->from_strides[at] = from->from_strides[d];
  for (int32_t k = 0; k < from->n_indices; k++) to->index[k].strides[at] = from->index[k].strides[d];
}

/* Slice `d` after the last one, or with it as one. */
static void add_slice(bc_scatter_t *to, const bc_scatter_t *from, int32_t d) {
  const int32_t last = to->rank - 1;
  if (to->rank > to->n_outer && to->to_strides[last] == from->to_strides[d] * from->sizes[d] &&
      to->from_strides[last] == from->from_strides[d] * from->sizes[d]) {
    to->sizes[last] *= from->sizes[d];
    to->to_strides[last] = from->to_strides[d];
    to->from_strides[last] = from->from_strides[d];
  } else {
    set_dimension(to, to->rank++, from, d);
  }
}

void bc_scatter_arrange(bc_scatter_t *s) {
  const bc_scatter_t from = *s;
  s->rank = s->n_outer = 0;
  for (int32_t d = 0; d < from.rank; d++)
    if (from.sizes[d] != 1 && varies(&from, d)) set_dimension(s, s->n_outer++, &from, d);
  s->rank = s->n_outer;
  for (int32_t d = 0; d < from.rank; d++)
    if (from.sizes[d] != 1 && !varies(&from, d)) add_slice(s, &from, d);
}

int64_t bc_scatter_slice(const bc_scatter_t *s) { return s->rank > s->n_outer ? s->sizes[s->rank - 1] : 1; }

/* ---- rows: n elements ---- */

#define ADD(type)                                                                                                      \
  for (int64_t i = 0; i < n; i++)                                                                                      \
  ((type *)to)[at + i * ts] = (type)(((type *)to)[at + i * ts] + ((const type *)from)[of + i * fs])
#define SET(type)                                                                                                      \
  for (int64_t i = 0; i < n; i++) ((type *)to)[at + i * ts] = ((const type *)from)[of + i * fs]

/* Rounded after each sum, as PyTorch has them. */
static void add_half(int32_t dtype, uint16_t *to, const uint16_t *from) {
  float a, b;
  bc_convert_to_f32(dtype, to, 1, &a);
  bc_convert_to_f32(dtype, from, 1, &b);
  a += b;
  bc_narrow(dtype, &a, 1, to);
}

static void add_row(int32_t dtype, void *to, int64_t at, int64_t ts, const void *from, int64_t of, int64_t fs,
                    int64_t n) {
  switch (dtype) {
    case AOT_F32: ADD(float); break;
    case AOT_F64: ADD(double); break;
    case AOT_I64: ADD(uint64_t); break; /* wraps around */
    case AOT_I32: ADD(uint32_t); break;
    default:
      for (int64_t i = 0; i < n; i++)
        add_half(dtype, (uint16_t *)to + at + i * ts, (const uint16_t *)from + of + i * fs);
      break;
  }
}

static void set_row(int32_t dtype, void *to, int64_t at, int64_t ts, const void *from, int64_t of, int64_t fs,
                    int64_t n) {
  switch (aot_dtype_size(dtype)) {
    case 1: SET(uint8_t); break;
    case 2: SET(uint16_t); break;
    case 4: SET(uint32_t); break;
    default: SET(uint64_t); break;
  }
}

/* ---- the loop ---- */

typedef struct index_iterator { /* offsets of the position in some of the dimensions */
  int64_t index[AOT_MAX_RANK], to, from, by[BC_SCATTER_INDICES];
} index_iterator_t;

/* To the next position of dimensions [first, end); 0: that was the last. */
static int step(const bc_scatter_t *s, index_iterator_t *w, int32_t first, int32_t end) {
  for (int32_t d = end - 1; d >= first; d--) {
    const int64_t move = ++w->index[d] < s->sizes[d] ? 1 : 1 - s->sizes[d];
    w->to += move * s->to_strides[d];
    w->from += move * s->from_strides[d];
    for (int32_t k = 0; k < s->n_indices; k++) w->by[k] += move * s->index[k].strides[d];
    if (move == 1) return 1;
    w->index[d] = 0;
  }
  return 0;
}

enum { BAD = -1, SKIPPED = -2 };

/* Where the indices at the position point to. */
static int64_t pointed(const bc_scatter_t *s, const index_iterator_t *w, bc_bad_index_t *wrong) {
  int64_t at = 0;
  for (int32_t k = 0; k < s->n_indices; k++) {
    const bc_scatter_index_t *x = &s->index[k];
    int64_t i = x->dtype == AOT_I64 ? ((const int64_t *)x->data)[w->by[k]] : ((const int32_t *)x->data)[w->by[k]];
    const int64_t found = i;
    if (s->wraps && i < 0) i += x->size;
    if (i < 0 || i >= x->size) {
      *wrong = (bc_bad_index_t){found, x->size};
      return BAD;
    }
    if (s->skipped && i == s->skipped - 1) return SKIPPED;
    at += i * x->step;
  }
  return at;
}

static void write_slices(const bc_scatter_t *s, const void *from, int64_t of, void *to, int64_t at, int64_t begin,
                         int64_t end) {
  const int32_t last = s->rank - 1, has_slices = s->rank > s->n_outer;
  const int64_t ts = has_slices ? s->to_strides[last] : 0, fs = has_slices ? s->from_strides[last] : 0;
  index_iterator_t w;
  memset(&w, 0, sizeof w);
  do
    (s->adds ? add_row : set_row)(s->dtype, to, at + w.to + begin * ts, ts, from, of + w.from + begin * fs, fs,
                                  end - begin);
  while (has_slices && step(s, &w, s->n_outer, last));
}

int bc_scatter(const bc_scatter_t *s, const void *from, void *to, int64_t begin, int64_t end, bc_bad_index_t *wrong) {
  index_iterator_t w;
  memset(&w, 0, sizeof w);
  for (int32_t d = 0; d < s->rank; d++)
    if (s->sizes[d] == 0) return 1;
  do {
    const int64_t at = pointed(s, &w, wrong);
    if (at == BAD) return 0;
    if (at != SKIPPED) write_slices(s, from, w.from, to, w.to + at, begin, end);
  } while (step(s, &w, 0, s->n_outer));
  return 1;
}
