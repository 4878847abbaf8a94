/* A partition that saves all that the forward knows, and has the host make the halves, wrong in one way. */
#include "wrong_units.h"

#include <aot/edit.h>
#include <aot/ext/joint_halves.h>
#include <aot/ext/memory.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

typedef struct wrong_partition {
  aot_partition_t table;
  aot_host_t host;
  fault_t fault;
} wrong_partition_t;

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const wrong_partition_t *w = p->head.self;
  const aot_graph_api_t *g = w->host.graph;
  aot_value_t *saved =
      w->host.alloc(&w->host, ctx, AOT_ARENA_SCRATCH, sizeof *saved, (g->n_values(prog) + 1u) * sizeof *saved);
  aot_cut_t cut = {.struct_size = sizeof cut, .saved = saved};
  int has_tags = 0;
  if (!saved) return AOT_E_EXHAUSTED;
  for (aot_node_t n = g->first(prog, g->graph_find(prog, AOT_GRAPH_JOINT)); n.id != AOT_NO_ID; n = g->next(prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(g->node_info(prog, n, &info));
    has_tags |= (info.flags & AOT_NODE_MUST_SAVE) != 0;
    if (info.flags & AOT_NODE_BACKWARD && !(has_tags && w->fault == FAULT_halves_of_late)) continue;
    if (info.flags & AOT_NODE_MUST_RECOMPUTE && w->fault != FAULT_tags_ignored) continue;
    for (uint32_t i = 0; i < info.n_results; i++) saved[cut.n_saved++].id = info.first_result.id + i;
  }
  return sink->put(sink, &cut);
}

/* The host's halves, and a node of the backward that nothing reads. */
static aot_status_t apply_with_more(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut) {
  const wrong_partition_t *w = p->head.self;
  const aot_graph_api_t *g = w->host.graph;
  const aot_ext_joint_halves_t *halves = aot_ext(&w->host.head, AOT_EXT_JOINT_HALVES);
  aot_node_t made;
  const aot_diag_t without = {
      .struct_size = sizeof without, .code = aot_str("wrong.host"), .message = aot_str("the host makes no halves")};
  if (!halves) {
    w->host.diag(&w->host, ctx, &without);
    return AOT_E_UNIMPLEMENTED;
  }
  AOT_TRY(halves->make(halves, ctx, prog, cut));
  const aot_graph_t backward = g->graph_find(prog, AOT_GRAPH_BACKWARD);
  if (!g->n_inputs(prog, backward)) return AOT_OK;
  const aot_arg_t arg = aot_arg_value(g->inputs(prog, backward)[0].value);
  const aot_node_spec_t spec = {.struct_size = sizeof spec,
                                .flags = AOT_NODE_BACKWARD,
                                .op = g->op_find(prog, aot_str("aten.clone.default")),
                                .args = &arg,
                                .n_args = 1};
  return w->host.edit->node_create(prog, backward, &spec, aot_no_node(), &made);
}

/* Whatever the budget is, one buffer of a thousand bytes. */
static aot_status_t plan(const aot_ext_memory_t *x, aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols,
                         uint64_t n_symbols, const aot_memory_plan_t **out_plan) {
  static const aot_memory_step_t step = {.graph = {1}};
  static const aot_memory_buffer_t buffer = {
      .kind = AOT_MEMORY_TEMPORARY, .first = 0, .last = 0, .nbytes = 1000, .place = UINT64_MAX};
  static const aot_memory_plan_t constant = {.struct_size = sizeof constant,
                                             .n_steps = 1,
                                             .n_buffers = 1,
                                             .steps = &step,
                                             .buffers = &buffer,
                                             .step_stride = sizeof step,
                                             .buffer_stride = sizeof buffer,
                                             .peak_nbytes = 1000};
  (void)x, (void)ctx, (void)prog, (void)symbols, (void)n_symbols;
  *out_plan = &constant;
  return AOT_OK;
}

static const void *get_ext(const aot_table_t *t, const char *id) {
  static const aot_ext_memory_t memory = {.head = {.struct_size = sizeof memory}, .plan = plan};
  const wrong_partition_t *w = t->self;
  return w->fault == FAULT_budget_broken && strcmp(id, AOT_EXT_MEMORY) == 0 ? &memory : NULL;
}

static void destroy(const aot_table_t *t) { free(t->self); }

const aot_table_t *wrong_partition(const aot_host_t *host, fault_t fault) {
  wrong_partition_t *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->host = *host;
  w->fault = fault;
  w->table = (aot_partition_t){
      .head = {.struct_size = sizeof w->table, .self = w, .destroy = destroy, .get_ext = get_ext}, .choose = choose};
  if (fault == FAULT_halves_with_more) w->table.apply = apply_with_more;
  return &w->table.head;
}
