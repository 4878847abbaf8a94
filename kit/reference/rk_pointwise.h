/* The pointwise driver: rows of scalar functions over one strided loop.
 *
 * A scalar function sees the operator's arguments by their schema position: x[0] is the first argument's element,
 * tensor or number alike, so that add(self, other, alpha) reads x[0] + x[2] * x[1]. Absent arguments are missing
 * from p->present. */
#ifndef RK_POINTWISE_H
#define RK_POINTWISE_H

#include "rk_core.h"

#define PW_ARGS 8 /* the most arguments a pointwise operator has */

/* What decides the dtype in which the function computes. Halves are computed in float; of operands that are wider, a
 * number or a tensor of rank 0, PyTorch's kernels round some to the half first and read others as floats. */
#define PW_RESULT 1  /* the result's dtype; wider tensors are rounded, numbers are not */
#define PW_COMPARE 2 /* the promoted dtype of the operands; the result is bool or int; all are rounded */
#define PW_SELF 3    /* the dtype of the first tensor operand */
#define PW_CAST 4    /* PW_RESULT, and numbers are rounded, too */
#define PW_FACTOR 5  /* PW_RESULT, and a second operand of rank 0 is not rounded (mul, div on a CPU) */

typedef struct pw_par {
  uint32_t present;        /* bit k: argument k is there */
  int32_t dtype;           /* computed in */
  int32_t mode;            /* of a string argument: its place in pw_row_t.words, counted from 1; 0: none */
  uint32_t single;         /* bit k: argument k is a number or a 0-dim tensor */
  int32_t dtypes[PW_ARGS]; /* of tensor arguments; 0: a number or absent */
} pw_par_t;

typedef double (*pw_f_t)(const double *x, const pw_par_t *p);
typedef int64_t (*pw_i_t)(const int64_t *x, const pw_par_t *p);

typedef struct pw_row {
  int32_t kind;             /* PW_* */
  pw_f_t f;                 /* computes when the dtype is a float; NULL: refused */
  pw_i_t i;                 /* computes when it is an integer; NULL: through f */
  const char *const *words; /* what the string argument may say, ended by NULL */
} pw_row_t;

aot_status_t pw_run(rk_ctx_t *c);

/* clang-format off */
#define PW(name, kind, f, i) {"aten." name, pw_run, NULL, &(const pw_row_t){kind, f, i, NULL}, 0}
#define PW_WORDS(name, kind, f, i, words) {"aten." name, pw_run, NULL, &(const pw_row_t){kind, f, i, words}, 0}
/* clang-format on */

#endif
