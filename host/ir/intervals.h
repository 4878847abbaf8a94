/* Interval arithmetic over whole numbers: what an operator of expressions can give, of operands that are anywhere
 * between two ends. INT64_MIN as the lower end and INT64_MAX as the upper one: there is none. Bounds are never too
 * narrow; where an end overflows they are open. Source: R. E. Moore, Interval Analysis, 1966. */
#ifndef AOTH_INTERVALS_H
#define AOTH_INTERVALS_H

#include <stdint.h>

typedef struct aoth_interval {
  int64_t lo, hi; /* both included */
} aoth_interval_t;

aoth_interval_t aoth_interval_negate(aoth_interval_t r);
aoth_interval_t aoth_interval_add(aoth_interval_t a, aoth_interval_t b);
/* Products of what is not negative; anything else only when all four corners are numbers. */
aoth_interval_t aoth_interval_mul(aoth_interval_t a, aoth_interval_t b);
int aoth_interval_decide(int32_t op, aoth_interval_t a,
                         aoth_interval_t b); /* AOT_EXPR_LT, LE, else EQ; -1: undecided */
aoth_interval_t aoth_interval_of(int32_t op, aoth_interval_t a, aoth_interval_t b,
                                 aoth_interval_t c); /* op: AOT_EXPR_* */

#endif
