#include <cli/ops/op_case_shares.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static aot_node_t find_call(aot_prog_t *prog, aot_op_t op, aot_node_info_t *out) {
  const aot_graph_t graph = aoth_graph_graph_find(prog, AOT_GRAPH_FORWARD);
  for (aot_node_t n = aoth_graph_first(prog, graph); n.id != AOT_NO_ID; n = aoth_graph_next(prog, n))
    if (aoth_graph_node_info(prog, n, out) == AOT_OK && out->op.id == op.id) return n;
  return aot_no_node();
}

/* types: room for the operands and the results. */
static aot_status_t ask(aot_prog_t *prog, const aot_node_info_t *n, aot_type_t *types, uint32_t *out) {
  const aot_call_t call = {
      .struct_size = sizeof call,
      .args = n->args,
      .n_args = n->n_args,
      .operands = types,
      .n_operands = n->n_operands,
      .results = types + n->n_operands,
      .n_results = n->n_results,
  };
  for (uint32_t k = 0; k < n->n_operands; k++)
    if (n->operands[k] != AOT_NO_ID) AOT_TRY(aoth_graph_value_type(prog, (aot_value_t){n->operands[k]}, &types[k]));
  for (uint32_t i = 0; i < n->n_results; i++)
    AOT_TRY(aoth_graph_value_type(prog, (aot_value_t){n->first_result.id + i}, &types[n->n_operands + i]));
  return aoth_edit_aliases(prog, n->op, &call, out);
}

/* The recording's name of an operand, counted from 1; NULL: none. */
static const char *path_of(aot_prog_t *prog, const aoth_case_program_t *program, const aot_node_info_t *n,
                           uint32_t operand) {
  const aot_graph_t graph = aoth_graph_graph_find(prog, AOT_GRAPH_FORWARD);
  const aot_port_t *inputs = aoth_graph_inputs(prog, graph);
  for (uint32_t i = 0; operand && i < program->n_inputs && i < aoth_graph_n_inputs(prog, graph); i++)
    if (inputs[i].value.id == n->operands[operand - 1]) return program->paths[i];
  return NULL;
}

static int agrees(json_t *recorded, const char *path) {
  const char *wanted = json_string_value(recorded);
  if (!wanted) return !path;
  return *wanted == '\0' || (path && strcmp(wanted, path) == 0); /* "": no elements, anything may be said */
}

static const char *said(const char *path) { return path ? path : "nothing"; }

aot_status_t aoth_case_shares(aot_prog_t *prog, aot_op_t op, const aoth_case_program_t *program, json_t *recorded,
                              char *out_why, size_t capacity) {
  aot_node_info_t n = {.struct_size = sizeof n};
  if (find_call(prog, op, &n).id == AOT_NO_ID) return AOT_E_NOT_FOUND;
  aot_type_t *types = calloc((size_t)n.n_operands + n.n_results + 1, sizeof *types);
  uint32_t *memory = calloc((size_t)n.n_results + 1, sizeof *memory);
  aot_status_t status = types && memory ? ask(prog, &n, types, memory) : AOT_E_EXHAUSTED;
  for (uint32_t i = 0; status == AOT_OK && i < n.n_results && i < json_array_size(recorded); i++) {
    json_t *wanted = json_array_get(recorded, i);
    const char *path = path_of(prog, program, &n, memory[i]);
    if (agrees(wanted, path)) continue;
    snprintf(out_why, capacity, "result %u shares memory with %s by the operator set, with %s when recorded", i,
             said(path), said(json_string_value(wanted)));
    status = AOT_E_INVALID;
  }
  free(types);
  free(memory);
  return status;
}
