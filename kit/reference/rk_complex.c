/* rk_complex.c - see rk_complex.h: the ways to run an operator on complex numbers. */
#include "rk_complex.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

rk_complex_t rk_complex_of(double real, double imaginary) {
  double parts[2] = {real, imaginary};
  rk_complex_t z;
  memcpy(&z, parts, sizeof z);
  return z;
}

rk_tensor_t rk_part(const rk_tensor_t *t, int imaginary) {
  rk_tensor_t p = *t;
  p.dtype = aot_dtype_part(t->dtype);
  p.offset = 2 * t->offset + imaginary;
  for (int32_t d = 0; d < t->rank; d++) p.strides[d] = 2 * t->strides[d];
  return p;
}

/* ---- runs of elements ---- */

static void load_run(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, rk_complex_t *out) {
  const int64_t width = (int64_t)aot_dtype_size(t->dtype), half = width / 2;
  const char *p = (const char *)t->data + at * width;
  const int32_t part = aot_dtype_part(t->dtype);
  for (int64_t k = 0; k < n; k++, p += stride * width)
    out[k] = aot_dtype_is_complex(t->dtype) ? rk_complex_of(rk_load_f(p, part), rk_load_f(p + half, part))
                                            : rk_complex_of(rk_load_f(p, t->dtype), 0);
}

static void store_run(rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, const rk_complex_t *v) {
  const int64_t width = (int64_t)aot_dtype_size(t->dtype), half = width / 2;
  char *p = (char *)t->data + at * width;
  const int32_t part = aot_dtype_part(t->dtype);
  for (int64_t k = 0; k < n; k++, p += stride * width) {
    if (!aot_dtype_is_complex(t->dtype)) {
      rk_store_f(p, t->dtype, creal(v[k]));
      continue;
    }
    rk_store_f(p, part, creal(v[k]));
    rk_store_f(p + half, part, cimag(v[k]));
  }
}

/* ---- dense work copies ---- */

aot_status_t rk_complex_new(rk_ctx_t *c, int32_t rank, const int64_t *sizes, rk_complex_array_t *out) {
  memset(out, 0, sizeof *out);
  out->rank = rank;
  out->numel = 1;
  for (int32_t d = 0; d < rank; d++) {
    out->sizes[d] = sizes[d];
    RK_CHECK(c, sizes[d] >= 0 && !__builtin_mul_overflow(out->numel, sizes[d], &out->numel), "a size is too large");
  }
  RK_SCRATCH(c, out->numel, out->v);
  return AOT_OK;
}

aot_status_t rk_complex_need(rk_ctx_t *c, uint32_t arg, rk_complex_array_t *out) {
  const rk_tensor_t *t;
  rk_iter_t it;
  int64_t n = 0;
  AOT_TRY(rk_need_tensor(c, arg, &t));
  AOT_TRY(rk_complex_new(c, t->rank, t->sizes, out));
  rk_iter_over(&it, t);
  for (; it.more; rk_iter_next(&it), n += it.run) load_run(t, it.at[0], it.step[0], it.run, out->v + n);
  return AOT_OK;
}

aot_status_t rk_complex_put(rk_ctx_t *c, uint32_t result, const rk_complex_array_t *a) {
  rk_tensor_t *t;
  rk_iter_t it;
  int64_t n = 0;
  if (!rk_wants(c, result)) return AOT_OK;
  AOT_TRY(rk_check_result(c, result, a->rank, a->sizes));
  t = rk_result(c, result);
  rk_iter_over(&it, t);
  for (; it.more; rk_iter_next(&it), n += it.run) store_run(t, it.at[0], it.step[0], it.run, a->v + n);
  return AOT_OK;
}

void rk_complex_around(const rk_complex_array_t *a, int32_t dim, int64_t *outer, int64_t *size, int64_t *inner) {
  rk_array_t shape = {.rank = a->rank};
  memcpy(shape.sizes, a->sizes, sizeof shape.sizes);
  rk_around(&shape, dim, outer, size, inner);
}

/* ---- the kernel, run on real numbers ---- */

/* What is in an argument's place in one run. */
enum { REAL, IMAGINARY, ZERO };

/* Zeros of t's shape and dtype, real, in one element. */
static aot_status_t zeros_like(rk_ctx_t *c, const rk_tensor_t *t, rk_tensor_t *out) {
  double *zero;
  RK_SCRATCH(c, 1, zero);
  *out = *t;
  if (aot_dtype_is_complex(t->dtype)) out->dtype = aot_dtype_part(t->dtype);
  out->data = zero;
  out->nbytes = sizeof *zero;
  out->offset = 0;
  memset(out->strides, 0, sizeof out->strides);
  return AOT_OK;
}

static aot_status_t tensor_part(rk_ctx_t *c, const rk_tensor_t *t, int what, int holds_elements,
                                const rk_tensor_t **out) {
  rk_tensor_t *p;
  *out = t;
  if (!t || (!aot_dtype_is_complex(t->dtype) && (!holds_elements || what == REAL))) return AOT_OK;
  RK_SCRATCH(c, 1, p);
  *out = p;
  if (what == ZERO || !aot_dtype_is_complex(t->dtype)) return zeros_like(c, t, p);
  *p = rk_part(t, what == IMAGINARY);
  return AOT_OK;
}

static aot_status_t argument_part(rk_ctx_t *c, const rk_arg_t *a, int what, int holds_elements, rk_arg_t *out) {
  *out = *a;
  if (a->kind == AOT_ARG_VALUE) return tensor_part(c, a->u.tensor, what, holds_elements, &out->u.tensor);
  if (a->kind == AOT_ARG_VALUES) {
    const rk_tensor_t **list;
    RK_SCRATCH(c, a->n, list);
    for (uint32_t k = 0; k < a->n; k++) AOT_TRY(tensor_part(c, a->u.tensors[k], what, holds_elements, &list[k]));
    out->u.tensors = list;
  } else if (holds_elements && what != REAL &&
             (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_FLOAT || a->kind == AOT_ARG_BOOL)) {
    *out = rk_arg_of_float(0); /* a number has no imaginary part */
  }
  return AOT_OK;
}

/* The memory of an array of doubles. */
static rk_tensor_t tensor_over(const rk_array_t *a) {
  rk_tensor_t t = {
      .data = a->f, .nbytes = (uint64_t)(a->numel ? a->numel : 1) * sizeof(double), .dtype = AOT_F64, .rank = a->rank};
  memcpy(t.sizes, a->sizes, sizeof t.sizes);
  rk_lay_dense(&t);
  return t;
}

/* The kernel on tensors that are real: parts of those of c, which were checked, and work copies. */
static aot_status_t run_kernel(const rk_ctx_t *c, const rk_call_t *call) {
  rk_ctx_t real = {c->kernel, call, c->error, NULL, NULL};
  const aot_status_t status = c->kernel->run(&real);
  rk_scratch_free(&real);
  return status;
}

/* One run into `results`. what[k]: the part of argument k; others than those of `slots` are no elements and stay. */
static aot_status_t run_real(rk_ctx_t *c, const int *what, uint32_t slots, rk_tensor_t *results) {
  rk_call_t call = *c->call;
  rk_arg_t *args;
  RK_SCRATCH(c, call.n_args, args);
  for (uint32_t k = 0; k < call.n_args; k++)
    AOT_TRY(argument_part(c, &call.args[k], k < 32 ? what[k] : REAL, k < 32 && slots >> k & 1, &args[k]));
  call.args = args;
  call.results = results;
  return run_kernel(c, &call);
}

static aot_status_t run_parts(rk_ctx_t *c, const rk_complex_row_t *row) {
  const uint32_t n = c->call->n_results;
  rk_tensor_t *results;
  int any = 1;
  RK_SCRATCH(c, n, results);
  for (int imaginary = 0; imaginary < 2 && any; imaginary++) {
    int what[32];
    for (uint32_t k = 0; k < 32; k++) what[k] = imaginary ? IMAGINARY : REAL;
    any = 0;
    for (uint32_t r = 0; r < n; r++) {
      results[r] = c->call->results[r];
      RK_CHECK(c, !results[r].dtype || results[r].data,
               "a result whose size the data tell is not supported for complex numbers");
      if (!results[r].dtype || !aot_dtype_is_complex(results[r].dtype)) continue;
      results[r] = rk_part(&c->call->results[r], imaginary);
      any = 1;
    }
    AOT_TRY(run_real(c, what, row->slots, results));
  }
  return AOT_OK;
}

/* (a + bi)(c + di) = (ac - bd) + (ad + bc)i, what is added next to ac and ad. The products are stored in double. */
static aot_status_t run_product(rk_ctx_t *c, const rk_complex_row_t *row) {
  static const int parts[4][2] = {{REAL, REAL}, {IMAGINARY, IMAGINARY}, {REAL, IMAGINARY}, {IMAGINARY, REAL}};
  static const int added[4] = {REAL, ZERO, IMAGINARY, ZERO};
  const rk_tensor_t *r = rk_result(c, 0);
  const double sign = row->conjugate ? -1 : 1;
  rk_array_t product[4];
  rk_complex_array_t out;
  if (!rk_wants(c, 0)) return AOT_OK;
  for (int run = 0; run < 4; run++) {
    int what[32], factor = 0;
    AOT_TRY(rk_new_f(c, r->rank, r->sizes, &product[run]));
    rk_tensor_t result = tensor_over(&product[run]);
    for (uint32_t k = 0; k < 32; k++) {
      what[k] = row->added >> k & 1 ? added[run] : REAL;
      if (row->slots >> k & 1) what[k] = parts[run][factor++ ? 1 : 0];
    }
    AOT_TRY(run_real(c, what, row->slots | row->added, &result));
  }
  AOT_TRY(rk_complex_new(c, r->rank, r->sizes, &out));
  for (int64_t e = 0; e < out.numel; e++)
    out.v[e] = rk_complex_of(product[0].f[e] - sign * product[1].f[e], product[2].f[e] + sign * product[3].f[e]);
  return rk_complex_put(c, 0, &out);
}

static aot_status_t run_magnitude(rk_ctx_t *c) {
  rk_call_t call = *c->call;
  rk_complex_array_t z;
  rk_array_t a;
  rk_tensor_t *t;
  rk_arg_t *args;
  AOT_TRY(rk_complex_need(c, 0, &z));
  AOT_TRY(rk_new_f(c, z.rank, z.sizes, &a));
  for (int64_t e = 0; e < z.numel; e++) a.f[e] = cabs(z.v[e]);
  RK_SCRATCH(c, 1, t);
  *t = tensor_over(&a);
  RK_SCRATCH(c, call.n_args, args);
  memcpy(args, call.args, call.n_args * sizeof *args);
  args[0] = rk_arg_of_tensor(t);
  call.args = args;
  return run_kernel(c, &call);
}

/* ---- pointwise ---- */

#define RUN 128 /* elements converted at a time */

/* Does the operator compute in double? What it writes says so; a comparison follows its operands with dimensions. */
static int is_wide(const rk_ctx_t *c) {
  const int32_t r = rk_result_dtype(c, 0);
  int wide = 0, ranked = 0;
  if (r == AOT_C128 || r == AOT_F64) return 1;
  if (r == AOT_C64 || r == AOT_F32) return 0;
  for (uint32_t k = 0; k < c->call->n_args; k++) {
    const rk_tensor_t *t = c->call->args[k].kind == AOT_ARG_VALUE ? c->call->args[k].u.tensor : NULL;
    int is_double = t && (t->dtype == AOT_C128 || t->dtype == AOT_F64);
    if (!t || (ranked && t->rank == 0)) continue;
    wide = t->rank > 0 && !ranked ? is_double : wide | is_double;
    ranked |= t->rank > 0;
  }
  return wide;
}

static aot_status_t run_pointwise(rk_ctx_t *c, const rk_complex_row_t *row) {
  const uint32_t n_args = c->call->n_args < PW_ARGS ? c->call->n_args : PW_ARGS;
  rk_complex_t in[PW_ARGS][RUN], out[RUN], x[PW_ARGS];
  const rk_tensor_t *tensor[PW_ARGS] = {NULL};
  int32_t slot[PW_ARGS] = {0};
  rk_tensor_t *r = rk_result(c, 0);
  pw_par_t p = {0};
  rk_iter_t it;
  if (!rk_wants(c, 0)) return AOT_OK;
  const int32_t work = is_wide(c) ? AOT_F64 : AOT_F32;
  rk_iter_over(&it, r);
  p.dtype = r->dtype;
  for (uint32_t a = 0; a < n_args; a++) {
    const rk_arg_t *arg = &c->call->args[a];
    if (arg->kind == AOT_ARG_NONE) continue;
    p.present |= 1u << a;
    if (arg->kind == AOT_ARG_VALUE) {
      tensor[a] = arg->u.tensor;
      slot[a] = it.n_tensors;
      p.dtypes[a] = arg->u.tensor->dtype;
      RK_CHECK(c, rk_iter_add(&it, arg->u.tensor), "argument %u does not broadcast to the declared result", a);
    }
    for (int64_t k = 0; k < RUN; k++) in[a][k] = tensor[a] ? 0 : rk_round_to(rk_float(c, a, 0), work);
  }
  for (; it.more; rk_iter_next(&it))
    for (int64_t done = 0, n; done < it.run; done += n) {
      n = it.run - done < RUN ? it.run - done : RUN;
      for (uint32_t a = 0; a < n_args; a++) {
        if (!tensor[a]) continue;
        load_run(tensor[a], it.at[slot[a]] + done * it.step[slot[a]], it.step[slot[a]], n, in[a]);
        for (int64_t k = 0; work == AOT_F32 && k < n; k++)
          in[a][k] = rk_complex_of(rk_round_to(creal(in[a][k]), work), rk_round_to(cimag(in[a][k]), work));
      }
      for (int64_t k = 0; k < n; k++) {
        for (uint32_t a = 0; a < n_args; a++) x[a] = p.present >> a & 1 ? in[a][k] : 0;
        out[k] = row->f(x, &p);
      }
      store_run(r, it.at[0] + done * it.step[0], it.step[0], n, out);
    }
  return AOT_OK;
}

aot_status_t rk_complex_run(rk_ctx_t *c, const rk_complex_row_t *row) {
  switch (row->way) {
    case RK_COMPLEX_PARTS: return run_parts(c, row);
    case RK_COMPLEX_PRODUCT: return run_product(c, row);
    case RK_COMPLEX_MAGNITUDE: return run_magnitude(c);
    case RK_COMPLEX_POINTWISE: return run_pointwise(c, row);
    case RK_COMPLEX_OWN: return row->run(c);
    default: return c->kernel->run(c);
  }
}
