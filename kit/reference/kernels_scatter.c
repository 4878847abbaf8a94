/* Writing by index, out of place: scatter and its reductions, index_put, index_add and its kin, one_hot, embedding's
 * backward. Additions are accumulated in double (int64 for integers) and rounded once, so that their order does not
 * matter. */
#include "rk_indexing.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

#define PUT_SET 0
#define PUT_ADD 1
#define PUT_MULTIPLY 2
#define PUT_MEAN 3
#define PUT_MAX 4
#define PUT_MIN 5
#define PUT_ADD_ROUND 6 /* every addition is rounded to the dtype: what PyTorch's index_put, put and 1-d index_add do */

static void at_least_1d(rk_array_t *a) {
  if (a->rank) return;
  a->rank = 1;
  a->sizes[0] = 1;
}

static double value(const rk_array_t *a, int64_t k) { return a->f ? a->f[k] : (double)a->i[k]; }
static int64_t whole(const rk_array_t *a, int64_t k, int32_t dtype) {
  return a->i ? a->i[k] : rk_int_of(a->f[k], dtype);
}

/* One write. counts: how many values an element has used, NULL when nothing queries. */
static void write(rk_array_t *y, int64_t at, const rk_array_t *src, int64_t from, int how) {
  if (how == PUT_ADD_ROUND) {
    rk_add_element(y, at, src, from, 1);
    if (y->f) y->f[at] = rk_round_to(y->f[at], y->dtype);
    return;
  }
  if (how == PUT_SET) rk_set_element(y, at, src, from);
  else if (how == PUT_ADD || how == PUT_MEAN) rk_add_element(y, at, src, from, 1);
  else if (how == PUT_MULTIPLY && y->f) y->f[at] *= value(src, from);
  else if (how == PUT_MULTIPLY) y->i[at] = (int64_t)((uint64_t)y->i[at] * (uint64_t)whole(src, from, y->dtype));
  else if (y->f) {
    double a = y->f[at], b = value(src, from);
    y->f[at] = a != a || b != b ? NAN : how == PUT_MAX ? fmax(a, b) : fmin(a, b);
  } else {
    const int64_t a = y->i[at], b = whole(src, from, y->dtype);
    y->i[at] = (how == PUT_MAX) == (b > a) ? b : a;
  }
}

static int reduction_of(const rk_ctx_t *c, uint32_t arg) {
  if (rk_str_is(c, arg, "sum") || rk_str_is(c, arg, "add")) return PUT_ADD;
  if (rk_str_is(c, arg, "prod") || rk_str_is(c, arg, "multiply")) return PUT_MULTIPLY;
  if (rk_str_is(c, arg, "mean")) return PUT_MEAN;
  if (rk_str_is(c, arg, "amax")) return PUT_MAX;
  if (rk_str_is(c, arg, "amin")) return PUT_MIN;
  return -1;
}

/* Without include_self the first value replaces what was there; the mean divides by the number of values. Integer sums
 * have wrapped by then. */
static void finish_mean(rk_array_t *y, const int64_t *counts, int include_self) {
  for (int64_t e = 0; e < y->numel; e++) {
    int64_t n = counts[e] + (include_self != 0);
    if (!counts[e] || n == 0) continue;
    if (y->f) y->f[e] /= (double)n;
    else {
      const int64_t sum = rk_wrap_to(y->i[e], y->dtype);
      y->i[e] = sum / n - (sum % n != 0 && sum < 0);
    }
  }
}

/* scatter forms (self, dim, index, src or value, ..) */
static aot_status_t scatter_how(rk_ctx_t *c, int how, int include_self) {
  rk_array_t y, index, src;
  int64_t at[AOT_MAX_RANK] = {0}, to[AOT_MAX_RANK], *counts;
  int32_t dim, rank;
  int is_number;
  RK_CHECK(c, how >= 0, "the reduction is not known");
  AOT_TRY(rk_need_any(c, 0, &y));
  AOT_TRY(rk_need_i(c, 2, &index));
  AOT_TRY(rk_need_any(c, 3, &src));
  is_number = c->call->args[3].kind != AOT_ARG_VALUE;
  rank = y.rank;
  at_least_1d(&y);
  at_least_1d(&index);
  at_least_1d(&src);
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), y.rank, &dim));
  RK_SCRATCH(c, y.numel, counts);
  RK_CHECK(c, index.numel == 0 || (index.rank == y.rank && (is_number || src.rank == y.rank)),
           "index or source has another rank than self");
  for (int32_t d = 0; d < y.rank && index.numel; d++)
    RK_CHECK(c, (d == dim || index.sizes[d] <= y.sizes[d]) && (is_number || index.sizes[d] <= src.sizes[d]),
             "index size %lld exceeds self or source at dimension %d", (long long)index.sizes[d], d);
  for (int64_t e = 0; e < index.numel; e++, rk_advance(at, index.rank, index.sizes)) {
    int64_t place, from = is_number ? 0 : rk_flat(at, src.rank, src.sizes);
    memcpy(to, at, sizeof to);
    AOT_TRY(rk_check_index(c, index.i[e], y.sizes[dim], dim, 0, &to[dim]));
    place = rk_flat(to, y.rank, y.sizes);
    write(&y, place, &src, from, !include_self && counts[place] == 0 ? PUT_SET : how);
    counts[place]++;
  }
  if (how == PUT_MEAN) finish_mean(&y, counts, include_self);
  y.rank = rank;
  return rk_put_any(c, 0, &y);
}
static aot_status_t scatter(rk_ctx_t *c) { return scatter_how(c, PUT_SET, 1); }
static aot_status_t scatter_add(rk_ctx_t *c) { return scatter_how(c, PUT_ADD, 1); }
static aot_status_t scatter_reduce_legacy(rk_ctx_t *c) { return scatter_how(c, reduction_of(c, 4), 1); }
static aot_status_t scatter_reduce(rk_ctx_t *c) { return scatter_how(c, reduction_of(c, 4), rk_bool(c, 5, 1)); }

/* index_add(self, dim, index, source, alpha), index_copy, index_reduce, index_fill: whole rows along dim */
static aot_status_t rows_how(rk_ctx_t *c, int how, int include_self, double alpha) {
  rk_array_t y, index, src;
  int64_t outer, size, inner, *counts;
  int32_t dim, rank;
  int is_number;
  RK_CHECK(c, how >= 0, "the reduction is not known");
  AOT_TRY(rk_need_any(c, 0, &y));
  AOT_TRY(rk_need_i(c, 2, &index));
  AOT_TRY(rk_need_any(c, 3, &src));
  rank = y.rank;
  at_least_1d(&y);
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), y.rank, &dim));
  rk_around(&y, dim, &outer, &size, &inner);
  is_number = src.numel == 1 && src.rank == 0;
  RK_CHECK(c, index.rank <= 1 && (is_number || src.numel == outer * index.numel * inner),
           "the source has %lld elements for %lld rows", (long long)src.numel, (long long)index.numel);
  RK_SCRATCH(c, y.numel, counts);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < index.numel; k++) {
      int64_t row;
      AOT_TRY(rk_check_index(c, index.i[k], size, dim, 1, &row));
      for (int64_t i = 0; i < inner; i++) {
        int64_t at = (o * size + row) * inner + i, from = is_number ? 0 : (o * index.numel + k) * inner + i;
        if (alpha != 1) rk_add_element(&y, at, &src, from, alpha);
        else write(&y, at, &src, from, !include_self && counts[at] == 0 ? PUT_SET : how);
        counts[at]++;
      }
    }
  if (how == PUT_MEAN) finish_mean(&y, counts, include_self);
  y.rank = rank;
  return rk_put_any(c, 0, &y);
}
static aot_status_t index_add(rk_ctx_t *c) {
  const rk_tensor_t *self;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  return rows_how(c, self->rank <= 1 ? PUT_ADD_ROUND : PUT_ADD, 1, rk_float(c, 4, 1));
}
static aot_status_t index_copy(rk_ctx_t *c) { return rows_how(c, PUT_SET, 1, 1); }
static aot_status_t index_reduce(rk_ctx_t *c) { return rows_how(c, reduction_of(c, 4), rk_bool(c, 5, 1), 1); }

/* index_put(self, indices, values, accumulate) */
static aot_status_t index_put(rk_ctx_t *c) {
  const rk_tensor_t *values;
  rk_array_t y, v;
  rk_places_t p;
  int accumulate = rk_bool(c, 3, 0);
  AOT_TRY(rk_need_any(c, 0, &y));
  AOT_TRY(rk_need_tensor(c, 2, &values));
  AOT_TRY(rk_places_of(c, &y, 1, 0, &p));
  AOT_TRY(rk_dense_expanded(c, values, p.rank, p.sizes, &v));
  for (int64_t e = 0; e < p.numel; e++) write(&y, p.at[e], &v, e, accumulate ? PUT_ADD_ROUND : PUT_SET);
  return rk_put_any(c, 0, &y);
}

/* _unsafe_masked_index_put_accumulate(self, mask, indices, values) */
static aot_status_t masked_index_put(rk_ctx_t *c) {
  const rk_tensor_t *values, *mask;
  rk_array_t y, v, m;
  rk_places_t p;
  AOT_TRY(rk_need_any(c, 0, &y));
  AOT_TRY(rk_need_tensor(c, 1, &mask));
  AOT_TRY(rk_need_tensor(c, 3, &values));
  if (y.numel == 0) return rk_put_any(c, 0, &y);
  AOT_TRY(rk_places_of(c, &y, 2, 1, &p));
  AOT_TRY(rk_dense_expanded(c, values, p.rank, p.sizes, &v));
  AOT_TRY(rk_dense_expanded(c, mask, p.rank, p.sizes, &m));
  for (int64_t e = 0; e < p.numel; e++)
    if (value(&m, e) != 0) write(&y, p.at[e], &v, e, PUT_ADD_ROUND);
  return rk_put_any(c, 0, &y);
}

/* put(self, index, source, accumulate): self is flat */
static aot_status_t put(rk_ctx_t *c) {
  rk_array_t y, index, src;
  AOT_TRY(rk_need_any(c, 0, &y));
  AOT_TRY(rk_need_i(c, 1, &index));
  AOT_TRY(rk_need_any(c, 2, &src));
  RK_CHECK(c, index.numel == src.numel, "%lld values for %lld places", (long long)src.numel, (long long)index.numel);
  for (int64_t e = 0; e < index.numel; e++) {
    int64_t at;
    AOT_TRY(rk_check_index(c, index.i[e], y.numel, 0, 1, &at));
    write(&y, at, &src, e, rk_bool(c, 3, 0) ? PUT_ADD_ROUND : PUT_SET);
  }
  return rk_put_any(c, 0, &y);
}

/* masked_scatter(self, mask, source): source elements in order where the mask is on */
static aot_status_t masked_scatter(rk_ctx_t *c) {
  const rk_tensor_t *self, *mask, *r = rk_result(c, 0);
  rk_array_t y, m, src;
  int64_t n = 0;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_need_tensor(c, 1, &mask));
  AOT_TRY(rk_need_any(c, 2, &src));
  AOT_TRY(rk_dense_expanded(c, self, r->rank, r->sizes, &y));
  AOT_TRY(rk_dense_expanded(c, mask, r->rank, r->sizes, &m));
  for (int64_t e = 0; e < y.numel; e++) {
    if (value(&m, e) == 0) continue;
    RK_CHECK(c, n < src.numel, "the source has only %lld elements", (long long)src.numel);
    rk_set_element(&y, e, &src, n++);
  }
  return rk_put_any(c, 0, &y);
}

/* embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq) */
static aot_status_t embedding_dense_backward(rk_ctx_t *c) {
  rk_array_t g, index, y;
  int64_t sizes[2] = {rk_int(c, 2, 0), 1}, padding = rk_int(c, 3, -1), *counts, width;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_i(c, 1, &index));
  RK_CHECK(c, g.rank >= 1, "the gradient is 0-dim");
  width = sizes[1] = g.sizes[g.rank - 1];
  RK_CHECK(c, g.numel == index.numel * width, "the gradient does not fit the indices");
  AOT_TRY(rk_new_f(c, 2, sizes, &y));
  RK_SCRATCH(c, sizes[0], counts);
  for (int64_t k = 0; k < index.numel; k++) {
    int64_t row;
    AOT_TRY(rk_check_index(c, index.i[k], sizes[0], 0, 0, &row));
    counts[row]++;
    for (int64_t i = 0; row != padding && i < width; i++) y.f[row * width + i] += g.f[k * width + i];
  }
  if (rk_bool(c, 4, 0))
    for (int64_t e = 0; e < y.numel; e++)
      if (counts[e / width] > 1) y.f[e] /= (double)counts[e / width];
  return rk_put_f(c, 0, &y);
}

/* one_hot(self, num_classes) */
static aot_status_t one_hot(rk_ctx_t *c) {
  rk_array_t x, y;
  rk_tensor_t *r = rk_result(c, 0);
  int64_t sizes[AOT_MAX_RANK], classes = rk_int(c, 1, -1);
  AOT_TRY(rk_need_i(c, 0, &x));
  RK_CHECK(c, x.rank < AOT_MAX_RANK && r->rank == x.rank + 1, "the declared result does not fit");
  if (classes < 0) classes = r->sizes[x.rank];
  memcpy(sizes, x.sizes, sizeof sizes);
  sizes[x.rank] = classes;
  AOT_TRY(rk_new_i(c, x.rank + 1, sizes, &y));
  for (int64_t k = 0; k < x.numel; k++) {
    RK_CHECK(c, x.i[k] >= 0 && x.i[k] < classes, "class %lld is out of range for %lld classes", (long long)x.i[k],
             (long long)classes);
    y.i[k * classes + x.i[k]] = 1;
  }
  return rk_put_i(c, 0, &y);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("scatter.src", scatter),
    ROW("scatter.value", scatter),
    ROW("scatter_add.default", scatter_add),
    ROW("scatter.reduce", scatter_reduce_legacy),
    ROW("scatter.value_reduce", scatter_reduce_legacy),
    ROW("scatter_reduce.two", scatter_reduce),
    ROW("index_add.default", index_add),
    ROW("index_copy.default", index_copy),
    ROW("index_fill.int_Scalar", index_copy),
    ROW("index_fill.int_Tensor", index_copy),
    ROW("index_reduce.default", index_reduce),
    ROW("index_put.default", index_put),
    ROW("_unsafe_index_put.default", index_put),
    ROW("_unsafe_masked_index_put_accumulate.default", masked_index_put),
    ROW("put.default", put),
    ROW("masked_scatter.default", masked_scatter),
    ROW("one_hot.default", one_hot),
    ROW("embedding_dense_backward.default", embedding_dense_backward),
};
const rk_family_t rk_family_scatter = RK_FAMILY(rows);
