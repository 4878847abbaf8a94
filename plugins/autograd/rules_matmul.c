/* linear and matmul, which keep their batch dimensions: C = A B gives dA = G B^T, dB = A^T G. */
#include "rules.h"

/* x with everything but its last `last` dimensions folded into one: [.., n] -> [m, n]. */
static em_x_t as_matrix(em_t *a, em_x_t x, int64_t columns) {
  ag_type_t t = ag_type(a, x);
  int64_t sizes[2];
  if (t.rank == 2) return x;
  sizes[0] = t.rank > 0 ? ag_product(a, t.sizes, (uint32_t)t.rank - 1) : 1;
  sizes[1] = columns;
  return ag_reshape(a, x, sizes, 2);
}

/* y = x W^T + b over the last dimension. A 1-d weight [k] represents [1, k], its result has no last dimension. */
void ag_rule_linear(em_t *a) {
  em_x_t x = ag_arg(a, "input"), w = ag_arg(a, "weight"), g = ag_g(a, 0), g2, x2, w2;
  ag_type_t tx = ag_type(a, x), tw = ag_type(a, w);
  int64_t k = tx.rank ? tx.sizes[tx.rank - 1] : 1, n = tw.rank == 2 ? tw.sizes[0] : 1, sizes[2];
  sizes[0] = ag_product(a, tx.sizes, tx.rank ? (uint32_t)tx.rank - 1 : 0);
  sizes[1] = n;
  g2 = ag_reshape(a, g, sizes, 2);
  if (ag_needs(a, "input")) {
    sizes[0] = n;
    sizes[1] = k;
    w2 = ag_reshape(a, w, sizes, 2);
    ag_set(a, "input", ag_reshape_like(a, AG_OP(a, "mm", g2, w2), x));
  }
  if (ag_needs(a, "weight")) {
    x2 = as_matrix(a, x, k);
    ag_set(a, "weight", ag_reshape_like(a, AG_OP(a, "mm", AG_OP(a, "t", g2), x2), w));
  }
  if (ag_needs(a, "bias")) ag_set(a, "bias", tw.rank == 2 ? g : ag_sum_to(a, g, NULL, 0));
}

/* One product of operands that are matrices or batches of them: mm, bmm where the batches agree, else matmul. */
static em_x_t product(em_t *a, em_x_t x, em_x_t y) {
  ag_type_t tx = ag_type(a, x), ty = ag_type(a, y);
  if (tx.rank == 2 && ty.rank == 2) return AG_OP(a, "mm", x, y);
  if (tx.rank == 3 && ty.rank == 3 && tx.sizes[0] == ty.sizes[0]) return AG_OP(a, "bmm", x, y);
  return AG_OP(a, "matmul", x, y);
}

/* x[.., m, k] y[.., k, n]; 1-d operands get the missing dimension for the time being. A batch against one matrix is one
 * product of the folded batch; elsewhere broadcast batch dimensions are summed by ag_set. */
void ag_rule_matmul(em_t *a) {
  em_x_t x = ag_arg(a, "self"), y = ag_arg(a, "other"), g = ag_g(a, 0), d;
  em_x_t x0 = x, y0 = y;
  int32_t rx = ag_type(a, x).rank, ry = ag_type(a, y).rank;
  ag_type_t tx, ty;
  if (rx == 1) x = AG_OP(a, "unsqueeze", x, em_i(0));
  if (ry == 1) y = AG_OP(a, "unsqueeze", y, em_i(1));
  if (ry == 1) g = AG_OP(a, "unsqueeze", g, em_i(-1));
  if (rx == 1) g = AG_OP(a, "unsqueeze", g, em_i(-2));
  tx = ag_type(a, x);
  ty = ag_type(a, y);
  if (a->status != AOT_OK) return;
  if (ty.rank == 2 && tx.rank > 2) {
    g = as_matrix(a, g, ty.sizes[1]);
    if (ag_needs(a, "other")) {
      d = AG_OP(a, "mm", AG_OP(a, "t", as_matrix(a, x, ty.sizes[0])), g);
      ag_set(a, "other", ag_reshape_like(a, d, y0));
    }
    if (ag_needs(a, "self")) ag_set(a, "self", ag_reshape_like(a, AG_OP(a, "mm", g, AG_OP(a, "t", y)), x0));
    return;
  }
  if (ag_needs(a, "self")) {
    d = ag_sum_to(a, product(a, g, ag_transpose(a, y)), tx.sizes, tx.rank);
    ag_set(a, "self", ag_reshape_like(a, d, x0));
  }
  if (ag_needs(a, "other")) {
    d = ag_sum_to(a, product(a, ag_transpose(a, x), g), ty.sizes, ty.rank);
    ag_set(a, "other", ag_reshape_like(a, d, y0));
  }
}
