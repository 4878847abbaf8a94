#include "blas.h"

#include "kit/base/geometry.h"
#include "kit/blas/openblas.h"
#include <string.h>
#include <unistd.h>

int bc_matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, bc_matrix_t *out) {
  int64_t least = columns > 1 ? columns : 1, least_t = rows > 1 ? rows : 1;
  memset(out, 0, sizeof *out);
  out->rows = rows;
  out->columns = columns;
  if ((column_stride == 1 || columns <= 1) && (row_stride >= least || rows <= 1)) {
    out->ld = rows > 1 ? row_stride : least;
    return 1;
  }
  if ((row_stride == 1 || rows <= 1) && (column_stride >= least_t || columns <= 1)) {
    out->ld = columns > 1 ? column_stride : least_t;
    out->transposed = 1;
    return 1;
  }
  return 0;
}

static void one(const bc_product_t *p, const char *a, const char *b, char *c) {
  const CBLAS_TRANSPOSE ta = p->a.transposed ? CblasTrans : CblasNoTrans;
  const CBLAS_TRANSPOSE tb = p->b.transposed ? CblasTrans : CblasNoTrans;
  const blasint m = (blasint)p->c.rows, n = (blasint)p->c.columns, k = (blasint)p->a.columns;
  const blasint lda = (blasint)p->a.ld, ldb = (blasint)p->b.ld, ldc = (blasint)p->c.ld;
  if (p->dtype == AOT_F32)
    bl_library()->cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, (float)p->alpha, (const float *)(const void *)a, lda,
                              (const float *)(const void *)b, ldb, (float)p->beta, (float *)(void *)c, ldc);
  else
    bl_library()->cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, p->alpha, (const double *)(const void *)a, lda,
                              (const double *)(const void *)b, ldb, p->beta, (double *)(void *)c, ldc);
}

void bc_product(const bc_product_t *p, const void *a, const void *b, void *c) {
  const int64_t width = p->dtype == AOT_F32 ? 4 : 8, *const strides[] = {p->a_strides, p->b_strides, p->c_strides};
  int64_t index[AOT_MAX_RANK] = {0}, at[3] = {0};
  for (int32_t d = 0; d < p->rank; d++)
    if (p->sizes[d] == 0) return;
  do one(p, (const char *)a + at[0] * width, (const char *)b + at[1] * width, (char *)c + at[2] * width);
  while (tn_next(p->rank, p->sizes, index, 3, strides, at));
}

int32_t bc_blas_threads(int64_t n) {
  long online = n > 0 ? (long)n : sysconf(_SC_NPROCESSORS_ONLN);
  return bl_set_callers(online > 0 ? (int32_t)online : 1);
}
