/* Writing nodes: the thin layer through which hooks see a program. The first failure is kept and later calls do nothing, so
 * that a hook reads like its formula and is checked once at its end. */
#ifndef HK_EMIT_H
#define HK_EMIT_H

#include <aot/host.h>

typedef aot_value_t hk_v;

typedef struct hk_emit {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;   /* where nodes go: FORWARD while packing, BACKWARD while unpacking .. */
  aot_node_t before;   /* .. before this node; AOT_NO_ID: at the end */
  aot_origin_t origin; /* of new nodes */
  uint32_t flags;      /* AOT_NODE_* of new nodes */
  aot_status_t status;
} hk_emit_t;

/* One node with one result; types are inferred. */
hk_v hk_make(hk_emit_t *e, const char *op, const aot_arg_t *args, uint32_t n_args);
hk_v hk_unary(hk_emit_t *e, const char *op, hk_v a);
hk_v hk_binary(hk_emit_t *e, const char *op, hk_v a, hk_v b);
hk_v hk_with_int(hk_emit_t *e, const char *op, hk_v a, int64_t number);
hk_v hk_with_float(hk_emit_t *e, const char *op, hk_v a, double number);
hk_v hk_cast(hk_emit_t *e, hk_v a, int32_t dtype); /* a itself when it has that dtype */
hk_v hk_bits(hk_emit_t *e, hk_v a, int32_t dtype); /* the same bytes as another dtype of that size */
hk_v hk_clamp(hk_emit_t *e, hk_v a, double min, double max);
hk_v hk_where(hk_emit_t *e, hk_v condition, hk_v a, hk_v b);
/* a in strides like those of `like`: copied in the order of like's dimensions in memory. The caller compares afterwards. */
hk_v hk_restride(hk_emit_t *e, hk_v a, const aot_type_t *like);

aot_type_t hk_type(hk_emit_t *e, hk_v a); /* kind NONE after a failure */
/* The same strides, those aside that nobody can tell apart: of dimensions of size 1, and of nothing. Ranks are equal. */
int hk_same_strides(const aot_type_t *a, const aot_type_t *b);
int64_t hk_numel(const hk_emit_t *e, const aot_type_t *t); /* with symbols at their hints */

/* An error at a value (or AOT_NO_ID); file NULL: none. Keeps the status. */
void hk_fail(hk_emit_t *e, aot_status_t status, const char *code, aot_str_t file, uint32_t line, hk_v at, const char *hint,
             const char *format, ...) __attribute__((format(printf, 8, 9)));

#endif
