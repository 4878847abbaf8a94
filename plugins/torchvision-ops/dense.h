/* Tensors of any strides as dense arrays of double, and back. */
#ifndef TV_DENSE_H
#define TV_DENSE_H

#include <aot/base.h>

int64_t tv_numel(const aot_tensor_t *t);
/* A copy in row-major order, to be freed; NULL: no memory, or a dtype other than f32, f64, i32, i64, bool. */
double *tv_read(const aot_tensor_t *t);
void tv_write(const double *from, const aot_tensor_t *t); /* rounded to its dtype, one of those */

#endif
