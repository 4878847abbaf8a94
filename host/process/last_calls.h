/* The plugins that were called last, as text: suspects of a crash that follows their calls, and what a supervisor
 * (supervisor.h) reads after a process that a plugin ended. Fixed memory, which two processes can share. */
#ifndef AOTH_LAST_CALLS_H
#define AOTH_LAST_CALLS_H

#include <stdatomic.h>
#include <stdint.h>

#define AOTH_N_SUSPECTS 4
#define AOTH_CALL_TEXT 256
#define AOTH_CALL_PLUGIN ", plugin " /* what precedes the file in the text of a call */

typedef struct aoth_last_calls {
  atomic_uint n_inside; /* threads inside of a call */
  atomic_uint n_suspects;
  atomic_flag is_writing;
  atomic_int end;            /* 1 + the exit status that the command decided on; 0: it still works */
  atomic_uint n_signals;     /* Ctrl-C and the like that its handler has seen */
  char last[AOTH_CALL_TEXT]; /* terminated; empty: none */
  char suspects[AOTH_N_SUSPECTS]
               [AOTH_CALL_TEXT]; /* of plugins that are not the project's own, one each, the last first */
} aoth_last_calls_t;

/* text: "run of unit x, plugin p", cut. One comparison where it is the last one already; any thread. */
void aoth_last_calls_note(aoth_last_calls_t *calls, const char *text, int is_own);
/* Writes "; suspects, the last one called first: .." to a descriptor; without any the last call. Async-signal-safe. */
void aoth_last_calls_put(const aoth_last_calls_t *calls, int fd);

#endif
