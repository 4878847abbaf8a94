/* Memory of a device that the host may ask for: a tensor's storage lies where programs use it, and a copy of the host's
 * is made, and brought up to date, when the host reads or writes it. Where the device's memory is the host's the two
 * are one, and nothing is copied.
 *
 *     valid            the contents are in
 *     0                neither: zeros, which are made where they are first wanted
 *     ON_HOST          the host's copy: written to the device when a call needs it
 *     ON_DEVICE        the buffer: read when the host asks
 *     both             either
 *
 * Who moves contents says so: whatever changes the buffer or `valid` counts up the queue's n_stirs. While that stands
 * still, every tensor lies where the last call found it, or has left it, and nobody needs to look. */
#ifndef AOTH_MIRRORED_BUFFER_H
#define AOTH_MIRRORED_BUFFER_H

#include <device/queue.h>

#define AOTH_ON_HOST 1u
#define AOTH_ON_DEVICE 2u

typedef struct aoth_resident {
  uint64_t nbytes;
  aot_buffer_t buffer; /* of the device, as it was had; address 0: none yet */
  char *host;          /* the host's copy; NULL: none yet */
  uint32_t valid;
  uint32_t owns;        /* AOTH_ON_*: which memory is to be given back */
  int is_borrowed;      /* host: somebody else's (a model file's), not to be written */
  int is_lent;          /* host: somebody else's, to be read and written there */
  int is_exported;      /* somebody else looks at the memory: it stays where it is */
  int is_of_call;       /* each call looks at it: where it lies is nothing that stays, and is not counted */
  uint64_t version;     /* grows whenever the contents may change; not by a step again (step/step_ports.h) */
  uint64_t busy;        /* the queue reads the host's copy up to this point */
  struct aoth_fed *fed; /* the host gives it for each call with others (input_staging.h); NULL: it goes by itself */
  struct aoth_resident *next_fed; /* which go with it */
  /* of the device that it lives on, instead of the one that functions are given; NULL: that one */
  aoth_queue_t *home;
} aoth_mirrored_buffer_t;

/* Zeros, without memory; contents of somebody's, who keeps them; a part of a buffer, whose contents are of no
 * interest. */
aoth_mirrored_buffer_t aoth_resident_zeros(uint64_t nbytes);
aoth_mirrored_buffer_t aoth_resident_of(const void *data, uint64_t nbytes);
aoth_mirrored_buffer_t aoth_resident_part(const aoth_queue_t *q, aot_buffer_t whole, uint64_t at, uint64_t nbytes);
/* Contents in memory of somebody's, at an address that programs may count on, who has them back in it. */
aoth_mirrored_buffer_t aoth_resident_lent(const aoth_queue_t *q, void *memory, uint64_t nbytes);
/* waits until nothing is under way; leaves zeros of 0 bytes */
aot_status_t aoth_resident_free(aoth_mirrored_buffer_t *r, aoth_queue_t *q);
/* Another size, without contents; also in the middle of work, behind all other that used it. A buffer that is large
 * enough stays. */
aot_status_t aoth_resident_resize(aoth_mirrored_buffer_t *r, aoth_queue_t *q, uint64_t nbytes);

/* It lives on that queue's device from now on, with its contents, in memory of its own. */
aot_status_t aoth_resident_settle(aoth_mirrored_buffer_t *r, aoth_queue_t *q, aoth_queue_t *home);

/* For calls: the buffer has the contents; it is the device's own, which may be written; a call that was put on the
 * queue writes it. */
aot_status_t aoth_resident_need(aoth_mirrored_buffer_t *r, aoth_queue_t *q);
aot_status_t aoth_resident_own(aoth_mirrored_buffer_t *r, aoth_queue_t *q);
void aoth_resident_written(aoth_mirrored_buffer_t *r, aoth_queue_t *q);
void aoth_resident_clear(aoth_mirrored_buffer_t *r,
                         aoth_queue_t *q); /* zeros from now on, of one that nobody else keeps */
/* nbytes from byte `at` on of the one to the same place of the other, which lives on the same device, and there. */
aot_status_t aoth_resident_copy(aoth_mirrored_buffer_t *to, aoth_mirrored_buffer_t *from, uint64_t at, uint64_t nbytes,
                                aoth_queue_t *q);

/* For the host: its copy has the contents, until a call changes them; it may be written, now, and what is not written
 * is as it was if `keep`. Both wait for what is under way on it. */
aot_status_t aoth_resident_read(aoth_mirrored_buffer_t *r, aoth_queue_t *q, const void **out);
aot_status_t aoth_resident_edit(aoth_mirrored_buffer_t *r, aoth_queue_t *q, int keep, void **out);

#endif
