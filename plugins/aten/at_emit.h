/* The only way from rewriting rules to the host: a thin emitter of nodes.
 *
 * Rules compute with arguments (at_x): a value, a number, a list, None. Failures are sticky: the first one stays in
 * e->status, later calls do nothing and answer None, so that rules read as formulas:
 *
 *     at_x y = AT(e, "mul.Tensor", at_in(e, "self"), at_f(2.0));
 *     out_values[0] = at_value(e, AT(e, "exp", y));
 *
 * New nodes stand before the rewritten one and carry its origin, flags and region tag. Operator names are ATen's without the
 * namespace; the overload `default` is left out. A name of three parts is a full one. */
#ifndef AT_EMIT_H
#define AT_EMIT_H

#include "at_row.h"
#include "shape.h"

#include <aot/host.h>
#include <aot/inline.h>

typedef aot_arg_t at_x;

typedef struct at_emit {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const at_row_t *row;       /* of the rewritten node */
  const aot_op_desc_t *desc;
  aot_node_t node, before;
  aot_node_info_t info;
  aot_status_t status;
  at_infer_t *infer;         /* dimension arithmetic and layouts, as shape rules have them */
} at_emit_t;

/* e->infer must point to an at_infer_t with its environment set. */
void at_emit_begin(at_emit_t *e, aot_node_t node, aot_node_t before);
void at_emit_fail(at_emit_t *e, const char *hint, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- the rewritten node ---- */
at_x at_in(at_emit_t *e, const char *name); /* an argument; None when the schema has none of the name */
int at_in_has(at_emit_t *e, const char *name);
int64_t at_in_int(at_emit_t *e, const char *name, int64_t otherwise);
double at_in_float(at_emit_t *e, const char *name, double otherwise);
uint32_t at_in_ints(at_emit_t *e, const char *name, const int64_t **out); /* a number stands for a list of one */
int at_in_str_is(at_emit_t *e, const char *name, const char *text);
aot_type_t at_result_type(at_emit_t *e, uint32_t i);

/* ---- values and numbers ---- */
at_x at_v(aot_value_t v);
aot_value_t at_value(at_emit_t *e, at_x x); /* fails for what is not a value; None: AOT_NO_ID */
at_x at_i(int64_t i);
at_x at_f(double f);
at_x at_b(int b);
at_x at_none(void);
at_x at_list(at_emit_t *e, const int64_t *ints, uint32_t n); /* a copy */
at_x at_dtype_of(int32_t dtype);
int at_is_none(at_x x);
aot_type_t at_type(at_emit_t *e, at_x x); /* of a value; a number has rank 0 and its default dtype */

/* ---- nodes ---- */
/* The first result; results have consecutive values (at_nth). */
at_x at_call(at_emit_t *e, const char *op, uint32_t n_args, const at_x *args);
at_x at_nth(at_x first, uint32_t i);
#define AT(e, op, ...)                                                                                                 \
  at_call((e), (op), (uint32_t)(sizeof((const at_x[]){__VA_ARGS__}) / sizeof(at_x)), (const at_x[]){__VA_ARGS__})

/* ---- small combinations ---- */
at_x at_cast(at_emit_t *e, at_x x, int32_t dtype);           /* x itself when it has that dtype */
/* A view, of a copy where the layout allows none; x itself when it has that shape. */
at_x at_reshaped(at_emit_t *e, at_x x, const int64_t *sizes, int32_t rank);
at_x at_expanded(at_emit_t *e, at_x x, const int64_t *sizes, int32_t rank); /* x itself when it has that shape */
/* x in the memory order of `like`, without its gaps; x itself when it lies so. Both have the same sizes. */
at_x at_laid_out(at_emit_t *e, at_x x, const aot_type_t *like);
at_x at_summed(at_emit_t *e, at_x x, const int64_t *dims, uint32_t n, int keep); /* x itself when n is 0 */
int at_touches_complex(at_emit_t *e); /* some operand or result of the rewritten node is complex */
int at_same_shape(at_emit_t *e, const aot_type_t *t, const int64_t *sizes, int32_t rank);

#endif
