/* What the rewrites of this folder ask of a step's nodes and values. */
#ifndef OV_STEP_NODES_H
#define OV_STEP_NODES_H

#include "kit/emit/emit.h"
#include "kit/base/geometry.h"

/* The node at hand, of an operator with this full name? */
static inline int ov_is_node(const em_t *e, const char *name) { return aot_str_eq(e->desc->name, aot_str(name)); }

/* What v is a cast of; none: it is something else. */
static inline aot_value_t ov_uncast(em_t *e, aot_value_t v) {
  em_t at = *e;
  const aot_node_t cast = e->host->graph->value_def(e->prog, v);
  if (cast.id == AOT_NO_ID || em_look(&at, cast) != AOT_OK || !ov_is_node(&at, "aten._to_copy.default") ||
      at.info.n_operands != 1)
    return aot_no_value();
  return (aot_value_t){at.info.operands[0]};
}

/* Of a dense tensor of known sizes; 0 after a failure. */
static inline uint64_t ov_nbytes(em_t *e, aot_value_t v) {
  const aot_type_t t = em_type(e, em_v(v));
  return e->status == AOT_OK ? (uint64_t)tn_numel(t.rank, t.sizes) * aot_dtype_size(t.dtype) : 0;
}

#endif
