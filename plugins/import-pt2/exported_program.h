/* exported_program.h - the JSON of torch.export as plain C records.
 *
 * Records follow torch/_export/serde/schema.py (schema 8.17, tolerant of 5.x and of later minors: a missing field takes
 * its default, an unknown field is ignored, an unknown union key is an error). Strings are borrowed from the JSON tree.
 * Graphs nested in arguments are put into one array, each after the graph that holds it. */
#ifndef P2_EXPORTED_PROGRAM_H
#define P2_EXPORTED_PROGRAM_H

#include "json_place.h"

/* A size, stride or offset: a number, or the text of an expression. */
typedef struct p2_dim {
  aot_str_t text; /* empty: value */
  int64_t value;  /* or the traced value of the expression, with has_hint */
  int32_t has_hint;
  int32_t reserved;
} p2_dim_t;

typedef struct p2_device {
  aot_str_t type;
  int64_t index; /* -1: none */
} p2_device_t;

typedef struct p2_meta { /* TensorMeta */
  int64_t dtype, layout; /* the archive's numbers */
  uint32_t rank;
  int32_t requires_grad;
  p2_device_t device;
  const p2_dim_t *sizes, *strides;
  p2_dim_t offset;
} p2_meta_t;

typedef struct p2_sym { /* element of as_sym_ints */
  aot_str_t name;       /* empty: value */
  int64_t value;
} p2_sym_t;

#define P2_ARG_NONE 0
#define P2_ARG_TENSOR 1
#define P2_ARG_TENSORS 2
#define P2_ARG_OPTIONAL_TENSORS 3 /* names; an empty one is None */
#define P2_ARG_INT 4
#define P2_ARG_INTS 5
#define P2_ARG_FLOAT 6
#define P2_ARG_FLOATS 7
#define P2_ARG_BOOL 8
#define P2_ARG_BOOLS 9 /* ints */
#define P2_ARG_STRING 10
#define P2_ARG_SYM_INT 11 /* name */
#define P2_ARG_SYM_INTS 12
#define P2_ARG_SYM_BOOL 13  /* name */
#define P2_ARG_SYM_FLOAT 14 /* name */
#define P2_ARG_DTYPE 15
#define P2_ARG_LAYOUT 16
#define P2_ARG_MEMORY_FORMAT 17
#define P2_ARG_DEVICE 18
#define P2_ARG_GRAPH 19 /* i: index into p2_program_t.graphs */
#define P2_ARG_OPERATOR 20
#define P2_ARG_COMPLEX 21 /* floats: real and imaginary part */
#define P2_ARG_OTHER 22   /* known to the schema, not supported here: s is its key */

typedef struct p2_argument {
  int32_t kind;
  uint32_t n; /* of a list */
  union {
    int64_t i;
    double f;
    aot_str_t s; /* TENSOR, SYM_*: the value's name; STRING, OPERATOR, OTHER */
    const aot_str_t *names;
    const int64_t *ints;
    const double *floats;
    const p2_sym_t *syms;
    p2_device_t device;
  } u;
} p2_argument_t;

typedef struct p2_input {
  aot_str_t name; /* empty: positional */
  p2_argument_t arg;
} p2_input_t;

typedef struct p2_node {
  aot_str_t target, name;
  uint32_t n_inputs, n_outputs;
  const p2_input_t *inputs;
  const p2_argument_t *outputs;
  aot_str_t module_stack, stack_trace, from_node, custom; /* metadata; may be empty */
} p2_node_t;

typedef struct p2_graph {
  aot_str_t name;
  uint32_t n_inputs, n_outputs, n_nodes;
  const p2_argument_t *inputs, *outputs;
  const p2_node_t *nodes;
  uint32_t n_metas, n_sym_ints, n_sym_bools, n_sym_floats;
  p2_names_t meta_index, sym_int_index, sym_bool_index, sym_float_index;
  const p2_meta_t *metas;
  const aot_str_t *meta_names;
  const p2_dim_t *sym_ints, *sym_bools;
  const p2_dim_t *sym_floats; /* value holds the bits of the double when text is empty */
} p2_graph_t;

#define P2_IN_USER 1
#define P2_IN_PARAMETER 2
#define P2_IN_BUFFER 3
#define P2_IN_CONSTANT 4
#define P2_IN_PYTHON 5 /* constant_input: an int, a string, .. fixed by tracing; no graph input */
#define P2_IN_TOKEN 6
#define P2_IN_OBJECT 7
typedef struct p2_input_spec {
  int32_t kind;
  int32_t persistent;
  aot_str_t target; /* name in the module */
  aot_str_t value;  /* of the graph input; empty: none is named */
} p2_input_spec_t;

#define P2_OUT_USER 1
#define P2_OUT_LOSS 2
#define P2_OUT_BUFFER 3
#define P2_OUT_PARAMETER 4
#define P2_OUT_USER_INPUT 5
#define P2_OUT_GRADIENT 6       /* of a parameter */
#define P2_OUT_INPUT_GRADIENT 7 /* of a user input */
#define P2_OUT_TOKEN 8
typedef struct p2_output_spec {
  int32_t kind;
  int32_t reserved;
  aot_str_t target, value; /* as of inputs */
} p2_output_spec_t;

typedef struct p2_range {
  aot_str_t symbol;
  int64_t min, max; /* INT64_MIN, INT64_MAX: unbounded */
} p2_range_t;

typedef struct p2_program {
  p2_graph_t *graphs; /* [0] is the top level */
  uint32_t n_graphs, n_input_specs, n_output_specs, n_ranges;
  const p2_input_spec_t *input_specs;
  const p2_output_spec_t *output_specs;
  const p2_range_t *ranges;
  int64_t schema_major, schema_minor;
  aot_str_t torch_version;
  uint32_t n_guards, n_paths;
  const aot_str_t *guards; /* guards_code: Python over the inputs */
  p2_names_t path_index;   /* where an input is in the arguments, "['x'][0]": number of the user input */
} p2_program_t;

aot_status_t p2_decode_program(p2_env_t *e, const p2_doc_t *doc, p2_program_t *out);

/* One entry of a payload config: where the bytes of a weight or constant are. */
typedef struct p2_payload {
  aot_str_t fqn, path_name;
  int32_t is_param, use_pickle, has_meta, reserved;
  p2_meta_t meta;
} p2_payload_t;
aot_status_t p2_decode_payloads(p2_env_t *e, const p2_doc_t *doc, p2_payload_t **out, uint32_t *out_n);

#endif
