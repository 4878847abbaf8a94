/* What a derivative rule works with: the node it differentiates, and functions that put backward nodes at the end of the
 * joint graph. This header and ag_emit.c are the only way from rules to the host.
 *
 * Everything that a rule computes with is an aot_arg_t, called ag_val_t here: a tensor (VALUE), a number (INT, also
 * symbolic, FLOAT, BOOL), any attribute of the node as it stands, or NONE. As a cotangent or a gradient NONE means zero;
 * arithmetic follows from that: a product with NONE is NONE, a sum with NONE is the other side.
 *
 * Failures are sticky: the first one stays in ag_t.status, later calls do nothing and return NONE, so that rules read as
 * formulas. */
#ifndef AG_EMIT_H
#define AG_EMIT_H

#include <aot/host.h>
#include <aot/inline.h>

#define AG_MAX_LETS 8

typedef aot_arg_t ag_val_t;

/* The type of a tensor, with its own copy of the sizes. */
typedef struct ag_type {
  int32_t dtype, rank, device, device_index;
  int64_t sizes[AOT_MAX_RANK];
} ag_type_t;

typedef struct ag {
  /* the joint graph */
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  aot_status_t status;
  uint32_t n_made; /* nodes emitted */
  uint32_t depth;  /* regions around the graph */
  const struct ag_bound *rules; /* by operator id (rules.h) */
  struct ag_shared *shared;     /* regions that have a gradient already (joint.h) */
  /* the node being differentiated */
  aot_node_t node;
  aot_node_info_t info;
  const aot_op_desc_t *desc;
  const uint8_t *needs;       /* by value id: a gradient is wanted */
  const uint32_t *cotangents; /* of the results; AOT_NO_ID: zero */
  const uint32_t *slot;       /* by argument: its first operand slot; n_args + 1 */
  uint32_t *out;              /* by operand slot: the gradient; AOT_NO_ID: zero */
  const uint32_t *conjugated; /* of cotangents, while a rule for analytic functions runs; NULL else */
} ag_t;

typedef void (*ag_rule_fn)(ag_t *a);
typedef int (*ag_when_fn)(ag_t *a); /* looks at arguments only */

/* ---- the node ---- */
#define AG_NO_ARG UINT32_MAX
uint32_t ag_index(const ag_t *a, const char *name, size_t size); /* number of an argument; AG_NO_ARG: there is none */
uint32_t ag_at(const ag_t *a, const char *name);
ag_val_t ag_arg(ag_t *a, const char *name);
ag_val_t ag_y(ag_t *a, uint32_t result);
ag_val_t ag_g(ag_t *a, uint32_t result);
int ag_needs(ag_t *a, const char *name); /* a tensor whose gradient is wanted, or a list with one */
int ag_needs_at(ag_t *a, uint32_t arg, uint32_t element);
uint32_t ag_count(ag_t *a, const char *name); /* operands of the argument: 0, 1, or the length of a list */
/* The gradient of an argument (of element k of a list): brought to its shape by summing over broadcast dimensions, and to
 * its dtype and device. */
void ag_set(ag_t *a, const char *name, ag_val_t gradient);
void ag_set_at(ag_t *a, uint32_t arg, uint32_t element, ag_val_t gradient);
int ag_is_set(ag_t *a, const char *name, int otherwise); /* a bool argument; NONE: otherwise */

/* Is an operand or a result of the node complex? */
int ag_touches_complex(ag_t *a);
/* Between the two ag_g gives conjugates, and ag_set conjugates what it is given. */
void ag_conjugate_begin(ag_t *a);
void ag_conjugate_end(ag_t *a);

/* ---- values ---- */
ag_val_t ag_none(void);
ag_val_t ag_i(int64_t i);
ag_val_t ag_f(double f);
ag_val_t ag_b(int b);
ag_val_t ag_v(uint32_t value); /* AOT_NO_ID: NONE */
ag_val_t ag_list(ag_t *a, const int64_t *ints, uint32_t n); /* a copy */
int ag_is_tensor(ag_val_t v);
int ag_is_complex(ag_t *a, ag_val_t v);
int ag_is_number(ag_val_t v);
double ag_number(ag_t *a, ag_val_t v, double otherwise); /* a constant number; NONE: otherwise */
int64_t ag_int(ag_t *a, ag_val_t v, int64_t otherwise);   /* may be symbolic */
ag_type_t ag_type(ag_t *a, ag_val_t tensor);
uint32_t ag_dim(ag_t *a, int64_t dim, int32_t rank); /* counts from the end when negative; rank 0 has dimension 0 */

/* ---- sizes, symbolic or not ---- */
int64_t ag_dim_op(ag_t *a, int32_t op, int64_t x, int64_t y); /* AOT_EXPR_* */
int64_t ag_product(ag_t *a, const int64_t *sizes, uint32_t n);
ag_val_t ag_sizes(ag_t *a, ag_val_t tensor);
/* marks[d] = 1 for the dimensions that `dims` (INT, INTS; NONE and the empty list: all) names. */
void ag_dim_set(ag_t *a, ag_val_t dims, int32_t rank, uint8_t *marks);
ag_val_t ag_extent(ag_t *a, ag_val_t tensor, ag_val_t dims); /* how many elements a reduction over dims takes together */

/* ---- operators ---- */
/* One node of `op` (full name, or without "aten." and ".default"); its first result. */
ag_val_t ag_call(ag_t *a, const char *op, uint32_t n_args, const ag_val_t *args);
/* The same, with the first n_out results (NONE for those it does not have). */
void ag_call_n(ag_t *a, const char *op, uint32_t n_args, const ag_val_t *args, uint32_t n_out, ag_val_t *out);
#define AG_OP(a, op, ...)                                                                                              \
  ag_call(a, op, (uint32_t)(sizeof((const ag_val_t[]){__VA_ARGS__}) / sizeof(ag_val_t)), (const ag_val_t[]){__VA_ARGS__})

ag_val_t ag_add(ag_t *a, ag_val_t x, ag_val_t y);
ag_val_t ag_sub(ag_t *a, ag_val_t x, ag_val_t y);
ag_val_t ag_mul(ag_t *a, ag_val_t x, ag_val_t y);
ag_val_t ag_div(ag_t *a, ag_val_t x, ag_val_t y);
ag_val_t ag_neg(ag_t *a, ag_val_t x);
ag_val_t ag_pow(ag_t *a, ag_val_t x, ag_val_t exponent);
ag_val_t ag_compare(ag_t *a, const char *op, ag_val_t x, ag_val_t y); /* op: "gt", "eq", .. */
ag_val_t ag_where(ag_t *a, ag_val_t condition, ag_val_t x, ag_val_t y); /* numbers allowed; NONE is 0 */

ag_val_t ag_device(const ag_type_t *t); /* as the device argument of a creation; NONE for the CPU */
ag_val_t ag_zeros(ag_t *a, const ag_type_t *type);
ag_val_t ag_zeros_like(ag_t *a, ag_val_t tensor);
ag_val_t ag_reshape(ag_t *a, ag_val_t x, const int64_t *sizes, int32_t rank); /* the same numbers in this shape */
ag_val_t ag_reshape_like(ag_t *a, ag_val_t x, ag_val_t shaped);
ag_val_t ag_expand(ag_t *a, ag_val_t x, const int64_t *sizes, int32_t rank);
ag_val_t ag_transpose(ag_t *a, ag_val_t x); /* the last two dimensions */
ag_val_t ag_pad_to(ag_t *a, ag_val_t x, const int64_t *sizes); /* zeros at the end of the dimensions that are smaller */
ag_val_t ag_sum_to(ag_t *a, ag_val_t x, const int64_t *sizes, int32_t rank); /* undoes broadcasting to x's shape */
ag_val_t ag_cast(ag_t *a, ag_val_t x, int32_t dtype);
ag_val_t ag_contiguous(ag_t *a, ag_val_t x); /* in row-major order, copied if need be */
ag_val_t ag_match(ag_t *a, ag_val_t x, ag_val_t tensor); /* sum_to, then dtype and device */
/* x, which lost dims of `tensor` in a reduction, spread over the tensor's shape again. */
ag_val_t ag_unreduce(ag_t *a, ag_val_t x, ag_val_t tensor, ag_val_t dims, int keepdim);
/* Zeros of the tensor's shape with g added at `index` along dim. Without keepdim g and index lack that dimension. */
ag_val_t ag_scatter_at(ag_t *a, ag_val_t tensor, ag_val_t dim, ag_val_t index, ag_val_t g, int keepdim);

/* ---- messages ---- */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void ag_fail(ag_t *a, const char *hint, const char *format, ...); /* an error at the node; makes the status sticky */

#endif
