/* backend-ref: the only file here that sees the plugin boundary. The artifact is the program's snapshot block,
 * unchanged. */
#include "kit/base/errors.h"
#include "kit/model/node_costs.h"
#include "kit/graph/snap_births.h"
#include "kit/graph/snap_check.h"
#include "ref_exec.h"
#include "ref_region.h"
#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/ext/check_nan.h>
#include <aot/ext/cost.h>
#include <aot/ext/coverage.h>
#include <aot/ext/memory.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "backend-ref"
#define HELP                                                                                                           \
  "reference backend: interprets one operator at a time on strided tensors; slow; oracle for the other backends"

typedef struct backend_ref_unit_t {
  aot_backend_t table;
  aot_host_t host;
  aot_ext_coverage_t coverage;
  aot_ext_memory_t memory;
  aot_ext_cost_t cost;
  mr_rows_t rows; /* of the last memory plan */
  aot_str_t *names;
} backend_ref_unit_t;

typedef struct executable {
  hc_exe_t exe;
  aot_host_t host;
  rf_program_t *program;
  aot_ext_check_nan_t check_nan;
  uint64_t peak_nbytes, n_runs, copied_nbytes; /* updated atomically: runs may overlap */
} executable_t;

static aot_status_t complain(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code,
                             const char *text, const char *hint, uint32_t node) {
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, code, text);
  d.hint = aot_str(hint);
  d.node.id = node;
  return kit_report(host, ctx, status, &d);
}

/* ---- query and compile ---- */

static const void *extension(const backend_ref_unit_t *u, const char *id) { return aot_ext(&u->host.head, id); }

static custom_world_t world_of(const backend_ref_unit_t *u, aot_ctx_t *ctx) {
  return (custom_world_t){.lookup = extension(u, AOT_EXT_KERNEL_LOOKUP), .ctx = ctx, .takes_starts = 1};
}

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const backend_ref_unit_t *u = b->head.self;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  for (uint32_t n = 1; n < s->nodes.count; n++) {
    rf_error_t error;
    const char *why = rf_refuse(s, n, &world, &error);
    aot_verdict_t v = {
        .struct_size = sizeof v,
        .accepted = !why,
        .node = {AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[n].id},
        .reason = aot_str(why),
    };
    AOT_TRY(sink->put(sink, &v));
  }
  return AOT_OK;
}

/* What custom operators write, and how much of it needs no copy. */
static aot_status_t report_copies(const backend_ref_unit_t *u, aot_ctx_t *ctx, const aot_snapshot_t *s,
                                  const custom_world_t *world) {
  const aot_ext_report_t *r = extension(u, AOT_EXT_REPORT);
  custom_program_t custom;
  custom_error_t why;
  aot_status_t status = custom_prepare(world, s, &custom, &why);
  if (status != AOT_OK) complain(&u->host, ctx, status, ID ".unsupported", why.text, NULL, why.node);
  else if (r) status = custom_report(&custom, r, ctx);
  custom_program_deinit(&custom);
  return status;
}

static aot_status_t refuse_any(const backend_ref_unit_t *u, aot_ctx_t *ctx, const aot_snapshot_t *s,
                               const custom_world_t *world) {
  for (uint32_t n = 1; n < s->nodes.count; n++) {
    rf_error_t error;
    const char *why = rf_refuse(s, n, world, &error);
    if (why)
      return complain(&u->host, ctx, AOT_E_UNIMPLEMENTED, ID ".unsupported", why,
                      "decompose the operator before the backend", AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[n].id);
  }
  return AOT_OK;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  const backend_ref_unit_t *u = b->head.self;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  AOT_TRY(refuse_any(u, ctx, s, &world));
  AOT_TRY(report_copies(u, ctx, s, &world));
  return sink->write(sink, s, s->nbytes);
}

/* ---- aot.memory/1 ---- */

/* At hints there is nothing to say about sizes and values that only a run reports. */
static aot_status_t refuse_births(const aot_snapshot_t *s, rf_error_t *error) {
  uint8_t *births = calloc((size_t)s->nodes.count + 1, 1);
  aot_status_t status = births && sn_births(s, births) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
  snprintf(error->text, sizeof error->text, "no memory for the plan");
  for (uint32_t i = 1; i < s->nodes.count && status == AOT_OK; i++) {
    if (!births[i]) continue;
    snprintf(error->text, sizeof error->text,
             "the size or value of a result depends on the data, so that memory cannot be told before the run");
    error->node = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[i].id;
    status = AOT_E_UNIMPLEMENTED;
  }
  free(births);
  return status;
}

/* One value a symbol: the caller's, or the hints. */
static aot_status_t rehearse(const rf_program_t *p, const aot_snapshot_t *s, const int64_t *given, uint64_t n,
                             mr_rows_t *rows, rf_error_t *error) {
  const aot_snap_symbol_t *rows_of = AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols);
  int64_t *symbols = malloc(((size_t)s->symbols.count + 1) * sizeof *symbols);
  const int is_short = n && n < s->symbols.count;
  aot_status_t status = !symbols ? AOT_E_EXHAUSTED : is_short ? AOT_E_INVALID : AOT_OK;
  if (status != AOT_OK)
    snprintf(error->text, sizeof error->text, is_short ? "too few values for %u symbols" : "no memory for %u symbols",
             s->symbols.count);
  for (uint32_t i = 0; i < s->symbols.count && status == AOT_OK; i++) symbols[i] = n ? given[i] : rows_of[i].hint;
  if (status == AOT_OK) status = rf_plan(p, symbols, s->symbols.count, rows, error);
  free(symbols);
  return status;
}

static aot_status_t plan_memory(const aot_ext_memory_t *m, aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols,
                                uint64_t n_symbols, const aot_memory_plan_t **out) {
  backend_ref_unit_t *u = m->head.self;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s;
  rf_program_t *p = NULL;
  rf_error_t error = {.node = AOT_NO_ID};
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  AOT_TRY(refuse_any(u, ctx, s, &world));
  aot_status_t status = rf_load(s, s->nbytes, &world, &p, &error);
  if (status == AOT_OK && !n_symbols) status = refuse_births(s, &error);
  if (status == AOT_OK) status = rehearse(p, s, symbols, n_symbols, &u->rows, &error);
  rf_destroy(p);
  if (status != AOT_OK) return complain(&u->host, ctx, status, ID ".no-plan", error.text, error.hint, error.node);
  *out = &u->rows.plan;
  return AOT_OK;
}

/* ---- aot.cost/1 ---- */

static aot_status_t cost_machine(const aot_ext_cost_t *c, aot_ctx_t *ctx, aot_cost_machine_t *out) {
  const aot_cost_machine_t full = {.struct_size = sizeof full, .max_fused = 1, .alignment = MR_ALIGN};
  (void)c, (void)ctx;
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

/* The neutral model is what runs here: one operator at a time, views where operators are marked so, and no kernel works
 * in memory of its own to speak of. */
static aot_status_t cost_nodes(const aot_ext_cost_t *c, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               const int64_t *symbols, uint64_t n_symbols, const aot_cost_sink_t *sink) {
  const backend_ref_unit_t *u = c->head.self;
  const aot_snapshot_t *s;
  int64_t *dims = NULL;
  nc_costs_t costs = {0};
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  aot_status_t status = nc_dims(s, symbols, n_symbols, &dims);
  if (status == AOT_OK && nc_init(&costs, s, dims) != 0) status = AOT_E_EXHAUSTED;
  if (status == AOT_OK) status = nc_put(&costs, s, graph.id, dims, sink);
  nc_deinit(&costs);
  free(dims);
  if (status == AOT_OK) return AOT_OK;
  return complain(&u->host, ctx, status, ID ".no-cost", "no cost can be told at these sizes", NULL, AOT_NO_ID);
}

/* ---- executables ---- */

/* What the model prints goes where the model's own print would go. */
static void print_line(void *self, const char *text, uint32_t n, uint32_t node) {
  (void)self;
  (void)node;
  fwrite(text, 1, n, stdout);
  fputc('\n', stdout);
  fflush(stdout);
}

static aot_status_t run(void *self, const hc_run_t *what) {
  executable_t *x = self;
  const rf_printer_t printer = {NULL, print_line};
  rf_stats_t stats;
  rf_error_t error;
  const aot_status_t status = rf_run(x->program, what, &printer, &stats, &error);
  if (status != AOT_OK && error.is_told) return status;
  if (status != AOT_OK) return complain(&x->host, what->ctx, status, ID ".run", error.text, error.hint, error.node);
  uint64_t seen = __atomic_load_n(&x->peak_nbytes, __ATOMIC_RELAXED);
  while (stats.peak_nbytes > seen && !__atomic_compare_exchange_n(&x->peak_nbytes, &seen, stats.peak_nbytes, 1,
                                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  __atomic_store_n(&x->copied_nbytes, stats.copied_nbytes, __ATOMIC_RELAXED);
  __atomic_fetch_add(&x->n_runs, 1, __ATOMIC_RELAXED);
  return AOT_OK;
}

static aot_status_t exe_stats(const aot_exe_t *e, aot_exe_stats_t *out) {
  const executable_t *x = e->head.self;
  const aot_exe_stats_t stats = {
      .struct_size = sizeof stats,
      .n_kernels = rf_n_kernels(x->program),
      .arena_nbytes = 0,
      .peak_nbytes = __atomic_load_n(&x->peak_nbytes, __ATOMIC_RELAXED),
      .n_runs = __atomic_load_n(&x->n_runs, __ATOMIC_RELAXED),
      .copied_nbytes = __atomic_load_n(&x->copied_nbytes, __ATOMIC_RELAXED),
  };
  aot_export(out, &stats, sizeof stats);
  return AOT_OK;
}

static void exe_destroy(const aot_table_t *e) {
  executable_t *x = e->self;
  rf_destroy(x->program);
  free(x);
}

static aot_status_t check_nan_start(const aot_ext_check_nan_t *e) {
  const executable_t *x = e->head.self;
  rf_watch(x->program);
  return AOT_OK;
}

static const void *exe_ext(const aot_table_t *e, const char *id) {
  const executable_t *x = e->self;
  return strcmp(id, AOT_EXT_CHECK_NAN) == 0 ? &x->check_nan : NULL;
}

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  const backend_ref_unit_t *u = b->head.self;
  executable_t *x = calloc(1, sizeof *x);
  rf_error_t error;
  aot_status_t status;
  if (!x)
    return complain(&u->host, ctx, AOT_E_EXHAUSTED, ID ".no-memory", "no memory for the executable", NULL, AOT_NO_ID);
  const custom_world_t world = world_of(u, ctx);
  status = rf_load(bytes, nbytes, &world, &x->program, &error);
  if (status != AOT_OK) {
    free(x);
    return complain(&u->host, ctx, status, ID ".bad-artifact", error.text,
                    status == AOT_E_UNIMPLEMENTED ? NULL : "compile the program again", error.node);
  }
  if (!hc_exe_init(&x->exe, device, run, x)) {
    rf_destroy(x->program);
    free(x);
    return complain(&u->host, ctx, AOT_E_UNIMPLEMENTED, ID ".device", HC_NO_DEVICE, NULL, AOT_NO_ID);
  }
  x->host = u->host;
  x->exe.table.head.flags = AOT_EXE_OPEN_OUTPUTS;
  x->exe.table.stats = exe_stats;
  x->exe.table.head.destroy = exe_destroy;
  x->exe.table.head.get_ext = exe_ext;
  x->check_nan =
      (aot_ext_check_nan_t){.head = {.struct_size = sizeof x->check_nan, .self = x}, .start = check_nan_start};
  *out = &x->exe.table;
  return AOT_OK;
}

/* ---- the unit ---- */

static void destroy(const aot_table_t *b) {
  backend_ref_unit_t *u = b->self;
  mr_deinit(&u->rows);
  free(u->names);
  free(u);
}

static const void *get_ext(const aot_table_t *b, const char *id) {
  const backend_ref_unit_t *u = b->self;
  if (strcmp(id, AOT_EXT_MEMORY) == 0) return &u->memory;
  if (strcmp(id, AOT_EXT_COST) == 0) return &u->cost;
  return strcmp(id, AOT_EXT_COVERAGE) == 0 ? &u->coverage : NULL;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  backend_ref_unit_t *u = calloc(1, sizeof *u);
  uint32_t n = rk_count(), n_regions = rf_n_regions();
  (void)opts;
  if (u) u->names = calloc(n + n_regions, sizeof *u->names);
  if (!u || !u->names || aot_import(&u->host, sizeof u->host, host) != AOT_OK) {
    if (u) free(u->names);
    free(u);
    return complain(host, ctx, AOT_E_EXHAUSTED, ID ".no-memory", "no memory for the unit", NULL, AOT_NO_ID);
  }
  for (uint32_t k = 0; k < n; k++) u->names[k] = rk_name(rk_at(k));
  for (uint32_t k = 0; k < n_regions; k++) u->names[n + k] = aot_str(rf_region_name(k));
  u->coverage = (aot_ext_coverage_t){.struct_size = sizeof u->coverage, .ops = u->names, .n_ops = n + n_regions};
  u->memory = (aot_ext_memory_t){.head = {.struct_size = sizeof u->memory, .self = u}, .plan = plan_memory};
  u->cost = (aot_ext_cost_t){
      .head = {.struct_size = sizeof u->cost, .self = u}, .machine = cost_machine, .nodes = cost_nodes};
  u->table = (aot_backend_t){
      .head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {
    .struct_size = sizeof contract,
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_LOWERED),
};

AOT_PLUGIN_ONE("backend/2", ID, AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract);
