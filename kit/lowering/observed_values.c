#include "observed_values.h"

#include "kit/base/vector.h"
#include "kit/reference/not_finite.h"
#include "kit/base/geometry.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <stdlib.h>
#include <string.h>

/* ---- while a graph is lowered ---- */

static aot_status_t put(lw_build_t *b, lw_watched_t **rows, uint32_t *n, uint32_t *capacity, lw_watched_t row) {
  AOT_ASSERT(*n == 0 || (*rows)[*n - 1].step <= row.step); /* first_of halves them */
  lw_watched_t *grown = kit_grow(*rows, capacity, (uint64_t)*n + 1, sizeof *grown);
  if (!grown) return lw_no_memory(b->error, "to look for NaNs");
  *rows = grown;
  (*rows)[(*n)++] = row;
  return AOT_OK;
}

static aot_status_t need(lw_build_t *b) {
  if (b->out->watch) return AOT_OK;
  lw_watch_t *w = calloc(1, sizeof *w);
  if (!w) return lw_no_memory(b->error, "to look for NaNs");
  b->out->watch = w;
  b->out->stays_in_order = 1;
  w->held = calloc((size_t)b->s->values.count + 1, 1);
  return w->held ? AOT_OK : lw_no_memory(b->error, "to look for NaNs");
}

/* node AOT_NO_ID: nothing here computes it. */
static aot_status_t watch(lw_build_t *b, uint32_t value, uint32_t node, uint32_t step) {
  const lw_tensor_t *t = &lw_value(b, value)->t;
  if (!t->dtype || t->storage == LW_NONE || lw_numel(t) == 0) return AOT_OK;
  AOT_TRY(need(b));
  lw_watch_t *w = b->out->watch;
  const lw_watched_t row = {step, value, node, *t};
  if (node == AOT_NO_ID) return put(b, &w->before, &w->n_before, &w->before_capacity, row);
  return put(b, &w->after, &w->n_after, &w->after_capacity, row);
}

aot_status_t lw_watch_inputs(lw_build_t *b) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  for (uint32_t i = 0; i < b->graph->n_inputs; i++)
    if (ports[i].value != AOT_NO_ID) AOT_TRY(watch(b, ports[i].value, AOT_NO_ID, b->out->n_steps));
  return AOT_OK;
}

/* A view has no step, and what a region gives the nodes in it have made. */
aot_status_t lw_watch_results(lw_build_t *b, const aot_snap_node_t *node, uint32_t first_step) {
  const uint32_t n_steps = b->out->n_steps, row = (uint32_t)(node - AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes));
  const int has_region = (AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[node->op].flags & AOT_OP_REGION) != 0;
  const int is_computed = n_steps > first_step && !has_region;
  for (uint32_t r = 0; r < node->n_results; r++)
    AOT_TRY(watch(b, node->result_begin + r, is_computed ? row : AOT_NO_ID, is_computed ? n_steps - 1 : n_steps));
  return AOT_OK;
}

void lw_watch_deinit(lw_watch_t *w) {
  if (!w) return;
  free(w->before);
  free(w->after);
  free(w->held);
  free(w);
}

/* ---- a run ---- */

/* The first row of that step, or of a later one. */
static uint32_t first_of(const lw_watched_t *rows, uint32_t n, uint32_t step) {
  uint32_t begin = 0;
  while (begin < n) {
    const uint32_t middle = begin + (n - begin) / 2;
    if (rows[middle].step < step) begin = middle + 1;
    else n = middle;
  }
  return begin;
}

static aot_status_t look(const lw_watched_t *row, const lw_watcher_t *watcher, int *out, lw_error_t *error) {
  const int64_t size = (int64_t)aot_dtype_size(row->t.dtype);
  const char *at;
  int64_t first, last;
  *out = 0;
  if (!tn_reach(row->t.rank, row->t.sizes, row->t.strides, row->t.offset, &first, &last)) return AOT_OK;
  AOT_TRY(watcher->read(watcher->self, row->t.storage, first * size, (last + 1) * size, &at, error));
  rk_tensor_t t = {.data = (void *)(uintptr_t)at,
                   .nbytes = (uint64_t)((last + 1 - first) * size),
                   .dtype = row->t.dtype,
                   .rank = row->t.rank,
                   .offset = row->t.offset - first};
  memcpy(t.sizes, row->t.sizes, sizeof t.sizes);
  memcpy(t.strides, row->t.strides, sizeof t.strides);
  *out = nf_look(&t);
  return AOT_OK;
}

static int held_by_operands(const aot_snapshot_t *s, uint32_t node, const uint8_t *held) {
  const aot_snap_node_t *row = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + node;
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands) + row->operand_begin;
  int all = 0;
  for (uint32_t k = 0; k < row->n_operands; k++)
    if (operands[k] != AOT_NO_ID) all |= held[operands[k]];
  return all;
}

static aot_status_t tell(const aot_snapshot_t *s, const lw_watched_t *row, const char *what, lw_error_t *error) {
  const aot_snap_node_t *node = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + row->node;
  const aot_str_t op = aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].name);
  error->node = node->id;
  return lw_fail(error, AOT_E_RANGE, "not-finite", NF_MADE, (int)op.size, op.data, what);
}

aot_status_t lw_look_before(const lw_schedule_t *schedule, uint32_t step, const lw_watcher_t *watcher,
                            lw_error_t *error) {
  const lw_watch_t *w = schedule->watch;
  for (uint32_t k = w ? first_of(w->before, w->n_before, step) : 0; w && k < w->n_before; k++) {
    int found;
    if (w->before[k].step != step) break;
    AOT_TRY(look(&w->before[k], watcher, &found, error));
    w->held[w->before[k].value] = (uint8_t)found;
  }
  return AOT_OK;
}

aot_status_t lw_look_after(const lw_schedule_t *schedule, const aot_snapshot_t *s, uint32_t step,
                           const lw_watcher_t *watcher, lw_error_t *error) {
  const lw_watch_t *w = schedule->watch;
  for (uint32_t k = w ? first_of(w->after, w->n_after, step) : 0; w && k < w->n_after; k++) {
    const lw_watched_t *row = &w->after[k];
    int found;
    if (row->step != step) break;
    AOT_TRY(look(row, watcher, &found, error));
    w->held[row->value] = (uint8_t)found;
    const char *what = found ? nf_made(s, row->node, held_by_operands(s, row->node, w->held), found) : NULL;
    if (what) return tell(s, row, what, error);
  }
  return AOT_OK;
}
