/* Linear algebra of batches of matrices: LU, Cholesky and L D L^T, solves, inverses, determinants; through LAPACK
 * (rk_matrix.c), in double.
 *
 * det and slogdet factor the transpose, as PyTorch does with the row-major matrices that it usually gets: that is what
 * their LU results hold. */
#include "rk_stack.h"
#include <aot/inline.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- LU ---- */

static aot_status_t factor(rk_ctx_t *c, rs_stack_t *s, int pivoting, rk_array_t *pivots, rk_array_t *info) {
  int64_t k = rs_smaller(s->rows, s->columns);
  AOT_TRY(rs_new_numbers(c, s, k, 1, 0, pivots));
  AOT_TRY(rs_new_numbers(c, s, 0, 0, 0, info));
  RK_CHECK(c, pivoting, "LU without pivoting is not supported");
  for (int64_t i = 0; i < s->n; i++) {
    info->i[i] = rm_lu(rs_matrix(s, i), s->rows, s->columns, pivots->i + i * k);
    AOT_TRY(rs_enough_memory(c, info->i[i]));
  }
  return AOT_OK;
}

/* linalg_lu_factor_ex(A, *, pivot, check_errors) -> (LU, pivots, info) */
static aot_status_t lu_factor(rk_ctx_t *c) {
  rs_stack_t s;
  rk_array_t pivots, info;
  AOT_TRY(rs_read_stack(c, 0, &s));
  AOT_TRY(factor(c, &s, rk_bool(c, 1, 1), &pivots, &info));
  if (rk_bool(c, 2, 0)) AOT_TRY(rs_check_all(c, "linalg.lu_factor", &info));
  AOT_TRY(rk_put_f(c, 0, &s.a));
  AOT_TRY(rk_put_i(c, 1, &pivots));
  return rk_put_i(c, 2, &info);
}

static aot_status_t check_pivots(rk_ctx_t *c, const rs_stack_t *lu, const rk_array_t *pivots) {
  int64_t k = rs_smaller(lu->rows, lu->columns);
  RK_CHECK(c, pivots->numel == lu->n * k, "%lld pivots for %lld matrices", (long long)pivots->numel, (long long)lu->n);
  for (int64_t i = 0; i < pivots->numel; i++)
    RK_CHECK(c, pivots->i[i] >= 1 && pivots->i[i] <= lu->rows, "pivot %lld is out of range", (long long)pivots->i[i]);
  return AOT_OK;
}

/* P, L, U of factors; each is left out when its declared result is empty. */
static aot_status_t put_plu(rk_ctx_t *c, const rs_stack_t *lu, const rk_array_t *pivots) {
  rs_stack_t p, l, u;
  int64_t k = rs_smaller(lu->rows, lu->columns);
  AOT_TRY(rs_new_stack(c, lu, lu->rows, lu->rows, &p));
  AOT_TRY(rs_new_stack(c, lu, lu->rows, k, &l));
  AOT_TRY(rs_new_stack(c, lu, k, lu->columns, &u));
  for (int64_t i = 0; i < lu->n; i++) {
    const double *from = rs_matrix(lu, i);
    for (int64_t r = 0; r < lu->rows; r++) rs_matrix(&p, i)[r * lu->rows + r] = 1;
    rm_permute(rs_matrix(&p, i), lu->rows, pivots->i + i * k, k, 1);
    for (int64_t r = 0; r < lu->rows; r++)
      for (int64_t j = 0; j < lu->columns; j++) {
        if (r > j) rs_matrix(&l, i)[r * k + j] = from[r * lu->columns + j];
        else rs_matrix(&u, i)[r * lu->columns + j] = from[r * lu->columns + j];
      }
    for (int64_t r = 0; r < k; r++) rs_matrix(&l, i)[r * k + r] = 1;
  }
  if (rk_wants(c, 0) && rk_numel(rk_result(c, 0)) == p.a.numel) AOT_TRY(rk_put_f(c, 0, &p.a));
  if (rk_wants(c, 1) && rk_numel(rk_result(c, 1)) == l.a.numel) AOT_TRY(rk_put_f(c, 1, &l.a));
  if (rk_wants(c, 2) && rk_numel(rk_result(c, 2)) == u.a.numel) AOT_TRY(rk_put_f(c, 2, &u.a));
  return AOT_OK;
}

static aot_status_t lu(rk_ctx_t *c) {
  rs_stack_t s;
  rk_array_t pivots, info;
  AOT_TRY(rs_read_stack(c, 0, &s));
  AOT_TRY(factor(c, &s, rk_bool(c, 1, 1), &pivots, &info));
  return put_plu(c, &s, &pivots);
}
static aot_status_t lu_unpack(rk_ctx_t *c) {
  rs_stack_t s;
  rk_array_t pivots;
  AOT_TRY(rs_read_stack(c, 0, &s));
  AOT_TRY(rk_need_i(c, 1, &pivots));
  AOT_TRY(check_pivots(c, &s, &pivots));
  return put_plu(c, &s, &pivots);
}

/* det and slogdet: result 0, (1), LU, pivots */
static aot_status_t determinant(rk_ctx_t *c, int logarithm) {
  rs_stack_t a, s;
  rk_array_t pivots, info, det, magnitude;
  AOT_TRY(rs_read_square(c, 0, &a));
  AOT_TRY(rs_transpose_all(c, &a, &s));
  AOT_TRY(factor(c, &s, 1, &pivots, &info));
  AOT_TRY(rs_new_numbers(c, &s, 0, 0, 1, &det));
  AOT_TRY(rs_new_numbers(c, &s, 0, 0, 1, &magnitude));
  for (int64_t i = 0; i < s.n; i++) {
    det.f[i] = 1;
    for (int64_t k = 0; k < s.rows; k++) {
      double d = rs_matrix(&s, i)[k * s.rows + k];
      if (pivots.i[i * s.rows + k] != k + 1) det.f[i] = -det.f[i];
      det.f[i] *= logarithm ? (d > 0) - (d < 0) : d;
      magnitude.f[i] += log(fabs(d));
    }
  }
  AOT_TRY(rk_put_f(c, 0, &det));
  if (logarithm) AOT_TRY(rk_put_f(c, 1, &magnitude));
  AOT_TRY(rk_put_f(c, logarithm ? 2 : 1, &s.a));
  return rk_put_i(c, logarithm ? 3 : 2, &pivots);
}
static aot_status_t det(rk_ctx_t *c) { return determinant(c, 0); }
static aot_status_t slogdet(rk_ctx_t *c) { return determinant(c, 1); }

/* ---- solves ---- */

/* Solve from LU factors: op(A) X = B, or X op(A) = B (through the transpose). */
static aot_status_t solve_lu(rk_ctx_t *c, const rs_stack_t *lu_of, const rk_array_t *pivots, rs_right_t *r, int left,
                             int transposed) {
  int64_t n = lu_of->rows;
  double *work;
  RK_CHECK(c, (left ? r->b.rows : r->b.columns) == n, "the right-hand side does not fit matrices of order %lld",
           (long long)n);
  RK_SCRATCH(c, r->b.rows * r->b.columns, work);
  for (int64_t i = 0; i < r->b.n; i++) {
    double *b = rs_matrix(&r->b, i);
    const double *a = rs_matrix(lu_of, r->which[i]);
    const int64_t *p = pivots->i + r->which[i] * n;
    if (left) {
      AOT_TRY(rs_enough_memory(c, rm_lu_solve(a, n, p, b, r->b.columns, transposed)));
      continue;
    }
    rm_transpose(b, r->b.rows, r->b.columns, work);
    AOT_TRY(rs_enough_memory(c, rm_lu_solve(a, n, p, work, r->b.rows, !transposed)));
    rm_transpose(work, r->b.columns, r->b.rows, b);
  }
  return AOT_OK;
}

/* _linalg_solve_ex(A, B, *, left, check_errors) -> (result, LU, pivots, info) */
static aot_status_t solve(rk_ctx_t *c) {
  rs_stack_t s;
  rs_right_t r;
  rk_array_t pivots, info;
  AOT_TRY(rs_read_square(c, 0, &s));
  AOT_TRY(rs_read_right(c, &s, 1, 1, &r));
  AOT_TRY(factor(c, &s, 1, &pivots, &info));
  if (rk_bool(c, 3, 0)) AOT_TRY(rs_check_all(c, "linalg.solve", &info));
  AOT_TRY(solve_lu(c, &s, &pivots, &r, rk_bool(c, 2, 1), 0));
  AOT_TRY(rk_put_f(c, 1, &s.a));
  AOT_TRY(rk_put_i(c, 2, &pivots));
  AOT_TRY(rk_put_i(c, 3, &info));
  return rs_put_right(c, 0, &r);
}

/* linalg_lu_solve(LU, pivots, B, *, left, adjoint) */
static aot_status_t lu_solve(rk_ctx_t *c) {
  rs_stack_t s;
  rs_right_t r;
  rk_array_t pivots;
  AOT_TRY(rs_read_square(c, 0, &s));
  AOT_TRY(rk_need_i(c, 1, &pivots));
  AOT_TRY(check_pivots(c, &s, &pivots));
  AOT_TRY(rs_read_right(c, &s, 2, 0, &r));
  AOT_TRY(solve_lu(c, &s, &pivots, &r, rk_bool(c, 3, 1), rk_bool(c, 4, 0)));
  return rs_put_right(c, 0, &r);
}

/* linalg_inv_ex(A, *, check_errors) -> (inverse, info) */
static aot_status_t inverse(rk_ctx_t *c) {
  rs_stack_t s, y;
  rk_array_t pivots, info;
  AOT_TRY(rs_read_square(c, 0, &s));
  AOT_TRY(factor(c, &s, 1, &pivots, &info));
  AOT_TRY(rs_new_stack(c, &s, s.rows, s.rows, &y));
  for (int64_t i = 0; i < s.n; i++) {
    for (int64_t k = 0; k < s.rows; k++) rs_matrix(&y, i)[k * s.rows + k] = 1;
    AOT_TRY(
        rs_enough_memory(c, rm_lu_solve(rs_matrix(&s, i), s.rows, pivots.i + i * s.rows, rs_matrix(&y, i), s.rows, 0)));
  }
  if (rk_bool(c, 1, 0)) AOT_TRY(rs_check_all(c, "linalg.inv", &info));
  AOT_TRY(rk_put_i(c, 1, &info));
  return rk_put_f(c, 0, &y.a);
}

static aot_status_t solve_triangle(rk_ctx_t *c, const rs_stack_t *t, rs_right_t *r, int upper, int transposed, int unit,
                                   int left) {
  int64_t n = t->rows;
  double *work;
  RK_CHECK(c, (left ? r->b.rows : r->b.columns) == n, "the right-hand side does not fit matrices of order %lld",
           (long long)n);
  RK_SCRATCH(c, r->b.rows * r->b.columns, work);
  for (int64_t i = 0; i < r->b.n; i++) {
    double *b = rs_matrix(&r->b, i);
    const double *a = rs_matrix(t, r->which[i]);
    if (left) {
      rm_solve_triangular(a, n, b, r->b.columns, upper, transposed, unit);
      continue;
    }
    rm_transpose(b, r->b.rows, r->b.columns, work);
    rm_solve_triangular(a, n, work, r->b.rows, upper, !transposed, unit);
    rm_transpose(work, r->b.columns, r->b.rows, b);
  }
  return AOT_OK;
}

/* linalg_solve_triangular(self, B, *, upper, left, unitriangular) */
static aot_status_t solve_triangular(rk_ctx_t *c) {
  rs_stack_t t;
  rs_right_t r;
  AOT_TRY(rs_read_square(c, 0, &t));
  AOT_TRY(rs_read_right(c, &t, 1, 0, &r));
  AOT_TRY(solve_triangle(c, &t, &r, rk_bool(c, 2, 0), 0, rk_bool(c, 4, 0), rk_bool(c, 3, 1)));
  return rs_put_right(c, 0, &r);
}

/* triangular_solve(self, A, upper, transpose, unitriangular) -> (solution, A over the broadcast batch) */
static aot_status_t triangular_solve(rk_ctx_t *c) {
  rs_stack_t t;
  rs_right_t r;
  int64_t sizes[AOT_MAX_RANK];
  rk_array_t clones;
  AOT_TRY(rs_read_square(c, 1, &t));
  AOT_TRY(rs_read_right(c, &t, 0, 0, &r));
  AOT_TRY(solve_triangle(c, &t, &r, rk_bool(c, 2, 1), rk_bool(c, 3, 0), rk_bool(c, 4, 0), 1));
  memcpy(sizes, r.b.a.sizes, sizeof sizes);
  sizes[r.b.a.rank - 2] = sizes[r.b.a.rank - 1] = t.rows;
  AOT_TRY(rk_new_f(c, r.b.a.rank, sizes, &clones));
  for (int64_t i = 0; i < r.b.n; i++)
    memcpy(clones.f + i * t.rows * t.rows, rs_matrix(&t, r.which[i]), (size_t)(t.rows * t.rows) * sizeof(double));
  AOT_TRY(rk_put_f(c, 1, &clones));
  return rs_put_right(c, 0, &r);
}

/* ---- Cholesky ---- */

/* cholesky(self, upper), linalg_cholesky_ex(self, *, upper, check_errors) -> (L, info) */
static aot_status_t cholesky_of(rk_ctx_t *c, int check) {
  rs_stack_t s, t;
  rk_array_t info;
  int upper = rk_bool(c, 1, 0);
  AOT_TRY(rs_read_square(c, 0, &s));
  AOT_TRY(rs_new_numbers(c, &s, 0, 0, 0, &info));
  if (upper) AOT_TRY(rs_transpose_all(c, &s, &t));
  else t = s;
  for (int64_t i = 0; i < s.n; i++) { info.i[i] = rm_cholesky(rs_matrix(&t, i), s.rows); }
  if (check) AOT_TRY(rs_check_all(c, "linalg.cholesky", &info));
  if (upper) AOT_TRY(rs_transpose_all(c, &t, &s));
  else s = t;
  AOT_TRY(rk_put_i(c, 1, &info));
  return rk_put_f(c, 0, &s.a);
}
static aot_status_t cholesky(rk_ctx_t *c) { return cholesky_of(c, 1); }
static aot_status_t cholesky_ex(rk_ctx_t *c) { return cholesky_of(c, rk_bool(c, 2, 0)); }

/* B to the solution of L L^T X = B, or U^T U X = B. */
static aot_status_t solve_factored(rk_ctx_t *c, const rs_stack_t *l, rs_right_t *r, int upper) {
  AOT_TRY(solve_triangle(c, l, r, upper, upper, 0, 1));
  return solve_triangle(c, l, r, upper, !upper, 0, 1);
}

/* cholesky_solve(self, input2, upper) */
static aot_status_t cholesky_solve(rk_ctx_t *c) {
  rs_stack_t l;
  rs_right_t r;
  AOT_TRY(rs_read_square(c, 1, &l));
  AOT_TRY(rs_read_right(c, &l, 0, 0, &r));
  AOT_TRY(solve_factored(c, &l, &r, rk_bool(c, 2, 0)));
  return rs_put_right(c, 0, &r);
}

/* cholesky_inverse(self, upper) */
static aot_status_t cholesky_inverse(rk_ctx_t *c) {
  rs_stack_t l;
  rs_right_t r = {0};
  AOT_TRY(rs_read_square(c, 0, &l));
  AOT_TRY(rs_new_stack(c, &l, l.rows, l.rows, &r.b));
  RK_SCRATCH(c, l.n, r.which);
  for (int64_t i = 0; i < l.n; i++) {
    r.which[i] = i;
    for (int64_t k = 0; k < l.rows; k++) rs_matrix(&r.b, i)[k * l.rows + k] = 1;
  }
  AOT_TRY(solve_factored(c, &l, &r, rk_bool(c, 1, 0)));
  return rs_put_right(c, 0, &r);
}

/* ---- symmetric indefinite, errors ---- */

/* linalg_ldl_factor_ex(self, *, hermitian, check_errors) -> (LD, pivots, info) */
static aot_status_t ldl_factor(rk_ctx_t *c) {
  rs_stack_t s;
  rk_array_t pivots, info;
  AOT_TRY(rs_read_square(c, 0, &s));
  AOT_TRY(rs_new_numbers(c, &s, s.rows, 1, 0, &pivots));
  AOT_TRY(rs_new_numbers(c, &s, 0, 0, 0, &info));
  for (int64_t i = 0; i < s.n; i++) {
    info.i[i] = rm_ldl(rs_matrix(&s, i), s.rows, pivots.i + i * s.rows);
    AOT_TRY(rs_enough_memory(c, info.i[i]));
    for (int64_t r = 0; r < s.rows; r++) /* the upper triangle is not part of it */
      for (int64_t j = r + 1; j < s.rows; j++) rs_matrix(&s, i)[r * s.rows + j] = 0;
  }
  if (rk_bool(c, 2, 0)) AOT_TRY(rs_check_all(c, "linalg.ldl_factor", &info));
  AOT_TRY(rk_put_f(c, 0, &s.a));
  AOT_TRY(rk_put_i(c, 1, &pivots));
  return rk_put_i(c, 2, &info);
}

/* linalg_ldl_solve(LD, pivots, B, *, hermitian) */
static aot_status_t ldl_solve(rk_ctx_t *c) {
  rs_stack_t s;
  rs_right_t r;
  rk_array_t pivots;
  AOT_TRY(rs_read_square(c, 0, &s));
  AOT_TRY(rk_need_i(c, 1, &pivots));
  AOT_TRY(rs_read_right(c, &s, 2, 0, &r));
  RK_CHECK(c, pivots.numel == s.n * s.rows && r.b.rows == s.rows, "pivots or right-hand side do not fit");
  for (int64_t i = 0; i < pivots.numel; i++) {
    int64_t p = pivots.i[i], last = i % s.rows == s.rows - 1;
    RK_CHECK(c, p != 0 && p >= -s.rows && p <= s.rows, "pivot %lld is out of range", (long long)p);
    if (p > 0) continue;
    RK_CHECK(c, !last && pivots.i[i + 1] == p, "pivot %lld has no partner", (long long)p);
    i++;
  }
  for (int64_t i = 0; i < r.b.n; i++)
    AOT_TRY(rs_enough_memory(c, rm_ldl_solve(rs_matrix(&s, r.which[i]), s.rows, pivots.i + r.which[i] * s.rows,
                                             rs_matrix(&r.b, i), r.b.columns)));
  return rs_put_right(c, 0, &r);
}

/* _linalg_check_errors(info, api_name, *, is_matrix): no results */
static aot_status_t check_errors(rk_ctx_t *c) {
  rk_array_t info;
  const rk_arg_t *name = &c->call->args[1];
  char function[80];
  AOT_TRY(rk_need_i(c, 0, &info));
  snprintf(function, sizeof function, "%.*s", name->kind == AOT_ARG_STR ? (int)(name->n < 79 ? name->n : 79) : 0,
           name->u.chars);
  return rs_check_all(c, function, &info);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name ".default", fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("linalg_lu_factor_ex", lu_factor),
    ROW("linalg_lu", lu),
    ROW("lu_unpack", lu_unpack),
    ROW("linalg_lu_solve", lu_solve),
    ROW("_linalg_det", det),
    ROW("_linalg_slogdet", slogdet),
    ROW("_linalg_solve_ex", solve),
    ROW("linalg_inv_ex", inverse),
    ROW("linalg_solve_triangular", solve_triangular),
    ROW("triangular_solve", triangular_solve),
    ROW("cholesky", cholesky),
    ROW("linalg_cholesky_ex", cholesky_ex),
    ROW("cholesky_solve", cholesky_solve),
    ROW("cholesky_inverse", cholesky_inverse),
    ROW("linalg_ldl_factor_ex", ldl_factor),
    ROW("linalg_ldl_solve", ldl_solve),
    ROW("_linalg_check_errors", check_errors),
};
const rk_family_t rk_family_linalg = RK_FAMILY(rows);
