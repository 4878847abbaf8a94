#include <device/hetero/hetero_call.h>

#include <aot/assert.h>

/* Of a part, as it was bound. */
static aot_binding_t binding_of(const aot_bound_t *c, uint32_t i) {
  const aoth_part_t *parts = c->graph->parts;
  const aot_tensor_t *inputs = c->tensors;
  for (uint32_t k = 0; k < i; k++) inputs += (size_t)parts[k].n_inputs + parts[k].n_outputs;
  return (aot_binding_t){.struct_size = sizeof(aot_binding_t),
                         .inputs = inputs,
                         .outputs = inputs + parts[i].n_inputs,
                         .n_inputs = parts[i].n_inputs,
                         .n_outputs = parts[i].n_outputs};
}

/* With AOT_VALIDATE=1, on the host, which does the work at once: the part's inputs are what they were. */
static aot_status_t submit_guarded(aot_bound_t *c, uint32_t i, const aot_submission_t *s) {
  const aoth_parts_exe_t *x = c->exe;
  const aoth_part_t *p = &c->graph->parts[i];
  const aoth_part_backend_t *b = &x->backends[p->backend];
  const aot_binding_t binding = binding_of(c, i);
  aoth_guards_t *guards = x->lanes->lane[p->lane].queue->guards;
  aoth_guards_part_begin(guards, &binding);
  AOT_TRY(b->exe->submit(b->self, x->lanes->ctx, c->calls[i], s));
  const aot_status_t status = aoth_guards_part_end(guards, x->lanes->ctx, &binding, b->name);
  if (status != AOT_OK) c->written_by = p;
  return AOT_OK; /* the work is done; the check after the whole call answers */
}

/* On one lane the first part waits, and the last one signals. */
static aot_status_t submit_part(void *self, uint32_t i) {
  aot_bound_t *c = self;
  const aoth_parts_exe_t *x = c->exe;
  const aoth_part_t *p = &c->graph->parts[i];
  const aoth_part_backend_t *b = &x->backends[p->backend];
  const int is_alone = c->graph->lanes == 1;
  aot_submission_t s = c->whole;
  s.queue = x->lanes->lane[p->lane].queue->queue;
  if (i || !is_alone) s.n_waits = 0;
  if (i + 1 < c->graph->n_parts || !is_alone) s.n_signals = 0;
  s.open = c->whole.open && c->open_part == p ? &c->sink : NULL;
  x->entering(x->self, p->backend);
  if (x->lanes->lane[p->lane].queue->guards && !s.open) return submit_guarded(c, i, &s);
  return b->exe->submit(b->self, x->lanes->ctx, c->calls[i], &s);
}

/* Of a part on the host that writes where an input lies: others have read what was there. */
static aot_status_t wait_for_readers(const aoth_parts_exe_t *x, const aoth_part_t *p) {
  const aoth_lane_t *lane = &x->lanes->lane[p->lane];
  if (!p->writes_home || !lane->is_host) return AOT_OK;
  for (uint32_t i = 0; i < x->lanes->n; i++)
    if (i != p->lane && lane->seen[i] < x->pulled[i]) AOT_TRY(aoth_lanes_cross(x->lanes, i, p->lane));
  return AOT_OK;
}

static aot_status_t submit_parts(aot_bound_t *c, aot_ctx_t *ctx) {
  const aoth_parts_exe_t *x = c->exe;
  for (uint32_t i = 0; i < c->graph->n_parts; i++) {
    const aoth_part_t *p = &c->graph->parts[i];
    AOT_ASSERT(p->move_begin <= p->move_middle && p->move_middle <= p->move_end && p->move_end <= c->graph->n_moves);
    AOT_TRY(aoth_parts_move(c, ctx, p->move_begin, p->move_middle));
    AOT_TRY(wait_for_readers(x, p));
    AOT_TRY(aoth_lanes_put(x->lanes, p->lane, submit_part, c, i));
    AOT_TRY(aoth_parts_move(c, ctx, p->move_middle, p->move_end));
  }
  return AOT_OK;
}

/* What the parts do not do by themselves: waits and signals of a call on several lanes, or of one without parts. */
static aot_status_t submit_around(aot_bound_t *c, aot_ctx_t *ctx) {
  const aoth_parts_exe_t *x = c->exe;
  const aot_submission_t *s = &c->whole;
  const aot_device_t *d = x->lanes->lane[0].queue->device;
  for (uint64_t i = 0; i < s->n_waits; i++) AOT_TRY(d->wait(d, ctx, s->queue, s->waits[i]));
  aot_status_t status = aoth_lanes_begin(x->lanes, c->graph->lanes);
  aoth_parts_drop_opens(c);
  if (status == AOT_OK) status = submit_parts(c, ctx);
  if (status == AOT_OK && c->opens) status = aoth_parts_bring_opens(c, ctx);
  status = aoth_lanes_end(x->lanes, c->graph->lanes, status);
  for (uint64_t i = 0; i < s->n_signals && status == AOT_OK; i++) status = d->signal(d, ctx, s->queue, s->signals[i]);
  return status;
}

aot_status_t aoth_parts_submit(aot_bound_t *c, aot_ctx_t *ctx, const aot_submission_t *whole) {
  c->whole = *whole;
  c->sink = aoth_parts_open_sink(c);
  c->written_by = NULL;
  const aot_status_t status = c->graph->lanes == 1 ? submit_parts(c, ctx) : submit_around(c, ctx);
  if (c->written_by) c->exe->entering(c->exe->self, c->written_by->backend); /* which the failure is blamed on */
  return status;
}
