/* Draws: the only nodes from which numbers come. Each is a pure function of (seed, offset, its number, element), by
 * Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011); see the operators aot.philox_*.
 *
 * A graph's stream begins with no ports; the first draw makes them: inputs `seed` and `offset`, or two more region
 *
 * inputs. */
#ifndef RG_DRAWS_H
#define RG_DRAWS_H

#include "draw_state.h"

/* A rejection sampler may look this many numbers ahead. */
#define RG_REJECTION_SPAN 1024

/* Makes the stream's ports where they are missing. */
aot_status_t rg_stream_open(em_t *e);

/* Tensors of `shape`'s sizes, on its device, row-major. */
em_x_t rg_uniform(em_t *e, const aot_type_t *shape, int32_t dtype);           /* in [0, 1) */
em_x_t rg_normal(em_t *e, const aot_type_t *shape, int32_t dtype);            /* mean 0, variance 1 */
em_x_t rg_bits(em_t *e, const aot_type_t *shape);                             /* int64, 63 random bits */
em_x_t rg_randint(em_t *e, const aot_type_t *shape, em_x_t low, em_x_t high); /* int64 in [low, high) */
/* A rejection sampler: op takes its parameters after seed, offset and draw. At most 4 of them. */
em_x_t rg_sample(em_t *e, const char *op, const aot_type_t *shape, uint32_t n, const em_x_t *parameters);

/* mask: bool, true with probability p. */
em_x_t rg_chance(em_t *e, const aot_type_t *shape, double p);

#endif
