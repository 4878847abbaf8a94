/* Rehearsals: runs in which no kernel computes, no copy is made and no memory is touched, so that what the interpreter
 * allocates and returns is what a real run would, by the same code. */
#include "ref_state.h"

#include "kit/graph/snap_graph.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the boundary's tensors ---- */

typedef struct stand_in {
  int64_t sizes[AOT_MAX_RANK], strides[AOT_MAX_RANK];
} stand_in_t;

static aot_status_t stand_in_of(rf_state_t *st, const aot_snap_port_t *port, stand_in_t *at, aot_tensor_t *out) {
  rk_tensor_t t;
  *out = (aot_tensor_t){.sizes = at->sizes, .strides = at->strides};
  if (port->value == AOT_NO_ID) return AOT_OK;
  const aot_snap_value_t *v = &AOT_SNAP_ROWS(st->p->s, aot_snap_value_t, values)[port->value];
  if (v->kind == AOT_TYPE_NONE || v->kind == AOT_TYPE_TOKEN || v->kind == AOT_TYPE_SYMINT) return AOT_OK;
  AOT_TRY(rf_declared(st, v, AOT_NO_ID, &t, NULL));
  int64_t last = t.offset;
  int empty = 0;
  for (int32_t d = 0; d < t.rank; d++) {
    int64_t reach;
    empty |= t.sizes[d] == 0;
    if (t.strides[d] < 0 || __builtin_mul_overflow(t.sizes[d] - 1, t.strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return rf_fail(st, AOT_E_RANGE, AOT_NO_ID, "a tensor of the boundary has a size that cannot be");
    at->sizes[d] = t.sizes[d];
    at->strides[d] = t.strides[d];
  }
  if (!empty && (last < 0 || last > INT64_MAX / 64))
    return rf_fail(st, AOT_E_RANGE, AOT_NO_ID, "a tensor of the boundary has a size that cannot be");
  out->dtype = t.dtype;
  out->rank = t.rank;
  out->offset = t.offset;
  out->nbytes = empty ? 0 : (uint64_t)(last + 1) * aot_dtype_size(t.dtype);
  out->data = rf_rehearse_memory(out->nbytes);
  return out->data
             ? AOT_OK
             : rf_fail(st, AOT_E_EXHAUSTED, AOT_NO_ID, "no addresses for %llu bytes", (unsigned long long)out->nbytes);
}

/* ---- a graph ---- */

/* Dimensions are needed before the run works them out for itself. */
static aot_status_t rehearse_tensors(rf_state_t *st, const aot_snap_graph_t *row, const int64_t *symbols,
                                     aot_tensor_t *tensors, stand_in_t *space) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(st->p->s, aot_snap_port_t, ports);
  aot_status_t status = AOT_OK;
  sn_error_t why;
  st->dims = calloc((size_t)st->p->s->exprs.count + 1, sizeof *st->dims);
  if (!st->dims) return rf_fail(st, AOT_E_EXHAUSTED, AOT_NO_ID, "no memory for a rehearsal");
  if (sn_exprs_eval(st->p->s, symbols, st->n_symbols, st->dims, &why) != AOT_OK)
    status = rf_fail(st, AOT_E_RANGE, AOT_NO_ID, "%s", why.text);
  for (uint32_t i = 0; i < row->n_inputs && status == AOT_OK; i++)
    status = stand_in_of(st, &ports[row->input_begin + i], &space[i], &tensors[i]);
  for (uint32_t i = 0; i < row->n_outputs && status == AOT_OK; i++)
    status = stand_in_of(st, &ports[row->output_begin + i], &space[row->n_inputs + i], &tensors[row->n_inputs + i]);
  free(st->dims);
  st->dims = NULL;
  return status;
}

static aot_status_t rehearse(rf_state_t *st, uint32_t graph, const int64_t *symbols) {
  const aot_snap_graph_t *row = &AOT_SNAP_ROWS(st->p->s, aot_snap_graph_t, graphs)[graph];
  const size_t n = (size_t)row->n_inputs + row->n_outputs + 1;
  aot_tensor_t *tensors = calloc(n, sizeof *tensors);
  stand_in_t *space = calloc(n, sizeof *space);
  aot_status_t status =
      tensors && space ? AOT_OK : rf_fail(st, AOT_E_EXHAUSTED, AOT_NO_ID, "no memory for a rehearsal");
  if (status == AOT_OK) status = rehearse_tensors(st, row, symbols, tensors, space);
  if (status == AOT_OK) {
    st->outputs = tensors + row->n_inputs;
    status = rf_run_graph(st, graph, tensors, symbols);
  }
  for (size_t i = 0; tensors && i < n; i++)
    if (tensors[i].data) rf_rehearse_give(tensors[i].data, tensors[i].nbytes);
  free(space);
  free(tensors);
  return status;
}

/* The graph's part of the axis; at least one step. What is written by no step is copied at the end. */
static aot_status_t plan_graph(const rf_program_t *p, uint32_t graph, const int64_t *symbols, uint64_t n_symbols,
                               mr_rows_t *rows, mr_graph_t *out, uint32_t **written, rf_error_t *error) {
  const aot_snap_graph_t *row = &AOT_SNAP_ROWS(p->s, aot_snap_graph_t, graphs)[graph];
  rf_rehearsal_t rehearsal = {
      .rows = rows, .begin = rows->n_steps, .written = malloc(((size_t)row->n_outputs + 1) * sizeof(uint32_t))};
  rf_state_t *st = calloc(1, sizeof *st);
  aot_status_t status = AOT_E_EXHAUSTED;
  *written = rehearsal.written;
  snprintf(error->text, sizeof error->text, "no memory for a rehearsal");
  if (st && rehearsal.written) {
    memset(rehearsal.written, 0xFF, row->n_outputs * sizeof(uint32_t));
    st->p = p;
    st->n_symbols = n_symbols;
    st->rehearsal = &rehearsal;
    st->error = error;
    status = rehearse(st, graph, symbols);
  }
  if (status == AOT_OK && rows->n_steps == rehearsal.begin)
    mr_step(rows, row->id, AOT_NO_ID, row->kind == AOT_GRAPH_BACKWARD ? MR_BACKWARD : MR_FORWARD);
  for (uint32_t o = 0; status == AOT_OK && o < row->n_outputs; o++)
    if (rehearsal.written[o] == UINT32_MAX) rehearsal.written[o] = (uint32_t)(rows->n_steps - 1);
  *out = (mr_graph_t){graph, rehearsal.begin, rows->n_steps, rehearsal.written};
  free(st);
  return status;
}

/* ---- the program ---- */

static aot_status_t fail(rf_error_t *error, aot_status_t status, const char *text) {
  snprintf(error->text, sizeof error->text, "%s", text);
  return status;
}

static aot_status_t add_boundary(const rf_program_t *p, const int64_t *symbols, uint64_t n_symbols, mr_rows_t *rows,
                                 const mr_graph_t *graphs, uint32_t n_graphs, rf_error_t *error) {
  int64_t *exprs = malloc(((size_t)p->s->exprs.count + 1) * sizeof *exprs);
  sn_error_t why;
  aot_status_t status = exprs ? sn_exprs_eval(p->s, symbols, n_symbols, exprs, &why) : AOT_E_EXHAUSTED;
  if (status == AOT_OK) status = mr_boundary(rows, p->s, exprs, graphs, n_graphs);
  if (status == AOT_OK) status = mr_finish(rows, 0);
  free(exprs);
  if (status == AOT_OK) return AOT_OK;
  return fail(error, status,
              status == AOT_E_EXHAUSTED ? "no memory for the plan"
                                        : "a tensor of the boundary has a size that cannot be");
}

aot_status_t rf_plan(const rf_program_t *p, const int64_t *symbols, uint64_t n_symbols, mr_rows_t *out,
                     rf_error_t *error) {
  uint32_t rows[2], *written[2] = {NULL, NULL};
  mr_graph_t graphs[2];
  memset(error, 0, sizeof *error);
  error->node = AOT_NO_ID;
  mr_clear(out);
  if (sn_graph_of_kind(p->s, AOT_GRAPH_JOINT) != AOT_NO_ID)
    return fail(error, AOT_E_PRECONDITION, "the program is joint: partition it first");
  const uint32_t n = mr_graphs_of(p->s, rows);
  if (!n) return fail(error, AOT_E_PRECONDITION, "there is no forward graph");
  aot_status_t status = AOT_OK;
  for (uint32_t k = 0; k < n && status == AOT_OK; k++)
    status = plan_graph(p, rows[k], symbols, n_symbols, out, &graphs[k], &written[k], error);
  if (status == AOT_OK) status = add_boundary(p, symbols, n_symbols, out, graphs, n, error);
  free(written[0]);
  free(written[1]);
  return status;
}
