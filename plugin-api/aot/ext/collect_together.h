/* aot/ext/collect_together.h - extension "aot.collect-together/1" of a communicator's table: several collectives as one
 * piece of work, which takes one start and the bytes of all. */
#ifndef AOT_EXT_COLLECT_TOGETHER_H
#define AOT_EXT_COLLECT_TOGETHER_H

#include <aot/communicator.h>

#define AOT_EXT_COLLECT_TOGETHER "aot.collect-together/1"

typedef struct aot_ext_collect_together {
  aot_table_t head; /* self: the extension's own */
  /* What the communicator's `collect` does with each, in that order; all of one kind, and on one queue. At least one;
   * the array and its rows are borrowed until this returns. A failure is that of all. As collect. */
  aot_status_t(AOT_CALL *collect)(const struct aot_ext_collect_together *x, aot_ctx_t *ctx, aot_group_t *g,
                                  const aot_collective_t *const *what, uint64_t n);
} aot_ext_collect_together_t;

#endif
