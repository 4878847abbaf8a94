/* Reading the store: the functions of <aot/graph.h>. No function here changes a program. Nothing is reported about an
 * id that is gone: asking is legitimate, and the status is the answer. Each is O(1) but users (O(uses), writes at most
 * `capacity`) and graph_find (O(graphs)). */
#include <aot/assert.h>
#include <ir/program_store.h>
#include <string.h>

/* Copy a struct_size-led answer: no more than the caller's struct holds. */
static aot_status_t answer(aot_prog_t *p, void *out, const void *from, uint32_t own_size) {
  uint32_t size;
  memcpy(&size, out, sizeof size);
  if (size < sizeof size || size > 4096)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.struct-size", "struct_size of an answer is %u: set it before asking",
                         size);
  if (size > own_size) memset((char *)out + own_size, 0, size - own_size);
  memcpy((char *)out + sizeof size, (const char *)from + sizeof size,
         (size < own_size ? size : own_size) - sizeof size);
  return AOT_OK;
}

static aot_status_t status_of_row(uint32_t id, uint32_t n, int alive) {
  return !id || id >= n ? AOT_E_RANGE : alive ? AOT_OK : AOT_E_STALE;
}

static const aoth_graph_row_t *live_graph(const aot_prog_t *p, aot_graph_t g) {
  return graph_is_alive(p, g.id) ? &p->graphs.at[g.id] : NULL;
}

static aot_node_t node_of(uint32_t id) {
  aot_node_t n = {id};
  return n;
}

int32_t aoth_graph_has_property(aot_prog_t *p, aot_str_t name) { return aoth_properties_have(p->properties, name); }
uint32_t aoth_graph_n_graphs(aot_prog_t *p) { return p->graphs.n; }

aot_status_t aoth_graph_graph_info(aot_prog_t *p, aot_graph_t g, int32_t *out_kind, aot_str_t *out_name) {
  AOT_TRY(status_of_row(g.id, p->graphs.n, graph_is_alive(p, g.id)));
  if (out_kind) *out_kind = p->graphs.at[g.id].kind;
  if (out_name) *out_name = p->graphs.at[g.id].name;
  return AOT_OK;
}

aot_graph_t aoth_graph_graph_find(aot_prog_t *p, int32_t kind) {
  aot_graph_t g = {1};
  for (; g.id < p->graphs.n; g.id++)
    if (p->graphs.at[g.id].alive && p->graphs.at[g.id].kind == kind) return g;
  g.id = NONE;
  return g;
}

uint32_t aoth_graph_n_leaves(aot_prog_t *p) { return p->leaves.n; }

aot_status_t aoth_graph_leaf_info(aot_prog_t *p, aot_leaf_t l, aot_leaf_info_t *out) {
  AOT_TRY(status_of_row(l.id, p->leaves.n, 1));
  return answer(p, out, &p->leaves.at[l.id], (uint32_t)sizeof *out);
}

uint32_t aoth_graph_n_rules(aot_prog_t *p) { return p->rules.n; }

aot_status_t aoth_graph_rule(aot_prog_t *p, uint32_t i, aot_rule_t *out) {
  if (i >= p->rules.n) return AOT_E_RANGE;
  *out = p->rules.at[i];
  return AOT_OK;
}

uint32_t aoth_graph_n_inputs(aot_prog_t *p, aot_graph_t g) {
  return live_graph(p, g) ? p->graphs.at[g.id].inputs.n : 0;
}
uint32_t aoth_graph_n_outputs(aot_prog_t *p, aot_graph_t g) {
  return live_graph(p, g) ? p->graphs.at[g.id].outputs.n : 0;
}

const aot_port_t *aoth_graph_inputs(aot_prog_t *p, aot_graph_t g) {
  return live_graph(p, g) ? p->graphs.at[g.id].inputs.at : NULL;
}

const aot_port_t *aoth_graph_outputs(aot_prog_t *p, aot_graph_t g) {
  return live_graph(p, g) ? p->graphs.at[g.id].outputs.at : NULL;
}

uint32_t aoth_graph_n_nodes(aot_prog_t *p) { return p->nodes.n; }
uint32_t aoth_graph_n_values(aot_prog_t *p) { return p->values.n; }
aot_node_t aoth_graph_first(aot_prog_t *p, aot_graph_t g) {
  return node_of(live_graph(p, g) ? p->graphs.at[g.id].first : NONE);
}
aot_node_t aoth_graph_last(aot_prog_t *p, aot_graph_t g) {
  return node_of(live_graph(p, g) ? p->graphs.at[g.id].last : NONE);
}

aot_node_t aoth_graph_next(aot_prog_t *p, aot_node_t n) {
  touch(p, n.id);
  const uint32_t next = node_is_alive(p, n.id) ? p->nodes.at[n.id].next : NONE;
  AOT_ASSERT(next == NONE || (node_is_alive(p, next) && p->nodes.at[next].prev == n.id));
  return node_of(next);
}

aot_node_t aoth_graph_prev(aot_prog_t *p, aot_node_t n) {
  touch(p, n.id);
  return node_of(node_is_alive(p, n.id) ? p->nodes.at[n.id].prev : NONE);
}

aot_status_t aoth_graph_node_info(aot_prog_t *p, aot_node_t n, aot_node_info_t *out) {
  touch(p, n.id);
  AOT_TRY(status_of_row(n.id, p->nodes.n, node_is_alive(p, n.id)));
  const aoth_node_row_t *r = &p->nodes.at[n.id];
  AOT_ASSERT(r->first_result + r->n_results <= p->values.n && r->slot_begin + r->n_operands <= p->slots.n);
  aot_node_info_t info = {
      .struct_size = (uint32_t)sizeof info,
      .flags = r->flags,
      .n_args = r->n_args,
      .n_operands = r->n_operands,
      .n_results = r->n_results,
      .region_tag = r->region_tag,
      .args = r->args,
      .operands = r->operands,
  };
  info.op.id = r->op;
  info.graph.id = r->graph;
  info.first_result.id = r->n_results ? r->first_result : NONE;
  info.origin.id = r->origin;
  if (out->struct_size == sizeof info) {
    *out = info;
    return AOT_OK;
  }
  return answer(p, out, &info, (uint32_t)sizeof info);
}

aot_status_t aoth_graph_value_type(aot_prog_t *p, aot_value_t v, aot_type_t *out) {
  AOT_TRY(status_of_row(v.id, p->values.n, value_is_alive(p, v.id)));
  *out = *value_type_of(p, v.id);
  AOT_ASSERT(aoth_type_is_live(p, out)); /* rows of types outlive what undo takes back; values do not reach them */
  return AOT_OK;
}

aot_node_t aoth_graph_value_def(aot_prog_t *p, aot_value_t v) {
  return node_of(value_is_alive(p, v.id) ? p->values.at[v.id].def : NONE);
}

uint32_t aoth_graph_value_index(aot_prog_t *p, aot_value_t v) {
  return value_is_alive(p, v.id) ? p->values.at[v.id].index : 0;
}

aot_graph_t aoth_graph_value_graph(aot_prog_t *p, aot_value_t v) {
  aot_graph_t g = {value_is_alive(p, v.id) ? p->values.at[v.id].graph : NONE};
  return g;
}

uint32_t aoth_graph_n_uses(aot_prog_t *p, aot_value_t v) {
  return value_is_alive(p, v.id) ? p->values.at[v.id].n_uses : 0;
}

uint32_t aoth_graph_users(aot_prog_t *p, aot_value_t v, aot_node_t *out, uint32_t capacity) {
  uint32_t n = 0;
  if (!value_is_alive(p, v.id)) return 0;
  for (uint32_t slot = p->values.at[v.id].first_use; slot != NONE; slot = p->slots.at[slot].next) {
    uint32_t owner = p->slots.at[slot].owner;
    if (owner & SLOT_OUTPUT) continue;
    if (n == capacity) break;
    out[n++].id = owner;
  }
  AOT_ASSERT(n <= p->values.at[v.id].n_uses);
  return n;
}

aot_str_t aoth_graph_value_name(aot_prog_t *p, aot_value_t v) {
  return p->names.at[value_is_alive(p, v.id) ? p->values.at[v.id].name : 0];
}

uint32_t aoth_graph_n_ops(aot_prog_t *p) { return aoth_ops_count(p->ops); }
aot_op_t aoth_graph_op_find(aot_prog_t *p, aot_str_t name) { return aoth_ops_find(p->ops, name); }
const aot_op_desc_t *aoth_graph_op_desc(aot_prog_t *p, aot_op_t op) { return aoth_ops_desc(p->ops, op); }

aot_status_t aoth_graph_origin_info(aot_prog_t *p, aot_origin_t o, aot_origin_info_t *out) {
  AOT_TRY(status_of_row(o.id, p->origins.n, 1));
  return answer(p, out, &p->origins.at[o.id], (uint32_t)sizeof *out);
}

uint32_t aoth_graph_n_encodings(aot_prog_t *p) { return p->encodings.n; }

aot_status_t aoth_graph_encoding_info(aot_prog_t *p, aot_encoding_t e, aot_encoding_info_t *out) {
  AOT_TRY(status_of_row(e.id, p->encodings.n, 1));
  return answer(p, out, &p->encodings.at[e.id], (uint32_t)sizeof *out);
}

uint32_t aoth_graph_n_symbols(aot_prog_t *p) { return p->symbols.n; }

aot_status_t aoth_graph_symbol_info(aot_prog_t *p, uint32_t symbol, aot_symbol_info_t *out) {
  if (symbol >= p->symbols.n) return AOT_E_RANGE;
  return answer(p, out, &p->symbols.at[symbol], (uint32_t)sizeof *out);
}

aot_status_t aoth_graph_expr_info(aot_prog_t *p, uint32_t expr, aot_expr_info_t *out) {
  AOT_TRY(status_of_row(expr, p->exprs.n, 1));
  *out = p->exprs.at[expr].info;
  return AOT_OK;
}
