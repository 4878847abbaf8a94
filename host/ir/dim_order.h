/* Comparisons of dimensions with three answers: the only ones that decide what a program is. */
#ifndef AOTH_IR_DIM_ORDER_H
#define AOTH_IR_DIM_ORDER_H

#include <aot/ext/compare_dims.h>
#include <ir/program.h>

/* aot/ext/compare_dims.h has what they answer. */
int32_t aoth_dims_decide(aot_prog_t *p, int32_t op, int64_t a, int64_t b);
int32_t aoth_dim_is_unbacked(aot_prog_t *p, int64_t dim);
uint64_t aoth_dim_text(aot_prog_t *p, int64_t dim, char *out, uint64_t capacity);

#endif
