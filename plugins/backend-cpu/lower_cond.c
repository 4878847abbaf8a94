/* cond: both branches become steps of the schedule, with a jump over the one that is not taken.
 *
 *     jump to B unless pred | steps of A, results copied | jump to end | B: steps of B, results copied | end:
 *
 * Operands are tensors of the caller and cost nothing. Lifetimes stay intervals over the list of steps, so the arena plan needs to
 * know nothing of jumps. Branches in branches nest by calls, at most MAX_DEPTH deep. */
#include "lower.h"

#include <aot/graph.h>
#include <stdlib.h>

enum { MAX_DEPTH = 16, MAX_BRANCHES = 1 << 16 /* a damaged artifact may name itself over and over */ };

typedef struct jump {
  bc_ref_t pred;   /* BC_NONE: always */
  rk_tensor value; /* of pred; data is set when run */
  uint32_t target; /* step */
} jump_t;

static int is_true(const rk_tensor *t) {
  uint8_t bit = 0;
  rk_tensor one = *t; /* its shape, as a bool */
  one.data = &bit;
  one.nbytes = 1;
  one.dtype = AOT_BOOL;
  one.offset = 0;
  for (int32_t d = 0; d < one.rank; d++) one.strides[d] = 0;
  rk_copy(&one, t);
  return bit != 0;
}

static aot_status_t run_jump(const bc_frame_t *f, void *payload) {
  jump_t *p = payload;
  if (p->pred.storage != BC_NONE) {
    p->value.data = f->base[p->pred.storage];
    if (is_true(&p->value)) return AOT_OK;
  }
  *f->next = p->target;
  return AOT_OK;
}

static aot_status_t add_jump(bc_build_t *b, const bc_tensor_t *pred, jump_t **out) {
  jump_t *p;
  BC_STEP(b, run_jump, p);
  p->pred = bc_use(b, pred);
  if (pred) p->value = bc_rk_tensor(b, pred);
  *out = p;
  return AOT_OK;
}

/* ---- a branch ---- */

static aot_status_t misfit(bc_build_t *b, const char *what, uint32_t i) {
  return bc_fail(b->error, AOT_E_DATA_LOSS, "bad-type", "%s %u of a branch is not what its cond has", what, i);
}

/* Inputs of the branch are operands of the node, as they lie. */
static aot_status_t bind_operands(bc_build_t *b, const bc_value_t *operands, uint32_t n) {
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  if (b->graph->n_inputs != n) return misfit(b, "the number of inputs,", b->graph->n_inputs);
  for (uint32_t i = 0; i < n; i++) {
    if (inputs[i].value == AOT_NO_ID) continue;
    bc_value_t *v = bc_value(b, inputs[i].value);
    if (v->kind != operands[i].kind) return misfit(b, "input", i);
    if (v->t.dtype && (v->t.dtype != operands[i].t.dtype || !bc_same_sizes(&v->t, &operands[i].t)))
      return misfit(b, "input", i);
    *v = operands[i];
  }
  return AOT_OK;
}

static aot_status_t copy_results(bc_build_t *b, const bc_tensor_t *results, uint32_t n) {
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  if (b->graph->n_outputs != n) return misfit(b, "the number of outputs,", b->graph->n_outputs);
  b->node = NULL;
  for (uint32_t i = 0; i < n; i++) {
    if (!results[i].dtype) continue;
    const bc_tensor_t *t = outputs[i].value == AOT_NO_ID ? NULL : &bc_value(b, outputs[i].value)->t;
    if (!t || t->dtype != results[i].dtype || !bc_same_sizes(t, &results[i])) return misfit(b, "output", i);
    if (bc_numel(t) > 0 && t->storage == BC_NONE) return misfit(b, "output", i);
    AOT_TRY(bc_copy(b, &results[i], t));
  }
  return AOT_OK;
}

static aot_status_t lower_branch(bc_build_t *b, uint32_t graph, const bc_value_t *operands, uint32_t n_operands,
                                 const bc_tensor_t *results, uint32_t n_results) {
  const bc_build_t outer = *b;
  if (b->depth == MAX_DEPTH || ++b->n_branches > MAX_BRANCHES)
    return bc_fail(b->error, AOT_E_RANGE, "too-deep", "branches nest more than %d deep, or there are more than %d", MAX_DEPTH, MAX_BRANCHES);
  b->graph = AOT_SNAP_ROWS(b->s, aot_snap_graph_t, graphs) + graph;
  b->depth++;
  b->values = NULL;
  aot_status_t status = bc_open_graph(b);
  if (status == AOT_OK) status = bind_operands(b, operands, n_operands);
  if (status == AOT_OK) status = bc_lower_nodes(b);
  if (status == AOT_OK) status = copy_results(b, results, n_results);
  free(b->values);
  const uint32_t n_branches = b->n_branches;
  const aot_snap_node_t *at = status == AOT_OK ? outer.node : b->node; /* of a failure: the innermost */
  *b = outer;
  b->n_branches = n_branches;
  b->node = at ? at : outer.node;
  return status;
}

/* ---- the node ---- */

static aot_status_t read_operands(bc_build_t *b, bc_value_t **out, uint32_t *out_n) {
  const aot_snap_arg_t *list = bc_arg(b, 3);
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  *out_n = list->kind == AOT_ARG_VALUES ? list->n : 0;
  *out = bc_pool_alloc(b->pool, ((uint64_t)*out_n + 1) * sizeof **out);
  if (!*out) return bc_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for the operands of a cond");
  for (uint32_t i = 0; i < *out_n; i++) {
    uint32_t row = rows[(uint64_t)list->i + i];
    if (row != AOT_NO_ID) (*out)[i] = *bc_value(b, row);
  }
  return AOT_OK;
}

/* cond(pred, true_graph, false_graph, operands). A predicate that is known leaves one branch. */
static aot_status_t lower_cond(bc_build_t *b) {
  const aot_snap_arg_t *yes = bc_arg(b, 1), *no = bc_arg(b, 2);
  const bc_tensor_t *pred = bc_arg_tensor(b, 0);
  const uint32_t n = b->node->n_results;
  bc_tensor_t *results = bc_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *results);
  bc_value_t *operands;
  uint32_t n_operands;
  jump_t *over_yes, *over_no;
  if (!results) return bc_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for the results of a cond");
  if (yes->kind != AOT_ARG_GRAPH || no->kind != AOT_ARG_GRAPH || (pred && bc_numel(pred) != 1))
    return bc_fail(b->error, AOT_E_DATA_LOSS, "bad-type", "a cond takes a predicate of one element and two graphs");
  AOT_TRY(read_operands(b, &operands, &n_operands));
  for (uint32_t r = 0; r < n; r++) AOT_TRY(bc_result(b, r, &results[r]));
  if (!pred) return lower_branch(b, (uint32_t)(bc_arg_int(b, 0, 0) ? yes : no)->i, operands, n_operands, results, n);
  AOT_TRY(add_jump(b, pred, &over_yes));
  AOT_TRY(lower_branch(b, (uint32_t)yes->i, operands, n_operands, results, n));
  AOT_TRY(add_jump(b, NULL, &over_no));
  over_yes->target = b->out->n_steps;
  AOT_TRY(lower_branch(b, (uint32_t)no->i, operands, n_operands, results, n));
  over_no->target = b->out->n_steps;
  return AOT_OK;
}

static const bc_lowering_t rows[] = {{"higher_order.cond", lower_cond}};
const bc_lowering_table_t bc_lowerings_cond = BC_TABLE(rows);
