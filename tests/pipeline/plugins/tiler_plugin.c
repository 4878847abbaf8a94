/* A vendor's own way to keep tensors in memory, of which the host knows nothing: an opset that packs and unpacks, a
 * pass that has every relu work on tiles, and two backends, of which one knows them. */
#include "kit/base/host_call.h"
#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/ext/encodings.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <aot/pass.h>
#include <stdlib.h>

#define TILED "vendor.tiled"
#define TILE "2x2"
#define TILED_PROPERTY AOT_STR_INIT("vendor.is-tiled")

typedef struct tiler_plugin_unit {
  union {
    aot_opset_t opset;
    aot_pass_t pass;
    aot_backend_t backend;
  } table;
  aot_host_t host;
  aot_ext_encodings_t encodings;
} tiler_plugin_unit_t;

static tiler_plugin_unit_t *make(const aot_host_t *host) {
  tiler_plugin_unit_t *u = calloc(1, sizeof *u);
  if (u && aot_import(&u->host, sizeof u->host, host) == AOT_OK) return u;
  free(u);
  return NULL;
}

static void destroy(const aot_table_t *t) { free(t->self); }

static aot_status_t tiled(const tiler_plugin_unit_t *u, aot_prog_t *prog, aot_encoding_t *out) {
  const aot_encoding_info_t e = {.struct_size = sizeof e, .name = AOT_STR_INIT(TILED), .value = AOT_STR_INIT(TILE)};
  return u->host.edit->encoding_create(prog, &e, out);
}

/* ---- opset/1 "tiles": pack and unpack; the result's type says how it is laid out ---- */

static const aot_schema_arg_t tensor[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR}};
#define OP(name_)                                                                                                      \
  {                                                                                                                    \
    .struct_size = sizeof(aot_op_desc_t), .name = AOT_STR_INIT(name_), .schema = AOT_STR_INIT("(Tensor x) -> Tensor"), \
    .args = tensor, .results = tensor, .n_args = 1, .n_results = 1                                                     \
  }
static const aot_op_desc_t op_pack = OP("tiles.pack"), op_unpack = OP("tiles.unpack");
static const aot_op_desc_t *const ops[] = {&op_pack, &op_unpack};

static aot_status_t infer(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, const aot_arg_t *args,
                          uint32_t n, const aot_type_sink_t *sink) {
  const tiler_plugin_unit_t *u = o->head.self;
  aot_type_t t;
  (void)ctx, (void)n;
  AOT_TRY(u->host.graph->value_type(prog, (aot_value_t){(uint32_t)args[0].u.i}, &t));
  t.encoding.id = AOT_NO_ID;
  if (local == 0) AOT_TRY(tiled(u, prog, &t.encoding));
  return sink->put(sink, &t);
}

static aot_status_t opset_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                 const aot_table_t **out) {
  tiler_plugin_unit_t *u = make(host);
  (void)self, (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  u->table.opset = (aot_opset_t){
      .head = {.struct_size = sizeof u->table.opset, .self = u, .destroy = destroy},
      .ops = ops,
      .n_ops = 2,
      .infer = infer,
  };
  *out = &u->table.opset.head;
  return AOT_OK;
}

/* ---- pass/1 "tile": pack -> relu on tiles -> unpack ---- */

static aot_status_t put(const tiler_plugin_unit_t *u, aot_prog_t *prog, aot_graph_t g, const char *op, aot_value_t x,
                        aot_node_t before, aot_value_t *out) {
  const aot_arg_t arg = aot_arg_value(x);
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec, .op = u->host.graph->op_find(prog, aot_str(op)), .n_args = 1, .args = &arg};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t node;
  AOT_TRY(u->host.edit->node_create(prog, g, &spec, before, &node));
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  *out = info.first_result;
  return AOT_OK;
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const tiler_plugin_unit_t *u = p->head.self;
  const aot_graph_api_t *graph = u->host.graph;
  const aot_graph_t g = graph->graph_find(prog, AOT_GRAPH_FORWARD);
  const aot_op_t relu = graph->op_find(prog, aot_str("aten.relu.default"));
  (void)ctx;
  for (aot_node_t n = graph->first(prog, g), next; n.id != AOT_NO_ID; n = next) {
    aot_node_info_t info = {.struct_size = sizeof info};
    aot_value_t packed, unpacked;
    aot_type_t t;
    next = graph->next(prog, n);
    AOT_TRY(graph->node_info(prog, n, &info));
    if (info.op.id != relu.id) continue;
    const aot_value_t result = info.first_result;
    AOT_TRY(put(u, prog, g, op_pack.name.data, (aot_value_t){info.operands[0]}, n, &packed));
    AOT_TRY(u->host.edit->operand_set(prog, n, 0, packed));
    AOT_TRY(graph->value_type(prog, packed, &t));
    AOT_TRY(u->host.edit->type_set(prog, result, &t));
    AOT_TRY(put(u, prog, g, op_unpack.name.data, result, next, &unpacked));
    AOT_TRY(u->host.edit->uses_replace(prog, result, unpacked));
    AOT_TRY(u->host.edit->operand_set(prog, graph->value_def(prog, unpacked), 0, result));
  }
  return AOT_OK;
}

static aot_status_t pass_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                const aot_table_t **out) {
  tiler_plugin_unit_t *u = make(host);
  (void)self, (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  u->table.pass =
      (aot_pass_t){.head = {.struct_size = sizeof u->table.pass, .self = u, .destroy = destroy}, .run = run};
  *out = &u->table.pass.head;
  return AOT_OK;
}

/* ---- backend/2 "tiles-backend", which knows tiles of 2x2, and "plain-backend", which was never reported of any
 * ---- */

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const aot_graph_api_t *g = ((const tiler_plugin_unit_t *)b->head.self)->host.graph;
  (void)ctx;
  for (uint32_t i = 1; i < g->n_graphs(prog); i++)
    for (aot_node_t n = g->first(prog, (aot_graph_t){i}); n.id != AOT_NO_ID; n = g->next(prog, n)) {
      const aot_verdict_t v = {.struct_size = sizeof v, .node = n, .accepted = 1};
      AOT_TRY(sink->put(sink, &v));
    }
  return AOT_OK;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  (void)b, (void)ctx, (void)prog;
  return sink->write(sink, "tile", 4);
}

static aot_status_t exe_run(void *self, const hc_run_t *call) {
  (void)self, (void)call;
  return AOT_E_UNIMPLEMENTED; /* nothing runs it */
}

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  hc_exe_t *e = calloc(1, sizeof *e);
  (void)b, (void)ctx, (void)bytes, (void)nbytes;
  if (!e || !hc_exe_init(e, device, exe_run, e)) return AOT_E_EXHAUSTED;
  e->table.head.destroy = destroy;
  *out = &e->table;
  return AOT_OK;
}

static int32_t knows(const aot_ext_encodings_t *x, aot_ctx_t *ctx, aot_prog_t *prog, const aot_type_t *type) {
  const tiler_plugin_unit_t *u = x->head.self;
  aot_encoding_info_t e = {.struct_size = sizeof e};
  (void)ctx;
  return !type->memory && u->host.graph->encoding_info(prog, type->encoding, &e) == AOT_OK &&
         aot_str_eq(e.name, aot_str(TILED)) && aot_str_eq(e.value, aot_str(TILE));
}

static const void *backend_ext(const aot_table_t *b, const char *id) {
  const tiler_plugin_unit_t *u = b->self;
  return u->encodings.knows && strcmp(id, AOT_EXT_ENCODINGS) == 0 ? &u->encodings : NULL;
}

static aot_status_t backend_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out) {
  tiler_plugin_unit_t *u = make(host);
  (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  u->encodings.head = (aot_table_t){.struct_size = sizeof u->encodings, .self = u};
  if (aot_str_eq(self->id, aot_str("tiles-backend"))) u->encodings.knows = knows;
  u->table.backend = (aot_backend_t){
      .head = {.struct_size = sizeof u->table.backend, .self = u, .destroy = destroy, .get_ext = backend_ext},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out = &u->table.backend.head;
  return AOT_OK;
}

/* ---- descriptor ---- */

#define HELP "of the tests"
#define VERSION "1"
static const aot_contract_t pass_contract = {.struct_size = sizeof pass_contract,
                                             .needs = AOT_NAMES(AOT_PROP_IMPORTED),
                                             .gives = AOT_NAMES(TILED_PROPERTY),
                                             .refuses = AOT_NAMES(TILED_PROPERTY)};
static const aot_contract_t backend_contract = {.struct_size = sizeof backend_contract,
                                                .gives = AOT_NAMES(AOT_PROP_LOWERED)};
static const aot_unit_t opset = AOT_UNIT("opset/1", "tiles", VERSION, HELP, .create = opset_create),
                        tile = AOT_UNIT("pass/1", "tile", VERSION, HELP, .contract = &pass_contract,
                                        .create = pass_create),
                        knowing = AOT_UNIT("backend/2", "tiles-backend", VERSION, HELP, .contract = &backend_contract,
                                           .create = backend_create),
                        plain = AOT_UNIT("backend/2", "plain-backend", VERSION, HELP, .contract = &backend_contract,
                                         .create = backend_create);
static const aot_unit_t *const units[] = {&opset, &tile, &knowing, &plain};

AOT_PLUGIN("tiler", VERSION, "tests", "Apache-2.0", units,
           AOT_NOTE_OPSET("tiles", HELP, "tiles") "," AOT_NOTE_UNIT("pass/1", "tile", HELP) "," AOT_NOTE_UNIT(
               "backend/2", "tiles-backend", HELP) "," AOT_NOTE_UNIT("backend/2", "plain-backend", HELP));
