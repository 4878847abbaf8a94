/* Which stages run in a worker. */
#ifndef AOTH_ISOLATION_H
#define AOTH_ISOLATION_H

#include <sandbox/session.h>

double aoth_stage_timeout(const aoth_session_t *s, const aoth_stage_t *stage); /* seconds; 0: it may take any */
/* As it says, as the session says, and else: those of plugins that are not the project's own, and all where an opset is
 * open that is not. */
int aoth_stage_is_isolated(const aoth_session_t *s, const aoth_stage_t *stage);
int aoth_has_foreign_opset(const aoth_session_t *s); /* one that is open */

#endif
