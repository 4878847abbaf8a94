/* The one way from a plugin's rules to new nodes: an operator's name and its arguments give the first result.
 *
 *     em_x_t y = EM(e, "mul.Tensor", em_in(e, "self"), em_f(2.0));
 *     out[0] = em_value(e, EM(e, "exp", y));
 *
 * Rules compute with arguments (em_x_t): a value, a number, a list, none. Failures are sticky: the first one stays in
 * e->status, later calls do nothing and answer none, so that a rule reads as its formula and is checked once at its
 * end.
 *
 * Operators are called by their full names, or as ATen's without the namespace; the overload `default` is left out
 * then: "exp" is aten.exp.default, "mul.Tensor" is aten.mul.Tensor. A name of three parts, and one of higher_order,
 * is a full one. */
#ifndef PLUGINS_COMMON_EMIT_H
#define PLUGINS_COMMON_EMIT_H

#include <aot/host.h>
#include <aot/inline.h>

typedef aot_arg_t em_x_t;

typedef struct em {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  /* new nodes: where they go and what they carry */
  aot_graph_t graph;
  aot_node_t before; /* none: at the end */
  aot_origin_t origin;
  uint32_t flags, region_tag;
  /* the node at hand, none if nodes are made for their own sake; arguments are borrowed until its next edit */
  aot_node_t node;
  aot_node_info_t info;
  const aot_op_desc_t *desc;
  /* errors */
  const char *code; /* of the emitter's own, "rng.rewrite" */
  const char *what; /* is made of the nodes where there is none at hand, "the update" */
  aot_status_t status;
  void *self; /* what the plugin's rules know besides */
} em_t;

/* An emitter for the end of a graph. */
em_t em_make(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph);
/* Looks at a node: node, info, desc. */
aot_status_t em_look(em_t *e, aot_node_t node);
/* The same, and new nodes precedes it and carry its marks. */
aot_status_t em_rewrite(em_t *e, aot_node_t node);
/* new nodes have this origin, these flags, this checkpoint region */
void em_carry(em_t *e, const aot_node_info_t *marks);

/* ---- failures ---- */
/* keeps the status of a host call, which has reported its story; is all well? */
int em_ok(em_t *e, aot_status_t status);
void em_tell(em_t *e, aot_status_t status, const aot_diag_t *d); /* nothing after an earlier failure */
/* An error at the node at hand. */
void em_fail(em_t *e, aot_status_t status, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void *em_scratch(em_t *e, uint64_t n, uint64_t size); /* zeroed; NULL: e->status says so */

/* ---- the node at hand ---- */
em_x_t em_in(const em_t *e, const char *name); /* an argument; none when the schema has none of the name */
double em_in_float(em_t *e, const char *name, double otherwise); /* a constant number */
int em_in_bool(em_t *e, const char *name, int otherwise);
aot_type_t em_result_type(em_t *e, uint32_t i);
int em_touches_complex(const em_t *e); /* some operand or result is complex */

/* ---- values and numbers ---- */
static inline em_x_t em_v(aot_value_t v) { return aot_arg_value(v); }
static inline em_x_t em_i(int64_t i) { return aot_arg_int(i); }
static inline em_x_t em_f(double f) { return aot_arg_float(f); }
static inline em_x_t em_b(int b) { return aot_arg_bool(b); }
static inline em_x_t em_none(void) { return aot_arg_none(); }
static inline em_x_t em_dtype(int32_t dtype) { return aot_arg_dtype(dtype); }
static inline em_x_t em_device(int32_t device, int32_t index) { return aot_arg_device(device, index); }
static inline int em_is_none(em_x_t x) { return x.kind == AOT_ARG_NONE; }
static inline int em_is_value(em_x_t x) { return x.kind == AOT_ARG_VALUE; }
static inline int em_is_number(em_x_t x) {
  return x.kind == AOT_ARG_INT || x.kind == AOT_ARG_FLOAT || x.kind == AOT_ARG_BOOL;
}
em_x_t em_list(em_t *e, const int64_t *ints, uint32_t n); /* a copy */
aot_value_t em_value(em_t *e, em_x_t x);                  /* none: no value; fails for anything else */
aot_type_t em_type(em_t *e, em_x_t x);      /* of a value; fails for what is none; kind NONE after a failure */
int em_is_complex(const em_t *e, em_x_t x); /* a tensor of complex numbers */

/* ---- nodes ---- */
aot_op_t em_op(em_t *e, const char *name); /* fails when no operator set has it */
/* A node with inferred types; its first result. Results have consecutive values (em_nth). */
em_x_t em_call(em_t *e, const char *op, uint32_t n_args, const em_x_t *args);
#define EM(e, op, ...)                                                                                                 \
  em_call((e), (op), (uint32_t)(sizeof((const em_x_t[]){__VA_ARGS__}) / sizeof(em_x_t)), (const em_x_t[]){__VA_ARGS__})
static inline em_x_t em_nth(em_x_t first, uint32_t i) {
  if (em_is_value(first)) first.u.i += i;
  return first;
}
/* Any node; n_types 0: inferred. None after a failure. out_made may be NULL. */
aot_node_t em_put(em_t *e, aot_op_t op, uint32_t n_args, const aot_arg_t *args, uint32_t n_types,
                  const aot_type_t *types, aot_node_info_t *out_made);
/* Types of n consecutive values. */
void em_types(em_t *e, aot_value_t first, uint32_t n, aot_type_t *out);
/* A node like another one, where and with what new nodes are made: its operator, arguments and types. */
aot_node_t em_repeat(em_t *e, const aot_node_info_t *node, aot_node_info_t *out_made);
/* n consecutive values in place of others: their names, and what reads them. */
void em_take_over(em_t *e, aot_value_t from, aot_value_t to, uint32_t n);

/* ---- formulas; x and y are values, or one of them a number ---- */
em_x_t em_add(em_t *e, em_x_t x, em_x_t y);
em_x_t em_sub(em_t *e, em_x_t x, em_x_t y);
em_x_t em_mul(em_t *e, em_x_t x, em_x_t y);
em_x_t em_div(em_t *e, em_x_t x, em_x_t y); /* x is a value */
em_x_t em_pow(em_t *e, em_x_t x, em_x_t y);
em_x_t em_cast(em_t *e, em_x_t x, int32_t dtype); /* x itself when it has that dtype or is no tensor */

#endif
