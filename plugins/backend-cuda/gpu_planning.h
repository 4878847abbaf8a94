/* What backend-cuda reports a program before it is compiled: its memory (aot.memory/1) and its costs (aot.cost/1), as
 * the lowering has them for the first device of this machine, or, where there is none, for an H100. */
#ifndef GC_GPU_PLANNING_H
#define GC_GPU_PLANNING_H

#include "kit/model/rows.h"
#include "device_properties.h"
#include "gpu_options.h"
#include <aot/host.h>
#include <aot/ext/cost.h>
#include <aot/ext/memory.h>

typedef struct gc_planning {
  const aot_host_t *host;
  aot_ext_memory_t memory;
  aot_ext_cost_t cost;
  gc_driver_t driver; /* opened with the first question */
  gc_facts_t facts;
  int has_facts;
  mr_rows_t rows; /* of the last memory plan */
  const gc_choices_t *choices;
} gc_planning_t;

/* host, choices: borrowed. The tables name `p`, which stays where it is. */
void gc_planning_init(gc_planning_t *p, const aot_host_t *host, const gc_choices_t *choices);
void gc_planning_deinit(gc_planning_t *p);

#endif
