#include <device/input_staging.h>

#include <aot/assert.h>

aot_status_t aoth_fed_init(aoth_input_staging_t *f, aoth_queue_t *q, aot_buffer_t buffer) {
  void *host;
  AOT_TRY(aoth_queue_host_alloc(q, buffer.nbytes, &host));
  *f = (aoth_input_staging_t){.buffer = buffer, .host = host};
  return AOT_OK;
}

aot_status_t aoth_fed_free(aoth_input_staging_t *f, aoth_queue_t *q) {
  if (!f->host) return AOT_OK;
  const aot_status_t idle = aoth_queue_idle(q);
  for (aoth_mirrored_buffer_t *r = f->parts, *next; r; r = next) {
    next = r->next_fed;
    r->host = NULL;
    r->valid = 0;
    r->fed = NULL;
    r->next_fed = NULL;
  }
  const aot_status_t host = aoth_queue_host_free(q, f->host, f->buffer.nbytes);
  const aot_status_t between = f->ahead.between.address ? aoth_queue_free(q, f->ahead.between) : AOT_OK;
  *f = (aoth_input_staging_t){0};
  return idle != AOT_OK ? idle : host != AOT_OK ? host : between;
}

void aoth_fed_add(aoth_input_staging_t *f, aoth_mirrored_buffer_t *part) {
  AOT_ASSERT(!part->fed && part->buffer.address >= f->buffer.address &&
             part->buffer.address + part->nbytes <= f->buffer.address + f->buffer.nbytes);
  part->fed = f;
  part->next_fed = f->parts;
  part->host = f->host + (part->buffer.address - f->buffer.address);
  f->parts = part;
}

/* True if one copy of the whole buffer overwrites nothing newer; parts never written are zeroed after the copy. */
int aoth_fed_is_whole(const aoth_input_staging_t *f) {
  for (const aoth_mirrored_buffer_t *r = f->parts; r; r = r->next_fed)
    if (r->valid && !(r->valid & AOTH_ON_HOST)) return 0;
  return 1;
}

aot_status_t aoth_fed_write(aoth_input_staging_t *f, aoth_queue_t *q) {
  const int is_ahead = aoth_queue_is_busy(q);
  if (is_ahead && !f->ahead.between.address) AOT_TRY(aoth_queue_alloc(q, f->buffer.nbytes, &f->ahead.between));
  if (is_ahead) AOT_TRY(aoth_queue_write_ahead(q, f->buffer, f->host, &f->ahead));
  else AOT_TRY(aoth_queue_write(q, f->buffer, f->host));
  for (aoth_mirrored_buffer_t *r = f->parts; r; r = r->next_fed) {
    if (!r->valid) continue;
    r->valid |= AOTH_ON_DEVICE;
    if (!is_ahead) r->busy = aoth_queue_end(q);
  }
  return AOT_OK;
}
