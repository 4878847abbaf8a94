#include <device/staging.h>

#include <ir/program.h>
#include <stdlib.h>
#include <string.h>

static aot_status_t no_memory(aot_ctx_t *ctx, uint64_t n) {
  return aoth_report_error(ctx, AOT_E_EXHAUSTED, "run.memory", "no memory to take %llu tensors to the device",
                           (unsigned long long)n);
}

/* ---- pieces: ranges of the host's memory, those that overlap made one ---- */

static int by_place(const void *a, const void *b) {
  const uintptr_t x = (uintptr_t)((const aoth_staged_t *)a)->host, y = (uintptr_t)((const aoth_staged_t *)b)->host;
  return x < y ? -1 : x > y;
}

static void add_pieces(aoth_staging_t *g, const aot_tensor_t *t, uint64_t n, int is_input) {
  for (uint64_t i = 0; i < n; i++) {
    const aoth_staged_t piece = {
        .host = t[i].data, .buffer = {0, t[i].nbytes}, .is_input = is_input, .is_output = !is_input};
    if (piece.host) g->pieces[g->n_pieces++] = piece;
  }
}

static void join_pieces(aoth_staging_t *g) {
  uint64_t n = 0;
  if (g->n_pieces) qsort(g->pieces, (size_t)g->n_pieces, sizeof *g->pieces, by_place);
  for (uint64_t i = 0; i < g->n_pieces; i++) {
    const aoth_staged_t *p = &g->pieces[i];
    aoth_staged_t *last = n ? &g->pieces[n - 1] : NULL;
    if (last && (p->host == last->host || p->host < last->host + last->buffer.nbytes)) {
      const uint64_t end = (uint64_t)(p->host - last->host) + p->buffer.nbytes;
      if (end > last->buffer.nbytes) last->buffer.nbytes = end;
      last->is_input |= p->is_input;
      last->is_output |= p->is_output;
    } else {
      g->pieces[n++] = *p;
    }
  }
  g->n_pieces = n;
}

/* The address of the device for a byte of the host's that is in a piece. */
static uint64_t address_of(const aoth_staging_t *g, const char *host) {
  uint64_t low = 0, high = g->n_pieces;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    if (g->pieces[middle].host <= host) low = middle;
    else high = middle;
  }
  return g->pieces[low].buffer.address + (uint64_t)(host - g->pieces[low].host);
}

aot_status_t aoth_staging_init(aoth_staging_t *g, aot_ctx_t *ctx, const aot_device_t *device,
                               const aot_binding_t *host) {
  const uint64_t n = host->n_inputs + host->n_outputs;
  *g = (aoth_staging_t){.binding = *host};
  g->tensors = malloc((size_t)(n + 1) * sizeof *g->tensors);
  g->pieces = calloc((size_t)n + 1, sizeof *g->pieces);
  if (!g->tensors || !g->pieces) return no_memory(ctx, n);
  add_pieces(g, host->inputs, host->n_inputs, 1);
  add_pieces(g, host->outputs, host->n_outputs, 0);
  join_pieces(g);
  for (uint64_t i = 0; i < g->n_pieces; i++)
    AOT_TRY(device->alloc(device, ctx, g->pieces[i].buffer.nbytes, &g->pieces[i].buffer));
  for (uint64_t i = 0; i < n; i++) {
    g->tensors[i] = i < host->n_inputs ? host->inputs[i] : host->outputs[i - host->n_inputs];
    if (g->tensors[i].data) g->tensors[i].data = (void *)(uintptr_t)address_of(g, g->tensors[i].data);
  }
  g->binding.inputs = g->tensors;
  g->binding.outputs = g->tensors + host->n_inputs;
  return AOT_OK;
}

static aot_status_t free_pieces(aot_ctx_t *ctx, const aot_device_t *device, const aoth_staged_t *pieces, uint64_t n) {
  aot_status_t status = AOT_OK;
  for (uint64_t i = 0; i < n; i++) {
    const aot_status_t freed = pieces[i].buffer.address ? device->free(device, ctx, pieces[i].buffer) : AOT_OK;
    if (status == AOT_OK) status = freed;
  }
  return status;
}

aot_status_t aoth_staging_deinit(aoth_staging_t *g, aot_ctx_t *ctx, const aot_device_t *device) {
  aot_status_t status = free_pieces(ctx, device, g->pieces, g->n_pieces);
  const aot_status_t opened = free_pieces(ctx, device, g->open, g->n_open);
  free(g->tensors);
  free(g->pieces);
  free(g->open);
  *g = (aoth_staging_t){0};
  return status != AOT_OK ? status : opened;
}

/* ---- a run ---- */

aot_status_t aoth_staging_write(aoth_staging_t *g, aot_ctx_t *ctx, const aot_device_t *device, aot_queue_t *q,
                                uint64_t *copied) {
  const uint64_t n_open = g->n_open;
  g->n_open = 0;
  AOT_TRY(free_pieces(ctx, device, g->open, n_open));
  for (uint64_t i = 0; i < g->n_pieces; i++) {
    const aoth_staged_t *p = &g->pieces[i];
    if (!p->is_input) continue;
    AOT_TRY(device->write(device, ctx, q, p->buffer, p->host));
    *copied += p->buffer.nbytes;
  }
  return AOT_OK;
}

static aot_status_t read_pieces(aot_ctx_t *ctx, const aot_device_t *device, aot_queue_t *q, const aoth_staged_t *pieces,
                                uint64_t n, uint64_t *copied) {
  for (uint64_t i = 0; i < n; i++) {
    if (!pieces[i].is_output) continue;
    AOT_TRY(device->read(device, ctx, q, pieces[i].host, pieces[i].buffer));
    *copied += pieces[i].buffer.nbytes;
  }
  return AOT_OK;
}

aot_status_t aoth_staging_read(const aoth_staging_t *g, aot_ctx_t *ctx, const aot_device_t *device, aot_queue_t *q,
                               uint64_t *copied) {
  AOT_TRY(read_pieces(ctx, device, q, g->pieces, g->n_pieces, copied));
  return read_pieces(ctx, device, q, g->open, g->n_open, copied);
}

/* ---- open outputs ---- */

static aoth_staged_t *room(aoth_staging_t *g) {
  if (g->n_open == g->open_capacity) {
    const uint64_t capacity = g->open_capacity ? 2 * g->open_capacity : 8;
    aoth_staged_t *bigger = realloc(g->open, (size_t)capacity * sizeof *bigger);
    if (!bigger) return NULL;
    g->open = bigger;
    g->open_capacity = capacity;
  }
  return &g->open[g->n_open];
}

static aot_status_t allocate(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols, uint64_t n_symbols,
                             aot_tensor_t *out) {
  const aoth_staged_sink_t *s = sink->head.self;
  aoth_staging_t *g = s->staging;
  aot_tensor_t host;
  AOT_TRY(s->host->allocate(s->host, output, symbols, n_symbols, &host));
  aoth_staged_t *p = room(g);
  if (!p) return no_memory(s->ctx, 1);
  *p = (aoth_staged_t){.host = host.data, .is_output = 1};
  AOT_TRY(s->device->alloc(s->device, s->ctx, host.nbytes, &p->buffer));
  g->n_open++;
  *out = host;
  out->data = (void *)(uintptr_t)p->buffer.address;
  return AOT_OK;
}

aot_output_sink_t aoth_staged_sink(aoth_staged_sink_t *self) {
  return (aot_output_sink_t){.head = {.struct_size = (uint32_t)sizeof(aot_output_sink_t), .self = self},
                             .allocate = allocate};
}
