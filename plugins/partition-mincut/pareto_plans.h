/* Plans for every budget, and a bound that no plan beats.
 *
 * The list does not depend on the budget: it is made once, each plan is measured by the simulator, and what costs more
 * without being smaller is dropped. So along the list cost rises and peak falls, and "the first that fits" is monotone:
 * a larger budget never chooses a plan of higher cost or of lower peak. Where plans come from:
 *
 *   rates      the price of a saved byte, from almost nothing to more than anything else: the corners of the curve of
 *              least cost over saved bytes, found by halving chords; each is one exact cut (parametric.h)
 *   segments   the same rates with boundaries between K = 2, 3, 4, 6, .. segments saved for nothing (segments.h)
 *   mixtures   between neighbours of the list that are far apart: one plan for the first part of the forward, the
 *              other for the rest, so that of equal layers some are run again and others are not
 *   steps      from plans of the list, saving or not saving one value more, in all of a model's equal layers or in the
 *              first or the second half of them (isomorphic_blocks.h): what is tried for a layer is tried once
 *
 * The bound: lower_bound.h. Deterministic; every plan costs a cut and a simulation. */
#ifndef MC_PARETO_PLANS_H
#define MC_PARETO_PLANS_H

#include "program_points.h"
#include "segments.h"

typedef struct mc_spec { /* how a plan is made */
  uint32_t segments[2];  /* before `at` and from there on */
  double rate[2];        /* ps a byte */
  uint32_t at;           /* position of the forward, UINT32_MAX: the end */
} mc_spec_t;

typedef struct mc_candidate {
  mc_spec_t spec; /* of what it was made from, where it came by steps */
  mc_numbers_t numbers;
  uint32_t *saved; /* numbers.n_saved values or more; owned by the list */
  uint32_t n_saved;
  int is_expanded; /* steps from it were tried */
} mc_candidate_t;

typedef struct mc_candidates {
  const mc_model_t *m;
  mc_segments_t segments;
  mc_moments_t moments;
  mc_candidate_t *list; /* cost rises, peak falls strictly */
  uint32_t n, capacity;
  double *rates; /* of the corners, ascending */
  uint32_t n_rates;
  mc_numbers_t all_saved; /* the plan of partition-default */
  uint64_t least;         /* bytes that every plan holds at the fullest moment */
  uint32_t n_tried;
} mc_candidates_t;

/* 0; -1: no plan is possible, *out_bad names a value at fault; -2: no memory. Deinit in any case. */
int mc_candidates_init(mc_candidates_t *c, const mc_model_t *m, uint32_t *out_bad);
void mc_candidates_deinit(mc_candidates_t *c);

/* The first plan of the list, from `from` on, with a peak of at most budget; c->n: none. */
uint32_t mc_candidates_first(const mc_candidates_t *c, uint64_t budget, uint32_t from);
/* The saved values of plan i (room for n_values). */
void mc_candidates_plan(const mc_candidates_t *c, uint32_t i, uint32_t *out_saved, uint32_t *out_n_saved);
/* *out_bound: no plan within the budget costs less, ps. 0 or -2. Takes about as long as the search. */
int mc_candidates_bound(const mc_candidates_t *c, uint64_t budget, double *out_bound);

#endif
