/* How long the steps of a schedule take (aot.profile/1). The first run holds what is done once: it counts only until
 * there is a second. */
#ifndef LW_STEP_TIMES_H
#define LW_STEP_TIMES_H

#include "kit/model/node_costs.h"
#include "schedule.h"
#include <aot/ext/profile.h>

void lw_times_clear(lw_schedule_t *s); /* counted from nothing */
void lw_times_begin(lw_schedule_t *s); /* a run is timed from here on */
void lw_times_add(lw_step_t *step, uint64_t at, uint64_t ns);
/* rates: of the machine; NULL: not known. The text is the step's. */
aot_profile_row_t lw_times_row(const lw_schedule_t *s, const lw_step_t *step, const nc_rates_t *rates);

#endif
