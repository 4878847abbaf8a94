/* Linear algebra in terms of the factorizations: those that check for errors, other spellings, norms, products. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

/* ---- factorizations that fail, other spellings ---- */

static void give_n(em_t *e, em_x_t first, uint32_t n, aot_value_t *out) {
  for (uint32_t i = 0; i < n; i++) out[i] = VAL(em_nth(first, i));
}

static em_x_t matrix_of(em_t *e) { return at_in_has(e, "A") ? IN("A") : IN("self"); }

static em_x_t inverse_of(em_t *e, em_x_t x) { return EM(e, "linalg_inv_ex", x, em_b(1)); }

/* inv, cholesky, LU, LDL: the form with info, reported to check it */
aot_status_t at_dc_checked_factor(em_t *e, aot_value_t *out) {
  const char *name = at_name(e);
  em_x_t y, check = at_in_has(e, "check_errors") ? IN("check_errors") : em_b(1);
  if (strstr(name, "cholesky")) y = EM(e, "linalg_cholesky_ex", IN("self"), IN("upper"), check);
  else if (strstr(name, "ldl")) y = EM(e, "linalg_ldl_factor_ex", IN("self"), IN("hermitian"), check);
  else if (strstr(name, "lu")) y = EM(e, "linalg_lu_factor_ex", matrix_of(e), IN("pivot"), check);
  else y = inverse_of(e, matrix_of(e));
  give_n(e, y, e->desc->n_results, out);
  return e->status;
}

/* linalg_solve, linalg_solve_ex */
aot_status_t at_dc_solve(em_t *e, aot_value_t *out) {
  em_x_t check = at_in_has(e, "check_errors") ? IN("check_errors") : em_b(1);
  em_x_t y = EM(e, "_linalg_solve_ex", IN("A"), IN("B"), IN("left"), check);
  out[0] = VAL(y);
  if (e->desc->n_results == 2) out[1] = VAL(em_nth(y, 3));
  return e->status;
}

aot_status_t at_dc_lu_solve(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "linalg_lu_solve", IN("LU_data"), IN("LU_pivots"), IN("self")), out);
}

/* det, slogdet, without their factors */
aot_status_t at_dc_det(em_t *e, aot_value_t *out) {
  give_n(e, EM(e, e->desc->n_results == 2 ? "_linalg_slogdet" : "_linalg_det", matrix_of(e)), e->desc->n_results, out);
  return e->status;
}

aot_status_t at_dc_logdet(em_t *e, aot_value_t *out) {
  em_x_t y = EM(e, "_linalg_slogdet", IN("self"));
  return at_give(e, WHERE(LT(y, em_i(0)), em_f(NAN), em_nth(y, 1)), out);
}

aot_status_t at_dc_matrix_exp(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "linalg_matrix_exp", IN("self")), out);
}

aot_status_t at_dc_qr(em_t *e, aot_value_t *out) {
  em_x_t mode = aot_arg_str(aot_str(at_in_int(e, "some", 1) ? "reduced" : "complete"));
  give_n(e, EM(e, "linalg_qr", IN("self"), mode), 2, out);
  return e->status;
}

aot_status_t at_dc_orgqr(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "linalg_householder_product", IN("self"), IN("input2")), out);
}

static em_x_t turned(em_t *e, em_x_t x) { return EM(e, "transpose.int", x, em_i(-2), em_i(-1)); }

/* linalg_svd; svd, which has V instead of its transpose, and zeros for vectors that are not requested */
aot_status_t at_dc_svd(em_t *e, aot_value_t *out) {
  int old = at_in_has(e, "some"), vectors = !old || at_in_int(e, "compute_uv", 1);
  em_x_t full = old ? em_b(!at_in_int(e, "some", 1)) : IN("full_matrices");
  em_x_t y = EM(e, "_linalg_svd", matrix_of(e), vectors ? full : em_b(0), em_b(vectors), IN("driver"));
  for (uint32_t i = 0; i < 3; i++) {
    aot_type_t t = at_result_type(e, i);
    if (i != 1 && !vectors) out[i] = VAL(at_filled(e, t.sizes, t.rank, em_i(0), t.dtype, IN("self")));
    else out[i] = VAL(i == 2 && old ? turned(e, em_nth(y, 2)) : em_nth(y, i));
  }
  return e->status;
}

static em_x_t singular_values(em_t *e, em_x_t x) { return em_nth(EM(e, "_linalg_svd", x, em_b(0), em_b(0)), 1); }

aot_status_t at_dc_svdvals(em_t *e, aot_value_t *out) {
  return at_give(e, em_nth(EM(e, "_linalg_svd", IN("A"), em_b(0), em_b(0), IN("driver")), 1), out);
}

/* linalg_eigh, eigvalsh */
aot_status_t at_dc_eigh(em_t *e, aot_value_t *out) {
  give_n(e, EM(e, "_linalg_eigh", IN("self"), IN("UPLO"), em_b(e->desc->n_results == 2)), e->desc->n_results, out);
  return e->status;
}

/* ---- tolerances ---- */

/* A tolerance as a tensor in x's dtype; None stays None. */
static em_x_t tolerance(em_t *e, em_x_t t, em_x_t x) {
  if (em_is_none(t) || t.kind == AOT_ARG_VALUE) return t;
  return at_filled(e, NULL, 0, t, TYPE(x).dtype, x);
}

/* The absolute and the relative one, in every spelling: a lone rcond is relative, a lone tol absolute. */
static void tolerances(em_t *e, em_x_t x, em_x_t *out_atol, em_x_t *out_rtol) {
  em_x_t zero = em_f(0.0);
  *out_atol = at_in_has(e, "rcond") ? zero : at_in_has(e, "tol") ? IN("tol") : IN("atol");
  *out_rtol = at_in_has(e, "rcond") ? IN("rcond") : at_in_has(e, "tol") ? zero : IN("rtol");
  *out_atol = tolerance(e, *out_atol, x);
  *out_rtol = tolerance(e, *out_rtol, x);
}

aot_status_t at_dc_pinv(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), atol, rtol;
  tolerances(e, x, &atol, &rtol);
  return at_give(e, EM(e, "linalg_pinv.atol_rtol_tensor", x, atol, rtol, em_b(at_in_int(e, "hermitian", 0) != 0)), out);
}

static em_x_t last_amax(em_t *e, em_x_t x, int keep) {
  return EM(e, "amax", x, em_list(e, (const int64_t[]){-1}, 1), em_b(keep));
}

static double epsilon_of(int32_t dtype) { return dtype == AOT_F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07; }

/* The number of singular values above max(atol, rtol * largest); the preset of rtol is eps * max(m, n), where atol is
 * not above 0, and 0 where it is. */
aot_status_t at_dc_rank(em_t *e, aot_value_t *out) {
  em_x_t x = at_in_has(e, "input") ? IN("input") : IN("self"), atol, rtol, s, preset, limit;
  aot_type_t t = TYPE(x);
  int64_t most = at_max(at_infer(e), t.sizes[t.rank - 2], t.sizes[t.rank - 1]);
  int empty = at_hint(at_infer(e), at_min(at_infer(e), t.sizes[t.rank - 2], t.sizes[t.rank - 1])) == 0;
  if (empty) {
    aot_type_t y = at_result_type(e, 0);
    return at_give(e, at_filled(e, y.sizes, y.rank, em_i(0), AOT_I64, x), out);
  }
  tolerances(e, x, &atol, &rtol);
  s = at_in_int(e, "hermitian", 0) ? ABS(EM(e, "_linalg_eigh", x, aot_arg_str(aot_str("L")), em_b(0)))
                                   : singular_values(e, x);
  preset = AOT_DIM_IS_SYM(most) ? MUL(tolerance(e, em_f(epsilon_of(t.dtype)), x), em_i(most))
                                : em_f(epsilon_of(t.dtype) * (double)most);
  if (em_is_none(rtol)) rtol = em_is_none(atol) ? preset : WHERE(GT(atol, em_f(0.0)), em_f(0.0), preset);
  limit = rtol.kind == AOT_ARG_VALUE && TYPE(rtol).rank ? at_unsqueeze(e, rtol, -1) : rtol;
  limit = MUL(last_amax(e, s, 1), limit);
  if (!em_is_none(atol)) limit = EM(e, "maximum", TYPE(atol).rank ? at_unsqueeze(e, atol, -1) : atol, limit);
  return at_give(e, at_summed(e, em_cast(e, GT(s, limit), AOT_I64), (const int64_t[]){-1}, 1, 0), out);
}

/* ---- norms ---- */

typedef struct norm_call {
  int64_t dims[AOT_MAX_RANK];
  uint32_t n;
  int32_t rank, keep;
} norm_call_t;

/* The dimensions named, or all. */
static norm_call_t read_norm(em_t *e, em_x_t x) {
  norm_call_t c;
  const int64_t *dims;
  memset(&c, 0, sizeof c);
  c.rank = TYPE(x).rank;
  c.keep = at_in_int(e, "keepdim", 0) != 0;
  c.n = at_in_ints(e, "dim", &dims);
  for (uint32_t i = 0; i < c.n && i < AOT_MAX_RANK; i++) c.dims[i] = at_wrap(at_infer(e), dims[i], c.rank);
  if (c.n == 0)
    for (int32_t d = 0; d < c.rank; d++) c.dims[c.n++] = d;
  return c;
}

static em_x_t vector_norm(em_t *e, em_x_t x, em_x_t ord, const int64_t *dims, uint32_t n, int keep) {
  return EM(e, "linalg_vector_norm", x, ord, em_list(e, dims, n), em_b(keep));
}

/* x with two dimensions moved to the end */
static em_x_t dims_last(em_t *e, em_x_t x, const norm_call_t *c) {
  int64_t order[AOT_MAX_RANK];
  uint32_t n = 0;
  if (c->dims[0] == c->rank - 2 && c->dims[1] == c->rank - 1) return x;
  for (int32_t d = 0; d < c->rank; d++)
    if (d != c->dims[0] && d != c->dims[1]) order[n++] = d;
  order[n++] = c->dims[0];
  order[n++] = c->dims[1];
  return EM(e, "permute", x, em_list(e, order, n));
}

/* y, which lost both dimensions, in the shape of the result */
static em_x_t kept(em_t *e, em_x_t y) {
  aot_type_t t = at_result_type(e, 0);
  return at_reshaped(e, y, t.sizes, t.rank);
}

/* The largest (ord > 0) or smallest of the sums over one dimension (1, inf), or of the singular values (2). */
static em_x_t matrix_norm(em_t *e, em_x_t x, double ord, const norm_call_t *c) {
  const char *extreme = ord > 0 ? "amax" : "amin";
  int by_rows = isinf(ord) != 0, singular = fabs(ord) == 2;
  int64_t last = -1, sum = c->dims[by_rows];
  if (c->n != 2) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: a matrix norm is taken over two dimensions, not %u", at_name(e), c->n);
    return em_none();
  }
  if (!singular && !by_rows && fabs(ord) != 1) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: order %g is no order of a matrix norm: 1, 2, inf, and their negatives are",
            at_name(e), ord);
    return em_none();
  }
  if (singular) return kept(e, EM(e, extreme, singular_values(e, dims_last(e, x, c)), em_list(e, &last, 1), em_b(0)));
  x = vector_norm(e, x, em_i(1), &sum, 1, 1);
  return kept(e, EM(e, extreme, x, em_list(e, &c->dims[!by_rows], 1), em_b(1)));
}

static em_x_t named_norm(em_t *e, em_x_t x, const norm_call_t *c) {
  if (at_in_str_is(e, "ord", "fro") && c->n == 2) return vector_norm(e, x, em_i(2), c->dims, c->n, c->keep);
  if (at_in_str_is(e, "ord", "nuc") && c->n == 2)
    return kept(e, at_summed(e, singular_values(e, dims_last(e, x, c)), (const int64_t[]){-1}, 1, 0));
  em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: the order must be 'fro' or 'nuc', over two dimensions", at_name(e));
  return em_none();
}

/* linalg_norm, linalg_matrix_norm: without an order the vector norm of what is flattened; one dimension: a vector
 * norm. */
aot_status_t at_dc_linalg_norm(em_t *e, aot_value_t *out) {
  em_x_t x = em_cast(e, IN("self"), at_result_type(e, 0).dtype), ord = IN("ord");
  norm_call_t c = read_norm(e, x);
  int matrix = strstr(at_name(e), "matrix_norm") != NULL;
  if (ord.kind == AOT_ARG_STR) return at_give(e, named_norm(e, x, &c), out);
  if (em_is_none(ord)) return at_give(e, vector_norm(e, x, em_i(2), c.dims, c.n, c.keep), out);
  if (!matrix && c.n == 1) return at_give(e, vector_norm(e, x, ord, c.dims, 1, c.keep), out);
  return at_give(e, matrix_norm(e, x, em_in_float(e, "ord", 2.0), &c), out);
}

/* nuclear_norm, frobenius_norm */
aot_status_t at_dc_other_norm(em_t *e, aot_value_t *out) {
  norm_call_t c = read_norm(e, IN("self"));
  em_x_t dims = em_list(e, c.dims, c.n), nuc = aot_arg_str(aot_str("nuc"));
  if (strstr(at_name(e), "frobenius")) return at_give(e, vector_norm(e, IN("self"), em_i(2), c.dims, c.n, c.keep), out);
  return at_give(e, EM(e, "linalg_matrix_norm.str_ord", IN("self"), nuc, dims, em_b(c.keep)), out);
}

/* |A| |A^-1|, inf for a singular matrix; of order 2 the quotient of singular values */
aot_status_t at_dc_cond(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), p = IN("p"), s, inverse, order = p.kind == AOT_ARG_STR ? p : em_f(em_in_float(e, "p", 2.0));
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  const char *norm = p.kind == AOT_ARG_STR ? "linalg_matrix_norm.str_ord" : "linalg_matrix_norm";
  double ord = p.kind == AOT_ARG_STR ? 0 : em_in_float(e, "p", 2.0);
  if (at_hint(at_infer(e), t.sizes[t.rank - 1]) == 0 || at_hint(at_infer(e), t.sizes[t.rank - 2]) == 0)
    return at_give(e, at_filled(e, to.sizes, to.rank, em_i(0), to.dtype, x), out);
  if (fabs(ord) == 2) {
    s = singular_values(e, x);
    em_x_t largest = EM(e, "select.int", s, em_i(-1), em_i(0)), smallest = EM(e, "select.int", s, em_i(-1), em_i(-1));
    return at_give(e, ord > 0 ? DIV(largest, smallest) : DIV(smallest, largest), out);
  }
  inverse = EM(e, "linalg_inv_ex", x, em_b(0));
  s = GT(em_nth(inverse, 1), em_i(0)); /* singular */
  inverse = WHERE(at_unsqueeze(e, at_unsqueeze(e, s, -1), -1), em_f(0.0), inverse);
  return at_give(e, WHERE(s, em_f(INFINITY), MUL(EM(e, norm, x, order), EM(e, norm, inverse, order))), out);
}

/* ---- products ---- */

static em_x_t unit_like(em_t *e, em_x_t x) {
  aot_type_t t = TYPE(x);
  em_x_t device = em_device(t.device, t.device_index);
  em_x_t eye = EM(e, "eye", em_i(t.sizes[t.rank - 1]), em_dtype(t.dtype), em_none(), device);
  return EM(e, "clone", at_expanded(e, eye, t.sizes, t.rank),
            aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS));
}

/* By squaring: O(log n) products. */
aot_status_t at_dc_matrix_power(em_t *e, aot_value_t *out) {
  int64_t n = at_in_int(e, "n", 1);
  uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
  em_x_t square = n < 0 ? inverse_of(e, IN("self")) : IN("self"), y = em_none();
  if (n == 0) return at_give(e, unit_like(e, square), out);
  for (; left; left >>= 1) {
    if (left & 1) y = em_is_none(y) ? square : at_matmul(e, y, square);
    if (left > 1) square = at_matmul(e, square, square);
  }
  if (n == 1) y = EM(e, "clone", y);
  return at_give(e, y, out);
}

#define MAX_CHAIN 64

/* The order with the fewest multiplications (Cormen et al., Introduction to Algorithms, matrix chains): last[i][j] is
 * where the product of matrices i .. j is divided last; the first of equal places, as PyTorch chooses. */
typedef struct chain {
  double size[MAX_CHAIN + 1]; /* matrix i has size[i] rows */
  double cost[MAX_CHAIN][MAX_CHAIN];
  uint32_t last[MAX_CHAIN][MAX_CHAIN];
} chain_t;

static void find_order(chain_t *c, uint32_t n) {
  for (uint32_t length = 1; length < n; length++)
    for (uint32_t i = 0; i + length < n; i++) {
      const uint32_t j = i + length;
      c->cost[i][j] = INFINITY;
      for (uint32_t k = i; k < j; k++) {
        const double cost = c->cost[i][k] + c->cost[k + 1][j] + c->size[i] * c->size[k + 1] * c->size[j + 1];
        if (cost >= c->cost[i][j]) continue;
        c->cost[i][j] = cost;
        c->last[i][j] = k;
      }
    }
}

/* x[i] becomes the product of x[i .. j]. */
static void multiply_chain(em_t *e, const chain_t *c, em_x_t *x, uint32_t n) {
  uint32_t from[2 * MAX_CHAIN], to[2 * MAX_CHAIN], depth = 0;
  uint8_t is_divided[2 * MAX_CHAIN];
  from[0] = 0, to[0] = n - 1, is_divided[0] = 0, depth = 1;
  while (depth && e->status == AOT_OK) {
    const uint32_t i = from[depth - 1], j = to[depth - 1], k = c->last[i][j];
    if (i == j) {
      depth--;
    } else if (is_divided[depth - 1]) {
      x[i] = EM(e, "mm", x[i], x[k + 1]);
      depth--;
    } else {
      is_divided[depth - 1] = 1;
      from[depth] = k + 1, to[depth] = j, is_divided[depth++] = 0;
      from[depth] = i, to[depth] = k, is_divided[depth++] = 0;
    }
  }
}

aot_status_t at_dc_multi_dot(em_t *e, aot_value_t *out) {
  em_x_t list = at_in_has(e, "tensors") ? IN("tensors") : IN("matrices"), x[MAX_CHAIN];
  aot_type_t t = at_result_type(e, 0);
  uint32_t n = list.kind == AOT_ARG_VALUES ? list.n : 0;
  chain_t *c;
  if (n < 1 || n > MAX_CHAIN) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s takes at most %d tensors, not %u", at_name(e), MAX_CHAIN, n);
    return e->status;
  }
  for (uint32_t i = 0; i < n; i++) {
    aot_value_t v;
    v.id = list.u.ids[i];
    x[i] = em_v(v);
    if (TYPE(x[i]).rank == 1) x[i] = at_unsqueeze(e, x[i], i ? 1 : 0);
  }
  c = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, sizeof(double), sizeof *c);
  if (!c) return AOT_E_EXHAUSTED;
  memset(c, 0, sizeof *c);
  for (uint32_t i = 0; i < n; i++) c->size[i] = (double)at_hint(at_infer(e), TYPE(x[i]).sizes[0]);
  c->size[n] = (double)at_hint(at_infer(e), TYPE(x[n - 1]).sizes[1]);
  find_order(c, n);
  multiply_chain(e, c, x, n);
  return at_give(e, at_reshaped(e, x[0], t.sizes, t.rank), out);
}

aot_status_t at_dc_linalg_diagonal(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "diagonal", IN("A"), IN("offset"), IN("dim1"), IN("dim2")), out);
}

aot_status_t at_dc_vecdot(em_t *e, aot_value_t *out) {
  int64_t dim = at_in_int(e, "dim", -1);
  return at_give(e, EM(e, "sum.dim_IntList", MUL(IN("x"), IN("y")), em_list(e, &dim, 1)), out);
}

/* 1, x, x x, .. along the last dimension */
aot_status_t at_dc_linalg_vander(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  em_x_t x = em_cast(e, at_unsqueeze(e, IN("x"), -1), t.dtype), ones;
  int64_t sizes[AOT_MAX_RANK], n = t.sizes[t.rank - 1];
  uint32_t ids[2];
  memcpy(sizes, t.sizes, (size_t)t.rank * sizeof *sizes);
  if (at_hint(at_infer(e), n) < 1) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: N = %lld must be above 1", at_name(e), (long long)at_hint(at_infer(e), n));
    return e->status;
  }
  sizes[t.rank - 1] = 1;
  ones = at_filled(e, sizes, t.rank, em_i(1), t.dtype, x);
  sizes[t.rank - 1] = at_sub(at_infer(e), n, 1);
  ids[0] = VAL(ones).id;
  ids[1] = VAL(EM(e, "cumprod", EM(e, "expand", x, em_list(e, sizes, (uint32_t)t.rank)), em_i(-1))).id;
  return at_give(e, EM(e, "cat", aot_arg_values(ids, 2), em_i(-1)), out);
}

aot_status_t at_dc_tensorinv(em_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self")), to = at_result_type(e, 0);
  int32_t ind = (int32_t)at_in_int(e, "ind", 2);
  int64_t sizes[2] = {at_numel(at_infer(e), t.sizes, ind), at_numel(at_infer(e), t.sizes + ind, t.rank - ind)};
  return at_give(e, at_reshaped(e, inverse_of(e, at_reshaped(e, IN("self"), sizes, 2)), to.sizes, to.rank), out);
}

aot_status_t at_dc_tensorsolve(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), b = IN("other");
  aot_type_t t = TYPE(x), to = at_result_type(e, 0), tb = TYPE(b);
  const int64_t *dims;
  uint32_t n = at_in_ints(e, "dims", &dims), mask = n ? at_dim_mask(at_infer(e), dims, n, t.rank) : 0, n_order = 0;
  int64_t order[AOT_MAX_RANK], sizes[2];
  for (int32_t d = 0; d < t.rank; d++)
    if (!(mask >> d & 1)) order[n_order++] = d;
  for (uint32_t i = 0; i < n; i++) order[n_order++] = at_wrap(at_infer(e), dims[i], t.rank);
  if (n) x = EM(e, "permute", x, em_list(e, order, n_order));
  sizes[0] = sizes[1] = at_numel(at_infer(e), tb.sizes, tb.rank);
  x = EM(e, "_linalg_solve_ex", at_reshaped(e, x, sizes, 2), at_reshaped(e, b, sizes, 1), em_b(1), em_b(1));
  return at_give(e, at_reshaped(e, x, to.sizes, to.rank), out);
}
