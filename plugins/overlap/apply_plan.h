/* A plan in the program: collectives that begin and are waited for where it says, and what goes after them. */
#ifndef OV_APPLY_PLAN_H
#define OV_APPLY_PLAN_H

#include "jobs_of_step.h"

/* plan: of r's jobs; what goes along with nodes that it puts later is marked in it. r's arrays are of the old program
 * then. */
aot_status_t ov_apply(ov_rewriting_t *r, const ov_plan_t *plan);

#endif
