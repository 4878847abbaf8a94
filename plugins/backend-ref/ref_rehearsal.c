/* A rehearsal's memory, which nothing writes, and the rows of the plan that say when which storage is there. */
#include "ref_state.h"

#include <aot/graph.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- memory that is none ---- */

#define SMALL 64u /* numbers are written even in a rehearsal */

void *rf_rehearse_memory(uint64_t nbytes) {
  if (nbytes <= SMALL) return calloc(1, SMALL);
  void *at = mmap(NULL, (size_t)nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

void rf_rehearse_give(void *memory, uint64_t nbytes) {
  if (nbytes <= SMALL) free(memory);
  else if (memory) munmap(memory, (size_t)nbytes);
}

/* ---- rows ---- */

static uint32_t now(const rf_rehearsal_t *r) {
  return (uint32_t)(r->rows->n_steps > r->begin ? r->rows->n_steps - 1 : r->begin);
}

void rf_rehearse_step(rf_state_t *st, uint32_t node) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  mr_step(st->rehearsal->rows, AOT_SNAP_ROWS(st->p->s, aot_snap_graph_t, graphs)[n->graph].id, n->id,
          mr_part_of(st->p->s, node));
}

void rf_rehearse_begin(rf_state_t *st, rf_storage_t *storage) {
  const uint32_t first = now(st->rehearsal);
  const aot_memory_buffer_t row = {
      .kind = AOT_MEMORY_SCRATCH,
      .first = first,
      .last = first,
      .value = {AOT_NO_ID},
      .nbytes = storage->nbytes,
      .place = MR_OWN,
  };
  storage->row = mr_buffer(st->rehearsal->rows, &row);
}

void rf_rehearse_end(rf_state_t *st, const rf_storage_t *storage) {
  if (storage->row != UINT64_MAX) st->rehearsal->rows->buffers[storage->row].last = now(st->rehearsal);
}

void rf_rehearse_value(rf_state_t *st, const rf_storage_t *storage, uint32_t value) {
  if (!storage->owned || storage->row == UINT64_MAX) return;
  aot_memory_buffer_t *b = &st->rehearsal->rows->buffers[storage->row];
  b->kind = AOT_MEMORY_TEMPORARY;
  b->value.id = AOT_SNAP_ROWS(st->p->s, aot_snap_value_t, values)[value].id;
}

void rf_rehearse_output(rf_state_t *st, uint32_t port) {
  if (st->rehearsal->written[port] == UINT32_MAX) st->rehearsal->written[port] = now(st->rehearsal);
}
