/* Digests of what a call may only read: taken before it, compared after it. An input that shares memory with an output
 * is left out. */
#ifndef AOTH_INPUT_DIGESTS_H
#define AOTH_INPUT_DIGESTS_H

#include <aot/backend.h>

#define AOTH_NO_INPUT UINT64_MAX

typedef struct aoth_input_digests {
  uint64_t *rows; /* by input; n of them */
  uint64_t n, capacity;
} aoth_input_digests_t;

/* Without memory nothing is compared. O(bytes + inputs outputs) */
void aoth_input_digests_take(aoth_input_digests_t *d, const aot_binding_t *b);
/* The first input whose bytes have changed since, or AOTH_NO_INPUT. O(bytes + inputs outputs) */
uint64_t aoth_input_digests_changed(const aoth_input_digests_t *d, const aot_binding_t *b);
void aoth_input_digests_deinit(aoth_input_digests_t *d);

#endif
