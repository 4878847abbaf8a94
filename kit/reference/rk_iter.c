/* Walking several strided tensors in step, and dense copies of one.
 *
 * An iteration space is a list of sizes; a tensor joins it with its strides right-aligned and 0 where it is broadcast.
 * The last dimension is handed out as a run, the others advance like an odometer: no recursion, no index division. */
#include "rk_core.h"
#include <aot/inline.h>
#include <string.h>

void rk_iter_init(rk_iter_t *it, int32_t rank, const int64_t *sizes) {
  memset(it, 0, sizeof *it);
  it->rank = rank;
  it->more = 1;
  it->run = rank ? sizes[rank - 1] : 1;
  for (int32_t d = 0; d < rank; d++) {
    it->sizes[d] = sizes[d];
    if (sizes[d] == 0) it->more = 0;
  }
}

int rk_iter_add(rk_iter_t *it, const rk_tensor_t *t) {
  int32_t k = it->n_tensors, lead = it->rank - t->rank;
  if (k == RK_ITER_MAX || lead < 0) return 0;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->sizes[d] == it->sizes[lead + d]) it->strides[k][lead + d] = t->strides[d];
    else if (t->sizes[d] == 1) it->strides[k][lead + d] = 0;
    else return 0;
  }
  it->at[k] = t->offset;
  it->step[k] = it->rank ? it->strides[k][it->rank - 1] : 0;
  it->n_tensors++;
  return 1;
}

void rk_iter_over(rk_iter_t *it, const rk_tensor_t *t) {
  rk_iter_init(it, t->rank, t->sizes);
  rk_iter_add(it, t);
}

void rk_iter_next(rk_iter_t *it) {
  for (int32_t d = it->rank - 2; d >= 0; d--) {
    it->index[d]++;
    for (int32_t k = 0; k < it->n_tensors; k++) it->at[k] += it->strides[k][d];
    if (it->index[d] < it->sizes[d]) return;
    for (int32_t k = 0; k < it->n_tensors; k++) it->at[k] -= it->strides[k][d] * it->sizes[d];
    it->index[d] = 0;
  }
  it->more = 0;
}

aot_status_t rk_gather(rk_ctx_t *c, const rk_tensor_t *self, rk_index_map_t map, const void *data) {
  rk_tensor_t *r = rk_result(c, 0);
  rk_iter_t it;
  rk_iter_over(&it, r);
  for (; it.more; rk_iter_next(&it))
    for (int64_t k = 0; k < it.run; k++) {
      int64_t from[AOT_MAX_RANK];
      rk_tensor_t one = *r, src = *self;
      if (r->rank) it.index[r->rank - 1] = k;
      if (map(data, self, it.index, from)) {
        one.rank = src.rank = 0;
        one.offset = it.at[0] + k * it.step[0];
        for (int32_t d = 0; d < self->rank; d++) src.offset += from[d] * self->strides[d];
        rk_copy(&one, &src);
      }
      if (r->rank) it.index[r->rank - 1] = 0;
    }
  return AOT_OK;
}

static aot_status_t array_alloc(rk_ctx_t *c, int32_t rank, const int64_t *sizes, int is_float, rk_array_t *out) {
  memset(out, 0, sizeof *out);
  out->rank = rank;
  out->numel = 1;
  for (int32_t d = 0; d < rank; d++) {
    out->sizes[d] = sizes[d];
    RK_CHECK(c, sizes[d] >= 0 && !__builtin_mul_overflow(out->numel, sizes[d], &out->numel), "a size is too large");
  }
  if (is_float) RK_SCRATCH(c, out->numel, out->f);
  else RK_SCRATCH(c, out->numel, out->i);
  return AOT_OK;
}

aot_status_t rk_new_f(rk_ctx_t *c, int32_t rank, const int64_t *sizes, rk_array_t *out) {
  return array_alloc(c, rank, sizes, 1, out);
}

aot_status_t rk_new_i(rk_ctx_t *c, int32_t rank, const int64_t *sizes, rk_array_t *out) {
  return array_alloc(c, rank, sizes, 0, out);
}

static aot_status_t dense(rk_ctx_t *c, const rk_tensor_t *t, int is_float, rk_array_t *out) {
  rk_iter_t it;
  int64_t n = 0;
  if (!t) {
    memset(out, 0, sizeof *out);
    return AOT_OK;
  }
  AOT_TRY(array_alloc(c, t->rank, t->sizes, is_float, out));
  out->dtype = t->dtype;
  rk_iter_over(&it, t);
  for (; it.more; rk_iter_next(&it), n += it.run) {
    if (is_float) rk_load_run_f(t, it.at[0], it.step[0], it.run, out->f + n);
    else rk_load_run_i(t, it.at[0], it.step[0], it.run, out->i + n);
  }
  return AOT_OK;
}

aot_status_t rk_dense_f(rk_ctx_t *c, const rk_tensor_t *t, rk_array_t *out) { return dense(c, t, 1, out); }
aot_status_t rk_dense_i(rk_ctx_t *c, const rk_tensor_t *t, rk_array_t *out) { return dense(c, t, 0, out); }

aot_status_t rk_get_f(rk_ctx_t *c, uint32_t arg, rk_array_t *out) {
  const rk_tensor_t *t;
  AOT_TRY(rk_tensor_of(c, arg, &t));
  return dense(c, t, 1, out);
}

aot_status_t rk_get_i(rk_ctx_t *c, uint32_t arg, rk_array_t *out) {
  const rk_tensor_t *t;
  AOT_TRY(rk_tensor_of(c, arg, &t));
  return dense(c, t, 0, out);
}

aot_status_t rk_need_cast_i(rk_ctx_t *c, uint32_t arg, int32_t dtype, rk_array_t *out) {
  const rk_tensor_t *t;
  rk_iter_t it;
  int64_t n = 0;
  AOT_TRY(rk_need_tensor(c, arg, &t));
  AOT_TRY(array_alloc(c, t->rank, t->sizes, 0, out));
  out->dtype = dtype;
  rk_iter_over(&it, t);
  for (; it.more; rk_iter_next(&it), n += it.run) rk_load_run_i_as(t, it.at[0], it.step[0], it.run, dtype, out->i + n);
  return AOT_OK;
}

aot_status_t rk_need_f(rk_ctx_t *c, uint32_t arg, rk_array_t *out) {
  const rk_tensor_t *t;
  AOT_TRY(rk_need_tensor(c, arg, &t));
  return dense(c, t, 1, out);
}

aot_status_t rk_need_i(rk_ctx_t *c, uint32_t arg, rk_array_t *out) {
  const rk_tensor_t *t;
  AOT_TRY(rk_need_tensor(c, arg, &t));
  return dense(c, t, 0, out);
}

int rk_same_sizes(const rk_array_t *a, const rk_array_t *b) {
  return a->rank == b->rank && (a->rank == 0 || memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0);
}

static aot_status_t put(rk_ctx_t *c, uint32_t result, const rk_array_t *a, int is_float) {
  rk_tensor_t *t;
  rk_iter_t it;
  int64_t n = 0;
  if (!rk_wants(c, result)) return AOT_OK;
  AOT_TRY(rk_check_result(c, result, a->rank, a->sizes));
  t = rk_result(c, result);
  rk_iter_over(&it, t);
  for (; it.more; rk_iter_next(&it), n += it.run) {
    if (is_float) rk_store_run_f(t, it.at[0], it.step[0], it.run, a->f + n);
    else rk_store_run_i(t, it.at[0], it.step[0], it.run, a->i + n);
  }
  return AOT_OK;
}

aot_status_t rk_put_f(rk_ctx_t *c, uint32_t result, const rk_array_t *a) { return put(c, result, a, 1); }
aot_status_t rk_put_i(rk_ctx_t *c, uint32_t result, const rk_array_t *a) { return put(c, result, a, 0); }

/* One part after the other. A complex number is true when either part is not 0, and any other real number is its
 * real part. */
static void copy_complex(void *dst, int32_t to, const void *src, int32_t from) {
  const int32_t half = aot_dtype_part(from), part = aot_dtype_part(to);
  const double imaginary = rk_load_f((const char *)src + aot_dtype_size(half), half);
  if (to == AOT_BOOL) rk_store_i(dst, to, rk_load_f(src, half) != 0 || imaginary != 0);
  else rk_store_f(dst, to, rk_load_f(src, half));
  if (aot_dtype_is_complex(to)) rk_store_f((char *)dst + aot_dtype_size(part), part, imaginary);
}

/* Same dtype: bytes. Otherwise through int64 when both are integers, through double when not; an integer becoming a
 * float rounds once (rk_store_i). */
static void copy_element(void *dst, int32_t to, const void *src, int32_t from) {
  if (to == from) memcpy(dst, src, (size_t)aot_dtype_size(to));
  else if (aot_dtype_is_complex(from)) copy_complex(dst, to, src, from);
  else if (rk_is_int(from) && from != AOT_U64) rk_store_i(dst, to, rk_load_i(src, from));
  else rk_store_f(dst, to, rk_load_f(src, from));
}

void rk_copy(rk_tensor_t *dst, const rk_tensor_t *src) {
  int64_t wd = (int64_t)aot_dtype_size(dst->dtype), ws = (int64_t)aot_dtype_size(src->dtype), k;
  rk_iter_t it;
  rk_iter_init(&it, dst->rank, dst->sizes);
  if (!rk_iter_add(&it, dst) || !rk_iter_add(&it, src)) return;
  for (; it.more; rk_iter_next(&it)) {
    char *d = (char *)dst->data + it.at[0] * wd;
    const char *s = (const char *)src->data + it.at[1] * ws;
    if (dst->dtype == src->dtype && it.step[0] == 1 && it.step[1] == 1) {
      memmove(d, s, (size_t)(it.run * wd));
      continue;
    }
    for (k = 0; k < it.run; k++) copy_element(d + k * it.step[0] * wd, dst->dtype, s + k * it.step[1] * ws, src->dtype);
  }
}

aot_status_t rk_put_tensor(rk_ctx_t *c, uint32_t result, const rk_tensor_t *t) {
  if (!rk_wants(c, result)) return AOT_OK;
  AOT_TRY(rk_check_result(c, result, t->rank, t->sizes));
  rk_copy(rk_result(c, result), t);
  return AOT_OK;
}

void rk_fill_f(rk_tensor_t *t, double v) {
  rk_iter_t it;
  int64_t w = (int64_t)aot_dtype_size(t->dtype);
  rk_iter_over(&it, t);
  for (; it.more; rk_iter_next(&it))
    for (int64_t k = 0; k < it.run; k++) rk_store_f((char *)t->data + (it.at[0] + k * it.step[0]) * w, t->dtype, v);
}

void rk_fill_i(rk_tensor_t *t, int64_t v) {
  rk_iter_t it;
  int64_t w = (int64_t)aot_dtype_size(t->dtype);
  rk_iter_over(&it, t);
  for (; it.more; rk_iter_next(&it))
    for (int64_t k = 0; k < it.run; k++) rk_store_i((char *)t->data + (it.at[0] + k * it.step[0]) * w, t->dtype, v);
}

void rk_around(const rk_array_t *a, int32_t dim, int64_t *outer, int64_t *size, int64_t *inner) {
  *outer = *inner = 1;
  *size = a->rank ? a->sizes[dim] : 1;
  for (int32_t d = 0; d < a->rank; d++) {
    if (d < dim) *outer *= a->sizes[d];
    else if (d > dim) *inner *= a->sizes[d];
  }
}
