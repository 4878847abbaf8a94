/* aot/ext/check_nan.h - extension "aot.check-nan/1", offered by an executable's table: it looks for the first NaN.
 * `aothost run --check-nan` asks for it.
 *
 * From start() on every node runs by itself, and its results are looked at. One that holds a NaN that no operand held,
 * or an infinity where every operand is finite, ends the run: AOT_E_RANGE, told with the node. What fills a tensor with
 * a number makes none (masks of -inf). Slow, and with more memory than otherwise. */
#ifndef AOT_EXT_CHECK_NAN_H
#define AOT_EXT_CHECK_NAN_H

#include <aot/base.h>
#include <aot/status.h>

#define AOT_EXT_CHECK_NAN "aot.check-nan/1"

typedef struct aot_ext_check_nan {
  aot_table_t head;
  /* Before anything is bound. [run-thread] */
  aot_status_t(AOT_CALL *start)(const struct aot_ext_check_nan *x);
} aot_ext_check_nan_t;

#endif
