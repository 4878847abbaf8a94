/* What a step holds at each of its moments, whatever is saved: the ground of the lower bounds.
 *
 * Nodes that forward outputs need run in the joint graph's order in every forward, nodes that depend on a tangent in
 * every backward (kit/graph/split.h). A moment is one of these nodes at work; one that may be part of a loop is none,
 * since a loop runs where its last member is. A value is held at a moment when it is in memory there under every
 * plan, saved or not:
 *
 *     made for the forward     from its maker to its last reader there
 *     made for the backward    the same
 *     of the forward, read by the backward   from its first reader in the backward to its last: saved, or made again
 *                                            by then
 *
 * A value that a loop makes counts from its first reader outside loops, since before that it may be in registers. So a
 * plan holds
 *
 *     fixed + held(moment) + bytes of what it saves and is not held at the moment
 *
 * and this is at most its peak. All views of one storage are one value here, as large as the smallest of them.
 *
 * In a step graph what is saved is held for a part of it only: from when it is certainly in memory to the end of the
 * forward, and in the backward until its first reader, and from then on it is held anyway:
 *
 *     fixed + held(moment) + bytes of what it saves and is across at the moment
 *
 * There a storage is as large as it is, and a part of it that is saved keeps the whole. */
#ifndef MC_PROGRAM_POINTS_H
#define MC_PROGRAM_POINTS_H

#include "plan_memory.h"

#define MC_NO_MOMENT 2u

typedef struct mc_span { /* nodes, both included; first > last: none */
  uint32_t first, last;
} mc_span_t;

typedef struct mc_moments {
  const mc_model_t *m;
  uint64_t *held; /* by node and for the end of the forward, bytes; 0 where it is no moment. owned */
  uint8_t *side;  /* by node: 0 a moment of the forward, 1 of the backward, MC_NO_MOMENT. owned */
  /* by value and side: from where to where its storage is held. Views have their base's. owned */
  mc_span_t (*spans)[2];
  uint64_t *kept; /* by value: of the forward's arena besides, once it is saved, at moments from kept_from on. owned */
  uint32_t *kept_from;      /* by value: node. owned */
  uint64_t least;           /* the most bytes held: no plan's peak is below sure + least */
  struct mc_across *across; /* by value, of a step graph; NULL: three graphs. owned */
} mc_moments_t;

/* A value of a step graph that is saved: at moments of the forward from `from` on, and of the backward before
 * `until`. */
typedef struct mc_across {
  uint64_t nbytes;
  uint32_t from, until; /* nodes; from: n_nodes + 1 where no moment is certain */
} mc_across_t;

/* 0 or -2. O(nodes + operands). Deinit in any case. */
int mc_moments_init(mc_moments_t *h, const mc_model_t *m);
void mc_moments_deinit(mc_moments_t *h);

#endif
