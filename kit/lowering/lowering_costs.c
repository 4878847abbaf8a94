#include "lowering_costs.h"

#include "group_loop.h"
#include "transaction.h"
#include "schedule_items.h"
#include "kit/model/plan.h"
#include <aot/assert.h>
#include <aot/opset.h>
#include <stdlib.h>
#include <string.h>

/* ---- one node ---- */

/* The operand in whose storage the result lies, from 1; 0: it has its own. */
static uint32_t view_of(const lw_build_t *b, uint32_t storage) {
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + b->node->operand_begin;
  for (uint32_t k = 0; k < b->node->n_operands; k++)
    if (operands[k] != AOT_NO_ID && lw_value(b, operands[k])->t.storage == storage) return k + 1;
  return 0;
}

static int is_result(const lw_build_t *b, uint32_t storage) {
  for (uint32_t r = 0; r < b->node->n_results; r++)
    if (lw_type(b, r)->storage == storage) return 1;
  return 0;
}

/* The arena of the storages from `begin` on that are no results. */
static aot_status_t workspace(const lw_build_t *b, uint32_t begin, uint32_t first_step, uint64_t *out) {
  const lw_schedule_t *s = b->out;
  AOT_ASSERT(begin <= s->n_storages && first_step <= s->n_steps);
  mp_buffer_t few[8], *buffers = few;
  uint32_t n = 0;
  if (s->n_storages - begin > 8) buffers = malloc((s->n_storages - begin) * sizeof *buffers);
  if (!buffers) return AOT_E_EXHAUSTED;
  for (uint32_t i = begin; i < s->n_storages; i++)
    if (s->storages[i].first != LW_NONE && !is_result(b, i)) {
      AOT_ASSERT(s->storages[i].first >= first_step && s->storages[i].last < s->n_steps); /* the node's own steps */
      buffers[n++] =
          (mp_buffer_t){s->storages[i].nbytes, s->storages[i].first - first_step, s->storages[i].last - first_step, 0};
    }
  *out = 0;
  const int failed = n && mp_plan(buffers, n, LW_ALIGN, out) != 0;
  if (buffers != few) free(buffers);
  return failed ? AOT_E_EXHAUSTED : AOT_OK;
}

/* Results in memory of their own, whatever makes them. */
static aot_status_t bind_results(lw_build_t *b) {
  for (uint32_t r = 0; r < b->node->n_results; r++) {
    lw_tensor_t t;
    AOT_TRY(lw_result(b, r, &t));
  }
  return AOT_OK;
}

/* A loop of one node, which only rows need for what they keep; a node that no loop holds by its lowering. */
static aot_status_t lower_alone(lw_build_t *b, uint32_t node, uint32_t space) {
  if (space == LW_NONE) return lw_lower_node(b);
  if (!lw_op(b)->rows) return bind_results(b);
  const aot_status_t status = lw_lower_group(b, &node, NULL, 1);
  return status == LW_DECLINED ? lw_lower_node(b) : status;
}

static aot_status_t add_node(lw_build_t *b, uint32_t i, uint32_t space, nc_costs_t *out) {
  const uint32_t row = b->graph->node_begin + i, n_storages = b->out->n_storages, n_steps = b->out->n_steps;
  b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + row;
  const aot_snap_node_t *node = b->node;
  lw_transaction_t t;
  lw_begin(b, &t);
  const aot_status_t status = lw_end(b, &t, lower_alone(b, i, space));
  b->node = node;
  /* the target has no kernel for it in this form: its known cost stays */
  if (status != AOT_OK) return status == AOT_E_EXHAUSTED ? status : bind_results(b);
  for (uint32_t r = 0; r < b->node->n_results; r++) {
    const uint32_t storage = lw_type(b, r)->storage;
    out->view_of[b->node->result_begin + r] = storage < n_storages ? view_of(b, storage) : 0;
  }
  return workspace(b, n_storages, n_steps, &out->workspace[row]);
}

/* ---- one graph ---- */

static aot_status_t add_nodes(lw_build_t *b, int has_loops, nc_costs_t *out) {
  const uint32_t n = b->graph->n_nodes;
  uint32_t *space = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *space);
  b->regions = lw_pool_alloc(b->pool, (uint64_t)n + 1); /* none: a sum of them is no node that runs alone */
  if (!space || !b->regions) return AOT_E_EXHAUSTED;
  AOT_TRY(lw_find_ops(b));
  AOT_TRY(lw_open_graph(b));
  AOT_TRY(lw_bind_inputs(b));
  AOT_TRY(lw_find_spaces(b, space));
  for (uint32_t i = 0; i < n; i++) {
    if (has_loops && space[i] != LW_NONE) out->fusion[b->graph->node_begin + i] = space[i] + 1;
    AOT_TRY(add_node(b, i, space[i], out));
  }
  return AOT_OK;
}

static aot_status_t add_graph(const aot_snapshot_t *s, uint32_t row, int64_t *dims, const lw_machine_t *machine,
                              int has_loops, nc_costs_t *out, lw_error_t *error) {
  lw_schedule_t schedule = {0};
  lw_build_t b = {
      .out = &schedule,
      .s = s,
      .graph = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + row,
      .exprs = dims,
      .machine = machine,
      .pool = &schedule.pool,
      .error = error,
  };
  const aot_status_t status = add_nodes(&b, has_loops, out);
  free(b.values);
  lw_schedule_deinit(&schedule);
  return status;
}

aot_status_t lw_lowering_costs(const aot_snapshot_t *s, const int64_t *dims, const lw_machine_t *machine, int has_loops,
                               nc_costs_t *out, lw_error_t *error) {
  int64_t *known = malloc(((size_t)s->exprs.count + 1) * sizeof *known);
  aot_status_t status = known ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t e = 0; e < s->exprs.count && known; e++) known[e] = dims[e] == SN_NO_VALUE ? 0 : dims[e];
  for (uint32_t row = 1; row < s->graphs.count && status == AOT_OK; row++)
    status = add_graph(s, row, known, machine, has_loops, out, error);
  free(known);
  if (status == AOT_E_EXHAUSTED) lw_fail(error, status, "no-memory", "no memory for the costs");
  return status;
}
