#include <device/hetero/hetero_call.h>

#include <aot/assert.h>

static aot_status_t allocate(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols, uint64_t n_symbols,
                             aot_tensor_t *out) {
  const aot_bound_t *c = sink->head.self;
  const aoth_part_t *p = c->open_part;
  const aot_output_sink_t *open = c->whole.open;
  const uint32_t n_ports = c->graph->n_inputs + c->graph->n_outputs;
  if (output >= p->n_outputs) return AOT_E_RANGE;
  const uint32_t place = p->places[p->n_inputs + output],
                 slot = place < n_ports ? place : c->graph->cells[place - n_ports].slot;
  AOT_TRY(open->allocate(open, slot - c->graph->n_inputs, symbols, n_symbols, out));
  if (!c->opens) return AOT_OK;
  aoth_bound_open_t *o = &c->opens[output];
  o->to = (aot_buffer_t){(uintptr_t)out->data, out->nbytes};
  AOT_TRY(aoth_queue_alloc(c->exe->lanes->lane[p->lane].queue, out->nbytes, &o->from));
  out->data = (void *)(uintptr_t)o->from.address;
  return AOT_OK;
}

aot_output_sink_t aoth_parts_open_sink(aot_bound_t *c) {
  return (aot_output_sink_t){.head = {.struct_size = sizeof c->sink, .self = c}, .allocate = allocate};
}

aot_status_t aoth_parts_bring_opens(const aot_bound_t *c, aot_ctx_t *ctx) {
  aoth_parts_exe_t *x = c->exe;
  const uint32_t lane = c->open_part->lane;
  AOT_ASSERT(c->opens && lane > 0);
  const aoth_part_move_t move = {.from_lane = lane, .leaf = AOT_NO_ID};
  AOT_TRY(aoth_lanes_await(x->lanes, lane));
  for (uint32_t i = 0; i < c->open_part->n_outputs; i++) {
    aoth_bound_open_t *o = &c->opens[i];
    if (!o->from.address || !o->to.nbytes) continue;
    o->from.nbytes = o->to.nbytes;
    if (!x->lanes->lane[lane].is_host && !x->lanes->lane[0].is_host)
      AOT_TRY(aoth_queue_host_alloc(x->lanes->lane[lane].queue, o->from.nbytes, &o->staging));
    const aoth_bound_move_t b = {.from = o->from, .to = o->to, .staging = o->staging};
    AOT_TRY(aoth_parts_move_one(x, ctx, &move, &b));
  }
  return AOT_OK;
}

void aoth_parts_drop_opens(const aot_bound_t *c) {
  aoth_queue_t *q = c->opens ? c->exe->lanes->lane[c->open_part->lane].queue : NULL;
  for (uint32_t i = 0; q && i < c->open_part->n_outputs; i++) {
    aoth_bound_open_t *o = &c->opens[i];
    if (o->from.address || o->staging) aoth_queue_idle(q);
    if (o->from.address) aoth_queue_free(q, o->from);
    if (o->staging) aoth_queue_host_free(q, o->staging, o->from.nbytes);
    *o = (aoth_bound_open_t){0};
  }
}
