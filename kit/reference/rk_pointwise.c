/* The pointwise driver. Operands are read in runs of the inner dimension, converted to the work type (double or int64),
 * rounded to the computing dtype where they are wider, and the results are stored with one rounding.
 *
 * Promotion of a comparison's operands follows operators.md section 2 (c10::result_type): the highest kind among all
 * operands decides; within it tensors with dimensions go before 0-dim tensors, these before plain numbers. */
#include "rk_pointwise.h"
#include <aot/inline.h>
#include <string.h>

#define PW_RUN 256 /* elements converted at a time */

typedef struct operands {
  const rk_tensor_t *tensor[PW_ARGS]; /* NULL: a number or absent */
  int32_t slot[PW_ARGS];              /* of the iterator */
  double number[PW_ARGS];
  int64_t whole[PW_ARGS];
  uint8_t is_number[PW_ARGS]; /* 1: float, 2: int, 3: bool */
  uint32_t n;
} operands_t;

static int kind_of(int32_t dtype) { return dtype == AOT_BOOL ? 0 : rk_is_int(dtype) ? 1 : 2; }

/* 3 classes (dimensions, 0-dim, numbers): the promoted dtype of each, 0: none. */
static int32_t promote_classes(const int32_t by_class[3]) {
  int top = -1;
  for (int k = 0; k < 3; k++)
    if (by_class[k] && kind_of(by_class[k]) > top) top = kind_of(by_class[k]);
  for (int k = 0; k < 3; k++)
    if (by_class[k] && kind_of(by_class[k]) == top) return by_class[k];
  return AOT_F32;
}

static int32_t promoted(const operands_t *o) {
  int32_t by_class[3] = {0, 0, 0};
  for (uint32_t a = 0; a < o->n; a++) {
    int32_t k, dtype;
    if (o->tensor[a]) {
      k = o->tensor[a]->rank == 0;
      dtype = o->tensor[a]->dtype;
    } else if (o->is_number[a]) {
      k = 2;
      dtype = o->is_number[a] == 1 ? AOT_F32 : o->is_number[a] == 2 ? AOT_I64 : AOT_BOOL;
    } else {
      continue;
    }
    /* lower kinds of one class do not widen a higher one */
    if (!by_class[k] || kind_of(dtype) > kind_of(by_class[k])) by_class[k] = dtype;
    else if (kind_of(dtype) == kind_of(by_class[k])) by_class[k] = rk_promote(dtype, by_class[k]);
  }
  return promote_classes(by_class);
}

static aot_status_t read_operands(rk_ctx_t *c, const pw_row_t *row, operands_t *o, pw_par_t *p, rk_iter_t *it) {
  memset(o, 0, sizeof *o);
  memset(p, 0, sizeof *p);
  o->n = c->call->n_args < PW_ARGS ? c->call->n_args : PW_ARGS;
  for (uint32_t a = 0; a < o->n; a++) {
    const rk_arg_t *arg = &c->call->args[a];
    if (arg->kind == AOT_ARG_VALUE) {
      o->tensor[a] = arg->u.tensor;
      o->slot[a] = it->n_tensors;
      p->dtypes[a] = arg->u.tensor->dtype;
      if (arg->u.tensor->rank == 0) p->single |= 1u << a;
      RK_CHECK(c, rk_iter_add(it, arg->u.tensor), "argument %u does not broadcast to the declared result", a);
    } else if (arg->kind == AOT_ARG_INT || arg->kind == AOT_ARG_FLOAT || arg->kind == AOT_ARG_BOOL) {
      o->is_number[a] = arg->kind == AOT_ARG_FLOAT ? 1 : arg->kind == AOT_ARG_INT ? 2 : 3;
      o->number[a] = rk_float(c, a, 0);
      o->whole[a] = rk_int(c, a, 0);
      p->single |= 1u << a;
    } else if (arg->kind == AOT_ARG_STR) {
      for (int32_t w = 0; row->words && row->words[w]; w++)
        if (rk_str_is(c, a, row->words[w])) p->mode = w + 1;
      RK_CHECK(c, p->mode, "\"%.*s\" is not a mode of this operator", (int)(arg->n < 40 ? arg->n : 40), arg->u.chars);
      continue;
    } else {
      continue;
    }
    p->present |= 1u << a;
  }
  return AOT_OK;
}

static int32_t compute_dtype(const rk_ctx_t *c, const pw_row_t *row, const operands_t *o) {
  if (row->kind == PW_COMPARE) return promoted(o);
  if (row->kind == PW_SELF)
    for (uint32_t a = 0; a < o->n; a++)
      if (o->tensor[a]) return o->tensor[a]->dtype;
  return rk_result_dtype(c, 0);
}

/* What operand `a` becomes before halves are computed in float. */
static int32_t operand_dtype(const pw_row_t *row, const operands_t *o, uint32_t a, int32_t dtype) {
  if (row->kind == PW_COMPARE || row->kind == PW_CAST || (dtype != AOT_F16 && dtype != AOT_BF16)) return dtype;
  if (!o->tensor[a]) return AOT_F32;
  return row->kind == PW_FACTOR && a == 1 && o->tensor[a]->rank == 0 ? AOT_F32 : dtype;
}

static void round_run(double *v, int64_t n, int32_t from, int32_t to) {
  if (to == AOT_F64 || from == to || (to == AOT_F32 && (from == AOT_F16 || from == AOT_BF16))) return;
  for (int64_t k = 0; k < n; k++) v[k] = rk_round_to(v[k], to);
}

static void run_floats(rk_ctx_t *c, const pw_row_t *row, const operands_t *o, const pw_par_t *p, rk_iter_t *it) {
  double in[PW_ARGS][PW_RUN], out[PW_RUN], x[PW_ARGS];
  int32_t to[PW_ARGS];
  rk_tensor_t *r = rk_result(c, 0);
  for (uint32_t a = 0; a < o->n; a++) {
    to[a] = operand_dtype(row, o, a, p->dtype);
    for (int64_t k = 0; !o->tensor[a] && k < PW_RUN; k++) in[a][k] = rk_round_to(o->number[a], to[a]);
  }
  for (; it->more; rk_iter_next(it))
    for (int64_t done = 0, n; done < it->run; done += n) {
      n = it->run - done < PW_RUN ? it->run - done : PW_RUN;
      for (uint32_t a = 0; a < o->n; a++) {
        int32_t s = o->slot[a];
        if (!o->tensor[a]) continue;
        rk_load_run_f(o->tensor[a], it->at[s] + done * it->step[s], it->step[s], n, in[a]);
        round_run(in[a], n, o->tensor[a]->dtype, to[a]);
      }
      for (int64_t k = 0; k < n; k++) {
        for (uint32_t a = 0; a < o->n; a++) x[a] = in[a][k];
        out[k] = row->f(x, p);
      }
      rk_store_run_f(r, it->at[0] + done * it->step[0], it->step[0], n, out);
    }
}

/* Operands become the computing dtype first, as PyTorch's casts make them: int8 200 is -56, and 0.5 as bool is true. */
static int64_t number_as(const operands_t *o, uint32_t a, int32_t dtype) {
  if (dtype == AOT_BOOL) return o->number[a] != 0;
  return rk_wrap_to(o->whole[a], dtype);
}

static void run_ints(rk_ctx_t *c, const pw_row_t *row, const operands_t *o, const pw_par_t *p, rk_iter_t *it) {
  int64_t in[PW_ARGS][PW_RUN], out[PW_RUN], x[PW_ARGS];
  rk_tensor_t *r = rk_result(c, 0);
  for (uint32_t a = 0; a < o->n; a++)
    for (int64_t k = 0; !o->tensor[a] && k < PW_RUN; k++) in[a][k] = number_as(o, a, p->dtype);
  for (; it->more; rk_iter_next(it))
    for (int64_t done = 0, n; done < it->run; done += n) {
      n = it->run - done < PW_RUN ? it->run - done : PW_RUN;
      for (uint32_t a = 0; a < o->n; a++) {
        int32_t s = o->slot[a];
        if (o->tensor[a])
          rk_load_run_i_as(o->tensor[a], it->at[s] + done * it->step[s], it->step[s], n, p->dtype, in[a]);
      }
      for (int64_t k = 0; k < n; k++) {
        for (uint32_t a = 0; a < o->n; a++) x[a] = in[a][k];
        out[k] = row->i(x, p);
      }
      rk_store_run_i(r, it->at[0] + done * it->step[0], it->step[0], n, out);
    }
}

aot_status_t pw_run(rk_ctx_t *c) {
  const pw_row_t *row = c->kernel->row;
  operands_t o;
  pw_par_t p;
  rk_iter_t it;
  const rk_tensor_t *r = rk_result(c, 0);
  if (!rk_wants(c, 0)) return AOT_OK;
  rk_iter_over(&it, r);
  AOT_TRY(read_operands(c, row, &o, &p, &it));
  p.dtype = compute_dtype(c, row, &o);
  if (rk_is_int(p.dtype) && row->i) run_ints(c, row, &o, &p, &it);
  else {
    RK_CHECK(c, row->f, "dtype %s is not supported", aot_dtype_name(p.dtype));
    run_floats(c, row, &o, &p, &it);
  }
  return AOT_OK;
}
