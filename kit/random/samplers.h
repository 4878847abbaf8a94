/* Samplers by rejection over Philox: Poisson, gamma and binomial variates of one element.
 *
 * Trial t of a draw reads the block of the element at counter + t (gamma: two blocks, at counter + 2 t). The samplers
 * stop after PH_SAMPLER_OFFSETS offsets, which a draw has to reserve; a trial is refused with probability below 0.3, so
 * that never happens in practice (below 0.3^512), and the answer is then the expectation. */
#ifndef PH_SAMPLERS_H
#define PH_SAMPLERS_H

#include <stdint.h>

enum { PH_SAMPLER_OFFSETS = 1024 };

/* Rate below 10: inversion by sequential search; else Hormann, The transformed rejection method for generating Poisson
 * random variables, 1993 (PTRS). Rate not positive: 0; not finite: the rate. */
double ph_poisson(uint64_t seed, uint64_t counter, uint64_t element, double rate);
/* Gamma with shape alpha, scale 1: Marsaglia, Tsang: A simple method for generating gamma variables, 2000; below 1 the
 * variate for alpha + 1 times u^(1/alpha). alpha 0: 0; negative or NaN: NaN. */
double ph_gamma(uint64_t seed, uint64_t counter, uint64_t element, double alpha);
/* Successes in `count` (rounded down) trials of probability p. Fewer than 10 expected (of p or 1 - p): inversion by
 * sequential search; else Hormann, The generation of binomial random variates, 1993 (BTRS). count or p not positive: 0;
 * p from 1 on: count; NaN: NaN. */
double ph_binomial(uint64_t seed, uint64_t counter, uint64_t element, double count, double p);

#endif
