/* Eager PyTorch puts a conjugation or a negation off: a tensor carries a bit that says that its elements are to be read
 * so. A view of it carries the bit too; what is computed carries none. Programs compute at once and need no bits, but
 * for one question: is resolve_conj of a tensor a copy, as where the bit is set, or the tensor itself? */
#ifndef AT_LAZY_BITS_H
#define AT_LAZY_BITS_H

#include "shape.h"

#include <aot/host.h>

enum { AT_BIT_CONJ = 1, AT_BIT_NEG = 2 };

/* Does the value carry the bit? Asked of a program whose writes still are as the model has them: follows the value up
 * through the views and writes that made it. Inputs carry none. O(steps to the tensor that it is a view of). */
aot_status_t at_carries_bit(const aot_host_t *host, aot_prog_t *prog, aot_value_t value, uint32_t bit, int *out);
/* Of a call of resolve_conj or resolve_neg: is there a bit to resolve? */
int at_is_unresolved(const at_infer_t *c);

#endif
