/* What regions are lowered with: jumps over the list of steps, and a graph that becomes steps at the place of its
 * node. Who runs the steps goes by them: a target's `jump` finds the predicate, which may be in a device's memory. */
#ifndef LW_REGION_STEPS_H
#define LW_REGION_STEPS_H

#include "lower.h"

typedef struct lw_jump {
  lw_ref_t pred;     /* LW_NONE: always */
  rk_tensor_t value; /* of pred; data is set when run */
  int64_t *rounds;   /* of a loop, over: goes up by 1, and the jump is taken while it is below `most`; NULL: none */
  int64_t most;
  uint32_t target; /* step */
} lw_jump_t;

/* A jump that is taken unless pred is true; NULL: always. The caller sets out->target. */
aot_status_t lw_add_jump(lw_build_t *b, const lw_tensor_t *pred, lw_jump_t **out);
/* Sets the frame's next step; a predicate's data is set. */
aot_status_t lw_take_jump(const lw_frame_t *f, lw_jump_t *p);

/* Values and numbers among the node's arguments from `first` on, in pool memory. */
aot_status_t lw_region_operands(lw_build_t *b, uint32_t first, lw_value_t **out, uint32_t *out_n);

/* The steps of a graph: operands become its inputs in its layout, at no cost; outputs: where its results lie then,
 * n_outputs of them, dtype 0 for what is no tensor. Regions in regions nest by calls, at most 16 deep. */
aot_status_t lw_lower_region(lw_build_t *b, uint32_t graph, const lw_value_t *operands, uint32_t n_operands,
                             lw_tensor_t *outputs, uint32_t n_outputs);

/* dst = src, which must be of its dtype and sizes: what a region gives is checked here. */
aot_status_t lw_copy_result(lw_build_t *b, uint32_t i, const lw_tensor_t *dst, const lw_tensor_t *src);

#endif
