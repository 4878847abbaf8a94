/* One call of a graph: scalars given, inputs brought to the device, ports bound to memory, submitted. */
#include <step/step_ports.h>

#include <aot/inline.h>
#include <ir/text/words.h>
#include <string.h>

int aoth_step_is_at_home(const aoth_step_call_t *c, uint32_t output) {
  return c->home && c->home[output] != AOT_NO_INDEX;
}

static aot_status_t give_int(const aoth_step_t *s, const aoth_slot_t *p, int64_t number) {
  aoth_tensor_t t;
  AOT_TRY(aoth_step_edit(s, &p->tensor, 0, &t));
  if (t.dtype == AOT_I64 || t.dtype == AOT_U64) memcpy(t.data, &number, sizeof number);
  else aoth_tensor_fill(&t, (double)number);
  return AOT_OK;
}

/* The seed and the learning rate go to the device when they are others than it has. A backward has its forward's. */
static aot_status_t give_seed(const aoth_step_t *s, aoth_slot_t *p) {
  if (p->tensor.resident != &p->own || (p->has_number && p->number.whole == s->seed)) return AOT_OK;
  AOT_TRY(give_int(s, p, s->seed));
  p->has_number = 1;
  p->number.whole = s->seed;
  return AOT_OK;
}

aot_status_t aoth_step_give_lr(const aoth_step_t *s, const aoth_step_call_t *c, double lr) {
  for (uint32_t k = 0; k < c->n_fresh_in; k++) {
    aoth_slot_t *p = &c->in[c->in_order[k]];
    aoth_tensor_t t;
    if (p->role != AOT_ROLE_HYPER || (p->has_number && p->number.real == lr)) continue;
    AOT_TRY(aoth_step_edit(s, &p->tensor, 0, &t));
    aoth_tensor_fill(&t, lr);
    p->has_number = 1;
    p->number.real = lr;
  }
  return AOT_OK;
}

/* The offset is copied from where the last call left it, unless it is to be there; a backward has that of its
 * forward. */
static aot_status_t give_offset(aoth_step_t *s, const aoth_slot_t *p) {
  const aoth_tensor_t *at = s->offset_at;
  if (p->tensor.resident != &p->own || (at && at->resident == p->tensor.resident)) return AOT_OK;
  return at ? aoth_step_copy(s, &p->tensor, at) : give_int(s, p, s->offset);
}

/* Where an input comes from, and what of it the host has to give. */
static aot_status_t take_input(aoth_step_t *s, aoth_slot_t *p) {
  const aoth_leaf_t *leaf = aot_role_is_leaf(p->role) ? &s->leaves.leaf[p->index] : NULL;
  const aoth_tensor_t *from =
      leaf ? leaf->info.role == AOT_ROLE_USER_INPUT ? &s->given[leaf->info.ordinal].tensor : &leaf->tensor : NULL;
  if (from) {
    p->tensor.resident = from->resident;
    p->tensor.nbytes = from->nbytes;
  }
  if (leaf && s->exec.leaf_is) s->exec.leaf_is(s->exec.self, p->index, from->resident->version + 1);
  if (p->role == AOT_ROLE_SEED) return give_seed(s, p);
  return p->role == AOT_ROLE_OFFSET ? give_offset(s, p) : AOT_OK;
}

static aot_tensor_t view_on_device(const aoth_tensor_t *t) {
  aot_tensor_t view = aoth_tensor_view(t);
  view.data = t->dtype ? (void *)(uintptr_t)t->resident->buffer.address : NULL;
  return view;
}

/* The input is on the device, in memory of its own if it is to be written; it is said what cannot be had. */
static aot_status_t need_input(const aoth_step_t *s, const aoth_slot_t *p, int is_written) {
  aoth_queue_t *q = s->exec.queue;
  const aot_status_t owned = is_written ? aoth_resident_own(p->tensor.resident, q) : AOT_OK;
  const aot_status_t status = owned == AOT_OK ? aoth_resident_need(p->tensor.resident, q) : owned;
  if (status == AOT_OK || !aot_role_is_leaf(p->role)) return status;
  const aot_str_t name = aoth_leaf_name(&s->leaves.leaf[p->index]);
  aoth_sink_report(s->sink, AOT_SEVERITY_NOTE, NULL, "run.leaf", "while %s %.*s was taken to the device",
                   aoth_role_name(p->role), (int)name.size, name.data);
  return status;
}

static void take_view(aoth_step_call_t *c, aot_tensor_t *at, const aoth_tensor_t *t) {
  const void *before = at->data;
  *at = view_on_device(t);
  if (at->data != before) c->known = 0;
}

int aoth_step_is_settled(const aoth_step_t *s, const aoth_step_call_t *c) {
  return c->is_settled && c->settled_at == s->exec.queue->n_stirs;
}

/* Outputs are in the block, or where inputs do, which are the device's own then. */
aot_status_t aoth_step_bind_ports(aoth_step_t *s, aoth_step_call_t *c, int fresh_alone) {
  const uint32_t n_in = fresh_alone ? c->n_fresh_in : c->n_in, n_out = fresh_alone ? c->n_fresh_out : c->n_out;
  s->n_looked_at += n_in + n_out;
  if (!fresh_alone) c->known = 0;
  for (uint32_t k = 0; k < n_in; k++) AOT_TRY(take_input(s, &c->in[c->in_order[k]]));
  for (uint32_t k = 0; k < n_out; k++) {
    const uint32_t i = c->out_order[k];
    if (aoth_step_is_at_home(c, i)) {
      c->out[i].tensor.resident = c->in[c->home[i]].tensor.resident;
      AOT_TRY(need_input(s, &c->in[c->home[i]], 1));
    } else if (c->out[i].lent) {
      AOT_TRY(aoth_resident_own(c->out[i].tensor.resident, s->exec.queue));
    }
  }
  for (uint32_t k = 0; k < n_in; k++) {
    const uint32_t i = c->in_order[k];
    if (c->in[i].tensor.dtype) AOT_TRY(need_input(s, &c->in[i], 0));
    take_view(c, &c->in_views[i], &c->in[i].tensor);
  }
  for (uint32_t k = 0; k < n_out; k++) take_view(c, &c->out_views[c->out_order[k]], &c->out[c->out_order[k]].tensor);
  return AOT_OK;
}

void aoth_step_written(aoth_step_t *s, const aoth_step_call_t *c, int fresh_alone) {
  const uint32_t n = fresh_alone ? c->n_fresh_out : c->n_out;
  for (uint32_t k = 0; k < n; k++) {
    const aoth_slot_t *p = &c->out[c->out_order[k]];
    if (!p->tensor.dtype) continue;
    aoth_resident_written(p->tensor.resident, s->exec.queue);
    if (p->role == AOT_ROLE_OFFSET) s->offset_at = &p->tensor;
  }
}

aot_status_t aoth_step_run(aoth_step_t *s, aoth_step_call_t *c, const aot_output_sink_t *open) {
  const aot_binding_t what = {
      .struct_size = sizeof what,
      .graph =
          {
              .struct_size = sizeof what.graph,
              .kind = c->kind,
              .number = c->number,
              .symbols = s->symbols,
              .n_symbols = s->sizes.n,
          },
      .inputs = c->in_views,
      .n_inputs = c->n_in,
      .outputs = c->out_views,
      .n_outputs = c->n_out,
  };
  memcpy(s->learned, s->symbols, s->sizes.n * sizeof *s->learned);
  return s->exec.run(s->exec.self, &what, s->learned, open, &c->known);
}
