#include "gpu_parts.h"

#include "kit/lowering/run_segments.h"
#include "gpu_call.h"
#include "stream_sync.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

typedef struct parts_run {
  gc_exe_t *exe;
  aot_ctx_t *ctx;
  aot_queue_t *queue;
  uint32_t graph, align;
  gc_call_t *call; /* planned last */
  int is_settled;  /* nothing is under way */
} parts_run_t;

static aot_status_t told(aot_status_t status, lw_error_t *error, const char *what) {
  return status == AOT_OK ? AOT_OK : lw_fail(error, status, "told", "%s", what);
}

static aot_status_t settle(parts_run_t *p, lw_error_t *error) {
  if (p->is_settled) return AOT_OK;
  p->is_settled = 1;
  return gc_exe_settle(p->exe, p->ctx, p->queue, error);
}

/* ---- memory of values between parts ---- */

static aot_status_t alloc(void *self, uint64_t nbytes, void **out, lw_error_t *error) {
  const parts_run_t *p = self;
  const aot_device_t *d = &p->exe->device->table;
  aot_buffer_t buffer = {0};
  AOT_TRY(told(d->alloc(d, p->ctx, nbytes, &buffer), error, "no device memory for a value"));
  *out = (void *)(uintptr_t)buffer.address;
  return AOT_OK;
}

static void release(void *self, void *at, uint64_t nbytes) {
  parts_run_t *p = self;
  const aot_device_t *d = &p->exe->device->table;
  lw_error_t ignored;
  settle(p, &ignored);
  d->free(d, p->ctx, (aot_buffer_t){(uint64_t)(uintptr_t)at, nbytes});
}

static aot_status_t read_back(void *self, void *to, const void *from, uint64_t nbytes, lw_error_t *error) {
  parts_run_t *p = self;
  const aot_device_t *d = &p->exe->device->table;
  p->is_settled = 0;
  const aot_status_t status = d->read(d, p->ctx, p->queue, to, (aot_buffer_t){(uint64_t)(uintptr_t)from, nbytes});
  return status == AOT_OK ? settle(p, error) : told(status, error, "a value cannot be read");
}

static aot_status_t write_back(void *self, void *to, const void *from, uint64_t nbytes, lw_error_t *error) {
  parts_run_t *p = self;
  const aot_device_t *d = &p->exe->device->table;
  p->is_settled = 0;
  const aot_status_t status = d->write(d, p->ctx, p->queue, (aot_buffer_t){(uint64_t)(uintptr_t)to, nbytes}, from);
  return status == AOT_OK ? settle(p, error) : told(status, error, "a value cannot be written");
}

/* ---- parts ---- */

/* One arena for all parts. */
static aot_status_t need_arena(parts_run_t *p, uint64_t nbytes, lw_error_t *error) {
  gc_exe_t *e = p->exe;
  const aot_device_t *d = &e->device->table;
  if (e->parts_arena.nbytes >= nbytes) return AOT_OK;
  AOT_TRY(settle(p, error));
  if (e->parts_arena.address) d->free(d, p->ctx, e->parts_arena);
  e->parts_arena = (aot_buffer_t){0};
  return told(d->alloc(d, p->ctx, nbytes, &e->parts_arena), error, "no device memory for intermediates");
}

/* The part lowered for these symbols: one that is stored, or in the place of the one that was not used for longest. */
static aot_status_t find_call(gc_exe_t *e, uint32_t graph, const int64_t *symbols, uint32_t align, gc_call_t **out,
                              lw_error_t *error) {
  gc_call_t **slots = &e->parts[(size_t)graph * GC_MAX_FORMS], **oldest = slots;
  for (uint32_t k = 0; k < GC_MAX_FORMS; k++) {
    *out = slots[k];
    if (gc_call_is_for(slots[k], graph, symbols, align)) return AOT_OK;
    if (*oldest && (!slots[k] || slots[k]->last_used < (*oldest)->last_used)) oldest = &slots[k];
  }
  gc_call_destroy(*oldest);
  *oldest = NULL;
  AOT_TRY(gc_call_create(e, graph, symbols, align, oldest, error));
  *out = *oldest;
  (*out)->is_by_steps = 1;
  return AOT_OK;
}

static aot_status_t plan_part(void *self, uint32_t number, const int64_t *symbols, const lw_port_t **out,
                              lw_error_t *error) {
  parts_run_t *p = self;
  gc_exe_t *e = p->exe;
  const lw_part_t *part = &e->cut.parts[e->cut.first_part[p->graph] + number];
  p->call = NULL;
  AOT_TRY(settle(p, error)); /* another form may go, with memory of the host's that its steps use */
  AOT_TRY(find_call(e, part->graph, symbols, p->align, &p->call, error));
  AOT_TRY(need_arena(p, p->call->schedule.arena_nbytes, error));
  p->call->last_used = ++e->parts_clock;
  *out = p->call->schedule.outputs;
  return AOT_OK;
}

static aot_status_t run_part(void *self, uint32_t number, const aot_tensor_t *inputs, const aot_tensor_t *outputs,
                             lw_error_t *error) {
  parts_run_t *p = self;
  const lw_schedule_t *s = &p->call->schedule;
  (void)number;
  AOT_TRY(gc_call_bind(p->call, p->exe->parts_arena, inputs, s->n_inputs, outputs, s->n_outputs, error));
  p->is_settled = 0;
  return gc_call_run(p->call, p->ctx, p->queue, error);
}

aot_status_t gc_parts_run(gc_exe_t *e, const aot_bound_t *b, aot_ctx_t *ctx, const aot_submission_t *s,
                          lw_error_t *error) {
  const aot_binding_t *what = &b->binding;
  const size_t n_symbols = e->s->symbols.count;
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(e->s, aot_snap_graph_t, graphs) + b->graph;
  parts_run_t p = {
      .exe = e,
      .ctx = ctx,
      .queue = s->queue,
      .graph = b->graph,
      .align = gc_alignment_of_ports(what->outputs, what->n_outputs,
                                     gc_alignment_of_ports(what->inputs, what->n_inputs, LW_ALIGN)),
  };
  if (what->n_inputs != g->n_inputs || what->n_outputs != g->n_outputs)
    return lw_fail(error, AOT_E_INVALID, "bad-call", "%llu inputs and %llu outputs for a graph with %u and %u",
                   (unsigned long long)what->n_inputs, (unsigned long long)what->n_outputs, g->n_inputs, g->n_outputs);
  int64_t *own = calloc(n_symbols + 1, sizeof *own);
  int64_t *symbols = s->symbols ? s->symbols : own;
  if (!own) return lw_no_memory(error, "for a run");
  if (n_symbols) memcpy(symbols, what->graph.symbols, n_symbols * sizeof *symbols);
  const lw_memory_t memory = {&p, alloc, release, read_back, write_back};
  const lw_parts_run_t r = {
      .cut = &e->cut,
      .graph = b->graph,
      .symbols = symbols,
      .n_symbols = n_symbols,
      .inputs = what->inputs,
      .outputs = what->outputs,
      .open = s->open,
      .memory = &memory,
      .self = &p,
      .plan = plan_part,
      .run = run_part,
  };
  aot_status_t status = lw_run_parts(&r, error);
  if (status == AOT_OK) status = settle(&p, error);
  free(own);
  return status;
}

void gc_parts_deinit(gc_exe_t *e) {
  const aot_device_t *d = e->device ? &e->device->table : NULL;
  for (size_t k = 0; e->parts && k < (size_t)e->s->graphs.count * GC_MAX_FORMS; k++) gc_call_destroy(e->parts[k]);
  free(e->parts);
  if (e->parts_arena.address) d->free(d, NULL, e->parts_arena);
}
