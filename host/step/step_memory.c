/* Where the tensors of a step lie, for the host that requests them (device/mirrored_buffer.h). */
#include <step/step_ports.h>

#include <aot/inline.h>
#include <stdlib.h>

aot_status_t aoth_step_on_host(const aoth_step_t *s, const aoth_tensor_t *t, aoth_tensor_t *out) {
  const void *host;
  *out = *t;
  if (!t->dtype) return AOT_OK;
  AOT_TRY(aoth_resident_read(t->resident, s->exec.queue, &host));
  out->data = (void *)(uintptr_t)host;
  return AOT_OK;
}

aot_status_t aoth_step_edit(const aoth_step_t *s, const aoth_tensor_t *t, int keep, aoth_tensor_t *out) {
  *out = *t;
  return aoth_resident_edit(t->resident, s->exec.queue, keep, &out->data);
}

/* Of tensors that lie alike, without gaps, on one device, the bytes are copied there. */
aot_status_t aoth_step_copy(void *step, const aoth_tensor_t *to, const aoth_tensor_t *from) {
  const aoth_step_t *s = step;
  const uint64_t size = aot_dtype_size(to->dtype), n = (uint64_t)aoth_tensor_numel(to) * size,
                 at = (uint64_t)to->offset * size;
  aoth_tensor_t written, read;
  uint64_t reach;
  int is_alike = to->offset == from->offset && to->resident->home == from->resident->home;
  for (int32_t d = 0; d < to->rank; d++) is_alike &= to->sizes[d] == 1 || to->strides[d] == from->strides[d];
  if (n == 0) return AOT_OK;
  if (is_alike && aoth_tensor_extent(to, &reach) && reach == at + n)
    return aoth_resident_copy(to->resident, from->resident, at, n, s->exec.queue);
  AOT_TRY(aoth_step_on_host(s, from, &read));
  AOT_TRY(aoth_step_edit(s, to, 1, &written));
  aoth_tensor_copy(&written, &read);
  return AOT_OK;
}

/* ---- the end of it ---- */

static aot_status_t free_slots(const aoth_step_t *s, aoth_slot_t *slots, uint32_t n) {
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; slots && i < n; i++) {
    const aot_status_t freed = aoth_resident_free(&slots[i].own, s->exec.queue);
    if (status == AOT_OK) status = freed;
  }
  return status;
}

aot_status_t aoth_step_free_memory(aoth_step_t *s) {
  aot_status_t status = free_slots(s, s->given, s->leaves.n_inputs);
  for (int k = 0; k < AOTH_N_CALLS; k++) {
    const aot_status_t in = free_slots(s, s->call[k].in, s->call[k].n_in),
                       out = free_slots(s, s->call[k].out, s->call[k].n_out);
    if (status == AOT_OK) status = in != AOT_OK ? in : out;
  }
  const aot_status_t fed = s->fed ? aoth_fed_free(s->fed, s->exec.queue) : AOT_OK;
  if (status == AOT_OK) status = fed;
  if (!s->block.address) return status;
  const aot_status_t idle = aoth_queue_idle(s->exec.queue), freed = aoth_queue_free(s->exec.queue, s->block);
  s->block = (aot_buffer_t){0};
  return status != AOT_OK ? status : idle != AOT_OK ? idle : freed;
}

/* ---- what is the step's ---- */

/* order: of the slots that are looked at; NULL: as they are. */
static int holds(const aoth_slot_t *slots, const uint32_t *order, uint32_t n, const void *data) {
  const uintptr_t at = (uintptr_t)data;
  for (uint32_t k = 0; k < n; k++) {
    const aoth_mirrored_buffer_t *r = &slots[order ? order[k] : k].own;
    if (r->host && at >= (uintptr_t)r->host && at - (uintptr_t)r->host <= r->nbytes) return 1;
  }
  return 0;
}

int aoth_step_block_has(const aoth_step_t *s, const void *data) {
  if (!data) return 0;
  if (holds(s->given, NULL, s->leaves.n_inputs, data)) return 1;
  for (int k = 0; k < AOTH_N_CALLS; k++) {
    const aoth_step_call_t *c = &s->call[k];
    if (holds(c->in, c->in_order, c->n_fresh_in, data) || holds(c->out, c->out_order, c->n_fresh_out, data)) return 1;
  }
  return 0;
}

/* ---- the offset of the random numbers ---- */

int64_t aoth_step_offset(const aoth_step_t *s) {
  aoth_tensor_t t;
  if (!s->offset_at || aoth_step_on_host(s, s->offset_at, &t) != AOT_OK) return s->offset;
  return kit_element_load_int(t.dtype, t.data);
}

aot_status_t aoth_step_take_offset(aoth_step_t *s) {
  aoth_tensor_t t;
  if (!s->offset_at) return AOT_OK;
  AOT_TRY(aoth_step_on_host(s, s->offset_at, &t));
  s->offset = kit_element_load_int(t.dtype, t.data);
  s->offset_at = NULL;
  return AOT_OK;
}

void aoth_step_seed(aoth_step_t *s, int64_t seed, int64_t offset) {
  s->seed = seed;
  s->offset = offset;
  s->offset_at = NULL;
}

aot_status_t aoth_step_drop_lent(aoth_step_t *s, aoth_lent_t *l) {
  aoth_lent_t **at = &s->lent;
  while (*at != l) at = &(*at)->next;
  *at = l->next;
  const aot_status_t status = aoth_resident_free(&l->resident, s->exec.queue);
  free(l);
  return status;
}

void aoth_step_free_lent(aoth_step_t *s) {
  while (s->lent) aoth_step_drop_lent(s, s->lent);
}
