#include "row_tiling.h"
#include "schedule_check.h"
#include "observed_values.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <stdlib.h>
#include <string.h>

/* ---- types ---- */

static lw_value_t declared(const lw_build_t *b, const aot_snap_value_t *row) {
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints) + row->dims;
  lw_value_t v;
  memset(&v, 0, sizeof v);
  v.kind = row->kind;
  v.t.storage = LW_NONE;
  if (row->kind == AOT_TYPE_SYMINT || row->kind == AOT_TYPE_SYMBOOL) v.number = lw_dim(b, row->expr);
  /* known when it runs: in memory, like a tensor without dimensions */
  if (row->kind == AOT_TYPE_SYMFLOAT) v.t.dtype = AOT_F64;
  if (row->kind != AOT_TYPE_TENSOR) return v;
  v.t.dtype = row->dtype;
  v.t.rank = row->rank;
  v.t.offset = sn_offset(row->offset, b->exprs);
  for (int32_t d = 0; d < row->rank; d++) {
    v.t.sizes[d] = lw_dim(b, ints[d]);
    v.t.strides[d] = lw_dim(b, ints[row->rank + d]);
  }
  return v;
}

/* The rows of a graph's values: inputs and results are together. */
static void value_range(lw_build_t *b) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  uint32_t begin = UINT32_MAX, end = 0;
  for (uint32_t i = 0; i < b->graph->n_inputs; i++) {
    if (ports[i].value == AOT_NO_ID) continue;
    if (ports[i].value < begin) begin = ports[i].value;
    if (ports[i].value + 1 > end) end = ports[i].value + 1;
  }
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    uint32_t first = nodes[i].result_begin, last = first + nodes[i].n_results;
    if (nodes[i].n_results && first < begin) begin = first;
    if (nodes[i].n_results && last > end) end = last;
  }
  b->value_begin = begin < end ? begin : 0;
  b->n_values = begin < end ? end - begin : 0;
}

/* Far beyond any memory, and small enough that no sum or pointer wraps around. */
#define MOST_NBYTES (INT64_C(1) << 44)

static aot_status_t check_type(lw_build_t *b, const lw_value_t *v) {
  int64_t n = (int64_t)aot_dtype_size(v->t.dtype), reach = v->t.offset, step;
  for (int32_t d = 0; d < v->t.rank; d++)
    if (v->t.sizes[d] < 0 || v->t.strides[d] < 0 || v->t.offset < 0 ||
        __builtin_mul_overflow(n, v->t.sizes[d] ? v->t.sizes[d] : 1, &n) || n > MOST_NBYTES ||
        __builtin_mul_overflow(v->t.sizes[d], v->t.strides[d], &step) || __builtin_add_overflow(reach, step, &reach) ||
        reach > MOST_NBYTES / 8)
      return lw_fail(b->error, AOT_E_RANGE, "bad-size",
                     "a tensor cannot have size %lld and stride %lld in dimension %d, and offset %lld",
                     (long long)v->t.sizes[d], (long long)v->t.strides[d], d, (long long)v->t.offset);
  return AOT_OK;
}

/* A node's list of operands names the same values as its arguments, in the same order; absent ones aside. The check of
 * a block leaves this open, and the counting of uses relies on it. */
static int operands_match(const lw_build_t *b, const aot_snap_node_t *node) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(b->s, aot_snap_arg_t, args) + node->arg_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands), *own = operands + node->operand_begin;
  uint32_t at = 0;
  for (uint32_t k = 0; k < node->n_args; k++) {
    uint32_t n = args[k].kind == AOT_ARG_VALUES ? args[k].n : args[k].kind == AOT_ARG_VALUE;
    for (uint32_t e = 0; e < n; e++) {
      uint32_t row = args[k].kind == AOT_ARG_VALUE ? (uint32_t)args[k].i : operands[args[k].i + (int64_t)e];
      if (row == AOT_NO_ID) continue;
      while (at < node->n_operands && own[at] == AOT_NO_ID) at++;
      if (at == node->n_operands || own[at++] != row) return 0;
    }
  }
  while (at < node->n_operands && own[at] == AOT_NO_ID) at++;
  return at == node->n_operands;
}

/* A number among the node's arguments is a symbol that no input and no node has reported. */
static int lacks_number(const lw_build_t *b, const aot_snap_node_t *node) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(b->s, aot_snap_arg_t, args) + node->arg_begin;
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints);
  int lacks = 0;
  for (uint32_t k = 0; k < node->n_args; k++) {
    if (args[k].kind != AOT_ARG_INT && args[k].kind != AOT_ARG_INTS) continue;
    const int is_list = args[k].kind == AOT_ARG_INTS;
    const int64_t *dims = is_list ? ints + args[k].i : &args[k].i;
    for (uint32_t e = 0; e < (is_list ? args[k].n : 1); e++)
      lacks |= AOT_DIM_IS_SYM(dims[e]) && lw_dim(b, dims[e]) == SN_NO_VALUE;
  }
  return lacks;
}

static aot_status_t check_operands(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    const int is_matched = operands_match(b, &nodes[i]);
    if (is_matched && !lacks_number(b, &nodes[i])) continue;
    b->error->node = nodes[i].id;
    if (!is_matched)
      return lw_fail(b->error, AOT_E_DATA_LOSS, "bad-artifact", "operands and arguments of a node differ");
    return lw_fail(b->error, AOT_E_RANGE, "no-value", "an argument has no value with these inputs");
  }
  return AOT_OK;
}

static aot_status_t read_value(lw_build_t *b, uint32_t row) {
  const aot_snap_value_t *value = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values) + row;
  lw_value_t *v = lw_value(b, row);
  *v = declared(b, value);
  const aot_status_t status = check_type(b, v);
  if (status != AOT_OK && value->def != AOT_NO_ID)
    b->error->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes)[value->def].id;
  return status;
}

/* Of a segment (dynamic_segments.h) the range holds values of other parts, too, which may have no sizes yet: they stay
 * zeros, of no kind and no dtype. */
static aot_status_t read_values(lw_build_t *b) {
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  value_range(b);
  b->values = calloc((size_t)b->n_values + 1, sizeof *b->values);
  if (!b->values) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < b->graph->n_inputs; i++)
    if (inputs[i].value != AOT_NO_ID) AOT_TRY(read_value(b, inputs[i].value));
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    for (uint32_t r = 0; r < nodes[i].n_results; r++) AOT_TRY(read_value(b, nodes[i].result_begin + r));
  return check_operands(b);
}

static aot_status_t count_uses(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  b->n_uses = lw_pool_alloc(b->pool, ((uint64_t)b->n_values + 1) * 4);
  if (!b->n_uses) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    for (uint32_t k = 0; k < nodes[i].n_operands; k++) {
      uint32_t row = operands[nodes[i].operand_begin + k];
      if (row != AOT_NO_ID) b->n_uses[row - b->value_begin]++;
    }
  for (uint32_t i = 0; i < b->graph->n_outputs; i++)
    if (outputs[i].value != AOT_NO_ID) b->n_uses[outputs[i].value - b->value_begin]++;
  return AOT_OK;
}

static int is_writer(const lw_build_t *b, const custom_node_t *custom) {
  return !lw_is_collective(b, custom->node) || custom->n_written > 0;
}

aot_status_t lw_open_graph(lw_build_t *b) {
  const custom_program_t *custom = b->machine->custom;
  for (uint32_t i = 0; i < custom->n_nodes; i++) b->has_inplace_custom_kernels |= is_writer(b, &custom->nodes[i]);
  AOT_TRY(read_values(b));
  return count_uses(b);
}

/* ---- ports ---- */

static aot_status_t port_storage(lw_build_t *b, int32_t kind, uint32_t index, uint32_t row, lw_tensor_t *t) {
  if (!t->dtype) return AOT_OK;
  AOT_TRY(lw_new_tensor(b, t));
  b->out->storages[t->storage].kind = kind;
  b->out->storages[t->storage].index = index;
  b->out->storages[t->storage].value = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values)[row].id;
  return AOT_OK;
}

aot_status_t lw_bind_inputs(lw_build_t *b) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  lw_schedule_t *s = b->out;
  s->n_inputs = b->graph->n_inputs;
  s->inputs = lw_pool_alloc(b->pool, ((uint64_t)s->n_inputs + 1) * sizeof *s->inputs);
  if (!s->inputs) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    if (ports[i].value == AOT_NO_ID) continue;
    lw_value_t *v = lw_value(b, ports[i].value);
    AOT_TRY(port_storage(b, LW_INPUT, i, ports[i].value, &v->t));
    s->inputs[i] = (lw_port_t){v->t, v->kind, v->number};
  }
  return AOT_OK;
}

/* A result in the arena that has the whole storage to itself and lies as the port says becomes the port's memory. */
static int can_be_port(const lw_build_t *b, const lw_tensor_t *t, const lw_tensor_t *port) {
  const lw_storage_t *s = &b->out->storages[t->storage];
  AOT_ASSERT(t->storage < b->out->n_storages);
  return s->kind == LW_ARENA && lw_same_geometry(t, port) && s->nbytes <= lw_extent(port);
}

static aot_status_t bind_output(lw_build_t *b, uint32_t i, uint32_t row) {
  const aot_snap_value_t *rows = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values);
  lw_schedule_t *s = b->out;
  if (row == AOT_NO_ID) return AOT_OK;
  lw_value_t port = declared(b, &rows[row]);
  const lw_value_t *v = lw_value(b, row);
  s->outputs[i] = (lw_port_t){port.t, port.kind, v->number};
  if (!port.t.dtype || lw_numel(&port.t) == 0) return AOT_OK;
  if (v->t.dtype != port.t.dtype || !lw_same_sizes(&v->t, &port.t))
    return lw_fail(b->error, AOT_E_DATA_LOSS, "bad-type", "output %u does not have its declared type", i);
  if (v->t.storage == LW_NONE) return lw_fail(b->error, AOT_E_INTERNAL, "internal", "output %u has no value", i);
  if (can_be_port(b, &v->t, &port.t)) {
    s->storages[v->t.storage].kind = LW_OUTPUT;
    s->storages[v->t.storage].index = i;
    s->outputs[i].type.storage = v->t.storage;
    return AOT_OK;
  }
  AOT_TRY(port_storage(b, LW_OUTPUT, i, row, &s->outputs[i].type));
  return lw_copy(b, &s->outputs[i].type, &v->t);
}

/* ---- a step, or a part of one: outputs in the memory of inputs (aot/graph.h, AOT_GRAPH_STEP) ---- */

/* Which output is where; before nodes are lowered, since loops are made for it. */
static aot_status_t find_homes(lw_build_t *b) {
  const aot_snap_port_t *in = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  const aot_snap_port_t *out = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  if (b->graph->kind != AOT_GRAPH_STEP && b->graph->kind != AOT_GRAPH_PART) return AOT_OK;
  uint32_t *of_leaf = lw_pool_alloc(b->pool, ((uint64_t)b->s->leaves.count + 1) * 4); /* input port + 1 */
  uint32_t offset = LW_NONE;
  b->home = lw_pool_alloc(b->pool, ((uint64_t)b->graph->n_outputs + 1) * 4);
  b->donated_input = lw_pool_alloc(b->pool, ((uint64_t)b->n_values + 1) * 4);
  if (!of_leaf || !b->home || !b->donated_input) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < b->graph->n_inputs; i++) {
    if (aot_role_is_leaf(in[i].role) && in[i].index < b->s->leaves.count) of_leaf[in[i].index] = i + 1;
    if (in[i].role == AOT_ROLE_OFFSET) offset = i;
  }
  for (uint32_t o = 0; o < b->graph->n_outputs; o++) {
    b->home[o] = out[o].role == AOT_ROLE_OFFSET ? offset : LW_NONE;
    if (out[o].role == AOT_ROLE_UPDATE && out[o].index < b->s->leaves.count && of_leaf[out[o].index])
      b->home[o] = of_leaf[out[o].index] - 1;
    if (b->home[o] != LW_NONE && out[o].value != AOT_NO_ID)
      b->donated_input[out[o].value - b->value_begin] = b->home[o] + 1;
  }
  return AOT_OK;
}

/* The value is in memory of its own, and nothing reads the input any more when that is first written; but for steps
 * that go element by element. */
static int can_go_home(const lw_build_t *b, const lw_tensor_t *t, const lw_tensor_t *input) {
  if (t->storage == LW_NONE || input->storage == LW_NONE || !can_be_port(b, t, input)) return 0;
  const lw_storage_t *value = &b->out->storages[t->storage], *home = &b->out->storages[input->storage];
  AOT_ASSERT(home->kind == LW_INPUT && value->kind == LW_ARENA);
  if (value->first == LW_NONE || home->last == LW_NONE) return 1;
  return home->last <= value->first && (home->last_apart == LW_NONE || home->last_apart < value->first);
}

/* A value that is in memory that others may write is stored separate until all have been read. */
static aot_status_t break_alias(lw_build_t *b, lw_tensor_t *t) {
  const lw_tensor_t from = *t;
  if (t->storage == LW_NONE || b->out->storages[t->storage].kind == LW_ARENA) return AOT_OK;
  lw_make_contiguous(t);
  AOT_TRY(lw_new_tensor(b, t));
  return lw_copy(b, t, &from);
}

static aot_status_t bind_donations(lw_build_t *b, const aot_snap_port_t *ports) {
  lw_schedule_t *s = b->out;
  lw_tensor_t *values = lw_pool_alloc(b->pool, ((uint64_t)s->n_outputs + 1) * sizeof *values);
  if (!values) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    if (b->home[i] == LW_NONE || ports[i].value == AOT_NO_ID) continue;
    AOT_ASSERT(b->home[i] < s->n_inputs);
    values[i] = lw_value(b, ports[i].value)->t;
    s->outputs[i] = s->inputs[b->home[i]];
    if (!lw_same_sizes(&values[i], &s->outputs[i].type) || values[i].dtype != s->outputs[i].type.dtype)
      return lw_fail(b->error, AOT_E_DATA_LOSS, "bad-type",
                     "output %u is not of the type of the input in whose memory it lies", i);
    AOT_TRY(break_alias(b, &values[i]));
  }
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    if (b->home[i] == LW_NONE || !values[i].dtype || !can_go_home(b, &values[i], &s->outputs[i].type)) continue;
    s->storages[values[i].storage].kind = LW_OUTPUT;
    s->storages[values[i].storage].index = i;
    s->outputs[i].type.storage = values[i].storage;
    values[i].dtype = 0;
  }
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    if (b->home[i] == LW_NONE || !values[i].dtype || lw_numel(&values[i]) == 0) continue;
    s->copied_nbytes += (uint64_t)lw_numel(&values[i]) * aot_dtype_size(values[i].dtype);
    AOT_TRY(lw_copy(b, &s->outputs[i].type, &values[i]));
  }
  return AOT_OK;
}

static aot_status_t bind_outputs(lw_build_t *b) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  lw_schedule_t *s = b->out;
  s->n_outputs = b->graph->n_outputs;
  s->outputs = lw_pool_alloc(b->pool, ((uint64_t)s->n_outputs + 1) * sizeof *s->outputs);
  if (!s->outputs) return lw_no_memory(b->error, "for the schedule");
  b->node = NULL;
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (!b->home || b->home[i] == LW_NONE) AOT_TRY(bind_output(b, i, ports[i].value));
  return b->home ? bind_donations(b, ports) : AOT_OK;
}

/* ---- nodes ---- */

static int writes_in_place(const lw_build_t *b, uint32_t i) {
  const custom_node_t *custom = custom_find(b->machine->custom, b->graph->node_begin + i);
  for (uint32_t k = 0; custom && k < custom->n_written; k++)
    if (custom->written[k].in_place) return 1;
  return 0;
}

/* A group of such a program runs where its last member is: one that begins before a write in place and ends after
 * it would read what was written. It is run node by node. */
static aot_status_t part_groups(lw_build_t *b, uint32_t *group) {
  const uint32_t n = b->graph->n_nodes;
  uint32_t n_writes = 0;
  uint32_t *writes = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * 4),
           *parted = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * 4);
  if (!writes || !parted) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < n; i++) writes[i] = n_writes += (uint32_t)writes_in_place(b, i);
  for (uint32_t i = 0; i < n; i++) {
    AOT_ASSERT(group[i] == LW_NONE || (group[i] >= i && group[i] < n));
    if (group[i] != LW_NONE && writes[i] != writes[group[i]]) parted[group[i]] = 1;
  }
  for (uint32_t i = 0; i < n && n_writes; i++)
    if (group[i] != LW_NONE && parted[group[i]]) group[i] = LW_NONE;
  return AOT_OK;
}

/* Groups in their order, and nodes that are in none. */
aot_status_t lw_lower_nodes(lw_build_t *b) {
  uint32_t n = b->graph->n_nodes;
  uint32_t *group = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * 4),
           *position = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * 4),
           *previous = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * 4);
  uint32_t *newest = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * 4),
           *order = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * 4);
  lw_schedule_item_t unit = {lw_pool_alloc(b->pool, ((uint64_t)n + 1) * 4), lw_pool_alloc(b->pool, (uint64_t)n + 1), 0};
  const lw_units_t units = {order, previous, &unit};
  if (!group || !position || !previous || !newest || !order || !unit.nodes || !unit.is_copy)
    return lw_no_memory(b->error, "for the schedule");
  if (b->machine->is_watched) AOT_TRY(lw_watch_inputs(b));
  AOT_TRY(lw_find_regions(b));
  AOT_TRY(lw_find_product_sums(b));
  AOT_TRY(lw_find_spared(b));
  AOT_TRY(lw_find_drawn(b));
  AOT_TRY(lw_find_residuals(b));
  AOT_TRY(lw_find_groups(b, group, position));
  if (b->has_inplace_custom_kernels) AOT_TRY(part_groups(b, group));
  b->group = group;
  AOT_TRY(lw_find_places(b));
  AOT_TRY(lw_find_pitches(b));
  for (uint32_t i = 0; i < n; i++) newest[i] = order[i] = LW_NONE;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t last = group[i] == LW_NONE ? i : group[i];
    AOT_ASSERT(last >= i && last < n); /* a group's last member */
    previous[i] = newest[last];
    newest[last] = i;
    AOT_ASSERT(last != i || (position[i] < n && order[position[i]] == LW_NONE)); /* a place of its own */
    if (last == i) order[position[i]] = i;
  }
  AOT_TRY(lw_find_chunks(b, &units));
  for (uint32_t at = 0; at <= n; at++) {
    const uint32_t first_step = b->out->n_steps;
    aot_status_t status = lw_lower_chunks(b, &units, at);
    const int is_alone = at < n && order[at] != LW_NONE && !lw_is_chunked(b, order[at]);
    if (status == AOT_OK && is_alone) {
      lw_find_unit(b, &units, order[at]);
      status = lw_lower_unit(b, &unit);
    }
    if (status == AOT_OK && is_alone && b->machine->is_watched) status = lw_watch_results(b, b->node, first_step);
    if (status != AOT_OK) {
      if (b->node) b->error->node = b->node->id;
      return status;
    }
  }
  return AOT_OK;
}

static aot_status_t build(lw_build_t *b, const int64_t *symbols, uint64_t n_symbols) {
  b->exprs = lw_pool_alloc(b->pool, ((uint64_t)b->s->exprs.count + 1) * sizeof *b->exprs);
  if (!b->exprs) return lw_no_memory(b->error, "for the schedule");
  sn_error_t wrong;
  if (sn_exprs_eval(b->s, symbols, n_symbols, b->exprs, &wrong) != AOT_OK)
    return lw_fail(b->error, AOT_E_RANGE, "bad-symbols", "%s", wrong.text);
  AOT_TRY(lw_find_ops(b));
  AOT_TRY(lw_open_graph(b));
  AOT_TRY(lw_bind_inputs(b));
  AOT_TRY(find_homes(b));
  AOT_TRY(lw_lower_nodes(b));
  AOT_TRY(bind_outputs(b));
  AOT_TRY(lw_plan_memory(b));
  AOT_ASSERT(b->depth == 0 && b->out->n_outputs == b->graph->n_outputs);
  AOT_TRY(lw_join_steps(b));
#ifdef AOT_CHECK_SCHEDULES
  AOT_TRY(lw_check_schedule(b));
#endif
  return AOT_OK;
}

enum { WORTH_CHUNKS = 64 }; /* the plan gets smaller by one part of so many */

typedef struct request { /* the arguments of lw_schedule_init */
  const aot_snapshot_t *s;
  uint32_t graph;
  const int64_t *symbols;
  uint64_t n_symbols;
  const lw_machine_t *machine;
  lw_error_t *error;
} request_t;

static aot_status_t build_with(const request_t *r, int makes_chunks, lw_schedule_t *out, int *has_chunks) {
  lw_build_t b;
  memset(out, 0, sizeof *out);
  memset(&b, 0, sizeof b);
  b.out = out;
  b.s = r->s;
  b.graph = AOT_SNAP_ROWS(r->s, aot_snap_graph_t, graphs) + r->graph;
  b.machine = r->machine;
  b.pool = &out->pool;
  b.error = r->error;
  b.makes_chunks = makes_chunks;
  const aot_status_t status = build(&b, r->symbols, r->n_symbols);
  AOT_ASSERT(status != AOT_OK || (out->undo.n_open == 0 && out->undo.size == 0)); /* all transactions ended */
  *has_chunks = lw_has_chunks(&b);
  free(b.values);
  return status;
}

static aot_status_t build_anew(const request_t *r, int makes_chunks, lw_schedule_t *out) {
  int has_chunks;
  lw_schedule_deinit(out);
  if (r->machine->target->begin_anew) r->machine->target->begin_anew(r->machine->self, r->s);
  return build_with(r, makes_chunks, out, &has_chunks);
}

/* What chunks of rows would bring, plans report: the graph is lowered without, then with them, and again without if
 * that was no gain. */
aot_status_t lw_schedule_init(lw_schedule_t *out, const aot_snapshot_t *s, uint32_t graph, const int64_t *symbols,
                              uint64_t n_symbols, const lw_machine_t *machine, lw_error_t *error) {
  const request_t r = {s, graph, symbols, n_symbols, machine, error};
  int has_chunks;
  error->node = AOT_NO_ID;
  aot_status_t status = build_with(&r, 0, out, &has_chunks);
  if (status != AOT_OK || !has_chunks) return status;
  const uint64_t whole = out->arena_nbytes;
  status = build_anew(&r, 1, out);
  const int is_smaller = status == AOT_OK && out->arena_nbytes <= whole - whole / WORTH_CHUNKS;
  if (is_smaller || (status != AOT_OK && status != LW_DECLINED)) return status;
  return build_anew(&r, 0, out);
}

void lw_schedule_deinit(lw_schedule_t *s) {
  free(s->steps);
  free(s->used);
  free(s->storages);
  free(s->undo.bytes);
  lw_watch_deinit(s->watch);
  lw_pool_deinit(&s->pool);
  memset(s, 0, sizeof *s);
}
