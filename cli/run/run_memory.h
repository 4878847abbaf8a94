/* When a device has no memory for a step: what holds it, by module, and what to do. */
#ifndef AOTH_RUN_MEMORY_H
#define AOTH_RUN_MEMORY_H

#include <cli/run/run_report.h>

/* Notes after the error. Without a plan of the backend's there are none; a program out of the cache has no nodes that
 * could be named. */
void aoth_run_tell_memory(const aoth_run_t *r);

#endif
