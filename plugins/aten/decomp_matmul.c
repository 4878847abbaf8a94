/* Products: linear and matmul into mm, addmm, bmm; the scaled sums into products and additions. */
#include "at_formula.h"

#include <string.h>

/* A 2-d tensor of x's rows: all dimensions but the last are merged. */
static em_x_t rows_of(em_t *e, em_x_t x) {
  aot_type_t t = TYPE(x);
  int64_t sizes[2];
  sizes[0] = at_numel(at_infer(e), t.sizes, t.rank - 1);
  sizes[1] = t.sizes[t.rank - 1];
  return at_reshaped(e, x, sizes, 2);
}

/* [.., n, k] expanded to the batch and merged to [batch, n, k] */
static em_x_t batch_of(em_t *e, em_x_t x, const int64_t *batch, int32_t n_batch) {
  aot_type_t t = TYPE(x);
  int64_t sizes[AOT_MAX_RANK], merged[3];
  if (n_batch) memcpy(sizes, batch, (size_t)n_batch * sizeof *sizes);
  memcpy(sizes + n_batch, t.sizes + t.rank - 2, 2 * sizeof *sizes);
  merged[0] = at_numel(at_infer(e), batch, n_batch);
  merged[1] = sizes[n_batch];
  merged[2] = sizes[n_batch + 1];
  return at_reshaped(e, at_expanded(e, x, sizes, n_batch + 2), merged, 3);
}

em_x_t at_matmul(em_t *e, em_x_t a, em_x_t b) {
  aot_type_t batch[2], ta = TYPE(a), tb = TYPE(b);
  int64_t sizes[AOT_MAX_RANK];
  int32_t n;
  em_x_t y;
  if (e->status != AOT_OK || ta.rank < 2 || tb.rank < 2) return em_none();
  if (ta.rank == 2 && tb.rank == 2) return EM(e, "mm", a, b);
  if (tb.rank == 2) { /* the batch is more rows */
    y = EM(e, "mm", rows_of(e, a), b);
    memcpy(sizes, ta.sizes, (size_t)ta.rank * sizeof *sizes);
    sizes[ta.rank - 1] = tb.sizes[1];
    return at_reshaped(e, y, sizes, ta.rank);
  }
  batch[0] = ta;
  batch[1] = tb;
  batch[0].rank -= 2;
  batch[1].rank -= 2;
  n = at_broadcast(at_infer(e), batch, 2, sizes);
  y = EM(e, "bmm", batch_of(e, a, sizes, n), batch_of(e, b, sizes, n));
  sizes[n] = ta.sizes[ta.rank - 2];
  sizes[n + 1] = tb.sizes[tb.rank - 1];
  return at_reshaped(e, y, sizes, n + 2);
}

/* 1-d operands get a dimension for the product and lose it after. */
aot_status_t at_dc_matmul(em_t *e, aot_value_t *out) {
  em_x_t a = IN("self"), b = IN("other");
  aot_type_t ta = TYPE(a), tb = TYPE(b), t = at_result_type(e, 0);
  if (ta.rank == 1) a = at_unsqueeze(e, a, 0);
  if (tb.rank == 1) b = at_unsqueeze(e, b, 1);
  return at_give(e, at_reshaped(e, at_matmul(e, a, b), t.sizes, t.rank), out);
}

aot_status_t at_dc_linear(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), w = IN("weight"), bias = IN("bias"), y;
  aot_type_t tx = TYPE(x), tw = TYPE(w), t = at_result_type(e, 0);
  if (tw.rank == 1) { /* one output feature, without its dimension */
    y = at_summed(e, MUL(x, w), (const int64_t[]){-1}, 1, 0);
    return at_give(e, em_is_none(bias) ? y : ADD(y, bias), out);
  }
  if (tx.rank == 1) x = at_unsqueeze(e, x, 0);
  else if (tx.rank > 2) x = rows_of(e, x);
  w = EM(e, "t", w);
  y = em_is_none(bias) ? EM(e, "mm", x, w) : EM(e, "addmm", bias, x, w);
  return at_give(e, at_reshaped(e, y, t.sizes, t.rank), out);
}

/* x times the factor of that name; integer tensors take its integer part. */
static em_x_t times(em_t *e, em_x_t x, const char *name, double factor) {
  if (factor == 1.0) return x;
  if (at_is_integral(TYPE(x).dtype)) return (int64_t)factor == 1 ? x : MUL(x, em_i((int64_t)factor));
  return MUL(x, IN(name));
}

/* beta * self + alpha * product, where beta = 0 forgets self, nan included */
static aot_status_t give_scaled_sum(em_t *e, em_x_t product, aot_value_t *out) {
  double alpha = em_in_float(e, "alpha", 1.0), beta = em_in_float(e, "beta", 1.0);
  aot_type_t t = at_result_type(e, 0);
  product = times(e, product, "alpha", alpha);
  if (beta == 0.0) return at_give(e, at_expanded(e, product, t.sizes, t.rank), out);
  return at_give_cast(e, ADD(times(e, IN("self"), "beta", beta), product), out);
}

aot_status_t at_dc_addmm(em_t *e, aot_value_t *out) {
  return give_scaled_sum(e, EM(e, "mm", IN("mat1"), IN("mat2")), out);
}

aot_status_t at_dc_baddbmm(em_t *e, aot_value_t *out) {
  return give_scaled_sum(e, EM(e, "bmm", IN("batch1"), IN("batch2")), out);
}

aot_status_t at_dc_addbmm(em_t *e, aot_value_t *out) {
  return give_scaled_sum(e, at_summed(e, EM(e, "bmm", IN("batch1"), IN("batch2")), (const int64_t[]){0}, 1, 0), out);
}

static em_x_t matrix_vector(em_t *e, em_x_t m, em_x_t v) {
  return EM(e, "squeeze.dim", EM(e, "mm", m, at_unsqueeze(e, v, 1)), em_i(1));
}

aot_status_t at_dc_mv(em_t *e, aot_value_t *out) { return at_give(e, matrix_vector(e, IN("self"), IN("vec")), out); }

aot_status_t at_dc_addmv(em_t *e, aot_value_t *out) {
  return give_scaled_sum(e, matrix_vector(e, IN("mat"), IN("vec")), out);
}

aot_status_t at_dc_dot(em_t *e, aot_value_t *out) {
  return at_give_cast(e, EM(e, "sum.dim_IntList", MUL(IN("self"), IN("tensor")), em_list(e, (const int64_t[]){0}, 1)),
                      out);
}

aot_status_t at_dc_outer(em_t *e, aot_value_t *out) {
  return at_give(e, MUL(at_unsqueeze(e, IN("self"), 1), IN("vec2")), out);
}

aot_status_t at_dc_grouped_mm_fallback(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "_grouped_mm", IN("input"), IN("weight"), IN("offs")), out);
}

aot_status_t at_dc_grouped_mm_fallback_backward(em_t *e, aot_value_t *out) {
  em_x_t g = IN("grad_output"), offs = IN("offs");
  out[0] = VAL(EM(e, "_grouped_mm", g, EM(e, "transpose.int", IN("weight"), em_i(-2), em_i(-1)), offs));
  out[1] = VAL(EM(e, "_grouped_mm", EM(e, "transpose.int", IN("input"), em_i(-2), em_i(-1)), g, offs));
  return e->status;
}

aot_status_t at_dc_addr(em_t *e, aot_value_t *out) {
  return give_scaled_sum(e, MUL(at_unsqueeze(e, IN("vec1"), 1), IN("vec2")), out);
}
