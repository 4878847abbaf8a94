#include <device/hetero/hetero_call.h>

#include <aot/inline.h>
#include <stdlib.h>

static const aoth_part_graph_t *find_graph(const aoth_parts_exe_t *x, int32_t kind, uint32_t number) {
  for (uint32_t g = 0; g < x->parts.n_graphs; g++)
    if (x->parts.graphs[g].kind == kind && x->parts.graphs[g].number == number) return &x->parts.graphs[g];
  return NULL;
}

static aot_status_t no_graph(aot_ctx_t *ctx) {
  return aoth_report_error(ctx, AOT_E_RANGE, "run.graph", "the program has no such graph");
}

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *at, aot_exe_plan_t *out) {
  aoth_parts_exe_t *x = e->head.self;
  const aoth_part_graph_t *g = find_graph(x, at->kind, at->number);
  aoth_parts_layout_t l;
  aoth_parts_arenas_t arenas;
  if (!g) return no_graph(ctx);
  AOT_TRY(aoth_parts_layout_init(&l, ctx, x->prog, g, x->lanes, at));
  const aot_status_t status = aoth_parts_plan_arenas(x, ctx, g, at, &l, &arenas);
  aoth_parts_layout_deinit(&l);
  if (status != AOT_OK) return status;
  uint64_t sum = 0;
  for (uint32_t lane = 0; lane < AOTH_MAX_LANES; lane++) sum += arenas.nbytes[lane];
  if (sum > x->arena_nbytes) x->arena_nbytes = sum;
  const aot_exe_plan_t full = {
      .struct_size = out->struct_size, .arena = {.nbytes = arenas.nbytes[0]}, .alignment = arenas.alignment[0]};
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *whole, aot_bound_t **out) {
  aoth_parts_exe_t *x = e->head.self;
  const aoth_part_graph_t *g = find_graph(x, whole->graph.kind, whole->graph.number);
  return g ? aoth_parts_bind(x, ctx, g, whole, out) : no_graph(ctx);
}

static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *c, const aot_submission_t *whole) {
  (void)e;
  return aoth_parts_submit(c, ctx, whole);
}

static void unbind(const aot_exe_t *e, aot_bound_t *c) {
  (void)e;
  aoth_parts_unbind(c);
}

static aot_status_t stats(const aot_exe_t *e, aot_exe_stats_t *out) {
  const aoth_parts_exe_t *x = e->head.self;
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
  aot_export(out, &sum, sizeof sum);
  return AOT_OK;
}

static void destroy(const aot_table_t *e) {
  aoth_parts_exe_t *x = e->self;
  kit_arena_destroy(x->arena);
  free(x);
}

static aot_status_t read_program(aoth_parts_exe_t *x, aot_ctx_t *ctx) {
  aoth_part_route_t *routes = kit_arena_alloc(x->arena, sizeof(void *), (x->n_backends + 1) * sizeof *routes);
  if (!routes) return aoth_parts_no_memory(ctx);
  AOT_TRY(aoth_parts_memory_init(&x->memory, ctx, x->lanes, aoth_graph_n_leaves(x->prog), x->arena));
  for (uint32_t b = 0; b < x->n_backends; b++)
    routes[b] = (aoth_part_route_t){x->backends[b].name, x->backends[b].lane, x->backends[b].self != NULL};
  return aoth_parts_read(ctx, x->prog, routes, x->n_backends, x->arena, &x->parts);
}

const aot_exe_t *aoth_parts_exe_create(aot_ctx_t *ctx, aot_prog_t *prog, aoth_multi_queue_t *lanes,
                                       const aoth_part_backend_t *backends, uint32_t n_backends, void *self,
                                       void (*entering)(void *self, uint32_t backend)) {
  aoth_parts_exe_t *x = calloc(1, sizeof *x);
  if (!x || !(x->arena = kit_arena_create())) {
    free(x);
    aoth_parts_no_memory(ctx);
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
  const aoth_parts_exe_t *x = exe->head.self;
  return leaf < x->memory.n_leaves ? x->parts.home[leaf] : 0;
}

void aoth_parts_exe_leaf_is(const aot_exe_t *exe, uint32_t leaf, uint64_t version) {
  const aoth_parts_exe_t *x = exe->head.self;
  if (leaf < x->memory.n_leaves) x->memory.versions[leaf] = version;
}
