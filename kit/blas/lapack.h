/* The Fortran routines of LAPACK that kernels/rk_matrix.c calls, as libopenblas exports them: 32-bit integers, matrices
 * column by column, and the length of every character argument after the others. Reference: LAPACK Users' Guide, 3rd
 * edition. */
#ifndef BL_LAPACK_H
#define BL_LAPACK_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t lapack_int;

/* LU */
void dgetrf_(const lapack_int *m, const lapack_int *n, double *a, const lapack_int *lda, lapack_int *ipiv,
             lapack_int *info);
void dgetrs_(const char *trans, const lapack_int *n, const lapack_int *nrhs, const double *a, const lapack_int *lda,
             const lapack_int *ipiv, double *b, const lapack_int *ldb, lapack_int *info, size_t);
/* Cholesky */
void dpotrf_(const char *uplo, const lapack_int *n, double *a, const lapack_int *lda, lapack_int *info, size_t);
/* QR */
void dgeqrf_(const lapack_int *m, const lapack_int *n, double *a, const lapack_int *lda, double *tau, double *work,
             const lapack_int *lwork, lapack_int *info);
void dorgqr_(const lapack_int *m, const lapack_int *n, const lapack_int *k, double *a, const lapack_int *lda,
             const double *tau, double *work, const lapack_int *lwork, lapack_int *info);
void dormqr_(const char *side, const char *trans, const lapack_int *m, const lapack_int *n, const lapack_int *k,
             const double *a, const lapack_int *lda, const double *tau, double *c, const lapack_int *ldc, double *work,
             const lapack_int *lwork, lapack_int *info, size_t, size_t);
/* singular values, symmetric eigenvalues */
void dgesdd_(const char *jobz, const lapack_int *m, const lapack_int *n, double *a, const lapack_int *lda, double *s,
             double *u, const lapack_int *ldu, double *vt, const lapack_int *ldvt, double *work,
             const lapack_int *lwork, lapack_int *iwork, lapack_int *info, size_t);
void dsyevd_(const char *jobz, const char *uplo, const lapack_int *n, double *a, const lapack_int *lda, double *w,
             double *work, const lapack_int *lwork, lapack_int *iwork, const lapack_int *liwork, lapack_int *info,
             size_t, size_t);
void dgebrd_(const lapack_int *m, const lapack_int *n, double *a, const lapack_int *lda, double *d, double *e,
             double *tauq, double *taup, double *work, const lapack_int *lwork, lapack_int *info);
void dbdsdc_(const char *uplo, const char *compq, const lapack_int *n, double *d, double *e, double *u,
             const lapack_int *ldu, double *vt, const lapack_int *ldvt, double *q, lapack_int *iq, double *work,
             lapack_int *iwork, lapack_int *info, size_t, size_t);
void dormbr_(const char *vect, const char *side, const char *trans, const lapack_int *m, const lapack_int *n,
             const lapack_int *k, const double *a, const lapack_int *lda, const double *tau, double *c,
             const lapack_int *ldc, double *work, const lapack_int *lwork, lapack_int *info, size_t, size_t, size_t);
/* symmetric indefinite */
void dsytrf_(const char *uplo, const lapack_int *n, double *a, const lapack_int *lda, lapack_int *ipiv, double *work,
             const lapack_int *lwork, lapack_int *info, size_t);
void dsytrs_(const char *uplo, const lapack_int *n, const lapack_int *nrhs, const double *a, const lapack_int *lda,
             const lapack_int *ipiv, double *b, const lapack_int *ldb, lapack_int *info, size_t);
/* least squares */
void dgels_(const char *trans, const lapack_int *m, const lapack_int *n, const lapack_int *nrhs, double *a,
            const lapack_int *lda, double *b, const lapack_int *ldb, double *work, const lapack_int *lwork,
            lapack_int *info, size_t);
void dgelsy_(const lapack_int *m, const lapack_int *n, const lapack_int *nrhs, double *a, const lapack_int *lda,
             double *b, const lapack_int *ldb, lapack_int *jpvt, const double *rcond, lapack_int *rank, double *work,
             const lapack_int *lwork, lapack_int *info);
void dgelsd_(const lapack_int *m, const lapack_int *n, const lapack_int *nrhs, double *a, const lapack_int *lda,
             double *b, const lapack_int *ldb, double *s, const double *rcond, lapack_int *rank, double *work,
             const lapack_int *lwork, lapack_int *iwork, lapack_int *info);

#endif
