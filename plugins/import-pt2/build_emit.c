/* build_emit.c - a node that the archive does not have. */
#include "builder.h"
#include "kit/emit/emit.h"
#include <aot/inline.h>

aot_status_t p2_emit(p2_builder_t *b, aot_graph_t g, aot_origin_t origin, const char *op, const aot_arg_t *args,
                     uint32_t n_args, aot_value_t *out) {
  em_t e = em_make(b->host, b->ctx, b->prog, g);
  e.origin = origin;
  e.flags = b->tags.flags;
  e.region_tag = b->tags.region;
  if (b->host->graph->op_find(b->prog, aot_str(op)).id == AOT_NO_ID)
    return p2_node_bad(b, b->node, "import-pt2.unknown-operator", "the operator %s is not known", op);
  *out = em_value(&e, em_call(&e, op, n_args, args));
  return e.status;
}
