/* A recorded call as a program in text form (docs/IR.md), for op_cases.c. */
#ifndef AOTH_OP_CASE_TEXT_H
#define AOTH_OP_CASE_TEXT_H

#include <aot/opset.h>
#include "kit/base/text.h"
#include <jansson.h>
#include <trainer/tensors/safetensors.h>

#define AOTH_CASE_TENSORS 64u

typedef struct aoth_case_program {
  kit_text_t text;
  aoth_tensor_t inputs[AOTH_CASE_TENSORS]; /* user inputs in order; memory of the data file */
  char paths[AOTH_CASE_TENSORS][24];       /* "0", "0.2"; keyword arguments: their name */
  uint32_t n_inputs;
  char why[200]; /* what is wrong with the case */
} aoth_case_program_t;

/* The tensor that a reference {"t": key ..} means, checked against its storage; 0: there is none such. */
int aoth_case_tensor(const aoth_st_t *data, json_t *reference, aoth_tensor_t *out);
/* A number {"i"}, {"f"} (texts inf, -inf, nan too) or {"b"}: stored in *out, dtype reported; 0: none. */
int aoth_case_number(json_t *v, double *out, int32_t *out_dtype);
/* A call of op. 0: the case is malformed, out->why says where. with_grad: float32 inputs, and those with an exact
 * gradient, require one. Deinit out->text always. */
int aoth_case_write(json_t *one, const aot_op_desc_t *op, const aoth_st_t *data, int with_grad,
                    aoth_case_program_t *out);

#endif
