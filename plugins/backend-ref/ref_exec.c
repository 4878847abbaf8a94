/* Programs and runs: what is worked out once at load, and the loop over nodes with its stack of frames. */
#include "ref_state.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- load ---- */

static aot_status_t load_error(rf_error_t *error, aot_status_t status, const char *text) {
  snprintf(error->text, sizeof error->text, "%s", text);
  return status;
}

static void grow(uint32_t *max, uint32_t v) {
  if (v > *max) *max = v;
}

/* Rows of values that the graph defines: its inputs and results. */
static void value_range(const aot_snapshot_t *s, uint32_t graph, rf_graph_t *g) {
  const aot_snap_graph_t *row = &AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[graph];
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  uint32_t low = UINT32_MAX, high = 0;
  for (uint32_t p = row->input_begin; p < row->input_begin + row->n_inputs; p++) {
    if (ports[p].value == AOT_NO_ID) continue;
    if (ports[p].value < low) low = ports[p].value;
    if (ports[p].value + 1 > high) high = ports[p].value + 1;
  }
  for (uint32_t n = row->node_begin; n < row->node_begin + row->n_nodes; n++) {
    if (nodes[n].n_results == 0) continue;
    if (nodes[n].result_begin < low) low = nodes[n].result_begin;
    if (nodes[n].result_begin + nodes[n].n_results > high) high = nodes[n].result_begin + nodes[n].n_results;
  }
  g->value_begin = high ? low : 0;
  g->n_values = high ? high - low : 0;
}

/* Outputs may be in the memory of inputs. */
static int is_in_place(int32_t kind) { return kind == AOT_GRAPH_STEP || kind == AOT_GRAPH_PART; }

static void count_uses(rf_program_t *p, uint32_t graph, rf_graph_t *g) {
  const aot_snapshot_t *s = p->s;
  const aot_snap_graph_t *row = &AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[graph];
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args);
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands);
  for (uint32_t n = row->node_begin; n < row->node_begin + row->n_nodes; n++) {
    const aot_snap_node_t *node = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[n];
    uint32_t n_operands = 0, n_ints = 0;
    for (uint32_t a = 0; a < node->n_args; a++) {
      const aot_snap_arg_t *arg = &args[node->arg_begin + a];
      if (arg->kind == AOT_ARG_VALUE) g->uses[(uint64_t)arg->i - g->value_begin]++;
      if (arg->kind == AOT_ARG_INTS || arg->kind == AOT_ARG_BOOLS) n_ints += arg->n;
      for (uint32_t k = 0; arg->kind == AOT_ARG_VALUES && k < arg->n; k++, n_operands++)
        if (operands[(uint64_t)arg->i + k] != AOT_NO_ID) g->uses[operands[(uint64_t)arg->i + k] - g->value_begin]++;
    }
    grow(&p->max_args, node->n_args);
    grow(&p->max_operands, n_operands);
    grow(&p->max_ints, n_ints);
    grow(&p->max_results, node->n_results);
    if (row->kind == AOT_GRAPH_REGION) continue;
    if (p->kernels[node->op] ? !rk_is_view(p->kernels[node->op]) : custom_find(&p->custom, n) != NULL) p->n_kernels++;
  }
  memset(g->port, 0xFF, (size_t)g->n_values * sizeof *g->port);
  for (uint32_t o = 0; o < row->n_outputs; o++) {
    uint32_t v = ports[row->output_begin + o].value;
    if (v == AOT_NO_ID) continue;
    g->uses[v - g->value_begin]++;
    if (is_in_place(row->kind)) continue; /* its outputs are in its inputs' memory, which may yet be read */
    if (g->port[v - g->value_begin] < 0) g->port[v - g->value_begin] = (int32_t)o;
  }
}

static aot_status_t prepare_custom(rf_program_t *p, const custom_world_t *world, rf_error_t *error) {
  custom_error_t why;
  const aot_status_t status = custom_prepare(world, p->s, &p->custom, &why);
  if (status == AOT_OK) return AOT_OK;
  error->node = why.node;
  return load_error(error, status, why.text);
}

static aot_status_t prepare(rf_program_t *p, const custom_world_t *world, rf_error_t *error) {
  const aot_snapshot_t *s = p->s;
  AOT_TRY(prepare_custom(p, world, error));
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  p->kernels = calloc((size_t)s->ops.count + 1, sizeof *p->kernels);
  p->regions = calloc((size_t)s->ops.count + 1, sizeof *p->regions);
  p->graphs = calloc((size_t)s->graphs.count + 1, sizeof *p->graphs);
  if (!p->kernels || !p->regions || !p->graphs)
    return load_error(error, AOT_E_EXHAUSTED, "no memory for the program's tables");
  for (uint32_t o = 1; o < s->ops.count; o++) {
    p->kernels[o] = rk_find(aot_snap_text(s, ops[o].name));
    p->regions[o] = rf_region_kind(aot_snap_text(s, ops[o].name));
  }
  for (uint32_t g = 1; g < s->graphs.count; g++) {
    rf_graph_t *graph = &p->graphs[g];
    value_range(s, g, graph);
    graph->uses = calloc((size_t)graph->n_values + 1, sizeof *graph->uses);
    graph->port = calloc((size_t)graph->n_values + 1, sizeof *graph->port);
    if (!graph->uses || !graph->port) return load_error(error, AOT_E_EXHAUSTED, "no memory for a graph's tables");
    count_uses(p, g, graph);
  }
  return AOT_OK;
}

aot_status_t rf_load(const void *bytes, uint64_t nbytes, const custom_world_t *world, rf_program_t **out,
                     rf_error_t *error) {
  rf_program_t *p = calloc(1, sizeof *p);
  aot_status_t status;
  sn_error_t why;
  memset(error, 0, sizeof *error);
  error->node = AOT_NO_ID;
  if (!p) return load_error(error, AOT_E_EXHAUSTED, "no memory for the program");
  if ((uintptr_t)bytes % 8 != 0) {
    p->copy = malloc((size_t)nbytes + 8);
    if (p->copy) memcpy(p->copy, bytes, (size_t)nbytes);
    if (!p->copy) status = load_error(error, AOT_E_EXHAUSTED, "no memory for a copy of the artifact");
    bytes = p->copy;
  }
  if (!bytes) status = error->text[0] ? AOT_E_EXHAUSTED : load_error(error, AOT_E_DATA_LOSS, "the artifact is empty");
  else {
    status = sn_check(bytes, nbytes, &p->s, &why);
    if (status != AOT_OK) load_error(error, status, why.text);
  }
  if (status == AOT_OK) status = prepare(p, world, error);
  if (status != AOT_OK) {
    rf_destroy(p);
    return status;
  }
  *out = p;
  return AOT_OK;
}

void rf_watch(rf_program_t *p) { p->is_watched = 1; }

void rf_destroy(rf_program_t *p) {
  if (!p) return;
  for (uint32_t g = 1; p->graphs && p->s && g < p->s->graphs.count; g++) {
    free(p->graphs[g].uses);
    free(p->graphs[g].port);
  }
  custom_program_deinit(&p->custom);
  free(p->graphs);
  free(p->kernels);
  free(p->regions);
  free(p->copy);
  free(p);
}

uint32_t rf_n_kernels(const rf_program_t *p) { return p->n_kernels; }

/* ---- the boundary ---- */

static int tensor_of(const aot_tensor_t *t, rk_tensor_t *out) {
  memset(out, 0, sizeof *out);
  if (t->rank < 0 || t->rank > AOT_MAX_RANK) return 0;
  out->data = t->data;
  out->nbytes = t->nbytes;
  out->dtype = t->dtype;
  out->rank = t->rank;
  out->offset = t->offset;
  for (int32_t d = 0; d < t->rank; d++) {
    out->sizes[d] = t->sizes[d];
    out->strides[d] = t->strides[d];
  }
  return rk_tensor_fits(out);
}

static int shapes_equal(const rk_tensor_t *a, const rk_tensor_t *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0);
}

static aot_status_t bind_inputs(rf_state_t *st, const aot_tensor_t *inputs) {
  const aot_snapshot_t *s = st->p->s;
  rf_frame_t *f = &st->frames[0];
  const aot_snap_graph_t *row = rf_graph_row(st, f);
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + row->input_begin;
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  for (uint32_t i = 0; i < row->n_inputs; i++) {
    rk_tensor_t t, declared;
    rf_storage_t *storage;
    rf_slot_t *slot;
    const aot_snap_value_t *v;
    aot_str_t name = aot_snap_text(s, ports[i].name);
    if (ports[i].value == AOT_NO_ID) continue;
    slot = rf_slot_of(st, f, ports[i].value);
    v = &values[ports[i].value];
    if (slot->uses == 0 || v->kind == AOT_TYPE_NONE || v->kind == AOT_TYPE_TOKEN) continue;
    if (v->kind == AOT_TYPE_SYMINT && !inputs[i].data) {
      AOT_TRY(rf_number_slot(st, AOT_NO_ID, sn_dim(v->expr, st->dims), slot));
      continue;
    }
    AOT_TRY(rf_declared(st, v, AOT_NO_ID, &declared, NULL));
    if (!tensor_of(&inputs[i], &t))
      return rf_fail(st, AOT_E_INVALID, AOT_NO_ID, "input %u (%.*s) reaches outside its storage", i, (int)name.size,
                     name.data);
    if (!shapes_equal(&t, &declared))
      return rf_fail(st, AOT_E_INVALID, AOT_NO_ID,
                     "input %u (%.*s) is %s of rank %d, the program takes %s of rank %d, or sizes differ", i,
                     (int)name.size, name.data, aot_dtype_name(t.dtype), t.rank, aot_dtype_name(declared.dtype),
                     declared.rank);
    storage = rf_storage_borrow(t.data, t.nbytes);
    if (!storage) return rf_fail(st, AOT_E_EXHAUSTED, AOT_NO_ID, "no memory for input %u", i);
    rf_slot_share(slot, &t, storage);
  }
  return AOT_OK;
}

static aot_status_t allocate_output(rf_state_t *st, uint32_t output, aot_tensor_t *out) {
  if (!st->sink) return rf_fail(st, AOT_E_INVALID, AOT_NO_ID, "output %u has no buffer", output);
  st->error->is_told = 1; /* what stops the host it has reported itself */
  AOT_TRY(st->sink->allocate(st->sink, output, st->symbols, st->n_symbols, out));
  st->error->is_told = 0;
  return AOT_OK;
}

/* A step's outputs that are inputs still, in their memory: copied before any output is written over it. */
static aot_status_t own_outputs(rf_state_t *st, rf_frame_t *f, const aot_snap_port_t *ports, uint32_t n) {
  for (uint32_t o = 0; o < n; o++) {
    rf_slot_t *slot = ports[o].value == AOT_NO_ID ? NULL : rf_slot_of(st, f, ports[o].value);
    if (!slot || !slot->storage || slot->storage->owned) continue;
    rk_tensor_t own = slot->t;
    rf_storage_t *storage = rf_storage_create(st, slot->storage->nbytes);
    if (!storage) return rf_fail(st, AOT_E_EXHAUSTED, AOT_NO_ID, "no memory for output %u", o);
    own.data = memcpy(storage->data, slot->storage->data, (size_t)slot->storage->nbytes);
    rf_storage_release(st, slot->storage);
    rf_slot_share(slot, &own, storage);
  }
  return AOT_OK;
}

static aot_status_t write_outputs(rf_state_t *st) {
  const aot_snapshot_t *s = st->p->s;
  rf_frame_t *f = &st->frames[0];
  const aot_snap_graph_t *row = rf_graph_row(st, f);
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + row->output_begin;
  if (is_in_place(row->kind)) AOT_TRY(own_outputs(st, f, ports, row->n_outputs));
  for (uint32_t o = 0; o < row->n_outputs; o++) {
    rk_tensor_t t;
    const rf_slot_t *slot = ports[o].value == AOT_NO_ID ? NULL : rf_slot_of(st, f, ports[o].value);
    if (!slot || !slot->storage || !slot->t.dtype) continue;
    /* computed in place */
    if (slot->storage->data == st->outputs[o].data && !slot->storage->owned && slot->port == (int32_t)o) continue;
    aot_tensor_t to = st->outputs[o];
    if (to.rank == AOT_RANK_OPEN) AOT_TRY(allocate_output(st, o, &to));
    if (!to.data && rk_numel(&slot->t) == 0) continue;
    if (!tensor_of(&to, &t)) return rf_fail(st, AOT_E_INVALID, AOT_NO_ID, "the buffer of output %u is too small", o);
    if (!shapes_equal(&t, &slot->t))
      return rf_fail(st, AOT_E_INVALID, AOT_NO_ID, "the buffer of output %u has another dtype or shape", o);
    rk_copy(&t, &slot->t);
    if (is_in_place(row->kind) && (ports[o].role == AOT_ROLE_UPDATE || ports[o].role == AOT_ROLE_OFFSET))
      st->copied_nbytes += (uint64_t)rk_numel(&t) * aot_dtype_size(t.dtype);
  }
  return AOT_OK;
}

/* ---- a run ---- */

static aot_status_t step(rf_state_t *st) {
  rf_frame_t *f = &st->frames[st->depth - 1];
  const aot_snap_graph_t *row = rf_graph_row(st, f);
  uint32_t node = f->next;
  if (node == row->node_begin + row->n_nodes) return rf_leave(st);
  f->next++;
  if (st->rehearsal) rf_rehearse_step(st, node);
  if (st->p->regions[AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node].op] != RF_NO_REGION)
    return rf_enter(st, node);
  AOT_TRY(rf_run_node(st, f, node));
  if (st->p->is_watched && !st->rehearsal) AOT_TRY(rf_look(st, f, node));
  rf_finish_node(st, f, node);
  return AOT_OK;
}

static aot_status_t begin(rf_state_t *st, const int64_t *symbols) {
  const rf_program_t *p = st->p;
  sn_error_t why;
  st->dims = calloc((size_t)p->s->exprs.count + 1, sizeof *st->dims);
  st->symbols = calloc((size_t)st->n_symbols + 1, sizeof *st->symbols);
  st->args = calloc((size_t)p->max_args + 1, sizeof *st->args);
  st->results = calloc((size_t)p->max_results + 1, sizeof *st->results);
  st->views = calloc((size_t)p->max_results + 1, sizeof *st->views);
  st->tensors = calloc((size_t)p->max_operands + 1, sizeof *st->tensors);
  st->ints = calloc((size_t)p->max_ints + 1, sizeof *st->ints);
  st->open = calloc((size_t)p->max_results + 1, sizeof *st->open);
  if (!st->open || !st->dims || !st->symbols || !st->args || !st->results || !st->views || !st->tensors || !st->ints)
    return rf_fail(st, AOT_E_EXHAUSTED, AOT_NO_ID, "no memory for a run");
  if (st->n_symbols) memcpy(st->symbols, symbols, (size_t)st->n_symbols * sizeof *symbols);
  if (sn_exprs_eval(p->s, st->symbols, st->n_symbols, st->dims, &why) != AOT_OK)
    return rf_fail(st, AOT_E_RANGE, AOT_NO_ID, "%s", why.text);
  return AOT_OK;
}

static void end(rf_state_t *st) {
  while (st->depth) rf_pop(st);
  free(st->dims);
  free(st->symbols);
  free(st->args);
  free(st->results);
  free(st->views);
  free(st->tensors);
  free(st->ints);
  free(st->open);
}

static aot_status_t run_all(rf_state_t *st, uint32_t graph, const aot_tensor_t *inputs, const int64_t *symbols) {
  const aot_snap_graph_t *row = &AOT_SNAP_ROWS(st->p->s, aot_snap_graph_t, graphs)[graph];
  uint32_t last = row->node_begin + row->n_nodes;
  AOT_TRY(begin(st, symbols));
  AOT_TRY(rf_push(st, graph, AOT_NO_ID));
  AOT_TRY(bind_inputs(st, inputs));
  while (st->depth > 1 || st->frames[0].next != last) AOT_TRY(step(st));
  return st->rehearsal ? AOT_OK : write_outputs(st);
}

aot_status_t rf_run_graph(rf_state_t *st, uint32_t graph, const aot_tensor_t *inputs, const int64_t *symbols) {
  const aot_status_t status = run_all(st, graph, inputs, symbols);
  end(st);
  return status;
}

/* The graph's row; graphs.count: there is none. */
static uint32_t find_graph(const rf_program_t *p, int32_t kind, uint32_t number) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(p->s, aot_snap_graph_t, graphs);
  uint32_t g = 0;
  while (g < p->s->graphs.count && (graphs[g].kind != kind || number-- > 0)) g++;
  return g;
}

aot_status_t rf_run(const rf_program_t *p, const hc_run_t *run, const rf_printer_t *printer, rf_stats_t *out_stats,
                    rf_error_t *error) {
  const uint32_t g = find_graph(p, run->kind, run->number);
  const aot_snap_graph_t *row = AOT_SNAP_ROWS(p->s, aot_snap_graph_t, graphs) + g;
  rf_state_t *st = calloc(1, sizeof *st);
  aot_status_t status;
  memset(error, 0, sizeof *error);
  error->node = AOT_NO_ID;
  if (!st) return load_error(error, AOT_E_EXHAUSTED, "no memory for a run");
  st->p = p;
  st->outputs = run->outputs;
  st->n_symbols = run->n_symbols;
  st->sink = run->open;
  st->printer = printer;
  st->error = error;
  if (g == p->s->graphs.count)
    status = rf_fail(st, AOT_E_NOT_FOUND, AOT_NO_ID, "the artifact has no graph of kind %d", run->kind);
  else if (row->n_inputs != run->n_inputs || row->n_outputs != run->n_outputs)
    status =
        rf_fail(st, AOT_E_INVALID, AOT_NO_ID, "the graph has %u inputs and %u outputs; %llu and %llu are given",
                row->n_inputs, row->n_outputs, (unsigned long long)run->n_inputs, (unsigned long long)run->n_outputs);
  else status = run_all(st, g, run->inputs, run->symbols);
  if (status == AOT_OK && run->n_symbols)
    memcpy(run->symbols, st->symbols, (size_t)run->n_symbols * sizeof *run->symbols);
  if (out_stats) *out_stats = (rf_stats_t){.peak_nbytes = st->peak_nbytes, .copied_nbytes = st->copied_nbytes};
  if (status != AOT_OK) custom_settle(&p->custom);
  end(st);
  free(st);
  return status;
}
