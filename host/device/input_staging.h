/* Inputs that the host writes for each call, contiguous on the device and in host memory, so that one copy uploads
 * them. While the queue is busy the copy is issued ahead of it (aoth_queue_write_ahead).
 *
 *     all parts are uploaded when a call needs the first of them; where the host lacks the contents of one, because a
 *     call has written it, each part is uploaded by itself */
#ifndef AOTH_INPUT_STAGING_H
#define AOTH_INPUT_STAGING_H

#include <device/mirrored_buffer.h>

typedef struct aoth_fed {
  aot_buffer_t buffer;           /* owned by the caller; must outlive all parts */
  char *host;                    /* as many bytes, allocated by the device as host memory */
  aoth_mirrored_buffer_t *parts; /* a list */
  aoth_ahead_t ahead;
} aoth_input_staging_t;

/* Of a device whose memory is not the host's. Zeroed before; after a failure, too: free. */
aot_status_t aoth_fed_init(aoth_input_staging_t *f, aoth_queue_t *q, aot_buffer_t buffer);
/* Waits until nothing is under way; leaves it zeroed, and parts that were not freed before without contents. */
aot_status_t aoth_fed_free(aoth_input_staging_t *f, aoth_queue_t *q);
/* A part of its buffer, without contents, which stays where it is until f is freed. */
void aoth_fed_add(aoth_input_staging_t *f, aoth_mirrored_buffer_t *part);

/* The parts, one of which is not on the device, are put there, if the host has them all. 0: it has not. */
int aoth_fed_is_whole(const aoth_input_staging_t *f);
aot_status_t aoth_fed_write(aoth_input_staging_t *f, aoth_queue_t *q);

#endif
