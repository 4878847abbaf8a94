/* device/1 strict: the table over strict_memory and strict_queue, with every check and every message. */
#ifndef STRICT_DEVICE_H
#define STRICT_DEVICE_H

#include "strict_state.h"

/* NULL: no memory. Destroyed by its table. */
sd_device_t *sd_device_create(const aot_host_t *host, const sd_options_t *options);

#endif
