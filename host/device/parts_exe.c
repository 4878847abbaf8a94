#include <device/parts_exe.h>

#include <aot/inline.h>
#include <device/parts_layout.h>
#include <stdlib.h>
#include <string.h>

/* Memory of a lane beside the session's, as long as somebody has it. */
typedef struct block {
  uint32_t lane, n_owners;
  aot_buffer_t buffer;
} block_t;

/* A copy of a leaf on a lane where it does not live. */
typedef struct copy {
  block_t *block;
  uint64_t version;    /* of the leaf when it was made; 0: nothing is in it */
  uint64_t n_failures; /* of the lanes by then: what was on its way when something failed is not in it */
} copy_t;

typedef struct exe {
  aot_exe_t table;
  aot_prog_t *prog;
  aoth_lanes_t *lanes;
  const aoth_part_backend_t *backends;
  uint32_t n_backends;
  void *self;
  void (*entering)(void *self, uint32_t backend);
  aoth_arena_t *arena; /* of what follows */
  aoth_parts_t parts;
  uint32_t n_leaves;
  uint64_t *versions;              /* by leaf: what it holds now */
  copy_t *copies;                  /* [lane * n_leaves + leaf] */
  block_t *arenas[AOTH_MAX_LANES]; /* by lane, for the next call that is bound; 0 is the caller's */
  uint64_t pulled[AOTH_MAX_LANES]; /* by lane: its work up to the last that reads the host's memory */
  uint32_t n_bound;
  uint64_t arena_nbytes; /* the largest that was planned */
} exe_t;

typedef struct move { /* of a bound call */
  aot_buffer_t from, to;
  void *staging; /* the host's memory between two devices of which neither is the host; NULL: none */
  int is_due;    /* in the submission that is being put */
} move_t;

/* An output whose size only the run has told, on its way from another device. */
typedef struct open {
  aot_buffer_t from; /* address 0: there is none */
  aot_buffer_t to;
  void *staging;
} open_t;

struct aot_bound {
  const aoth_part_graph_t *graph;
  aot_bound_t **calls;   /* by part */
  aot_tensor_t *tensors; /* of all parts, in order */
  int64_t *dims;         /* of the values between them */
  move_t *moves;         /* as the graph has them */
  block_t **blocks;      /* that it has */
  uint32_t n_blocks;
  const aoth_part_t *open_part; /* whose outputs are open; NULL: none's are. Only one can: a graph with sizes that a run
                                   tells is whole */
  open_t *opens;                /* by its outputs, where it runs on another lane than 0 */
  aot_output_sink_t sink;       /* of its run, which counts outputs as the part does .. */
  aot_submission_t whole;       /* .. and the one for all of it */
  exe_t *exe;
};

static aot_status_t no_memory(aot_ctx_t *ctx) {
  return aoth_report_error(ctx, AOT_E_EXHAUSTED, "run.memory", "no memory for the parts of the program");
}

/* ---- memory of the other lanes ---- */

static void let_go(const exe_t *x, block_t *b) {
  if (!b || --b->n_owners) return;
  aoth_queue_t *q = x->lanes->lane[b->lane].queue;
  aoth_queue_idle(q);
  if (b->buffer.address) aoth_queue_free(q, b->buffer);
  free(b);
}

/* At least that large, for the call and, behind it, for others: *slot has it, too. */
static aot_status_t have_block(const exe_t *x, aot_ctx_t *ctx, uint32_t lane, uint64_t nbytes, block_t **slot,
                               aot_bound_t *c) {
  if (!*slot || (*slot)->buffer.nbytes < nbytes) {
    block_t *b = calloc(1, sizeof *b);
    if (!b) return no_memory(ctx);
    *b = (block_t){.lane = lane, .n_owners = 1};
    const aot_status_t status = aoth_queue_alloc(x->lanes->lane[lane].queue, nbytes, &b->buffer);
    if (status != AOT_OK) {
      free(b);
      return status;
    }
    let_go(x, *slot);
    *slot = b;
  }
  (*slot)->n_owners++;
  c->blocks[c->n_blocks++] = *slot;
  return AOT_OK;
}

/* When no call is bound any more. */
static void forget_memory(exe_t *x) {
  for (uint32_t lane = 1; lane < AOTH_MAX_LANES; lane++) {
    let_go(x, x->arenas[lane]);
    x->arenas[lane] = NULL;
  }
  for (uint64_t i = 0; i < (uint64_t)x->lanes->n * x->n_leaves; i++) {
    let_go(x, x->copies[i].block);
    x->copies[i] = (copy_t){0};
  }
}

static copy_t *copy_of(const exe_t *x, uint32_t leaf, uint32_t lane) {
  return &x->copies[(uint64_t)lane * x->n_leaves + leaf];
}

/* ---- plan ---- */

static const aoth_part_graph_t *find_graph(const exe_t *x, int32_t kind, uint32_t number) {
  for (uint32_t g = 0; g < x->parts.n_graphs; g++)
    if (x->parts.graphs[g].kind == kind && x->parts.graphs[g].number == number) return &x->parts.graphs[g];
  return NULL;
}

static aot_status_t no_graph(aot_ctx_t *ctx) {
  return aoth_report_error(ctx, AOT_E_RANGE, "run.graph", "the program has no such graph");
}

static aot_graph_at_t part_at(const aoth_part_t *p, const aot_graph_at_t *graph) {
  return (aot_graph_at_t){.struct_size = sizeof(aot_graph_at_t),
                          .kind = AOT_GRAPH_PART,
                          .number = p->number,
                          .symbols = graph->symbols,
                          .n_symbols = graph->n_symbols};
}

static uint64_t align(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* Of each lane: the arena of the parts, which begins where the cells end, `skip` bytes on. */
typedef struct arenas {
  uint64_t nbytes[AOTH_MAX_LANES], skip[AOTH_MAX_LANES]; /* nbytes: of both */
  uint64_t alignment[AOTH_MAX_LANES];
} arenas_t;

static aot_status_t plan_parts(const exe_t *x, aot_ctx_t *ctx, const aoth_part_graph_t *g, const aot_graph_at_t *at,
                               const aoth_parts_layout_t *l, arenas_t *out) {
  *out = (arenas_t){0};
  for (uint32_t lane = 0; lane < AOTH_MAX_LANES; lane++) out->alignment[lane] = AOTH_PARTS_ALIGNMENT;
  for (uint32_t i = 0; i < g->n_parts; i++) {
    const aoth_part_backend_t *b = &x->backends[g->parts[i].backend];
    const aot_graph_at_t part = part_at(&g->parts[i], at);
    const uint32_t lane = g->parts[i].lane;
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

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *at, aot_exe_plan_t *out) {
  exe_t *x = e->head.self;
  const aoth_part_graph_t *g = find_graph(x, at->kind, at->number);
  aoth_parts_layout_t l;
  arenas_t arenas;
  if (!g) return no_graph(ctx);
  AOT_TRY(aoth_parts_layout_init(&l, ctx, x->prog, g, x->lanes, at));
  const aot_status_t status = plan_parts(x, ctx, g, at, &l, &arenas);
  aoth_parts_layout_deinit(&l);
  if (status != AOT_OK) return status;
  uint64_t sum = 0;
  for (uint32_t lane = 0; lane < AOTH_MAX_LANES; lane++) sum += arenas.nbytes[lane];
  if (sum > x->arena_nbytes) x->arena_nbytes = sum;
  const aot_exe_plan_t full = {
      .struct_size = out->struct_size, .arena = {.nbytes = arenas.nbytes[0]}, .alignment = arenas.alignment[0]};
  memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
  return AOT_OK;
}

/* ---- bind ---- */

/* The run that made them is over. */
static void drop_opens(const aot_bound_t *c) {
  aoth_queue_t *q = c->opens ? c->exe->lanes->lane[c->open_part->lane].queue : NULL;
  for (uint32_t i = 0; q && i < c->open_part->n_outputs; i++) {
    open_t *o = &c->opens[i];
    if (o->from.address || o->staging) aoth_queue_idle(q);
    if (o->from.address) aoth_queue_free(q, o->from);
    if (o->staging) aoth_queue_host_free(q, o->staging, o->from.nbytes);
    *o = (open_t){0};
  }
}

static void unbind(const aot_exe_t *e, aot_bound_t *c) {
  exe_t *x = e->head.self;
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
  drop_opens(c);
  free(c->opens);
  for (uint32_t i = 0; i < c->n_blocks; i++) let_go(x, c->blocks[i]);
  free(c->blocks);
  free(c->moves);
  free(c->calls);
  free(c->tensors);
  free(c->dims);
  free(c);
  if (--x->n_bound == 0) forget_memory(x);
}

typedef struct binding {
  exe_t *x;
  aot_ctx_t *ctx;
  const aot_binding_t *whole;
  aot_bound_t *c;
  const aoth_part_graph_t *g;
  aoth_parts_layout_t l;
  arenas_t arenas;
  uint64_t arena[AOTH_MAX_LANES]; /* addresses */
  aot_tensor_t *slots;            /* by slot; where it lies is a place's to say */
  uint64_t *cells;                /* by cell: its address */
} binding_t;

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
static int make_slots(binding_t *b) {
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
  return 1;
}

/* Memory of the other lanes, and where every cell lies in it. */
static aot_status_t place_cells(binding_t *b) {
  exe_t *x = b->x;
  b->arena[0] = b->whole->arena.address;
  for (uint32_t lane = 1; lane < x->lanes->n; lane++) {
    if (!(b->g->lanes >> lane & 1)) continue;
    AOT_TRY(have_block(x, b->ctx, lane, b->arenas.nbytes[lane], &x->arenas[lane], b->c));
    b->arena[lane] = x->arenas[lane]->buffer.address;
  }
  for (uint32_t i = 0; i < b->g->n_cells; i++) {
    const aoth_part_cell_t *cell = &b->g->cells[i];
    b->cells[i] = b->arena[cell->lane] + b->l.at[i];
    if (cell->leaf == AOT_NO_ID) continue;
    copy_t *copy = copy_of(x, cell->leaf, cell->lane);
    const block_t *before = copy->block;
    AOT_TRY(have_block(x, b->ctx, cell->lane, b->l.nbytes[i], &copy->block, b->c));
    if (copy->block != before) copy->version = 0;
    b->cells[i] = copy->block->buffer.address;
  }
  return AOT_OK;
}

static aot_tensor_t at_place(const binding_t *b, uint32_t place) {
  const uint32_t n_ports = b->g->n_inputs + b->g->n_outputs;
  if (place < n_ports) return b->slots[place];
  const uint32_t cell = place - n_ports, slot = b->g->cells[cell].slot;
  aot_tensor_t t = b->slots[slot];
  if (slot < n_ports && !t.data) return t; /* None */
  t.data = (void *)(uintptr_t)b->cells[cell];
  t.nbytes = b->l.nbytes[cell];
  return t;
}

static aot_status_t bind_move(const binding_t *b, uint32_t number) {
  const aoth_part_move_t *m = &b->g->moves[number];
  const aoth_lanes_t *lanes = b->x->lanes;
  const aot_tensor_t from = at_place(b, m->from), to = at_place(b, m->to);
  const uint64_t nbytes = reach_of(&from) < reach_of(&to) ? reach_of(&from) : reach_of(&to);
  move_t *out = &b->c->moves[number];
  if (!nbytes || (m->is_filling && !has_gaps(&to))) return AOT_OK;
  if (from.rank == AOT_RANK_OPEN || to.rank == AOT_RANK_OPEN) return AOT_OK;
  out->from = (aot_buffer_t){(uintptr_t)from.data, nbytes};
  out->to = (aot_buffer_t){(uintptr_t)to.data, nbytes};
  if (lanes->lane[m->from_lane].is_host || lanes->lane[m->to_lane].is_host) return AOT_OK;
  return aoth_queue_host_alloc(lanes->lane[m->from_lane].queue, nbytes, &out->staging);
}

static aot_status_t bind_part(const binding_t *b, uint32_t i, aot_tensor_t *tensors) {
  const aoth_part_t *p = &b->g->parts[i];
  const aoth_part_backend_t *backend = &b->x->backends[p->backend];
  const uint64_t skip = b->arenas.skip[p->lane], nbytes = b->arenas.nbytes[p->lane];
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
  if (b->c->open_part == p && p->lane && !(b->c->opens = calloc((size_t)p->n_outputs + 1, sizeof(open_t))))
    return no_memory(b->ctx);
  b->x->entering(b->x->self, p->backend);
  return backend->exe->bind(backend->self, b->ctx, &binding, &b->c->calls[i]);
}

static aot_status_t bind_all(binding_t *b) {
  const aoth_part_graph_t *g = b->g;
  size_t n_tensors = 0, at = 0;
  AOT_TRY(plan_parts(b->x, b->ctx, g, &b->whole->graph, &b->l, &b->arenas));
  for (uint32_t i = 0; i < g->n_parts; i++) n_tensors += (size_t)g->parts[i].n_inputs + g->parts[i].n_outputs;
  b->cells = malloc(((size_t)g->n_cells + 1) * sizeof *b->cells);
  b->c->tensors = malloc((n_tensors + 1) * sizeof *b->c->tensors);
  b->c->calls = calloc((size_t)g->n_parts + 1, sizeof(void *));
  b->c->moves = calloc((size_t)g->n_moves + 1, sizeof *b->c->moves);
  b->c->blocks = calloc((size_t)g->n_cells + AOTH_MAX_LANES, sizeof(void *));
  if (!make_slots(b) || !b->cells || !b->c->tensors || !b->c->calls || !b->c->moves || !b->c->blocks)
    return no_memory(b->ctx);
  AOT_TRY(place_cells(b));
  for (uint32_t m = 0; m < g->n_moves; m++) AOT_TRY(bind_move(b, m));
  for (uint32_t i = 0; i < g->n_parts; i++) {
    AOT_TRY(bind_part(b, i, b->c->tensors + at));
    at += (size_t)g->parts[i].n_inputs + g->parts[i].n_outputs;
  }
  return AOT_OK;
}

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *whole, aot_bound_t **out) {
  binding_t b = {.x = e->head.self, .ctx = ctx, .whole = whole};
  b.g = find_graph(b.x, whole->graph.kind, whole->graph.number);
  if (!b.g) return no_graph(ctx);
  AOT_TRY(aoth_parts_layout_init(&b.l, ctx, b.x->prog, b.g, b.x->lanes, &whole->graph));
  b.c = calloc(1, sizeof *b.c);
  aot_status_t status = b.c ? AOT_OK : no_memory(ctx);
  if (b.c) {
    b.c->graph = b.g;
    b.c->exe = b.x;
    b.x->n_bound++;
    status = bind_all(&b);
  }
  free(b.slots);
  free(b.cells);
  aoth_parts_layout_deinit(&b.l);
  if (status == AOT_OK) *out = b.c;
  else if (b.c) unbind(e, b.c);
  return status;
}

/* ---- moves ---- */

/* A copy of a leaf that is as it was. */
static int is_kept(const exe_t *x, const aoth_part_move_t *m) {
  copy_t *copy = m->leaf == AOT_NO_ID ? NULL : copy_of(x, m->leaf, m->to_lane);
  if (!copy) return 0;
  const uint64_t version = x->versions[m->leaf], n_failures = x->lanes->n_failures;
  if (version && copy->version == version && copy->n_failures == n_failures) return 1;
  copy->version = version;
  copy->n_failures = n_failures;
  return 0;
}

/* To the host's memory, on the queue that it comes from. What lies where an input does on the host may yet be read by
 * parts there. */
static aot_status_t fetch(exe_t *x, aot_ctx_t *ctx, const aoth_part_move_t *m, const move_t *b) {
  const aoth_lane_t *from = &x->lanes->lane[m->from_lane], *to = &x->lanes->lane[m->to_lane];
  if (from->is_host) return AOT_OK;
  if (to->is_host && m->is_home) AOT_TRY(aoth_lanes_cross(x->lanes, m->to_lane, m->from_lane));
  aoth_lanes_noted(x->lanes, m->from_lane);
  return from->queue->device->read(from->queue->device, ctx, from->queue->queue,
                                   b->staging ? b->staging : (void *)(uintptr_t)b->to.address, b->from);
}

/* From there, on the queue of where it goes. */
static aot_status_t store(exe_t *x, aot_ctx_t *ctx, const aoth_part_move_t *m, const move_t *b) {
  const aoth_lane_t *from = &x->lanes->lane[m->from_lane], *to = &x->lanes->lane[m->to_lane];
  if (to->is_host) return AOT_OK;
  aoth_lanes_noted(x->lanes, m->to_lane);
  if (from->is_host) x->pulled[m->to_lane] = to->n_put;
  return to->queue->device->write(to->queue->device, ctx, to->queue->queue, b->to,
                                  b->staging ? b->staging : (const void *)(uintptr_t)b->from.address);
}

/* All that stand together: what is fetched is fetched before the first crossing. */
static aot_status_t move_all(const aot_bound_t *c, aot_ctx_t *ctx, uint32_t begin, uint32_t end) {
  exe_t *x = c->exe;
  const aoth_part_move_t *moves = c->graph->moves;
  for (uint32_t m = begin; m < end; m++) {
    c->moves[m].is_due = c->moves[m].from.nbytes && !is_kept(x, &moves[m]);
    if (c->moves[m].is_due) AOT_TRY(fetch(x, ctx, &moves[m], &c->moves[m]));
  }
  for (uint32_t m = begin; m < end; m++)
    if (c->moves[m].is_due) AOT_TRY(aoth_lanes_cross(x->lanes, moves[m].from_lane, moves[m].to_lane));
  for (uint32_t m = begin; m < end; m++) {
    if (!c->moves[m].is_due) continue;
    AOT_TRY(store(x, ctx, &moves[m], &c->moves[m]));
    x->lanes->lane[0].queue->n_moved += c->moves[m].from.nbytes;
  }
  return AOT_OK;
}

/* ---- submit ---- */

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
  open_t *o = &c->opens[output];
  o->to = (aot_buffer_t){(uintptr_t)out->data, out->nbytes};
  AOT_TRY(aoth_queue_alloc(c->exe->lanes->lane[p->lane].queue, out->nbytes, &o->from));
  out->data = (void *)(uintptr_t)o->from.address;
  return AOT_OK;
}

/* Their sizes are known when the part has run: here the host waits for it. */
static aot_status_t bring_opens(const aot_bound_t *c, aot_ctx_t *ctx) {
  exe_t *x = c->exe;
  const uint32_t lane = c->open_part->lane;
  const aoth_part_move_t move = {.from_lane = lane};
  AOT_TRY(aoth_lanes_await(x->lanes, lane));
  for (uint32_t i = 0; i < c->open_part->n_outputs; i++) {
    open_t *o = &c->opens[i];
    if (!o->from.address || !o->to.nbytes) continue;
    o->from.nbytes = o->to.nbytes;
    if (!x->lanes->lane[lane].is_host && !x->lanes->lane[0].is_host)
      AOT_TRY(aoth_queue_host_alloc(x->lanes->lane[lane].queue, o->from.nbytes, &o->staging));
    const move_t b = {.from = o->from, .to = o->to, .staging = o->staging};
    AOT_TRY(fetch(x, ctx, &move, &b));
    AOT_TRY(aoth_lanes_cross(x->lanes, lane, 0));
    AOT_TRY(store(x, ctx, &move, &b));
    x->lanes->lane[0].queue->n_moved += b.to.nbytes;
  }
  return AOT_OK;
}

/* On one lane the first part waits, and the last one signals. */
static aot_status_t submit_part(void *self, uint32_t i) {
  aot_bound_t *c = self;
  const exe_t *x = c->exe;
  const aoth_part_t *p = &c->graph->parts[i];
  const aoth_part_backend_t *b = &x->backends[p->backend];
  const int is_alone = c->graph->lanes == 1;
  aot_submission_t s = c->whole;
  s.queue = x->lanes->lane[p->lane].queue->queue;
  if (i || !is_alone) s.n_waits = 0;
  if (i + 1 < c->graph->n_parts || !is_alone) s.n_signals = 0;
  s.open = c->whole.open && c->open_part == p ? &c->sink : NULL;
  x->entering(x->self, p->backend);
  return b->exe->submit(b->self, x->lanes->ctx, c->calls[i], &s);
}

/* Of a part on the host that writes where an input lies: others have read what was there. */
static aot_status_t wait_for_readers(const exe_t *x, const aoth_part_t *p) {
  const aoth_lane_t *lane = &x->lanes->lane[p->lane];
  if (!p->writes_home || !lane->is_host) return AOT_OK;
  for (uint32_t i = 0; i < x->lanes->n; i++)
    if (i != p->lane && lane->seen[i] < x->pulled[i]) AOT_TRY(aoth_lanes_cross(x->lanes, i, p->lane));
  return AOT_OK;
}

static aot_status_t submit_parts(aot_bound_t *c, aot_ctx_t *ctx) {
  const exe_t *x = c->exe;
  for (uint32_t i = 0; i < c->graph->n_parts; i++) {
    const aoth_part_t *p = &c->graph->parts[i];
    AOT_TRY(move_all(c, ctx, p->move_begin, p->move_middle));
    AOT_TRY(wait_for_readers(x, p));
    AOT_TRY(aoth_lanes_put(x->lanes, p->lane, submit_part, c, i));
    AOT_TRY(move_all(c, ctx, p->move_middle, p->move_end));
  }
  return AOT_OK;
}

/* What the parts do not do by themselves: waits and signals of a call on several lanes, or of one without parts. */
static aot_status_t submit_around(aot_bound_t *c, aot_ctx_t *ctx) {
  const exe_t *x = c->exe;
  const aot_submission_t *s = &c->whole;
  const aot_device_t *d = x->lanes->lane[0].queue->device;
  for (uint64_t i = 0; i < s->n_waits; i++) AOT_TRY(d->wait(d, ctx, s->queue, s->waits[i]));
  aot_status_t status = aoth_lanes_begin(x->lanes, c->graph->lanes);
  drop_opens(c);
  if (status == AOT_OK) status = submit_parts(c, ctx);
  if (status == AOT_OK && c->opens) status = bring_opens(c, ctx);
  status = aoth_lanes_end(x->lanes, c->graph->lanes, status);
  for (uint64_t i = 0; i < s->n_signals && status == AOT_OK; i++) status = d->signal(d, ctx, s->queue, s->signals[i]);
  return status;
}

/* When a part fails, those behind it are left out. */
static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *c, const aot_submission_t *whole) {
  (void)e;
  c->whole = *whole;
  c->sink = (aot_output_sink_t){.head = {.struct_size = sizeof c->sink, .self = c}, .allocate = allocate};
  return c->graph->lanes == 1 ? submit_parts(c, ctx) : submit_around(c, ctx);
}

/* ---- the table ---- */

static aot_status_t stats(const aot_exe_t *e, aot_exe_stats_t *out) {
  const exe_t *x = e->head.self;
  aot_exe_stats_t sum = {.struct_size = out->struct_size, .arena_nbytes = x->arena_nbytes};
  for (uint32_t b = 0; b < x->n_backends; b++) {
    aot_exe_stats_t one = {.struct_size = sizeof one};
    if (!x->backends[b].self || !x->backends[b].exe->stats) continue;
    AOT_TRY(x->backends[b].exe->stats(x->backends[b].self, &one));
    sum.n_kernels += one.n_kernels;
    sum.copied_nbytes += one.copied_nbytes;
    if (one.n_runs > sum.n_runs) sum.n_runs = one.n_runs;
  }
  sum.peak_nbytes = sum.n_runs ? x->arena_nbytes : 0;
  memcpy(out, &sum, out->struct_size < sizeof sum ? out->struct_size : sizeof sum);
  return AOT_OK;
}

static void destroy(const aot_table_t *e) {
  exe_t *x = e->self;
  aoth_arena_destroy(x->arena);
  free(x);
}

static aot_status_t read_program(exe_t *x, aot_ctx_t *ctx) {
  aoth_part_route_t *routes = aoth_arena_alloc(x->arena, sizeof(void *), (x->n_backends + 1) * sizeof *routes);
  x->n_leaves = aoth_graph_n_leaves(x->prog);
  x->versions = aoth_arena_alloc(x->arena, sizeof(uint64_t), ((size_t)x->n_leaves + 1) * sizeof *x->versions);
  x->copies = aoth_arena_alloc(x->arena, sizeof(void *), ((size_t)x->lanes->n * x->n_leaves + 1) * sizeof *x->copies);
  if (!routes || !x->versions || !x->copies) return no_memory(ctx);
  for (uint32_t b = 0; b < x->n_backends; b++)
    routes[b] = (aoth_part_route_t){x->backends[b].name, x->backends[b].lane, x->backends[b].self != NULL};
  return aoth_parts_read(ctx, x->prog, routes, x->n_backends, x->arena, &x->parts);
}

const aot_exe_t *aoth_parts_exe_create(aot_ctx_t *ctx, aot_prog_t *prog, aoth_lanes_t *lanes,
                                       const aoth_part_backend_t *backends, uint32_t n_backends, void *self,
                                       void (*entering)(void *self, uint32_t backend)) {
  exe_t *x = calloc(1, sizeof *x);
  if (!x || !(x->arena = aoth_arena_create())) {
    free(x);
    no_memory(ctx);
    return NULL;
  }
  x->prog = prog;
  x->lanes = lanes;
  x->backends = backends;
  x->n_backends = n_backends;
  x->self = self;
  x->entering = entering;
  x->table = (aot_exe_t){.head = {.struct_size = sizeof x->table, .self = x, .destroy = destroy},
                         .plan = plan,
                         .bind = bind,
                         .submit = submit,
                         .unbind = unbind,
                         .stats = stats};
  for (uint32_t b = 0; b < n_backends; b++)
    if (backends[b].self) x->table.head.flags |= backends[b].exe->head.flags & AOT_EXE_OPEN_OUTPUTS;
  if (read_program(x, ctx) == AOT_OK) return &x->table;
  destroy(&x->table.head);
  return NULL;
}

uint32_t aoth_parts_exe_home(const aot_exe_t *exe, uint32_t leaf) {
  const exe_t *x = exe->head.self;
  return leaf < x->n_leaves ? x->parts.home[leaf] : 0;
}

void aoth_parts_exe_leaf_is(const aot_exe_t *exe, uint32_t leaf, uint64_t version) {
  const exe_t *x = exe->head.self;
  if (leaf < x->n_leaves) x->versions[leaf] = version;
}
