#include "value_size.h"

#include "kit/base/geometry.h"
#include "kit/graph/snap_expr.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <string.h>

static int64_t dim_at(int64_t dim, const int64_t *dims) {
  const int64_t n = sn_dim(dim, dims);
  return n == SN_NO_VALUE ? 0 : n;
}

nc_shape_t nc_shape(const aot_snapshot_t *s, uint32_t value, const int64_t *dims) {
  const aot_snap_value_t *v = AOT_SNAP_ROWS(s, aot_snap_value_t, values) + value;
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints) + v->dims;
  nc_shape_t t;
  memset(&t, 0, sizeof t);
  if (v->kind != AOT_TYPE_TENSOR) return t;
  AOT_ASSERT(v->rank >= 0 && v->rank <= AOT_MAX_RANK);
  t.rank = v->rank;
  t.width = aot_dtype_size(v->dtype);
  t.numel = 1;
  for (int32_t d = 0; d < v->rank; d++) {
    t.sizes[d] = dim_at(ints[d], dims);
    t.strides[d] = dim_at(ints[v->rank + d], dims);
    if (t.sizes[d] < 0) t.sizes[d] = 0;
    t.numel = t.numel && (uint64_t)t.sizes[d] > NC_MOST / t.numel ? NC_MOST : t.numel * (uint64_t)t.sizes[d];
  }
  AOT_ASSERT(t.numel <= NC_MOST);
  return t;
}

static int is_number(const aot_snapshot_t *s, uint32_t value) {
  const int32_t kind = AOT_SNAP_ROWS(s, aot_snap_value_t, values)[value].kind;
  return kind == AOT_TYPE_SYMINT || kind == AOT_TYPE_SYMBOOL || kind == AOT_TYPE_SYMFLOAT;
}

uint64_t nc_nbytes(const aot_snapshot_t *s, uint32_t value, const int64_t *dims) {
  if (is_number(s, value)) return 8;
  const nc_shape_t t = nc_shape(s, value, dims);
  return t.numel * t.width;
}

uint64_t nc_extent(const aot_snapshot_t *s, uint32_t value, const int64_t *dims) {
  const nc_shape_t t = nc_shape(s, value, dims);
  const int64_t offset = dim_at(AOT_SNAP_ROWS(s, aot_snap_value_t, values)[value].offset, dims);
  int64_t first, last;
  if (is_number(s, value)) return 8;
  if (t.numel == 0) return 0;
  if (!tn_reach(t.rank, t.sizes, t.strides, offset, &first, &last)) return NC_MOST;
  return last < 0 || (uint64_t)last >= NC_MOST ? NC_MOST : ((uint64_t)last + 1) * t.width;
}
