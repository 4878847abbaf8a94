/* A partition, a backend, an opset and an importer that break the rules of their kinds: `how` chooses in which way. */
#include "kit/base/host_call.h"
#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/import.h>
#include <aot/inline.h>
#include <aot/partition.h>
#include <signal.h>
#include <stdlib.h>

typedef struct wrecker {
  union {
    aot_partition_t partition;
    aot_backend_t backend;
    aot_import_t import;
  } table;
  aot_host_t host;
  aot_str_t how;
  hc_exe_t exe;
} wrecker_t;

static int is(const wrecker_t *u, const char *how) { return aot_str_eq(u->how, aot_str(how)); }

static aot_status_t add_node(const wrecker_t *u, aot_prog_t *prog, int32_t kind) {
  const aot_graph_api_t *g = u->host.graph;
  const aot_graph_t graph = g->graph_find(prog, kind);
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  AOT_TRY(g->node_info(prog, g->first(prog, graph), &info));
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .op = info.op,
      .n_args = info.n_args,
      .args = info.args,
      .origin = aot_no_origin(),
  };
  return u->host.edit->node_create(prog, graph, &spec, aot_no_node(), &made);
}

/* ---- partition ---- */

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const wrecker_t *u = p->head.self;
  const aot_value_t nowhere = {4000000};
  const aot_node_t no_node = {3999999};
  aot_cut_t cut = {.struct_size = sizeof cut};
  (void)ctx;
  if (is(u, "no-cut")) return AOT_OK;
  if (is(u, "two-cuts")) sink->put(sink, &cut);
  if (is(u, "bad-value")) cut.n_saved = 1, cut.saved = &nowhere;
  if (is(u, "bad-node")) cut.n_recomputed = 1, cut.recomputed = &no_node;
  if (is(u, "edits")) AOT_TRY(add_node(u, prog, AOT_GRAPH_JOINT));
  if (is(u, "crash")) raise(SIGSEGV);
  sink->put(sink, &cut);
  return AOT_OK;
}

static aot_status_t apply(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut) {
  (void)p, (void)ctx, (void)prog, (void)cut;
  return AOT_OK; /* divides nothing, and says it had */
}

/* ---- backend ---- */

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const wrecker_t *u = b->head.self;
  const aot_graph_api_t *g = u->host.graph;
  (void)ctx;
  if (is(u, "no-verdicts")) return AOT_OK;
  if (is(u, "query-edits")) return add_node(u, prog, AOT_GRAPH_FORWARD);
  if (is(u, "bad-verdict")) {
    const aot_verdict_t v = {.struct_size = sizeof v, .accepted = 1, .node = {4000000}};
    if (sink->put(sink, &v) == AOT_OK) return AOT_E_INTERNAL;
  }
  for (uint32_t i = 1; i < g->n_graphs(prog); i++)
    for (aot_node_t k = g->first(prog, (aot_graph_t){i}); k.id != AOT_NO_ID; k = g->next(prog, k)) {
      const aot_verdict_t v = {.struct_size = sizeof v, .accepted = !is(u, "no-reasons"), .node = k};
      AOT_TRY(sink->put(sink, &v));
    }
  return AOT_OK;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  const wrecker_t *u = b->head.self;
  (void)ctx;
  if (is(u, "compile-crash")) raise(SIGBUS);
  if (is(u, "compile-silent")) return AOT_E_UNKNOWN;
  if (is(u, "compile-edits"))
    AOT_TRY(u->host.edit->outputs_clear(prog, u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD)));
  if (is(u, "compile-edits")) AOT_TRY(add_node(u, prog, AOT_GRAPH_FORWARD));
  for (int i = 0; i < 10000; i++) AOT_TRY(sink->write(sink, "0123456789", 10));
  return AOT_OK;
}

static aot_status_t exe_run(void *self, const hc_run_t *run) {
  const wrecker_t *u = self;
  const aot_diag_t d = {.struct_size = sizeof d,
                        .severity = AOT_SEVERITY_ERROR,
                        .code = aot_str("wrecker.run"),
                        .message = aot_str("the kernel failed")};
  if (is(u, "run-contradicts") || is(u, "run-fails")) u->host.diag(&u->host, run->ctx, &d);
  return is(u, "run-fails") ? AOT_E_RANGE : AOT_OK;
}

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  static const aot_exe_t no_run = {.head = {.struct_size = sizeof no_run}};
  wrecker_t *u = b->head.self;
  (void)ctx;
  if (nbytes != 100000 || memcmp((const char *)bytes + 99990, "0123456789", 10) != 0) return AOT_E_DATA_LOSS;
  if (is(u, "load-null")) return AOT_OK;
  hc_exe_init(&u->exe, device, exe_run, u);
  *out = is(u, "load-no-run") ? &no_run : &u->exe.table;
  return AOT_OK;
}

/* ---- importer ---- */

static aot_status_t probe(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, int32_t *out_score) {
  (void)i, (void)ctx;
  *out_score = file->nbytes >= 5 && memcmp(file->data, "WRECK", 5) == 0 ? 100 : 0;
  return AOT_OK;
}

static aot_status_t read(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, aot_prog_t *prog) {
  const wrecker_t *u = i->head.self;
  aot_graph_t g;
  (void)ctx;
  if (file->nbytes > 6 && ((const char *)file->data)[6] == 'c') raise(SIGSEGV);
  return u->host.edit->graph_create(prog, AOT_GRAPH_REGION, aot_str("lonely"),
                                    &g); /* a program without a forward graph */
}

/* ---- descriptor ---- */

static void partition_destroy(const aot_table_t *p) { free(p->self); }
static void backend_destroy(const aot_table_t *b) { free(b->self); }
static void import_destroy(const aot_table_t *i) { free(i->self); }

static wrecker_t *make(const aot_host_t *host, const aot_opts_t *opts) {
  wrecker_t *u = calloc(1, sizeof *u);
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) abort();
  if (opts->n_values) u->how = opts->values[0].s;
  return u;
}

static aot_status_t create_partition(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                     const aot_opts_t *opts, const aot_table_t **out) {
  wrecker_t *u = make(host, opts);
  (void)self, (void)ctx;
  u->table.partition = (aot_partition_t){
      .head = {.struct_size = sizeof(aot_partition_t), .self = u, .destroy = partition_destroy},
      .choose = choose,
      .apply = apply,
  };
  *out = &u->table.partition.head;
  return AOT_OK;
}

static aot_status_t create_backend(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out) {
  wrecker_t *u = make(host, opts);
  (void)self, (void)ctx;
  u->table.backend = (aot_backend_t){
      .head = {.struct_size = sizeof(aot_backend_t), .self = u, .destroy = backend_destroy},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out = &u->table.backend.head;
  return AOT_OK;
}

static aot_status_t create_import(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                  const aot_opts_t *opts, const aot_table_t **out) {
  wrecker_t *u = make(host, opts);
  (void)self, (void)ctx;
  u->table.import = (aot_import_t){
      .head = {.struct_size = sizeof(aot_import_t), .self = u, .destroy = import_destroy},
      .probe = probe,
      .read = read,
  };
  *out = &u->table.import.head;
  return AOT_OK;
}

static const aot_option_t options[] = {{
    .struct_size = sizeof(aot_option_t),
    .kind = AOT_OPT_STRING,
    .name = AOT_STR_INIT("how"),
    .help = AOT_STR_INIT("in which way"),
    .preset = {.s = AOT_STR_INIT("fine")},
}};
static const aot_contract_t partition_contract = {
    .struct_size = sizeof partition_contract,
    .needs = AOT_NAMES(AOT_PROP_JOINT),
    .gives = AOT_NAMES(AOT_PROP_PARTITIONED),
    .drops = AOT_NAMES(AOT_PROP_JOINT),
};
static const aot_contract_t backend_contract = {.struct_size = sizeof backend_contract,
                                                .gives = AOT_NAMES(AOT_PROP_LOWERED)};
#define UNIT(kind_, id_, contract_, create_, n_)                                                                       \
  AOT_UNIT(kind_, id_, "1", "wrecks", .options = options, .n_options = n_, .option_stride = sizeof *options,           \
           .contract = contract_, .create = create_)
static const aot_unit_t u_partition =
    UNIT("partition/1", "wrecker-partition", &partition_contract, create_partition, 1);
static const aot_unit_t u_backend = UNIT("backend/2", "wrecker-backend", &backend_contract, create_backend, 1);
static const aot_unit_t u_import = UNIT("import/1", "wrecker-import", NULL, create_import, 0);
static const aot_unit_t *const units[] = {&u_partition, &u_backend, &u_import};

AOT_PLUGIN("wrecker", "1", "tests", "Apache-2.0", units,
           AOT_NOTE_UNIT("partition/1", "wrecker-partition", "wrecks") "," AOT_NOTE_UNIT(
               "backend/2", "wrecker-backend", "wrecks") "," AOT_NOTE_UNIT("import/1", "wrecker-import", "wrecks"));
