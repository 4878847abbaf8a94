/* Geometry, strided copies and conversions of the tensors that the run time moves. No operator is known here: what is
 * computed is computed by a backend. Everything is linear in the number of elements. */
#include <step/tensor.h>

#include "kit/base/element.h"
#include <aot/inline.h>
#include <string.h>

aot_tensor_t aoth_tensor_view(const aoth_tensor_t *t) {
  aot_tensor_t v = {
      .data = t->data,
      .nbytes = t->nbytes,
      .dtype = t->dtype,
      .rank = t->rank,
      .device = AOT_DEVICE_CPU,
      .memory = t->memory,
      .encoding = {t->encoding},
      .offset = t->offset,
      .sizes = t->sizes,
      .strides = t->strides,
  };
  return v;
}

int aoth_tensor_from(const aot_tensor_t *view, aoth_tensor_t *out) {
  if (view->rank < 0 || view->rank > AOT_MAX_RANK) return 0;
  *out = (aoth_tensor_t){
      .data = view->data,
      .nbytes = view->nbytes,
      .dtype = view->dtype,
      .rank = view->rank,
      .memory = view->memory,
      .encoding = view->encoding.id,
  };
  for (int32_t d = 0; d < view->rank; d++) out->sizes[d] = view->sizes[d];
  if (!view->strides) {
    aoth_tensor_contiguous(out);
  } else {
    for (int32_t d = 0; d < view->rank; d++) out->strides[d] = view->strides[d];
  }
  out->offset = view->offset;
  return 1;
}

aoth_tensor_t aoth_tensor_make(void *data, int32_t dtype, int32_t rank, const int64_t *sizes) {
  aoth_tensor_t t = {.data = data, .dtype = dtype, .rank = rank};
  for (int32_t d = 0; d < rank; d++) t.sizes[d] = sizes[d];
  aoth_tensor_contiguous(&t);
  if (!aoth_tensor_extent(&t, &t.nbytes)) t.nbytes = 0;
  return t;
}

aoth_tensor_t aoth_tensor_scalar(void *data, int32_t dtype) { return aoth_tensor_make(data, dtype, 0, NULL); }

int64_t aoth_tensor_numel(const aoth_tensor_t *t) {
  int64_t n = 1;
  int empty = 0, too_many = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->sizes[d] < 0) return -1;
    if (t->sizes[d] == 0) empty = 1;
    if (!empty && __builtin_mul_overflow(n, t->sizes[d], &n)) too_many = 1;
  }
  if (empty) return 0;
  return too_many ? -1 : n;
}

int aoth_tensor_extent(const aoth_tensor_t *t, uint64_t *out_nbytes) {
  int64_t last = t->offset;
  int64_t size = (int64_t)aot_dtype_size(t->dtype);
  int empty = 0;
  *out_nbytes = 0;
  if (t->offset < 0) return 0;
  for (int32_t d = 0; d < t->rank; d++) {
    int64_t reach;
    if (t->sizes[d] < 0 || t->strides[d] < 0) return 0;
    if (t->sizes[d] == 0) empty = 1;
    if (empty) continue;
    if (__builtin_mul_overflow(t->sizes[d] - 1, t->strides[d], &reach) || __builtin_add_overflow(last, reach, &last))
      return 0;
  }
  if (empty) return 1;
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, size, &last) || last >= AOT_DIM_SYM)
    return 0;
  *out_nbytes = (uint64_t)last;
  return 1;
}

/* From the innermost dimension on, each stride must pass over all that is inside. */
int aoth_strides_overlap(int32_t rank, const int64_t *sizes, const int64_t *strides) {
  int64_t reach = 1;
  uint32_t seen = 0;
  for (int32_t k = 0; k < rank; k++) {
    int32_t next = -1;
    int64_t step;
    for (int32_t d = 0; d < rank; d++) {
      if (sizes[d] == 0) return 0;
      if (!(seen >> d & 1) && sizes[d] > 1 && (next < 0 || strides[d] < strides[next])) next = d;
    }
    if (next < 0) return 0;
    seen |= 1u << next;
    if (strides[next] < reach) return 1;
    if (__builtin_mul_overflow(sizes[next] - 1, strides[next], &step) || __builtin_add_overflow(reach, step, &reach))
      return 1;
  }
  return 0;
}

void aoth_tensor_contiguous(aoth_tensor_t *t) {
  int64_t stride = 1;
  for (int32_t d = t->rank; d-- > 0;) {
    t->strides[d] = stride;
    if (t->sizes[d] > 1 && __builtin_mul_overflow(stride, t->sizes[d], &stride)) stride = INT64_MAX;
  }
  t->offset = 0;
}

int aoth_tensor_is_contiguous(const aoth_tensor_t *t) {
  int64_t stride = 1;
  for (int32_t d = t->rank; d-- > 0;) {
    if (t->sizes[d] == 0) return 1;
    if (t->sizes[d] != 1 && t->strides[d] != stride) return 0;
    stride *= t->sizes[d];
  }
  return 1;
}

int aoth_tensor_same_sizes(const aoth_tensor_t *a, const aoth_tensor_t *b) {
  if (a->rank != b->rank) return 0;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d]) return 0;
  return 1;
}

/* ---- walking ---- */

static char *first_byte(const aoth_tensor_t *t) {
  return t->data ? (char *)t->data + t->offset * (int64_t)aot_dtype_size(t->dtype) : NULL;
}

void aoth_walk_begin(aoth_walk_t *w, const aoth_tensor_t *a, const aoth_tensor_t *b) {
  memset(w, 0, sizeof *w);
  w->n = b ? 2 : 1;
  w->t[0] = a;
  w->t[1] = b;
  w->left = aoth_tensor_numel(a);
  if (w->left <= 0) {
    w->left = 0;
    return;
  }
  for (uint32_t k = 0; k < w->n; k++) w->at[k] = first_byte(w->t[k]);
}

void aoth_walk_next(aoth_walk_t *w) {
  const aoth_tensor_t *a = w->t[0];
  if (--w->left == 0) return;
  for (int32_t d = a->rank; d-- > 0;) {
    int carry = ++w->index[d] == a->sizes[d];
    for (uint32_t k = 0; k < w->n; k++) {
      int64_t size = (int64_t)aot_dtype_size(w->t[k]->dtype);
      w->at[k] += (carry ? -(a->sizes[d] - 1) : 1) * w->t[k]->strides[d] * size;
    }
    if (!carry) return;
    w->index[d] = 0;
  }
}

void aoth_tensor_copy(const aoth_tensor_t *to, const aoth_tensor_t *from) {
  size_t size = (size_t)aot_dtype_size(to->dtype);
  int64_t n = aoth_tensor_numel(to);
  if (n <= 0) return;
  if (aoth_tensor_is_contiguous(to) && aoth_tensor_is_contiguous(from)) {
    memmove(first_byte(to), first_byte(from), (size_t)n * size);
    return;
  }
  aoth_walk_t w;
  for (aoth_walk_begin(&w, to, from); w.left > 0; aoth_walk_next(&w)) memmove(w.at[0], w.at[1], size);
}

void aoth_tensor_fill(const aoth_tensor_t *t, double number) {
  aoth_walk_t w;
  for (aoth_walk_begin(&w, t, NULL); w.left > 0; aoth_walk_next(&w)) kit_element_store(t->dtype, w.at[0], number);
}

void aoth_tensor_print_shape(const aoth_tensor_t *t, kit_text_t *out) {
  kit_text_z(out, t->dtype ? aot_dtype_name(t->dtype) : "none");
  kit_text_z(out, "[");
  for (int32_t d = 0; d < t->rank; d++) kit_text_f(out, "%s%lld", d ? ", " : "", (long long)t->sizes[d]);
  kit_text_z(out, "]");
}
