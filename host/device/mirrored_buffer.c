#include <device/mirrored_buffer.h>

#include <aot/assert.h>
#include <aot/status.h>
#include <device/input_staging.h>
#include <string.h>

aoth_mirrored_buffer_t aoth_resident_zeros(uint64_t nbytes) { return (aoth_mirrored_buffer_t){.nbytes = nbytes}; }

aoth_mirrored_buffer_t aoth_resident_of(const void *data, uint64_t nbytes) {
  return (aoth_mirrored_buffer_t){
      .nbytes = nbytes, .host = (char *)(uintptr_t)data, .valid = AOTH_ON_HOST, .is_borrowed = 1};
}

aoth_mirrored_buffer_t aoth_resident_lent(const aoth_queue_t *q, void *memory, uint64_t nbytes) {
  aoth_mirrored_buffer_t r = {.nbytes = nbytes, .host = memory, .valid = AOTH_ON_HOST, .is_lent = 1};
  if (!q->is_shared) return r;
  r.buffer = (aot_buffer_t){(uintptr_t)memory, nbytes};
  r.valid |= AOTH_ON_DEVICE;
  return r;
}

static aoth_queue_t *queue_of(const aoth_mirrored_buffer_t *r, aoth_queue_t *q) { return r->home ? r->home : q; }
static char *pointer(aot_buffer_t b) { return (char *)(uintptr_t)b.address; }
static aot_buffer_t contents(const aoth_mirrored_buffer_t *r) { return (aot_buffer_t){r->buffer.address, r->nbytes}; }
static uint32_t both_if_shared(uint32_t valid, const aoth_queue_t *q) {
  return q->is_shared ? AOTH_ON_HOST | AOTH_ON_DEVICE : valid;
}

/* Several devices of a session count on the first queue. */
static void end_placement(const aoth_mirrored_buffer_t *r, aoth_queue_t *q) {
  if (!r->is_of_call) (q->first ? q->first : q)->n_stirs++;
}

aoth_mirrored_buffer_t aoth_resident_part(const aoth_queue_t *q, aot_buffer_t whole, uint64_t at, uint64_t nbytes) {
  aoth_mirrored_buffer_t r = {.nbytes = nbytes, .buffer = {whole.address + at, nbytes}};
  if (q->is_shared) r.host = pointer(r.buffer);
  return r;
}

aot_status_t aoth_resident_free(aoth_mirrored_buffer_t *r, aoth_queue_t *q) {
  q = queue_of(r, q);
  end_placement(r, q);
  AOT_ASSERT(!(r->owns & AOTH_ON_HOST) || !(r->is_borrowed || r->is_lent)); /* memory has one owner */
  const aot_status_t idle = r->owns ? aoth_queue_idle(q) : AOT_OK;
  const aot_status_t buffer = r->owns & AOTH_ON_DEVICE ? aoth_queue_free(q, r->buffer) : AOT_OK;
  const aot_status_t host = r->owns & AOTH_ON_HOST ? aoth_queue_host_free(q, r->host, r->nbytes) : AOT_OK;
  *r = (aoth_mirrored_buffer_t){.version = r->version + 1, .home = r->home};
  return idle != AOT_OK ? idle : buffer != AOT_OK ? buffer : host;
}

aot_status_t aoth_resident_resize(aoth_mirrored_buffer_t *r, aoth_queue_t *q, uint64_t nbytes) {
  q = queue_of(r, q);
  end_placement(r, q);
  const aot_buffer_t buffer = r->buffer;
  if (r->owns & AOTH_ON_HOST) AOT_TRY(aoth_queue_host_free(q, r->host, r->nbytes));
  *r = (aoth_mirrored_buffer_t){.nbytes = nbytes, .version = r->version + 1, .home = r->home};
  if (!buffer.address || buffer.nbytes < nbytes || (q->guards && buffer.nbytes > nbytes)) {
    if (buffer.address) AOT_TRY(aoth_queue_free(q, buffer));
    AOT_TRY(aoth_queue_alloc(q, nbytes, &r->buffer));
  } else {
    r->buffer = buffer;
  }
  r->owns = AOTH_ON_DEVICE;
  if (q->is_shared) r->host = pointer(r->buffer);
  return AOT_OK;
}

/* ---- the device's side ---- */

/* A buffer of its own, with the contents that there are. On shared memory it takes the place of the host's copy. */
static aot_status_t have_buffer(aoth_mirrored_buffer_t *r, aoth_queue_t *q) {
  const char *host = r->host;
  AOT_ASSERT(!(r->owns & AOTH_ON_DEVICE) || !r->buffer.address);
  end_placement(r, q);
  AOT_TRY(aoth_queue_alloc(q, r->nbytes, &r->buffer));
  r->owns |= AOTH_ON_DEVICE;
  if (q->is_shared) {
    r->host = pointer(r->buffer);
    r->is_borrowed = 0;
  }
  if (!r->valid) return AOT_OK;
  AOT_TRY(aoth_queue_write(q, contents(r), host));
  r->busy = aoth_queue_end(q);
  r->valid |= AOTH_ON_DEVICE;
  return AOT_OK;
}

/* Contents of a file in shared memory are used where they lie, if programs can. */
aot_status_t aoth_resident_need(aoth_mirrored_buffer_t *r, aoth_queue_t *q) {
  q = queue_of(r, q);
  if (r->valid & AOTH_ON_DEVICE) return AOT_OK;
  end_placement(r, q);
  if (r->is_borrowed && q->is_shared && (uintptr_t)r->host % q->alignment == 0) {
    r->buffer = (aot_buffer_t){(uintptr_t)r->host, r->nbytes};
  } else if (!r->buffer.address) {
    AOT_TRY(have_buffer(r, q));
  } else if (r->valid && r->fed && aoth_fed_is_whole(r->fed)) {
    AOT_TRY(aoth_fed_write(r->fed, q));
  } else if (r->valid) {
    AOT_TRY(aoth_queue_write(q, contents(r), r->host));
    r->busy = aoth_queue_end(q);
  }
  if (!r->valid) AOT_TRY(aoth_queue_zero(q, contents(r)));
  r->valid = both_if_shared(r->valid | AOTH_ON_DEVICE, q);
  return AOT_OK;
}

aot_status_t aoth_resident_own(aoth_mirrored_buffer_t *r, aoth_queue_t *q) {
  q = queue_of(r, q);
  return r->buffer.address && !(r->is_borrowed && q->is_shared) ? AOT_OK : have_buffer(r, q);
}

void aoth_resident_clear(aoth_mirrored_buffer_t *r, aoth_queue_t *q) {
  end_placement(r, queue_of(r, q));
  r->valid = 0;
  r->version++;
}

/* No-op if the layout did not change. */
void aoth_resident_written(aoth_mirrored_buffer_t *r, aoth_queue_t *q) {
  q = queue_of(r, q);
  const uint32_t valid = both_if_shared(AOTH_ON_DEVICE, q);
  if (r->valid != valid) end_placement(r, q);
  r->valid = valid;
  r->version++;
}

aot_status_t aoth_resident_copy(aoth_mirrored_buffer_t *to, aoth_mirrored_buffer_t *from, uint64_t at, uint64_t nbytes,
                                aoth_queue_t *q) {
  q = queue_of(to, q);
  AOT_ASSERT(at <= to->nbytes && nbytes <= to->nbytes - at && at <= from->nbytes && nbytes <= from->nbytes - at);
  AOT_TRY(aoth_resident_need(from, q));
  AOT_TRY(aoth_resident_own(to, q));
  if (at || nbytes < to->nbytes) AOT_TRY(aoth_resident_need(to, q)); /* what is not written is stored */
  AOT_TRY(aoth_queue_copy(q, (aot_buffer_t){to->buffer.address + at, nbytes}, from->buffer.address + at));
  aoth_resident_written(to, q);
  return AOT_OK;
}

/* ---- the host's side ---- */

/* Memory of the host's own for the copy, with the contents if it has them. On shared memory that is the buffer. */
static aot_status_t have_host(aoth_mirrored_buffer_t *r, aoth_queue_t *q) {
  void *memory;
  if (r->owns & AOTH_ON_HOST || r->is_lent || r->fed) return AOT_OK;
  AOT_TRY(aoth_queue_host_alloc(q, r->nbytes, &memory));
  if (r->valid & AOTH_ON_HOST) memcpy(memory, r->host, (size_t)r->nbytes);
  r->host = memory;
  r->owns |= AOTH_ON_HOST;
  r->is_borrowed = 0;
  return AOT_OK;
}

aot_status_t aoth_resident_read(aoth_mirrored_buffer_t *r, aoth_queue_t *q, const void **out) {
  q = queue_of(r, q);
  if (q->is_shared) {
    if (!r->valid) AOT_TRY(aoth_resident_need(r, q));
    AOT_TRY(aoth_queue_idle(q));
  } else if (!(r->valid & AOTH_ON_HOST)) {
    end_placement(r, q);
    AOT_TRY(have_host(r, q));
    if (r->valid) AOT_TRY(aoth_queue_read(q, r->host, contents(r)));
    else memset(r->host, 0, (size_t)r->nbytes);
    AOT_TRY(aoth_queue_idle(q));
    r->valid |= AOTH_ON_HOST;
  }
  *out = r->host;
  return AOT_OK;
}

aot_status_t aoth_resident_edit(aoth_mirrored_buffer_t *r, aoth_queue_t *q, int keep, void **out) {
  q = queue_of(r, q);
  const void *unused;
  end_placement(r, q);
  if (keep) AOT_TRY(aoth_resident_read(r, q, &unused));
  if (q->is_shared) {
    AOT_TRY(aoth_resident_own(r, q));
    AOT_TRY(aoth_queue_idle(q));
  } else {
    AOT_TRY(have_host(r, q));
    AOT_TRY(aoth_queue_wait(q, r->busy));
    if (r->fed) AOT_TRY(aoth_queue_wait_ahead(q, &r->fed->ahead));
  }
  AOT_ASSERT(!r->is_borrowed);
  r->valid = both_if_shared(AOTH_ON_HOST, q);
  r->version++;
  *out = r->host;
  return AOT_OK;
}

aot_status_t aoth_resident_settle(aoth_mirrored_buffer_t *r, aoth_queue_t *q, aoth_queue_t *home) {
  aoth_mirrored_buffer_t there = {.nbytes = r->nbytes, .home = home};
  const void *from;
  void *to;
  AOT_TRY(aoth_resident_read(r, q, &from));
  AOT_TRY(aoth_resident_edit(&there, q, 0, &to));
  memcpy(to, from, (size_t)r->nbytes);
  there.version = r->version + 1;
  AOT_TRY(aoth_resident_free(r, q));
  *r = there;
  return AOT_OK;
}
