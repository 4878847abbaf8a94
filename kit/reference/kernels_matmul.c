/* Matrix products. One routine, product(), is matmul as PyTorch defines it (1-d operands get a temporary dimension,
 * batch dimensions broadcast); mm, bmm, addmm, linear and the rest are matmul with a shape check or an epilogue. Float
 * sums are accumulated in double over the whole inner dimension and rounded once; integers wrap in int64. */
#include "rk_core.h"
#include <aot/inline.h>
#include <string.h>

static void gemm_f(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *out) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t l = 0; l < k; l++) {
      double v = a[i * k + l];
      for (int64_t j = 0; j < n; j++) out[i * n + j] += v * b[l * n + j];
    }
}

static void gemm_i(int64_t m, int64_t n, int64_t k, const int64_t *a, const int64_t *b, int64_t *out) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t l = 0; l < k; l++)
      for (int64_t j = 0; j < n; j++)
        out[i * n + j] = (int64_t)((uint64_t)out[i * n + j] + (uint64_t)a[i * k + l] * (uint64_t)b[l * n + j]);
}

/* The flat batch number of an operand whose batch sizes are broadcast to sizes[rank]. */
static int64_t batch_of(const rk_array_t *x, int32_t x_batch, const int64_t *sizes, int32_t rank, int64_t flat) {
  int64_t index[AOT_MAX_RANK], at = 0;
  for (int32_t d = rank - 1; d >= 0; flat /= sizes[d], d--) index[d] = flat % sizes[d];
  for (int32_t d = 0; d < x_batch; d++) at = at * x->sizes[d] + (x->sizes[d] == 1 ? 0 : index[d + rank - x_batch]);
  return at;
}

static aot_status_t batch_sizes(rk_ctx_t *c, const rk_array_t *a, int32_t na, const rk_array_t *b, int32_t nb,
                                int64_t *sizes, int32_t *rank) {
  *rank = na > nb ? na : nb;
  for (int32_t d = 0; d < *rank; d++) {
    int64_t sa = d < *rank - na ? 1 : a->sizes[d - (*rank - na)], sb = d < *rank - nb ? 1 : b->sizes[d - (*rank - nb)];
    RK_CHECK(c, sa == sb || sa == 1 || sb == 1, "batch sizes %lld and %lld do not broadcast", (long long)sa,
             (long long)sb);
    sizes[d] = sa == 1 ? sb : sa;
  }
  return AOT_OK;
}

/* Dense a and b (both as f or both as i) to their matrix product. */
static aot_status_t product(rk_ctx_t *c, const rk_array_t *a, const rk_array_t *b, rk_array_t *out) {
  int32_t na = a->rank > 2 ? a->rank - 2 : 0, nb = b->rank > 2 ? b->rank - 2 : 0, rank;
  int64_t sizes[AOT_MAX_RANK + 2], batches = 1, m, n, k, kb;
  RK_CHECK(c, a->rank > 0 && b->rank > 0, "both operands need a dimension");
  m = a->rank == 1 ? 1 : a->sizes[a->rank - 2];
  k = a->sizes[a->rank - 1];
  kb = b->rank == 1 ? b->sizes[0] : b->sizes[b->rank - 2];
  n = b->rank == 1 ? 1 : b->sizes[b->rank - 1];
  RK_CHECK(c, k == kb, "inner sizes %lld and %lld differ", (long long)k, (long long)kb);
  AOT_TRY(batch_sizes(c, a, na, b, nb, sizes, &rank));
  for (int32_t d = 0; d < rank; d++) batches *= sizes[d];
  {
    int32_t full = rank;
    if (a->rank > 1) sizes[full++] = m;
    if (b->rank > 1) sizes[full++] = n;
    AOT_TRY(a->f ? rk_new_f(c, full, sizes, out) : rk_new_i(c, full, sizes, out));
  }
  for (int64_t e = 0; e < batches; e++) {
    int64_t ba = batch_of(a, na, sizes, rank, e), bb = batch_of(b, nb, sizes, rank, e);
    if (a->f) gemm_f(m, n, k, a->f + ba * m * k, b->f + bb * k * n, out->f + e * m * n);
    else gemm_i(m, n, k, a->i + ba * m * k, b->i + bb * k * n, out->i + e * m * n);
  }
  return AOT_OK;
}

static int whole(const rk_ctx_t *c) { return rk_is_int(rk_result_dtype(c, 0)); }
static aot_status_t get(rk_ctx_t *c, uint32_t arg, rk_array_t *out) {
  const rk_tensor_t *t;
  AOT_TRY(rk_need_tensor(c, arg, &t));
  return whole(c) ? rk_dense_i(c, t, out) : rk_dense_f(c, t, out);
}
static aot_status_t put(rk_ctx_t *c, const rk_array_t *a) { return a->f ? rk_put_f(c, 0, a) : rk_put_i(c, 0, a); }

static aot_status_t matmul(rk_ctx_t *c) {
  rk_array_t a, b, out;
  AOT_TRY(get(c, 0, &a));
  AOT_TRY(get(c, 1, &b));
  AOT_TRY(product(c, &a, &b, &out));
  return put(c, &out);
}

/* mm, bmm, mv, dot: the same with the ranks fixed */
static aot_status_t ranked(rk_ctx_t *c, int32_t ra, int32_t rb) {
  rk_array_t a, b, out;
  AOT_TRY(get(c, 0, &a));
  AOT_TRY(get(c, 1, &b));
  RK_CHECK(c, a.rank == ra && b.rank == rb, "operands have ranks %d and %d where %d and %d are needed", a.rank, b.rank,
           ra, rb);
  RK_CHECK(c, ra != 3 || a.sizes[0] == b.sizes[0], "batch sizes %lld and %lld differ", (long long)a.sizes[0],
           (long long)b.sizes[0]);
  AOT_TRY(product(c, &a, &b, &out));
  return put(c, &out);
}
static aot_status_t mm(rk_ctx_t *c) { return ranked(c, 2, 2); }
static aot_status_t bmm(rk_ctx_t *c) { return ranked(c, 3, 3); }
static aot_status_t mv(rk_ctx_t *c) { return ranked(c, 2, 1); }
static aot_status_t dot(rk_ctx_t *c) { return ranked(c, 1, 1); }

static aot_status_t outer(rk_ctx_t *c) {
  rk_array_t a, b, out;
  AOT_TRY(get(c, 0, &a));
  AOT_TRY(get(c, 1, &b));
  RK_CHECK(c, a.rank == 1 && b.rank == 1, "operands have ranks %d and %d where 1 and 1 are needed", a.rank, b.rank);
  a.rank = b.rank = 2;
  a.sizes[1] = 1;
  b.sizes[1] = b.sizes[0];
  b.sizes[0] = 1;
  AOT_TRY(product(c, &a, &b, &out));
  return put(c, &out);
}

/* out = beta * self + alpha * out, self broadcast; beta 0 leaves self unread */
static aot_status_t add_scaled(rk_ctx_t *c, uint32_t self_arg, uint32_t beta_arg, rk_array_t *out) {
  const rk_tensor_t *self;
  double beta = rk_float(c, beta_arg, 1), alpha = rk_float(c, beta_arg + 1, 1), v;
  int64_t ibeta = rk_int(c, beta_arg, 1), ialpha = rk_int(c, beta_arg + 1, 1), e = 0, w;
  rk_iter_t it;
  AOT_TRY(rk_need_tensor(c, self_arg, &self));
  rk_iter_init(&it, out->rank, out->sizes);
  RK_CHECK(c, rk_iter_add(&it, self), "the added tensor does not broadcast to the product");
  for (; it.more; rk_iter_next(&it))
    for (int64_t k = 0; k < it.run; k++, e++) {
      int64_t at = it.at[0] + k * it.step[0];
      if (out->f) {
        out->f[e] *= alpha;
        if (beta == 0) continue;
        rk_load_run_f(self, at, 1, 1, &v);
        out->f[e] += beta * v;
      } else {
        rk_load_run_i(self, at, 1, 1, &w);
        out->i[e] = (int64_t)((uint64_t)ialpha * (uint64_t)out->i[e] + (uint64_t)ibeta * (uint64_t)w);
      }
    }
  return AOT_OK;
}

static aot_status_t added(rk_ctx_t *c, uint32_t first, int32_t ra, int32_t rb, uint32_t beta_arg) {
  rk_array_t a, b, out;
  AOT_TRY(get(c, first, &a));
  AOT_TRY(get(c, first + 1, &b));
  RK_CHECK(c, a.rank == ra && b.rank == rb, "factors have ranks %d and %d where %d and %d are needed", a.rank, b.rank,
           ra, rb);
  AOT_TRY(product(c, &a, &b, &out));
  AOT_TRY(add_scaled(c, 0, beta_arg, &out));
  return put(c, &out);
}
static aot_status_t addmm(rk_ctx_t *c) { return added(c, 1, 2, 2, 3); }
static aot_status_t addmm_dtype(rk_ctx_t *c) { return added(c, 1, 2, 2, 4); }
static aot_status_t addmv(rk_ctx_t *c) { return added(c, 1, 2, 1, 3); }
static aot_status_t baddbmm(rk_ctx_t *c) { return added(c, 1, 3, 3, 3); }

static aot_status_t addbmm(rk_ctx_t *c) {
  rk_array_t a, b, p, out;
  int64_t mn;
  AOT_TRY(get(c, 1, &a));
  AOT_TRY(get(c, 2, &b));
  RK_CHECK(c, a.rank == 3 && b.rank == 3, "factors have ranks %d and %d where 3 and 3 are needed", a.rank, b.rank);
  AOT_TRY(product(c, &a, &b, &p));
  mn = p.sizes[1] * p.sizes[2];
  AOT_TRY(p.f ? rk_new_f(c, 2, p.sizes + 1, &out) : rk_new_i(c, 2, p.sizes + 1, &out));
  for (int64_t e = 0; e < p.numel; e++) {
    if (p.f) out.f[e % mn] += p.f[e];
    else out.i[e % mn] += p.i[e];
  }
  AOT_TRY(add_scaled(c, 0, 3, &out));
  return put(c, &out);
}

static aot_status_t addr(rk_ctx_t *c) {
  rk_array_t a, b, out;
  AOT_TRY(get(c, 1, &a));
  AOT_TRY(get(c, 2, &b));
  RK_CHECK(c, a.rank == 1 && b.rank == 1, "factors have ranks %d and %d where 1 and 1 are needed", a.rank, b.rank);
  a.rank = b.rank = 2;
  a.sizes[1] = 1;
  b.sizes[1] = b.sizes[0];
  b.sizes[0] = 1;
  AOT_TRY(product(c, &a, &b, &out));
  AOT_TRY(add_scaled(c, 0, 3, &out));
  return put(c, &out);
}

/* linear(input, weight, bias): input @ weight^T + bias */
static aot_status_t linear(rk_ctx_t *c) {
  const rk_tensor_t *w, *bias;
  rk_tensor_t wt;
  rk_array_t a, b, out;
  AOT_TRY(get(c, 0, &a));
  AOT_TRY(rk_need_tensor(c, 1, &w));
  AOT_TRY(rk_tensor_of(c, 2, &bias));
  RK_CHECK(c, w->rank == 2 || w->rank == 1, "weight has rank %d", w->rank);
  wt = *w;
  if (w->rank == 2) {
    wt.sizes[0] = w->sizes[1];
    wt.sizes[1] = w->sizes[0];
    wt.strides[0] = w->strides[1];
    wt.strides[1] = w->strides[0];
  }
  AOT_TRY(whole(c) ? rk_dense_i(c, &wt, &b) : rk_dense_f(c, &wt, &b));
  AOT_TRY(product(c, &a, &b, &out));
  if (bias) AOT_TRY(add_scaled(c, 2, 3, &out)); /* no such arguments: beta = alpha = 1 */
  return put(c, &out);
}

/* linear_backward(self, grad, weight, mask): gradients of input, weight, bias */
static aot_status_t linear_backward(rk_ctx_t *c) {
  rk_array_t x, g, w, gi, gw, gb;
  int64_t rows_n, in, out_n, bias_size;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_need_f(c, 1, &g));
  AOT_TRY(rk_need_f(c, 2, &w));
  RK_CHECK(c, w.rank == 2 && x.rank > 0 && x.sizes[x.rank - 1] == w.sizes[1], "input and weight do not fit");
  out_n = w.sizes[0];
  in = w.sizes[1];
  rows_n = in ? x.numel / in : 0;
  RK_CHECK(c, g.numel == rows_n * out_n, "the gradient does not fit");
  bias_size = out_n;
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &gi));
  AOT_TRY(rk_new_f(c, 2, w.sizes, &gw));
  AOT_TRY(rk_new_f(c, 1, &bias_size, &gb));
  gemm_f(rows_n, in, out_n, g.f, w.f, gi.f);
  for (int64_t r = 0; r < rows_n; r++)
    for (int64_t o = 0; o < out_n; o++) {
      gb.f[o] += g.f[r * out_n + o];
      for (int64_t k = 0; k < in; k++) gw.f[o * in + k] += g.f[r * out_n + o] * x.f[r * in + k];
    }
  AOT_TRY(rk_put_f(c, 0, &gi));
  AOT_TRY(rk_put_f(c, 1, &gw));
  return rk_put_f(c, 2, &gb);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("matmul.default", matmul), ROW("linalg_matmul.default", matmul),
    ROW("mm.default", mm),         ROW("mm.dtype", mm),
    ROW("_int_mm.default", mm),    ROW("bmm.default", bmm),
    ROW("bmm.dtype", bmm),         ROW("mv.default", mv),
    ROW("dot.default", dot),       ROW("vdot.default", dot),
    ROW("outer.default", outer),   ROW("ger.default", outer),
    ROW("addmm.default", addmm),   ROW("addmm.dtype", addmm_dtype),
    ROW("addmv.default", addmv),   ROW("baddbmm.default", baddbmm),
    ROW("addbmm.default", addbmm), ROW("addr.default", addr),
    ROW("linear.default", linear), ROW("linear_backward.default", linear_backward),
};
const rk_family_t rk_family_matmul = RK_FAMILY(rows);
