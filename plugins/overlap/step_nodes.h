/* What the rewrites of this folder ask of a step's nodes and values. */
#ifndef OV_STEP_NODES_H
#define OV_STEP_NODES_H

#include "common/emit/emit.h"
#include "common/tensor/geometry.h"

/* The node at hand, of an operator with this full name? */
static inline int ov_is_node(const em_t *e, const char *name) { return aot_str_eq(e->desc->name, aot_str(name)); }

/* Of a dense tensor of known sizes; 0 after a failure. */
static inline uint64_t ov_nbytes(em_t *e, aot_value_t v) {
  const aot_type_t t = em_type(e, em_v(v));
  return e->status == AOT_OK ? (uint64_t)tn_numel(t.rank, t.sizes) * aot_dtype_size(t.dtype) : 0;
}

#endif
