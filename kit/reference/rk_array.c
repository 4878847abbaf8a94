/* Dense arrays that are double or int64 by their dtype: what operators that move elements are written with. */
#include "rk_core.h"
#include "kit/base/geometry.h"
#include <aot/inline.h>

aot_status_t rk_dense_any(rk_ctx_t *c, const rk_tensor_t *t, rk_array_t *out) {
  return t && rk_is_int(t->dtype) ? rk_dense_i(c, t, out) : rk_dense_f(c, t, out);
}

aot_status_t rk_need_any(rk_ctx_t *c, uint32_t arg, rk_array_t *out) {
  const rk_tensor_t *t;
  AOT_TRY(rk_need_tensor(c, arg, &t));
  return rk_dense_any(c, t, out);
}

aot_status_t rk_new_like(rk_ctx_t *c, const rk_array_t *kind, int32_t rank, const int64_t *sizes, rk_array_t *out) {
  AOT_TRY(kind->f ? rk_new_f(c, rank, sizes, out) : rk_new_i(c, rank, sizes, out));
  out->dtype = kind->dtype;
  return AOT_OK;
}

aot_status_t rk_put_any(rk_ctx_t *c, uint32_t result, const rk_array_t *a) {
  return a->f ? rk_put_f(c, result, a) : rk_put_i(c, result, a);
}

void rk_set_element(rk_array_t *to, int64_t at, const rk_array_t *from, int64_t source) {
  if (to->f) to->f[at] = from->f ? from->f[source] : (double)from->i[source];
  else to->i[at] = from->i ? from->i[source] : rk_int_of(from->f[source], to->dtype);
}

void rk_add_element(rk_array_t *to, int64_t at, const rk_array_t *from, int64_t source, double alpha) {
  if (to->f) to->f[at] += alpha * (from->f ? from->f[source] : (double)from->i[source]);
  else {
    const int64_t v = from->i ? from->i[source] : rk_int_of(from->f[source], to->dtype);
    to->i[at] = (int64_t)((uint64_t)to->i[at] + (uint64_t)aot_float_to_int(alpha) * (uint64_t)v);
  }
}

int rk_advance(int64_t *index, int32_t rank, const int64_t *sizes) {
  return tn_next(rank, sizes, index, 0, NULL, NULL);
}

int64_t rk_flat(const int64_t *index, int32_t rank, const int64_t *sizes) {
  int64_t flat = 0;
  for (int32_t d = 0; d < rank; d++) flat = flat * sizes[d] + index[d];
  return flat;
}

aot_status_t rk_dense_expanded(rk_ctx_t *c, const rk_tensor_t *t, int32_t rank, const int64_t *sizes, rk_array_t *out) {
  rk_tensor_t wide = *t;
  int32_t lead = rank - t->rank;
  RK_CHECK(c, lead >= 0, "rank %d does not broadcast to rank %d", t->rank, rank);
  wide.rank = rank;
  for (int32_t d = 0; d < rank; d++) {
    int64_t have = d < lead ? 1 : t->sizes[d - lead];
    RK_CHECK(c, have == sizes[d] || have == 1, "size %lld does not broadcast to %lld", (long long)have,
             (long long)sizes[d]);
    wide.sizes[d] = sizes[d];
    wide.strides[d] = have == 1 ? 0 : t->strides[d - lead];
  }
  return rk_dense_any(c, &wide, out);
}
