/* What the host gives for each call: tensors that lie side by side, on the device and in memory of the host's, so that
 * they go there as one copy. While there is work on the queue, that copy is ahead of it (aoth_queue_write_ahead).
 *
 *     a part that is written goes with all others, when a call needs the first of them; where the host has not the
 *     contents of another, since a call has written it, each goes by itself */
#ifndef AOTH_INPUT_STAGING_H
#define AOTH_INPUT_STAGING_H

#include <device/mirrored_buffer.h>

typedef struct aoth_fed {
  aot_buffer_t buffer;           /* somebody's, who keeps it while there are parts */
  char *host;                    /* as many bytes of the device's host memory */
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
