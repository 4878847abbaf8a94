/* Stacks of matrices: what kernels_linalg.c and kernels_spectral.c share. Dense copies in double, row-major. */
#ifndef RK_STACK_H
#define RK_STACK_H

#include "rk_core.h"
#include "rk_matrix.h"

/* A stack of matrices over the leading dimensions. */
typedef struct rs_stack {
  rk_array_t a;
  int64_t n, rows, columns; /* n matrices of rows x columns */
} rs_stack_t;

static inline double *rs_matrix(const rs_stack_t *s, int64_t i) { return s->a.f + i * s->rows * s->columns; }
static inline int64_t rs_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

aot_status_t rs_read_stack(rk_ctx_t *c, uint32_t arg, rs_stack_t *s);
aot_status_t rs_read_square(rk_ctx_t *c, uint32_t arg, rs_stack_t *s);
/* Matrices of another size over the same leading dimensions. */
aot_status_t rs_new_stack(rk_ctx_t *c, const rs_stack_t *like, int64_t rows, int64_t columns, rs_stack_t *out);
/* Numbers over the leading dimensions, `per` of each matrix (a trailing dimension when keep is set). */
aot_status_t rs_new_numbers(rk_ctx_t *c, const rs_stack_t *like, int64_t per, int keep, int is_float, rk_array_t *out);
aot_status_t rs_transpose_all(rk_ctx_t *c, const rs_stack_t *s, rs_stack_t *out);

/* What LAPACK says of matrix i: any info is an error; or lack of memory alone is. `function` is named in the
 * message. */
aot_status_t rs_converged(rk_ctx_t *c, const char *function, int64_t i, int64_t info);
aot_status_t rs_enough_memory(rk_ctx_t *c, int64_t info);
/* The first matrix with something wrong is the error of the call. */
aot_status_t rs_check_all(rk_ctx_t *c, const char *function, const rk_array_t *info);

/* B with its leading dimensions broadcast against A's; a vector right-hand side is a matrix of one column. */
typedef struct rs_right {
  rs_stack_t b;
  int is_vector;
  int64_t *which; /* the matrix of A for each of B */
} rs_right_t;
aot_status_t rs_read_right(rk_ctx_t *c, const rs_stack_t *a, uint32_t arg, int vector_allowed, rs_right_t *r);
aot_status_t rs_put_right(rk_ctx_t *c, uint32_t result, rs_right_t *r);

#endif
