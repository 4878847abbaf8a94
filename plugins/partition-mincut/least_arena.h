/* What a step holds whatever is saved: the ground of the lower bounds.
 *
 * Nodes that depend on a tangent run in the joint graph's order under every plan (common/partition/split.h), so the values that one of
 * them makes and another reads live at once in the same way: an interval from maker to last reader. A value that a loop makes counts
 * from its first reader outside loops, since before that it may be in registers. What such a node reads of the forward is in memory
 * while it runs, saved or computed again. */
#ifndef MC_LEAST_ARENA_H
#define MC_LEAST_ARENA_H

#include "plan_memory.h"

typedef struct mc_least {
  uint64_t arena;      /* bytes of the backward's own temporaries at their fullest: no plan's arena is smaller */
  uint64_t moment;     /* the same and what the node at hand reads of the forward, at the fullest moment of both together */
  uint8_t *in_moment;  /* by value: it, or what it is a view of, is read at that moment. owned */
} mc_least_t;

/* 0 or -2. O(nodes + operands). Deinit in any case. */
int mc_least_init(mc_least_t *l, const mc_model_t *m);
void mc_least_deinit(mc_least_t *l);

#endif
