#include <device/parts_exe.h>

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT32_MAX
#define ALIGNMENT 64u /* of values between parts */

typedef struct part {
  uint32_t backend, number; /* which executable, and which of its PART graphs */
  uint32_t n_inputs, n_outputs;
  const uint32_t *slots; /* n_inputs, then n_outputs: of the graph */
} part_t;

/* A value between parts. */
typedef struct between {
  aot_type_t type;
  uint32_t first, last; /* parts */
} between_t;

/* Slots: the graph's inputs, then its outputs, then values between parts. */
typedef struct graph {
  int32_t kind;
  uint32_t number;
  uint32_t n_inputs, n_outputs, n_between, n_parts;
  between_t *between;
  part_t *parts;
} graph_t;

typedef struct exe {
  aot_exe_t table;
  aot_prog_t *prog;
  const aot_device_t *device;
  const aoth_part_backend_t *backends;
  uint32_t n_backends;
  void *self;
  void (*entering)(void *self, uint32_t backend);
  aoth_arena_t *arena; /* of what follows */
  graph_t *graphs;
  uint32_t n_graphs;
  uint64_t arena_nbytes; /* the largest that was planned */
} exe_t;

struct aot_bound {
  const graph_t *graph;
  aot_bound_t **calls;   /* by part */
  aot_tensor_t *tensors; /* of all parts, in order */
  int64_t *dims;         /* of the values between them */
  const part_t *
      open_part; /* whose outputs are open; NULL: none's are. Only one can: a graph with sizes that a run tells is whole */
  aot_output_sink_t sink;        /* of its run, which counts outputs as the part does .. */
  const aot_output_sink_t *open; /* .. and the one for the whole graph's */
};

/* ---- reading the program ---- */

int aoth_is_part_call(aot_prog_t *prog, const aot_node_info_t *node, aot_graph_t *out_part, aot_str_t *out_backend) {
  int32_t kind;
  aot_str_t name;
  if (node->n_args < 2 || node->args[0].kind != AOT_ARG_GRAPH || node->args[1].kind != AOT_ARG_STR) return 0;
  *out_part = (aot_graph_t){(uint32_t)node->args[0].u.i};
  *out_backend = (aot_str_t){node->args[1].u.chars, node->args[1].n};
  return aoth_graph_graph_info(prog, *out_part, &kind, &name) == AOT_OK && kind == AOT_GRAPH_PART;
}

typedef struct reading {
  exe_t *x;
  aot_ctx_t *ctx;
  uint32_t *slot;       /* by value of the program: slot + 1 */
  uint32_t *backend_of; /* by graph: of a part, the backend + 1 */
  uint32_t *number_of;  /* by graph: of a part, which of its backend's */
  graph_t *g;
} reading_t;

static aot_status_t no_memory(aot_ctx_t *ctx) {
  return aoth_report_error(ctx, AOT_E_EXHAUSTED, "run.memory", "no memory for the parts of the program");
}

static uint32_t find_backend(const exe_t *x, aot_str_t name) {
  uint32_t b = 0;
  while (b < x->n_backends && !aot_str_eq(aot_str(x->backends[b].name), name)) b++;
  return b;
}

static int is_called(aot_prog_t *p, uint32_t graph, int32_t *out_kind) {
  aot_str_t name;
  return aoth_graph_graph_info(p, (aot_graph_t){graph}, out_kind, &name) == AOT_OK && *out_kind != AOT_GRAPH_REGION &&
         *out_kind != AOT_GRAPH_PART;
}

/* Which of their backend's graphs the parts are: in the order of their ids, as the backend met them. */
static aot_status_t number_parts(reading_t *r) {
  aot_prog_t *p = r->x->prog;
  const uint32_t n_graphs = aoth_graph_n_graphs(p);
  uint32_t *n_of = aoth_arena_alloc(r->x->arena, sizeof *n_of, ((size_t)r->x->n_backends + 1) * sizeof *n_of);
  int32_t kind;
  if (!n_of) return no_memory(r->ctx);
  for (uint32_t g = 1; g < n_graphs; g++) {
    if (!is_called(p, g, &kind)) continue;
    r->x->n_graphs++;
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      aot_graph_t part = {AOT_NO_ID};
      aot_str_t name = {"", 0};
      AOT_TRY(aoth_graph_node_info(p, n, &info));
      const uint32_t b = aoth_is_part_call(p, &info, &part, &name) ? find_backend(r->x, name) : r->x->n_backends;
      if (b == r->x->n_backends || !r->x->backends[b].self)
        return aoth_report_error(r->ctx, AOT_E_INVALID, "run.part",
                                 "a graph that is divided among backends holds something that none of them runs");
      r->backend_of[part.id] = b + 1;
    }
  }
  for (uint32_t g = 1; g < n_graphs; g++)
    if (r->backend_of[g]) r->number_of[g] = n_of[r->backend_of[g] - 1]++;
  return AOT_OK;
}

static uint32_t add_between(graph_t *g, aot_prog_t *p, aot_value_t v, uint32_t part) {
  between_t *b = &g->between[g->n_between];
  *b = (between_t){.first = part, .last = part};
  aoth_graph_value_type(p, v, &b->type);
  return g->n_inputs + g->n_outputs + g->n_between++;
}

static aot_status_t read_part(reading_t *r, aot_node_t node, uint32_t at) {
  aot_prog_t *p = r->x->prog;
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_graph_t part;
  aot_str_t name;
  AOT_TRY(aoth_graph_node_info(p, node, &info));
  aoth_is_part_call(p, &info, &part, &name);
  const size_t n = (size_t)info.n_operands + info.n_results + 1;
  uint32_t *slots = aoth_arena_alloc(r->x->arena, sizeof *slots, n * sizeof *slots);
  if (!slots) return no_memory(r->ctx);
  r->g->parts[at] = (part_t){r->backend_of[part.id] - 1, r->number_of[part.id], info.n_operands, info.n_results, slots};
  for (uint32_t i = 0; i < info.n_operands; i++) {
    slots[i] = r->slot[info.operands[i]] - 1;
    const uint32_t b = slots[i] - r->g->n_inputs - r->g->n_outputs;
    if (slots[i] >= r->g->n_inputs + r->g->n_outputs) r->g->between[b].last = at;
  }
  for (uint32_t i = 0; i < info.n_results; i++) {
    const aot_value_t v = {info.first_result.id + i};
    if (!r->slot[v.id]) r->slot[v.id] = add_between(r->g, p, v, at) + 1;
    slots[info.n_operands + i] = r->slot[v.id] - 1;
  }
  return AOT_OK;
}

static aot_status_t read_graph(reading_t *r, aot_graph_t graph) {
  aot_prog_t *p = r->x->prog;
  graph_t *g = r->g;
  uint32_t n_results = 0, at = 0;
  g->n_inputs = aoth_graph_n_inputs(p, graph);
  g->n_outputs = aoth_graph_n_outputs(p, graph);
  for (aot_node_t n = aoth_graph_first(p, graph); n.id != AOT_NO_ID; n = aoth_graph_next(p, n), g->n_parts++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(aoth_graph_node_info(p, n, &info));
    n_results += info.n_results;
  }
  g->parts = aoth_arena_alloc(r->x->arena, sizeof(void *), ((size_t)g->n_parts + 1) * sizeof *g->parts);
  g->between = aoth_arena_alloc(r->x->arena, sizeof(void *), ((size_t)n_results + 1) * sizeof *g->between);
  if (!g->parts || !g->between) return no_memory(r->ctx);
  for (uint32_t i = 0; i < g->n_inputs; i++) r->slot[aoth_graph_inputs(p, graph)[i].value.id] = i + 1;
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const uint32_t v = aoth_graph_outputs(p, graph)[i].value.id;
    if (v != AOT_NO_ID) r->slot[v] = g->n_inputs + i + 1;
  }
  for (aot_node_t n = aoth_graph_first(p, graph); n.id != AOT_NO_ID; n = aoth_graph_next(p, n))
    AOT_TRY(read_part(r, n, at++));
  return AOT_OK;
}

static aot_status_t read_program(reading_t *r) {
  exe_t *x = r->x;
  const uint32_t n_graphs = aoth_graph_n_graphs(x->prog);
  uint32_t n = 0;
  int32_t kind;
  r->slot = aoth_arena_alloc(x->arena, sizeof *r->slot, ((size_t)aoth_graph_n_values(x->prog) + 1) * sizeof *r->slot);
  r->backend_of = aoth_arena_alloc(x->arena, sizeof(uint32_t), ((size_t)n_graphs + 1) * sizeof *r->backend_of);
  r->number_of = aoth_arena_alloc(x->arena, sizeof(uint32_t), ((size_t)n_graphs + 1) * sizeof *r->number_of);
  if (!r->slot || !r->backend_of || !r->number_of) return no_memory(r->ctx);
  AOT_TRY(number_parts(r));
  x->graphs = aoth_arena_alloc(x->arena, sizeof(void *), ((size_t)x->n_graphs + 1) * sizeof *x->graphs);
  if (!x->graphs) return no_memory(r->ctx);
  for (uint32_t g = 1; g < n_graphs; g++) {
    if (!is_called(x->prog, g, &kind)) continue;
    r->g = &x->graphs[n];
    r->g->kind = kind;
    for (uint32_t k = 0; k < n; k++) r->g->number += x->graphs[k].kind == kind; /* graphs that are called are few */
    AOT_TRY(read_graph(r, (aot_graph_t){g}));
    n++;
  }
  return AOT_OK;
}

/* ---- where values between parts lie ---- */

/* Blocks that are free again wait by size, of which there are eight to a power of two (Wilson et al., Dynamic storage allocation: segregated
 * free lists); so a layout is linear in the values. */
enum { N_SIZES = 64 * 8 };

typedef struct layout {
  const int64_t *exprs;
  uint64_t *place, *nbytes; /* by value between parts */
  uint64_t end;             /* of them all */
} layout_t;

static int64_t dim(const layout_t *l, int64_t d) { return AOT_DIM_IS_SYM(d) ? l->exprs[AOT_DIM_EXPR(d)] : d; }

static uint64_t nbytes_of(const layout_t *l, const aot_type_t *t) {
  int64_t last = dim(l, t->offset);
  for (int32_t d = 0; d < t->rank; d++) {
    if (dim(l, t->sizes[d]) <= 0) return 0;
    last += (dim(l, t->sizes[d]) - 1) * dim(l, t->strides[d]);
  }
  return ((uint64_t)last + 1) * aot_dtype_size(t->dtype);
}

/* The size class, and its size: at most an eighth more. */
static uint32_t size_class(uint64_t nbytes, uint64_t *out) {
  uint64_t units = (nbytes + ALIGNMENT - 1) / ALIGNMENT;
  uint32_t shift = 0;
  while (units >> shift >= 16) shift++;
  const uint64_t step = (uint64_t)1 << shift;
  units = (units + step - 1) / step;
  if (units == 16) units = 8, shift++;
  *out = (units << shift) * ALIGNMENT;
  return shift * 8 + (uint32_t)(units & 7) + (units >= 8 ? 8 : 0);
}

/* Parts in order: what is made takes a block, what was read for the last time gives its own back. next: by value, lists through it. */
static void place_all(const graph_t *g, layout_t *l, uint32_t *dies, uint32_t *next) {
  uint32_t free_blocks[N_SIZES + 16];
  memset(free_blocks, 0xff, sizeof free_blocks);
  memset(dies, 0xff, ((size_t)g->n_parts + 1) * sizeof *dies);
  uint32_t v = 0;
  l->end = 0;
  for (uint32_t p = 0; p < g->n_parts; p++) {
    for (; v < g->n_between && g->between[v].first == p; v++) { /* they stand in the order of their parts */
      uint64_t nbytes;
      const uint32_t size = size_class(l->nbytes[v], &nbytes), block = free_blocks[size];
      if (block != NOWHERE) free_blocks[size] = next[block];
      l->place[v] = block != NOWHERE ? l->place[block] : l->end;
      if (block == NOWHERE) l->end += nbytes;
      next[v] = dies[g->between[v].last];
      dies[g->between[v].last] = v;
    }
    for (uint32_t d = dies[p], then; d != NOWHERE; d = then) {
      uint64_t nbytes;
      const uint32_t size = size_class(l->nbytes[d], &nbytes);
      then = next[d];
      next[d] = free_blocks[size];
      free_blocks[size] = d;
    }
  }
}

static void layout_deinit(layout_t *l) {
  free((void *)(uintptr_t)l->exprs);
  free(l->place);
}

static aot_status_t layout_init(layout_t *l, const exe_t *x, aot_ctx_t *ctx, const graph_t *g,
                                const aot_graph_at_t *at) {
  const size_t n = (size_t)g->n_between + 1, n_parts = (size_t)g->n_parts + 1;
  int64_t *exprs = malloc(((size_t)aoth_exprs_count(x->prog) + 1) * sizeof *exprs);
  uint32_t *lists = malloc((n + n_parts) * sizeof *lists);
  *l = (layout_t){.exprs = exprs, .place = malloc(2 * n * sizeof(uint64_t))};
  const int is_ready = exprs && lists && l->place;
  if (is_ready) {
    l->nbytes = l->place + n;
    aoth_exprs_eval(x->prog, at->symbols, (uint32_t)at->n_symbols, exprs);
    for (uint32_t v = 0; v < g->n_between; v++) l->nbytes[v] = nbytes_of(l, &g->between[v].type);
    place_all(g, l, lists, lists + n_parts);
  }
  free(lists);
  if (is_ready) return AOT_OK;
  layout_deinit(l);
  return no_memory(ctx);
}

/* ---- plan ---- */

static const graph_t *find_graph(const exe_t *x, int32_t kind, uint32_t number) {
  for (uint32_t g = 0; g < x->n_graphs; g++)
    if (x->graphs[g].kind == kind && x->graphs[g].number == number) return &x->graphs[g];
  return NULL;
}

static aot_status_t no_graph(aot_ctx_t *ctx) {
  return aoth_report_error(ctx, AOT_E_RANGE, "run.graph", "the program has no such graph");
}

static aot_graph_at_t part_at(const part_t *p, const aot_graph_at_t *graph) {
  return (aot_graph_at_t){.struct_size = sizeof(aot_graph_at_t),
                          .kind = AOT_GRAPH_PART,
                          .number = p->number,
                          .symbols = graph->symbols,
                          .n_symbols = graph->n_symbols};
}

static uint64_t align(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* The parts' own arenas begin where the values between parts end. */
static aot_status_t plan_parts(const exe_t *x, aot_ctx_t *ctx, const graph_t *g, const aot_graph_at_t *at,
                               aot_exe_plan_t *out) {
  *out = (aot_exe_plan_t){.struct_size = sizeof *out, .alignment = ALIGNMENT};
  for (uint32_t i = 0; i < g->n_parts; i++) {
    const aoth_part_backend_t *b = &x->backends[g->parts[i].backend];
    const aot_graph_at_t part = part_at(&g->parts[i], at);
    aot_exe_plan_t plan = {.struct_size = sizeof plan};
    x->entering(x->self, g->parts[i].backend);
    AOT_TRY(b->exe->plan(b->self, ctx, &part, &plan));
    if (plan.arena.nbytes > out->arena.nbytes) out->arena.nbytes = plan.arena.nbytes;
    if (plan.alignment > out->alignment) out->alignment = plan.alignment;
  }
  return AOT_OK;
}

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *at, aot_exe_plan_t *out) {
  exe_t *x = e->head.self;
  const graph_t *g = find_graph(x, at->kind, at->number);
  layout_t l;
  aot_exe_plan_t full;
  if (!g) return no_graph(ctx);
  AOT_TRY(plan_parts(x, ctx, g, at, &full));
  AOT_TRY(layout_init(&l, x, ctx, g, at));
  full.arena.nbytes += align(l.end, full.alignment);
  layout_deinit(&l);
  if (full.arena.nbytes > x->arena_nbytes) x->arena_nbytes = full.arena.nbytes;
  full.struct_size = out->struct_size;
  memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
  return AOT_OK;
}

/* ---- bind ---- */

static void unbind(const aot_exe_t *e, aot_bound_t *c) {
  const exe_t *x = e->head.self;
  for (uint32_t i = 0; c->calls && i < c->graph->n_parts; i++) {
    const aoth_part_backend_t *b = &x->backends[c->graph->parts[i].backend];
    if (!c->calls[i]) continue;
    x->entering(x->self, c->graph->parts[i].backend);
    b->exe->unbind(b->self, c->calls[i]);
  }
  free(c->calls);
  free(c->tensors);
  free(c->dims);
  free(c);
}

static aot_tensor_t tensor_between(const layout_t *l, const graph_t *g, uint32_t v, uint64_t arena, int64_t *dims) {
  const aot_type_t *t = &g->between[v].type;
  for (int32_t d = 0; d < t->rank; d++) {
    dims[d] = dim(l, t->sizes[d]);
    dims[t->rank + d] = dim(l, t->strides[d]);
  }
  return (aot_tensor_t){.data = (void *)(uintptr_t)(arena + l->place[v]),
                        .nbytes = l->nbytes[v],
                        .dtype = t->dtype,
                        .rank = t->rank,
                        .device = AOT_DEVICE_CPU,
                        .offset = dim(l, t->offset),
                        .sizes = dims,
                        .strides = dims + t->rank};
}

/* One tensor a slot. */
static aot_tensor_t *make_slots(const layout_t *l, const aot_binding_t *b, aot_bound_t *c) {
  const graph_t *g = c->graph;
  const size_t n_ports = (size_t)g->n_inputs + g->n_outputs;
  aot_tensor_t *slots = malloc((n_ports + g->n_between + 1) * sizeof *slots);
  size_t n_dims = 0, at = 0;
  for (uint32_t v = 0; v < g->n_between; v++) n_dims += 2 * (size_t)g->between[v].type.rank;
  c->dims = malloc((n_dims + 1) * sizeof *c->dims);
  if (!slots || !c->dims) {
    free(slots);
    return NULL;
  }
  if (g->n_inputs) memcpy(slots, b->inputs, g->n_inputs * sizeof *slots);
  if (g->n_outputs) memcpy(slots + g->n_inputs, b->outputs, g->n_outputs * sizeof *slots);
  for (uint32_t v = 0; v < g->n_between; v++) {
    slots[n_ports + v] = tensor_between(l, g, v, b->arena.address, c->dims + at);
    at += 2 * (size_t)g->between[v].type.rank;
  }
  return slots;
}

static aot_status_t bind_part(const exe_t *x, aot_ctx_t *ctx, const aot_binding_t *whole, aot_buffer_t arena,
                              aot_bound_t *c, uint32_t i, const aot_tensor_t *tensors) {
  const part_t *p = &c->graph->parts[i];
  const aoth_part_backend_t *b = &x->backends[p->backend];
  const aot_binding_t binding = {.struct_size = sizeof binding,
                                 .graph = part_at(p, &whole->graph),
                                 .inputs = tensors,
                                 .outputs = tensors + p->n_inputs,
                                 .n_inputs = p->n_inputs,
                                 .n_outputs = p->n_outputs,
                                 .arena = arena};
  for (uint32_t k = 0; k < p->n_outputs; k++)
    if (binding.outputs[k].rank == AOT_RANK_OPEN) c->open_part = p;
  if (c->open_part == p && !(b->exe->head.flags & AOT_EXE_OPEN_OUTPUTS))
    return aoth_report_error(ctx, AOT_E_UNIMPLEMENTED, "run.open",
                             "backend %s cannot return results whose size depends on the data", b->name);
  x->entering(x->self, p->backend);
  return b->exe->bind(b->self, ctx, &binding, &c->calls[i]);
}

static aot_status_t bind_parts(const exe_t *x, aot_ctx_t *ctx, const aot_binding_t *b, aot_bound_t *c) {
  const graph_t *g = c->graph;
  aot_exe_plan_t plan_of_parts;
  layout_t l;
  size_t n_tensors = 0, at = 0;
  AOT_TRY(plan_parts(x, ctx, g, &b->graph, &plan_of_parts));
  AOT_TRY(layout_init(&l, x, ctx, g, &b->graph));
  const uint64_t skip = align(l.end, plan_of_parts.alignment);
  for (uint32_t i = 0; i < g->n_parts; i++) n_tensors += (size_t)g->parts[i].n_inputs + g->parts[i].n_outputs;
  aot_tensor_t *slots = make_slots(&l, b, c);
  c->tensors = malloc((n_tensors + 1) * sizeof *c->tensors);
  c->calls = calloc((size_t)g->n_parts + 1, sizeof(void *));
  aot_status_t status = slots && c->tensors && c->calls ? AOT_OK : no_memory(ctx);
  const aot_buffer_t arena = {b->arena.address + skip, b->arena.nbytes > skip ? b->arena.nbytes - skip : 0};
  for (uint32_t i = 0; i < g->n_parts && status == AOT_OK; i++) {
    const uint32_t n = g->parts[i].n_inputs + g->parts[i].n_outputs;
    for (uint32_t k = 0; k < n; k++) c->tensors[at + k] = slots[g->parts[i].slots[k]];
    status = bind_part(x, ctx, b, arena, c, i, c->tensors + at);
    at += n;
  }
  free(slots);
  layout_deinit(&l);
  return status;
}

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *b, aot_bound_t **out) {
  const exe_t *x = e->head.self;
  const graph_t *g = find_graph(x, b->graph.kind, b->graph.number);
  if (!g) return no_graph(ctx);
  aot_bound_t *c = calloc(1, sizeof *c);
  if (!c) return no_memory(ctx);
  c->graph = g;
  const aot_status_t status = bind_parts(x, ctx, b, c);
  if (status == AOT_OK) *out = c;
  else unbind(e, c);
  return status;
}

/* ---- submit ---- */

/* Nothing is in the graph. */
static aot_status_t submit_nothing(const exe_t *x, aot_ctx_t *ctx, const aot_submission_t *s) {
  for (uint64_t i = 0; i < s->n_waits; i++) AOT_TRY(x->device->wait(x->device, ctx, s->queue, s->waits[i]));
  for (uint64_t i = 0; i < s->n_signals; i++) AOT_TRY(x->device->signal(x->device, ctx, s->queue, s->signals[i]));
  return AOT_OK;
}

static aot_status_t allocate(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols, uint64_t n_symbols,
                             aot_tensor_t *out) {
  const aot_bound_t *c = sink->head.self;
  const part_t *p = c->open_part;
  if (output >= p->n_outputs) return AOT_E_RANGE;
  return c->open->allocate(c->open, p->slots[p->n_inputs + output] - c->graph->n_inputs, symbols, n_symbols, out);
}

/* The first part waits, the last one signals. When a part fails, those behind it on the queue are left out. */
static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *c, const aot_submission_t *whole) {
  const exe_t *x = e->head.self;
  const graph_t *g = c->graph;
  if (!g->n_parts) return submit_nothing(x, ctx, whole);
  c->open = whole->open;
  c->sink = (aot_output_sink_t){.head = {.struct_size = sizeof c->sink, .self = c}, .allocate = allocate};
  for (uint32_t i = 0; i < g->n_parts; i++) {
    const aoth_part_backend_t *b = &x->backends[g->parts[i].backend];
    aot_submission_t s = *whole;
    if (i) s.n_waits = 0;
    if (i + 1 < g->n_parts) s.n_signals = 0;
    s.open = whole->open && c->open_part == &g->parts[i] ? &c->sink : NULL;
    x->entering(x->self, g->parts[i].backend);
    AOT_TRY(b->exe->submit(b->self, ctx, c->calls[i], &s));
  }
  return AOT_OK;
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

const aot_exe_t *aoth_parts_exe_create(aot_ctx_t *ctx, aot_prog_t *prog, const aot_device_t *device,
                                       const aoth_part_backend_t *backends, uint32_t n_backends, void *self,
                                       void (*entering)(void *self, uint32_t backend)) {
  exe_t *x = calloc(1, sizeof *x);
  if (!x || !(x->arena = aoth_arena_create())) {
    free(x);
    no_memory(ctx);
    return NULL;
  }
  x->prog = prog;
  x->device = device;
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
  reading_t r = {.x = x, .ctx = ctx};
  if (read_program(&r) == AOT_OK) return &x->table;
  destroy(&x->table.head);
  return NULL;
}
