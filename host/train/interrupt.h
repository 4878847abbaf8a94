/* Ctrl-C during long work: the first one asks to stop at the next good place, the second one ends the process. A
 * terminal that goes away asks, too, unless that is ignored (nohup). */
#ifndef AOTH_INTERRUPT_H
#define AOTH_INTERRUPT_H

void aoth_interrupt_begin(void); /* from now on SIGINT, SIGTERM and SIGHUP are noted */
int aoth_interrupt_asked(void);  /* 1: one came since begin */
void aoth_interrupt_end(void);   /* back to what was before */

#endif
