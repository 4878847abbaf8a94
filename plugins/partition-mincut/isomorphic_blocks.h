/* Equal places of equal layers: values that look alike from where they are.
 *
 * Every node gets a number from what it is (flags, sizes, cost) and, round by round, from the numbers of what it reads
 * and of what reads it; after MC_LAYER_ROUNDS rounds nodes with equal numbers have equal surroundings that many steps
 * around. So the n-th value of each of a model's equal layers falls into one class, and what is decided for one of them
 * is decided for all (or for the first half of them). Source: B. Weisfeiler, A. Leman, 1968, on directed graphs with
 * ordered operands. */
#ifndef MC_ISOMORPHIC_BLOCKS_H
#define MC_ISOMORPHIC_BLOCKS_H

#include "plan_memory.h"

#define MC_LAYER_ROUNDS 6

typedef struct mc_layers {
  uint32_t n_classes;
  uint32_t *begin;   /* n_classes + 1, into members. owned */
  uint32_t *members; /* values made in the forward, with bytes, no views; ascending in a class. owned */
} mc_layers_t;

/* Classes in order of their bytes, the largest sum first. 0 or -2. O((nodes + operands) * rounds + n log n). Deinit
 * in any case. */
int mc_layers_init(mc_layers_t *l, const mc_model_t *m);
void mc_layers_deinit(mc_layers_t *l);

#endif
