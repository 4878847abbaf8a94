/* Draws that are not made: those that nodes' lowerings draw for themselves.
 *
 *     %u = aot.philox_uniform %seed, %offset, 3, [..]     %m = lt %u, 0.9     %k = _to_copy %m, bf16
 *     %o = aot.dropout_attention %q, %k, %v, none, %k, ..                     <- lw_target_t.draws: %k
 *
 * A node of such a chain is spared where nothing reads it but these and other spared nodes. O(nodes + operands). */
#ifndef LW_FUSE_RNG_H
#define LW_FUSE_RNG_H

#include "lower.h"

/* Which elements are not 0: those whose uniform float32 of that draw is below the number. Elements count in the
 * row-major order of the value's sizes (kit/random/philox.h). */
typedef struct lw_draw {
  uint32_t seed, offset; /* values: int64, of no dimension */
  int64_t number;        /* of the draw, added to the offset */
  float below;
} lw_draw_t;

/* 1: the value is such a draw and no more. */
int lw_read_draw(const lw_build_t *b, uint32_t row, lw_draw_t *out);
/* 1: the value is not made. */
int lw_is_drawn_by_readers(const lw_build_t *b, uint32_t row);

#endif
