/* Scans, products and norms. */
#include "rules.h"

#include <math.h>

/* The running sum from the other end. */
static ag_val_t sum_from_end(ag_t *a, ag_val_t x, ag_val_t dim) {
  int64_t d = ag_int(a, dim, 0);
  ag_val_t dims = ag_list(a, &d, 1);
  if (ag_type(a, x).rank == 0) return x;
  return AG_OP(a, "flip", AG_OP(a, "cumsum", AG_OP(a, "flip", x, dims), dim), dims);
}

void ag_rule_cumsum(ag_t *a) { ag_set(a, "self", sum_from_end(a, ag_g(a, 0), ag_arg(a, "dim"))); }

/* The product of the others, for each element along dim d: what stands before times what stands after. Two exclusive
 * running products, as log2(n) doubling steps of shifted multiplication (Hillis and Steele 1986), so that zeros need no
 * special case. n must be a constant. */
static ag_val_t running_product(ag_t *a, ag_val_t x, uint32_t d, int64_t n, int from_end, int32_t rank) {
  int64_t pad[2 * AOT_MAX_RANK] = {0}, step;
  uint32_t at = 2 * ((uint32_t)rank - 1 - d); /* pads count from the last dimension: before, after */
  for (step = 1; a->status == AOT_OK; step *= 2) {
    int64_t shift = step == 1 ? 1 : step / 2;
    ag_val_t moved;
    pad[at] = from_end ? -shift : shift;
    pad[at + 1] = from_end ? shift : -shift;
    moved = AG_OP(a, "constant_pad_nd", x, ag_list(a, pad, 2 * (uint32_t)rank), ag_i(1));
    x = step == 1 ? moved : ag_mul(a, x, moved);
    if (step >= n) break;
  }
  return x;
}

void ag_rule_prod(ag_t *a) {
  ag_val_t x = ag_arg(a, "self"), g = ag_g(a, 0), others, dim = ag_none();
  int all = a->desc->n_args < 3; /* prod.default(self, dtype) */
  ag_type_t t;
  uint32_t d;
  if (all) {
    int64_t n = ag_extent(a, x, ag_none()).u.i;
    x = ag_reshape(a, x, &n, 1);
  } else dim = ag_arg(a, "dim");
  t = ag_type(a, x);
  if (a->info.n_results && ag_is_tensor(ag_y(a, 0))) x = ag_cast(a, x, ag_type(a, ag_y(a, 0)).dtype);
  d = all || t.rank == 0 ? 0 : ag_dim(a, ag_int(a, dim, 0), t.rank);
  if (t.rank > 0 && AOT_DIM_IS_SYM(t.sizes[d])) {
    ag_fail(a, "specialise the size when exporting", "the derivative of a product over a symbolic size is not supported");
    return;
  }
  if (t.rank == 0) others = ag_i(1);
  else others = ag_mul(a, running_product(a, x, d, t.sizes[d], 0, t.rank), running_product(a, x, d, t.sizes[d], 1, t.rank));
  g = all ? ag_expand(a, g, t.sizes, t.rank) : ag_unreduce(a, g, x, dim, ag_is_set(a, "keepdim", 0));
  ag_set(a, "self", ag_reshape_like(a, ag_mul(a, g, others), ag_arg(a, "self")));
}

/* The p-norm: x |x|^(p-2) g / y^(p-1), zero where the norm is; p = inf: shared evenly among the largest. */
void ag_rule_vector_norm(ag_t *a) {
  ag_val_t x = ag_arg(a, "self"), dim = ag_arg(a, "dim"), g, y, d, size, top, n;
  double p = ag_number(a, ag_arg(a, "ord"), 2);
  int keep = ag_is_set(a, "keepdim", 0);
  if (p == 0) return;
  x = ag_cast(a, x, ag_type(a, ag_y(a, 0)).dtype);
  g = ag_unreduce(a, ag_g(a, 0), x, dim, keep);
  y = ag_unreduce(a, ag_y(a, 0), x, dim, keep);
  if (p == 1) d = ag_mul(a, g, AG_OP(a, "sign", x));
  else if (p == 2) d = ag_where(a, ag_compare(a, "eq", y, ag_i(0)), ag_none(), ag_mul(a, x, ag_div(a, g, y)));
  else if (isinf(p)) {
    size = AG_OP(a, "abs", x);
    top = ag_compare(a, "eq", size, y);
    n = AG_OP(a, "sum.dim_IntList", top, dim, ag_b(keep));
    d = ag_mul(a, ag_mul(a, g, AG_OP(a, "sign", x)), ag_div(a, top, ag_unreduce(a, n, x, dim, keep)));
  } else {
    size = AG_OP(a, "abs", x);
    d = ag_mul(a, ag_mul(a, AG_OP(a, "sign", x), ag_pow(a, ag_div(a, size, y), ag_f(p - 1))), g);
    d = ag_where(a, ag_compare(a, "eq", p < 1 ? size : y, ag_i(0)), ag_none(), d);
  }
  ag_set(a, "self", d);
}
