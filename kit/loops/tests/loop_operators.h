/* Every pointwise operator of the table as a loop, in every dtype, and what its reference kernel gives. */
#ifndef LOOP_OPERATORS_H
#define LOOP_OPERATORS_H

#include "kit/reference/rk_core.h"
#include "kit/loops/loop.h"
#include <aot/inline.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_ELEMENTS = 37 };

typedef struct operands { /* four inputs of N_ELEMENTS elements, in five dtypes */
  float f32[4][N_ELEMENTS];
  double f64[4][N_ELEMENTS];
  int64_t i64[4][N_ELEMENTS];
  uint16_t f16[4][N_ELEMENTS], bf16[4][N_ELEMENTS];
} operands_t;

static uint32_t next(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

__attribute__((unused)) static void randomize(operands_t *o) {
  uint32_t state = 7;
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < N_ELEMENTS; i++) {
      o->f64[k][i] = o->f32[k][i] = (float)((double)next(&state) / 4294967296.0 * 5 - 2.5);
      o->i64[k][i] = (int64_t)(next(&state) >> 16) % 9 - 4;
      if (o->i64[k][i] == 0) o->i64[k][i] = 5;
    }
  o->f64[0][0] = o->f32[0][0] = 0;
  o->f64[0][1] = o->f32[0][1] = NAN;
  o->f64[0][2] = o->f32[0][2] = 30;
  o->f64[0][3] = o->f32[0][3] = -30;
  o->f64[0][4] = o->f32[0][4] = INFINITY;
  o->f64[0][5] = o->f32[0][5] = 0x1p-130f;
  o->f64[0][6] = o->f32[0][6] = -1;
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < N_ELEMENTS; i++) {
      rk_store_f(&o->f16[k][i], AOT_F16, o->f64[k][i]);
      rk_store_f(&o->bf16[k][i], AOT_BF16, o->f64[k][i]);
    }
}

typedef struct one { /* a generated function of one operator */
  const rk_kernel_t *kernel;
  aot_str_t word;
  int32_t dtype, result;
  uint32_t used; /* positions that the template reads */
  char name[32];
  lp_inst_t inst;
  lp_access_t accesses[5];
  lp_loop_t loop;
} one_t;

/* op(x0, x1, ..) with a tensor in every place that the template reads. 0: there is no loop of it. */
static int make_one(one_t *one) {
  const lp_op_t *op = lp_op_find(rk_name(one->kernel));
  lp_operand_t operands[4];
  lp_draw_t draw;
  if (!op || lp_op_draws(op, one->dtype, &draw) || lp_op_counts(op) >= 0) return 0;
  for (int k = 0; k < 4; k++) operands[k] = (lp_operand_t){LP_LOAD, one->dtype, 1, 0};
  one->inst = (lp_inst_t){.n_args = 4, .dtype = one->dtype};
  one->inst.text = lp_choose(op, operands, 4, one->word, one->dtype, 0, &one->inst.compute);
  if (!one->inst.text) return 0;
  one->loop = (lp_loop_t){
      .rank = 1, .sizes = {N_ELEMENTS}, .accesses = one->accesses, .n_stores = 1, .insts = &one->inst, .n_insts = 1};
  one->result = one->dtype;
  one->used = 0;
  for (uint32_t k = 0; k < 4; k++) {
    if (!lp_reads(one->inst.text, LP_TK_ARG, k)) continue;
    one->used |= 1u << k;
    one->inst.args[k] = (lp_arg_t){LP_LOAD, one->loop.n_loads, 0, 0};
    one->accesses[one->loop.n_loads++] = (lp_access_t){.dtype = one->dtype, .strides = {1}};
  }
  one->accesses[one->loop.n_loads] = (lp_access_t){.dtype = one->dtype, .strides = {1}};
  return one->used != 0;
}

/* All that there are: *out is one for every operator and dtype, to be freed; the loops are not scheduled. */
__attribute__((unused)) static int make_all(one_t **out) {
  static const int32_t dtypes[] = {AOT_F32, AOT_F64, AOT_I64, AOT_F16, AOT_BF16};
  enum { MAX = 1024 };
  one_t *ones = *out = calloc(MAX, sizeof *ones);
  int n = 0;
  for (uint32_t k = 0; k < rk_count(); k++)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
      for (int w = 0; w < 2; w++) {
        const char *name = rk_name(rk_at(k)).data;
        const int gelu = strncmp(name, "aten.gelu", 9) == 0;
        if ((w && !gelu) || rk_is_view(rk_at(k)) || rk_is_fill(rk_at(k))) continue;
        assert_true(n < MAX);
        ones[n] = (one_t){.kernel = rk_at(k), .dtype = dtypes[d]};
        if (gelu) ones[n].word = aot_str(w ? "tanh" : "none");
        snprintf(ones[n].name, sizeof ones[n].name, "f%d", n);
        n += make_one(&ones[n]);
      }
  for (int k = 0; k < n; k++) { /* they have been moved */
    ones[k].loop.accesses = ones[k].accesses;
    ones[k].loop.insts = &ones[k].inst;
  }
  assert_true(n > 450);
  return n;
}

static void *row(operands_t *o, int32_t dtype, uint32_t k) {
  switch (dtype) {
    case AOT_F32: return o->f32[k];
    case AOT_F64: return o->f64[k];
    case AOT_F16: return o->f16[k];
    case AOT_BF16: return o->bf16[k];
    default: return o->i64[k];
  }
}

static rk_tensor_t vector(void *data, int32_t dtype) {
  rk_tensor_t t = {.data = data,
                   .nbytes = N_ELEMENTS * aot_dtype_size(dtype),
                   .dtype = dtype,
                   .rank = 1,
                   .sizes = {N_ELEMENTS},
                   .strides = {1}};
  return t;
}

static double at(const void *data, int32_t dtype, int i) {
  return rk_load_f((const char *)data + (size_t)i * aot_dtype_size(dtype), dtype);
}

/* A half may be the neighbour of the reference's: it is rounded from float, not from double. */
static int close_to(double a, double b, int32_t dtype) {
  if (a != a || b != b) return a != a && b != b;
  if (a == b) return 1;
  if (dtype == AOT_I64) return 0;
  const double most = dtype == AOT_F32 ? 2e-6 : dtype == AOT_F16 ? 0x1p-10 : dtype == AOT_BF16 ? 0x1p-7 : 1e-12;
  return fabs(a - b) <= most * (lp_value_dtype(dtype) == dtype ? 1 + fabs(b) : 1e-5 + fabs(b));
}

/* run: the generated function, on its pointers. */
typedef void (*run_one_fn)(void *library, const one_t *one, char *const *pointers);
__attribute__((unused)) static void compare_one(const one_t *one, run_one_fn run, void *library, operands_t *o) {
  double got[N_ELEMENTS], expected[N_ELEMENTS];
  char *pointers[5];
  rk_tensor_t inputs[4], result = vector(expected, one->dtype);
  rk_arg_t args[4];
  rk_error_t error;
  uint32_t n = 0, n_args = 0;
  for (uint32_t k = 0; k < 4; k++) {
    inputs[k] = vector(row(o, one->dtype, k), one->dtype);
    args[k] = k == 0 || one->used >> k & 1u ? rk_arg_of_tensor(&inputs[k]) : rk_arg_of_tensor(NULL);
    if (!(one->used >> k & 1u)) continue;
    pointers[n++] = row(o, one->dtype, k);
    n_args = k + 1;
  }
  if (one->word.size) {
    args[n_args].kind = AOT_ARG_STR;
    args[n_args].n = (uint32_t)one->word.size;
    args[n_args++].u.chars = one->word.data;
  }
  pointers[n] = (char *)got;
  run(library, one, pointers);
  rk_call_t call = {args, n_args, &result, 1};
  if (rk_run(one->kernel, &call, &error) != AOT_OK) fail_msg("%s", error.text);
  for (int i = 0; i < N_ELEMENTS; i++)
    if (!close_to(at(got, one->dtype, i), at(expected, one->dtype, i), one->dtype))
      fail_msg("%s, %s, element %d: %.9g, reference %.9g", rk_name(one->kernel).data, aot_dtype_name(one->dtype), i,
               at(got, one->dtype, i), at(expected, one->dtype, i));
}

#endif
