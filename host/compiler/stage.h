/* One stage run. */
#ifndef AOTH_STAGE_H
#define AOTH_STAGE_H

#include <sandbox/session.h>

uint64_t aoth_count_nodes(aot_prog_t *p);
void aoth_session_record(aoth_session_t *s, const aoth_stage_t *stage, uint64_t begin_ns, uint64_t before,
                         uint64_t edits);

#endif
