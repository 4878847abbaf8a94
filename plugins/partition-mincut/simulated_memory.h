/* aot.memory/1 of the partitioner: what the simulator says of a divided program, as rows. One step a node; everything
 * at the boundary lives as the host holds it (common/memory/rows.h). */
#ifndef MC_SIMULATED_MEMORY_H
#define MC_SIMULATED_MEMORY_H

#include "common/memory/rows.h"

/* symbols: values of the shape environment's symbols; n_symbols 0: their hints. out: cleared first; out->plan is
 * filled. AOT_OK; AOT_E_PRECONDITION: there is no forward graph, or still a joint one; AOT_E_RANGE: a size without a
 * value; AOT_E_EXHAUSTED. */
aot_status_t mc_simulated_memory(const aot_snapshot_t *s, const int64_t *symbols, uint64_t n_symbols, mr_rows_t *out);

#endif
