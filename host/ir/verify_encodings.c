/* Values that share memory are there in one way: a port of a leaf has its leaf's encoding and memory space, a result
 * that may be a view or the operand itself has its operand's. (Saved slots: verify_property.c; what opsets infer:
 * verify_types.c.) O(types) for a program that names none, else O(program). */
#include <aot/inline.h>
#include <ir/verifier.h>

static int names_any(const aot_prog_t *p) {
  for (uint32_t i = 1; i < p->types.n; i++)
    if (p->types.at[i].encoding.id != NONE || p->types.at[i].memory) return 1;
  return 0;
}

static void check_leaf_port(aoth_verifier_t *v, uint32_t graph, const aot_port_t *port, const char *side, uint32_t i) {
  const aot_prog_t *p = v->p;
  if (port->value.id == NONE || (port->role > AOT_ROLE_STATE && port->role != AOT_ROLE_UPDATE)) return;
  if (aoth_same_encoding(value_type_of(p, port->value.id), &p->leaves.at[port->index].type)) return;
  aoth_verify_report(v, p->values.at[port->value.id].def, "verify.encoding",
                     "%s: %s %u has another encoding than leaf %u", aoth_verify_graph_text(v, graph), side, i,
                     port->index - 1);
}

static void check_node(aoth_verifier_t *v, uint32_t node) {
  const aot_prog_t *p = v->p;
  const aoth_node_row_t *n = &p->nodes.at[node];
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, (aot_op_t){n->op});
  for (uint32_t i = 0; i < n->n_results; i++) {
    const uint32_t operand = aot_marked_operand(d, n->args, n->n_args, n->n_results, i);
    const uint32_t shared = operand ? n->operands[operand - 1] : NONE;
    if (shared == NONE || aoth_same_encoding(value_type_of(p, shared), value_type_of(p, n->first_result + i))) continue;
    aoth_verify_report(v, node, "verify.encoding",
                       "result %u may share memory with operand %u, and has another encoding", i, operand - 1);
  }
}

void aoth_verify_encodings(aoth_verifier_t *v) {
  const aot_prog_t *p = v->p;
  if (!names_any(p)) return;
  for (uint32_t g = 1; g < p->graphs.n && !aoth_verify_full(v); g++) {
    const aoth_graph_row_t *row = &p->graphs.at[g];
    if (!row->alive) continue;
    for (uint32_t i = 0; i < row->inputs.n; i++) check_leaf_port(v, g, &row->inputs.at[i], "input", i);
    for (uint32_t i = 0; i < row->outputs.n; i++) check_leaf_port(v, g, &row->outputs.at[i], "output", i);
    for (uint32_t n = row->first; n != NONE; n = p->nodes.at[n].next) check_node(v, n);
  }
}
