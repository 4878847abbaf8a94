/* aot/edit.h - changing a program: only through these functions, each checked at once and written to the journal.
 *
 * The stage sees its edits at once. They become the program when the stage returns AOT_OK, its contract holds and the
 * verifier agrees; otherwise all are undone, ids included. Errors come with a diagnostic. All [stage-exclusive]. */
#ifndef AOT_EDIT_H
#define AOT_EDIT_H

#include <aot/graph.h>

/* A node to be made. Arguments in schema order; n_args may be smaller than the schema's: the rest takes its
 * defaults. */
typedef struct aot_node_spec {
  uint32_t struct_size;
  uint32_t flags; /* AOT_NODE_* */
  aot_op_t op;
  uint32_t n_args;
  const aot_arg_t *args; /* copied */
  uint32_t n_types;      /* 0: inferred by the operator's opset */
  uint32_t region_tag;
  const aot_type_t *types; /* n_types result types; copied */
  aot_origin_t origin;     /* AOT_NO_ID: that of `before`'s node, or none */
  uint32_t reserved;
} aot_node_spec_t;

typedef struct aot_edit_api {
  aot_table_t head;
  /* graphs */
  aot_status_t(AOT_CALL *graph_create)(aot_prog_t *p, int32_t kind, aot_str_t name, aot_graph_t *out);
  aot_status_t(AOT_CALL *graph_erase)(aot_prog_t *p, aot_graph_t g); /* with its nodes */
  aot_status_t(AOT_CALL *input_add)(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, const aot_type_t *t,
                                    aot_str_t name, aot_value_t *out);
  aot_status_t(AOT_CALL *input_erase)(aot_prog_t *p, aot_graph_t g, uint32_t i); /* it must have no uses */
  aot_status_t(AOT_CALL *output_add)(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, aot_value_t v,
                                     aot_str_t name);
  aot_status_t(AOT_CALL *output_set)(aot_prog_t *p, aot_graph_t g, uint32_t i, aot_value_t v);
  aot_status_t(AOT_CALL *outputs_clear)(aot_prog_t *p, aot_graph_t g);
  /* nodes: `before` AOT_NO_ID appends at the end */
  aot_status_t(AOT_CALL *node_create)(aot_prog_t *p, aot_graph_t g, const aot_node_spec_t *s, aot_node_t before,
                                      aot_node_t *out);
  aot_status_t(AOT_CALL *node_erase)(aot_prog_t *p, aot_node_t n); /* its results must have no uses */
  aot_status_t(AOT_CALL *operand_set)(aot_prog_t *p, aot_node_t n, uint32_t operand, aot_value_t v);
  aot_status_t(AOT_CALL *arg_set)(aot_prog_t *p, aot_node_t n, uint32_t arg, const aot_arg_t *a);
  /* nodes and outputs; O(uses) */
  aot_status_t(AOT_CALL *uses_replace)(aot_prog_t *p, aot_value_t from, aot_value_t to);
  aot_status_t(AOT_CALL *type_set)(aot_prog_t *p, aot_value_t v, const aot_type_t *t);
  aot_status_t(AOT_CALL *flags_set)(aot_prog_t *p, aot_node_t n, uint32_t flags);
  aot_status_t(AOT_CALL *name_set)(aot_prog_t *p, aot_value_t v, aot_str_t name);
  aot_status_t(AOT_CALL *note)(aot_prog_t *p, aot_node_t n, aot_str_t text); /* why; shown with the journal */
  /* leaves, boundary, origins, encodings */
  /* data is kept, not copied: [graph] */
  aot_status_t(AOT_CALL *leaf_create)(aot_prog_t *p, const aot_leaf_info_t *leaf, aot_leaf_t *out);
  aot_status_t(AOT_CALL *rule_add)(aot_prog_t *p, const aot_rule_t *rule);
  aot_status_t(AOT_CALL *origin_create)(aot_prog_t *p, const aot_origin_info_t *o, aot_origin_t *out);
  /* or finds its equal */
  aot_status_t(AOT_CALL *encoding_create)(aot_prog_t *p, const aot_encoding_info_t *e, aot_encoding_t *out);
  /* shape environment; equal expressions get equal dimensions; constants are folded */
  aot_status_t(AOT_CALL *symbol_create)(aot_prog_t *p, const aot_symbol_info_t *s, int64_t *out_dim);
  aot_status_t(AOT_CALL *dim_make)(aot_prog_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out_dim);
  /* asked of the opset that owns the node's operator (opset.h has the meaning); functional_form: AOT_E_NOT_FOUND
   * without diagnostic when the opset has none */
  aot_status_t(AOT_CALL *infer)(aot_prog_t *p, aot_op_t op, const aot_arg_t *args, uint32_t n_args,
                                const aot_type_sink_t *sink);
  aot_status_t(AOT_CALL *decompose)(aot_prog_t *p, aot_node_t n, aot_value_t *out_values);
  aot_status_t(AOT_CALL *functional_form)(aot_prog_t *p, aot_node_t n, aot_value_t *out_results,
                                          aot_value_t *out_written);
  aot_status_t(AOT_CALL *view_inverse)(aot_prog_t *p, aot_node_t view, uint32_t index, aot_value_t base,
                                       aot_value_t updated, aot_node_t before, aot_value_t *out_base);
  aot_status_t(AOT_CALL *aliases)(aot_prog_t *p, aot_op_t op, const aot_call_t *call, uint32_t *out_operands);
} aot_edit_api_t;

#endif
