/* cond: both branches become steps of the schedule, with a jump over the one that is not accepted.
 *
 *     jump to B unless pred | steps of A, results copied | jump to end | B: steps of B, results copied | end:
 *
 * Operands are tensors of the caller and cost nothing. Lifetimes stay intervals over the list of steps, so the arena
 * plan needs to know nothing of jumps. */
#include "region_steps.h"

#include <aot/graph.h>

typedef struct cond {
  lw_value_t *operands;
  lw_tensor_t *results, *outputs; /* outputs: where a branch leaves them */
  uint32_t n_operands, n;
} cond_t;

static aot_status_t lower_branch(lw_build_t *b, const aot_snap_arg_t *graph, const cond_t *c) {
  AOT_TRY(lw_lower_region(b, (uint32_t)graph->i, c->operands, c->n_operands, c->outputs, c->n));
  for (uint32_t i = 0; i < c->n; i++) AOT_TRY(lw_copy_result(b, i, &c->results[i], &c->outputs[i]));
  return AOT_OK;
}

/* cond(pred, true_graph, false_graph, operands). A predicate that is known leaves one branch. */
static aot_status_t lower_cond(lw_build_t *b) {
  const aot_snap_arg_t *yes = lw_arg(b, 1), *no = lw_arg(b, 2);
  const lw_tensor_t *pred = lw_arg_tensor(b, 0);
  cond_t c = {.n = b->node->n_results};
  lw_jump_t *over_yes, *over_no;
  c.results = lw_pool_alloc(b->pool, (2 * (uint64_t)c.n + 1) * sizeof *c.results);
  if (!c.results) return lw_no_memory(b->error, "for the results of a cond");
  c.outputs = c.results + c.n;
  if (yes->kind != AOT_ARG_GRAPH || no->kind != AOT_ARG_GRAPH || (pred && lw_numel(pred) != 1))
    return lw_fail(b->error, AOT_E_DATA_LOSS, "bad-type", "a cond takes a predicate of one element and two graphs");
  AOT_TRY(lw_region_operands(b, 3, &c.operands, &c.n_operands));
  for (uint32_t r = 0; r < c.n; r++) AOT_TRY(lw_result(b, r, &c.results[r]));
  if (!pred) return lower_branch(b, lw_arg_int(b, 0, 0) ? yes : no, &c);
  AOT_TRY(lw_add_jump(b, pred, &over_yes));
  AOT_TRY(lower_branch(b, yes, &c));
  AOT_TRY(lw_add_jump(b, NULL, &over_no));
  over_yes->target = b->out->n_steps;
  AOT_TRY(lower_branch(b, no, &c));
  over_no->target = b->out->n_steps;
  return AOT_OK;
}

static const lw_lowering_t rows[] = {{"higher_order.cond", lower_cond}};
const lw_lowering_table_t lw_lowerings_branches = LW_TABLE(rows);
