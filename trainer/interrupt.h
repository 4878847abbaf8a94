/* Ctrl-C during long work: the first one asks to stop at the next good place, the second one ends the process.
 *
 * Work that looks for itself (aoth_interrupt_asked) also notes SIGTERM, and a terminal that goes away, unless that is
 * ignored (nohup). Work that is to be reported hears of Ctrl-C alone. */
#ifndef AOTH_INTERRUPT_H
#define AOTH_INTERRUPT_H

#include <signal.h>

#define AOTH_N_INTERRUPTS 3

/* The innermost is the one that is queried: of several threads' that which began last. [any-thread] */
typedef struct aoth_interrupt {
  /* Reports the work, in the signal handler. 0: nothing continues that would stop, and the process ends. NULL: the work
   * looks for itself. */
  int (*ask)(void *self);
  void *self;
  /* of this file */
  volatile sig_atomic_t asked;
  struct aoth_interrupt *outer;
  struct sigaction before[AOTH_N_INTERRUPTS];
} aoth_interrupt_t;

void aoth_interrupt_begin(aoth_interrupt_t *i); /* the members above filled in, or 0; borrowed until its end */
int aoth_interrupt_asked(void);                 /* 1: the innermost was since it began */
void aoth_interrupt_end(aoth_interrupt_t *i);   /* back to what was before; i->asked says whether it was */

#endif
