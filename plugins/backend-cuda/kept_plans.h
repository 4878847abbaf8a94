/* Plans of cuDNN that are not made one by one when a lowering asks for them. cuDNN compiles the kernels of a plan, some
 * hundred ms for one of attention, and can write it down as text, which loads in 2 ms: so plans are kept in the cache
 * folder under a hash of their graph, cuDNN's version and the device, and those that are missing are made on threads,
 * each with a handle of its own, and come over as text. */
#ifndef GC_KEPT_PLANS_H
#define GC_KEPT_PLANS_H

#include "cudnn_plan.h"

/* c is ready from here on; folder: the cache's; NULL: nothing is kept. */
void gc_plans_keep_in(gc_cudnn_t *c, const char *folder, const char *device);
/* 1: the plan of p->text was kept, and is there. */
int gc_plans_read(gc_cudnn_t *c, gc_dnn_plan_t *p);
void gc_plans_write(const gc_cudnn_t *c, const gc_dnn_plan_t *p); /* a full disk costs time only */

/* Everything that waits (gc_cudnn_t.is_gathering), until gc_plans_end; what could not be made so is made when it is asked for.
 * NULL: no memory. The context is the device's. */
typedef struct gc_plans_making gc_plans_making_t;
gc_plans_making_t *gc_plans_begin(gc_cudnn_t *c, const gc_driver_t *driver, gc_context_t context);
/* How many are other than they were taken to be: what was lowered is right if there are none. */
uint32_t gc_plans_end(gc_plans_making_t *m);

#endif
