/* The arena of a step in one graph under a plan: the forward's nodes, the backward's, and an update for each parameter,
 * in one run.
 *
 *     f1 f2 f3   b3 u b2 f1' b1 u        f1 runs again as f1', before the first what reads it; u: updates
 *
 * What is saved is the forward's value, until its last reader; the other copy of a node that runs again makes values of
 * its own. An update is where stage stitch puts it: after its gradient and the last reader of its parameter, or,
 * where updates wait for all gradients, at the end. It takes nothing: new values are in the memory of the old ones. */
#ifndef MC_STEP_ARENA_H
#define MC_STEP_ARENA_H

#include "kit/graph/split.h"
#include "plan_memory.h"

/* 0 or -2. O(n log n). */
int mc_step_arena(const mc_model_t *m, const jg_split_t *s, uint64_t *out_nbytes);

#endif
