/* Loops: scan and while_loop. A frame of the body for each step (of the condition before it, for while_loop); between
 * two steps the loop itself keeps what is carried. It hangs at the caller's frame, which waits at the loop's node.
 *
 *     scan        carries, slices of xs, more  ->  carries, ys      as often as xs are long; ys are written into their
 *                                                                   results
 *     while_loop  carries, more  ->  carries                        as long as cond(carries, more)
 *
 * A rehearsal goes around twice, so that what two steps hold at once is seen. */
#include "ref_state.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

enum { REHEARSED_STEPS = 2 };

static const aot_snap_node_t *node_of(const rf_state_t *st, uint32_t node) {
  return &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
}

static rf_frame_t *caller_of(rf_state_t *st, const rf_loop_t *l) {
  rf_frame_t *f = &st->frames[st->depth - 1];
  return f->loop == l ? f : f - 1;
}

static void replace(rf_state_t *st, rf_slot_t *to, const rf_slot_t *from) {
  const rf_slot_t old = *to;
  rf_slot_share(to, &from->t, from->storage);
  rf_storage_release(st, old.storage);
}

/* ---- a frame ---- */

static int same_sizes(const rk_tensor_t *a, const rk_tensor_t *b) {
  int same = a->dtype == b->dtype && a->rank == b->rank;
  for (int32_t d = 0; same && d < a->rank; d++) same = a->sizes[d] == b->sizes[d];
  return same;
}

/* Input i of the frame on top. What is carried must have the type that it is declared with, in every step. */
static aot_status_t bind(rf_state_t *st, const rf_loop_t *l, uint32_t i, const rk_tensor_t *t, rf_storage_t *storage) {
  rf_frame_t *f = &st->frames[st->depth - 1];
  const uint32_t v = AOT_SNAP_ROWS(st->p->s, aot_snap_port_t, ports)[rf_graph_row(st, f)->input_begin + i].value;
  rk_tensor_t declared;
  if (v == AOT_NO_ID || rf_slot_of(st, f, v)->uses == 0 || !storage) return AOT_OK;
  AOT_TRY(rf_declared(st, &AOT_SNAP_ROWS(st->p->s, aot_snap_value_t, values)[v], l->node, &declared, NULL));
  if (!same_sizes(&declared, t))
    return rf_fail(st, AOT_E_INVALID, l->node,
                   "input %u of the body has another dtype or shape in step %lld than it is declared with", i,
                   (long long)l->step);
  rf_slot_share(rf_slot_of(st, f, v), t, storage);
  return AOT_OK;
}

static rk_tensor_t slice_of(const rk_tensor_t *t, int64_t step) {
  rk_tensor_t s = *t;
  s.rank--;
  s.offset += step * t->strides[0];
  memmove(s.sizes, s.sizes + 1, (size_t)s.rank * sizeof *s.sizes);
  memmove(s.strides, s.strides + 1, (size_t)s.rank * sizeof *s.strides);
  return s;
}

static aot_status_t bind_operand(rf_state_t *st, const rf_loop_t *l, uint32_t i) {
  rf_frame_t *f = &st->frames[st->depth - 1];
  const uint32_t v = AOT_SNAP_ROWS(st->p->s, aot_snap_port_t, ports)[rf_graph_row(st, f)->input_begin + i].value;
  if (l->operands[i] == AOT_NO_ID)
    return v == AOT_NO_ID || rf_slot_of(st, f, v)->uses == 0
               ? AOT_OK
               : rf_number_slot(st, l->node, sn_dim(l->numbers[i], st->dims), rf_slot_of(st, f, v));
  const rf_slot_t *slot = rf_slot_of(st, caller_of(st, l), l->operands[i]);
  if (i < l->n_carries + l->n_xs) {
    const rk_tensor_t s = slice_of(&slot->t, l->step);
    return bind(st, l, i, &s, slot->storage);
  }
  return bind(st, l, i, &slot->t, slot->storage);
}

static aot_status_t run(rf_state_t *st, rf_loop_t *l, uint32_t graph) {
  AOT_TRY(rf_push(st, graph, l->node));
  for (uint32_t i = 0; i < l->n_carries; i++) AOT_TRY(bind(st, l, i, &l->carries[i].t, l->carries[i].storage));
  for (uint32_t i = l->n_carries; i < l->n_operands; i++) AOT_TRY(bind_operand(st, l, i));
  return AOT_OK;
}

/* ---- steps ---- */

/* The loop is over: what is carried becomes the first results. */
static aot_status_t finish(rf_state_t *st, rf_loop_t *l) {
  rf_frame_t *caller = caller_of(st, l);
  const uint32_t node = l->node, first = node_of(st, node)->result_begin;
  for (uint32_t i = 0; i < l->n_carries; i++)
    if (l->carries[i].storage)
      rf_slot_share(rf_slot_of(st, caller, first + i), &l->carries[i].t, l->carries[i].storage);
  caller->loop = NULL;
  rf_loop_destroy(st, l);
  rf_finish_node(st, caller, node);
  return AOT_OK;
}

static aot_status_t next(rf_state_t *st, rf_loop_t *l) {
  if (st->rehearsal && l->step >= REHEARSED_STEPS) return finish(st, l);
  if (l->is_scan) return l->step < l->n_steps ? run(st, l, l->body) : finish(st, l);
  l->decides = 1;
  return run(st, l, l->cond);
}

static const rf_slot_t *output(rf_state_t *st, const rf_frame_t *f, uint32_t i) {
  const uint32_t v = AOT_SNAP_ROWS(st->p->s, aot_snap_port_t, ports)[rf_graph_row(st, f)->output_begin + i].value;
  return v == AOT_NO_ID ? NULL : rf_slot_of(st, f, v);
}

/* The ys of one step, into their rows of the results. */
static aot_status_t keep_ys(rf_state_t *st, rf_loop_t *l, rf_frame_t *f) {
  const aot_snap_node_t *n = node_of(st, l->node);
  for (uint32_t r = l->n_carries; r < n->n_results; r++) {
    const rf_slot_t *y = output(st, f, r), *to = rf_slot_of(st, caller_of(st, l), n->result_begin + r);
    rk_tensor_t row = slice_of(&to->t, l->step);
    if (!y || !y->storage || !same_sizes(&row, &y->t))
      return rf_fail(st, AOT_E_INVALID, l->node, "output %u of the body is not as result %u is declared", r, r);
    if (!st->rehearsal) rk_copy(&row, &y->t);
  }
  return AOT_OK;
}

aot_status_t rf_loop_leave(rf_state_t *st, rf_loop_t *l) {
  rf_frame_t *f = &st->frames[st->depth - 1];
  int goes_on = 1;
  if (l->decides) {
    const rf_slot_t *said = output(st, f, 0);
    if (!st->rehearsal) AOT_TRY(rf_truth(st, said, l->node, &goes_on));
    rf_pop(st);
    l->decides = 0;
    return goes_on ? run(st, l, l->body) : finish(st, l);
  }
  if (l->is_scan) AOT_TRY(keep_ys(st, l, f));
  for (uint32_t i = 0; i < l->n_carries; i++) {
    const rf_slot_t *out = output(st, f, i);
    if (!out || !out->storage)
      return rf_fail(st, AOT_E_INVALID, l->node, "the body gives nothing for what it carries as %u", i);
    replace(st, &l->carries[i], out);
  }
  rf_pop(st);
  l->step++;
  return next(st, l);
}

/* ---- the node ---- */

/* Contiguous, with a row for each step. */
static aot_status_t place_ys(rf_state_t *st, const rf_loop_t *l, uint32_t result) {
  rf_frame_t *caller = caller_of(st, l);
  const uint32_t row = node_of(st, l->node)->result_begin + result;
  rf_storage_t *storage;
  rk_tensor_t t;
  int64_t numel = 1;
  AOT_TRY(rf_declared(st, &AOT_SNAP_ROWS(st->p->s, aot_snap_value_t, values)[row], l->node, &t, NULL));
  if (t.rank < 1 || t.sizes[0] != l->n_steps)
    return rf_fail(st, AOT_E_INVALID, l->node, "result %u is not declared with %lld rows, one a step", result,
                   (long long)l->n_steps);
  t.offset = 0;
  for (int32_t d = t.rank - 1; d >= 0; d--) {
    t.strides[d] = numel;
    if (__builtin_mul_overflow(numel, t.sizes[d], &numel) || numel > INT64_MAX / 16) numel = -1;
    if (numel < 0) return rf_fail(st, AOT_E_EXHAUSTED, l->node, "a result is larger than the address space");
  }
  storage = rf_storage_create(st, (uint64_t)numel * aot_dtype_size(t.dtype));
  if (!storage) return rf_fail(st, AOT_E_EXHAUSTED, l->node, "no memory for result %u", result);
  t.data = storage->data;
  t.nbytes = storage->nbytes;
  rf_slot_share(rf_slot_of(st, caller, row), &t, storage);
  if (st->rehearsal) rf_rehearse_value(st, storage, row);
  return AOT_OK;
}

static aot_status_t start(rf_state_t *st, rf_loop_t *l) {
  rf_frame_t *caller = caller_of(st, l);
  for (uint32_t i = 0; i < l->n_carries; i++) {
    const rf_slot_t *slot = l->operands[i] == AOT_NO_ID ? NULL : rf_slot_of(st, caller, l->operands[i]);
    if (!slot || !slot->storage) return rf_fail(st, AOT_E_INVALID, l->node, "what is carried as %u is no tensor", i);
    rf_slot_share(&l->carries[i], &slot->t, slot->storage);
  }
  for (uint32_t i = l->n_carries; i < l->n_carries + l->n_xs; i++) {
    const rf_slot_t *slot = l->operands[i] == AOT_NO_ID ? NULL : rf_slot_of(st, caller, l->operands[i]);
    if (!slot || !slot->storage || slot->t.rank < 1 || (i > l->n_carries && slot->t.sizes[0] != l->n_steps))
      return rf_fail(st, AOT_E_INVALID, l->node, "operand %u cannot be looped over with the others", i);
    l->n_steps = slot->t.sizes[0];
  }
  for (uint32_t r = l->n_carries; l->is_scan && r < node_of(st, l->node)->n_results; r++) AOT_TRY(place_ys(st, l, r));
  return next(st, l);
}

aot_status_t rf_loop_enter(rf_state_t *st, uint32_t node) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_node_t *n = node_of(st, node);
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  rf_loop_t *l = calloc(1, sizeof *l);
  uint32_t graphs[2] = {0}, after;
  if (!l) return rf_fail(st, AOT_E_EXHAUSTED, node, "no memory for a loop");
  st->frames[st->depth - 1].loop = l;
  l->node = node;
  l->is_scan = st->p->regions[n->op] == RF_SCAN;
  rf_region_graphs(s, n, graphs, 2, &after);
  l->cond = graphs[0];
  l->body = graphs[l->is_scan ? 0 : 1];
  l->n_carries = rf_region_length(&args[after]);
  l->n_xs = l->is_scan ? rf_region_length(&args[after + 1]) : 0;
  l->n_operands = rf_region_operands(s, n, after, NULL, NULL);
  l->operands = calloc((size_t)l->n_operands + 1, sizeof *l->operands);
  l->numbers = calloc((size_t)l->n_operands + 1, sizeof *l->numbers);
  l->carries = calloc((size_t)l->n_carries + 1, sizeof *l->carries);
  if (!l->operands || !l->numbers || !l->carries) return rf_fail(st, AOT_E_EXHAUSTED, node, "no memory for a loop");
  rf_region_operands(s, n, after, l->operands, l->numbers);
  return start(st, l);
}
