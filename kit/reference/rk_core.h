/* What every kernels_*.c file is written with: the running call, its arguments, scratch memory, dense work copies.
 *
 * Two ways to write a kernel. Pointwise ones and reductions give a scalar function to a strided driver. The others copy
 * their inputs to dense arrays of double or int64 (rk_need_f, rk_need_i), compute there as the formula reads, and store
 * with rk_put_f or rk_put_i, which check the result's shape and round once to its dtype. Scratch memory belongs to the
 * call and is freed by rk_run, so that a kernel returns early without cleaning up. */
#ifndef RK_CORE_H
#define RK_CORE_H

#include "rk.h"
#include <stddef.h>

typedef struct rk_ctx {
  const rk_kernel_t *kernel;
  const rk_call_t *call;
  rk_error_t *error;
  struct rk_chunk *chunks;
  const rk_caller_t *caller; /* NULL: every result has its place */
} rk_ctx_t;

typedef aot_status_t (*rk_fn)(rk_ctx_t *c);

#define RK_FILL 1u      /* reads no argument's elements */
#define RK_DROPOUT 2u   /* argument 1 is the probability p, argument 2 says train; refused when it would draw */
#define RK_DROPOUT_P 4u /* the first float argument is a dropout_p, which must be 0 */
#define RK_STORAGE 8u   /* reads the first argument's storage: its declared strides and offset matter */
#define RK_OPEN 16u     /* it can determine the sizes of results that the caller could not know */

struct rk_kernel {
  const char *name;
  rk_fn run;
  rk_fn view;      /* sets the geometry of the results; NULL: results are new tensors */
  const void *row; /* the family's own data */
  uint32_t flags;
};

/* A family's table of kernels. */
typedef struct rk_family {
  const rk_kernel_t *rows;
  uint32_t n_rows;
} rk_family_t;
#define RK_FAMILY(rows)                                                                                                \
  { rows, (uint32_t)(sizeof(rows) / sizeof(rows)[0]) }
const rk_kernel_t *rk_find_in(const rk_family_t *family, aot_str_t full_name); /* NULL: none */

/* ---- errors and memory ---- */
aot_status_t rk_fail(rk_ctx_t *c, aot_status_t status, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define RK_CHECK(c, condition, ...)                                                                                    \
  do {                                                                                                                 \
    if (!(condition)) return rk_fail(c, AOT_E_INVALID, __VA_ARGS__);                                                   \
  } while (0)
/* n zeroed elements; at least one byte, so that the pointer is never NULL. */
aot_status_t rk_scratch(rk_ctx_t *c, int64_t n, size_t size, void *out_pointer);
void rk_scratch_free(rk_ctx_t *c); /* all of the call's */
#define RK_SCRATCH(c, n, pointer) AOT_TRY(rk_scratch(c, n, sizeof *(pointer), &(pointer)))

/* ---- arguments ---- */
int rk_has(const rk_ctx_t *c, uint32_t arg); /* present and not None */
int64_t rk_int(const rk_ctx_t *c, uint32_t arg, int64_t preset);
double rk_float(const rk_ctx_t *c, uint32_t arg, double preset);
int rk_bool(const rk_ctx_t *c, uint32_t arg, int preset);
int rk_str_is(const rk_ctx_t *c, uint32_t arg, const char *text);
uint32_t rk_list(const rk_ctx_t *c, uint32_t arg, const int64_t **out); /* a single number is a list of one in *out */
/* n numbers out of an int[n] argument: one is repeated; an empty list or None gives preset, when there is one. */
aot_status_t rk_ints(rk_ctx_t *c, uint32_t arg, uint32_t n, const int64_t *preset, int64_t *out);
/* The tensor of an argument; a number becomes a 0-dim tensor; None: *out is NULL. */
aot_status_t rk_tensor_of(rk_ctx_t *c, uint32_t arg, const rk_tensor_t **out);
aot_status_t rk_need_tensor(rk_ctx_t *c, uint32_t arg, const rk_tensor_t **out); /* None is an error */
/* The tensors of a list argument. */
aot_status_t rk_tensors_of(rk_ctx_t *c, uint32_t arg, const rk_tensor_t *const **out, uint32_t *out_n);
/* dim in [-rank, rank) to [0, rank); a 0-dim tensor takes 0 and -1. */
aot_status_t rk_dim(rk_ctx_t *c, int64_t dim, int32_t rank, int32_t *out);
/* A dim list as marks, one a dimension; None or an empty list marks all when all_if_empty. */
aot_status_t rk_dim_marks(rk_ctx_t *c, uint32_t arg, int32_t rank, int all_if_empty, uint8_t *out_marks);

/* ---- elements ---- */
double rk_load_f(const void *p, int32_t dtype);
int64_t rk_load_i(const void *p, int32_t dtype);
void rk_store_f(void *p, int32_t dtype, double v);
void rk_store_i(void *p, int32_t dtype, int64_t v);
/* n elements from element `at` on, `stride` apart. */
void rk_load_run_f(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, double *out);
void rk_load_run_i(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, int64_t *out);
/* As values of dtype: what a cast to it gives. */
void rk_load_run_f_as(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, int32_t dtype, double *out);
void rk_load_run_i_as(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, int32_t dtype, int64_t *out);
void rk_store_run_f(rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, const double *v);
void rk_store_run_i(rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, const int64_t *v);
double rk_round_to(double v, int32_t dtype);  /* to a float dtype's values, back as double */
int64_t rk_wrap_to(int64_t v, int32_t dtype); /* to an integer dtype's values */
/* on its way into an integer dtype: cut towards zero; as bool, 0.5 is true */
int64_t rk_int_of(double v, int32_t dtype);
int rk_is_int(int32_t dtype);             /* integers and bool */
int32_t rk_promote(int32_t a, int32_t b); /* of two tensors with dimensions */
double rk_dtype_lowest(int32_t dtype);    /* of floats: -inf */
double rk_dtype_eps(int32_t dtype);

/* ---- iteration: several tensors in one index space, broadcast; the last dimension is the inner run ---- */
#define RK_ITER_MAX 8
typedef struct rk_iter {
  int32_t rank, n_tensors;
  int64_t sizes[AOT_MAX_RANK], index[AOT_MAX_RANK];
  int64_t strides[RK_ITER_MAX][AOT_MAX_RANK];
  int64_t at[RK_ITER_MAX];   /* element of the storage where the run starts */
  int64_t step[RK_ITER_MAX]; /* stride of the inner dimension */
  int64_t run;               /* elements of a run */
  int more;
} rk_iter_t;
void rk_iter_init(rk_iter_t *it, int32_t rank, const int64_t *sizes);
int rk_iter_add(rk_iter_t *it, const rk_tensor_t *t);   /* 0: t does not broadcast to the space */
void rk_iter_over(rk_iter_t *it, const rk_tensor_t *t); /* t alone, in its own sizes */
void rk_iter_next(rk_iter_t *it);
int rk_same_shape(const rk_tensor_t *a, const rk_tensor_t *b);
/* Where an element of the result comes from: its index in self. 0: from nowhere, the result keeps what is there. */
typedef int (*rk_index_map_t)(const void *data, const rk_tensor_t *self, const int64_t *index, int64_t *out_index);
/* into result 0, any dtype */
aot_status_t rk_gather(rk_ctx_t *c, const rk_tensor_t *self, rk_index_map_t map, const void *data);

/* ---- dense work copies ---- */
typedef struct rk_array {
  int32_t rank;
  int32_t dtype; /* of the tensor it was read from */
  int64_t numel;
  int64_t sizes[AOT_MAX_RANK];
  double *f; /* one of the two, row-major */
  int64_t *i;
} rk_array_t;
aot_status_t rk_dense_f(rk_ctx_t *c, const rk_tensor_t *t, rk_array_t *out); /* t NULL: out->f is NULL */
aot_status_t rk_dense_i(rk_ctx_t *c, const rk_tensor_t *t, rk_array_t *out);
aot_status_t rk_get_f(rk_ctx_t *c, uint32_t arg, rk_array_t *out); /* None: out->f is NULL */
aot_status_t rk_get_i(rk_ctx_t *c, uint32_t arg, rk_array_t *out);
aot_status_t rk_need_f(rk_ctx_t *c, uint32_t arg, rk_array_t *out);
aot_status_t rk_need_i(rk_ctx_t *c, uint32_t arg, rk_array_t *out);
aot_status_t rk_need_cast_i(rk_ctx_t *c, uint32_t arg, int32_t dtype,
                            rk_array_t *out); /* as values of an integer dtype */
aot_status_t rk_new_f(rk_ctx_t *c, int32_t rank, const int64_t *sizes, rk_array_t *out); /* zeroed */
aot_status_t rk_new_i(rk_ctx_t *c, int32_t rank, const int64_t *sizes, rk_array_t *out);
int rk_same_sizes(const rk_array_t *a, const rk_array_t *b);
/* As double or as int64, by the dtype: every value is stored exactly. */
aot_status_t rk_dense_any(rk_ctx_t *c, const rk_tensor_t *t, rk_array_t *out);
aot_status_t rk_need_any(rk_ctx_t *c, uint32_t arg, rk_array_t *out);
/* f or i as kind */
aot_status_t rk_new_like(rk_ctx_t *c, const rk_array_t *kind, int32_t rank, const int64_t *sizes, rk_array_t *out);
void rk_set_element(rk_array_t *to, int64_t at, const rk_array_t *from, int64_t source);
/* to[at] += alpha * from[source] */
void rk_add_element(rk_array_t *to, int64_t at, const rk_array_t *from, int64_t source, double alpha);
/* The next coordinates in row-major order; 0 after the last. */
int rk_advance(int64_t *index, int32_t rank, const int64_t *sizes);
int64_t rk_flat(const int64_t *index, int32_t rank, const int64_t *sizes);
/* t broadcast to sizes, dense. */
aot_status_t rk_dense_expanded(rk_ctx_t *c, const rk_tensor_t *t, int32_t rank, const int64_t *sizes, rk_array_t *out);

/* ---- results ---- */
int rk_wants(const rk_ctx_t *c, uint32_t result); /* the caller has a tensor for it */
rk_tensor_t *rk_result(const rk_ctx_t *c, uint32_t result);
int32_t rk_result_dtype(const rk_ctx_t *c, uint32_t result); /* 0: not wanted */
/* Its size is not known yet; the kernel reports it (rk_run_for). */
int rk_is_open(const rk_ctx_t *c, const rk_tensor_t *result);
aot_status_t rk_check_result(rk_ctx_t *c, uint32_t result, int32_t rank, const int64_t *sizes);
aot_status_t rk_put_f(rk_ctx_t *c, uint32_t result, const rk_array_t *a);
aot_status_t rk_put_i(rk_ctx_t *c, uint32_t result, const rk_array_t *a);
aot_status_t rk_put_any(rk_ctx_t *c, uint32_t result, const rk_array_t *a);
aot_status_t rk_put_tensor(rk_ctx_t *c, uint32_t result, const rk_tensor_t *t); /* copy with conversion */
void rk_fill_f(rk_tensor_t *t, double v);
void rk_fill_i(rk_tensor_t *t, int64_t v);

/* outer * size * inner = numel around dimension dim; a 0-dim array counts as one dimension of size 1. */
void rk_around(const rk_array_t *a, int32_t dim, int64_t *outer, int64_t *size, int64_t *inner);

#endif
