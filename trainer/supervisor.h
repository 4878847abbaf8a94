/* A process that waits for the one that works, so that a plugin cannot end it with status 0.
 *
 *     aothost run p.yaml                       the process that the shell knows
 *       | before the first plugin that is not the project's own is opened: fork
 *       |----------------------------------->  continues: compiles, trains
 *     waits                                    writes the status that it decided on, at its end
 *     hands signals on                         raw exit_group(0), _exit() in an exit handler, SIGALRM, ..
 *     ends as the other one did; without that status, with 3 and the plugins that were called last (last_calls.h)
 *
 * exit(), _exit() and crashes inside of a call are reported by the process itself (crash.h). A library never does this,
 * and a command only with such plugins; not under a debugger, where threads run already, or with AOT_SUPERVISE=0. */
#ifndef AOTH_SUPERVISOR_H
#define AOTH_SUPERVISOR_H

void aoth_supervise_command(void);  /* this process runs a command, and may be supervised */
int aoth_is_command(void);          /* 1: it does, or its parent did */
void aoth_supervise_nothing(void);  /* this fork of it has a process that waits for it, with a time limit */
void aoth_supervise(void);          /* a foreign plugin is about to be opened; returns in the process that works on */
void aoth_supervised_end(int code); /* what the command decided on; after that come exit handlers and destructors */
void aoth_supervised_signal(void);  /* a signal to stop was seen here: it need not be handed on. In its handler */

#endif
