/* What a derivative rule uses: the node it differentiates, and functions that append backward nodes to the joint graph.
 * This header and ag_emit.c, over kit/emit/emit.h, are the only path from rules to the host.
 *
 * A rule computes with arguments (em_x_t): a tensor (VALUE), a number (INT, also symbolic, FLOAT, BOOL), any attribute
 * of the node, or NONE. As a cotangent or gradient NONE means zero: a product with NONE is NONE, a sum with NONE is the
 * other operand.
 *
 * Errors are sticky: the first one stays in the emitter's status, and later calls do nothing and return NONE, so rules
 * read as formulas. */
#ifndef AG_EMIT_H
#define AG_EMIT_H

#include "kit/emit/emit.h"

#define AG_MAX_LETS 8

/* The type of a tensor, with its own copy of the sizes. */
typedef struct ag_type {
  int32_t dtype, rank, device, device_index;
  int64_t sizes[AOT_MAX_RANK];
} ag_type_t;

/* What rules know besides the emitter, whose graph is the joint one and whose node at hand is the one being
 * differentiated. */
typedef struct ag_site {
  uint32_t n_made;              /* nodes emitted */
  uint32_t depth;               /* regions around the graph */
  const struct ag_bound *rules; /* by operator id (rules.h) */
  struct ag_shared *shared;     /* regions that have a gradient already (joint.h) */
  const uint8_t *needs;         /* by value id: a gradient is wanted */
  const uint32_t *cotangents;   /* of the results; AOT_NO_ID: zero */
  const uint32_t *slot;         /* by argument: its first operand slot; n_args + 1 */
  uint32_t *out;                /* by operand slot: the gradient; AOT_NO_ID: zero */
  const uint32_t *conjugated;   /* of cotangents, while a rule for analytic functions runs; NULL else */
} ag_site_t;

static inline ag_site_t *ag_of(const em_t *a) { return a->self; }

typedef void (*ag_rule_fn)(em_t *a);
typedef int (*ag_when_fn)(em_t *a); /* looks at arguments only */

/* ---- the node ---- */
#define AG_NO_ARG UINT32_MAX
uint32_t ag_index(const em_t *a, const char *name, size_t size); /* number of an argument; AG_NO_ARG: there is none */
uint32_t ag_at(const em_t *a, const char *name);
em_x_t ag_arg(em_t *a, const char *name);
em_x_t ag_y(em_t *a, uint32_t result);
em_x_t ag_g(em_t *a, uint32_t result);
int ag_needs(em_t *a, const char *name); /* a tensor whose gradient is wanted, or a list with one */
int ag_needs_at(em_t *a, uint32_t arg, uint32_t element);
uint32_t ag_count(em_t *a, const char *name); /* operands of the argument: 0, 1, or the length of a list */
/* The gradient of an argument (of element k of a list): brought to its shape by summing over broadcast dimensions, and
 * to its dtype and device. */
void ag_set(em_t *a, const char *name, em_x_t gradient);
void ag_set_at(em_t *a, uint32_t arg, uint32_t element, em_x_t gradient);
int ag_is_set(em_t *a, const char *name, int otherwise); /* a bool argument; NONE: otherwise */

/* Between the two ag_g gives conjugates, and ag_set conjugates what it is given. */
void ag_conjugate_begin(em_t *a);
void ag_conjugate_end(em_t *a);

/* ---- values ---- */
em_x_t ag_v(uint32_t value);                           /* AOT_NO_ID: NONE */
int ag_is_constant(em_x_t v);                          /* a number, and no symbolic size */
double ag_number(em_t *a, em_x_t v, double otherwise); /* a constant number; NONE: otherwise */
int64_t ag_int(em_t *a, em_x_t v, int64_t otherwise);  /* may be symbolic */
ag_type_t ag_type(em_t *a, em_x_t tensor);
uint32_t ag_dim(em_t *a, int64_t dim, int32_t rank); /* counts from the end when negative; rank 0 has dimension 0 */

/* ---- sizes, symbolic or not ---- */
int64_t ag_dim_op(em_t *a, int32_t op, int64_t x, int64_t y); /* AOT_EXPR_* */
int64_t ag_product(em_t *a, const int64_t *sizes, uint32_t n);
em_x_t ag_sizes(em_t *a, em_x_t tensor);
/* marks[d] = 1 for the dimensions that `dims` (INT, INTS; NONE and the empty list: all) names. */
void ag_dim_set(em_t *a, em_x_t dims, int32_t rank, uint8_t *marks);
em_x_t ag_extent(em_t *a, em_x_t tensor, em_x_t dims); /* how many elements a reduction over dims takes together */

/* ---- operators ---- */
/* One node of `op` (full name, or without "aten." and ".default"); its first result. */
em_x_t ag_call(em_t *a, const char *op, uint32_t n_args, const em_x_t *args);
/* The same, with the first n_out results (NONE for those it does not have). */
void ag_call_n(em_t *a, const char *op, uint32_t n_args, const em_x_t *args, uint32_t n_out, em_x_t *out);
#define AG_OP(a, op, ...)                                                                                              \
  ag_call(a, op, (uint32_t)(sizeof((const em_x_t[]){__VA_ARGS__}) / sizeof(em_x_t)), (const em_x_t[]){__VA_ARGS__})

em_x_t ag_add(em_t *a, em_x_t x, em_x_t y);
em_x_t ag_sub(em_t *a, em_x_t x, em_x_t y);
em_x_t ag_mul(em_t *a, em_x_t x, em_x_t y);
em_x_t ag_div(em_t *a, em_x_t x, em_x_t y);
em_x_t ag_neg(em_t *a, em_x_t x);
em_x_t ag_pow(em_t *a, em_x_t x, em_x_t exponent);
em_x_t ag_compare(em_t *a, const char *op, em_x_t x, em_x_t y); /* op: "gt", "eq", .. */
em_x_t ag_where(em_t *a, em_x_t condition, em_x_t x, em_x_t y); /* numbers allowed; NONE is 0 */

em_x_t ag_device(const ag_type_t *t); /* as the device argument of a creation; NONE for the CPU */
em_x_t ag_zeros(em_t *a, const ag_type_t *type);
em_x_t ag_zeros_like(em_t *a, em_x_t tensor);
em_x_t ag_reshape(em_t *a, em_x_t x, const int64_t *sizes, int32_t rank); /* the same numbers in this shape */
em_x_t ag_reshape_like(em_t *a, em_x_t x, em_x_t shaped);
em_x_t ag_expand(em_t *a, em_x_t x, const int64_t *sizes, int32_t rank);
em_x_t ag_transpose(em_t *a, em_x_t x);                    /* the last two dimensions */
em_x_t ag_pad_to(em_t *a, em_x_t x, const int64_t *sizes); /* zeros at the end of the dimensions that are smaller */
em_x_t ag_sum_to(em_t *a, em_x_t x, const int64_t *sizes, int32_t rank); /* undoes broadcasting to x's shape */
em_x_t ag_cast(em_t *a, em_x_t x, int32_t dtype);
em_x_t ag_wide(em_t *a, em_x_t x);                 /* a half in float32; others as they are */
em_x_t ag_contiguous(em_t *a, em_x_t x);           /* in row-major order, copied if need be */
em_x_t ag_match(em_t *a, em_x_t x, em_x_t tensor); /* sum_to, then dtype and device */
/* x, which lost dims of `tensor` in a reduction, spread over the tensor's shape again. */
em_x_t ag_unreduce(em_t *a, em_x_t x, em_x_t tensor, em_x_t dims, int keepdim);
/* Zeros of the tensor's shape with g added at `index` along dim. Without keepdim g and index lack that dimension. */
em_x_t ag_scatter_at(em_t *a, em_x_t tensor, em_x_t dim, em_x_t index, em_x_t g, int keepdim);

#endif
