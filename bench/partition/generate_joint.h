/* Joint graphs of a given size for timing: of one shape and seed always the same. */
#ifndef BENCH_GENERATE_JOINT_H
#define BENCH_GENERATE_JOINT_H

#include "kit/graph/joint_arrays.h"

enum {
  GJ_LAYERS, /* transformer layers: norm, products, pointwise, views; every backward reads its layer */
  GJ_RANDOM, /* every forward node reads two earlier ones, near or anywhere; so does the backward */
  GJ_CHAINS, /* 32 chains that read each other at every step, and everything reads the first nodes */
  GJ_SHAPES
};
extern const char *const gj_names[GJ_SHAPES];

/* About n_nodes nodes, half of them forward. Deinit with jg_joint_deinit. 0, -2: no memory. */
int gj_make(int shape, uint32_t n_nodes, uint64_t seed, jg_joint_t *out);

#endif
