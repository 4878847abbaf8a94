/* Extensions that units offer, requested in one place. */
#ifndef AOTH_EXTENSION_H
#define AOTH_EXTENSION_H

#include <sandbox/session.h>

/* An extension that the unit offers by its table, imported by copy. AOT_E_NOT_FOUND: it offers none; AOT_E_TOO_NEW. */
aot_status_t aoth_instance_extension(const aoth_instance_t *i, const char *id, void *out, uint32_t size);

#endif
