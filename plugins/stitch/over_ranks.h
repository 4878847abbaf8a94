/* An all-reduce with its wait, for values that are spread over ranks: squared norms, whether gradients are finite. */
#ifndef ST_OVER_RANKS_H
#define ST_OVER_RANKS_H

#include "kit/emit/emit.h"
#include <aot/ext/ranks.h>

/* reduction: "sum", "max", .. of each element; group: of ranks, as operators name it */
static inline em_x_t st_over_ranks(em_t *e, em_x_t x, const char *reduction, aot_str_t group) {
  const em_x_t all =
      EM(e, "_c10d_functional.all_reduce.default", x, aot_arg_str(aot_str(reduction)), aot_arg_str(group));
  return EM(e, "_c10d_functional.wait_tensor.default", all);
}

#endif
