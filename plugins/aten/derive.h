/* Rows that follow from others: `x.out` and `x_` of x. Their schema is that of the functional operator, with writes.
 *
 *     add.Tensor      (Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
 *     add.out         (Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
 *     add_.Tensor     (Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
 *
 * What makes a new tensor (dtype, layout, device, pin_memory of a factory) is not queried of an operator that gets one.
 * Operators that write lists return nothing. These are the rules by which PyTorch's torchgen derives one form from
 * another. */
#ifndef AT_DERIVE_H
#define AT_DERIVE_H

#include "at_row.h"
#include "kit/schema/schema.h"

/* The parsed schema of any row and its text, in that memory. A derived row's is made of that of its operator, which
 * precedes it and is described in descs (one a row of at_rows) by then. Errors as of sch_parse; *out_text then
 * is what did not parse. */
aot_status_t at_row_schema(const at_row_t *row, const aot_op_desc_t *descs, const sch_memory_t *memory,
                           sch_schema_t *out, aot_str_t *out_text, sch_error_t *out_error);

/* The row's flags; a derived one has what its operator computes. */
uint32_t at_row_flags(const at_row_t *row);

#endif
