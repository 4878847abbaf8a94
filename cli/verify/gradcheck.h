/* Gradient of each node of a model's forward graph against finite differences.
 *
 *     model -> functionalize -> values of all operands (trial/oracle.h: one forward on the reference backend)
 *     per node, in a child process:
 *       one-node program in float64 -> rng, autograd, partition-default, backend-ref -> vector-Jacobian product
 *       L(x) = sum <result, cotangent>; directional derivative of L by central differences, operand by operand
 *
 * Cotangents and directions are random: a wrong product passes only if its error is below the tolerance of the
 * gradient's norm. Steps are 1e-4 .. 1e-7; the first that agrees counts. A disagreement is an error only if the
 * differences of two steps agree, and the one-sided ones; otherwise the function has a kink there (relu at 0, ties of
 * max), and the node is checked again next to the given values. */
#ifndef AOTH_GRADCHECK_H
#define AOTH_GRADCHECK_H

#include <sandbox/session.h>
#include <trainer/tensors/safetensors.h>

#include <jansson.h>

typedef struct aoth_gradcheck {
  aoth_session_t *s;         /* its program is functional */
  const char *autograd;      /* unit id */
  const char *backend;       /* unit id */
  double tolerance, timeout; /* relative; seconds a node */
  uint64_t seed;
  /* of the model's program */
  aot_graph_t forward;
  uint8_t *needs;       /* by value: a gradient flows through it */
  uint8_t *used;        /* by value: a node or an output reads it */
  uint32_t *key;        /* by value: number of the output that has it; AOT_NO_INDEX: none has */
  uint32_t n_keys;      /* outputs, those of the model included */
  uint32_t n_own;       /* of the model */
  aot_value_t *outputs; /* n_keys - n_own values, from output n_own on */
  aoth_st_t *values;    /* output.K */
} aoth_gradcheck_t;

/* Which values need a gradient, and all operands' contents for the inputs of `run` (NULL: random ones). Reports. */
aot_status_t aoth_gradcheck_begin(aoth_gradcheck_t *g, const aoth_run_spec_t *run);
void aoth_gradcheck_deinit(aoth_gradcheck_t *g);
/* Has the node an operand and a result with a gradient? */
int aoth_gradcheck_has(const aoth_gradcheck_t *g, aot_node_t node);

/* One operand of a one-node program. */
typedef struct aoth_gradcheck_operand {
  aot_value_t value;     /* in the model's program */
  int needs;             /* a float tensor whose gradient is checked */
  aoth_tensor_t tensor;  /* contiguous, float64 in place of other floats; malloc'd data */
  double *x, *direction; /* of `needs`: contents of the point, and a direction; numel each */
  double *gradient;      /* numel; zeros if autograd makes none */
} aoth_gradcheck_operand_t;

typedef struct aoth_gradcheck_case {
  aoth_gradcheck_operand_t *operands; /* n_operands distinct ones, in the order of the arguments */
  uint32_t n_operands;
  const char *why; /* why it cannot be checked; NULL: it can */
} aoth_gradcheck_case_t;

/* In a child: the node alone becomes the session's program. Else than AOT_OK: c->why, or an error in the sink. */
aot_status_t aoth_gradcheck_program(const aoth_gradcheck_t *g, aot_node_t node, aoth_gradcheck_case_t *c);

/* The node's row {state: ok | wrong | skipped | failed (a plugin did), why,
 * operands: [{value, state, deviation, derivative, difference}]}; a new reference. */
json_t *aoth_gradcheck_node(aoth_gradcheck_t *g, aot_node_t node);

#endif
