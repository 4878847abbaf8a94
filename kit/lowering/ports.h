/* A caller's tensors as the storages of a schedule's ports. */
#ifndef LW_PORTS_H
#define LW_PORTS_H

#include "schedule.h"

/* Where the storage of each port lies, so that its declared offset finds the tensor's first element. AOT_E_INVALID: a
 * tensor that is not of the port's type, or reaches past its memory; what: "input" or "output", for the message. */
aot_status_t lw_bind_ports(const lw_port_t *ports, uint32_t n, const aot_tensor_t *tensors, const char *what,
                           char **base, lw_error_t *error);

/* Integer outputs, which are known without running anything, into the caller's tensors. */
void lw_write_numbers(const lw_schedule_t *s, const aot_tensor_t *outputs);

#endif
