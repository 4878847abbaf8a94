/* The operators of this library: names, schemas, what they are, and how the types of their results follow. */
#ifndef TV_OPERATORS_H
#define TV_OPERATORS_H

#include <aot/host.h>

/* A question about one call. The answer goes to sink; a failure has been diagnosed. */
typedef struct tv_infer {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const char *op;
  const aot_arg_t *args;
  const aot_type_sink_t *sink;
  aot_status_t status; /* sticky: later steps do nothing */
} tv_infer_t;

typedef struct tv_operator {
  const char *name, *schema, *doc;
  const char *shape_rule;              /* what its rule is called; "given": the model file reports the type */
  uint32_t flags;                      /* AOT_OP_* */
  void (*infer)(tv_infer_t *t);        /* NULL: the model file reports the type, since the size depends on data */
  uint8_t autocast_cpu, autocast_cuda; /* AOT_AUTOCAST_*, as torchvision 0.26 has it */
} tv_operator_t;

extern const tv_operator_t tv_operators[];
extern const uint32_t tv_n_operators;

#endif
