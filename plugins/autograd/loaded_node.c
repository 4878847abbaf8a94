/* The current node: its operands, whether a derivative passes through it, which of them can have one. */
#include "joint.h"

aot_status_t ag_load(em_t *a, aot_node_t n) {
  AOT_TRY(em_look(a, n));
  a->origin = a->info.origin;
  return a->desc ? AOT_OK : AOT_E_INTERNAL;
}

uint32_t ag_n_operands(const aot_arg_t *arg) {
  return arg->kind == AOT_ARG_VALUE ? 1 : arg->kind == AOT_ARG_VALUES ? arg->n : 0;
}

uint32_t ag_operand(const aot_arg_t *arg, uint32_t k) {
  return arg->kind == AOT_ARG_VALUE ? (uint32_t)arg->u.i : arg->u.ids[k];
}

/* A rule beats the operator's mark: step functions have one, of zeros, since PyTorch gives zeros there and not None. */
int ag_stops(const em_t *a) {
  if (a->info.flags & AOT_NODE_NO_GRAD) return 1;
  return (a->desc->flags & AOT_OP_NO_GRAD) && !ag_has_rule(&ag_of(a)->rules[a->info.op.id]);
}

static int32_t dtype_of(em_t *a, uint32_t value) {
  aot_type_t t;
  aot_value_t v;
  memset(&t, 0, sizeof t);
  v.id = value;
  if (a->host->graph->value_type(a->prog, v, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR) return 0;
  return t.dtype;
}

static int differentiable(int32_t dtype) { return aot_dtype_is_float(dtype) || aot_dtype_is_complex(dtype); }

int ag_able(em_t *a, uint32_t value) { return differentiable(dtype_of(a, value)); }

uint32_t ag_look_through(em_t *a) {
  if (!(a->desc->flags & AOT_OP_EFFECT) || !aot_str_eq(a->desc->name, aot_str("higher_order.with_effects"))) return 0;
  a->info.op.id = (uint32_t)a->info.args[1].u.i;
  a->info.args += 2;
  a->info.n_args -= 2;
  a->info.operands += 1; /* the token */
  a->info.n_operands -= 1;
  a->info.first_result.id += 1;
  a->info.n_results -= 1;
  a->desc = a->host->graph->op_desc(a->prog, a->info.op);
  return 1;
}
