/* Dense linear algebra on row-major double matrices: the algorithms behind kernels_linalg.c, each a page of Golub and Van
 * Loan, with LAPACK's conventions where its results are visible (pivots, Householder vectors, storage of factors). */
#ifndef RK_MATRIX_H
#define RK_MATRIX_H

#include <stdint.h>

/* P A = L U in place (getrf): pivots are 1-based row numbers, row i was exchanged with pivots[i]. The answer is 0, or the
 * 1-based number of the first zero pivot. m x n; min(m, n) pivots. */
int64_t rm_lu(double *a, int64_t m, int64_t n, int64_t *pivots, int pivoting);
/* Exchange the rows of b (m x k) as the pivots say, or back. */
void rm_permute(double *b, int64_t k, const int64_t *pivots, int64_t n_pivots, int back);
/* Solve op(T) X = B in place: T triangular n x n, B n x k. */
void rm_solve_triangular(const double *t, int64_t n, double *b, int64_t k, int upper, int transposed, int unit);
/* Solve op(A) X = B in place from rm_lu's factors. */
void rm_lu_solve(const double *lu, int64_t n, const int64_t *pivots, double *b, int64_t k, int transposed);
/* A = L L^T in place, of the lower triangle; the upper one becomes 0. 0, or the 1-based order that is not positive. */
int64_t rm_cholesky(double *a, int64_t n);
/* Householder QR in place (geqrf): R above, vectors below the diagonal, their factors in tau[min(m, n)]. */
void rm_qr(double *a, int64_t m, int64_t n, double *tau);
/* C = Q C or Q^T C for Q of k reflectors in a (m x n_a, row length n_a); C is m x n_c. */
void rm_apply_q(const double *a, int64_t n_a, const double *tau, int64_t k, double *c, int64_t m, int64_t n_c, int transposed);
/* A = U diag(s) V^T by one-sided Jacobi, m >= n: u m x n, s n descending, v n x n. a is overwritten. */
void rm_svd(double *a, int64_t m, int64_t n, double *u, double *s, double *v);
/* Columns n_have.. of q (m x n, n <= m) become an orthonormal completion of those before. */
void rm_complete_basis(double *q, int64_t m, int64_t n, int64_t n_have);
/* Symmetric A (lower triangle) = V diag(w) V^T by cyclic Jacobi: w ascending, v n x n in columns. a is overwritten. */
void rm_eigh(double *a, int64_t n, double *w, double *v);
/* L D L^T of a symmetric matrix in place (sytrf, lower): pivots > 0: 1 x 1 block, row exchanged; two equal negative ones: a
 * 2 x 2 block. 0, or the 1-based order of a zero block. */
int64_t rm_ldl(double *a, int64_t n, int64_t *pivots);
void rm_ldl_solve(const double *a, int64_t n, const int64_t *pivots, double *b, int64_t k);
/* exp(A) by scaling and squaring of a Taylor polynomial; work has 3 n^2 elements. */
void rm_exp(const double *a, int64_t n, double *out, double *work);
void rm_multiply(const double *a, const double *b, double *out, int64_t m, int64_t k, int64_t n);
void rm_transpose(const double *a, int64_t m, int64_t n, double *out);

#endif
