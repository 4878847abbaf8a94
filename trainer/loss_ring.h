/* Losses on their way from the device. The queue brings each after its step, and nothing waits for that: the host looks
 * when the queue has passed it, while later steps are under way. In the order in which they were put there. */
#ifndef AOTH_LOSS_RING_H
#define AOTH_LOSS_RING_H

#include <device/queue.h>
#include <step/tensor.h>

typedef struct aoth_loss_row {
  double number; /* storage of the loss, in its dtype */
  int32_t dtype;
  uint64_t point; /* where the queue has brought it */
} aoth_loss_row_t;

typedef struct aoth_loss_ring {
  aoth_queue_t *queue;
  aoth_loss_row_t *rows; /* the device's host memory; n of them */
  uint32_t n;
  uint64_t n_put, n_taken; /* ever */
} aoth_loss_ring_t;

aot_status_t aoth_loss_ring_init(aoth_loss_ring_t *r, aoth_queue_t *queue, uint32_t n);
aot_status_t aoth_loss_ring_deinit(aoth_loss_ring_t *r); /* waits for what is under way */

/* loss: one number, where the step that was put last leaves it. There must be room. */
aot_status_t aoth_loss_ring_put(aoth_loss_ring_t *r, const aoth_tensor_t *loss);
int aoth_loss_ring_is_full(const aoth_loss_ring_t *r);
int aoth_loss_ring_has(const aoth_loss_ring_t *r, int64_t n);            /* the oldest n can be taken without waiting */
aot_status_t aoth_loss_ring_take(aoth_loss_ring_t *r, double *out_loss); /* the oldest, which there must be; waits */

#endif
