/* Distances between vectors, and small products that no other family owns: cdist, pdist, dist, renorm, cross,
 * trilinear, grouped matrix products, and the two predicates over whole tensors, equal and allclose. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* The p-norm of the difference of two vectors. */
static double distance(const double *a, const double *b, int64_t n, double p) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) {
    double d = fabs(a[k] - b[k]);
    if (d != d) return NAN;
    if (p == 0) sum += d != 0;
    else if (isinf(p)) sum = fmax(sum, d);
    else sum += p == 2 ? d * d : p == 1 ? d : pow(d, p);
  }
  if (p == 0 || p == 1 || isinf(p)) return sum;
  return p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

/* x1 [.., P, M], x2 [.., R, M] -> [.., P, R]; batch dimensions broadcast */
static aot_status_t cdist_of(rk_ctx_t *c, double p) {
  const rk_tensor_t *ta, *tb;
  rk_array_t a, b, y;
  int64_t sizes[AOT_MAX_RANK], wide[AOT_MAX_RANK], batches = 1, m, np, nr;
  int32_t rank;
  AOT_TRY(rk_need_tensor(c, 0, &ta));
  AOT_TRY(rk_need_tensor(c, 1, &tb));
  RK_CHECK(c, ta->rank >= 2 && tb->rank >= 2, "ranks %d and %d are less than 2", ta->rank, tb->rank);
  rank = ta->rank > tb->rank ? ta->rank : tb->rank;
  for (int32_t d = 0; d < rank - 2; d++) {
    int64_t sa = d < rank - ta->rank ? 1 : ta->sizes[d - (rank - ta->rank)],
            sb = d < rank - tb->rank ? 1 : tb->sizes[d - (rank - tb->rank)];
    batches *= sizes[d] = sa == 1 ? sb : sa;
  }
  np = ta->sizes[ta->rank - 2];
  nr = tb->sizes[tb->rank - 2];
  m = ta->sizes[ta->rank - 1];
  RK_CHECK(c, tb->sizes[tb->rank - 1] == m, "vectors of %lld and %lld numbers", (long long)m,
           (long long)tb->sizes[tb->rank - 1]);
  memcpy(wide, sizes, sizeof wide);
  wide[rank - 2] = np;
  wide[rank - 1] = m;
  AOT_TRY(rk_dense_expanded(c, ta, rank, wide, &a));
  wide[rank - 2] = nr;
  AOT_TRY(rk_dense_expanded(c, tb, rank, wide, &b));
  RK_CHECK(c, a.f && b.f, "integers have no distance");
  sizes[rank - 2] = np;
  sizes[rank - 1] = nr;
  AOT_TRY(rk_new_f(c, rank, sizes, &y));
  for (int64_t e = 0; e < batches; e++)
    for (int64_t i = 0; i < np; i++)
      for (int64_t j = 0; j < nr; j++)
        y.f[(e * np + i) * nr + j] = distance(a.f + (e * np + i) * m, b.f + (e * nr + j) * m, m, p);
  return rk_put_f(c, 0, &y);
}
static aot_status_t cdist(rk_ctx_t *c) { return cdist_of(c, rk_float(c, 2, 2)); }
static aot_status_t euclidean(rk_ctx_t *c) { return cdist_of(c, 2); }

/* _pdist_forward(self, p): pairs i < j */
static aot_status_t pdist(rk_ctx_t *c) {
  rk_array_t x, y;
  int64_t n, m, pairs, k = 0;
  AOT_TRY(rk_need_f(c, 0, &x));
  RK_CHECK(c, x.rank == 2, "rank %d is not 2", x.rank);
  n = x.sizes[0];
  m = x.sizes[1];
  pairs = n > 1 ? n * (n - 1) / 2 : 0;
  AOT_TRY(rk_new_f(c, 1, &pairs, &y));
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++) y.f[k++] = distance(x.f + i * m, x.f + j * m, m, rk_float(c, 1, 2));
  return rk_put_f(c, 0, &y);
}

/* d|x_i - x_j|_p / dx_i of one difference d with distance y: sign(d) (|d| / y)^(p-1). PyTorch's choice at 0:
 * nothing. */
static double distance_slope(double d, double y, double p) {
  const double sign = d > 0 ? 1 : d < 0 ? -1 : d;
  if (p == 0 || d == 0) return 0 * d;
  if (p == 1) return sign;
  if (isinf(p)) return fabs(d) == y ? sign : 0;
  return y == 0 ? 0 : sign * pow(fabs(d) / y, p - 1);
}

/* _pdist_backward(grad, self, p, pdist) */
static aot_status_t pdist_backward(rk_ctx_t *c) {
  rk_array_t g, x, y, dx;
  int64_t n, m, pairs, k = 0;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &x));
  AOT_TRY(rk_need_f(c, 3, &y));
  RK_CHECK(c, x.rank == 2, "rank %d is not 2", x.rank);
  n = x.sizes[0];
  m = x.sizes[1];
  pairs = n > 1 ? n * (n - 1) / 2 : 0;
  RK_CHECK(c, g.numel == pairs && y.numel == pairs, "%lld distances of %lld rows", (long long)y.numel, (long long)n);
  AOT_TRY(rk_new_f(c, 2, x.sizes, &dx));
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++, k++)
      for (int64_t e = 0; e < m; e++) {
        const double d = rk_round_to(x.f[i * m + e] - x.f[j * m + e], x.dtype); /* as the largest was rounded */
        const double part = g.f[k] * distance_slope(d, y.f[k], rk_float(c, 2, 2));
        dx.f[i * m + e] += part;
        dx.f[j * m + e] -= part;
      }
  return rk_put_f(c, 0, &dx);
}

/* Both operands in their common shape. */
static aot_status_t broadcast_pair(rk_ctx_t *c, rk_array_t *a, rk_array_t *b) {
  const rk_tensor_t *ta, *tb;
  int64_t sizes[AOT_MAX_RANK];
  int32_t rank;
  AOT_TRY(rk_need_tensor(c, 0, &ta));
  AOT_TRY(rk_need_tensor(c, 1, &tb));
  rank = ta->rank > tb->rank ? ta->rank : tb->rank;
  for (int32_t d = 0; d < rank; d++) {
    int64_t sa = d < rank - ta->rank ? 1 : ta->sizes[d - (rank - ta->rank)],
            sb = d < rank - tb->rank ? 1 : tb->sizes[d - (rank - tb->rank)];
    sizes[d] = sa == 1 ? sb : sa;
  }
  AOT_TRY(rk_dense_expanded(c, ta, rank, sizes, a));
  return rk_dense_expanded(c, tb, rank, sizes, b);
}
static double number(const rk_array_t *a, int64_t k) { return a->f ? a->f[k] : (double)a->i[k]; }

static aot_status_t put_number(rk_ctx_t *c, double v) {
  rk_array_t y;
  AOT_TRY(rk_new_f(c, 0, NULL, &y));
  y.f[0] = v;
  return rk_put_f(c, 0, &y);
}

/* dist(self, other, p) */
static aot_status_t dist(rk_ctx_t *c) {
  rk_array_t a, b;
  double p = rk_float(c, 2, 2), sum = p == -INFINITY ? INFINITY : 0;
  AOT_TRY(broadcast_pair(c, &a, &b));
  for (int64_t k = 0; k < a.numel; k++) {
    double d = fabs(number(&a, k) - number(&b, k));
    if (p == INFINITY) sum = fmax(sum, d);
    else if (p == -INFINITY) sum = fmin(sum, d);
    else sum += p == 0 ? (d != 0) : pow(d, p);
  }
  return put_number(c, p == 0 || isinf(p) ? sum : pow(sum, 1 / p));
}

/* equal(self, other): shape and elements */
static aot_status_t equal(rk_ctx_t *c) {
  rk_array_t a, b;
  int same;
  AOT_TRY(rk_need_any(c, 0, &a));
  AOT_TRY(rk_need_any(c, 1, &b));
  same = rk_same_sizes(&a, &b);
  for (int64_t k = 0; same && k < a.numel; k++) same = a.i && b.i ? a.i[k] == b.i[k] : number(&a, k) == number(&b, k);
  return put_number(c, same);
}

/* allclose(self, other, rtol, atol, equal_nan); isclose gives every element */
static int close_to(double a, double b, double rtol, double atol, int nan_equal) {
  if (a == b || (nan_equal && a != a && b != b)) return 1;
  return isfinite(b) && isfinite(a) && fabs(a - b) <= atol + rtol * fabs(b);
}
static aot_status_t allclose(rk_ctx_t *c) {
  rk_array_t a, b;
  int all = 1;
  AOT_TRY(broadcast_pair(c, &a, &b));
  for (int64_t k = 0; k < a.numel; k++)
    all = all && close_to(number(&a, k), number(&b, k), rk_float(c, 2, 1e-5), rk_float(c, 3, 1e-8), rk_bool(c, 4, 0));
  return put_number(c, all);
}
static aot_status_t isclose(rk_ctx_t *c) {
  rk_array_t a, b, y;
  AOT_TRY(broadcast_pair(c, &a, &b));
  AOT_TRY(rk_new_i(c, a.rank, a.sizes, &y));
  for (int64_t k = 0; k < a.numel; k++)
    y.i[k] = close_to(number(&a, k), number(&b, k), rk_float(c, 2, 1e-5), rk_float(c, 3, 1e-8), rk_bool(c, 4, 0));
  return rk_put_i(c, 0, &y);
}

/* renorm(self, p, dim, maxnorm): slices whose norm exceeds maxnorm are scaled to it */
static aot_status_t renorm(rk_ctx_t *c) {
  rk_array_t x;
  int32_t dim;
  int64_t outer, size, inner;
  double p = rk_float(c, 1, 2), limit = rk_float(c, 3, 1);
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_dim(c, rk_int(c, 2, 0), x.rank, &dim));
  rk_around(&x, dim, &outer, &size, &inner);
  for (int64_t s = 0; s < size; s++) {
    double sum = 0;
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++) {
        double v = fabs(x.f[(o * size + s) * inner + i]);
        sum = !isinf(p) ? sum + pow(v, p) : v > sum || v != v ? v : sum;
      }
    if (!isinf(p)) sum = pow(sum, 1 / p);
    if (!(sum > limit)) continue;
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++) x.f[(o * size + s) * inner + i] *= limit / (sum + 1e-7);
  }
  return rk_put_f(c, 0, &x);
}

/* linalg_cross(self, other, *, dim) */
static aot_status_t cross(rk_ctx_t *c) {
  rk_array_t a, b, y;
  int32_t dim;
  int64_t outer, size, inner;
  AOT_TRY(broadcast_pair(c, &a, &b));
  AOT_TRY(rk_dim(c, rk_int(c, 2, -1), a.rank, &dim));
  rk_around(&a, dim, &outer, &size, &inner);
  RK_CHECK(c, a.rank > 0 && size == 3, "dimension %d has size %lld, not 3", dim, (long long)size);
  RK_CHECK(c, !a.f == !b.f, "one operand has integers, the other floats");
  AOT_TRY(rk_new_like(c, &a, a.rank, a.sizes, &y));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++)
      for (int64_t k = 0; k < 3; k++) {
        int64_t at = (o * 3 + k) * inner + i, p = (o * 3 + (k + 1) % 3) * inner + i,
                q = (o * 3 + (k + 2) % 3) * inner + i;
        if (y.f) y.f[at] = number(&a, p) * number(&b, q) - number(&a, q) * number(&b, p);
        else y.i[at] = (int64_t)((uint64_t)a.i[p] * (uint64_t)b.i[q] - (uint64_t)a.i[q] * (uint64_t)b.i[p]);
      }
  return rk_put_any(c, 0, &y);
}

/* An operand with size-1 dimensions put in at the places of the list, in ascending order. */
static aot_status_t with_ones(rk_ctx_t *c, uint32_t arg, uint32_t list_arg, rk_tensor_t *out) {
  const rk_tensor_t *t;
  const int64_t *places;
  uint32_t n = rk_list(c, list_arg, &places);
  AOT_TRY(rk_need_tensor(c, arg, &t));
  *out = *t;
  for (uint32_t k = 0; k < n; k++) {
    RK_CHECK(c, places[k] >= 0 && places[k] <= out->rank && out->rank < AOT_MAX_RANK, "dimension %lld is out of range",
             (long long)places[k]);
    for (int32_t d = out->rank++; d > places[k]; d--) {
      out->sizes[d] = out->sizes[d - 1];
      out->strides[d] = out->strides[d - 1];
    }
    out->sizes[places[k]] = 1;
    out->strides[places[k]] = 0;
  }
  return AOT_OK;
}

/* _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll): sum over sumdim of the broadcast product */
static aot_status_t trilinear(rk_ctx_t *c) {
  rk_tensor_t t[3];
  rk_array_t x[3], y;
  int64_t sizes[AOT_MAX_RANK], kept[AOT_MAX_RANK], at[AOT_MAX_RANK] = {0};
  uint8_t marks[AOT_MAX_RANK];
  int32_t rank, n_kept = 0;
  for (uint32_t k = 0; k < 3; k++) AOT_TRY(with_ones(c, k, 3 + k, &t[k]));
  rank = t[0].rank;
  RK_CHECK(c, t[1].rank == rank && t[2].rank == rank, "the operands differ in rank");
  for (int32_t d = 0; d < rank; d++) {
    sizes[d] = 1;
    for (int k = 0; k < 3; k++)
      if (t[k].sizes[d] != 1) sizes[d] = t[k].sizes[d];
  }
  for (int k = 0; k < 3; k++) AOT_TRY(rk_dense_expanded(c, &t[k], rank, sizes, &x[k]));
  AOT_TRY(rk_dim_marks(c, 6, rank, 0, marks));
  for (int32_t d = 0; d < rank; d++)
    if (!marks[d]) kept[n_kept++] = sizes[d];
  AOT_TRY(rk_new_f(c, n_kept, kept, &y));
  for (int64_t e = 0; e < x[0].numel; e++, rk_advance(at, rank, sizes)) {
    int64_t flat = 0;
    for (int32_t d = 0; d < rank; d++)
      if (!marks[d]) flat = flat * sizes[d] + at[d];
    y.f[flat] += number(&x[0], e) * number(&x[1], e) * number(&x[2], e);
  }
  return rk_put_f(c, 0, &y);
}

/* _grouped_mm(self, mat2, offs, bias, out_dtype): offs are the cumulative ends of the groups.
 * [T,K]x[G,K,N] -> [T,N]; [M,T]x[T,N] -> [G,M,N]; [G,M,K]x[K,T] -> [M,T]; [G,M,K]x[G,K,N] -> [G,M,N] */
static aot_status_t grouped_mm(rk_ctx_t *c) {
  rk_array_t a, b, ends, y;
  int64_t g, m, n, k, sizes[3];
  AOT_TRY(rk_need_f(c, 0, &a));
  AOT_TRY(rk_need_f(c, 1, &b));
  AOT_TRY(rk_get_i(c, 2, &ends));
  RK_CHECK(c, !rk_has(c, 3), "a bias is not supported");
  RK_CHECK(c, (a.rank == 2 || a.rank == 3) && (b.rank == 2 || b.rank == 3), "operands have ranks %d and %d", a.rank,
           b.rank);
  RK_CHECK(c, (a.rank == 3 && b.rank == 3) == !ends.i, "group ends belong to jagged operands only");
  m = a.sizes[a.rank - 2];
  k = a.sizes[a.rank - 1];
  n = b.sizes[b.rank - 1];
  g = a.rank == 3 ? a.sizes[0] : b.rank == 3 ? b.sizes[0] : ends.numel;
  RK_CHECK(c,
           b.sizes[b.rank - 2] == k && (!ends.i || ends.numel == g) && (a.rank == 2 || b.rank == 2 || b.sizes[0] == g),
           "operands do not fit");
  sizes[0] = g;
  sizes[1] = m;
  sizes[2] = n;
  AOT_TRY(a.rank == b.rank ? rk_new_f(c, 3, sizes, &y) : rk_new_f(c, 2, sizes + 1, &y));
  for (int64_t e = 0, begin = 0; e < g; e++) {
    int64_t end = ends.i ? ends.i[e] : 0, limit = a.rank == 2 && b.rank == 3 ? m : a.rank == 2 ? k : n;
    RK_CHECK(c, !ends.i || (end >= begin && end <= limit), "group end %lld is out of range for %lld", (long long)end,
             (long long)limit);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        int64_t low = 0, high = k;
        if (a.rank == 2 && b.rank == 3 && (i < begin || i >= end)) continue;
        if (a.rank == 3 && b.rank == 2 && (j < begin || j >= end)) continue;
        if (a.rank == 2 && b.rank == 2) {
          low = begin;
          high = end;
        }
        for (int64_t l = low; l < high; l++)
          sum += a.f[((a.rank == 3 ? e : 0) * m + i) * k + l] * b.f[((b.rank == 3 ? e : 0) * k + l) * n + j];
        y.f[((a.rank == b.rank ? e : 0) * m + i) * n + j] = sum;
      }
    begin = end;
  }
  return rk_put_f(c, 0, &y);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("_cdist_forward.default", cdist),
    ROW("cdist.default", cdist),
    ROW("_euclidean_dist.default", euclidean),
    ROW("_pdist_forward.default", pdist),
    ROW("_pdist_backward.default", pdist_backward),
    ROW("pdist.default", pdist),
    ROW("dist.default", dist),
    ROW("equal.default", equal),
    ROW("allclose.default", allclose),
    ROW("isclose.default", isclose),
    ROW("renorm.default", renorm),
    ROW("linalg_cross.default", cross),
    ROW("_trilinear.default", trilinear),
    ROW("_grouped_mm.default", grouped_mm),
};
const rk_family_t rk_family_distance = RK_FAMILY(rows);
