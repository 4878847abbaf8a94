/* Orthogonal factorizations and what is made of them: QR, singular values, eigenvalues, pseudo-inverse, least squares;
 * and the exponential. Through LAPACK (rk_matrix.c), in double. Signs of singular and eigen vectors are arbitrary,
 * in PyTorch too. */
#include "rk_stack.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* ---- QR ---- */

/* geqrf(self) -> (a, tau) */
static aot_status_t geqrf(rk_ctx_t *c) {
  rs_stack_t s;
  rk_array_t tau;
  int64_t k;
  AOT_TRY(rs_read_stack(c, 0, &s));
  k = rs_smaller(s.rows, s.columns);
  AOT_TRY(rs_new_numbers(c, &s, k, 1, 1, &tau));
  for (int64_t i = 0; i < s.n; i++)
    AOT_TRY(rs_enough_memory(c, rm_qr(rs_matrix(&s, i), s.rows, s.columns, tau.f + i * k)));
  AOT_TRY(rk_put_f(c, 0, &s.a));
  return rk_put_f(c, 1, &tau);
}

/* The first `width` columns of Q, of k reflectors in the columns of one. */
static aot_status_t form_q(rk_ctx_t *c, const double *reflectors, int64_t n, const double *tau, int64_t k, double *q,
                           int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < k; j++) q[r * width + j] = reflectors[r * n + j];
  return rs_enough_memory(c, rm_form_q(q, rows, width, tau, k));
}

/* linalg_qr(A, mode) -> (Q, R): reduced, complete, r */
static aot_status_t qr(rk_ctx_t *c) {
  rs_stack_t s, q, r;
  double *tau;
  int complete = rk_str_is(c, 1, "complete"), only_r = rk_str_is(c, 1, "r");
  int64_t k, width;
  AOT_TRY(rs_read_stack(c, 0, &s));
  k = rs_smaller(s.rows, s.columns);
  width = complete ? s.rows : k;
  RK_SCRATCH(c, k, tau);
  AOT_TRY(rs_new_stack(c, &s, s.rows, width, &q));
  AOT_TRY(rs_new_stack(c, &s, width, s.columns, &r));
  for (int64_t i = 0; i < s.n; i++) {
    AOT_TRY(rs_enough_memory(c, rm_qr(rs_matrix(&s, i), s.rows, s.columns, tau)));
    if (!only_r) AOT_TRY(form_q(c, rs_matrix(&s, i), s.columns, tau, k, rs_matrix(&q, i), s.rows, width));
    for (int64_t row = 0; row < k; row++)
      for (int64_t j = row; j < s.columns; j++)
        rs_matrix(&r, i)[row * s.columns + j] = rs_matrix(&s, i)[row * s.columns + j];
  }
  if (!only_r) AOT_TRY(rk_put_f(c, 0, &q.a));
  return rk_put_f(c, 1, &r.a);
}

/* linalg_householder_product(input, tau): the first columns of Q */
static aot_status_t householder_product(rk_ctx_t *c) {
  rs_stack_t s, q;
  rk_array_t tau;
  int64_t k;
  AOT_TRY(rs_read_stack(c, 0, &s));
  AOT_TRY(rk_need_f(c, 1, &tau));
  k = s.n ? tau.numel / s.n : 0;
  RK_CHECK(c, tau.rank >= 1 && k * s.n == tau.numel && k <= s.columns && s.columns <= s.rows,
           "%lld factors do not fit %lld x %lld", (long long)k, (long long)s.rows, (long long)s.columns);
  AOT_TRY(rs_new_stack(c, &s, s.rows, s.columns, &q));
  for (int64_t i = 0; i < s.n; i++)
    AOT_TRY(form_q(c, rs_matrix(&s, i), s.columns, tau.f + i * k, k, rs_matrix(&q, i), s.rows, s.columns));
  return rk_put_f(c, 0, &q.a);
}

/* ormqr(self, tau, other, left, transpose): op(Q) other, or other op(Q) */
static aot_status_t ormqr(rk_ctx_t *c) {
  rs_stack_t s, other;
  rk_array_t tau;
  int left = rk_bool(c, 3, 1), transposed = rk_bool(c, 4, 0);
  int64_t k;
  AOT_TRY(rs_read_stack(c, 0, &s));
  AOT_TRY(rk_need_f(c, 1, &tau));
  AOT_TRY(rs_read_stack(c, 2, &other));
  k = s.n ? tau.numel / s.n : 0;
  RK_CHECK(c,
           k * s.n == tau.numel && k <= s.columns && k <= s.rows && other.n == s.n &&
               (left ? other.rows : other.columns) == s.rows,
           "reflectors and matrix do not fit");
  for (int64_t i = 0; i < s.n; i++)
    AOT_TRY(rs_enough_memory(c, rm_apply_q(rs_matrix(&s, i), s.columns, tau.f + i * k, k, rs_matrix(&other, i),
                                           other.rows, other.columns, left, transposed)));
  return rk_put_f(c, 0, &other.a);
}

/* ---- singular values ---- */

/* Factors of every matrix: u rows x k, sv k, vt k x columns, or the full ones. u NULL: singular values alone. s is
 * used up. */
static aot_status_t factor_svd(rk_ctx_t *c, const char *function, rs_stack_t *s, int full, rs_stack_t *u,
                               rk_array_t *sv, rs_stack_t *vt) {
  int64_t k = rs_smaller(s->rows, s->columns);
  AOT_TRY(rs_new_numbers(c, s, k, 1, 1, sv));
  if (u) AOT_TRY(rs_new_stack(c, s, s->rows, full ? s->rows : k, u));
  if (u) AOT_TRY(rs_new_stack(c, s, full ? s->columns : k, s->columns, vt));
  for (int64_t i = 0; i < s->n; i++)
    AOT_TRY(rs_converged(c, function, i,
                         rm_svd(rs_matrix(s, i), s->rows, s->columns, full, u ? rs_matrix(u, i) : NULL, sv->f + i * k,
                                u ? rs_matrix(vt, i) : NULL)));
  return AOT_OK;
}

/* _linalg_svd(A, full_matrices, compute_uv, *, driver) -> (U, S, Vh) */
static aot_status_t svd(rk_ctx_t *c) {
  rs_stack_t s, u, vt;
  rk_array_t sv;
  int vectors = rk_bool(c, 2, 1);
  AOT_TRY(rs_read_stack(c, 0, &s));
  AOT_TRY(factor_svd(c, "linalg.svd", &s, rk_bool(c, 1, 0), vectors ? &u : NULL, &sv, &vt));
  AOT_TRY(rk_put_f(c, 1, &sv));
  if (!vectors) return AOT_OK;
  AOT_TRY(rk_put_f(c, 0, &u.a));
  return rk_put_f(c, 2, &vt.a);
}

/* The lower triangle over the upper one. */
static void mirror(const rs_stack_t *s) {
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t r = 0; r < s->rows; r++)
      for (int64_t j = r + 1; j < s->rows; j++) rs_matrix(s, i)[r * s->rows + j] = rs_matrix(s, i)[j * s->rows + r];
}

/* V diag(1 / s) U^T over the singular values above the limit. */
static void pseudo_inverse(const rs_stack_t *u, const double *sv, const rs_stack_t *vt, int64_t i, double limit,
                           double *out) {
  for (int64_t t = 0; t < u->columns; t++) {
    if (!(sv[t] > limit)) continue;
    for (int64_t r = 0; r < vt->columns; r++)
      for (int64_t j = 0; j < u->rows; j++)
        out[r * u->rows + j] += rs_matrix(vt, i)[t * vt->columns + r] / sv[t] * rs_matrix(u, i)[j * u->columns + t];
  }
}

/* linalg_pinv.atol_rtol_tensor(self, *, atol, rtol, hermitian) */
static aot_status_t pinv(rk_ctx_t *c) {
  rs_stack_t s, u, vt, y;
  rk_array_t sv, atol, rtol;
  double eps;
  AOT_TRY(rs_read_stack(c, 0, &s));
  AOT_TRY(rk_get_f(c, 1, &atol));
  AOT_TRY(rk_get_f(c, 2, &rtol));
  RK_CHECK(c, (!atol.f || atol.numel == 1 || atol.numel == s.n) && (!rtol.f || rtol.numel == 1 || rtol.numel == s.n),
           "tolerances do not fit");
  if (rk_bool(c, 3, 0)) {
    RK_CHECK(c, s.rows == s.columns, "a hermitian matrix is square, not %lld x %lld", (long long)s.rows,
             (long long)s.columns);
    mirror(&s);
  }
  eps = rk_dtype_eps(s.a.dtype) * (double)(s.rows > s.columns ? s.rows : s.columns);
  AOT_TRY(factor_svd(c, "linalg.pinv: svd", &s, 0, &u, &sv, &vt));
  AOT_TRY(rs_new_stack(c, &s, s.columns, s.rows, &y));
  for (int64_t i = 0; i < s.n; i++) {
    const double *own = sv.f + i * u.columns;
    double a = atol.f ? atol.f[atol.numel == 1 ? 0 : i] : 0;
    double r = rtol.f ? rtol.f[rtol.numel == 1 ? 0 : i] : a > 0 ? 0 : eps;
    pseudo_inverse(&u, own, &vt, i, fmax(a, r * (u.columns ? own[0] : 0)), rs_matrix(&y, i));
  }
  return rk_put_f(c, 0, &y.a);
}

/* |B - A X|^2 of every column */
static void residuals_of(const rs_stack_t *a, int64_t ia, const rs_right_t *r, const rs_stack_t *x, int64_t i,
                         double *out) {
  for (int64_t j = 0; j < r->b.columns; j++)
    for (int64_t row = 0; row < a->rows; row++) {
      double rest = rs_matrix(&r->b, i)[row * r->b.columns + j];
      for (int64_t k = 0; k < a->columns; k++)
        rest -= rs_matrix(a, ia)[row * a->columns + k] * rs_matrix(x, i)[k * r->b.columns + j];
      out[j] += rest * rest;
    }
}

/* linalg_lstsq(self, b, rcond, *, driver) -> (solution, residuals, rank, singular values): least squares of least norm.
 * What a driver does not compute is declared empty. */
static aot_status_t lstsq(rk_ctx_t *c) {
  rs_stack_t s, y;
  rs_right_t r;
  rk_array_t sv, residuals, rank;
  int driver = rk_str_is(c, 3, "gels") ? RM_GELS : rk_has(c, 3) && !rk_str_is(c, 3, "gelsy") ? RM_GELSD : RM_GELSY;
  int64_t k;
  double rcond;
  AOT_TRY(rs_read_stack(c, 0, &s));
  AOT_TRY(rs_read_right(c, &s, 1, 1, &r));
  RK_CHECK(c, r.b.rows == s.rows && (s.n == 0 || r.b.n % s.n == 0), "the right-hand side does not fit");
  k = rs_smaller(s.rows, s.columns);
  rcond = rk_float(c, 2, rk_dtype_eps(s.a.dtype) * (double)(s.rows > s.columns ? s.rows : s.columns));
  AOT_TRY(rs_new_stack(c, &r.b, s.columns, r.b.columns, &y));
  AOT_TRY(rs_new_numbers(c, &r.b, 0, 0, 0, &rank));
  AOT_TRY(rs_new_numbers(c, &r.b, k, 1, 1, &sv));
  AOT_TRY(rs_new_numbers(c, &r.b, r.b.columns, 1, 1, &residuals));
  for (int64_t i = 0; i < r.b.n; i++) {
    AOT_TRY(rs_converged(c, "linalg.lstsq", i,
                         rm_least_squares(driver, rs_matrix(&s, r.which[i]), s.rows, s.columns, rs_matrix(&r.b, i),
                                          r.b.columns, rcond, rs_matrix(&y, i), &rank.i[i], sv.f + i * k)));
    residuals_of(&s, r.which[i], &r, &y, i, residuals.f + i * r.b.columns);
  }
  if (rk_wants(c, 1) && rk_numel(rk_result(c, 1)) == residuals.numel) AOT_TRY(rk_put_f(c, 1, &residuals));
  if (rk_wants(c, 2) && rk_numel(rk_result(c, 2)) == rank.numel) AOT_TRY(rk_put_i(c, 2, &rank));
  if (rk_wants(c, 3) && rk_numel(rk_result(c, 3)) == sv.numel) AOT_TRY(rk_put_f(c, 3, &sv));
  if (r.is_vector) y.a.rank--;
  return rk_put_f(c, 0, &y.a);
}

/* _linalg_eigh(A, UPLO, compute_v) -> (eigenvalues, eigenvectors) */
static aot_status_t eigh(rk_ctx_t *c) {
  rs_stack_t s, lower;
  rk_array_t w;
  int vectors = rk_bool(c, 2, 1);
  AOT_TRY(rs_read_square(c, 0, &s));
  if (rk_str_is(c, 1, "U") || rk_str_is(c, 1, "u")) AOT_TRY(rs_transpose_all(c, &s, &lower));
  else lower = s;
  AOT_TRY(rs_new_numbers(c, &s, s.rows, 1, 1, &w));
  for (int64_t i = 0; i < s.n; i++)
    AOT_TRY(rs_converged(c, "linalg.eigh", i, rm_eigh(rs_matrix(&lower, i), s.rows, w.f + i * s.rows, vectors)));
  AOT_TRY(rk_put_f(c, 0, &w));
  return vectors ? rk_put_f(c, 1, &lower.a) : AOT_OK;
}

/* ---- exponential ---- */

static aot_status_t matrix_exp(rk_ctx_t *c) {
  rs_stack_t s, y;
  double *work;
  AOT_TRY(rs_read_square(c, 0, &s));
  AOT_TRY(rs_new_stack(c, &s, s.rows, s.rows, &y));
  RK_SCRATCH(c, 3 * s.rows * s.rows, work);
  for (int64_t i = 0; i < s.n; i++) rm_exp(rs_matrix(&s, i), s.rows, rs_matrix(&y, i), work);
  return rk_put_f(c, 0, &y.a);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name ".default", fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("geqrf", geqrf),
    ROW("linalg_qr", qr),
    ROW("linalg_householder_product", householder_product),
    ROW("ormqr", ormqr),
    ROW("_linalg_svd", svd),
    ROW("linalg_lstsq", lstsq),
    ROW("_linalg_eigh", eigh),
    ROW("linalg_matrix_exp", matrix_exp),
    {"aten.linalg_pinv.atol_rtol_tensor", pinv, NULL, NULL, 0},
};
const rk_family_t rk_family_spectral = RK_FAMILY(rows);
