/* A view of a tensor in the making, for shape rules. */
#ifndef AT_VIEW_GEOMETRY_H
#define AT_VIEW_GEOMETRY_H

#include "shape_rules.h"

typedef struct at_view {
  aot_type_t base;                  /* what it is a view of */
  int64_t *sizes, *strides, offset; /* room for AOT_MAX_RANK + 1 dimensions, of the running inference */
  int32_t rank;
} at_view_t;

at_view_t at_view_of(at_infer_t *c, const char *name);  /* the operand `name`, whole */
void at_view_result(at_infer_t *c, const at_view_t *v); /* the next result */
void at_view_drop(at_view_t *v, int32_t dim);
void at_view_insert(at_view_t *v, int32_t dim, int64_t size, int64_t stride);

#endif
