/* The faults of wrong_units.def, and units of kinds that are long: those of the project's own, wrong in one way. */
#ifndef WRONG_UNITS_H
#define WRONG_UNITS_H

#include <aot/host.h>

typedef enum fault {
  FAULT_right,
#define WRONG(name, kind, rule) FAULT_##name,
#include "wrong_units.def"
#undef WRONG
} fault_t;

/* NULL: no memory. Destroyed by their tables. */
const aot_table_t *wrong_partition(const aot_host_t *host, fault_t fault);
const aot_table_t *wrong_device(const aot_host_t *host, fault_t fault);
const aot_table_t *wrong_communicator(const aot_host_t *host, fault_t fault);

#endif
