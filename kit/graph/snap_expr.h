/* Dimensions of a snapshot at run time: all expression rows in order. */
#ifndef SNAP_EXPR_H
#define SNAP_EXPR_H

#include <aot/assert.h>
#include <aot/base.h>
#include <aot/snapshot.h>
#include <aot/status.h>

typedef struct sn_error {
  char text[240];
} sn_error_t;

/* The value of every expression row, in row order, into out[exprs.count]; SN_NO_VALUE for one that divides by zero or
 * overflows with these symbols, which is an error only where it is used. AOT_E_RANGE: too few symbols. */
#define SN_NO_VALUE INT64_MIN
aot_status_t sn_exprs_eval(const aot_snapshot_t *s, const int64_t *symbols, uint64_t n_symbols, int64_t *out,
                           sn_error_t *error);

/* Towards minus infinity; b is not 0, and the quotient exists. */
static inline int64_t sn_floor_div(int64_t a, int64_t b) {
  AOT_ASSERT(b != 0 && (a != INT64_MIN || b != -1));
  const int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

/* One operator of the shape environment; 0: the result does not exist (division by zero, overflow). Division and modulo
 * round towards minus infinity. */
int sn_expr_apply(int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out);

static inline int64_t sn_dim(int64_t dim, const int64_t *expr_values) {
  return AOT_DIM_IS_SYM(dim) ? expr_values[AOT_DIM_EXPR(dim)] : dim;
}

/* A declared storage offset. One that depends on the data may have no value, or count a negative index from the front:
 * then it is 0, as in memory of the value's own. */
static inline int64_t sn_offset(int64_t dim, const int64_t *expr_values) {
  const int64_t offset = sn_dim(dim, expr_values);
  return offset < 0 ? 0 : offset;
}

#endif
