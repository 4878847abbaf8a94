#include "dense.h"
#include "kit/base/geometry.h"

#include <stdlib.h>

int64_t tv_numel(const aot_tensor_t *t) { return tn_numel(t->rank, t->sizes); }

static void go_on(const aot_tensor_t *t, int64_t *index, int64_t *place) {
  const int64_t *const strides = t->strides;
  tn_next(t->rank, t->sizes, index, 1, &strides, place);
}

static double get(const aot_tensor_t *t, int64_t place) {
  switch (t->dtype) {
    case AOT_F32: return ((const float *)t->data)[place];
    case AOT_F64: return ((const double *)t->data)[place];
    case AOT_I32: return ((const int32_t *)t->data)[place];
    case AOT_I64: return (double)((const int64_t *)t->data)[place];
    default: return ((const uint8_t *)t->data)[place] != 0;
  }
}

static void set(const aot_tensor_t *t, int64_t place, double x) {
  switch (t->dtype) {
    case AOT_F32: ((float *)t->data)[place] = (float)x; break;
    case AOT_F64: ((double *)t->data)[place] = x; break;
    case AOT_I32: ((int32_t *)t->data)[place] = (int32_t)x; break;
    case AOT_I64: ((int64_t *)t->data)[place] = (int64_t)x; break;
    default: ((uint8_t *)t->data)[place] = x != 0; break;
  }
}

static int is_known(int32_t dtype) {
  return dtype == AOT_F32 || dtype == AOT_F64 || dtype == AOT_I32 || dtype == AOT_I64 || dtype == AOT_BOOL;
}

double *tv_read(const aot_tensor_t *t) {
  int64_t index[AOT_MAX_RANK] = {0}, place = t->offset;
  const int64_t n = tv_numel(t);
  double *to = is_known(t->dtype) ? malloc(((size_t)n + 1) * sizeof *to) : NULL;
  for (int64_t i = 0; to && i < n; i++, go_on(t, index, &place)) to[i] = get(t, place);
  return to;
}

void tv_write(const double *from, const aot_tensor_t *t) {
  int64_t index[AOT_MAX_RANK] = {0}, place = t->offset;
  const int64_t n = tv_numel(t);
  for (int64_t i = 0; i < n; i++, go_on(t, index, &place)) set(t, place, from[i]);
}
