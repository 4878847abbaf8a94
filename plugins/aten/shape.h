/* Result types of operators: plain functions on plain arrays. A rule reads arguments by name, computes with dimensions
 * that may be symbolic, and puts one type per result. What it needs to know of the world comes through at_env_t, so
 * that rules run without a host.
 *
 * Errors are sticky: the first at_fail() is kept, later calls answer harmless values, and the rule needs no checks
 * between its steps.
 *
 * Symbolic dimensions: arithmetic folds constants first and asks the environment for an expression otherwise; questions
 * (equal? less?) are answered with the dimensions' hints, as PyTorch's own tracing does. */
#ifndef AT_SHAPE_H
#define AT_SHAPE_H

#include <aot/base.h>
#include <aot/graph.h>
#include <aot/opset.h>
#include "at_row.h"

typedef struct at_env {
  void *self;
  aot_status_t (*type_of)(void *self, uint32_t value, aot_type_t *out);
  aot_status_t (*dim)(void *self, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out); /* AOT_EXPR_* */
  int64_t (*hint)(void *self, int64_t dim);
  aot_status_t (*symbol)(void *self, int64_t min, int64_t max, int64_t hint, int64_t *out); /* a new one */
  aot_status_t (*region_result)(void *self, uint32_t graph, uint32_t i, aot_type_t *out); /* AOT_E_NOT_FOUND: no more */
  aot_status_t (*put)(void *self, const aot_type_t *type);
  /* puts another operator's results */
  aot_status_t (*infer)(void *self, uint32_t op, const aot_arg_t *args, uint32_t n_args);
  int (*carries_bit)(void *self, uint32_t value, uint32_t bit); /* lazy_bits.h */
} at_env_t;

#define AT_POOL 2048

typedef struct at_infer {
  const at_row_t *row;
  const aot_op_desc_t *desc;
  const aot_arg_t *args;
  uint32_t n_args;
  const at_env_t *env;
  aot_status_t status;
  char message[240];
  uint32_t n_put, n_pool;
  int requires_grad;            /* some operand does */
  int copies;                   /* what a view rule puts is a copy: contiguous, of its own */
  int32_t device, device_index; /* of the results */
  int64_t pool[AT_POOL];        /* dimension arrays of this call */
} at_infer_t;

/* Runs the rule of a row: AOT_OK, or the status with c->message. */
aot_status_t at_infer_run(at_infer_t *c, const at_row_t *row, const aot_op_desc_t *desc, const aot_arg_t *args,
                          uint32_t n_args, const at_env_t *env);

void at_fail(at_infer_t *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- arguments, by schema name; absent ones answer their default ---- */
const aot_arg_t *at_arg(at_infer_t *c, const char *name);
int at_has(at_infer_t *c, const char *name); /* given and not None */
int64_t at_int(at_infer_t *c, const char *name);
int at_bool(at_infer_t *c, const char *name);
double at_float(at_infer_t *c, const char *name);
int at_str_is(at_infer_t *c, const char *name, const char *text);
uint32_t at_ints(at_infer_t *c, const char *name, const int64_t **out); /* an int stands for a list of one */
/* A Tensor or Scalar argument. kind NONE: absent; TENSOR; SYMINT, SYMFLOAT, SYMBOOL: a number, dtype its default one.
 * strides are never NULL. */
aot_type_t at_operand(at_infer_t *c, const char *name);
aot_type_t at_operand_of(at_infer_t *c, const aot_arg_t *arg);
aot_type_t at_tensor(at_infer_t *c, const char *name); /* at_operand, which must be a tensor */
uint32_t at_list_size(at_infer_t *c, const char *name);
aot_type_t at_list_item(at_infer_t *c, const char *name, uint32_t i);
/* Element i of a list argument; an argument that is no list is its own element. */
aot_arg_t at_element(const aot_schema_arg_t *s, const aot_arg_t *list, uint32_t i);

/* ---- dimensions ---- */
int64_t *at_dims(at_infer_t *c, int32_t n); /* an array of the pool */
int64_t *at_dims_copy(at_infer_t *c, const int64_t *dims, int32_t n);
int64_t at_add(at_infer_t *c, int64_t a, int64_t b);
int64_t at_sub(at_infer_t *c, int64_t a, int64_t b);
int64_t at_mul(at_infer_t *c, int64_t a, int64_t b);
int64_t at_floordiv(at_infer_t *c, int64_t a, int64_t b);
int64_t at_min(at_infer_t *c, int64_t a, int64_t b); /* the host decides by the symbols' ranges where it can */
int64_t at_max(at_infer_t *c, int64_t a, int64_t b);
int64_t at_hint(at_infer_t *c, int64_t dim);
/* A number that only the run can tell: a new symbol in [min, max], both inclusive; a symbolic max counts as none. */
int64_t at_unknown(at_infer_t *c, int64_t min, int64_t max);
int at_same(at_infer_t *c, int64_t a, int64_t b);
int64_t at_numel(at_infer_t *c, const int64_t *sizes, int32_t rank);
int32_t at_wrap(at_infer_t *c, int64_t dim, int32_t rank); /* -1 is the last; a 0-dim tensor counts as rank 1 */
uint32_t at_dim_mask(at_infer_t *c, const int64_t *dims, uint32_t n, int32_t rank); /* bit set; duplicates fail */
const char *at_dims_text(at_infer_t *c, const int64_t *dims, int32_t n, char *buffer, uint32_t capacity);

/* ---- layouts (layout.c) ---- */
void at_strides_contiguous(at_infer_t *c, const int64_t *sizes, int32_t rank, int64_t *out);
void at_strides_channels_last(at_infer_t *c, const int64_t *sizes, int32_t rank, int64_t *out);
int at_is_contiguous(at_infer_t *c, const aot_type_t *t);
int at_is_channels_last(at_infer_t *c, const aot_type_t *t);
int at_suggests_channels_last(at_infer_t *c, const aot_type_t *t); /* PyTorch's suggest_memory_format */
int at_is_dense(at_infer_t *c, const aot_type_t *t);               /* non-overlapping and dense */
/* Strides of an elementwise result over these operands, broadcast to sizes. */
void at_strides_pointwise(at_infer_t *c, const aot_type_t *operands, uint32_t n, const int64_t *sizes, int32_t rank,
                          int64_t *out);
/* Strides of a fresh tensor of t's sizes, for a memory format; PRESERVE keeps dense strides. */
void at_strides_for_format(at_infer_t *c, const aot_type_t *t, int64_t memory_format, int64_t *out);
/* Strides of a view of t with these sizes; 0 when there is none. */
int at_view_strides(at_infer_t *c, const aot_type_t *t, const int64_t *sizes, int32_t rank, int64_t *out);

/* ---- promotion (promote.c) ---- */
int32_t at_promote_pair(at_infer_t *c, int32_t a, int32_t b); /* 0 stands for nothing */
int32_t at_promote(at_infer_t *c, const aot_type_t *operands, uint32_t n);
int at_is_integral(int32_t dtype);          /* bool included */
int32_t at_accumulate_dtype(int32_t dtype); /* f16, bf16 -> f32 */

/* ---- shapes ---- */
int32_t at_broadcast(at_infer_t *c, const aot_type_t *operands, uint32_t n, int64_t *out_sizes);

/* ---- results ---- */
void at_put(at_infer_t *c, int32_t dtype, const int64_t *sizes, int32_t rank); /* contiguous */
/* sizes by the argument `size`, laid out by the argument physical_layout: dimensions from the outermost in memory to
 * the innermost */
void at_put_permuted(at_infer_t *c, int32_t dtype, const char *size);
void at_put_strided(at_infer_t *c, int32_t dtype, const int64_t *sizes, const int64_t *strides, int32_t rank);
void at_put_view(at_infer_t *c, const aot_type_t *base, const int64_t *sizes, const int64_t *strides, int32_t rank,
                 int64_t offset);
void at_put_pointwise(at_infer_t *c, int32_t dtype, const aot_type_t *operands, uint32_t n);
/* fresh, of like's rank: channels last where that is so, as PyTorch's suggest_memory_format has it */
void at_put_in_format_of(at_infer_t *c, const aot_type_t *like, const int64_t *sizes, int32_t dtype);
void at_put_like(at_infer_t *c, const aot_type_t *like, int32_t dtype); /* fresh, layout preserved */
void at_put_none(at_infer_t *c);
void at_put_type(at_infer_t *c, const aot_type_t *t); /* as it stands */

#endif
