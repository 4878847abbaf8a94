/* OpenBLAS, opened when it is needed and not with the plugin, because two things come before it:
 *
 * - address space. Its constructor starts threads, and each thread and each caller maps a buffer of 128 MiB; where
 * there is no room it
 *   tries for ever (driver/others/memory.c). So room is looked for first, and the number of threads follows from it.
 * - its kernels. A release older than the processor falls back to kernels for SSE3 (blas_kernels.h chooses better
 * ones).
 *
 * A library is one for the whole process code that opens it, so this is the one place in the plugins that keeps
 * state. */
#ifndef BL_OPENBLAS_H
#define BL_OPENBLAS_H

#include "lapack.h"
#include <aot/base.h>
#include <cblas.h>

/* clang-format off */
#define BL_FUNCTIONS(X) \
  X(cblas_sgemm) X(cblas_dgemm) X(cblas_dswap) X(cblas_dtrsm) X(dgetrf_) X(dgetrs_) X(dpotrf_) \
  X(dgeqrf_) X(dorgqr_) X(dormqr_) X(dgesdd_) X(dsyevd_) X(dgebrd_) X(dbdsdc_) X(dormbr_) \
  X(dsytrf_) X(dsytrs_) X(dgels_) X(dgelsy_) X(dgelsd_) X(openblas_set_num_threads) \
  X(openblas_get_corename)
/* clang-format on */

typedef struct bl_library {
#define BL_FIELD(name) __typeof__(name) *name;
  BL_FUNCTIONS(BL_FIELD)
#undef BL_FIELD
  char failure[200]; /* empty: it is open, and all functions are there */
} bl_library_t;

/* Opened by the first call, with one thread. [any-thread] */
const bl_library_t *bl_library(void);
/* How many threads may call it at the same time: at most `wanted`, fewer where the address space has no room for their
 * buffers. 0: none, and *failure says why. It computes in the calling thread: OpenBLAS's own threads would spin next
 * to the callers when idle, for longer than most products take. */
int32_t bl_set_callers(int32_t wanted);

#endif
