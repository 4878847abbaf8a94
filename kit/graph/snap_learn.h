/* What a run reports about symbols: results whose sizes or numbers nothing before it determines. */
#ifndef SNAP_LEARN_H
#define SNAP_LEARN_H

#include "snap_check.h"

/* Symbols as far as they are known (SN_NO_VALUE: not yet), and the expressions under them. */
typedef struct sn_known {
  const aot_snapshot_t *s;
  int64_t *symbols; /* n_symbols */
  uint64_t n_symbols;
  int64_t *exprs; /* as sn_exprs_eval leaves them */
} sn_known_t;

/* A value's row, and what it is: `rank` sizes of a tensor, one number of a SymInt or SymBool; other kinds report
 * nothing. sn_learn gives symbols without a value theirs, where one number reports one symbol: AOT_E_RANGE outside the
 * symbol's range. sn_agree, once all results of a node were learned: AOT_E_RANGE or AOT_E_UNIMPLEMENTED where the
 * declared type is another. */
aot_status_t sn_learn(const sn_known_t *k, uint32_t value, const int64_t *is, sn_error_t *error);
aot_status_t sn_agree(const sn_known_t *k, uint32_t value, const int64_t *is, sn_error_t *error);

#endif
