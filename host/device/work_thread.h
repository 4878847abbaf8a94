/* A thread that does host work in the order in which it was put there: what a queue of the host's is that has to
 * continue by itself, since its work waits for other ranks. */
#ifndef AOTH_WORK_THREAD_H
#define AOTH_WORK_THREAD_H

#include <aot/device.h>

typedef struct aoth_work_thread aoth_work_thread_t;

aoth_work_thread_t *aoth_work_thread_create(void); /* NULL: no memory, or no thread */
/* 0: there is no memory for it, and it is not called. Each item is given the status of the one before. [any-thread] */
int aoth_work_thread_put(aoth_work_thread_t *t, aot_host_work_t work, void *self);
void aoth_work_thread_destroy(aoth_work_thread_t *t); /* once all of it is done */

#endif
