/* Storages and slots: who keeps memory alive, and how much is in use. */
#include "ref_state.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

aot_status_t rf_fail(rf_state_t *st, aot_status_t status, uint32_t node, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(st->error->text, sizeof st->error->text, format, list);
  va_end(list);
  st->error->node = node == AOT_NO_ID ? AOT_NO_ID : AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node].id;
  return status;
}

rf_storage_t *rf_storage_create(rf_state_t *st, uint64_t nbytes) {
  rf_storage_t *storage = calloc(1, sizeof *storage);
  if (!storage) return NULL;
  if (nbytes < SIZE_MAX / 2)
    storage->data = st->rehearsal ? rf_rehearse_memory(nbytes) : calloc(nbytes ? (size_t)nbytes : 1, 1);
  if (!storage->data) {
    free(storage);
    return NULL;
  }
  storage->nbytes = nbytes;
  storage->owned = 1;
  st->now_nbytes += nbytes;
  if (st->now_nbytes > st->peak_nbytes) st->peak_nbytes = st->now_nbytes;
  if (st->rehearsal) rf_rehearse_begin(st, storage);
  return storage;
}

rf_storage_t *rf_storage_borrow(void *data, uint64_t nbytes) {
  rf_storage_t *storage = calloc(1, sizeof *storage);
  if (!storage) return NULL;
  storage->data = data;
  storage->nbytes = nbytes;
  return storage;
}

void rf_storage_release(rf_state_t *st, rf_storage_t *storage) {
  if (!storage || (storage->refs > 0 && --storage->refs > 0)) return;
  if (storage->owned) {
    st->now_nbytes -= storage->nbytes;
    if (st->rehearsal) rf_rehearse_end(st, storage);
    if (st->rehearsal) rf_rehearse_give(storage->data, storage->nbytes);
    else free(storage->data);
  }
  free(storage);
}

void rf_slot_share(rf_slot_t *slot, const rk_tensor_t *t, rf_storage_t *storage) {
  slot->t = *t;
  slot->storage = storage;
  storage->refs++;
}

void rf_slot_clear(rf_state_t *st, rf_slot_t *slot) {
  rf_storage_release(st, slot->storage);
  slot->storage = NULL;
  memset(&slot->t, 0, sizeof slot->t);
}

void rf_slot_used(rf_state_t *st, rf_slot_t *slot) {
  if (slot->uses > 0 && --slot->uses == 0) rf_slot_clear(st, slot);
}

static int64_t dim_of(const rf_state_t *st, int64_t dim, int *open) {
  int64_t n = sn_dim(dim, st->dims);
  if (AOT_DIM_IS_SYM(dim) && n == SN_NO_VALUE) *open = 1;
  return n;
}

aot_status_t rf_declared(rf_state_t *st, const aot_snap_value_t *v, uint32_t node, rk_tensor_t *out, int *out_open) {
  const int64_t *ints = AOT_SNAP_ROWS(st->p->s, int64_t, ints);
  int ignored = 0, *open = out_open ? out_open : &ignored;
  *open = 0;
  memset(out, 0, sizeof *out);
  if (v->kind == AOT_TYPE_NONE || v->kind == AOT_TYPE_TOKEN) return AOT_OK;
  if (v->kind != AOT_TYPE_TENSOR) {
    out->dtype = v->kind == AOT_TYPE_SYMINT ? AOT_I64 : v->kind == AOT_TYPE_SYMFLOAT ? AOT_F64 : AOT_BOOL;
    return AOT_OK;
  }
  out->dtype = v->dtype;
  out->rank = v->rank;
  out->offset = dim_of(st, v->offset, open);
  for (int32_t d = 0; d < v->rank; d++) {
    int64_t size = dim_of(st, ints[v->dims + (uint32_t)d], open);
    out->sizes[d] = size == SN_NO_VALUE ? RF_OPEN : size;
    out->strides[d] = dim_of(st, ints[v->dims + (uint32_t)(v->rank + d)], open);
    if (size < 0 && (size != SN_NO_VALUE || !out_open))
      return rf_fail(st, AOT_E_RANGE, node, "size %d of value %%%u has no value with these inputs", d, v->id);
  }
  return AOT_OK;
}
