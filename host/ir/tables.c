/* Fills the function tables handed to plugins from the functions of the store. */
#include <ir/program.h>
#include <ir/tables.h>
#include <string.h>

void aoth_fill_graph_api(aot_graph_api_t *out) {
  memset(out, 0, sizeof *out);
  out->head.struct_size = (uint32_t)sizeof *out;
  out->has_property = aoth_graph_has_property;
  out->n_graphs = aoth_graph_n_graphs;
  out->graph_info = aoth_graph_graph_info;
  out->graph_find = aoth_graph_graph_find;
  out->n_leaves = aoth_graph_n_leaves;
  out->leaf_info = aoth_graph_leaf_info;
  out->n_rules = aoth_graph_n_rules;
  out->rule = aoth_graph_rule;
  out->n_inputs = aoth_graph_n_inputs;
  out->n_outputs = aoth_graph_n_outputs;
  out->inputs = aoth_graph_inputs;
  out->outputs = aoth_graph_outputs;
  out->n_nodes = aoth_graph_n_nodes;
  out->n_values = aoth_graph_n_values;
  out->first = aoth_graph_first;
  out->last = aoth_graph_last;
  out->next = aoth_graph_next;
  out->prev = aoth_graph_prev;
  out->node_info = aoth_graph_node_info;
  out->value_type = aoth_graph_value_type;
  out->value_def = aoth_graph_value_def;
  out->value_index = aoth_graph_value_index;
  out->value_graph = aoth_graph_value_graph;
  out->n_uses = aoth_graph_n_uses;
  out->users = aoth_graph_users;
  out->value_name = aoth_graph_value_name;
  out->n_ops = aoth_graph_n_ops;
  out->op_find = aoth_graph_op_find;
  out->op_desc = aoth_graph_op_desc;
  out->origin_info = aoth_graph_origin_info;
  out->n_encodings = aoth_graph_n_encodings;
  out->encoding_info = aoth_graph_encoding_info;
  out->n_symbols = aoth_graph_n_symbols;
  out->symbol_info = aoth_graph_symbol_info;
  out->expr_info = aoth_graph_expr_info;
  out->dim_hint = aoth_graph_dim_hint;
  out->snapshot = aoth_graph_snapshot;
}

void aoth_fill_edit_api(aot_edit_api_t *out) {
  memset(out, 0, sizeof *out);
  out->head.struct_size = (uint32_t)sizeof *out;
  out->graph_create = aoth_edit_graph_create;
  out->graph_erase = aoth_edit_graph_erase;
  out->input_add = aoth_edit_input_add;
  out->input_erase = aoth_edit_input_erase;
  out->output_add = aoth_edit_output_add;
  out->output_set = aoth_edit_output_set;
  out->outputs_clear = aoth_edit_outputs_clear;
  out->node_create = aoth_edit_node_create;
  out->node_erase = aoth_edit_node_erase;
  out->operand_set = aoth_edit_operand_set;
  out->arg_set = aoth_edit_arg_set;
  out->uses_replace = aoth_edit_uses_replace;
  out->type_set = aoth_edit_type_set;
  out->flags_set = aoth_edit_flags_set;
  out->name_set = aoth_edit_name_set;
  out->note = aoth_edit_note;
  out->leaf_create = aoth_edit_leaf_create;
  out->rule_add = aoth_edit_rule_add;
  out->origin_create = aoth_edit_origin_create;
  out->encoding_create = aoth_edit_encoding_create;
  out->symbol_create = aoth_edit_symbol_create;
  out->dim_make = aoth_edit_dim_make;
  out->infer = aoth_edit_infer;
  out->decompose = aoth_edit_decompose;
  out->functional_form = aoth_edit_functional_form;
  out->view_inverse = aoth_edit_view_inverse;
  out->aliases = aoth_edit_aliases;
}

static aot_status_t on_diag(const aot_host_t *host, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)host;
  return aoth_report_diag(ctx, d);
}

const aot_host_t *aoth_kit_host(aoth_kit_host_t *out) {
  aoth_fill_graph_api(&out->graph);
  aoth_fill_edit_api(&out->edit);
  out->host = (aot_host_t){
      .head = {.struct_size = sizeof out->host}, .graph = &out->graph, .edit = &out->edit, .diag = on_diag};
  return &out->host;
}
