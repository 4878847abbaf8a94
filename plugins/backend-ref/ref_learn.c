/* Sizes and numbers that the run reports: results placed when their kernel knows their sizes, symbols bound from
 * them. */
#include "ref_state.h"

#include "kit/graph/snap_learn.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

/* ---- placing ---- */

aot_status_t rf_place_open(void *self, uint32_t result, int32_t rank, const int64_t *sizes, rk_error_t *error) {
  const rf_placing_t *p = self;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(p->st->p->s, aot_snap_node_t, nodes)[p->node];
  rf_slot_t *slot = &p->frame->slots[n->result_begin + result - p->st->p->graphs[p->frame->graph].value_begin];
  rk_tensor_t *t = &p->st->results[result];
  uint64_t nbytes = aot_dtype_size(t->dtype);
  int64_t stride = 1;
  rf_storage_t *storage;
  int fits = t->rank == rank, enough = 1;
  for (int32_t d = rank - 1; d >= 0 && fits; d--) {
    fits = t->sizes[d] == RF_OPEN || t->sizes[d] == sizes[d];
    t->strides[d] = stride;
    enough = enough && !__builtin_mul_overflow(stride, sizes[d] > 1 ? sizes[d] : 1, &stride) &&
             !__builtin_mul_overflow(nbytes, (uint64_t)sizes[d], &nbytes);
    t->sizes[d] = sizes[d];
  }
  if (!fits) {
    snprintf(error->text, sizeof error->text, "result %u has another rank or other sizes than declared", result);
    return AOT_E_INVALID;
  }
  t->offset = 0;
  storage = enough ? rf_storage_create(p->st, nbytes) : NULL;
  if (!storage) {
    snprintf(error->text, sizeof error->text, "no memory for result %u", result);
    return AOT_E_EXHAUSTED;
  }
  t->data = storage->data;
  t->nbytes = storage->nbytes;
  rf_slot_share(slot, t, storage);
  return AOT_OK;
}

/* ---- learning ---- */

static int64_t number_of(const rf_slot_t *slot, int32_t kind) {
  int64_t number;
  if (kind == AOT_TYPE_SYMBOOL) return *(const uint8_t *)slot->t.data != 0;
  memcpy(&number, slot->t.data, sizeof number);
  return number;
}

aot_status_t rf_learn(rf_state_t *st, rf_frame_t *f, uint32_t node) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const sn_known_t known = {s, st->symbols, st->n_symbols, st->dims};
  sn_error_t why;
  for (int checking = 0; checking < 2; checking++)
    for (uint32_t r = 0; r < n->n_results; r++) {
      const uint32_t value = n->result_begin + r;
      const int32_t kind = AOT_SNAP_ROWS(s, aot_snap_value_t, values)[value].kind;
      const rf_slot_t *slot = &f->slots[value - st->p->graphs[f->graph].value_begin];
      if (!slot->storage) continue;
      const int64_t number = kind == AOT_TYPE_SYMINT || kind == AOT_TYPE_SYMBOOL ? number_of(slot, kind) : 0;
      const int64_t *is = kind == AOT_TYPE_TENSOR ? slot->t.sizes : &number;
      const aot_status_t status = checking ? sn_agree(&known, value, is, &why) : sn_learn(&known, value, is, &why);
      if (status != AOT_OK) return rf_fail(st, status, node, "%s", why.text);
    }
  return AOT_OK;
}
