/* Snapshot blocks (aot/snapshot.h) from outside: checking that one is whole, and evaluating its dimensions.
 *
 * A block that passes can be read by its offsets without further checks: every range lies inside, every row number exists,
 * operands are defined before they are used, in the graph that uses them. One pass over the block, O(rows). */
#ifndef SNAP_CHECK_H
#define SNAP_CHECK_H

#include <aot/base.h>
#include <aot/snapshot.h>
#include <aot/status.h>

typedef struct sn_error {
  char text[240];
} sn_error;

/* AOT_E_DATA_LOSS: damaged, AOT_E_TOO_NEW: another version; the error says what and where. `bytes` is 8-byte aligned. */
aot_status_t sn_check(const void *bytes, uint64_t nbytes, const aot_snapshot_t **out, sn_error *error);

/* The value of every expression row, in row order, into out[exprs.count]; SN_NO_VALUE for one that divides by zero or
 * overflows with these symbols, which is an error only where it is used. AOT_E_RANGE: too few symbols. */
#define SN_NO_VALUE INT64_MIN
aot_status_t sn_exprs_eval(const aot_snapshot_t *s, const int64_t *symbols, uint64_t n_symbols, int64_t *out, sn_error *error);

/* One operator of the shape environment; 0: the result does not exist (division by zero, overflow). Division and modulo
 * round towards minus infinity. */
int sn_expr_apply(int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out);

static inline int64_t sn_dim(int64_t dim, const int64_t *expr_values) {
  return AOT_DIM_IS_SYM(dim) ? expr_values[AOT_DIM_EXPR(dim)] : dim;
}

#endif
