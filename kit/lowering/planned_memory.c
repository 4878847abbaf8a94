#include "planned_memory.h"

#include "kit/graph/snap_births.h"
#include "kit/graph/snap_graph.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

typedef struct planner {
  const aot_snapshot_t *s;
  const int64_t *symbols;
  custom_program_t custom;
  lw_machine_t machine;
  mr_rows_t *rows;
  mr_graph_t graphs[2]; /* of the axis */
  uint32_t *written[2]; /* by output port of each */
  uint32_t n_graphs;
  uint8_t *part; /* by node id: MR_FORWARD .. */
  uint64_t arena_nbytes;
  lw_error_t *error;
} planner_t;

/* ---- one graph ---- */

/* Steps of the schedule, or one where there is none: the axis has room for what the boundary holds. */
static void add_steps(planner_t *p, const lw_schedule_t *schedule, uint32_t graph, mr_graph_t *out) {
  out->begin = p->rows->n_steps;
  int part =
      AOT_SNAP_ROWS(p->s, aot_snap_graph_t, graphs)[out->graph].kind == AOT_GRAPH_BACKWARD ? MR_BACKWARD : MR_FORWARD;
  for (uint32_t i = 0; i < schedule->n_steps; i++) { /* a step without a node, a copy, belongs to the part before it */
    const uint32_t node = schedule->steps[i].node;
    if (node != AOT_NO_ID) part = p->part[node];
    mr_step(p->rows, graph, node, part);
  }
  if (!schedule->n_steps) mr_step(p->rows, graph, AOT_NO_ID, part);
  out->end = p->rows->n_steps;
}

/* is_given: another storage takes over its memory in its last step. */
static void add_storage(planner_t *p, const lw_storage_t *s, int is_given, const mr_graph_t *g, uint32_t *written) {
  if (s->first == LW_NONE) return;
  const uint32_t first = (uint32_t)g->begin + s->first;
  if (s->kind == LW_OUTPUT) written[s->index] = first;
  if (s->kind != LW_ARENA) return;
  const aot_memory_buffer_t row = {
      .kind = s->value == AOT_NO_ID ? AOT_MEMORY_SCRATCH : AOT_MEMORY_TEMPORARY,
      .first = first,
      .last = (uint32_t)g->begin + s->last - (uint32_t)is_given,
      .value = {s->value},
      .nbytes = mr_padded(s->nbytes),
      .place = s->at,
  };
  AOT_ASSERT(row.first <= row.last && row.last < p->rows->n_steps);
  mr_buffer(p->rows, &row);
}

static aot_status_t add_graph(planner_t *p, uint32_t row, mr_graph_t *out, uint32_t **written) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(p->s, aot_snap_graph_t, graphs) + row;
  lw_schedule_t schedule;
  uint8_t *is_given = NULL; /* by storage */
  aot_status_t status = lw_schedule_init(&schedule, p->s, row, p->symbols, p->s->symbols.count, &p->machine, p->error);
  if (status == AOT_OK && out) {
    *written = malloc(((size_t)g->n_outputs + 1) * sizeof **written);
    is_given = calloc((size_t)schedule.n_storages + 1, 1);
    if (!*written || !is_given) status = lw_no_memory(p->error, "for the plan");
    for (uint32_t i = 0; i < schedule.n_storages && status == AOT_OK; i++)
      if (schedule.storages[i].taken != LW_NONE) is_given[schedule.storages[i].taken] = 1;
  }
  if (status == AOT_OK && out) {
    out->graph = row;
    add_steps(p, &schedule, g->id, out);
    out->written = *written;
    for (uint32_t i = 0; i < g->n_outputs; i++) (*written)[i] = (uint32_t)out->begin;
    for (uint32_t i = 0; i < schedule.n_storages; i++)
      add_storage(p, &schedule.storages[i], is_given[i], out, *written);
  }
  if (schedule.arena_nbytes > p->arena_nbytes) p->arena_nbytes = schedule.arena_nbytes;
  free(is_given);
  lw_schedule_deinit(&schedule);
  return status;
}

/* ---- the program ---- */

/* Sizes and values that only a run reports cannot be planned for. */
static aot_status_t check_births(const planner_t *p) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(p->s, aot_snap_node_t, nodes);
  uint8_t *births = calloc((size_t)p->s->nodes.count + 1, 1);
  aot_status_t status = births && sn_births(p->s, births) == 0 ? AOT_OK : lw_no_memory(p->error, "for the plan");
  for (uint32_t i = 1; i < p->s->nodes.count && status == AOT_OK; i++) {
    if (!births[i]) continue;
    p->error->node = nodes[i].id;
    status = lw_fail(p->error, AOT_E_UNIMPLEMENTED, "no-plan",
                     "the size or value of a result depends on the data, so that memory cannot be told before the run");
  }
  free(births);
  return status;
}

static aot_status_t add_boundary(planner_t *p) {
  int64_t *exprs = malloc(((size_t)p->s->exprs.count + 1) * sizeof *exprs);
  sn_error_t wrong;
  if (!exprs) return lw_no_memory(p->error, "for the plan");
  aot_status_t status = sn_exprs_eval(p->s, p->symbols, p->s->symbols.count, exprs, &wrong);
  if (status == AOT_OK) status = mr_boundary(p->rows, p->s, exprs, p->graphs, p->n_graphs);
  free(exprs);
  if (status == AOT_E_RANGE)
    return lw_fail(p->error, status, "bad-size", "a tensor of the boundary has a size that cannot be");
  return status == AOT_OK ? AOT_OK : lw_no_memory(p->error, "for the plan");
}

static aot_status_t find_parts(planner_t *p) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(p->s, aot_snap_node_t, nodes);
  uint32_t most = 0;
  for (uint32_t i = 1; i < p->s->nodes.count; i++)
    if (nodes[i].id > most) most = nodes[i].id;
  p->part = calloc((size_t)most + 1, 1);
  if (!p->part) return lw_no_memory(p->error, "for the plan");
  for (uint32_t i = 1; i < p->s->nodes.count; i++) p->part[nodes[i].id] = (uint8_t)mr_part_of(p->s, i);
  return AOT_OK;
}

static aot_status_t plan(planner_t *p) {
  const uint32_t update = sn_graph_of_kind(p->s, AOT_GRAPH_UPDATE);
  uint32_t graphs[2];
  if (sn_graph_of_kind(p->s, AOT_GRAPH_JOINT) != AOT_NO_ID)
    return lw_fail(p->error, AOT_E_PRECONDITION, "no-plan", "the program is joint: partition it first");
  p->n_graphs = mr_graphs_of(p->s, graphs);
  if (!p->n_graphs) return lw_fail(p->error, AOT_E_PRECONDITION, "no-plan", "there is no forward graph");
  AOT_TRY(check_births(p));
  AOT_TRY(find_parts(p));
  for (uint32_t k = 0; k < p->n_graphs; k++) AOT_TRY(add_graph(p, graphs[k], &p->graphs[k], &p->written[k]));
  if (update != AOT_NO_ID) AOT_TRY(add_graph(p, update, NULL, NULL));
  AOT_TRY(add_boundary(p));
  return mr_finish(p->rows, p->arena_nbytes) == AOT_OK ? AOT_OK : lw_no_memory(p->error, "for the plan");
}

/* One value a symbol: the caller's, or the hints. */
static aot_status_t values_of(const aot_snapshot_t *s, const int64_t *given, uint64_t n, int64_t **out, lw_error_t *e) {
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols);
  if (n && n < s->symbols.count)
    return lw_fail(e, AOT_E_INVALID, "bad-symbols", "%llu symbol values for %u symbols", (unsigned long long)n,
                   s->symbols.count);
  *out = malloc(((size_t)s->symbols.count + 1) * sizeof **out);
  if (!*out) return lw_no_memory(e, "for the plan");
  for (uint32_t i = 0; i < s->symbols.count; i++) (*out)[i] = n ? given[i] : symbols[i].hint;
  return AOT_OK;
}

aot_status_t lw_tell_memory(const aot_snapshot_t *s, const custom_world_t *world, const lw_machine_t *machine,
                            const int64_t *symbols, uint64_t n_symbols, mr_rows_t *out, lw_error_t *error) {
  planner_t p = {.s = s, .machine = *machine, .rows = out, .error = error};
  int64_t *values = NULL;
  custom_error_t why;
  error->node = AOT_NO_ID;
  p.machine.custom = &p.custom;
  mr_clear(out);
  aot_status_t status = values_of(s, symbols, n_symbols, &values, error);
  if (status == AOT_OK && (status = custom_prepare(world, s, &p.custom, &why)) != AOT_OK) {
    error->node = why.node;
    lw_fail(error, status, "no-kernel", "%s", why.text);
  }
  p.symbols = values;
  if (status == AOT_OK) status = plan(&p);
  custom_program_deinit(&p.custom);
  free(values);
  free(p.written[0]);
  free(p.written[1]);
  free(p.part);
  return status;
}
