/* Which nodes does a backend take? Code that looks on may keep nodes from it (aoth_watch_t.takes). */
#ifndef AOTH_BACKEND_QUERY_H
#define AOTH_BACKEND_QUERY_H

#include <sandbox/session.h>

/* Inside of a call into the unit. */
aot_status_t aoth_backend_query(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend,
                                aot_prog_t *prog, const aot_verdict_sink_t *sink);

#endif
