/* Crash containment: a plugin call that ends in a signal comes back as one.
 *
 *     aoth_crash_install();                       once, by the session
 *     if (!aoth_guard(fn, arg, "stage x", &crash)) {  the call died: clean up, tell
 *       ...
 *       aoth_crash_done();
 *     }
 *
 * SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT on the guarded thread return to the guard. Between the crash and
 * aoth_crash_done() a second one, or 30 seconds without end (a lock that died with the call), prints a line and ends the
 * process with status 3; so does a crash in a thread that a plugin started. Outside of guards signals act as ever. */
#ifndef AOTH_CRASH_H
#define AOTH_CRASH_H

#include <stdint.h>

typedef struct aoth_crash {
  int signal;
  int reserved;
  uint64_t address; /* that the instruction wanted; SIGSEGV and SIGBUS */
} aoth_crash_t;

int aoth_crash_install(void); /* 0: the handlers could not be set */
/* 1: fn came back. `what` is for the last words of a second crash: terminated, borrowed until the next guard. */
int aoth_guard(void (*fn)(void *arg), void *arg, const char *what, aoth_crash_t *out);
void aoth_crash_done(void);
const char *aoth_signal_name(int signal); /* "SIGSEGV" */
const char *aoth_signal_text(int signal); /* "a wild pointer" and the like */

#endif
