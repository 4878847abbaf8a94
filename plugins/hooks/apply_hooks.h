/* Putting a hook around saved values of a partitioned program. */
#ifndef APPLY_HOOKS_H
#define APPLY_HOOKS_H

#include "hook.h"

#define HK_FILTER_DONATED 0   /* only what nothing else holds: memory that packing really frees */
#define HK_FILTER_NO_STATIC 1 /* also what a user input or output holds */
/* also parameters, buffers, constants: whatever the backward reads of the forward's values */
#define HK_FILTER_ALL 2

typedef struct hk_plan {
  int filter;
  int64_t min_nbytes;
  uint64_t dtypes; /* bit d: values of dtype d; 0: what the hook takes */
  int is_offload;
} hk_plan_t;

/* Edits e->prog and reports what was done; all failures are reported and stored in e->status. Values that are not
 * packed stay slots. The first part of a packed value takes its slot, further parts get new slots after all others.
 * O(program + reads of slots). */
void hk_apply(em_t *e, const hk_plan_t *plan, const hk_hook_t *hook);

#endif
