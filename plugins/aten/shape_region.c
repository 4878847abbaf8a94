/* Operators that own graphs: their results are the graph's outputs. Operators without results. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

static void put_region(at_infer_t *c, const char *name) {
  uint32_t graph = (uint32_t)at_int(c, name), i;
  int64_t *strides;
  if (c->status != AOT_OK) return;
  for (i = 0; c->status == AOT_OK; i++) {
    aot_type_t t;
    aot_status_t status;
    memset(&t, 0, sizeof t);
    status = c->env->region_result(c->env->self, graph, i, &t);
    if (status == AOT_E_NOT_FOUND) break;
    if (status != AOT_OK) at_fail(c, "argument '%s' names no graph", name);
    if (t.kind == AOT_TYPE_TENSOR && t.strides == NULL) {
      strides = at_dims(c, t.rank);
      at_strides_contiguous(c, t.sizes, t.rank, strides);
      t.strides = strides;
    }
    t.offset = 0;
    at_put_type(c, &t);
    c->n_pool = 0;
  }
}

void at_shape_region(at_infer_t *c) { put_region(c, "graph"); }
void at_shape_cond(at_infer_t *c) { put_region(c, "true_graph"); }

void at_shape_no_results(at_infer_t *c) { (void)c; }
