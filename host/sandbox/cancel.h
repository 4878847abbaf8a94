/* Asking a session to stop what it compiles.
 *
 *     aoth_session_cancel (pipeline.h)    any thread, or a signal handler: a flag of the session
 *     host->cancelled                     answers by the flag; in a worker by a page that it shares with who waits for
 *     it
 *                                         (worker.c), and that he keeps up to date
 *     a unit that hears it                AOT_E_CANCELLED: its stage is undone, those after it are not run
 *     one that does not ask               comes to its end, and those after it are not run
 *
 * What is compiled ends with AOT_E_CANCELLED, or fails as it would have without; no bundle is left of a stage that did
 * as it was queried to. */
#ifndef AOTH_CANCEL_H
#define AOTH_CANCEL_H

#include <sandbox/session.h>

int aoth_is_cancelled(const aot_ctx_t *ctx); /* [any-thread] */
/* AOT_E_CANCELLED, reported with the unit that came to its end last, where the session is to stop. */
aot_status_t aoth_session_go_on(aoth_session_t *s);

/* Around what compiles; may be nested. The outermost end answers AOT_E_CANCELLED in place of AOT_OK. */
void aoth_compiling_begin(aoth_session_t *s);
aot_status_t aoth_compiling_end(aoth_session_t *s, aot_status_t status);

#endif
