/* The functions after aot_graph_api_t and aot_edit_api_t, one for each member, with the same meaning (<aot/graph.h>,
 * <aot/edit.h>). The host calls them directly; tables.c puts them into the tables that plugins see. */
#ifndef AOTH_TABLES_H
#define AOTH_TABLES_H

#include <aot/edit.h>
#include <aot/ext/size_guards.h>
#include <aot/graph.h>
#include <aot/host.h>

/* ---- graph.h ---- */
int32_t aoth_graph_has_property(aot_prog_t *p, aot_str_t name);
uint32_t aoth_graph_n_graphs(aot_prog_t *p);
aot_status_t aoth_graph_graph_info(aot_prog_t *p, aot_graph_t g, int32_t *out_kind, aot_str_t *out_name);
aot_graph_t aoth_graph_graph_find(aot_prog_t *p, int32_t kind);
uint32_t aoth_graph_n_leaves(aot_prog_t *p);
aot_status_t aoth_graph_leaf_info(aot_prog_t *p, aot_leaf_t l, aot_leaf_info_t *out);
uint32_t aoth_graph_n_rules(aot_prog_t *p);
aot_status_t aoth_graph_rule(aot_prog_t *p, uint32_t i, aot_rule_t *out);
uint32_t aoth_graph_n_inputs(aot_prog_t *p, aot_graph_t g);
uint32_t aoth_graph_n_outputs(aot_prog_t *p, aot_graph_t g);
const aot_port_t *aoth_graph_inputs(aot_prog_t *p, aot_graph_t g);
const aot_port_t *aoth_graph_outputs(aot_prog_t *p, aot_graph_t g);
uint32_t aoth_graph_n_nodes(aot_prog_t *p);
uint32_t aoth_graph_n_values(aot_prog_t *p);
aot_node_t aoth_graph_first(aot_prog_t *p, aot_graph_t g);
aot_node_t aoth_graph_last(aot_prog_t *p, aot_graph_t g);
aot_node_t aoth_graph_next(aot_prog_t *p, aot_node_t n);
aot_node_t aoth_graph_prev(aot_prog_t *p, aot_node_t n);
aot_status_t aoth_graph_node_info(aot_prog_t *p, aot_node_t n, aot_node_info_t *out);
aot_status_t aoth_graph_value_type(aot_prog_t *p, aot_value_t v, aot_type_t *out);
aot_node_t aoth_graph_value_def(aot_prog_t *p, aot_value_t v);
uint32_t aoth_graph_value_index(aot_prog_t *p, aot_value_t v);
aot_graph_t aoth_graph_value_graph(aot_prog_t *p, aot_value_t v);
uint32_t aoth_graph_n_uses(aot_prog_t *p, aot_value_t v);
uint32_t aoth_graph_users(aot_prog_t *p, aot_value_t v, aot_node_t *out, uint32_t capacity);
aot_str_t aoth_graph_value_name(aot_prog_t *p, aot_value_t v);
uint32_t aoth_graph_n_ops(aot_prog_t *p);
aot_op_t aoth_graph_op_find(aot_prog_t *p, aot_str_t name);
const aot_op_desc_t *aoth_graph_op_desc(aot_prog_t *p, aot_op_t op);
aot_status_t aoth_graph_origin_info(aot_prog_t *p, aot_origin_t o, aot_origin_info_t *out);
uint32_t aoth_graph_n_encodings(aot_prog_t *p);
aot_status_t aoth_graph_encoding_info(aot_prog_t *p, aot_encoding_t e, aot_encoding_info_t *out);
uint32_t aoth_graph_n_symbols(aot_prog_t *p);
aot_status_t aoth_graph_symbol_info(aot_prog_t *p, uint32_t symbol, aot_symbol_info_t *out);
aot_status_t aoth_graph_expr_info(aot_prog_t *p, uint32_t expr, aot_expr_info_t *out);
int64_t aoth_graph_dim_hint(aot_prog_t *p, int64_t dim);
uint32_t aoth_graph_n_guards(aot_prog_t *p);
aot_status_t aoth_graph_guard(aot_prog_t *p, uint32_t i, aot_guard_info_t *out);
aot_status_t aoth_graph_snapshot(aot_prog_t *p, const struct aot_snapshot **out);

/* ---- edit.h ---- */
aot_status_t aoth_edit_graph_create(aot_prog_t *p, int32_t kind, aot_str_t name, aot_graph_t *out);
aot_status_t aoth_edit_graph_erase(aot_prog_t *p, aot_graph_t g);
aot_status_t aoth_edit_input_add(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, const aot_type_t *t,
                                 aot_str_t name, aot_value_t *out);
aot_status_t aoth_edit_input_erase(aot_prog_t *p, aot_graph_t g, uint32_t i);
aot_status_t aoth_edit_output_add(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, aot_value_t v,
                                  aot_str_t name);
aot_status_t aoth_edit_output_set(aot_prog_t *p, aot_graph_t g, uint32_t i, aot_value_t v);
aot_status_t aoth_edit_outputs_clear(aot_prog_t *p, aot_graph_t g);
aot_status_t aoth_edit_node_create(aot_prog_t *p, aot_graph_t g, const aot_node_spec_t *s, aot_node_t before,
                                   aot_node_t *out);
aot_status_t aoth_edit_node_erase(aot_prog_t *p, aot_node_t n);
aot_status_t aoth_edit_operand_set(aot_prog_t *p, aot_node_t n, uint32_t operand, aot_value_t v);
aot_status_t aoth_edit_arg_set(aot_prog_t *p, aot_node_t n, uint32_t arg, const aot_arg_t *a);
aot_status_t aoth_edit_uses_replace(aot_prog_t *p, aot_value_t from, aot_value_t to);
aot_status_t aoth_edit_type_set(aot_prog_t *p, aot_value_t v, const aot_type_t *t);
aot_status_t aoth_edit_flags_set(aot_prog_t *p, aot_node_t n, uint32_t flags);
aot_status_t aoth_edit_name_set(aot_prog_t *p, aot_value_t v, aot_str_t name);
aot_status_t aoth_edit_note(aot_prog_t *p, aot_node_t n, aot_str_t text);
aot_status_t aoth_edit_leaf_create(aot_prog_t *p, const aot_leaf_info_t *leaf, aot_leaf_t *out);
/* Another type and contents, which are copied, for a leaf of a program that was just read. Not journalled. */
aot_status_t aoth_edit_leaf_part(aot_prog_t *p, aot_leaf_t leaf, const aot_type_t *type, const void *data,
                                 uint64_t nbytes);
aot_status_t aoth_edit_rule_add(aot_prog_t *p, const aot_rule_t *rule);
aot_status_t aoth_edit_origin_create(aot_prog_t *p, const aot_origin_info_t *o, aot_origin_t *out);
aot_status_t aoth_edit_encoding_create(aot_prog_t *p, const aot_encoding_info_t *e, aot_encoding_t *out);
aot_status_t aoth_edit_symbol_create(aot_prog_t *p, const aot_symbol_info_t *s, int64_t *out_dim);
aot_status_t aoth_edit_dim_make(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out_dim);
aot_status_t aoth_edit_guard_add(aot_prog_t *p, const aot_guard_info_t *guard);
aot_status_t aoth_edit_infer(aot_prog_t *p, aot_op_t op, const aot_arg_t *args, uint32_t n_args,
                             const aot_type_sink_t *sink);
aot_status_t aoth_edit_decompose(aot_prog_t *p, aot_node_t n, aot_value_t *out_values);
aot_status_t aoth_edit_functional_form(aot_prog_t *p, aot_node_t n, aot_value_t *out_results, aot_value_t *out_written);
aot_status_t aoth_edit_view_inverse(aot_prog_t *p, aot_node_t view, uint32_t index, aot_value_t base,
                                    aot_value_t updated, aot_node_t before, aot_value_t *out_base);
aot_status_t aoth_edit_aliases(aot_prog_t *p, aot_op_t op, const aot_call_t *call, uint32_t *out_operands);

void aoth_fill_graph_api(aot_graph_api_t *out);
void aoth_fill_edit_api(aot_edit_api_t *out);
/* The tables as code of kit/graph takes them: graph, edit and diag alone. host points into the struct. */
typedef struct aoth_kit_host {
  aot_graph_api_t graph;
  aot_edit_api_t edit;
  aot_host_t host;
} aoth_kit_host_t;
const aot_host_t *aoth_kit_host(aoth_kit_host_t *out);

#endif
