/* Formulas: the operators that decompositions are made of, in short. They expect the emitter as `e`. A number may stand for a
 * tensor (PyTorch's wrapped number) wherever an operator takes two. */
#ifndef AT_FORMULA_H
#define AT_FORMULA_H

#include "rewrites.h"

#define ADD(a, b) AT(e, "add.Tensor", a, b)
#define SUB(a, b) AT(e, "sub.Tensor", a, b)
#define MUL(a, b) AT(e, "mul.Tensor", a, b)
#define DIV(a, b) AT(e, "div.Tensor", a, b)
#define NEG(a) AT(e, "neg", a)
#define ABS(a) AT(e, "abs", a)
#define EXP(a) AT(e, "exp", a)
#define LOG(a) AT(e, "log", a)
#define LOG1P(a) AT(e, "log1p", a)
#define SQRT(a) AT(e, "sqrt", a)
#define RSQRT(a) AT(e, "rsqrt", a)
#define TANH(a) AT(e, "tanh", a)
#define SIGMOID(a) AT(e, "sigmoid", a)
#define WHERE(c, a, b) AT(e, "where.self", c, a, b)
#define EQ(a, b) AT(e, "eq.Tensor", a, b)
#define NE(a, b) AT(e, "ne.Tensor", a, b)
#define LT(a, b) AT(e, "lt.Tensor", a, b)
#define LE(a, b) AT(e, "le.Tensor", a, b)
#define GT(a, b) AT(e, "gt.Tensor", a, b)
#define GE(a, b) AT(e, "ge.Tensor", a, b)
#define IN(name) at_in(e, name)
#define TYPE(x) at_type(e, x)
#define VAL(x) at_value(e, x)

/* x in the dtype that PyTorch computes in: float32 for half and bfloat16. */
static inline at_x at_math(at_emit_t *e, at_x x) {
  aot_type_t t;
  if (x.kind != AOT_ARG_VALUE) return x;
  t = at_type(e, x);
  return at_cast(e, x, at_accumulate_dtype(t.dtype));
}

/* The first result is x. */
static inline aot_status_t at_give(at_emit_t *e, at_x x, aot_value_t *out_values) {
  out_values[0] = at_value(e, x);
  return e->status;
}

/* The first result is x, in the dtype that the rewritten node has. */
static inline aot_status_t at_give_cast(at_emit_t *e, at_x x, aot_value_t *out_values) {
  return at_give(e, at_cast(e, x, at_result_type(e, 0).dtype), out_values);
}

/* x of shape [n] with dimensions of size 1 around it, so that it lies along dimension dim of a tensor of that rank. */
static inline at_x at_along(at_emit_t *e, at_x x, int32_t dim, int32_t rank) {
  int64_t sizes[AOT_MAX_RANK];
  int32_t d;
  if (x.kind != AOT_ARG_VALUE || rank < 1) return x;
  for (d = 0; d < rank; d++) sizes[d] = 1;
  sizes[dim] = at_numel(e->infer, at_type(e, x).sizes, at_type(e, x).rank);
  return at_reshaped(e, x, sizes, rank);
}

static inline at_x at_unsqueeze(at_emit_t *e, at_x x, int32_t dim) { return AT(e, "unsqueeze", x, at_i(dim)); }

/* 0, 1, .., n - 1 on the device of `like`. */
static inline at_x at_range(at_emit_t *e, int64_t n, at_x like) {
  aot_type_t t = at_type(e, like);
  return AT(e, "arange.start_step", at_i(0), at_i(n), at_i(1), at_dtype_of(AOT_I64), at_none(),
            aot_arg_int_kind(AOT_ARG_DEVICE, t.device + 256 * ((int64_t)t.device_index + 1)));
}

/* A tensor of one value, shaped and typed as asked, on the device of `like`. */
static inline at_x at_filled(at_emit_t *e, const int64_t *sizes, int32_t rank, at_x value, int32_t dtype, at_x like) {
  aot_type_t t = at_type(e, like);
  return AT(e, "full", at_list(e, sizes, (uint32_t)rank), value, at_dtype_of(dtype), at_none(),
            aot_arg_int_kind(AOT_ARG_DEVICE, t.device + 256 * ((int64_t)t.device_index + 1)));
}

/* Products of matrices in the last two dimensions; the others broadcast. */
at_x at_matmul(at_emit_t *e, at_x a, at_x b);
/* 0: every element, 1: mean, 2: sum */
at_x at_reduced(at_emit_t *e, at_x x, int64_t reduction);
at_x at_softmax(at_emit_t *e, at_x x, int32_t dim);
at_x at_log_softmax(at_emit_t *e, at_x x, int32_t dim);

#endif
