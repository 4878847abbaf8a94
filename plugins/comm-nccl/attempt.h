/* A call that may not return, made on a separate thread, so that its timeout holds whatever NCCL waits for. */
#ifndef NL_ATTEMPT_H
#define NL_ATTEMPT_H

#include <stdint.h>

typedef struct nl_attempt nl_attempt_t;

/* NULL: there is no thread. */
nl_attempt_t *nl_attempt_begin(void (*run)(void *), void *arg);
/* 1: run has come back. */
int nl_attempt_ends(nl_attempt_t *a, uint64_t within_ns);
/* Nothing waits any more. drop(arg) is called when run has come back: here, or by the thread. drop NULL: nothing is to
 * be done. */
void nl_attempt_forget(nl_attempt_t *a, void (*drop)(void *));

#endif
