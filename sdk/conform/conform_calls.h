/* Calls of operators that nothing has to write: arguments made up from the rows of the schema, as text of programs.
 * Tensors are %a0, %a1, .. in the order of the arguments; what has a default, or may be absent, is left out. */
#ifndef AOTH_CONFORM_CALLS_H
#define AOTH_CONFORM_CALLS_H

#include <aot/opset.h>
#include <sdk/conform/conform_trial.h>

#define AOTH_CALL_WAYS 6u /* shapes and dtypes of the tensors */

/* A program around calls of one operator: a file NAME.call of the folder of programs, so that the host names no
 * operator, with
 *
 *     $HEAD        head, leaves and inputs; is_trained: parameters, with gradients where they are floats
 *     $CALL r p    %r0, .. = the operator of %a0, 1, ..; the arguments of `other` are %p0, .. in the place of %a0, ..
 *     $EACH line   the line for each tensor of `other`, with its number for $N
 *     $OUT         outputs: what the call r gives, then %c of each tensor of `other`
 *     $N $MORE $LESS      the number of the last tensor of `other`; 1 + step, 1 - step */
typedef struct aoth_call_about {
  const aot_op_desc_t *d;
  uint32_t way;
  int is_trained;
  uint64_t other; /* bits, by argument */
  double step;
} aoth_call_about_t;
/* The session's program becomes it. */
aot_status_t aoth_call_program(aoth_trial_t *t, const char *name, const aoth_call_about_t *a);
int aoth_call_is_tensor(const aot_op_desc_t *d, uint32_t arg);
uint32_t aoth_call_tensor(const aot_op_desc_t *d, uint32_t arg); /* its number among the tensors */
int aoth_call_is_float(uint32_t way);
int aoth_call_is_f64(uint32_t way);

/* The first way, from this one on, that the opset takes, the call's program being the session's; AOTH_CALL_WAYS: none.
 * What is said against the others is no complaint of the trial's. */
uint32_t aoth_call_accepted(aoth_trial_t *t, const aot_op_desc_t *d, uint32_t way);

#endif
