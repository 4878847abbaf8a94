/* A buffer in device memory with a mirror in host memory. Programs use the device's buffer; the host copy is allocated
 * and updated when the host reads or writes it. On a device that shares the host's memory both are one, and nothing is
 * copied.
 *
 *     valid            the contents are in
 *     0                neither: zeros, which are made where they are first wanted
 *     ON_HOST          the host's copy: written to the device when a call needs it
 *     ON_DEVICE        the buffer: read when the host asks
 *     both             either
 *
 * A change of `buffer` or `valid` increments the queue's n_stirs. While n_stirs is unchanged, every tensor is where the
 * last call used or left it, and calls need not check. */
#ifndef AOTH_MIRRORED_BUFFER_H
#define AOTH_MIRRORED_BUFFER_H

#include <device/queue.h>

#define AOTH_ON_HOST 1u
#define AOTH_ON_DEVICE 2u

typedef struct aoth_resident {
  uint64_t nbytes;
  aot_buffer_t buffer; /* on the device, as allocated; address 0: none yet */
  char *host;          /* the host copy; NULL: none yet */
  uint32_t valid;
  uint32_t owns;        /* AOTH_ON_*: which memory is freed with it */
  int is_borrowed;      /* host: borrowed (a mapped model file), read-only */
  int is_lent;          /* host: provided by the caller, read and written in place */
  int is_exported;      /* the caller holds a pointer to it: it must not move */
  int is_of_call;       /* checked in each call: its position does not count in n_stirs */
  uint64_t version;     /* grows whenever the contents may change; not by a step again (step/step_ports.h) */
  uint64_t busy;        /* the queue reads the host's copy up to this point */
  struct aoth_fed *fed; /* the host gives it for each call with others (input_staging.h); NULL: it goes by itself */
  struct aoth_resident *next_fed; /* which go with it */
  /* of the device that it lives on, instead of the one that functions are given; NULL: that one */
  aoth_queue_t *home;
} aoth_mirrored_buffer_t;

/* Zeros, without memory; contents that the caller owns and keeps; a range of a buffer, contents undefined. */
aoth_mirrored_buffer_t aoth_resident_zeros(uint64_t nbytes);
aoth_mirrored_buffer_t aoth_resident_of(const void *data, uint64_t nbytes);
aoth_mirrored_buffer_t aoth_resident_part(const aoth_queue_t *q, aot_buffer_t whole, uint64_t at, uint64_t nbytes);
/* Contents in memory of the caller, at a fixed address; results are written there. */
aoth_mirrored_buffer_t aoth_resident_lent(const aoth_queue_t *q, void *memory, uint64_t nbytes);
/* waits until nothing is under way; leaves zeros of 0 bytes */
aot_status_t aoth_resident_free(aoth_mirrored_buffer_t *r, aoth_queue_t *q);
/* Another size, without contents; also in the middle of work, after all other that used it. A buffer that is large
 * enough stays. */
aot_status_t aoth_resident_resize(aoth_mirrored_buffer_t *r, aoth_queue_t *q, uint64_t nbytes);

/* It lives on that queue's device from now on, with its contents, in memory of its own. */
aot_status_t aoth_resident_settle(aoth_mirrored_buffer_t *r, aoth_queue_t *q, aoth_queue_t *home);

/* For calls: the buffer has the contents; it is the device's own, which may be written; a call that was put on the
 * queue writes it. */
aot_status_t aoth_resident_need(aoth_mirrored_buffer_t *r, aoth_queue_t *q);
aot_status_t aoth_resident_own(aoth_mirrored_buffer_t *r, aoth_queue_t *q);
void aoth_resident_written(aoth_mirrored_buffer_t *r, aoth_queue_t *q);
void aoth_resident_clear(aoth_mirrored_buffer_t *r, aoth_queue_t *q); /* sets it to zeros; it must be unshared */
/* nbytes from byte `at` on of the one to the same place of the other, which lives on the same device, and there. */
aot_status_t aoth_resident_copy(aoth_mirrored_buffer_t *to, aoth_mirrored_buffer_t *from, uint64_t at, uint64_t nbytes,
                                aoth_queue_t *q);

/* For the host: its copy has the contents, until a call changes them; it may be written, now, and what is not written
 * is as it was if `keep`. Both wait for what is under way on it. */
aot_status_t aoth_resident_read(aoth_mirrored_buffer_t *r, aoth_queue_t *q, const void **out);
aot_status_t aoth_resident_edit(aoth_mirrored_buffer_t *r, aoth_queue_t *q, int keep, void **out);

#endif
