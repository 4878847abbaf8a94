/* The stack of frames: what a graph that runs holds, its loop included, and what is over when one of its nodes is
 * done. */
#include "ref_state.h"
#include <aot/graph.h>
#include <stdlib.h>
#include <string.h>

aot_status_t rf_push(rf_state_t *st, uint32_t graph, uint32_t caller) {
  const rf_graph_t *g = &st->p->graphs[graph];
  rf_frame_t *f = &st->frames[st->depth];
  if (st->depth == RF_MAX_DEPTH)
    return rf_fail(st, AOT_E_EXHAUSTED, caller, "regions are nested deeper than %d", RF_MAX_DEPTH);
  f->graph = graph;
  f->caller = caller;
  f->loop = NULL;
  f->next = AOT_SNAP_ROWS(st->p->s, aot_snap_graph_t, graphs)[graph].node_begin;
  f->slots = calloc((size_t)g->n_values + 1, sizeof *f->slots);
  if (!f->slots) return rf_fail(st, AOT_E_EXHAUSTED, caller, "no memory for %u values", g->n_values);
  for (uint32_t v = 0; v < g->n_values; v++) {
    f->slots[v].uses = g->uses[v];
    f->slots[v].port = g->port[v];
  }
  st->depth++;
  return AOT_OK;
}

void rf_loop_destroy(rf_state_t *st, rf_loop_t *l) {
  if (!l) return;
  for (uint32_t i = 0; l->carries && i < l->n_carries; i++) rf_slot_clear(st, &l->carries[i]);
  free(l->carries);
  free(l->operands);
  free(l->numbers);
  free(l);
}

void rf_pop(rf_state_t *st) {
  rf_frame_t *f = &st->frames[--st->depth];
  for (uint32_t v = 0; v < st->p->graphs[f->graph].n_values; v++) rf_slot_clear(st, &f->slots[v]);
  rf_loop_destroy(st, f->loop);
  free(f->slots);
  f->loop = NULL;
  f->slots = NULL;
}

/* Operands of a finished node are used up; unused results are freed. */
void rf_finish_node(rf_state_t *st, rf_frame_t *f, uint32_t node) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands);
  for (uint32_t a = 0; a < n->n_args; a++) {
    if (args[a].kind == AOT_ARG_VALUE) rf_slot_used(st, rf_slot_of(st, f, (uint32_t)args[a].i));
    for (uint32_t k = 0; args[a].kind == AOT_ARG_VALUES && k < args[a].n; k++)
      if (operands[(uint64_t)args[a].i + k] != AOT_NO_ID)
        rf_slot_used(st, rf_slot_of(st, f, operands[(uint64_t)args[a].i + k]));
  }
  for (uint32_t r = 0; r < n->n_results; r++) {
    rf_slot_t *slot = rf_slot_of(st, f, n->result_begin + r);
    if (slot->uses == 0) rf_slot_clear(st, slot);
  }
}

/* ---- slots of one number ---- */

aot_status_t rf_truth(rf_state_t *st, const rf_slot_t *slot, uint32_t node, int *out) {
  rk_tensor_t one;
  uint8_t bit = 0;
  if (!slot || !slot->storage || rk_numel(&slot->t) != 1)
    return rf_fail(st, AOT_E_INVALID, node, "the condition is no tensor of one element");
  one = slot->t; /* its shape, converted to bool */
  one.data = &bit;
  one.nbytes = 1;
  one.dtype = AOT_BOOL;
  one.offset = 0;
  memset(one.strides, 0, sizeof one.strides);
  rk_copy(&one, &slot->t);
  *out = bit != 0;
  return AOT_OK;
}

aot_status_t rf_number_slot(rf_state_t *st, uint32_t node, int64_t number, rf_slot_t *slot) {
  rf_storage_t *storage = rf_storage_create(st, sizeof number);
  rk_tensor_t t = {0};
  if (!storage) return rf_fail(st, AOT_E_EXHAUSTED, node, "no memory for a number");
  memcpy(storage->data, &number, sizeof number);
  t.data = storage->data;
  t.nbytes = storage->nbytes;
  t.dtype = AOT_I64;
  rf_slot_share(slot, &t, storage);
  return AOT_OK;
}
