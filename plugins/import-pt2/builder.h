/* builder.h - records become a program: what the build_*.c files share. The one header of the importer's
 * algorithm files that sees the host's tables. */
#ifndef P2_BUILDER_H
#define P2_BUILDER_H

#include "archive_weights.h"
#include "exported_program.h"
#include <aot/host.h>

/* What a name of a graph represents. */
#define P2_BOUND_VALUE 1
#define P2_BOUND_DIM 2   /* a symbolic integer or boolean: an expression, no value */
#define P2_BOUND_FLOAT 3 /* a float that tracing has fixed */
#define P2_BOUND_NONE 4
typedef struct p2_bound {
  int32_t kind;
  uint32_t reserved;
  int64_t i; /* value id, or dimension */
  double f;
} p2_bound_t;

typedef struct p2_scope { /* the names of one graph */
  const p2_graph_t *graph;
  p2_names_t names;
  p2_bound_t *bound;
  uint32_t n, capacity;
} p2_scope_t;

typedef struct p2_symbol {
  aot_str_t name;
  int64_t dim;
} p2_symbol_t;

#define P2_AUTOCAST "torch.ops.higher_order.wrap_with_autocast"
#define P2_CHECKPOINT "torch.ops.higher_order.tag_activation_checkpoint"

/* What becomes of a nested graph. */
#define P2_REGION_BUILD 0  /* a region graph of its own */
#define P2_REGION_INLINE 1 /* its nodes go into the graph of its owner (autocast, activation checkpoint) */
#define P2_REGION_SKIP 2   /* another call's copy of a body that is built already, or inside such a copy */
typedef struct p2_region {
  int32_t fate;
  uint32_t same_as;  /* SKIP: the graph to use instead */
  aot_graph_t graph; /* AOT_NO_ID: not built yet */
  int32_t building;
} p2_region_t;

/* Activation checkpointing of a node: AOT_NODE_MUST_SAVE .. AOT_NODE_PREFER_RECOMPUTE, and the number of its region. */
typedef struct p2_tags {
  uint32_t flags, region; /* 0: none */
} p2_tags_t;

typedef struct p2_builder {
  p2_env_t *env;
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const p2_program_t *program;
  const p2_weights_t *weights;
  p2_region_t *regions; /* by graph of the program */
  /* symbols */
  p2_names_t symbol_index, hint_index, range_index;
  p2_symbol_t *symbols;
  uint32_t n_symbols, symbol_capacity;
  uint32_t n_symbols_before; /* the node being imported */
  int64_t *hints;
  uint32_t n_hints, hint_capacity;
  /* leaves, by input spec of the top level; AOT_NO_ID: no leaf */
  uint32_t *leaf_of_input;
  p2_names_t leaf_of_parameter, leaf_of_buffer, leaf_of_placeholder;
  const p2_node_t *node;  /* being imported, for messages; NULL: none */
  p2_tags_t tags;         /* of that node */
  uint32_t n_checkpoints; /* regions numbered by the importer so far */
  p2_names_t guarded;     /* conditions of the top level that are guards */
  uint32_t *mistaken;     /* values of which the archive records another type than they have, ascending */
  uint32_t n_mistaken, mistaken_capacity;
} p2_builder_t;

/* build_node.c: a node as the archive records it. */
/* The node's own name or its target: for messages. */
aot_str_t p2_node_label(const p2_node_t *n);
int p2_is_symbolic(const p2_node_t *n);   /* all its results are symbolic numbers */
int p2_is_inline(const p2_node_t *n);     /* it owns a graph whose nodes go into the graph around it */
int p2_is_assertion(const p2_node_t *n);  /* a check of metadata that PyTorch writes into training archives */
aot_str_t p2_op_name(const p2_node_t *n); /* the target without "torch.ops." */
aot_str_t p2_module_path(aot_str_t module_stack);
void p2_source_line(aot_str_t stack_trace, aot_str_t *out_file, uint32_t *out_line);

/* build_scope.c: names. */
/* A failure at a node: the message gets the operator, the node's name and its module. */
aot_status_t p2_node_bad(p2_builder_t *b, const p2_node_t *n, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
aot_status_t p2_bind(p2_builder_t *b, p2_scope_t *s, aot_str_t name, p2_bound_t what);
aot_status_t p2_bind_value(p2_builder_t *b, p2_scope_t *s, aot_str_t name, aot_value_t v);
/* Fails with the difference between a name that comes later and one that does not exist. */
aot_status_t p2_lookup(p2_builder_t *b, const p2_scope_t *s, aot_str_t name, p2_bound_t *out);

/* build_emit.c: a node that the archive does not have, at the end of the graph, with the tags of the node being
 * imported. */
aot_status_t p2_emit(p2_builder_t *b, aot_graph_t g, aot_origin_t origin, const char *op, const aot_arg_t *args,
                     uint32_t n_args, aot_value_t *out);

/* build_types.c: dimensions, symbols and types. */
aot_status_t p2_hints_prepare(p2_builder_t *b);   /* build_hints.c */
aot_status_t p2_symbols_prepare(p2_builder_t *b); /* traced values of the symbols */
aot_status_t p2_dim(p2_builder_t *b, const p2_dim_t *d, int64_t *out);
/* sizes and strides of the result are in scratch */
aot_status_t p2_type_of_meta(p2_builder_t *b, aot_str_t name, const p2_meta_t *m, aot_type_t *out);
aot_status_t p2_type_of_name(p2_builder_t *b, const p2_graph_t *g, aot_str_t name, aot_type_t *out);
aot_status_t p2_device(p2_builder_t *b, const p2_device_t *d, int32_t *out_device, int32_t *out_index);
int p2_dims_agree(p2_builder_t *b, int64_t x, int64_t y); /* not certainly unequal */

/* build_defined.c: symbols that are new in the recorded results of a node, and that its shape rule determines, are
 * names for the rule's expressions from here on. */
aot_status_t p2_define_symbols(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n, aot_op_t op,
                               const aot_arg_t *args, uint32_t n_args);

/* An expression over symbols, or over the inputs of the model. */
aot_status_t p2_dim_of_text(p2_builder_t *b, aot_str_t text, int64_t *out);

/* build_guards.c: the guards of the archive, and its assertions on sizes of inputs, before anything else. */
aot_status_t p2_build_guards(p2_builder_t *b);
/* Is it an assertion that a guard checks? */
int p2_is_guarded(const p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n);

/* build_leaves.c: the signature. */
aot_status_t p2_build_inputs(p2_builder_t *b, aot_graph_t g, p2_scope_t *s);
aot_status_t p2_build_outputs(p2_builder_t *b, aot_graph_t g, const p2_scope_t *s);

/* build_args.c: arguments in schema order. *out_args has one entry for each argument of the schema (more with a
 * variadic tail), defaults filled in. */
aot_status_t p2_build_args(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n, const aot_op_desc_t *d,
                           aot_arg_t **out_args, uint32_t *out_n);

/* build_checks.c: missing operators, all at once; types against the opset's own inference; assertions of the
 * archive. */
aot_status_t p2_check_operators(p2_builder_t *b);
typedef struct p2_types { /* a list of types in scratch */
  p2_builder_t *b;
  aot_type_t *at;
  uint32_t n, capacity;
} p2_types_t;
/* AOT_OK with *out_known 0 when the opset has no shape rule for the operator. */
aot_status_t p2_infer(p2_builder_t *b, aot_op_t op, const aot_arg_t *args, uint32_t n, p2_types_t *out, int *out_known);
aot_status_t p2_check_types(p2_builder_t *b, const p2_node_t *n, const p2_types_t *inferred, const aot_type_t *given,
                            uint32_t n_given);
/* Dtype, rank, and sizes that are not certainly unequal; what is no tensor agrees. */
int p2_types_agree(p2_builder_t *b, const aot_type_t *x, const aot_type_t *y);
aot_status_t p2_check_assertion(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n);

/* build_layout.c: results lie as their operators give them; recorded strides are believed only of operators whose
 * layout no rule knows, if they can be. */
aot_status_t p2_lay_out(p2_builder_t *b, const p2_node_t *n, uint32_t flags, const aot_arg_t *args, uint32_t n_args,
                        const p2_types_t *inferred, p2_types_t *types);

aot_status_t p2_check_region_input(p2_builder_t *b, uint32_t position, const aot_type_t *input,
                                   const aot_type_t *operand);

/* build_recorded.c: where PyTorch is known to record wrong types. Puts the inferred types, which may be none, in place
 * of those, and of what follows from them, and lists these results in b->mistaken, by their place in the node until
 * p2_number_mistaken makes them value ids. */
aot_status_t p2_correct_types(p2_builder_t *b, const p2_node_t *n, const aot_arg_t *args, uint32_t n_args,
                              const p2_types_t *inferred, p2_types_t *types);
void p2_number_mistaken(p2_builder_t *b, uint32_t from, aot_value_t first);

/* build_tags.c: the tags of a node in a region with tags `around`. */
aot_status_t p2_tags_of_node(p2_builder_t *b, const p2_node_t *n, p2_tags_t around, p2_tags_t *out);
p2_tags_t p2_tags_of_checkpoint(p2_builder_t *b); /* those of the next tag_activation_checkpoint region */

/* build_complex.c: a node with complex numbers among its arguments, as one with tensors in their places. */
int p2_has_complex(const p2_node_t *n);
aot_status_t p2_complex_numbers(p2_builder_t *b, p2_scope_t *s, const p2_node_t *n, aot_graph_t g, p2_node_t *out);

/* build_autocast.c: the casts that an autocast region leaves out. */
aot_status_t p2_autocast(p2_builder_t *b, aot_graph_t g, const aot_op_desc_t *d, aot_origin_t origin, aot_arg_t *args,
                         uint32_t n_args, const aot_type_t *types, uint32_t n_types);

/* build_origin.c: where a node comes from. */
aot_status_t p2_origin(p2_builder_t *b, const p2_node_t *n, aot_origin_t *out);

/* build_program.c: the whole, in one call. */
aot_status_t p2_build(p2_builder_t *b);

#endif
