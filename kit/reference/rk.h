/* Reference kernels: one plain C function an operator, on strided tensors, for use without a host.
 *
 * A kernel gets the operator's arguments in schema order and writes results whose storage, shape and dtype the caller
 * has chosen. It never trusts them: shapes that do not fit the operator are an error, not a wild read. Sums of floats
 * are accumulated in double, f16 and bf16 round to float and again to their own width, integers stay in int64.
 *
 *     const rk_kernel_t *k = rk_find(aot_str("aten.add.Tensor"));
 *     rk_arg_t args[] = {rk_arg_of_tensor(&x), rk_arg_of_tensor(&y), rk_arg_of_int(1)};
 *     rk_call_t call = {args, 3, &out, 1};
 *     rk_run(k, &call, &error);
 *
 * Kernels keep no state and may run on any thread. rk_find is a linear search: look up once an operator, not once a
 * call. */
#ifndef RK_H
#define RK_H

#include <aot/base.h>
#include <aot/status.h>

/* A tensor. Sizes, strides and offset count elements. dtype 0 represents None: an absent optional result. */
typedef struct rk_tensor {
  void *data;      /* first byte of the storage */
  uint64_t nbytes; /* of the storage */
  int32_t dtype, rank;
  int64_t offset;
  int64_t sizes[AOT_MAX_RANK];
  int64_t strides[AOT_MAX_RANK];
} rk_tensor_t;

/* An argument; kind is AOT_ARG_*. Dimensions are plain numbers: the caller has evaluated symbols. */
typedef struct rk_arg {
  int32_t kind;
  uint32_t n; /* elements of a list, bytes of a string */
  union {
    int64_t i;
    double f;
    const int64_t *ints;
    const double *floats;
    const rk_tensor_t *tensor;         /* AOT_ARG_VALUE */
    const rk_tensor_t *const *tensors; /* AOT_ARG_VALUES: n of them, NULL where absent */
    const char *chars;
  } u;
} rk_arg_t;

typedef struct rk_call {
  const rk_arg_t *args; /* in schema order, defaults filled in; a Tensor slot may hold a number */
  uint32_t n_args;
  rk_tensor_t *results; /* allocated; a view function fills in geometry and storage instead */
  uint32_t n_results;
} rk_call_t;

typedef struct rk_error {
  char text[320]; /* "aten.gather.default: index 9 at [0,2] is out of range for dimension 1 of size 4" */
} rk_error_t;

typedef struct rk_kernel rk_kernel_t;

const rk_kernel_t *rk_find(aot_str_t full_name); /* NULL: none */
uint32_t rk_count(void);
const rk_kernel_t *rk_at(uint32_t i); /* i < rk_count() */
aot_str_t rk_name(const rk_kernel_t *k);
int rk_is_view(const rk_kernel_t *k);
/* its meaning depends on the first argument's strides and offset: as_strided, view.dtype */
int rk_needs_storage(const rk_kernel_t *k);
int rk_is_fill(const rk_kernel_t *k); /* reads no element of any argument */

/* Compute every result. The text of a failure is in `error`. */
aot_status_t rk_run(const rk_kernel_t *k, const rk_call_t *call, rk_error_t *error);

/* What the caller does for a kernel while it runs. */
typedef struct rk_caller {
  void *self;
  /* A result's sizes are known now: put a tensor of them, with storage, into call->results[result]. */
  aot_status_t (*place)(void *self, uint32_t result, int32_t rank, const int64_t *sizes, rk_error_t *error);
  void (*say)(void *self, const char *text, uint32_t n); /* a line that the program prints */
} rk_caller_t;
/* rk_run where results with data NULL are open: their sizes depend on the data and are reported to caller->place. Only
 * for kernels that rk_gives_sizes names. */
aot_status_t rk_run_for(const rk_kernel_t *k, const rk_call_t *call, const rk_caller_t *caller, rk_error_t *error);
int rk_gives_sizes(const rk_kernel_t *k);
/* For view kernels: describe the results as views of the first argument's storage; nothing is copied.
 * AOT_E_UNIMPLEMENTED: no strides can express it (then rk_run copies). */
aot_status_t rk_view(const rk_kernel_t *k, const rk_call_t *call, rk_error_t *error);
/* Why a call with these arguments is refused, before anything runs; NULL: it is not. Tensors need no data.
 * Random operators that would draw numbers are refused: randomness must be explicit. */
const char *rk_refuse(const rk_kernel_t *k, const rk_arg_t *args, uint32_t n_args);

/* Is every element of t inside its storage? */
int rk_tensor_fits(const rk_tensor_t *t);
int64_t rk_numel(const rk_tensor_t *t);
void rk_lay_dense(rk_tensor_t *t); /* row-major strides, no offset */
/* Copy with conversion; equal sizes. */
void rk_copy(rk_tensor_t *dst, const rk_tensor_t *src);
/* Can kernels read and write this dtype? Of complex ones only those that say so. */
int rk_dtype_supported(int32_t dtype);
int rk_takes_complex(const rk_kernel_t *k);

static inline rk_arg_t rk_arg_of_tensor(const rk_tensor_t *t) {
  rk_arg_t a;
  a.kind = t ? AOT_ARG_VALUE : AOT_ARG_NONE;
  a.n = 0;
  a.u.tensor = t;
  return a;
}
static inline rk_arg_t rk_arg_of_int(int64_t i) {
  rk_arg_t a;
  a.kind = AOT_ARG_INT;
  a.n = 0;
  a.u.i = i;
  return a;
}
static inline rk_arg_t rk_arg_of_float(double f) {
  rk_arg_t a;
  a.kind = AOT_ARG_FLOAT;
  a.n = 0;
  a.u.f = f;
  return a;
}
static inline rk_arg_t rk_arg_of_bool(int b) {
  rk_arg_t a;
  a.kind = AOT_ARG_BOOL;
  a.n = 0;
  a.u.i = b != 0;
  return a;
}
static inline rk_arg_t rk_arg_of_ints(const int64_t *ints, uint32_t n) {
  rk_arg_t a;
  a.kind = AOT_ARG_INTS;
  a.n = n;
  a.u.ints = ints;
  return a;
}

#endif
