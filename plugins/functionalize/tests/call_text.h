/* Calls of an operator with made-up arguments, as text: every combination of what could fit each slot of its schema.
 *
 *     ct_call_t c = {.op = desc, .results = "%r"};
 *     do { ct_print(&c, ..) } while (ct_next(&c)); */
#ifndef CALL_TEXT_H
#define CALL_TEXT_H

#include <aot/opset.h>
#include "kit/base/text.h"
#include <step/tensor.h>

#define CT_ARGS 40
#define CT_INPUTS 64
#define CT_BYTES 1024 /* of a tensor's storage */

typedef struct ct_input {
  aoth_tensor_t tensor; /* contiguous, over data */
  int is_written;
  char data[CT_BYTES];
} ct_input_t;

typedef struct ct_call {
  const aot_op_desc_t *op;
  int vary_defaults;           /* arguments that may be left out are also given */
  int option[CT_ARGS];         /* by argument: which of what could be there */
  ct_input_t input[CT_INPUTS]; /* the tensors of this combination, in the order of arguments; filled in by ct_fill */
  int n_inputs;
  uint32_t skip; /* bits of arguments that are not given: the written ones of an out= form */
} ct_call_t;

int ct_fill(ct_call_t *c); /* 0: some slot takes nothing that is known here */
int ct_next(ct_call_t *c); /* the next combination; 0: that was the last */
/* "op args", with input k called %NAMEk. */
void ct_print(const ct_call_t *c, const char *op, const char *name, kit_text_t *out);
void ct_print_type(const aoth_tensor_t *t, kit_text_t *out); /* f64[3, 3] */
void ct_values(aoth_tensor_t *t, int which);                 /* numbers between 0.1 and 0.9, integers 0 to 2, truths */
int ct_is_written(const aot_op_desc_t *d, uint32_t arg);

#endif
