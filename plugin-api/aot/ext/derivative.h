/* aot/ext/derivative.h - derivatives of operators that autograd has no rule for.
 *
 * "aot.derivative/1" is offered by an opset's table, beside "aot.kernels/1": plain functions, one an operator. The
 * operators may be the opset's own, or those of another opset, or declared in a pipeline.
 * "aot.derivative-lookup/1" is offered by the host: autograd asks it before it has an operator decomposed. */
#ifndef AOT_EXT_DERIVATIVE_H
#define AOT_EXT_DERIVATIVE_H

#include <aot/base.h>
#include <aot/graph.h>
#include <aot/status.h>

#define AOT_EXT_DERIVATIVE "aot.derivative/1"
#define AOT_EXT_DERIVATIVE_LOOKUP "aot.derivative-lookup/1"

/* One node to be differentiated. Operands are counted in the order of the arguments, list elements one by one. */
typedef struct aot_derivative_call {
  uint32_t struct_size, reserved;
  aot_prog_t *prog;
  aot_graph_t graph;             /* nodes are made at its end: edit->node_create(prog, graph, .., aot_no_node(), ..) */
  aot_node_t node;               /* its operands and results may be read by the new nodes */
  const aot_value_t *cotangents; /* n_results of the node; AOT_NO_ID: zero. Never all of them */
  const uint8_t *wanted;         /* n_operands; 0: this operand's cotangent is not asked for */
  aot_value_t *out;              /* n_operands, preset to AOT_NO_ID: zero. Of the operand's shape and dtype */
  uint32_t n_results, n_operands;
} aot_derivative_call_t;

typedef struct aot_derivative {
  aot_table_t head;
  aot_str_t op; /* full name: "torchvision.roi_align.default" */
  /* bit i: argument i of the schema has a derivative. A gradient asked of another one is the user's error */
  uint64_t covers;
  /* The operands' cotangents from those of the results (vector-Jacobian product). Failures come with a diagnostic.
   * [stage-exclusive] */
  aot_status_t(AOT_CALL *put)(const struct aot_derivative *d, aot_ctx_t *ctx, const aot_derivative_call_t *call);
} aot_derivative_t;

typedef struct aot_ext_derivatives {
  uint32_t struct_size, flags;
  const aot_derivative_t *const *derivatives; /* n_derivatives [session] */
  uint64_t n_derivatives;
} aot_ext_derivatives_t;

typedef struct aot_ext_derivative_lookup {
  aot_table_t head;
  /* All derivatives that the session's opsets bring, in the order of the opsets: the first one for an operator holds.
   * The array lives in the arena of the call. [stage-exclusive] */
  aot_status_t(AOT_CALL *all)(const struct aot_ext_derivative_lookup *x, aot_ctx_t *ctx,
                              const aot_derivative_t *const **out, uint64_t *out_n);
} aot_ext_derivative_lookup_t;

#endif
