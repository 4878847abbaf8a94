/* aot.memory/1 of the partitioner: what the simulator says of a divided program, as rows. One step a node; everything
 * at the boundary lives as the host holds it (kit/model/rows.h). */
#ifndef MC_SIMULATED_MEMORY_H
#define MC_SIMULATED_MEMORY_H

#include "kit/model/ask_costs.h"
#include "kit/model/rows.h"

/* q: who is queried what the nodes cost, and at which sizes. out: cleared first; out->plan is filled. AOT_OK;
 * AOT_E_PRECONDITION: there is no forward graph, or still a joint one; AOT_E_RANGE: a size without a value;
 * AOT_E_INVALID: too few of them; AOT_E_EXHAUSTED. */
aot_status_t mc_simulated_memory(const nc_question_t *q, mr_rows_t *out);

#endif
