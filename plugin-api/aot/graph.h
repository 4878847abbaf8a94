/* aot/graph.h - reading a program: the function table, for random access; it shows the stage's own edits at once.
 *
 * A program has leaves (tensors that live outside a call: parameters, buffers, constants, user inputs, optimizer
 * state), graphs (ordered SSA), a boundary (rules that the run time interprets), a shape environment and origins.
 * Pointers that a function returns are borrowed until the next edit of the same object, or the end of the call into the
 * unit. Ids count from 1; 0, AOT_NO_ID, names nothing, so that what is zeroed says nothing. Ids that do not exist
 * answer AOT_E_RANGE, erased ones AOT_E_STALE; functions without status answer 0, NULL or AOT_NO_ID. Every function:
 * [stage-exclusive], O(1) unless said. */
#ifndef AOT_GRAPH_H
#define AOT_GRAPH_H

#include <aot/base.h>
#include <aot/status.h>
#include <aot/opset.h>

/* What a graph is for. */
#define AOT_GRAPH_FORWARD 1  /* imported or functional program; after the partition: the forward half */
#define AOT_GRAPH_JOINT 2    /* inputs: leaves, then tangents; outputs: forward's, then gradients */
#define AOT_GRAPH_BACKWARD 3 /* inputs: leaves it reads, saved values, tangents; outputs: gradients */
#define AOT_GRAPH_UPDATE 4   /* optimizer: inputs: leaves, gradients, hyper-parameters; outputs: updates */
#define AOT_GRAPH_REGION 5   /* owned by nodes: body of invoke_subgraph, branch of cond */
/* A training step in one: inputs: leaves, hyper-parameters, seed, offset; outputs: loss, updates, offset. An UPDATE
 * output lies in the memory of its leaf's input, and OFFSET in that of the offset: the backend writes neither before
 * the old value was read for the last time. */
#define AOT_GRAPH_STEP 6
/* What one backend runs of one of the above, named by the node that stands for it there (aot.part): a graph as any
 * other to its backend. Ports that are the calling graph's have its roles as far as a backend has to know them: leaves,
 * HYPER, SEED, OFFSET, and of a step's outputs UPDATE and OFFSET, which lie in the memory of the part's input of that
 * leaf, or of the offset, where it has one, as in a STEP. All others are REGION. */
#define AOT_GRAPH_PART 7

/* Roles of graph inputs and outputs, and what `index` counts. */
#define AOT_ROLE_PARAMETER 1   /* in: leaf id */
#define AOT_ROLE_BUFFER 2      /* in: leaf id */
#define AOT_ROLE_CONSTANT 3    /* in: leaf id */
#define AOT_ROLE_USER_INPUT 4  /* in: leaf id */
#define AOT_ROLE_STATE 5       /* in: leaf id (optimizer state) */
#define AOT_ROLE_TANGENT 6     /* in: number of the user output it belongs to */
#define AOT_ROLE_SAVED 7       /* out of forward, in of backward: saved slot 0, 1, .. */
#define AOT_ROLE_GRADIENT 8    /* out of joint and backward, in of update: leaf id */
#define AOT_ROLE_USER_OUTPUT 9 /* out: number of the user output */
#define AOT_ROLE_LOSS 10       /* out: number of the user output, where the archive says it is the loss */
#define AOT_ROLE_UPDATE 11     /* out: leaf id whose new value this is */
#define AOT_ROLE_HYPER 12      /* in of update: AOT_HYPER_* */
#define AOT_ROLE_SEED 13       /* in */
#define AOT_ROLE_OFFSET 14     /* in and out */
#define AOT_ROLE_TOKEN 15      /* in and out */
#define AOT_ROLE_REGION 16     /* in and out of a region: position */
#define AOT_ROLE_BASE 17       /* out: hidden base of user outputs that are views, number of the base */

#define AOT_HYPER_LR 1 /* learning rate, a 0-dim f64 */

/* One input or output of a graph. value is AOT_NO_ID for an output that is None; its type is the port's, memory space
 * and encoding with it. */
typedef struct aot_port {
  int32_t role;
  uint32_t index;
  aot_value_t value;
  uint32_t flags;       /* 0 */
  aot_str_t name;       /* for printing; roles decide, never names */
  uint64_t reserved[2]; /* 0 */
} aot_port_t;

#define AOT_LEAF_REQUIRES_GRAD 1u
#define AOT_LEAF_PERSISTENT 2u /* buffers: part of checkpoints */

/* A tensor that lives outside the call. */
typedef struct aot_leaf_info {
  uint32_t struct_size;
  int32_t role;     /* PARAMETER BUFFER CONSTANT USER_INPUT STATE */
  uint32_t flags;   /* AOT_LEAF_* */
  uint32_t ordinal; /* USER_INPUT: which one, counted from 0 */
  uint32_t n_names; /* tied parameters have several names; the first is the one gradients go by */
  uint32_t reserved;
  const aot_str_t *names;
  aot_type_t type;
  const void *data; /* initial contents: storage bytes, [graph]; NULL: zeros, or given per call (USER_INPUT) */
  uint64_t nbytes;  /* of data */
} aot_leaf_info_t;

#define AOT_NODE_BACKWARD 1u  /* made by differentiation */
#define AOT_NODE_MUST_SAVE 2u /* activation-checkpoint tags */
#define AOT_NODE_PREFER_SAVE 4u
#define AOT_NODE_MUST_RECOMPUTE 8u
#define AOT_NODE_PREFER_RECOMPUTE 16u
#define AOT_NODE_NO_GRAD 32u /* stands in a no_grad region: no gradient flows through it */
#define AOT_NODE_UPDATE 64u  /* in a step: of the optimizer */

typedef struct aot_node_info {
  uint32_t struct_size;
  uint32_t flags; /* AOT_NODE_* */
  aot_op_t op;
  aot_graph_t graph;
  uint32_t n_args;     /* as many as the schema has, defaults filled in */
  uint32_t n_operands; /* values among the arguments, flattened, absent ones counted (AOT_NO_ID) */
  uint32_t n_results;
  aot_value_t first_result; /* results have consecutive ids */
  aot_origin_t origin;
  uint32_t region_tag; /* checkpoint region, 0: none */
  const aot_arg_t *args;
  const uint32_t *operands; /* n_operands value ids, in argument order */
} aot_node_info_t;

/* Where a node or value comes from in the user's model. */
typedef struct aot_origin_info {
  uint32_t struct_size;
  uint32_t line;         /* in source_file, 0: unknown */
  aot_str_t source_file; /* printed, never opened */
  aot_str_t module_path; /* "transformer.h.0.attn" */
  aot_str_t node_name;   /* name in the model file */
  aot_origin_t parent;   /* the origin this one was made from (fused, recomputed, differentiated), or AOT_NO_ID */
  uint32_t reserved;
} aot_origin_info_t;

/* How elements lie, or what stands for them: an attribute of the program that types name (aot_type_t.encoding). Equal
 * ones are one row. The host reads neither part: a backend that does not know the name refuses the program
 * (aot/ext/encodings.h). */
typedef struct aot_encoding_info {
  uint32_t struct_size, reserved;
  aot_str_t name;  /* of its vendor, with a dot: "vendor.tiled" */
  aot_str_t value; /* what more there is to say, bytes of the vendor's; may be empty */
} aot_encoding_info_t;

/* Boundary rules: what the run time does around a call. `a`, `b` as said per kind. */
#define AOT_RULE_COPY_BACK 1  /* exit: after the call leaf a takes the value of its UPDATE output */
#define AOT_RULE_RESTRIDE 2   /* exit: user input leaf a takes sizes, strides, offset of the rule */
#define AOT_RULE_SAME_INPUT 3 /* exit: user output a is leaf b itself */
/* exit: user output a is a view of leaf b's storage with the rule's dtype and geometry */
#define AOT_RULE_VIEW_INPUT 4
#define AOT_RULE_SAME_OUTPUT 5 /* exit: user output a is user output b */
#define AOT_RULE_VIEW_OUTPUT 6 /* exit: user output a is a view of user output b's storage */
#define AOT_RULE_VIEW_BASE 7   /* exit: user output a is a view of hidden base b */
#define AOT_RULE_ENTRY_SAME 8  /* entry: user input leaf a is user input leaf b itself */
#define AOT_RULE_ENTRY_VIEW 9  /* entry: user input leaf a is a view of leaf b's storage with the rule's geometry */
typedef struct aot_rule {
  int32_t kind;
  uint32_t a, b;
  int32_t rank;
  int32_t dtype;  /* view_*: what the storage's bytes are seen as; sizes, strides and offset count it. 0: its own */
  uint32_t flags; /* 0 */
  const int64_t *sizes;
  const int64_t *strides;
  int64_t offset;
} aot_rule_t;

typedef struct aot_symbol_info {
  uint32_t struct_size;
  uint32_t reserved;
  aot_str_t name;
  int64_t min, max; /* inclusive; INT64_MAX: unbounded */
  int64_t hint;     /* value at tracing */
} aot_symbol_info_t;

/* Expressions of the shape environment: (op, a, b); children are dimensions. */
#define AOT_EXPR_SYMBOL 1 /* a: symbol number */
#define AOT_EXPR_ADD 2
#define AOT_EXPR_MUL 3
#define AOT_EXPR_FLOORDIV 4
#define AOT_EXPR_MOD 5
#define AOT_EXPR_MAX 6
#define AOT_EXPR_MIN 7
#define AOT_EXPR_EQ 8 /* 1 or 0 */
#define AOT_EXPR_LT 9
#define AOT_EXPR_LE 10
#define AOT_EXPR_WHERE 11 /* a ? b : c */
#define AOT_EXPR_POW 12
#define AOT_EXPR_SUB 13
typedef struct aot_expr_info {
  int32_t op;
  uint32_t reserved;
  int64_t a, b, c;
} aot_expr_info_t;

struct aot_snapshot;

typedef struct aot_graph_api {
  aot_table_t head;
  /* program */
  int32_t(AOT_CALL *has_property)(aot_prog_t *p, aot_str_t name); /* 1 or 0 */
  uint32_t(AOT_CALL *n_graphs)(aot_prog_t *p);                    /* highest graph id + 1; erased ones included */
  aot_status_t(AOT_CALL *graph_info)(aot_prog_t *p, aot_graph_t g, int32_t *out_kind, aot_str_t *out_name);
  aot_graph_t(AOT_CALL *graph_find)(aot_prog_t *p, int32_t kind); /* first live graph of the kind, AOT_NO_ID */
  uint32_t(AOT_CALL *n_leaves)(aot_prog_t *p);
  /* set out->struct_size first */
  aot_status_t(AOT_CALL *leaf_info)(aot_prog_t *p, aot_leaf_t l, aot_leaf_info_t *out);
  uint32_t(AOT_CALL *n_rules)(aot_prog_t *p);
  aot_status_t(AOT_CALL *rule)(aot_prog_t *p, uint32_t i, aot_rule_t *out);
  /* ports; arrays borrowed until the next port edit of the graph */
  uint32_t(AOT_CALL *n_inputs)(aot_prog_t *p, aot_graph_t g);
  uint32_t(AOT_CALL *n_outputs)(aot_prog_t *p, aot_graph_t g);
  const aot_port_t *(AOT_CALL *inputs)(aot_prog_t *p, aot_graph_t g);
  const aot_port_t *(AOT_CALL *outputs)(aot_prog_t *p, aot_graph_t g);
  /* nodes, in order */
  uint32_t(AOT_CALL *n_nodes)(aot_prog_t *p);  /* highest node id + 1 of the program: size of side tables */
  uint32_t(AOT_CALL *n_values)(aot_prog_t *p); /* highest value id + 1 */
  aot_node_t(AOT_CALL *first)(aot_prog_t *p, aot_graph_t g); /* AOT_NO_ID at the end */
  aot_node_t(AOT_CALL *last)(aot_prog_t *p, aot_graph_t g);
  aot_node_t(AOT_CALL *next)(aot_prog_t *p, aot_node_t n);
  aot_node_t(AOT_CALL *prev)(aot_prog_t *p, aot_node_t n);
  /* set out->struct_size first */
  aot_status_t(AOT_CALL *node_info)(aot_prog_t *p, aot_node_t n, aot_node_info_t *out);
  /* values */
  aot_status_t(AOT_CALL *value_type)(aot_prog_t *p, aot_value_t v, aot_type_t *out); /* sizes, strides [graph] */
  aot_node_t(AOT_CALL *value_def)(aot_prog_t *p, aot_value_t v);                     /* AOT_NO_ID: a graph input */
  uint32_t(AOT_CALL *value_index)(aot_prog_t *p, aot_value_t v); /* result number, or input number */
  aot_graph_t(AOT_CALL *value_graph)(aot_prog_t *p, aot_value_t v);
  uint32_t(AOT_CALL *n_uses)(aot_prog_t *p, aot_value_t v); /* operand slots and graph outputs that read v */
  /* The users of v: nodes, each once a slot, in no promised order; graph outputs are not listed. O(uses). */
  uint32_t(AOT_CALL *users)(aot_prog_t *p, aot_value_t v, aot_node_t *out, uint32_t capacity);
  aot_str_t(AOT_CALL *value_name)(aot_prog_t *p, aot_value_t v); /* for messages; may be empty */
  /* operators */
  uint32_t(AOT_CALL *n_ops)(aot_prog_t *p);
  aot_op_t(AOT_CALL *op_find)(aot_prog_t *p, aot_str_t name);           /* AOT_NO_ID: unknown; O(1) by hash */
  const aot_op_desc_t *(AOT_CALL *op_desc)(aot_prog_t *p, aot_op_t op); /* [session] */
  /* origins */
  aot_status_t(AOT_CALL *origin_info)(aot_prog_t *p, aot_origin_t o, aot_origin_info_t *out);
  /* encodings */
  uint32_t(AOT_CALL *n_encodings)(aot_prog_t *p); /* highest encoding id + 1 */
  /* set out->struct_size first */
  aot_status_t(AOT_CALL *encoding_info)(aot_prog_t *p, aot_encoding_t e, aot_encoding_info_t *out);
  /* shape environment */
  uint32_t(AOT_CALL *n_symbols)(aot_prog_t *p);
  aot_status_t(AOT_CALL *symbol_info)(aot_prog_t *p, uint32_t symbol, aot_symbol_info_t *out);
  aot_status_t(AOT_CALL *expr_info)(aot_prog_t *p, uint32_t expr, aot_expr_info_t *out);
  int64_t(AOT_CALL *dim_hint)(aot_prog_t *p, int64_t dim); /* its value with every symbol at its hint */
  /* A picture of the whole program as one relocatable block of arrays (snapshot.h); cached until the next edit.
   * [borrow until the next edit]; O(program) when it must be built. */
  aot_status_t(AOT_CALL *snapshot)(aot_prog_t *p, const struct aot_snapshot **out);
} aot_graph_api_t;

#endif
