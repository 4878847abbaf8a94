/* Operators that own graphs: their results are the graph's outputs. Operators without results, and whose results are
 * given. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

/* The results of a region; those from n_plain on once for each step, along a dimension 0 of their own. */
static void put_steps(at_infer_t *c, const char *name, uint32_t n_plain, int64_t steps) {
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
    if (t.kind == AOT_TYPE_TENSOR && i >= n_plain && t.rank < AOT_MAX_RANK) {
      strides = at_dims(c, t.rank + 1);
      strides[0] = steps;
      for (int32_t d = 0; d < t.rank; d++) strides[d + 1] = t.sizes[d];
      t.sizes = strides;
      t.strides = NULL;
      t.rank++;
    }
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

static void put_region(at_infer_t *c, const char *name) { put_steps(c, name, UINT32_MAX, 0); }

static int64_t n_steps(at_infer_t *c) {
  const aot_type_t x = at_list_size(c, "xs") ? at_list_item(c, "xs", 0) : (aot_type_t){0};
  if (at_list_size(c, "xs") && (x.kind != AOT_TYPE_TENSOR || x.rank < 1))
    at_fail(c, "what is looped over must have a dimension 0");
  return c->status == AOT_OK && x.rank ? x.sizes[0] : 0;
}

void at_shape_region(at_infer_t *c) { put_region(c, "graph"); }
void at_shape_cond(at_infer_t *c) { put_region(c, "true_graph"); }
void at_shape_while_loop(at_infer_t *c) { put_region(c, "body"); }
void at_shape_scan_steps(at_infer_t *c) { put_steps(c, "body", at_list_size(c, "init"), n_steps(c)); }
/* map_impl and associative_scan: everything is given for each step */
void at_shape_map_steps(at_infer_t *c) { put_steps(c, "body", 0, n_steps(c)); }

/* Code that makes the node gives its types. */
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
