/* Activations that are not one formula, and dropout as identity. */
#include "rules.h"

/* glu: the first half times the sigmoid of the second half. */
void ag_rule_glu(em_t *a) {
  em_x_t x = ag_arg(a, "self"), dim, half, first, second, gate, parts[2], g = ag_g(a, 0);
  ag_type_t t = ag_type(a, x);
  uint32_t d = ag_dim(a, ag_int(a, ag_arg(a, "dim"), -1), t.rank), ids[2];
  int64_t n = ag_dim_op(a, AOT_EXPR_FLOORDIV, t.sizes[d], 2);
  dim = em_i(d);
  half = em_i(n);
  first = AG_OP(a, "slice.Tensor", x, dim, em_i(0), half, em_i(1));
  second = AG_OP(a, "slice.Tensor", x, dim, half, em_i(t.sizes[d]), em_i(1));
  gate = AG_OP(a, "sigmoid", second);
  parts[0] = ag_mul(a, g, gate);
  parts[1] = ag_mul(a, ag_mul(a, parts[0], first), ag_sub(a, em_i(1), gate));
  if (a->status != AOT_OK || !em_is_value(parts[0])) return;
  ids[0] = (uint32_t)parts[0].u.i;
  ids[1] = (uint32_t)parts[1].u.i;
  ag_set(a, "self", AG_OP(a, "cat", aot_arg_values(ids, 2), dim));
}

int ag_when_dropout_off(em_t *a) { return !ag_is_set(a, "train", 1) || ag_number(a, ag_arg(a, "p"), 0) == 0; }
