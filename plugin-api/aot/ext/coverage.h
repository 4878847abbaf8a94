/* aot/ext/coverage.h - extension "aot.coverage/1", offered by a unit: the operators that it handles by name.
 * Shown by `aothost plugins ID -v`; asked of the table that create() returned. */
#ifndef AOT_EXT_COVERAGE_H
#define AOT_EXT_COVERAGE_H

#include <aot/base.h>

#define AOT_EXT_COVERAGE "aot.coverage/1"

typedef struct aot_ext_coverage {
  uint32_t struct_size, flags;
  const aot_str_t *ops; /* n_ops full names [session] */
  uint64_t n_ops;
} aot_ext_coverage_t;

#endif
