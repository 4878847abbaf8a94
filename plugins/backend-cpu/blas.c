#include "blas.h"

#include "common/blas/openblas.h"
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

/* A result that lies transposed is the product of the transposed operands in the other order. */
static void one(const bc_product_t *p, const char *a, const char *b, char *c) {
  const bc_matrix_t *x = &p->a, *y = &p->b;
  int flip = p->c.transposed;
  if (flip) {
    const bc_matrix_t *m = x;
    const char *q = a;
    x = y;
    y = m;
    a = b;
    b = q;
  }
  CBLAS_TRANSPOSE tx = x->transposed != flip ? CblasTrans : CblasNoTrans;
  CBLAS_TRANSPOSE ty = y->transposed != flip ? CblasTrans : CblasNoTrans;
  blasint m = (blasint)(flip ? p->c.columns : p->c.rows), n = (blasint)(flip ? p->c.rows : p->c.columns);
  blasint k = (blasint)p->a.columns;
  if (p->dtype == AOT_F32)
    bl_library()->cblas_sgemm(CblasRowMajor, tx, ty, m, n, k, (float)p->alpha, (const float *)(const void *)a,
                              (blasint)x->ld, (const float *)(const void *)b, (blasint)y->ld, (float)p->beta,
                              (float *)(void *)c, (blasint)p->c.ld);
  else
    bl_library()->cblas_dgemm(CblasRowMajor, tx, ty, m, n, k, p->alpha, (const double *)(const void *)a, (blasint)x->ld,
                              (const double *)(const void *)b, (blasint)y->ld, p->beta, (double *)(void *)c,
                              (blasint)p->c.ld);
}

void bc_product(const bc_product_t *p, const void *a, const void *b, void *c) {
  int64_t index[AOT_MAX_RANK] = {0}, width = p->dtype == AOT_F32 ? 4 : 8;
  const char *pa = a, *pb = b;
  char *pc = c;
  for (int32_t d = 0; d < p->rank; d++)
    if (p->sizes[d] == 0) return;
  for (;;) {
    int32_t d = p->rank - 1;
    one(p, pa, pb, pc);
    for (; d >= 0; d--) {
      int64_t back = ++index[d] < p->sizes[d] ? 0 : p->sizes[d];
      pa += p->a_strides[d] * width * (1 - back);
      pb += p->b_strides[d] * width * (1 - back);
      pc += p->c_strides[d] * width * (1 - back);
      if (!back) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

int32_t bc_blas_threads(int64_t n) {
  long online = n > 0 ? (long)n : sysconf(_SC_NPROCESSORS_ONLN);
  return bl_set_threads(online > 0 ? (int32_t)online : 1);
}
