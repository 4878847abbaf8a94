/* Linear algebra of batches of matrices: factorisations, solves, inverses, determinants. The algorithms are in rk_matrix.c.
 *
 * det and slogdet factor the transpose, as PyTorch does with the row-major matrices that it usually gets: that is what their
 * LU results hold. Signs of singular and eigen vectors are arbitrary, in PyTorch too. */
#include "common/kernels/rk_matrix.h"
#include "common/kernels/rk_core.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* A stack of matrices over the leading dimensions. */
typedef struct stack {
  rk_array a;
  int64_t n, rows, columns; /* n matrices of rows x columns */
} stack;

static aot_status_t read_stack(rk_ctx *c, uint32_t arg, stack *s) {
  AOT_TRY(rk_need_f(c, arg, &s->a));
  RK_CHECK(c, s->a.rank >= 2, "argument %u has rank %d; matrices are needed", arg, s->a.rank);
  s->rows = s->a.sizes[s->a.rank - 2];
  s->columns = s->a.sizes[s->a.rank - 1];
  s->n = 1;
  for (int32_t d = 0; d < s->a.rank - 2; d++) s->n *= s->a.sizes[d];
  return AOT_OK;
}

static aot_status_t read_square(rk_ctx *c, uint32_t arg, stack *s) {
  AOT_TRY(read_stack(c, arg, s));
  RK_CHECK(c, s->rows == s->columns, "argument %u has matrices of %lld x %lld, not square ones", arg, (long long)s->rows, (long long)s->columns);
  return AOT_OK;
}

static double *matrix(const stack *s, int64_t i) { return s->a.f + i * s->rows * s->columns; }

/* Matrices of another size over the same leading dimensions. */
static aot_status_t new_stack(rk_ctx *c, const stack *like, int64_t rows, int64_t columns, stack *out) {
  int64_t sizes[AOT_MAX_RANK];
  memcpy(sizes, like->a.sizes, sizeof sizes);
  sizes[like->a.rank - 2] = rows;
  sizes[like->a.rank - 1] = columns;
  out->n = like->n;
  out->rows = rows;
  out->columns = columns;
  return rk_new_f(c, like->a.rank, sizes, &out->a);
}

/* Numbers over the leading dimensions, `per` of each matrix (a trailing dimension when keep is set). */
static aot_status_t new_numbers(rk_ctx *c, const stack *like, int64_t per, int keep, int is_float, rk_array *out) {
  int64_t sizes[AOT_MAX_RANK];
  memcpy(sizes, like->a.sizes, sizeof sizes);
  sizes[like->a.rank - 2] = per;
  return is_float ? rk_new_f(c, like->a.rank - 2 + keep, sizes, out) : rk_new_i(c, like->a.rank - 2 + keep, sizes, out);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static aot_status_t transpose_all(rk_ctx *c, const stack *s, stack *out) {
  AOT_TRY(new_stack(c, s, s->columns, s->rows, out));
  for (int64_t i = 0; i < s->n; i++) rm_transpose(matrix(s, i), s->rows, s->columns, matrix(out, i));
  return AOT_OK;
}

/* ---- LU ---- */

static aot_status_t factor(rk_ctx *c, stack *s, int pivoting, rk_array *pivots, rk_array *info) {
  int64_t k = smaller(s->rows, s->columns);
  AOT_TRY(new_numbers(c, s, k, 1, 0, pivots));
  AOT_TRY(new_numbers(c, s, 0, 0, 0, info));
  for (int64_t i = 0; i < s->n; i++) info->i[i] = rm_lu(matrix(s, i), s->rows, s->columns, pivots->i + i * k, pivoting);
  return AOT_OK;
}

/* linalg_lu_factor_ex(A, *, pivot, check_errors) -> (LU, pivots, info) */
static aot_status_t lu_factor(rk_ctx *c) {
  stack s;
  rk_array pivots, info;
  AOT_TRY(read_stack(c, 0, &s));
  AOT_TRY(factor(c, &s, rk_bool(c, 1, 1), &pivots, &info));
  AOT_TRY(rk_put_f(c, 0, &s.a));
  AOT_TRY(rk_put_i(c, 1, &pivots));
  return rk_put_i(c, 2, &info);
}

static aot_status_t check_pivots(rk_ctx *c, const stack *lu, const rk_array *pivots) {
  int64_t k = smaller(lu->rows, lu->columns);
  RK_CHECK(c, pivots->numel == lu->n * k, "%lld pivots for %lld matrices", (long long)pivots->numel, (long long)lu->n);
  for (int64_t i = 0; i < pivots->numel; i++)
    RK_CHECK(c, pivots->i[i] >= 1 && pivots->i[i] <= lu->rows, "pivot %lld is out of range", (long long)pivots->i[i]);
  return AOT_OK;
}

/* P, L, U of factors; each is left out when its declared result is empty. */
static aot_status_t put_plu(rk_ctx *c, const stack *lu, const rk_array *pivots) {
  stack p, l, u;
  int64_t k = smaller(lu->rows, lu->columns);
  AOT_TRY(new_stack(c, lu, lu->rows, lu->rows, &p));
  AOT_TRY(new_stack(c, lu, lu->rows, k, &l));
  AOT_TRY(new_stack(c, lu, k, lu->columns, &u));
  for (int64_t i = 0; i < lu->n; i++) {
    const double *from = matrix(lu, i);
    for (int64_t r = 0; r < lu->rows; r++) matrix(&p, i)[r * lu->rows + r] = 1;
    rm_permute(matrix(&p, i), lu->rows, pivots->i + i * k, k, 1);
    for (int64_t r = 0; r < lu->rows; r++)
      for (int64_t j = 0; j < lu->columns; j++) {
        if (r > j) matrix(&l, i)[r * k + j] = from[r * lu->columns + j];
        else matrix(&u, i)[r * lu->columns + j] = from[r * lu->columns + j];
      }
    for (int64_t r = 0; r < k; r++) matrix(&l, i)[r * k + r] = 1;
  }
  if (rk_wants(c, 0) && rk_numel(rk_result(c, 0)) == p.a.numel) AOT_TRY(rk_put_f(c, 0, &p.a));
  if (rk_wants(c, 1) && rk_numel(rk_result(c, 1)) == l.a.numel) AOT_TRY(rk_put_f(c, 1, &l.a));
  if (rk_wants(c, 2) && rk_numel(rk_result(c, 2)) == u.a.numel) AOT_TRY(rk_put_f(c, 2, &u.a));
  return AOT_OK;
}

static aot_status_t lu(rk_ctx *c) {
  stack s;
  rk_array pivots, info;
  AOT_TRY(read_stack(c, 0, &s));
  AOT_TRY(factor(c, &s, rk_bool(c, 1, 1), &pivots, &info));
  return put_plu(c, &s, &pivots);
}
static aot_status_t lu_unpack(rk_ctx *c) {
  stack s;
  rk_array pivots;
  AOT_TRY(read_stack(c, 0, &s));
  AOT_TRY(rk_need_i(c, 1, &pivots));
  AOT_TRY(check_pivots(c, &s, &pivots));
  return put_plu(c, &s, &pivots);
}

/* det and slogdet: result 0, (1), LU, pivots */
static aot_status_t determinant(rk_ctx *c, int logarithm) {
  stack a, s;
  rk_array pivots, info, det, magnitude;
  AOT_TRY(read_square(c, 0, &a));
  AOT_TRY(transpose_all(c, &a, &s));
  AOT_TRY(factor(c, &s, 1, &pivots, &info));
  AOT_TRY(new_numbers(c, &s, 0, 0, 1, &det));
  AOT_TRY(new_numbers(c, &s, 0, 0, 1, &magnitude));
  for (int64_t i = 0; i < s.n; i++) {
    det.f[i] = 1;
    for (int64_t k = 0; k < s.rows; k++) {
      double d = matrix(&s, i)[k * s.rows + k];
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
static aot_status_t det(rk_ctx *c) { return determinant(c, 0); }
static aot_status_t slogdet(rk_ctx *c) { return determinant(c, 1); }

/* ---- solves ---- */

/* B with its leading dimensions broadcast against A's; a vector right-hand side is a matrix of one column. */
typedef struct right_side {
  stack b;
  int is_vector;
  int64_t *which; /* the matrix of A for each of B */
} right_side;

static aot_status_t read_right(rk_ctx *c, const stack *a, uint32_t arg, int vector_allowed, right_side *r) {
  const rk_tensor *t;
  rk_tensor column;
  int64_t sizes[AOT_MAX_RANK], at[AOT_MAX_RANK] = {0};
  int32_t rank, lead_a = a->a.rank - 2;
  AOT_TRY(rk_need_tensor(c, arg, &t));
  r->is_vector = vector_allowed && (t->rank == 1 || (t->rank == a->a.rank - 1 && memcmp(t->sizes, a->a.sizes, (size_t)t->rank * sizeof t->sizes[0]) == 0));
  column = *t;
  if (r->is_vector) {
    RK_CHECK(c, t->rank < AOT_MAX_RANK, "too many dimensions");
    column.sizes[column.rank] = 1;
    column.strides[column.rank++] = 0;
  }
  RK_CHECK(c, column.rank >= 2, "the right-hand side has rank %d", t->rank);
  rank = (column.rank > a->a.rank ? column.rank : a->a.rank);
  for (int32_t d = 0; d < rank - 2; d++) {
    int64_t sa = d < rank - a->a.rank ? 1 : a->a.sizes[d - (rank - a->a.rank)], sb = d < rank - column.rank ? 1 : column.sizes[d - (rank - column.rank)];
    RK_CHECK(c, sa == sb || sa == 1 || sb == 1, "leading sizes %lld and %lld do not broadcast", (long long)sa, (long long)sb);
    sizes[d] = sa == 1 ? sb : sa;
  }
  sizes[rank - 2] = column.sizes[column.rank - 2];
  sizes[rank - 1] = column.sizes[column.rank - 1];
  AOT_TRY(rk_dense_expanded(c, &column, rank, sizes, &r->b.a));
  RK_CHECK(c, r->b.a.f, "the right-hand side is no float tensor");
  r->b.rows = sizes[rank - 2];
  r->b.columns = sizes[rank - 1];
  r->b.n = 1;
  for (int32_t d = 0; d < rank - 2; d++) r->b.n *= sizes[d];
  RK_SCRATCH(c, r->b.n, r->which);
  for (int64_t i = 0; i < r->b.n; i++, rk_advance(at, rank - 2, sizes))
    for (int32_t d = 0; d < lead_a; d++) r->which[i] = r->which[i] * a->a.sizes[d] + (a->a.sizes[d] == 1 ? 0 : at[d + rank - 2 - lead_a]);
  return AOT_OK;
}

static aot_status_t put_right(rk_ctx *c, uint32_t result, right_side *r) {
  if (r->is_vector) r->b.a.rank--;
  return rk_put_f(c, result, &r->b.a);
}

/* Solve from LU factors: op(A) X = B, or X op(A) = B (through the transpose). */
static aot_status_t solve_lu(rk_ctx *c, const stack *lu_of, const rk_array *pivots, right_side *r, int left, int transposed) {
  int64_t n = lu_of->rows;
  double *work;
  RK_CHECK(c, (left ? r->b.rows : r->b.columns) == n, "the right-hand side does not fit matrices of order %lld", (long long)n);
  RK_SCRATCH(c, r->b.rows * r->b.columns, work);
  for (int64_t i = 0; i < r->b.n; i++) {
    double *b = matrix(&r->b, i);
    const double *a = matrix(lu_of, r->which[i]);
    const int64_t *p = pivots->i + r->which[i] * n;
    if (left) {
      rm_lu_solve(a, n, p, b, r->b.columns, transposed);
      continue;
    }
    rm_transpose(b, r->b.rows, r->b.columns, work);
    rm_lu_solve(a, n, p, work, r->b.rows, !transposed);
    rm_transpose(work, r->b.columns, r->b.rows, b);
  }
  return AOT_OK;
}

/* _linalg_solve_ex(A, B, *, left, check_errors) -> (result, LU, pivots, info); linalg_solve gives the first */
static aot_status_t solve(rk_ctx *c) {
  stack s;
  right_side r;
  rk_array pivots, info;
  AOT_TRY(read_square(c, 0, &s));
  AOT_TRY(read_right(c, &s, 1, 1, &r));
  AOT_TRY(factor(c, &s, 1, &pivots, &info));
  AOT_TRY(solve_lu(c, &s, &pivots, &r, rk_bool(c, 2, 1), 0));
  AOT_TRY(rk_put_f(c, 1, &s.a));
  AOT_TRY(rk_put_i(c, 2, &pivots));
  AOT_TRY(rk_put_i(c, 3, &info));
  return put_right(c, 0, &r);
}

/* linalg_lu_solve(LU, pivots, B, *, left, adjoint) */
static aot_status_t lu_solve(rk_ctx *c) {
  stack s;
  right_side r;
  rk_array pivots;
  AOT_TRY(read_square(c, 0, &s));
  AOT_TRY(rk_need_i(c, 1, &pivots));
  AOT_TRY(check_pivots(c, &s, &pivots));
  AOT_TRY(read_right(c, &s, 2, 0, &r));
  AOT_TRY(solve_lu(c, &s, &pivots, &r, rk_bool(c, 3, 1), rk_bool(c, 4, 0)));
  return put_right(c, 0, &r);
}

/* linalg_inv_ex(A, *, check_errors) -> (inverse, info) */
static aot_status_t inverse(rk_ctx *c) {
  stack s, y;
  rk_array pivots, info;
  AOT_TRY(read_square(c, 0, &s));
  AOT_TRY(factor(c, &s, 1, &pivots, &info));
  AOT_TRY(new_stack(c, &s, s.rows, s.rows, &y));
  for (int64_t i = 0; i < s.n; i++) {
    for (int64_t k = 0; k < s.rows; k++) matrix(&y, i)[k * s.rows + k] = 1;
    rm_lu_solve(matrix(&s, i), s.rows, pivots.i + i * s.rows, matrix(&y, i), s.rows, 0);
  }
  AOT_TRY(rk_put_i(c, 1, &info));
  return rk_put_f(c, 0, &y.a);
}

static aot_status_t solve_triangle(rk_ctx *c, const stack *t, right_side *r, int upper, int transposed, int unit, int left) {
  int64_t n = t->rows;
  double *work;
  RK_CHECK(c, (left ? r->b.rows : r->b.columns) == n, "the right-hand side does not fit matrices of order %lld", (long long)n);
  RK_SCRATCH(c, r->b.rows * r->b.columns, work);
  for (int64_t i = 0; i < r->b.n; i++) {
    double *b = matrix(&r->b, i);
    const double *a = matrix(t, r->which[i]);
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
static aot_status_t solve_triangular(rk_ctx *c) {
  stack t;
  right_side r;
  AOT_TRY(read_square(c, 0, &t));
  AOT_TRY(read_right(c, &t, 1, 0, &r));
  AOT_TRY(solve_triangle(c, &t, &r, rk_bool(c, 2, 0), 0, rk_bool(c, 4, 0), rk_bool(c, 3, 1)));
  return put_right(c, 0, &r);
}

/* triangular_solve(self, A, upper, transpose, unitriangular) -> (solution, A) */
static aot_status_t triangular_solve(rk_ctx *c) {
  stack t;
  right_side r;
  AOT_TRY(read_square(c, 1, &t));
  AOT_TRY(read_right(c, &t, 0, 0, &r));
  AOT_TRY(solve_triangle(c, &t, &r, rk_bool(c, 2, 1), rk_bool(c, 3, 0), rk_bool(c, 4, 0), 1));
  AOT_TRY(rk_put_f(c, 1, &t.a));
  return put_right(c, 0, &r);
}

/* ---- Cholesky ---- */

/* cholesky(self, upper), linalg_cholesky_ex(self, *, upper, check_errors) -> (L, info) */
static aot_status_t cholesky_of(rk_ctx *c, int check) {
  stack s, t;
  rk_array info;
  int upper = rk_bool(c, 1, 0);
  AOT_TRY(read_square(c, 0, &s));
  AOT_TRY(new_numbers(c, &s, 0, 0, 0, &info));
  if (upper) AOT_TRY(transpose_all(c, &s, &t));
  else t = s;
  for (int64_t i = 0; i < s.n; i++) {
    info.i[i] = rm_cholesky(matrix(&t, i), s.rows);
    RK_CHECK(c, !check || info.i[i] == 0, "matrix %lld: the leading minor of order %lld is not positive", (long long)i, (long long)info.i[i]);
  }
  if (upper) AOT_TRY(transpose_all(c, &t, &s));
  else s = t;
  AOT_TRY(rk_put_i(c, 1, &info));
  return rk_put_f(c, 0, &s.a);
}
static aot_status_t cholesky(rk_ctx *c) { return cholesky_of(c, 1); }
static aot_status_t cholesky_ex(rk_ctx *c) { return cholesky_of(c, rk_bool(c, 2, 0)); }

/* B to the solution of L L^T X = B, or U^T U X = B. */
static aot_status_t solve_factored(rk_ctx *c, const stack *l, right_side *r, int upper) {
  AOT_TRY(solve_triangle(c, l, r, upper, upper, 0, 1));
  return solve_triangle(c, l, r, upper, !upper, 0, 1);
}

/* cholesky_solve(self, input2, upper) */
static aot_status_t cholesky_solve(rk_ctx *c) {
  stack l;
  right_side r;
  AOT_TRY(read_square(c, 1, &l));
  AOT_TRY(read_right(c, &l, 0, 0, &r));
  AOT_TRY(solve_factored(c, &l, &r, rk_bool(c, 2, 0)));
  return put_right(c, 0, &r);
}

/* cholesky_inverse(self, upper) */
static aot_status_t cholesky_inverse(rk_ctx *c) {
  stack l;
  right_side r = {0};
  AOT_TRY(read_square(c, 0, &l));
  AOT_TRY(new_stack(c, &l, l.rows, l.rows, &r.b));
  RK_SCRATCH(c, l.n, r.which);
  for (int64_t i = 0; i < l.n; i++) {
    r.which[i] = i;
    for (int64_t k = 0; k < l.rows; k++) matrix(&r.b, i)[k * l.rows + k] = 1;
  }
  AOT_TRY(solve_factored(c, &l, &r, rk_bool(c, 1, 0)));
  return put_right(c, 0, &r);
}

/* ---- QR ---- */

/* geqrf(self) -> (a, tau) */
static aot_status_t geqrf(rk_ctx *c) {
  stack s;
  rk_array tau;
  int64_t k;
  AOT_TRY(read_stack(c, 0, &s));
  k = smaller(s.rows, s.columns);
  AOT_TRY(new_numbers(c, &s, k, 1, 1, &tau));
  for (int64_t i = 0; i < s.n; i++) rm_qr(matrix(&s, i), s.rows, s.columns, tau.f + i * k);
  AOT_TRY(rk_put_f(c, 0, &s.a));
  return rk_put_f(c, 1, &tau);
}

/* linalg_qr(A, mode) -> (Q, R): reduced, complete, r */
static aot_status_t qr(rk_ctx *c) {
  stack s, q, r;
  double *tau;
  int complete = rk_str_is(c, 1, "complete"), only_r = rk_str_is(c, 1, "r");
  int64_t k, width;
  AOT_TRY(read_stack(c, 0, &s));
  k = smaller(s.rows, s.columns);
  width = complete ? s.rows : k;
  RK_SCRATCH(c, k, tau);
  AOT_TRY(new_stack(c, &s, s.rows, width, &q));
  AOT_TRY(new_stack(c, &s, width, s.columns, &r));
  for (int64_t i = 0; i < s.n; i++) {
    rm_qr(matrix(&s, i), s.rows, s.columns, tau);
    for (int64_t j = 0; j < width; j++) matrix(&q, i)[j * width + j] = 1;
    rm_apply_q(matrix(&s, i), s.columns, tau, k, matrix(&q, i), s.rows, width, 0);
    for (int64_t row = 0; row < k; row++)
      for (int64_t j = row; j < s.columns; j++) matrix(&r, i)[row * s.columns + j] = matrix(&s, i)[row * s.columns + j];
  }
  if (!only_r) AOT_TRY(rk_put_f(c, 0, &q.a));
  return rk_put_f(c, 1, &r.a);
}

/* linalg_householder_product(input, tau): the first columns of Q */
static aot_status_t householder_product(rk_ctx *c) {
  stack s, q;
  rk_array tau;
  int64_t k;
  AOT_TRY(read_stack(c, 0, &s));
  AOT_TRY(rk_need_f(c, 1, &tau));
  k = s.n ? tau.numel / s.n : 0;
  RK_CHECK(c, tau.rank >= 1 && k * s.n == tau.numel && k <= s.columns && s.columns <= s.rows, "%lld factors do not fit %lld x %lld", (long long)k,
           (long long)s.rows, (long long)s.columns);
  AOT_TRY(new_stack(c, &s, s.rows, s.columns, &q));
  for (int64_t i = 0; i < s.n; i++) {
    for (int64_t j = 0; j < s.columns; j++) matrix(&q, i)[j * s.columns + j] = 1;
    rm_apply_q(matrix(&s, i), s.columns, tau.f + i * k, k, matrix(&q, i), s.rows, s.columns, 0);
  }
  return rk_put_f(c, 0, &q.a);
}

/* ormqr(self, tau, other, left, transpose): op(Q) other, or other op(Q) */
static aot_status_t ormqr(rk_ctx *c) {
  stack s, other, flipped;
  rk_array tau;
  int left = rk_bool(c, 3, 1), transposed = rk_bool(c, 4, 0);
  int64_t k;
  AOT_TRY(read_stack(c, 0, &s));
  AOT_TRY(rk_need_f(c, 1, &tau));
  AOT_TRY(read_stack(c, 2, &other));
  k = s.n ? tau.numel / s.n : 0;
  RK_CHECK(c, k * s.n == tau.numel && k <= s.columns && k <= s.rows && other.n == s.n && (left ? other.rows : other.columns) == s.rows,
           "reflectors and matrix do not fit");
  if (!left) AOT_TRY(transpose_all(c, &other, &flipped));
  else flipped = other;
  for (int64_t i = 0; i < s.n; i++)
    rm_apply_q(matrix(&s, i), s.columns, tau.f + i * k, k, matrix(&flipped, i), flipped.rows, flipped.columns, left ? transposed : !transposed);
  if (!left) AOT_TRY(transpose_all(c, &flipped, &other));
  else other = flipped;
  return rk_put_f(c, 0, &other.a);
}

/* ---- singular values ---- */

/* Thin factors of every matrix: u rows x k, sv k, v columns x k. */
static aot_status_t thin_svd(rk_ctx *c, const stack *s, stack *u, rk_array *sv, stack *v) {
  int64_t k = smaller(s->rows, s->columns);
  int wide = s->rows < s->columns;
  stack tall;
  AOT_TRY(new_stack(c, s, s->rows, k, u));
  AOT_TRY(new_stack(c, s, s->columns, k, v));
  AOT_TRY(new_numbers(c, s, k, 1, 1, sv));
  if (wide) AOT_TRY(transpose_all(c, s, &tall));
  else tall = *s;
  for (int64_t i = 0; i < s->n; i++)
    rm_svd(matrix(&tall, i), tall.rows, tall.columns, matrix(wide ? v : u, i), sv->f + i * k, matrix(wide ? u : v, i));
  return AOT_OK;
}

/* _linalg_svd(A, full_matrices, compute_uv, *, driver) -> (U, S, Vh) */
static aot_status_t svd(rk_ctx *c) {
  stack s, u, v, full_u, full_v, vh;
  rk_array sv;
  int64_t k;
  AOT_TRY(read_stack(c, 0, &s));
  AOT_TRY(thin_svd(c, &s, &u, &sv, &v));
  AOT_TRY(rk_put_f(c, 1, &sv));
  if (!rk_bool(c, 2, 1)) return AOT_OK;
  k = smaller(s.rows, s.columns);
  if (rk_bool(c, 1, 0)) {
    AOT_TRY(new_stack(c, &s, s.rows, s.rows, &full_u));
    AOT_TRY(new_stack(c, &s, s.columns, s.columns, &full_v));
    for (int64_t i = 0; i < s.n; i++) {
      for (int64_t r = 0; r < s.rows; r++) memcpy(matrix(&full_u, i) + r * s.rows, matrix(&u, i) + r * k, (size_t)k * sizeof(double));
      for (int64_t r = 0; r < s.columns; r++) memcpy(matrix(&full_v, i) + r * s.columns, matrix(&v, i) + r * k, (size_t)k * sizeof(double));
      rm_complete_basis(matrix(&full_u, i), s.rows, s.rows, k);
      rm_complete_basis(matrix(&full_v, i), s.columns, s.columns, k);
    }
    u = full_u;
    v = full_v;
  }
  AOT_TRY(transpose_all(c, &v, &vh));
  AOT_TRY(rk_put_f(c, 0, &u.a));
  return rk_put_f(c, 2, &vh.a);
}

/* The pseudo-inverse of matrix i: singular values up to limit count as 0. Returns the rank. */
static int64_t pseudo_inverse(const stack *u, const double *sv, const stack *v, int64_t i, double limit, double *out) {
  int64_t k = u->columns, rank = 0;
  memset(out, 0, (size_t)(v->rows * u->rows) * sizeof *out);
  for (int64_t t = 0; t < k; t++) {
    if (!(sv[t] > limit)) continue;
    rank++;
    for (int64_t r = 0; r < v->rows; r++)
      for (int64_t j = 0; j < u->rows; j++) out[r * u->rows + j] += matrix(v, i)[r * k + t] / sv[t] * matrix(u, i)[j * k + t];
  }
  return rank;
}

/* linalg_pinv.atol_rtol_tensor(self, *, atol, rtol, hermitian) */
static aot_status_t pinv(rk_ctx *c) {
  stack s, u, v, y;
  rk_array sv, atol, rtol;
  double eps;
  AOT_TRY(read_stack(c, 0, &s));
  AOT_TRY(rk_get_f(c, 1, &atol));
  AOT_TRY(rk_get_f(c, 2, &rtol));
  RK_CHECK(c, (!atol.f || atol.numel == 1 || atol.numel == s.n) && (!rtol.f || rtol.numel == 1 || rtol.numel == s.n), "tolerances do not fit");
  eps = rk_dtype_eps(s.a.dtype) * (double)(s.rows > s.columns ? s.rows : s.columns);
  AOT_TRY(thin_svd(c, &s, &u, &sv, &v));
  AOT_TRY(new_stack(c, &s, s.columns, s.rows, &y));
  for (int64_t i = 0; i < s.n; i++) {
    const double *own = sv.f + i * u.columns;
    double a = atol.f ? atol.f[atol.numel == 1 ? 0 : i] : 0;
    double r = rtol.f ? rtol.f[rtol.numel == 1 ? 0 : i] : a > 0 ? 0 : eps;
    pseudo_inverse(&u, own, &v, i, fmax(a, r * (u.columns ? own[0] : 0)), matrix(&y, i));
  }
  return rk_put_f(c, 0, &y.a);
}

/* linalg_lstsq(self, b, rcond, *, driver) -> (solution, residuals, rank, singular values): least squares of least norm. What
 * a driver does not compute is declared empty. */
static aot_status_t lstsq(rk_ctx *c) {
  stack s, u, v, y, inv, copy;
  right_side r;
  rk_array sv, residuals, rank;
  double rcond;
  int full_rank = 1;
  AOT_TRY(read_stack(c, 0, &s));
  AOT_TRY(read_right(c, &s, 1, 1, &r));
  RK_CHECK(c, r.b.rows == s.rows && r.b.n == s.n, "the right-hand side does not fit");
  rcond = rk_float(c, 2, rk_dtype_eps(s.a.dtype) * (double)(s.rows > s.columns ? s.rows : s.columns));
  AOT_TRY(new_stack(c, &s, s.rows, s.columns, &copy));
  memcpy(copy.a.f, s.a.f, (size_t)s.a.numel * sizeof(double));
  AOT_TRY(thin_svd(c, &s, &u, &sv, &v));
  AOT_TRY(new_stack(c, &r.b, s.columns, r.b.columns, &y));
  AOT_TRY(new_stack(c, &s, s.columns, s.rows, &inv));
  AOT_TRY(new_numbers(c, &s, 0, 0, 0, &rank));
  AOT_TRY(new_numbers(c, &s, r.b.columns, 1, 1, &residuals));
  for (int64_t i = 0; i < s.n; i++) {
    const double *own = sv.f + i * u.columns;
    rank.i[i] = pseudo_inverse(&u, own, &v, i, rcond * (u.columns ? own[0] : 0), matrix(&inv, i));
    full_rank = full_rank && rank.i[i] == s.columns;
    rm_multiply(matrix(&inv, i), matrix(&r.b, i), matrix(&y, i), s.columns, s.rows, r.b.columns);
    for (int64_t j = 0; j < r.b.columns; j++)
      for (int64_t row = 0; row < s.rows; row++) {
        double rest = matrix(&r.b, i)[row * r.b.columns + j];
        for (int64_t k = 0; k < s.columns; k++) rest -= matrix(&copy, i)[row * s.columns + k] * matrix(&y, i)[k * r.b.columns + j];
        residuals.f[i * r.b.columns + j] += rest * rest;
      }
  }
  if (rk_wants(c, 1) && full_rank && rk_numel(rk_result(c, 1)) == residuals.numel) AOT_TRY(rk_put_f(c, 1, &residuals));
  if (rk_wants(c, 2) && rk_numel(rk_result(c, 2)) == rank.numel) AOT_TRY(rk_put_i(c, 2, &rank));
  if (rk_wants(c, 3) && rk_numel(rk_result(c, 3)) == sv.numel) AOT_TRY(rk_put_f(c, 3, &sv));
  if (r.is_vector) y.a.rank--;
  return rk_put_f(c, 0, &y.a);
}

/* _linalg_eigh(A, UPLO, compute_v) -> (eigenvalues, eigenvectors) */
static aot_status_t eigh(rk_ctx *c) {
  stack s, v, lower;
  rk_array w;
  AOT_TRY(read_square(c, 0, &s));
  if (rk_str_is(c, 1, "U")) AOT_TRY(transpose_all(c, &s, &lower));
  else lower = s;
  AOT_TRY(new_stack(c, &s, s.rows, s.rows, &v));
  AOT_TRY(new_numbers(c, &s, s.rows, 1, 1, &w));
  for (int64_t i = 0; i < s.n; i++) rm_eigh(matrix(&lower, i), s.rows, w.f + i * s.rows, matrix(&v, i));
  AOT_TRY(rk_put_f(c, 0, &w));
  return rk_bool(c, 2, 1) ? rk_put_f(c, 1, &v.a) : AOT_OK;
}

/* ---- symmetric indefinite, exponential, errors ---- */

/* linalg_ldl_factor_ex(self, *, hermitian, check_errors) -> (LD, pivots, info) */
static aot_status_t ldl_factor(rk_ctx *c) {
  stack s;
  rk_array pivots, info;
  AOT_TRY(read_square(c, 0, &s));
  AOT_TRY(new_numbers(c, &s, s.rows, 1, 0, &pivots));
  AOT_TRY(new_numbers(c, &s, 0, 0, 0, &info));
  for (int64_t i = 0; i < s.n; i++) {
    info.i[i] = rm_ldl(matrix(&s, i), s.rows, pivots.i + i * s.rows);
    for (int64_t r = 0; r < s.rows; r++) /* the upper triangle is not part of it */
      for (int64_t j = r + 1; j < s.rows; j++) matrix(&s, i)[r * s.rows + j] = 0;
  }
  AOT_TRY(rk_put_f(c, 0, &s.a));
  AOT_TRY(rk_put_i(c, 1, &pivots));
  return rk_put_i(c, 2, &info);
}

/* linalg_ldl_solve(LD, pivots, B, *, hermitian) */
static aot_status_t ldl_solve(rk_ctx *c) {
  stack s;
  right_side r;
  rk_array pivots;
  AOT_TRY(read_square(c, 0, &s));
  AOT_TRY(rk_need_i(c, 1, &pivots));
  AOT_TRY(read_right(c, &s, 2, 0, &r));
  RK_CHECK(c, pivots.numel == s.n * s.rows && r.b.rows == s.rows, "pivots or right-hand side do not fit");
  for (int64_t i = 0; i < pivots.numel; i++) {
    int64_t p = pivots.i[i], last = i % s.rows == s.rows - 1;
    RK_CHECK(c, p != 0 && p >= -s.rows && p <= s.rows, "pivot %lld is out of range", (long long)p);
    if (p > 0) continue;
    RK_CHECK(c, !last && pivots.i[i + 1] == p, "pivot %lld has no partner", (long long)p);
    i++;
  }
  for (int64_t i = 0; i < r.b.n; i++) rm_ldl_solve(matrix(&s, r.which[i]), s.rows, pivots.i + r.which[i] * s.rows, matrix(&r.b, i), r.b.columns);
  return put_right(c, 0, &r);
}

static aot_status_t matrix_exp(rk_ctx *c) {
  stack s, y;
  double *work;
  AOT_TRY(read_square(c, 0, &s));
  AOT_TRY(new_stack(c, &s, s.rows, s.rows, &y));
  RK_SCRATCH(c, 3 * s.rows * s.rows, work);
  for (int64_t i = 0; i < s.n; i++) rm_exp(matrix(&s, i), s.rows, matrix(&y, i), work);
  return rk_put_f(c, 0, &y.a);
}

/* _linalg_check_errors(info, api_name, *, is_matrix): no results */
static aot_status_t check_errors(rk_ctx *c) {
  rk_array info;
  const rk_arg *name = &c->call->args[1];
  AOT_TRY(rk_need_i(c, 0, &info));
  for (int64_t i = 0; i < info.numel; i++)
    RK_CHECK(c, info.i[i] == 0, "%.*s failed on matrix %lld with info %lld", name->kind == AOT_ARG_STR ? (int)(name->n < 80 ? name->n : 80) : 0, name->u.chars,
             (long long)i, (long long)info.i[i]);
  return AOT_OK;
}

#define ROW(name, fn) {"aten." name ".default", fn, NULL, NULL, 0}
static const rk_kernel rows[] = {
    ROW("linalg_lu_factor_ex", lu_factor),
    ROW("linalg_lu_factor", lu_factor),
    ROW("linalg_lu", lu),
    ROW("lu_unpack", lu_unpack),
    ROW("linalg_lu_solve", lu_solve),
    ROW("_linalg_det", det),
    ROW("linalg_det", det),
    ROW("_linalg_slogdet", slogdet),
    ROW("linalg_slogdet", slogdet),
    ROW("_linalg_solve_ex", solve),
    ROW("linalg_solve", solve),
    ROW("linalg_inv_ex", inverse),
    ROW("linalg_inv", inverse),
    ROW("linalg_solve_triangular", solve_triangular),
    ROW("triangular_solve", triangular_solve),
    ROW("cholesky", cholesky),
    ROW("linalg_cholesky_ex", cholesky_ex),
    ROW("linalg_cholesky", cholesky),
    ROW("cholesky_solve", cholesky_solve),
    ROW("cholesky_inverse", cholesky_inverse),
    ROW("geqrf", geqrf),
    ROW("linalg_qr", qr),
    ROW("linalg_householder_product", householder_product),
    ROW("ormqr", ormqr),
    ROW("_linalg_svd", svd),
    {"aten.linalg_pinv.atol_rtol_tensor", pinv, NULL, NULL, 0},
    ROW("linalg_lstsq", lstsq),
    ROW("_linalg_eigh", eigh),
    ROW("linalg_ldl_factor_ex", ldl_factor),
    ROW("linalg_ldl_solve", ldl_solve),
    ROW("linalg_matrix_exp", matrix_exp),
    ROW("matrix_exp", matrix_exp),
    ROW("_linalg_check_errors", check_errors),
};
const rk_family rk_family_linalg = RK_FAMILY(rows);
