/* Dense linear algebra on row-major double matrices, after kernels_linalg.c: LAPACK on columns inside, rows outside.
 * Results that are visible keep LAPACK's conventions: pivots, Householder vectors, storage of factors.
 *
 * Factorizations answer LAPACK's info: 0, or what is wrong with the matrix, or RM_NO_MEMORY. Sizes must fit 32 bits. */
#ifndef RK_MATRIX_H
#define RK_MATRIX_H

#include <stdint.h>

#define RM_NO_MEMORY INT64_MIN

/* P A = L U in place (getrf): pivots are 1-based row numbers, row i was exchanged with pivots[i]. info: the 1-based
 * number of the first zero pivot. m x n; min(m, n) pivots. */
int64_t rm_lu(double *a, int64_t m, int64_t n, int64_t *pivots);
/* Exchange the rows of b (m x k) as the pivots say, or back. */
void rm_permute(double *b, int64_t k, const int64_t *pivots, int64_t n_pivots, int back);
/* Solve op(A) X = B in place from rm_lu's factors (getrs); B n x k. */
int64_t rm_lu_solve(const double *lu, int64_t n, const int64_t *pivots, double *b, int64_t k, int transposed);
/* Solve op(T) X = B in place: T triangular n x n, B n x k. */
void rm_solve_triangular(const double *t, int64_t n, double *b, int64_t k, int upper, int transposed, int unit);
/* A = L L^T in place, of the lower triangle (potrf); the upper one becomes 0. info: the 1-based order that is not
 * positive. */
int64_t rm_cholesky(double *a, int64_t n);
/* Householder QR in place (geqrf): R above, vectors below the diagonal, their factors in tau[min(m, n)]. */
int64_t rm_qr(double *a, int64_t m, int64_t n, double *tau);
/* The first n columns of Q of k reflectors, in place of them (orgqr): a is m x n, k <= n <= m. */
int64_t rm_form_q(double *a, int64_t m, int64_t n, const double *tau, int64_t k);
/* C = op(Q) C, or C op(Q), in place (ormqr), for Q of k reflectors in a, rows of length n_a. C is m x n. */
int64_t rm_apply_q(const double *a, int64_t n_a, const double *tau, int64_t k, double *c, int64_t m, int64_t n,
                   int left, int transposed);
/* A = U diag(s) V^T (gesdd): s[min(m, n)] descending; u is m x w and vt w' x n, where w = w' = min(m, n), or m and n
 * when full is set; both NULL: values alone. a is overwritten. info > 0: no convergence. */
int64_t rm_svd(double *a, int64_t m, int64_t n, int full, double *u, double *s, double *vt);
/* Symmetric A, of its lower triangle, = V diag(w) V^T (syevd): w ascending. a becomes V, in columns, when vectors is
 * set. */
int64_t rm_eigh(double *a, int64_t n, double *w, int vectors);
/* L D L^T of a symmetric matrix in place, of its lower triangle (sytrf): pivots > 0: 1 x 1 block, row exchanged; two
 * equal negative ones: a 2 x 2 block. info: the 1-based order of a zero block. */
int64_t rm_ldl(double *a, int64_t n, int64_t *pivots);
int64_t rm_ldl_solve(const double *a, int64_t n, const int64_t *pivots, double *b, int64_t k);
/* min |A X - B|, of least norm: A m x n, B m x k, X n x k. GELS takes full rank for granted, GELSY finds it by pivoted
 * QR, GELSD from singular values, which it leaves in s[min(m, n)]; rcond is their limit. */
enum { RM_GELS, RM_GELSY, RM_GELSD };
int64_t rm_least_squares(int driver, const double *a, int64_t m, int64_t n, const double *b, int64_t k, double rcond,
                         double *x, int64_t *rank, double *s);
/* exp(A) by scaling and squaring of a Taylor polynomial (Higham 2005); work has 3 n^2 elements. */
void rm_exp(const double *a, int64_t n, double *out, double *work);
void rm_multiply(const double *a, const double *b, double *out, int64_t m, int64_t k, int64_t n);
void rm_transpose(const double *a, int64_t m, int64_t n, double *out);

#endif
