/* Writing nodes: the thin layer through which rules see the program. The first failure is kept and later calls do nothing,
 * so that a rule reads like its formula and is checked once at its end. New nodes stand before the rewritten one and carry
 * its origin, flags and checkpoint tag. Operator names are ATen's without the namespace; the overload `default` is left out;
 * a name of three parts is a full one. */
#ifndef RG_EMIT_H
#define RG_EMIT_H

#include <aot/host.h>
#include <aot/inline.h>

typedef aot_arg_t rg_x; /* a value, a number, a list or none */

/* Where numbers are drawn from: the 0-dim int64 tensors and the number of the next draw. */
typedef struct rg_stream {
  aot_value_t seed, offset; /* AOT_NO_ID: not there yet (draws.h) */
  int64_t next;
  /* seed and offset once more on the device of the last draw that stood on another one */
  int32_t device, device_index;
  aot_value_t there_seed, there_offset;
} rg_stream_t;

/* Which draw the state stands for that an attention kernel hands to its backward. */
typedef struct rg_attention_draw {
  uint32_t state; /* value */
  aot_value_t seed, offset;
  int64_t number;
} rg_attention_draw_t;
typedef struct rg_attention_draws {
  rg_attention_draw_t *at;
  uint32_t n, capacity;
} rg_attention_draws_t;

typedef struct rg_emit {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  aot_node_t node;            /* the one that is rewritten */
  const aot_op_desc_t *desc;  /* its operator */
  aot_node_info_t info;       /* arguments are borrowed until the node's next edit, which a rule never makes */
  rg_stream_t *stream;
  rg_attention_draws_t *attention; /* of this program */
  aot_status_t status;
  int is_left;                /* set by a rule: the node draws nothing and may stay as it is */
} rg_emit_t;

void rg_begin(rg_emit_t *e, aot_node_t node);
void rg_fail(rg_emit_t *e, aot_status_t status, const char *hint, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- the rewritten node ---- */
rg_x rg_in(rg_emit_t *e, const char *name); /* an argument; none when the schema has none of the name */
double rg_in_float(rg_emit_t *e, const char *name, double otherwise); /* a constant number */
int rg_in_bool(rg_emit_t *e, const char *name, int otherwise);
aot_type_t rg_result_type(rg_emit_t *e, uint32_t i);

/* ---- values and numbers ---- */
static inline rg_x rg_v(aot_value_t v) { return aot_arg_value(v); }
static inline rg_x rg_i(int64_t i) { return aot_arg_int(i); }
static inline rg_x rg_f(double f) { return aot_arg_float(f); }
static inline rg_x rg_b(int b) { return aot_arg_bool(b); }
static inline rg_x rg_none(void) { return aot_arg_none(); }
static inline rg_x rg_dtype(int32_t dtype) { return aot_arg_dtype(dtype); }
aot_value_t rg_value(rg_emit_t *e, rg_x x); /* fails for what is none */
aot_type_t rg_type(rg_emit_t *e, rg_x x);   /* of a value */

/* ---- nodes ---- */
/* The first result; results have consecutive values (rg_nth). */
rg_x rg_call(rg_emit_t *e, const char *op, uint32_t n_args, const rg_x *args);
rg_x rg_nth(rg_x first, uint32_t i);
#define RG(e, op, ...)                                                                                                      \
  rg_call((e), (op), (uint32_t)(sizeof((const rg_x[]){__VA_ARGS__}) / sizeof(rg_x)), (const rg_x[]){__VA_ARGS__})
rg_x rg_cast(rg_emit_t *e, rg_x x, int32_t dtype); /* x itself when it has that dtype */
/* x in the memory order of `like`, which has the same sizes; x itself when it lies so or `like` is not dense. */
rg_x rg_laid_out(rg_emit_t *e, rg_x x, const aot_type_t *like);

#endif
