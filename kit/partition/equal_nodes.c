#include "equal_nodes.h"

#include "kit/base/map.h"
#include "kit/base/splitmix.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdlib.h>
#include <string.h>

#define TAGS (AOT_NODE_MUST_SAVE | AOT_NODE_PREFER_SAVE | AOT_NODE_MUST_RECOMPUTE | AOT_NODE_PREFER_RECOMPUTE)
#define NEVER (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_REGION | AOT_OP_WRITES)

typedef struct search {
  const aot_snapshot_t *s;
  const aot_snap_graph_t *g;
  const aot_snap_node_t *nodes; /* of the graph */
  const aot_snap_value_t *values;
  uint32_t *same;     /* by value id */
  uint32_t *root;     /* by value row: the value whose memory it looks at */
  uint8_t *is_output; /* by value row, of roots */
  kit_map_t distinct; /* nodes */
} search_t;

/* What an operand slot holds, up to equality. */
static uint32_t operand(const search_t *f, const aot_snap_node_t *n, uint32_t k) {
  const uint32_t row = AOT_SNAP_ROWS(f->s, uint32_t, operands)[n->operand_begin + k];
  return f->same[f->values[row].id];
}

/* The elements of a list argument that is no operand, as bytes. */
static const void *list_of(const aot_snapshot_t *s, const aot_snap_arg_t *a, size_t *out_size) {
  switch (a->kind) {
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: *out_size = (size_t)a->n * 8; return AOT_SNAP_ROWS(s, int64_t, ints) + a->i;
    case AOT_ARG_FLOATS: *out_size = (size_t)a->n * 8; return AOT_SNAP_ROWS(s, double, floats) + a->i;
    case AOT_ARG_STR: *out_size = a->n; return AOT_SNAP_ROWS(s, char, chars) + a->i;
    default: *out_size = 0; return NULL;
  }
}

static int is_scalar(int32_t kind) {
  return kind == AOT_ARG_INT || kind == AOT_ARG_FLOAT || kind == AOT_ARG_BOOL ||
         (kind >= AOT_ARG_DTYPE && kind <= AOT_ARG_OP);
}

static uint64_t hash_node(const search_t *f, const aot_snap_node_t *n) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(f->s, aot_snap_arg_t, args) + n->arg_begin;
  uint64_t hash = kit_mix64(n->op, n->n_args);
  for (uint32_t k = 0; k < n->n_operands; k++) hash = kit_mix64(hash, operand(f, n, k));
  for (uint32_t i = 0; i < n->n_args; i++) {
    size_t size = 0;
    const void *bytes = list_of(f->s, &args[i], &size);
    hash = kit_mix64(hash, (uint64_t)args[i].kind << 32 | args[i].n);
    if (is_scalar(args[i].kind)) hash = kit_mix64(hash, (uint64_t)args[i].i);
    hash = kit_mix_bytes(hash, bytes, size);
  }
  return hash;
}

static int args_equal(const search_t *f, const aot_snap_arg_t *a, const aot_snap_arg_t *b) {
  size_t size_a = 0, size_b = 0;
  if (a->kind != b->kind || a->n != b->n) return 0;
  if (is_scalar(a->kind)) return a->i == b->i;
  const void *x = list_of(f->s, a, &size_a), *y = list_of(f->s, b, &size_b);
  return size_a == size_b && (size_a == 0 || memcmp(x, y, size_a) == 0);
}

static int types_equal(const search_t *f, const aot_snap_value_t *a, const aot_snap_value_t *b) {
  const int64_t *ints = AOT_SNAP_ROWS(f->s, int64_t, ints);
  if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank || a->device != b->device ||
      a->device_index != b->device_index || a->memory != b->memory || a->encoding != b->encoding ||
      a->offset != b->offset || a->expr != b->expr)
    return 0;
  return a->rank <= 0 || memcmp(ints + a->dims, ints + b->dims, (size_t)a->rank * 2 * sizeof *ints) == 0;
}

static int nodes_equal(const void *search, uint32_t node, const void *other) {
  const search_t *f = search;
  const aot_snap_node_t *a = &f->nodes[node], *b = other;
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(f->s, aot_snap_arg_t, args);
  if (a->op != b->op || a->n_args != b->n_args || a->n_operands != b->n_operands || a->n_results != b->n_results)
    return 0;
  for (uint32_t k = 0; k < a->n_operands; k++)
    if (operand(f, a, k) != operand(f, b, k)) return 0;
  for (uint32_t i = 0; i < a->n_args; i++)
    if (!args_equal(f, &args[a->arg_begin + i], &args[b->arg_begin + i])) return 0;
  for (uint32_t r = 0; r < a->n_results; r++)
    if (!types_equal(f, &f->values[a->result_begin + r], &f->values[b->result_begin + r])) return 0;
  return 1;
}

static int may_merge(const search_t *f, const aot_snap_node_t *n) {
  const uint32_t flags = AOT_SNAP_ROWS(f->s, aot_snap_op_t, ops)[n->op].flags;
  if ((flags & NEVER) || (n->flags & TAGS) || n->n_results == 0) return 0;
  for (uint32_t r = 0; r < n->n_results; r++)
    if (f->is_output[f->root[n->result_begin + r]]) return 0;
  return 1;
}

/* Views look at the memory of their first operand. */
static void find_roots(search_t *f) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(f->s, aot_snap_port_t, ports) + f->g->output_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(f->s, uint32_t, operands);
  for (uint32_t v = 1; v < f->s->values.count; v++) f->root[v] = v;
  for (uint32_t i = 0; i < f->g->n_nodes; i++) {
    const aot_snap_node_t *n = &f->nodes[i];
    const int is_view = (AOT_SNAP_ROWS(f->s, aot_snap_op_t, ops)[n->op].flags & AOT_OP_VIEW) != 0;
    const uint32_t base = is_view && n->n_operands ? operands[n->operand_begin] : AOT_NO_ID;
    for (uint32_t r = 0; r < n->n_results && base != AOT_NO_ID; r++) f->root[n->result_begin + r] = f->root[base];
  }
  for (uint32_t i = 0; i < f->g->n_outputs; i++)
    if (ports[i].value != AOT_NO_ID) f->is_output[f->root[ports[i].value]] = 1;
}

static int merge_all(search_t *f) {
  for (uint32_t i = 0; i < f->g->n_nodes; i++) {
    const aot_snap_node_t *n = &f->nodes[i];
    if (!may_merge(f, n)) continue;
    const uint32_t same = kit_map_find_or_add(&f->distinct, hash_node(f, n), nodes_equal, f, n, i);
    if (same == KIT_MAP_NONE) return -2;
    if (same == i) continue;
    const aot_snap_node_t *first = &f->nodes[same];
    for (uint32_t r = 0; r < n->n_results; r++)
      f->same[f->values[n->result_begin + r].id] = f->values[first->result_begin + r].id;
  }
  return 0;
}

int pt_find_equal(const aot_snapshot_t *s, uint32_t graph_row, uint32_t n_ids, uint32_t *out_same) {
  search_t f = {.s = s, .g = &AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[graph_row], .same = out_same};
  f.nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + f.g->node_begin;
  f.values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  f.root = calloc((size_t)s->values.count + 1, sizeof *f.root);
  f.is_output = calloc((size_t)s->values.count + 1, 1);
  int status = f.root && f.is_output ? 0 : -2;
  for (uint32_t id = 0; id < n_ids; id++) out_same[id] = id;
  if (status == 0) {
    find_roots(&f);
    status = merge_all(&f);
  }
  free(f.root);
  free(f.is_output);
  kit_map_deinit(&f.distinct);
  return status;
}

/* By node: a graph output or an effect needs it. */
static void find_needed(const jg_joint_t *j, uint8_t *needed) {
  for (uint32_t i = 0; i < j->n_forward_outputs + j->n_gradients; i++) {
    const uint32_t v = i < j->n_forward_outputs ? j->forward_outputs[i] : j->gradients[i - j->n_forward_outputs];
    if (v != JG_NONE && j->def[v] != JG_NONE) needed[j->def[v]] = 1;
  }
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    if (j->op_flags[n] & AOT_OP_EFFECT) needed[n] = 1;
    for (uint32_t k = j->operand_begin[n]; needed[n] && k < j->operand_begin[n + 1]; k++)
      if (j->def[j->operands[k]] != JG_NONE) needed[j->def[j->operands[k]]] = 1;
  }
}

static void drop_operands(jg_joint_t *j, const uint8_t *needed) {
  uint32_t at = 0;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    const uint32_t begin = j->operand_begin[n], end = j->operand_begin[n + 1];
    j->operand_begin[n] = at;
    for (uint32_t k = begin; needed[n] && k < end; k++) j->operands[at++] = j->operands[k];
  }
  j->operand_begin[j->n_nodes] = at;
}

int pt_joint_merge(jg_joint_t *j, uint32_t n_ids, const uint32_t *same) {
  uint32_t *index = malloc(((size_t)n_ids + 1) * sizeof *index);
  uint8_t *needed = calloc((size_t)j->n_nodes + 1, 1);
  const int status = index && needed ? 0 : -2;
  if (status == 0) {
    for (uint32_t v = 0; v < j->n_values; v++) index[j->value_id[v]] = v;
    for (uint32_t k = 0; k < j->operand_begin[j->n_nodes]; k++)
      j->operands[k] = index[same[j->value_id[j->operands[k]]]];
    find_needed(j, needed);
    drop_operands(j, needed);
    jg_joint_link(j);
    for (uint32_t n = 0; n < j->n_nodes; n++)
      if (j->early[n]) j->late[n] = 0; /* of a joint graph without tangents: it represented a node of the forward */
  }
  free(index);
  free(needed);
  return status;
}
