/* A program in float64: every floating type of it, leaves with their contents, values and dtype arguments, is float64,
 * and every complex one complex128. What the same model gives without float32's rounding, to tell noise from a fault.
 *
 * It works on types alone, on a program that was just read. Casts to float32 are casts to float64 too. */
#ifndef AOTH_WIDEN_H
#define AOTH_WIDEN_H

#include <ir/program.h>
#include <step/tensor.h>

int32_t aoth_wide_dtype(int32_t dtype); /* itself, where it is not floating or wide already */
aot_status_t aoth_widen(aot_prog_t *p); /* O(program + leaf data) */
/* A contiguous copy of the wide dtype; its data is the caller's to free. 0: no memory. */
int aoth_tensor_widen(const aoth_tensor_t *t, aoth_tensor_t *out);

#endif
