/* A schedule, checked as a list: every step reads only bytes that an input has, or that an earlier step wrote to the
 * same storage and no other storage has taken since; every output is written. One pass over what steps use (lw_used_t),
 * on a map from bytes of memory to the storage that was written there last: O(uses log storages) for tensors without
 * holes. Test builds check every schedule (AOT_CHECK_SCHEDULES): a wrong record shows where it was made, not as a wrong
 * number. */
#ifndef LW_SCHEDULE_CHECK_H
#define LW_SCHEDULE_CHECK_H

#include "lower.h"

/* Once memory is planned and steps are joined. AOT_E_INTERNAL: the first use that is wrong is in b->error, its node
 * too. */
aot_status_t lw_check_schedule(lw_build_t *b);

#endif
