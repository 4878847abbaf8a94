/* torchvision-ops: the compiled operators of torchvision as an operator library: schemas, result types, kernels,
 * derivatives.
 *
 * Copy it to write a library of your own. Read it from the bottom: the entry, the descriptor, the unit, its table. What
 * an operator is is in operators_emit.c, how it runs in vision_kernels.c, how it is differentiated in
 * derivatives_emit.c; the algorithms see arrays only. */
#include "kit/schema/schema.h"
#include "vision_kernels.h"
#include "operators.h"
#include "vision_rewrites.h"

#include <aot/describe.h>
#include <aot/ext/opset_info.h>
#include <aot/inline.h>
#include <string.h>

#define ID "torchvision-ops"
#define HELP "torchvision operators: roi_align, roi_pool, ps_roi_align, ps_roi_pool, deform_conv2d, nms"

typedef struct opset {
  aot_opset_t table;
  aot_host_t host;
  aot_ext_derivatives_t derivatives;
  aot_ext_opset_info_t info;
} opset_t;

static int is_nms(uint32_t local) { return strcmp(tv_operators[local].name, "torchvision.nms.default") == 0; }

/* ---- the unit's functions ---- */

static aot_status_t AOT_CALL infer(const aot_opset_t *self, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                   const aot_arg_t *args, uint32_t n_args, const aot_type_sink_t *sink) {
  const opset_t *o = self->head.self;
  const tv_operator_t *op = &tv_operators[local];
  (void)n_args;
  tv_infer_t t = {
      .host = &o->host, .ctx = ctx, .prog = prog, .op = op->name, .args = args, .sink = sink, .status = AOT_OK};
  if (!op->infer) return AOT_E_UNIMPLEMENTED;
  op->infer(&t);
  return t.status;
}

static aot_status_t AOT_CALL decompose(const aot_opset_t *self, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                       aot_node_t node, aot_value_t *out_values) {
  const opset_t *o = self->head.self;
  if (!is_nms(local)) return AOT_E_UNIMPLEMENTED;
  return tv_decompose_nms(&o->host, ctx, prog, node, out_values);
}

static const void *AOT_CALL get_ext(const aot_table_t *self, const char *id) {
  const opset_t *o = self->self;
  if (strcmp(id, AOT_EXT_KERNELS) == 0) return &tv_kernels;
  if (strcmp(id, AOT_EXT_DERIVATIVE) == 0) return &o->derivatives;
  return strcmp(id, AOT_EXT_OPSET_INFO) == 0 ? &o->info : NULL;
}

static void AOT_CALL destroy(const aot_table_t *self) { (void)self; } /* everything is the session's */

/* ---- create: schemas become descriptors ---- */

typedef struct session_memory {
  const aot_host_t *host;
  aot_ctx_t *ctx;
} session_memory_t;

static void *session_alloc(void *self, uint64_t align, uint64_t nbytes) {
  const session_memory_t *m = self;
  return m->host->alloc(m->host, m->ctx, AOT_ARENA_SESSION, (uint32_t)align, nbytes);
}

static aot_status_t describe(const tv_operator_t *op, const sch_memory_t *memory, aot_op_desc_t *out) {
  sch_schema_t s;
  sch_error_t error;
  AOT_TRY(sch_parse(aot_str(op->schema), memory, &s, &error));
  *out = (aot_op_desc_t){
      .struct_size = sizeof *out,
      .flags = op->flags,
      .name = aot_str(op->name),
      .schema = aot_str(op->schema),
      .group = aot_str("vision"),
      .doc = aot_str(op->doc),
      .args = s.args,
      .results = s.results,
      .n_args = s.n_args,
      .n_results = s.n_results,
      .autocast = {[AOT_DEVICE_CPU] = op->autocast_cpu, [AOT_DEVICE_CUDA] = op->autocast_cuda},
  };
  return AOT_OK;
}

static aot_status_t AOT_CALL create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                    const aot_table_t **out_table) {
  opset_t *o = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *o);
  aot_op_desc_t *descs = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), tv_n_operators * sizeof *descs);
  const aot_op_desc_t **ops = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), tv_n_operators * sizeof *ops);
  aot_op_info_t *infos = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), tv_n_operators * sizeof *infos);
  (void)opts;
  if (!o || !descs || !ops || !infos) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&o->host, sizeof o->host, host));
  session_memory_t session = {&o->host, ctx};
  for (uint32_t i = 0; i < tv_n_operators; i++) {
    AOT_TRY(describe(&tv_operators[i], &(sch_memory_t){&session, session_alloc}, &descs[i]));
    ops[i] = &descs[i];
    infos[i] = (aot_op_info_t){.flags = is_nms(i) ? AOT_OP_INFO_DECOMPOSES : 0,
                               .shape_rule = aot_str(tv_operators[i].shape_rule)};
  }
  o->info = (aot_ext_opset_info_t){
      .struct_size = sizeof o->info, .ops = infos, .n_ops = tv_n_operators, .op_stride = sizeof *infos};
  AOT_TRY(tv_make_derivatives(&o->host, ctx, &o->derivatives));
  o->table = (aot_opset_t){
      .head = {.struct_size = sizeof o->table, .self = o, .destroy = destroy, .get_ext = get_ext},
      .ops = ops,
      .n_ops = tv_n_operators,
      .infer = infer,
      .decompose = decompose,
  };
  *out_table = &o->table.head;
  return AOT_OK;
}

/* ---- descriptor ---- */

AOT_PLUGIN_OPSET(ID, AOT_VERSION, "aothost", "Apache-2.0", HELP, "torchvision", create);
