/* Result types of operators: plain functions on plain arrays. A rule reads arguments by name, computes with dimensions
 * that may be symbolic, and puts one type per result. What it needs to know of the world comes through at_env_t, so
 * that rules run without a host. dims.h says what a failure does to a rule, and how its dimensions may be symbolic. */
#ifndef AT_SHAPE_H
#define AT_SHAPE_H

#include "layout.h"

/* Runs the rule of a row: AOT_OK, or the status with c->message. */
aot_status_t at_infer_run(at_infer_t *c, const at_row_t *row, const aot_op_desc_t *desc, const aot_arg_t *args,
                          uint32_t n_args, const at_env_t *env);

/* ---- arguments, by schema name; absent ones answer their default ---- */
const aot_arg_t *at_arg(at_infer_t *c, const char *name);
int at_has(at_infer_t *c, const char *name); /* given and not None */
int64_t at_int(at_infer_t *c, const char *name);
int at_bool(at_infer_t *c, const char *name);
double at_float(at_infer_t *c, const char *name);
int at_str_is(at_infer_t *c, const char *name, const char *text);
uint32_t at_ints(at_infer_t *c, const char *name, const int64_t **out); /* an int represents a list of one */
/* A Tensor or Scalar argument. kind NONE: absent; TENSOR; SYMINT, SYMFLOAT, SYMBOOL: a number, dtype its default one.
 * strides are never NULL. */
aot_type_t at_operand(at_infer_t *c, const char *name);
aot_type_t at_operand_of(at_infer_t *c, const aot_arg_t *arg);
aot_type_t at_tensor(at_infer_t *c, const char *name); /* at_operand, which must be a tensor */
uint32_t at_list_size(at_infer_t *c, const char *name);
aot_type_t at_list_item(at_infer_t *c, const char *name, uint32_t i);
/* Element i of a list argument; an argument that is no list is its own element. */
aot_arg_t at_element(const aot_schema_arg_t *s, const aot_arg_t *list, uint32_t i);

/* ---- promotion (promote.c) ---- */
int32_t at_promote_pair(at_infer_t *c, int32_t a, int32_t b); /* 0 represents nothing */
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

/* Of out=: has the given tensor no elements, and another shape than the result? PyTorch resizes such a one. */
int at_is_resized(const aot_type_t *given, const aot_type_t *result);

#endif
