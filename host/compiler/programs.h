/* Several programs in one session: one for each way in which inputs share memory. */
#ifndef AOTH_PROGRAMS_H
#define AOTH_PROGRAMS_H

#include <sandbox/session.h>

/* A session begins with program 0. A new one is empty and selected; it is compiled like the first. */
aot_status_t aoth_session_add_program(aoth_session_t *s, uint32_t *out);
/* the selected one, which is the newest and not the first; select another */
void aoth_session_drop_program(aoth_session_t *s);
void aoth_session_drop_programs(aoth_session_t *s); /* all, at the end */

#endif
