#include <device/hetero/hetero_call.h>

#include <aot/assert.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* ---- plan ---- */

static aot_graph_at_t part_at(const aoth_part_t *p, const aot_graph_at_t *graph) {
  return (aot_graph_at_t){.struct_size = sizeof(aot_graph_at_t),
                          .kind = AOT_GRAPH_PART,
                          .number = p->number,
                          .symbols = graph->symbols,
                          .n_symbols = graph->n_symbols};
}

static uint64_t align(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

aot_status_t aoth_parts_plan_arenas(const aoth_parts_exe_t *x, aot_ctx_t *ctx, const aoth_part_graph_t *g,
                                    const aot_graph_at_t *at, const aoth_parts_layout_t *l, aoth_parts_arenas_t *out) {
  *out = (aoth_parts_arenas_t){0};
  for (uint32_t lane = 0; lane < AOTH_MAX_LANES; lane++) out->alignment[lane] = AOTH_PARTS_ALIGNMENT;
  for (uint32_t i = 0; i < g->n_parts; i++) {
    const aoth_part_backend_t *b = &x->backends[g->parts[i].backend];
    const aot_graph_at_t part = part_at(&g->parts[i], at);
    const uint32_t lane = g->parts[i].lane;
    AOT_ASSERT(lane < x->lanes->n);
    aot_exe_plan_t plan = {.struct_size = sizeof plan};
    x->entering(x->self, g->parts[i].backend);
    AOT_TRY(b->exe->plan(b->self, ctx, &part, &plan));
    if (plan.arena.nbytes > out->nbytes[lane]) out->nbytes[lane] = plan.arena.nbytes;
    if (plan.alignment > out->alignment[lane]) out->alignment[lane] = plan.alignment;
  }
  for (uint32_t lane = 0; lane < AOTH_MAX_LANES; lane++) {
    out->skip[lane] = align(l->end[lane], out->alignment[lane]);
    out->nbytes[lane] += out->skip[lane];
  }
  return AOT_OK;
}

/* ---- unbind ---- */

void aoth_parts_unbind(aot_bound_t *c) {
  aoth_parts_exe_t *x = c->exe;
  const aoth_part_graph_t *g = c->graph;
  for (uint32_t i = 0; c->calls && i < g->n_parts; i++) {
    const aoth_part_backend_t *b = &x->backends[g->parts[i].backend];
    if (!c->calls[i]) continue;
    x->entering(x->self, g->parts[i].backend);
    b->exe->unbind(b->self, c->calls[i]);
  }
  for (uint32_t m = 0; c->moves && m < g->n_moves; m++)
    if (c->moves[m].staging)
      aoth_queue_host_free(x->lanes->lane[g->moves[m].from_lane].queue, c->moves[m].staging, c->moves[m].from.nbytes);
  aoth_parts_drop_opens(c);
  free(c->opens);
  for (uint32_t i = 0; i < c->n_blocks; i++) aoth_parts_memory_drop(&x->memory, c->blocks[i]);
  free(c->blocks);
  free(c->moves);
  free(c->calls);
  free(c->tensors);
  free(c->dims);
  free(c);
  AOT_ASSERT(x->n_bound > 0);
  if (--x->n_bound == 0) aoth_parts_memory_clear(&x->memory);
}

/* ---- bind ---- */

typedef struct binder {
  aoth_parts_exe_t *x;
  aot_ctx_t *ctx;
  const aot_binding_t *whole;
  aot_bound_t *c;
  const aoth_part_graph_t *g;
  aoth_parts_layout_t l;
  aoth_parts_arenas_t arenas;
  uint64_t arena[AOTH_MAX_LANES]; /* addresses */
  aot_tensor_t *slots;            /* by slot; where it lies is a place's to say */
  uint64_t *cells;                /* by cell: its address */
} binder_t;

/* Bytes that the geometry reaches. */
static uint64_t reach_of(const aot_tensor_t *t) {
  int64_t last = t->offset;
  if (!t->data || t->rank < 0) return 0;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->sizes[d] == 0) return 0;
    last += (t->sizes[d] - 1) * t->strides[d];
  }
  return (uint64_t)(last + 1) * aot_dtype_size(t->dtype);
}

static int has_gaps(const aot_tensor_t *t) {
  uint64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= (uint64_t)t->sizes[d];
  return reach_of(t) > n * aot_dtype_size(t->dtype);
}

static aot_tensor_t tensor_of(const aoth_parts_layout_t *l, const aot_type_t *t, int64_t *dims) {
  for (int32_t d = 0; d < t->rank; d++) {
    dims[d] = aoth_parts_dim(l, t->sizes[d]);
    dims[t->rank + d] = aoth_parts_dim(l, t->strides[d]);
  }
  return (aot_tensor_t){.dtype = t->dtype,
                        .rank = t->rank,
                        .device = AOT_DEVICE_CPU,
                        .offset = aoth_parts_dim(l, t->offset),
                        .sizes = dims,
                        .strides = dims + t->rank};
}

/* One tensor a slot: ports as they are given, values between parts as their types say. */
static int make_slots(binder_t *b) {
  const aoth_part_graph_t *g = b->g;
  const size_t n_ports = (size_t)g->n_inputs + g->n_outputs;
  size_t n_dims = 0, at = 0;
  for (uint32_t v = 0; v < g->n_between; v++) n_dims += 2 * (size_t)g->types[n_ports + v].rank;
  b->slots = malloc((n_ports + g->n_between + 1) * sizeof *b->slots);
  b->c->dims = malloc((n_dims + 1) * sizeof *b->c->dims);
  if (!b->slots || !b->c->dims) return 0;
  if (g->n_inputs) memcpy(b->slots, b->whole->inputs, g->n_inputs * sizeof *b->slots);
  if (g->n_outputs) memcpy(b->slots + g->n_inputs, b->whole->outputs, g->n_outputs * sizeof *b->slots);
  for (uint32_t v = 0; v < g->n_between; v++) {
    b->slots[n_ports + v] = tensor_of(&b->l, &g->types[n_ports + v], b->c->dims + at);
    at += 2 * (size_t)g->types[n_ports + v].rank;
  }
  AOT_ASSERT(at == n_dims);
  return 1;
}

/* Memory of the other lanes, and where every cell is in it. */
static aot_status_t place_cells(binder_t *b) {
  aoth_parts_exe_t *x = b->x;
  aoth_parts_block_t *block;
  b->arena[0] = b->whole->arena.address;
  for (uint32_t lane = 1; lane < x->lanes->n; lane++) {
    if (!(b->g->lanes >> lane & 1)) continue;
    AOT_TRY(aoth_parts_memory_arena(&x->memory, b->ctx, lane, b->arenas.nbytes[lane], &block));
    b->c->blocks[b->c->n_blocks++] = block;
    b->arena[lane] = block->buffer.address;
  }
  for (uint32_t i = 0; i < b->g->n_cells; i++) {
    const aoth_part_cell_t *cell = &b->g->cells[i];
    b->cells[i] = b->arena[cell->lane] + b->l.at[i];
    if (cell->leaf == AOT_NO_ID) continue;
    AOT_TRY(aoth_parts_memory_copy(&x->memory, b->ctx, cell->leaf, cell->lane, b->l.nbytes[i], &block));
    b->c->blocks[b->c->n_blocks++] = block;
    b->cells[i] = block->buffer.address;
  }
  AOT_ASSERT(b->c->n_blocks < b->g->n_cells + AOTH_MAX_LANES);
  return AOT_OK;
}

static aot_tensor_t at_place(const binder_t *b, uint32_t place) {
  const uint32_t n_ports = b->g->n_inputs + b->g->n_outputs;
  if (place < n_ports) return b->slots[place];
  AOT_ASSERT(place - n_ports < b->g->n_cells);
  const uint32_t cell = place - n_ports, slot = b->g->cells[cell].slot;
  aot_tensor_t t = b->slots[slot];
  if (slot < n_ports && !t.data) return t; /* None */
  t.data = (void *)(uintptr_t)b->cells[cell];
  t.nbytes = b->l.nbytes[cell];
  return t;
}

static aot_status_t bind_move(const binder_t *b, uint32_t number) {
  const aoth_part_move_t *m = &b->g->moves[number];
  const aoth_multi_queue_t *lanes = b->x->lanes;
  const aot_tensor_t from = at_place(b, m->from), to = at_place(b, m->to);
  const uint64_t nbytes = reach_of(&from) < reach_of(&to) ? reach_of(&from) : reach_of(&to);
  aoth_bound_move_t *out = &b->c->moves[number];
  if (!nbytes || (m->is_filling && !has_gaps(&to))) return AOT_OK;
  if (from.rank == AOT_RANK_OPEN || to.rank == AOT_RANK_OPEN) return AOT_OK;
  out->from = (aot_buffer_t){(uintptr_t)from.data, nbytes};
  out->to = (aot_buffer_t){(uintptr_t)to.data, nbytes};
  if (lanes->lane[m->from_lane].is_host || lanes->lane[m->to_lane].is_host) return AOT_OK;
  return aoth_queue_host_alloc(lanes->lane[m->from_lane].queue, nbytes, &out->staging);
}

static aot_status_t bind_part(const binder_t *b, uint32_t i, aot_tensor_t *tensors) {
  const aoth_part_t *p = &b->g->parts[i];
  const aoth_part_backend_t *backend = &b->x->backends[p->backend];
  const uint64_t skip = b->arenas.skip[p->lane], nbytes = b->arenas.nbytes[p->lane];
  AOT_ASSERT(skip <= nbytes);
  for (uint32_t k = 0; k < p->n_inputs + p->n_outputs; k++) tensors[k] = at_place(b, p->places[k]);
  const aot_binding_t binding = {.struct_size = sizeof binding,
                                 .graph = part_at(p, &b->whole->graph),
                                 .inputs = tensors,
                                 .outputs = tensors + p->n_inputs,
                                 .n_inputs = p->n_inputs,
                                 .n_outputs = p->n_outputs,
                                 .arena = {b->arena[p->lane] + skip, nbytes - skip}};
  for (uint32_t k = 0; k < p->n_outputs; k++)
    if (binding.outputs[k].rank == AOT_RANK_OPEN) b->c->open_part = p;
  if (b->c->open_part == p && !(backend->exe->head.flags & AOT_EXE_OPEN_OUTPUTS))
    return aoth_report_error(b->ctx, AOT_E_UNIMPLEMENTED, "run.open",
                             "backend %s cannot return results whose size depends on the data", backend->name);
  if (b->c->open_part == p && p->lane && !(b->c->opens = calloc((size_t)p->n_outputs + 1, sizeof(aoth_bound_open_t))))
    return aoth_parts_no_memory(b->ctx);
  b->x->entering(b->x->self, p->backend);
  return backend->exe->bind(backend->self, b->ctx, &binding, &b->c->calls[i]);
}

static aot_status_t bind_all(binder_t *b) {
  const aoth_part_graph_t *g = b->g;
  size_t n_tensors = 0, at = 0;
  AOT_TRY(aoth_parts_plan_arenas(b->x, b->ctx, g, &b->whole->graph, &b->l, &b->arenas));
  for (uint32_t i = 0; i < g->n_parts; i++) n_tensors += (size_t)g->parts[i].n_inputs + g->parts[i].n_outputs;
  b->cells = malloc(((size_t)g->n_cells + 1) * sizeof *b->cells);
  b->c->tensors = malloc((n_tensors + 1) * sizeof *b->c->tensors);
  b->c->calls = calloc((size_t)g->n_parts + 1, sizeof(void *));
  b->c->moves = calloc((size_t)g->n_moves + 1, sizeof *b->c->moves);
  b->c->blocks = calloc((size_t)g->n_cells + AOTH_MAX_LANES, sizeof(void *));
  if (!make_slots(b) || !b->cells || !b->c->tensors || !b->c->calls || !b->c->moves || !b->c->blocks)
    return aoth_parts_no_memory(b->ctx);
  AOT_TRY(place_cells(b));
  for (uint32_t m = 0; m < g->n_moves; m++) AOT_TRY(bind_move(b, m));
  for (uint32_t i = 0; i < g->n_parts; i++) {
    AOT_TRY(bind_part(b, i, b->c->tensors + at));
    at += (size_t)g->parts[i].n_inputs + g->parts[i].n_outputs;
  }
  AOT_ASSERT(at == n_tensors);
  return AOT_OK;
}

aot_status_t aoth_parts_bind(aoth_parts_exe_t *x, aot_ctx_t *ctx, const aoth_part_graph_t *g,
                             const aot_binding_t *whole, aot_bound_t **out) {
  binder_t b = {.x = x, .ctx = ctx, .whole = whole, .g = g};
  AOT_TRY(aoth_parts_layout_init(&b.l, ctx, x->prog, g, x->lanes, &whole->graph));
  b.c = calloc(1, sizeof *b.c);
  aot_status_t status = b.c ? AOT_OK : aoth_parts_no_memory(ctx);
  if (b.c) {
    b.c->graph = g;
    b.c->exe = x;
    x->n_bound++;
    status = bind_all(&b);
  }
  free(b.slots);
  free(b.cells);
  aoth_parts_layout_deinit(&b.l);
  if (status == AOT_OK) *out = b.c;
  else if (b.c) aoth_parts_unbind(b.c);
  return status;
}
