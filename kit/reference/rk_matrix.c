/* LAPACK on row-major matrices: each is turned to columns and back. Signs and orders of results are LAPACK's. */
#include "rk_matrix.h"
#include "kit/blas/openblas.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(a, i, j) (a)[(i)*n + (j)]

static lapack_int at_least_one(int64_t n) { return n > 0 ? (lapack_int)n : 1; }

static double *new_doubles(int64_t n) { return malloc((size_t)(n > 0 ? n : 1) * sizeof(double)); }
static lapack_int *new_ints(int64_t n) { return malloc((size_t)(n > 0 ? n : 1) * sizeof(lapack_int)); }

/* A copy of a row-major m x n matrix, column by column, `lda` >= m apart. */
static double *new_columns(const double *a, int64_t m, int64_t n, int64_t lda) {
  double *c = new_doubles(lda * n);
  for (int64_t i = 0; c && i < m; i++)
    for (int64_t j = 0; j < n; j++) c[j * lda + i] = a[i * n + j];
  return c;
}
static void put_rows(const double *columns, int64_t lda, int64_t m, int64_t n, double *out) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) out[i * n + j] = columns[j * lda + i];
}

/* ---- LU ---- */

int64_t rm_lu(double *a, int64_t m, int64_t n, int64_t *pivots) {
  const lapack_int rows = (lapack_int)m, columns = (lapack_int)n, lda = at_least_one(m);
  const int64_t k = m < n ? m : n;
  double *c = new_columns(a, m, n, m);
  lapack_int *p = new_ints(k), info = 0;
  const int ok = c && p;
  if (ok && k) {
    bl_library()->dgetrf_(&rows, &columns, c, &lda, p, &info);
    put_rows(c, m, m, n, a);
    for (int64_t i = 0; i < k; i++) pivots[i] = p[i];
  }
  free(c);
  free(p);
  return ok ? info : RM_NO_MEMORY;
}

void rm_permute(double *b, int64_t k, const int64_t *pivots, int64_t n_pivots, int back) {
  for (int64_t s = 0; s < n_pivots; s++) {
    int64_t i = back ? n_pivots - 1 - s : s, j = pivots[i] - 1;
    if (i != j) bl_library()->cblas_dswap((lapack_int)k, b + i * k, 1, b + j * k, 1);
  }
}

/* What dgetrs and dsytrs share: columns of the factors and of B, pivots of 32 bits. */
typedef struct factors {
  double *a, *b;
  lapack_int *pivots;
  lapack_int n, k, lda;
} factors_t;

static int read_factors(factors_t *f, const double *a, int64_t n, const int64_t *pivots, const double *b, int64_t k) {
  f->n = (lapack_int)n;
  f->k = (lapack_int)k;
  f->lda = at_least_one(n);
  f->a = new_columns(a, n, n, n);
  f->b = new_columns(b, n, k, n);
  f->pivots = new_ints(n);
  for (int64_t i = 0; f->pivots && i < n; i++) f->pivots[i] = (lapack_int)pivots[i];
  return f->a && f->b && f->pivots;
}
static void free_factors(factors_t *f) {
  free(f->a);
  free(f->b);
  free(f->pivots);
}

int64_t rm_lu_solve(const double *lu, int64_t n, const int64_t *pivots, double *b, int64_t k, int transposed) {
  factors_t f;
  lapack_int info = 0;
  const int ok = read_factors(&f, lu, n, pivots, b, k);
  if (ok && n && k) {
    bl_library()->dgetrs_(transposed ? "T" : "N", &f.n, &f.k, f.a, &f.lda, f.pivots, f.b, &f.lda, &info, 1);
    put_rows(f.b, n, n, k, b);
  }
  free_factors(&f);
  return ok ? info : RM_NO_MEMORY;
}

void rm_solve_triangular(const double *t, int64_t n, double *b, int64_t k, int upper, int transposed, int unit) {
  if (n == 0 || k == 0) return;
  bl_library()->cblas_dtrsm(CblasRowMajor, CblasLeft, upper ? CblasUpper : CblasLower,
                            transposed ? CblasTrans : CblasNoTrans, unit ? CblasUnit : CblasNonUnit, (lapack_int)n,
                            (lapack_int)k, 1, t, (lapack_int)n, b, (lapack_int)k);
}

/* The lower triangle by rows is the upper one by columns. */
int64_t rm_cholesky(double *a, int64_t n) {
  const lapack_int order = (lapack_int)n;
  lapack_int info = 0;
  if (n) bl_library()->dpotrf_("U", &order, a, &order, &info, 1);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++) AT(a, i, j) = 0;
  return info;
}

/* ---- QR ---- */

int64_t rm_qr(double *a, int64_t m, int64_t n, double *tau) {
  const lapack_int rows = (lapack_int)m, columns = (lapack_int)n, size = at_least_one(64 * n);
  double *c = new_columns(a, m, n, m), *work = new_doubles(size);
  const int ok = c && work;
  lapack_int info = 0;
  if (ok && m && n) {
    bl_library()->dgeqrf_(&rows, &columns, c, &rows, tau, work, &size, &info);
    put_rows(c, m, m, n, a);
  }
  free(c);
  free(work);
  return ok ? info : RM_NO_MEMORY;
}

int64_t rm_form_q(double *a, int64_t m, int64_t n, const double *tau, int64_t k) {
  const lapack_int rows = (lapack_int)m, columns = (lapack_int)n, reflectors = (lapack_int)k,
                   size = at_least_one(64 * n);
  double *c = new_columns(a, m, n, m), *work = new_doubles(size);
  const int ok = c && work;
  lapack_int info = 0;
  if (ok && m && n) {
    bl_library()->dorgqr_(&rows, &columns, &reflectors, c, &rows, tau, work, &size, &info);
    put_rows(c, m, m, n, a);
  }
  free(c);
  free(work);
  return ok ? info : RM_NO_MEMORY;
}

int64_t rm_apply_q(const double *a, int64_t n_a, const double *tau, int64_t k, double *c, int64_t m, int64_t n,
                   int left, int transposed) {
  const int64_t order = left ? m : n;
  const lapack_int rows = (lapack_int)m, columns = (lapack_int)n, reflectors = (lapack_int)k, lda = at_least_one(order),
                   size = at_least_one(64 * (left ? n : m) + 65 * 64);
  double *q = new_columns(a, order, n_a, order), *b = new_columns(c, m, n, m), *work = new_doubles(size);
  const int ok = q && b && work;
  lapack_int info = 0;
  if (ok && m && n && k) {
    bl_library()->dormqr_(left ? "L" : "R", transposed ? "T" : "N", &rows, &columns, &reflectors, q, &lda, tau, b,
                          &rows, work, &size, &info, 1, 1);
    put_rows(b, m, m, n, c);
  }
  free(q);
  free(b);
  free(work);
  return ok ? info : RM_NO_MEMORY;
}

/* ---- singular values and eigenvalues ---- */

/* U and V of a matrix without elements: the unit matrices that `full` requests. */
static void put_unit(double *a, int64_t n) {
  for (int64_t i = 0; a && i < n * n; i++) a[i] = i % (n + 1) == 0;
}

/* One call by columns: u m x m or m x k, vt n x n or k x n, NULL when not requested. */
typedef struct svd_call {
  lapack_int m, n, k, ldvt;
  double *a, *s, *u, *vt, *work;
  lapack_int *iwork, size;
} svd_call_t;

static lapack_int tall_svd(svd_call_t *c, const char *job) {
  lapack_int info = 0;
  bl_library()->dgesdd_(job, &c->m, &c->n, c->a, &c->m, c->s, c->u, &c->m, c->vt, &c->ldvt, c->work, &c->size, c->iwork,
                        &info, 1);
  return info;
}

/* Vectors of a wide matrix: reduced to a lower bidiagonal one at once, where gesdd may take an LQ factorization first.
 * Both are right; this one has the signs that PyTorch's builds with MKL show. */
static lapack_int wide_svd(svd_call_t *c) {
  lapack_int info = 0;
  double *e = c->work, *tauq = e + c->k, *taup = tauq + c->k, *work = taup + c->k;
  const lapack_int size = c->size - 3 * c->k;
  for (int64_t i = 0; i < (int64_t)c->m * c->n; i++)
    if (!isfinite(c->a[i])) return -4; /* what gesdd says */
  bl_library()->dgebrd_(&c->m, &c->n, c->a, &c->m, c->s, e, tauq, taup, work, &size, &info);
  memset(c->vt, 0, (size_t)c->ldvt * (size_t)c->n * sizeof *c->vt);
  for (int64_t i = c->k; i < c->ldvt; i++) c->vt[i * c->ldvt + i] = 1;
  bl_library()->dbdsdc_("L", "I", &c->k, c->s, e, c->u, &c->m, c->vt, &c->ldvt, NULL, NULL, work, c->iwork, &info, 1,
                        1);
  if (info) return info;
  bl_library()->dormbr_("Q", "L", "N", &c->m, &c->m, &c->n, c->a, &c->m, tauq, c->u, &c->m, work, &size, &info, 1, 1,
                        1);
  bl_library()->dormbr_("P", "R", "T", &c->ldvt, &c->n, &c->m, c->a, &c->m, taup, c->vt, &c->ldvt, work, &size, &info,
                        1, 1, 1);
  return info;
}

int64_t rm_svd(double *a, int64_t m, int64_t n, int full, double *u, double *s, double *vt) {
  const int64_t k = m < n ? m : n, width = full ? m : k, height = full ? n : k;
  const char *job = !u ? "N" : full ? "A" : "S";
  svd_call_t c = {
      (lapack_int)m, (lapack_int)n, (lapack_int)k, at_least_one(height), NULL, s, NULL, NULL, NULL, NULL, -1};
  double best = 0;
  int64_t info = RM_NO_MEMORY;
  if (k == 0) {
    if (full) put_unit(u, m);
    if (full) put_unit(vt, n);
    return 0;
  }
  c.a = new_columns(a, m, n, m);
  c.u = new_doubles(u ? m * width : 1);
  c.vt = new_doubles(u ? height * n : 1);
  c.iwork = new_ints(8 * k);
  c.work = &best;
  tall_svd(&c, job); /* requests the size */
  c.size = at_least_one((int64_t)best + 3 * k * k + 8 * k + 64 * (m + n) + 65 * 64);
  c.work = new_doubles(c.size);
  if (c.a && c.u && c.vt && c.iwork && c.work) {
    info = u && m < n ? wide_svd(&c) : tall_svd(&c, job);
    if (u) put_rows(c.u, m, m, width, u);
    if (u) put_rows(c.vt, height, height, n, vt);
  }
  free(c.a);
  free(c.u);
  free(c.vt);
  free(c.iwork);
  free(c.work);
  return info;
}

int64_t rm_eigh(double *a, int64_t n, double *w, int vectors) {
  const lapack_int order = (lapack_int)n, ask = -1;
  lapack_int info = 0, int_size, size, *iwork = NULL;
  double *c = new_columns(a, n, n, n), *work = NULL, best = 0;
  int ok;
  if (c && n) {
    bl_library()->dsyevd_(vectors ? "V" : "N", "L", &order, c, &order, w, &best, &ask, &int_size, &ask, &info, 1, 1);
    size = at_least_one((int64_t)best);
    work = new_doubles(size);
    iwork = new_ints(int_size);
    if (work && iwork)
      bl_library()->dsyevd_(vectors ? "V" : "N", "L", &order, c, &order, w, work, &size, iwork, &int_size, &info, 1, 1);
    if (vectors) put_rows(c, n, n, n, a);
  }
  ok = c && (n == 0 || (work && iwork));
  free(c);
  free(work);
  free(iwork);
  return ok ? info : RM_NO_MEMORY;
}

/* ---- symmetric indefinite ---- */

int64_t rm_ldl(double *a, int64_t n, int64_t *pivots) {
  const lapack_int order = (lapack_int)n, size = at_least_one(64 * n);
  double *c = new_columns(a, n, n, n), *work = new_doubles(size);
  lapack_int *p = new_ints(n), info = 0;
  const int ok = c && work && p;
  if (ok && n) {
    bl_library()->dsytrf_("L", &order, c, &order, p, work, &size, &info, 1);
    put_rows(c, n, n, n, a);
    for (int64_t i = 0; i < n; i++) pivots[i] = p[i];
  }
  free(c);
  free(work);
  free(p);
  return ok ? info : RM_NO_MEMORY;
}

int64_t rm_ldl_solve(const double *a, int64_t n, const int64_t *pivots, double *b, int64_t k) {
  factors_t f;
  lapack_int info = 0;
  const int ok = read_factors(&f, a, n, pivots, b, k);
  if (ok && n && k) {
    bl_library()->dsytrs_("L", &f.n, &f.k, f.a, &f.lda, f.pivots, f.b, &f.lda, &info, 1);
    put_rows(f.b, n, n, k, b);
  }
  free_factors(&f);
  return ok ? info : RM_NO_MEMORY;
}

/* ---- least squares ---- */

typedef struct problem {
  lapack_int m, n, k, ldb, rank, *ints;
  double *a, *b, *s, rcond;
} problem_t;

/* size -1 requests the best one, in work[0]. */
static lapack_int call_driver(int driver, problem_t *p, double *work, lapack_int size) {
  lapack_int info = 0;
  if (driver == RM_GELS)
    bl_library()->dgels_("N", &p->m, &p->n, &p->k, p->a, &p->m, p->b, &p->ldb, work, &size, &info, 1);
  else if (driver == RM_GELSY)
    bl_library()->dgelsy_(&p->m, &p->n, &p->k, p->a, &p->m, p->b, &p->ldb, p->ints, &p->rcond, &p->rank, work, &size,
                          &info);
  else
    bl_library()->dgelsd_(&p->m, &p->n, &p->k, p->a, &p->m, p->b, &p->ldb, p->s, &p->rcond, &p->rank, work, &size,
                          p->ints, &info);
  return info;
}

int64_t rm_least_squares(int driver, const double *a, int64_t m, int64_t n, const double *b, int64_t k, double rcond,
                         double *x, int64_t *rank, double *s) {
  const int64_t least = m < n ? m : n, most = m < n ? n : m;
  problem_t p = {(lapack_int)m, (lapack_int)n, (lapack_int)k, at_least_one(most), 0, NULL, NULL, NULL, s, rcond};
  double *work = NULL, best[2] = {0};
  int64_t info = RM_NO_MEMORY;
  *rank = 0;
  memset(x, 0, (size_t)(n * k) * sizeof *x);
  if (least == 0 || k == 0) return 0;
  p.a = new_columns(a, m, n, m);
  p.b = new_columns(b, m, k, most);
  /* dgelsd: 3 least log2(least) + 11 least; dgelsy: n, zeroed */
  p.ints = calloc((size_t)(least * 512 + n), sizeof *p.ints);
  if (p.a && p.b && p.ints) {
    call_driver(driver, &p, best, -1);
    work = new_doubles((int64_t)best[0]);
  }
  if (work) {
    info = call_driver(driver, &p, work, at_least_one((int64_t)best[0]));
    put_rows(p.b, most, n, k, x);
    *rank = driver == RM_GELS ? least : p.rank;
  }
  free(p.a);
  free(p.b);
  free(p.ints);
  free(work);
  return info;
}

/* ---- products ---- */

void rm_multiply(const double *a, const double *b, double *out, int64_t m, int64_t k, int64_t n) {
  if (m == 0 || n == 0) return;
  if (k == 0) memset(out, 0, (size_t)(m * n) * sizeof *out);
  else
    bl_library()->cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (lapack_int)m, (lapack_int)n, (lapack_int)k, 1,
                              a, (lapack_int)k, b, (lapack_int)n, 0, out, (lapack_int)n);
}

void rm_transpose(const double *a, int64_t m, int64_t n, double *out) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) out[j * m + i] = a[i * n + j];
}

void rm_exp(const double *a, int64_t n, double *out, double *work) {
  double *scaled = work, *term = work + n * n, *next = work + 2 * n * n, norm = 0, factor;
  int squarings = 0;
  for (int64_t i = 0; i < n; i++) {
    double row = 0;
    for (int64_t j = 0; j < n; j++) row += fabs(AT(a, i, j));
    norm = fmax(norm, row);
  }
  while (norm > 0.5 && squarings < 1000) {
    norm /= 2;
    squarings++;
  }
  factor = ldexp(1, -squarings);
  for (int64_t i = 0; i < n * n; i++) {
    scaled[i] = a[i] * factor;
    out[i] = term[i] = i % (n + 1) == 0;
  }
  for (int64_t k = 1; k < 20; k++) {
    rm_multiply(term, scaled, next, n, n, n);
    for (int64_t i = 0; i < n * n; i++) {
      term[i] = next[i] / (double)k;
      out[i] += term[i];
    }
  }
  for (; squarings; squarings--) {
    rm_multiply(out, out, next, n, n, n);
    memcpy(out, next, (size_t)(n * n) * sizeof *out);
  }
}
