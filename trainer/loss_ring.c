#include <trainer/loss_ring.h>

#include <aot/inline.h>
#include <device/mirrored_buffer.h>

aot_status_t aoth_loss_ring_init(aoth_loss_ring_t *r, aoth_queue_t *queue, uint32_t n) {
  void *memory;
  *r = (aoth_loss_ring_t){.queue = queue};
  AOT_TRY(aoth_queue_host_alloc(queue, n * sizeof *r->rows, &memory));
  r->rows = memory;
  r->n = n;
  return AOT_OK;
}

aot_status_t aoth_loss_ring_deinit(aoth_loss_ring_t *r) {
  const aot_status_t idle = r->rows ? aoth_queue_idle(r->queue) : AOT_OK;
  const aot_status_t freed = r->rows ? aoth_queue_host_free(r->queue, r->rows, r->n * sizeof *r->rows) : AOT_OK;
  *r = (aoth_loss_ring_t){0};
  return idle != AOT_OK ? idle : freed;
}

aot_status_t aoth_loss_ring_put(aoth_loss_ring_t *r, const aoth_tensor_t *loss) {
  aoth_loss_row_t *row = &r->rows[r->n_put % r->n];
  const uint64_t size = aot_dtype_size(loss->dtype);
  row->dtype = loss->dtype;
  AOT_TRY(aoth_queue_read(r->queue, &row->number,
                          (aot_buffer_t){loss->resident->buffer.address + (uint64_t)loss->offset * size, size}));
  row->point = aoth_queue_end(r->queue);
  r->n_put++;
  return AOT_OK;
}

int aoth_loss_ring_is_full(const aoth_loss_ring_t *r) { return r->n_put - r->n_taken == r->n; }

int aoth_loss_ring_has(const aoth_loss_ring_t *r, int64_t n) {
  const uint64_t last = r->n_taken + (uint64_t)n;
  return n <= 0 || (last <= r->n_put && r->rows[(last - 1) % r->n].point <= r->queue->done);
}

aot_status_t aoth_loss_ring_take(aoth_loss_ring_t *r, double *out_loss) {
  const aoth_loss_row_t *row = &r->rows[r->n_taken % r->n];
  AOT_TRY(aoth_queue_wait(r->queue, row->point));
  *out_loss = kit_element_load(row->dtype, &row->number);
  r->n_taken++;
  return AOT_OK;
}
