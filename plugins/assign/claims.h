/* Who would run what: every backend is queried about every node. */
#ifndef AS_CLAIMS_H
#define AS_CLAIMS_H

#include "assign_stage.h"
#include <aot/snapshot.h>

/* is_claimed, is_view, nanoseconds, at_most, launch. A node with regions is claimed by who claims all that is in
 * them. */
aot_status_t as_ask(as_stage_t *s, const aot_snapshot_t *snapshot);

#endif
