/* device/1 host: the machine's own memory. Work is done as it is put on a queue, by code that puts it there; what must
 * wait first blocks that thread. The memory is the host's, so nothing is ever copied that is there already. */
#ifndef AOTH_HOST_DEVICE_H
#define AOTH_HOST_DEVICE_H

#include <aot/device.h>

#define AOTH_HOST_ALIGN 64u /* bytes, of every buffer */

const aot_device_t *aoth_host_device(void); /* one for all sessions; destroy does nothing */

#endif
