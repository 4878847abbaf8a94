#include "rows.h"

#include "kit/base/vector.h"
#include "kit/graph/snap_check.h"
#include "kit/graph/snap_graph.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

void mr_clear(mr_rows_t *r) {
  r->n_steps = r->n_buffers = 0;
  r->failed = 0;
}

void mr_deinit(mr_rows_t *r) {
  free(r->steps);
  free(r->part);
  free(r->buffers);
  memset(r, 0, sizeof *r);
}

static void *room(void *rows, uint64_t n, uint64_t *capacity, size_t size, int *failed) {
  AOT_ASSERT(n <= *capacity);
  if (*failed) return rows;
  void *grown = kit_grow64(rows, capacity, n + 1, size);
  *failed = !grown;
  return grown ? grown : rows;
}

uint32_t mr_graphs_of(const aot_snapshot_t *s, uint32_t out[2]) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  uint32_t n = 0;
  for (uint32_t g = 1; g < s->graphs.count && n < 2; g++)
    if (graphs[g].kind == AOT_GRAPH_STEP) out[n++] = g;
  if (n) return n;
  out[0] = sn_graph_of_kind(s, AOT_GRAPH_FORWARD);
  out[1] = sn_graph_of_kind(s, AOT_GRAPH_BACKWARD);
  return out[0] == AOT_NO_ID ? 0 : out[1] == AOT_NO_ID ? 1 : 2;
}

int mr_part_of(const aot_snapshot_t *s, uint32_t node) {
  const aot_snap_node_t *n = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + node;
  switch (AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[n->graph].kind) {
    case AOT_GRAPH_BACKWARD: return MR_BACKWARD;
    case AOT_GRAPH_UPDATE: return MR_UPDATE;
    case AOT_GRAPH_STEP:
      return n->flags & AOT_NODE_UPDATE ? MR_UPDATE : n->flags & AOT_NODE_BACKWARD ? MR_BACKWARD : MR_FORWARD;
    default: return MR_FORWARD;
  }
}

void mr_step(mr_rows_t *r, uint32_t graph, uint32_t node, int part) {
  r->steps = room(r->steps, r->n_steps, &r->step_capacity, sizeof *r->steps, &r->failed);
  r->part = room(r->part, r->n_steps, &r->part_capacity, sizeof *r->part, &r->failed);
  if (r->failed) return;
  r->part[r->n_steps] = (uint8_t)part;
  r->steps[r->n_steps++] = (aot_memory_step_t){{graph}, {node}};
}

uint64_t mr_buffer(mr_rows_t *r, const aot_memory_buffer_t *b) {
  if (!b->nbytes) return UINT64_MAX;
  r->buffers = room(r->buffers, r->n_buffers, &r->buffer_capacity, sizeof *r->buffers, &r->failed);
  if (r->failed) return UINT64_MAX;
  r->buffers[r->n_buffers] = *b;
  return r->n_buffers++;
}

uint64_t mr_padded(uint64_t nbytes) { return (nbytes + MR_ALIGN - 1) / MR_ALIGN * MR_ALIGN; }

/* ---- the boundary ---- */

/* Far beyond any memory, and small enough that no sum wraps around. */
#define MOST_NBYTES (INT64_C(1) << 48)

/* Bytes of storage that the host gives a value: from the storage's begin to the last element. */
static aot_status_t storage_nbytes(const aot_snapshot_t *s, const int64_t *exprs, const aot_snap_value_t *v,
                                   uint64_t *out) {
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints) + v->dims;
  int64_t last = v->kind == AOT_TYPE_TENSOR ? sn_dim(v->offset, exprs) : 0, reach;
  *out = v->kind == AOT_TYPE_SYMINT || v->kind == AOT_TYPE_SYMFLOAT ? 8 : v->kind == AOT_TYPE_SYMBOOL;
  if (v->kind != AOT_TYPE_TENSOR) return AOT_OK;
  for (int32_t d = 0; d < v->rank; d++) {
    const int64_t size = sn_dim(ints[d], exprs), stride = sn_dim(ints[v->rank + d], exprs);
    if (size == 0) return AOT_OK;
    if (size < 0 || stride < 0 || __builtin_mul_overflow(size - 1, stride, &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return AOT_E_RANGE;
  }
  if (last < 0 || last > MOST_NBYTES) return AOT_E_RANGE;
  *out = (uint64_t)(last + 1) * aot_dtype_size(v->dtype);
  return AOT_OK;
}

/* From the step `first` to the end of the axis. */
static aot_status_t port_row(mr_rows_t *r, const aot_snapshot_t *s, const int64_t *exprs, const aot_snap_port_t *port,
                             int32_t kind, uint64_t first) {
  uint64_t nbytes;
  if (port->value == AOT_NO_ID) return AOT_OK;
  const aot_snap_value_t *v = AOT_SNAP_ROWS(s, aot_snap_value_t, values) + port->value;
  AOT_TRY(storage_nbytes(s, exprs, v, &nbytes));
  const aot_memory_buffer_t row = {
      .kind = kind,
      .first = (uint32_t)first,
      .last = (uint32_t)(r->n_steps - 1),
      .value = {v->id},
      .nbytes = mr_padded(nbytes),
      .place = MR_OWN,
  };
  mr_buffer(r, &row);
  return AOT_OK;
}

static int is_outside(int32_t role) { /* there before the step and after it; saved slots have their row as outputs */
  return role == AOT_ROLE_PARAMETER || role == AOT_ROLE_BUFFER || role == AOT_ROLE_CONSTANT || role == AOT_ROLE_STATE ||
         role == AOT_ROLE_SAVED;
}

static const aot_snap_port_t *inputs_of(const aot_snapshot_t *s, uint32_t graph, uint32_t *n) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + graph;
  *n = g->n_inputs;
  return AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + g->input_begin;
}

/* seen: by leaf, user inputs that have their row. */
static aot_status_t input_rows(mr_rows_t *r, const aot_snapshot_t *s, const int64_t *exprs, const mr_graph_t *g,
                               unsigned char *seen) {
  uint32_t n;
  const aot_snap_port_t *ports = inputs_of(s, g->graph, &n);
  for (uint32_t i = 0; i < n; i++) {
    const int is_user = ports[i].role == AOT_ROLE_USER_INPUT && ports[i].index < s->leaves.count;
    if (is_outside(ports[i].role) || (is_user && seen[ports[i].index])) continue;
    if (is_user) seen[ports[i].index] = 1;
    AOT_TRY(port_row(r, s, exprs, &ports[i], AOT_MEMORY_INPUT, is_user ? 0 : g->begin));
  }
  return AOT_OK;
}

static aot_status_t output_rows(mr_rows_t *r, const aot_snapshot_t *s, const int64_t *exprs, const mr_graph_t *g) {
  const aot_snap_graph_t *row = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + g->graph;
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + row->output_begin;
  const int32_t kind = row->kind == AOT_GRAPH_BACKWARD ? AOT_MEMORY_GRADIENT : AOT_MEMORY_OUTPUT;
  for (uint32_t i = 0; i < row->n_outputs; i++) {
    if (row->kind == AOT_GRAPH_STEP && (ports[i].role == AOT_ROLE_UPDATE || ports[i].role == AOT_ROLE_OFFSET)) continue;
    AOT_TRY(port_row(r, s, exprs, &ports[i], ports[i].role == AOT_ROLE_SAVED ? AOT_MEMORY_SAVED : kind, g->written[i]));
  }
  return AOT_OK;
}

aot_status_t mr_boundary(mr_rows_t *r, const aot_snapshot_t *s, const int64_t *exprs, const mr_graph_t *graphs,
                         uint32_t n_graphs) {
  unsigned char *seen = calloc((size_t)s->leaves.count + 1, 1);
  aot_status_t status = seen ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t k = 0; k < n_graphs && status == AOT_OK; k++) {
    status = input_rows(r, s, exprs, &graphs[k], seen);
    if (status == AOT_OK) status = output_rows(r, s, exprs, &graphs[k]);
  }
  free(seen);
  return status == AOT_OK && r->failed ? AOT_E_EXHAUSTED : status;
}

/* ---- the peak ---- */

/* Bytes that come and go at each step, by differences; unsigned, so that a sum may pass through "less than nothing". */
static void add(uint64_t *change, const aot_memory_buffer_t *b) {
  change[b->first] += b->nbytes;
  change[b->last + 1] -= b->nbytes;
}

/* Separate graphs hand nothing to each other but by their boundaries: only a step graph's temporaries live across. */
static void name_kind(const mr_rows_t *r, aot_memory_buffer_t *b) {
  AOT_ASSERT(b->first <= b->last && b->last < r->n_steps);
  const int from = r->part[b->first], to = r->part[b->last];
  if (b->kind != AOT_MEMORY_TEMPORARY || from >= to) return;
  b->kind = from == MR_FORWARD ? AOT_MEMORY_SAVED : AOT_MEMORY_GRADIENT;
}

aot_status_t mr_finish(mr_rows_t *r, uint64_t arena_nbytes) {
  uint64_t n_forward_steps = 0;
  uint64_t *all = calloc(2 * ((size_t)r->n_steps + 2), sizeof *all), *own = all + r->n_steps + 2;
  uint64_t now_all = 0, now_own = 0, most_all = 0, most_own = 0;
  if (!all || r->failed) {
    free(all);
    return AOT_E_EXHAUSTED;
  }
  while (n_forward_steps < r->n_steps && r->part[n_forward_steps] == MR_FORWARD) n_forward_steps++;
  r->plan = (aot_memory_plan_t){
      .struct_size = sizeof r->plan,
      .n_steps = r->n_steps,
      .n_buffers = r->n_buffers,
      .n_forward_steps = n_forward_steps,
      .steps = r->steps,
      .buffers = r->buffers,
      .step_stride = sizeof *r->steps,
      .buffer_stride = sizeof *r->buffers,
      .arena_nbytes = arena_nbytes,
  };
  for (uint64_t i = 0; i < r->n_buffers; i++) {
    name_kind(r, &r->buffers[i]);
    add(all, &r->buffers[i]);
    if (r->buffers[i].place == MR_OWN) add(own, &r->buffers[i]);
  }
  for (uint64_t t = 0; t < r->n_steps; t++) {
    now_all += all[t];
    now_own += own[t];
    AOT_ASSERT(now_own <= now_all);
    if (now_own > most_own) most_own = now_own;
    if (now_all <= most_all) continue;
    most_all = now_all;
    r->plan.peak_step = t;
  }
  r->plan.peak_nbytes = most_own + arena_nbytes;
  free(all);
  return AOT_OK;
}
