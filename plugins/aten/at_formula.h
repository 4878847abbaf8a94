/* Formulas: the operators that decompositions are made of, in short. They expect the emitter as `e`. A number may stand
 * for a tensor (PyTorch's wrapped number) wherever an operator takes two. */
#ifndef AT_FORMULA_H
#define AT_FORMULA_H

#include "rewrites.h"

#define ADD(a, b) EM(e, "add.Tensor", a, b)
#define SUB(a, b) EM(e, "sub.Tensor", a, b)
#define MUL(a, b) EM(e, "mul.Tensor", a, b)
#define DIV(a, b) EM(e, "div.Tensor", a, b)
#define NEG(a) EM(e, "neg", a)
#define ABS(a) EM(e, "abs", a)
#define EXP(a) EM(e, "exp", a)
#define LOG(a) EM(e, "log", a)
#define LOG1P(a) EM(e, "log1p", a)
#define SQRT(a) EM(e, "sqrt", a)
#define RSQRT(a) EM(e, "rsqrt", a)
#define TANH(a) EM(e, "tanh", a)
#define SIGMOID(a) EM(e, "sigmoid", a)
#define WHERE(c, a, b) EM(e, "where.self", c, a, b)
#define EQ(a, b) EM(e, "eq.Tensor", a, b)
#define NE(a, b) EM(e, "ne.Tensor", a, b)
#define LT(a, b) EM(e, "lt.Tensor", a, b)
#define LE(a, b) EM(e, "le.Tensor", a, b)
#define GT(a, b) EM(e, "gt.Tensor", a, b)
#define GE(a, b) EM(e, "ge.Tensor", a, b)
#define IN(name) em_in(e, name)
#define TYPE(x) at_type(e, x)
#define VAL(x) em_value(e, x)

/* x in the dtype that PyTorch computes in: float32 for half and bfloat16. */
static inline em_x_t at_math(em_t *e, em_x_t x) {
  aot_type_t t;
  if (x.kind != AOT_ARG_VALUE) return x;
  t = at_type(e, x);
  return em_cast(e, x, at_accumulate_dtype(t.dtype));
}

/* The first result is x. */
static inline aot_status_t at_give(em_t *e, em_x_t x, aot_value_t *out_values) {
  out_values[0] = em_value(e, x);
  return e->status;
}

/* The first result is x, in the dtype that the rewritten node has. */
static inline aot_status_t at_give_cast(em_t *e, em_x_t x, aot_value_t *out_values) {
  return at_give(e, em_cast(e, x, at_result_type(e, 0).dtype), out_values);
}

/* x of shape [n] with dimensions of size 1 around it, so that it lies along dimension dim of a tensor of that rank. */
static inline em_x_t at_along(em_t *e, em_x_t x, int32_t dim, int32_t rank) {
  int64_t sizes[AOT_MAX_RANK];
  int32_t d;
  if (x.kind != AOT_ARG_VALUE || rank < 1) return x;
  for (d = 0; d < rank; d++) sizes[d] = 1;
  sizes[dim] = at_numel(at_infer(e), at_type(e, x).sizes, at_type(e, x).rank);
  return at_reshaped(e, x, sizes, rank);
}

static inline em_x_t at_unsqueeze(em_t *e, em_x_t x, int32_t dim) { return EM(e, "unsqueeze", x, em_i(dim)); }

/* 0, 1, .., n - 1 on the device of `like`. */
static inline em_x_t at_range(em_t *e, int64_t n, em_x_t like) {
  aot_type_t t = at_type(e, like);
  return EM(e, "arange.start_step", em_i(0), em_i(n), em_i(1), em_dtype(AOT_I64), em_none(),
            em_device(t.device, t.device_index));
}

/* A tensor of one value, shaped and typed as queried, on the device of `like`. */
static inline em_x_t at_filled(em_t *e, const int64_t *sizes, int32_t rank, em_x_t value, int32_t dtype, em_x_t like) {
  aot_type_t t = at_type(e, like);
  return EM(e, "full", em_list(e, sizes, (uint32_t)rank), value, em_dtype(dtype), em_none(),
            em_device(t.device, t.device_index));
}

/* Products of matrices in the last two dimensions; the others broadcast. */
em_x_t at_matmul(em_t *e, em_x_t a, em_x_t b);
/* 0: every element, 1: mean, 2: sum */
em_x_t at_reduced(em_t *e, em_x_t x, int64_t reduction);
em_x_t at_softmax(em_t *e, em_x_t x, int32_t dim);
em_x_t at_log_softmax(em_t *e, em_x_t x, int32_t dim);

#endif
