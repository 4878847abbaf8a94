#include "joint_arrays.h"
#include "snap_births.h"
#include "snap_expr.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

static const aot_snap_graph_t *find_joint(const aot_snapshot_t *s, uint32_t *out_row) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  for (uint32_t i = 1; i < s->graphs.count; i++)
    if (graphs[i].kind == AOT_GRAPH_JOINT) {
      *out_row = i;
      return &graphs[i];
    }
  return NULL;
}

/* Every expression at its symbols' hints; 0 for one that has no value there. */
static int64_t *eval_hints(const aot_snapshot_t *s) {
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols);
  int64_t *values = calloc((size_t)s->exprs.count + 1, sizeof *values);
  int64_t *hints = calloc((size_t)s->symbols.count + 1, sizeof *hints);
  sn_error_t error;
  int ok = values && hints;
  for (uint32_t i = 0; ok && i < s->symbols.count; i++) hints[i] = symbols[i].hint;
  ok = ok && sn_exprs_eval(s, hints, s->symbols.count, values, &error) == AOT_OK;
  for (uint32_t i = 0; ok && i < s->exprs.count; i++)
    if (values[i] == SN_NO_VALUE) values[i] = 0;
  free(hints);
  if (ok) return values;
  free(values);
  return NULL;
}

static uint64_t value_nbytes(const aot_snapshot_t *s, const aot_snap_value_t *v, const int64_t *hints) {
  if (v->kind == AOT_TYPE_SYMINT || v->kind == AOT_TYPE_SYMBOOL || v->kind == AOT_TYPE_SYMFLOAT) return 8;
  if (v->kind != AOT_TYPE_TENSOR) return 0;
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints);
  uint64_t n = aot_dtype_size(v->dtype);
  for (int32_t d = 0; d < v->rank; d++) n *= (uint64_t)sn_dim(ints[v->dims + (uint32_t)d], hints);
  return n;
}

/* Tokens: number 0 is the forward's chain of effects, 1 the backward's, which begins when the backward does. */
static int is_backward_token(const aot_snap_port_t *port) { return port->role == AOT_ROLE_TOKEN && port->index == 1; }

static uint8_t kind_of_port(const aot_snap_port_t *port) {
  if (is_backward_token(port)) return JG_INPUT_TANGENT;
  switch (port->role) {
    case AOT_ROLE_TANGENT: return JG_INPUT_TANGENT;
    case AOT_ROLE_PARAMETER:
    case AOT_ROLE_BUFFER:
    case AOT_ROLE_CONSTANT:
    case AOT_ROLE_STATE: return JG_INPUT_STATIC;
    default: return JG_INPUT_DYNAMIC;
  }
}

int jg_joint_alloc(jg_joint_t *j, size_t n_operands, uint32_t n_outputs) {
  size_t nodes = (size_t)j->n_nodes + 1, values = (size_t)j->n_values + 1;
  j->operand_begin = calloc(nodes, 4);
  j->operands = calloc(n_operands + 1, 4);
  j->result_begin = calloc(nodes, 4);
  j->op_flags = calloc(nodes, 4);
  j->node_flags = calloc(nodes, 4);
  j->op_name = calloc(nodes, sizeof *j->op_name);
  j->node_id = calloc(nodes, 4);
  j->late = calloc(nodes, 1);
  j->early = calloc(nodes, 1);
  j->def = calloc(values, 4);
  j->value_id = calloc(values, 4);
  j->nbytes = calloc(values, 8);
  j->input_kind = calloc(values, 1);
  j->user_begin = calloc(values, 4);
  j->users = calloc(n_operands + 1, 4);
  j->forward_outputs = calloc((size_t)n_outputs + 1, 4);
  j->gradients = calloc((size_t)n_outputs + 1, 4);
  return j->operand_begin && j->operands && j->result_begin && j->op_flags && j->node_flags && j->op_name &&
                 j->node_id && j->late && j->early && j->def && j->value_id && j->nbytes && j->input_kind &&
                 j->user_begin && j->users && j->forward_outputs && j->gradients
             ? 0
             : -2;
}

static void fill_values(jg_joint_t *j, const aot_snapshot_t *s, const aot_snap_graph_t *g, const int64_t *hints,
                        uint32_t *value_of_row) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + g->node_begin;
  uint32_t v = 0;
  for (uint32_t i = 0; i < g->n_inputs; i++, v++) {
    uint32_t row = ports[g->input_begin + i].value;
    value_of_row[row] = v;
    j->def[v] = JG_NONE;
    j->value_id[v] = values[row].id;
    j->nbytes[v] = value_nbytes(s, &values[row], hints);
    j->input_kind[v] = kind_of_port(&ports[g->input_begin + i]);
  }
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    j->result_begin[n] = v;
    for (uint32_t k = 0; k < nodes[n].n_results; k++, v++) {
      uint32_t row = nodes[n].result_begin + k;
      value_of_row[row] = v;
      j->def[v] = n;
      j->value_id[v] = values[row].id;
      j->nbytes[v] = value_nbytes(s, &values[row], hints);
    }
  }
  AOT_ASSERT(v == j->n_values);
  j->result_begin[j->n_nodes] = v;
}

/* What a node does once for all: that of its operator, and of the nodes of the regions that it runs. */
#define ONCE (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE)

/* bodies: by graph row. */
static uint32_t flags_of(const aot_snapshot_t *s, const aot_snap_node_t *node, const uint32_t *bodies) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  uint32_t flags = AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].flags;
  for (uint32_t a = 0; a < node->n_args; a++)
    if (args[a].kind == AOT_ARG_GRAPH) flags |= bodies[args[a].i];
  return flags;
}

/* Effects happen once, on the side where they are, whatever checkpointing says of the nodes around them. */
static void keep_effect(jg_joint_t *j, uint32_t n) {
  if (!(j->op_flags[n] & AOT_OP_EFFECT)) return;
  j->node_flags[n] &= ~(uint32_t)(AOT_NODE_MUST_RECOMPUTE | AOT_NODE_PREFER_RECOMPUTE);
  j->node_flags[n] |= AOT_NODE_MUST_SAVE;
  if ((j->node_flags[n] & AOT_NODE_BACKWARD) && j->result_begin[n + 1] == j->result_begin[n]) j->late[n] = 1;
}

/* A collective that a stage has tagged for itself, not a user with a checkpoint around it, is made again by all ranks:
 * gathering a parameter twice is what sharding it is for. */
static void allow_twice(jg_joint_t *j, uint32_t n, uint32_t region) {
  if (region == 0 && (j->node_flags[n] & AOT_NODE_MUST_RECOMPUTE)) j->op_flags[n] &= ~(uint32_t)AOT_OP_COLLECTIVE;
}

/* out: by graph row, what the nodes of a region do once; regions of regions, too. */
static void mark_bodies(const aot_snapshot_t *s, uint32_t *out) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  for (int changed = 1; changed;) { /* a round a level of nesting */
    changed = 0;
    for (uint32_t g = 1; g < s->graphs.count; g++) {
      const uint32_t before = out[g];
      for (uint32_t n = graphs[g].node_begin; n < graphs[g].node_begin + graphs[g].n_nodes; n++)
        if (graphs[g].kind == AOT_GRAPH_REGION) out[g] |= flags_of(s, &nodes[n], out) & ONCE;
      changed |= out[g] != before;
    }
  }
}

/* A node whose results report sizes or numbers that nothing else reports is an effect on the shape environment: it runs
 * in the forward, once, code that reads its results. births: by node row of the snapshot; bodies: by graph row. */
static void fill_nodes(jg_joint_t *j, const aot_snapshot_t *s, const aot_snap_graph_t *g, const uint8_t *births,
                       const uint32_t *bodies, const uint32_t *value_of_row) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + g->node_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands);
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  uint32_t at = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    j->operand_begin[n] = at;
    j->op_flags[n] = flags_of(s, &nodes[n], bodies);
    j->op_name[n] = aot_snap_text(s, ops[nodes[n].op].name);
    if (births[g->node_begin + n]) j->op_flags[n] |= AOT_OP_EFFECT;
    j->node_flags[n] = nodes[n].flags;
    keep_effect(j, n);
    allow_twice(j, n, nodes[n].region_tag);
    j->node_id[n] = nodes[n].id;
    for (uint32_t k = 0; k < nodes[n].n_operands; k++) {
      uint32_t row = operands[nodes[n].operand_begin + k];
      if (row != AOT_NO_ID) j->operands[at++] = value_of_row[row];
    }
  }
  j->operand_begin[j->n_nodes] = at;
}

/* Late is what reads something late. */
static void mark_late(jg_joint_t *j) {
  for (uint32_t n = 0; n < j->n_nodes; n++)
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1] && !j->late[n]; k++)
      j->late[n] = !jg_is_forward_value(j, j->operands[k]);
}

/* The user lists; user_begin counts, is then the write position, and is shifted back. */
static void fill_users(jg_joint_t *j) {
  memset(j->user_begin, 0, ((size_t)j->n_values + 1) * sizeof *j->user_begin);
  for (uint32_t k = 0; k < j->operand_begin[j->n_nodes]; k++) j->user_begin[j->operands[k] + 1]++;
  for (uint32_t v = 0; v < j->n_values; v++) j->user_begin[v + 1] += j->user_begin[v];
  for (uint32_t n = 0; n < j->n_nodes; n++)
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++)
      j->users[j->user_begin[j->operands[k]]++] = n;
  for (uint32_t v = j->n_values; v > 0; v--) j->user_begin[v] = j->user_begin[v - 1];
  j->user_begin[0] = 0;
  AOT_ASSERT(j->user_begin[j->n_values] == j->operand_begin[j->n_nodes]); /* each use once */
}

static void mark_cotangents(jg_joint_t *j, const jg_sides_t *sides) {
  AOT_ASSERT(sides->n_operands <= j->n_inputs);
  for (uint32_t i = sides->n_operands; i < j->n_inputs; i++) j->input_kind[i] = JG_INPUT_TANGENT;
}

/* sides: of a region's joint graph; NULL: ports have roles. */
static void fill_outputs(jg_joint_t *j, const aot_snapshot_t *s, const aot_snap_graph_t *g, const jg_sides_t *sides,
                         const uint32_t *value_of_row) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const aot_snap_port_t *port = &ports[g->output_begin + i];
    uint32_t v = port->value == AOT_NO_ID ? JG_NONE : value_of_row[port->value];
    if (sides ? i < sides->n_gradients : port->role == AOT_ROLE_GRADIENT || is_backward_token(port))
      j->gradients[j->n_gradients++] = v;
    else j->forward_outputs[j->n_forward_outputs++] = v;
  }
  AOT_ASSERT(j->n_gradients + j->n_forward_outputs == g->n_outputs);
}

static void mark_early(jg_joint_t *j) {
  memset(j->early, 0, j->n_nodes);
  for (uint32_t i = 0; i < j->n_forward_outputs; i++) {
    uint32_t v = j->forward_outputs[i];
    if (v != JG_NONE && j->def[v] != JG_NONE) j->early[j->def[v]] = 1;
  }
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    if (j->op_flags[n] & AOT_OP_EFFECT && !(j->node_flags[n] & AOT_NODE_BACKWARD) && !j->late[n]) j->early[n] = 1;
    if (!j->early[n]) continue;
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++)
      if (j->def[j->operands[k]] != JG_NONE) j->early[j->def[j->operands[k]]] = 1;
  }
}

void jg_joint_link(jg_joint_t *j) {
  mark_late(j);
  fill_users(j);
  mark_early(j);
}

static int has_tangents(const jg_joint_t *j) {
  for (uint32_t v = 0; v < j->n_inputs; v++)
    if (jg_is_tangent(j, v)) return 1;
  return 0;
}

/* A joint graph whose loss has its tangent of 1 built in has no tangent to descend from. Its backward begins where
 * nodes that no forward output needs read the loss (ones_like(loss)). Where none does, since 1 was folded, every such
 * node is late: the forward then computes its outputs and what is saved of them. */
static void mark_late_after_loss(jg_joint_t *j, uint32_t loss) {
  uint32_t n_late = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1] && !j->early[n]; k++) {
      const uint32_t v = j->operands[k];
      if (v == loss || (j->def[v] != JG_NONE && j->late[j->def[v]])) j->late[n] = 1;
    }
    n_late += j->late[n];
  }
  for (uint32_t n = 0; n_late == 0 && n < j->n_nodes; n++) j->late[n] = !j->early[n];
}

/* The value that the archive calls the loss, JG_NONE: none. */
static uint32_t find_loss(const aot_snapshot_t *s, const aot_snap_graph_t *g, const uint32_t *value_of_row) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const aot_snap_port_t *port = &ports[g->output_begin + i];
    if (port->role == AOT_ROLE_LOSS && port->value != AOT_NO_ID) return value_of_row[port->value];
  }
  return JG_NONE;
}

static int init(jg_joint_t *j, const aot_snapshot_t *s, const aot_snap_graph_t *g, const jg_sides_t *sides) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + g->node_begin;
  size_t n_operands = 0;
  j->snapshot = s;
  j->n_nodes = g->n_nodes;
  j->n_inputs = g->n_inputs;
  j->n_values = g->n_inputs;
  for (uint32_t n = 0; n < g->n_nodes; n++) {
    n_operands += nodes[n].n_operands;
    j->n_values += nodes[n].n_results;
  }
  int64_t *hints = eval_hints(s);
  uint32_t *value_of_row = calloc((size_t)s->values.count + 1, sizeof *value_of_row);
  uint8_t *births = calloc((size_t)s->nodes.count + 1, 1);
  uint32_t *bodies = calloc((size_t)s->graphs.count + 1, sizeof *bodies);
  int status = hints && value_of_row && births && bodies && sn_births(s, births) == 0 ? 0 : -2;
  if (status == 0) status = jg_joint_alloc(j, n_operands, g->n_outputs);
  if (status == 0) {
    mark_bodies(s, bodies);
    fill_values(j, s, g, hints, value_of_row);
    if (sides) mark_cotangents(j, sides);
    fill_nodes(j, s, g, births, bodies, value_of_row);
    fill_outputs(j, s, g, sides, value_of_row);
    jg_joint_link(j);
    if (!sides && !has_tangents(j)) mark_late_after_loss(j, find_loss(s, g, value_of_row));
  } else {
    jg_joint_deinit(j);
  }
  free(hints);
  free(births);
  free(bodies);
  free(value_of_row);
  return status;
}

int jg_joint_init(jg_joint_t *j, const aot_snapshot_t *s) {
  memset(j, 0, sizeof *j);
  const aot_snap_graph_t *g = find_joint(s, &j->graph);
  return g ? init(j, s, g, NULL) : -1;
}

int jg_joint_init_region(jg_joint_t *j, const aot_snapshot_t *s, uint32_t row, const jg_sides_t *sides) {
  memset(j, 0, sizeof *j);
  AOT_ASSERT(row != AOT_NO_ID && row < s->graphs.count);
  j->graph = row;
  return init(j, s, &AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[row], sides);
}

void jg_joint_deinit(jg_joint_t *j) {
  void *arrays[] = {j->operand_begin,   j->operands, j->result_begin, j->op_flags,   j->node_flags,
                    j->op_name,         j->node_id,  j->late,         j->early,      j->def,
                    j->value_id,        j->nbytes,   j->input_kind,   j->user_begin, j->users,
                    j->forward_outputs, j->gradients};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
  memset(j, 0, sizeof *j);
}
