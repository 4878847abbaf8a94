/* The regions that push a frame: a body that is called, a branch of cond. Loops: ref_loop.c. */
#include "ref_state.h"
#include <aot/graph.h>
#include <stdlib.h>

static aot_status_t predicate(rf_state_t *st, rf_frame_t *f, uint32_t node, int *out) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  const aot_snap_arg_t *arg = AOT_SNAP_ROWS(st->p->s, aot_snap_arg_t, args) + n->arg_begin;
  if (n->n_args == 0) return rf_fail(st, AOT_E_INVALID, node, "the condition is absent");
  if (arg->kind == AOT_ARG_VALUE) return rf_truth(st, rf_slot_of(st, f, (uint32_t)arg->i), node, out);
  if (arg->kind != AOT_ARG_BOOL && arg->kind != AOT_ARG_INT) return rf_truth(st, NULL, node, out);
  *out = sn_dim(arg->i, st->dims) != 0;
  return AOT_OK;
}

/* Push the region's frame with its operands in the input slots. branch: of a rehearsed cond, whose predicate nothing
 * knows. */
static aot_status_t enter(rf_state_t *st, uint32_t node, uint32_t branch) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  const aot_snap_graph_t *row;
  rf_frame_t *caller = &st->frames[st->depth - 1], *f;
  uint32_t graphs[2], after, n_graphs = rf_region_graphs(s, n, graphs, 2, &after), wanted, have, *operands;
  int64_t *numbers;
  int is_cond = st->p->regions[n->op] == RF_COND, condition = 1;
  aot_status_t status = AOT_OK;
  wanted = is_cond ? 2 : 1;
  if (n_graphs != wanted)
    return rf_fail(st, AOT_E_INVALID, node, "the region operator names %u graphs, not %u", n_graphs, wanted);
  if (is_cond && st->rehearsal) condition = branch == 0;
  else if (is_cond) AOT_TRY(predicate(st, caller, node, &condition));
  row = &AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[graphs[condition ? 0 : 1]];
  have = rf_region_operands(s, n, after, NULL, NULL);
  if (have != row->n_inputs)
    return rf_fail(st, AOT_E_INVALID, node, "the region takes %u operands, %u are given", row->n_inputs, have);
  if (n->n_results != row->n_outputs)
    return rf_fail(st, AOT_E_INVALID, node, "the region gives %u results, %u are declared", row->n_outputs,
                   n->n_results);
  numbers = calloc((size_t)have + 1, sizeof *numbers + sizeof *operands);
  if (!numbers) return rf_fail(st, AOT_E_EXHAUSTED, node, "no memory for %u operands", have);
  operands = (uint32_t *)(void *)(numbers + have);
  rf_region_operands(s, n, after, operands, numbers);
  status = rf_push(st, graphs[condition ? 0 : 1], node);
  if (status == AOT_OK) st->frames[st->depth - 1].branch = branch;
  for (uint32_t i = 0; i < have && status == AOT_OK; i++) {
    uint32_t v = ports[row->input_begin + i].value;
    f = &st->frames[st->depth - 1];
    if (v == AOT_NO_ID || rf_slot_of(st, f, v)->uses == 0) continue;
    if (operands[i] == AOT_NO_ID) {
      status = rf_number_slot(st, node, sn_dim(numbers[i], st->dims), rf_slot_of(st, f, v));
    } else {
      rf_slot_t *slot = rf_slot_of(st, caller, operands[i]);
      if (slot->storage) rf_slot_share(rf_slot_of(st, f, v), &slot->t, slot->storage);
    }
  }
  free(numbers);
  return status;
}

aot_status_t rf_enter(rf_state_t *st, uint32_t node) {
  const int kind = st->p->regions[AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node].op];
  return kind == RF_SCAN || kind == RF_WHILE ? rf_loop_enter(st, node) : enter(st, node, 0);
}

/* The region's outputs become the results of the operator that called it. */
aot_status_t rf_leave(rf_state_t *st) {
  const aot_snapshot_t *s = st->p->s;
  rf_frame_t *f = &st->frames[st->depth - 1], *caller = &st->frames[st->depth - 2];
  const aot_snap_graph_t *row = rf_graph_row(st, f);
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + row->output_begin;
  uint32_t node = f->caller;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  if (caller->loop) return rf_loop_leave(st, caller->loop);
  if (st->rehearsal && st->p->regions[n->op] == RF_COND && f->branch == 0) { /* the other one, too, and its results */
    rf_pop(st);
    return enter(st, node, 1);
  }
  for (uint32_t o = 0; o < row->n_outputs; o++) {
    rf_slot_t *from = ports[o].value == AOT_NO_ID ? NULL : rf_slot_of(st, f, ports[o].value);
    if (from && from->storage) rf_slot_share(rf_slot_of(st, caller, n->result_begin + o), &from->t, from->storage);
  }
  rf_pop(st);
  rf_finish_node(st, caller, node);
  return AOT_OK;
}
