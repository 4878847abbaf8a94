/* Plans of cuDNN that are not made one by one when a lowering requests them. cuDNN compiles the kernels of a plan, some
 * hundred ms for one of attention, and can write it down as text, which loads in 2 ms: so plans are stored in the cache
 * folder under a hash of their graph, cuDNN's version and the device, and missing ones are built on threads,
 * each with its own cuDNN handle, as soon as they are requested, and returned as text. */
#ifndef GC_PLAN_CACHE_DISK_H
#define GC_PLAN_CACHE_DISK_H

#include "cudnn/cudnn_plan.h"

/* c is ready from here on; folder: the cache's; NULL: nothing is stored. */
void gc_plans_keep_in(gc_cudnn_t *c, const char *folder, const char *device);
/* 1: the plan of p->text was stored, and is there. */
int gc_plans_read(gc_cudnn_t *c, gc_dnn_plan_t *p);
void gc_plans_write(const gc_cudnn_t *c, const gc_dnn_plan_t *p); /* a full disk costs time only */

/* From here to gc_plans_end plans that are neither here nor kept wait, and are made meanwhile (gc_cudnn_t.making).
 * Without memory none do. The context is the device's. */
void gc_plans_begin(gc_cudnn_t *c, const gc_driver_t *driver, gc_context_t context);
/* One that waits. 0: no memory. */
int gc_plans_make(gc_cudnn_t *c, gc_dnn_plan_t *p);
/* None waits any more: how many are refused, or have another workspace than they were taken to have; what was lowered
 * is right if there are none. *ms grows by the time since the first was requested. */
uint32_t gc_plans_end(gc_cudnn_t *c, double *ms);

#endif
