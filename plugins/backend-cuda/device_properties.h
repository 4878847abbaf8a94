/* What is known of a GPU before a program runs on it: its architecture, its size, and the rates that follow. */
#ifndef GC_DEVICE_PROPERTIES_H
#define GC_DEVICE_PROPERTIES_H

#include "kit/model/node_costs.h"
#include "kit/loops/loop.h"
#include "driver.h"

typedef struct gc_facts {
  lp_gpu_machine_t machine;
  nc_rates_t rates; /* that long runs reach */
} gc_facts_t;

/* Of a device; ordinal < 0: of none that is here, an H100's. */
gc_facts_t gc_facts_of(const gc_driver_t *driver, gc_ordinal_t device);

#endif
