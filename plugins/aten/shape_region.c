/* Operators that own graphs: their results are the graph's outputs. Operators without results, and whose results are given. */
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

/* Whoever makes the node gives its types. */
void at_shape_given(at_infer_t *c) { c->status = AOT_E_UNIMPLEMENTED; }

void at_shape_no_results(at_infer_t *c) { (void)c; }

/* A token, then what the operator gives. */
void at_shape_with_effects(at_infer_t *c) {
  const aot_arg_t *token = at_arg(c, "token"), *op = at_arg(c, "op");
  aot_type_t t;
  memset(&t, 0, sizeof t);
  if (c->n_args < 2 || token->kind != AOT_ARG_VALUE || op->kind != AOT_ARG_OP ||
      c->env->type_of(c->env->self, (uint32_t)token->u.i, &t) != AOT_OK || t.kind != AOT_TYPE_TOKEN) {
    at_fail(c, "a token, an operator and its arguments are expected");
    return;
  }
  memset(&t, 0, sizeof t);
  t.kind = AOT_TYPE_TOKEN;
  at_put_type(c, &t);
  if (c->status == AOT_OK) c->status = c->env->infer(c->env->self, (uint32_t)op->u.i, c->args + 2, c->n_args - 2);
}

/* What the operator gives. */
void at_shape_run_with_state(at_infer_t *c) {
  const aot_arg_t *op = at_arg(c, "op");
  if (c->n_args < 2 || op->kind != AOT_ARG_OP) at_fail(c, "a random state, an operator and its arguments are expected");
  if (c->status == AOT_OK) c->status = c->env->infer(c->env->self, (uint32_t)op->u.i, c->args + 2, c->n_args - 2);
}
