#include "gpu_planning.h"

#include "kit/lowering/lowering_costs.h"
#include "kit/lowering/planned_memory.h"
#include "gpu_errors.h"
#include "gpu_target.h"
#include <aot/ext/kernels.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>

static const gc_facts_t *facts(gc_planning_t *p) {
  char why[256];
  gc_ordinal_t device = -1;
  if (p->has_facts) return &p->facts;
  const int has_driver = gc_driver_open(&p->driver, why, sizeof why) == 0;
  if (!has_driver || p->driver.device_get(&device, 0) != GC_SUCCESS) device = -1;
  p->facts = gc_facts_of(&p->driver, device);
  p->has_facts = 1;
  return &p->facts;
}

static gc_lowering_t lowering_of(gc_planning_t *p) {
  return (gc_lowering_t){.machine = facts(p)->machine, .align = LW_ALIGN, .choices = p->choices};
}

static lw_machine_t machine_of(gc_lowering_t *l, const custom_program_t *custom) {
  return (lw_machine_t){.target = &gc_gpu, .n_threads = 1, .custom = custom, .self = l};
}

static aot_status_t plan_memory(const aot_ext_memory_t *m, aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols,
                                uint64_t n_symbols, const aot_memory_plan_t **out) {
  gc_planning_t *p = m->head.self;
  gc_lowering_t l = lowering_of(p);
  lw_machine_t machine = machine_of(&l, NULL);
  machine.chunk_nbytes = p->choices->chunk_nbytes;
  machine.adds_residuals = p->choices->adds_residuals;
  const custom_world_t world = {.lookup = aot_ext(&p->host->head, AOT_EXT_KERNEL_LOOKUP), .ctx = ctx, .has_queues = 1};
  const aot_snapshot_t *s = NULL;
  lw_error_t error = {.node = AOT_NO_ID};
  AOT_TRY(p->host->graph->snapshot(prog, &s));
  const aot_status_t status = lw_tell_memory(s, &world, &machine, symbols, n_symbols, &p->rows, &error);
  if (status != AOT_OK) return gc_tell(p->host, ctx, status, &error);
  *out = &p->rows.plan;
  return AOT_OK;
}

static aot_status_t cost_machine(const aot_ext_cost_t *c, aot_ctx_t *ctx, aot_cost_machine_t *out) {
  const aot_cost_machine_t full = {
      .struct_size = sizeof full,
      .max_fused = LW_MAX_GROUP,
      .alignment = LW_ALIGN,
      .launch_nanoseconds = 5000, /* a graph's launch, and the timelines around it */
  };
  (void)c, (void)ctx;
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static aot_status_t cost_nodes(const aot_ext_cost_t *c, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               const int64_t *symbols, uint64_t n_symbols, const aot_cost_sink_t *sink) {
  gc_planning_t *p = c->head.self;
  const custom_program_t no_kernels = {0}; /* kernels of plugins have no work space that is known */
  gc_lowering_t l = lowering_of(p);
  const lw_machine_t machine = machine_of(&l, &no_kernels);
  const aot_snapshot_t *s = NULL;
  int64_t *dims = NULL;
  nc_costs_t costs = {0};
  lw_error_t error = {.node = AOT_NO_ID};
  AOT_TRY(p->host->graph->snapshot(prog, &s));
  lw_fail(&error, AOT_OK, "no-cost", "no cost can be told at these sizes");
  aot_status_t status = nc_dims(s, symbols, n_symbols, &dims);
  if (status == AOT_OK && nc_init(&costs, s, dims) != 0) status = AOT_E_EXHAUSTED;
  if (status == AOT_OK) status = lw_lowering_costs(s, dims, &machine, 1, &costs, &error);
  if (status == AOT_OK) nc_time_nodes(&costs, s, dims, &p->facts.rates);
  if (status == AOT_OK) status = nc_put(&costs, s, graph.id, dims, sink);
  nc_deinit(&costs);
  free(dims);
  return status == AOT_OK ? AOT_OK : gc_tell(p->host, ctx, status, &error);
}

void gc_planning_init(gc_planning_t *p, const aot_host_t *host, const gc_choices_t *choices) {
  p->host = host;
  p->choices = choices;
  p->memory = (aot_ext_memory_t){.head = {.struct_size = sizeof p->memory, .self = p}, .plan = plan_memory};
  p->cost = (aot_ext_cost_t){
      .head = {.struct_size = sizeof p->cost, .self = p}, .machine = cost_machine, .nodes = cost_nodes};
}

void gc_planning_deinit(gc_planning_t *p) { mr_deinit(&p->rows); }
