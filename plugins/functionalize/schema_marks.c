/* Reads alias marks: written arguments and aliased results of a node. */
#include "schema_marks.h"

#include <aot/inline.h>

int fz_writes_arg(const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t arg) {
  const aot_schema_arg_t *s = aot_schema_of(d, arg);
  if (!(s->flags & AOT_SARG_WRITE)) return 0;
  return !s->write_if || ((uint32_t)s->write_if <= n->n_args && n->args[s->write_if - 1].u.i != 0);
}

uint32_t fz_aliased_operand(const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t i) {
  return aot_marked_operand(d, n->args, n->n_args, n->n_results, i);
}
