/* view_geometry.c - see view_geometry.h. */
#include "view_geometry.h"

#include <string.h>

at_view_t at_view_of(at_infer_t *c, const char *name) {
  at_view_t v;
  v.base = at_tensor(c, name);
  v.sizes = at_dims(c, AOT_MAX_RANK + 1);
  v.strides = at_dims(c, AOT_MAX_RANK + 1);
  v.rank = v.base.rank;
  v.offset = v.base.offset;
  memcpy(v.sizes, v.base.sizes, (size_t)v.rank * sizeof *v.sizes);
  memcpy(v.strides, v.base.strides, (size_t)v.rank * sizeof *v.strides);
  return v;
}

void at_view_result(at_infer_t *c, const at_view_t *v) {
  at_put_view(c, &v->base, v->sizes, v->strides, v->rank, v->offset);
}

void at_view_drop(at_view_t *v, int32_t dim) {
  int32_t d;
  for (d = dim; d + 1 < v->rank; d++) {
    v->sizes[d] = v->sizes[d + 1];
    v->strides[d] = v->strides[d + 1];
  }
  v->rank--;
}

void at_view_insert(at_view_t *v, int32_t dim, int64_t size, int64_t stride) {
  int32_t d;
  for (d = v->rank; d > dim; d--) {
    v->sizes[d] = v->sizes[d - 1];
    v->strides[d] = v->strides[d - 1];
  }
  v->sizes[dim] = size;
  v->strides[dim] = stride;
  v->rank++;
}
