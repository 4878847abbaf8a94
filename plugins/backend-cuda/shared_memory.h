/* Memory of a device that other processes' devices may map into theirs: what NCCL needs of a buffer to have it moved by
 * copy engines. Pages of cuMemCreate, mapped at addresses of their own.
 *
 * Addresses are never another buffer's while the device lives: code that has registered a range queries the driver
 * whether memory is there still, and need not be reported. [any-thread], with the context set on the thread that
 * calls. */
#ifndef GC_SHARED_MEMORY_H
#define GC_SHARED_MEMORY_H

#include "driver.h"
#include <pthread.h>

typedef struct gc_shared_memory {
  const gc_driver_t *driver;
  gc_ordinal_t ordinal;
  uint64_t granularity; /* bytes of a page; 0: the driver has no such memory */
  pthread_mutex_t lock; /* of what follows */
  struct gc_range *mapped, *gone;
} gc_shared_memory_t;

/* driver: borrowed. */
void gc_shared_memory_init(gc_shared_memory_t *m, const gc_driver_t *driver, gc_ordinal_t ordinal);
void gc_shared_memory_deinit(gc_shared_memory_t *m, int is_lost); /* what is still mapped stays so */

/* At least a page. 0: it cannot be had in this way. */
int gc_shared_memory_get(gc_shared_memory_t *m, uint64_t nbytes, gc_address_t *out);
/* 0: the address is not such memory; else *out is what the driver says. */
int gc_shared_memory_give_back(gc_shared_memory_t *m, gc_address_t address, gc_result_t *out);

#endif
