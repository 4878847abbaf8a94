/* aot/ext/uncovered.h - extension "aot.uncovered/1", offered by a unit beside aot.coverage/1: operators that it leaves
 * out on purpose, each with the reason. For lists and checks (`aothost ops`); no stage decides by it. */
#ifndef AOT_EXT_UNCOVERED_H
#define AOT_EXT_UNCOVERED_H

#include <aot/base.h>

#define AOT_EXT_UNCOVERED "aot.uncovered/1"

typedef struct aot_ext_uncovered {
  uint32_t struct_size, flags;
  const aot_str_t *ops;     /* n_ops full names [session] */
  const aot_str_t *reasons; /* n_ops, half a line each: "a second derivative" */
  uint64_t n_ops;
} aot_ext_uncovered_t;

#endif
