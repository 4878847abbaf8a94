/* backend-cpu: the only file here that sees the plugin boundary. Read it from the bottom: entry, descriptor, create,
 * compile, load, run. */
#include "blas.h"
#include "kit/base/errors.h"
#include "kit/blas/openblas.h"
#include "kit/lowering/artifact.h"
#include "kit/loops/loop.h"
#include "kit/lowering/lowering_costs.h"
#include "kit/lowering/planned_memory.h"
#include "kit/lowering/refusals.h"
#include "kit/graph/snap_births.h"
#include "exec.h"
#include "onednn_kernels.h"
#include "target.h"
#include "prefer_decomposition.h"

#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/ext/check_nan.h>
#include <aot/ext/cost.h>
#include <aot/ext/coverage.h>
#include <aot/ext/env.h>
#include <aot/ext/memory.h>
#include <aot/ext/profile.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "backend-cpu"
#define NO_MEMORY ID ".no-memory"
#define HELP "CPU backend: fused loops compiled from generated C, BLAS matmuls, one statically planned arena"
#define VERSION "0.1.0"

typedef struct backend_cpu_unit {
  aot_backend_t table;
  aot_host_t host;
  int64_t threads;
  char *compiler;
  bc_cache_t cache;
  int has_cache, has_warned;
  aot_ext_coverage_t coverage;
  aot_ext_memory_t memory;
  aot_ext_cost_t cost;
  mr_rows_t rows; /* of the last memory plan */
  /* what was compiled last, for code that loads it: schedules are made once */
  bc_program_t *compiled;
  aot_snapshot_t *compiled_from; /* a copy, owned */
  aot_str_t *names;
} backend_cpu_unit_t;

/* The artifact is the snapshot after a head. Schedules and source follow from it and are made from it at load, unless
 * this unit has just compiled it; a file can bring no code of its own. */
#define ARTIFACT_MAGIC 0x55504341u /* "ACPU" */

typedef struct exe {
  hc_exe_t exe;
  const backend_cpu_unit_t *unit;
  bc_program_t *program;
  void *own; /* copy of bytes that came unaligned */
  aot_ext_profile_t profile;
  aot_ext_check_nan_t check_nan;
} exe_t;

static aot_status_t tell(const backend_cpu_unit_t *u, aot_ctx_t *ctx, int32_t severity, const lw_error_t *e,
                         aot_status_t status) {
  char code[64];
  snprintf(code, sizeof code, ID ".%s", e->code ? e->code : "failed");
  aot_diag_t d = kit_diag(severity, code, e->text);
  if (e->hint) d.hint = aot_str(e->hint);
  d.node.id = e->node;
  return kit_report(&u->host, ctx, status, &d);
}

static aot_status_t error_out(const backend_cpu_unit_t *u, aot_ctx_t *ctx, const lw_error_t *e, aot_status_t status) {
  return tell(u, ctx, AOT_SEVERITY_ERROR, e, status);
}

static const void *extension(const backend_cpu_unit_t *u, const char *id) { return aot_ext(&u->host.head, id); }

static custom_world_t world_of(const backend_cpu_unit_t *u, aot_ctx_t *ctx) {
  return (custom_world_t){.lookup = extension(u, AOT_EXT_KERNEL_LOOKUP), .ctx = ctx, .takes_starts = 1};
}

/* ---- query ---- */

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const backend_cpu_unit_t *u = b->head.self;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s = NULL;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  uint8_t *births = calloc((size_t)s->nodes.count + 1, 1);
  /* by operator: looked up once for all its nodes */
  const rk_kernel_t **kernels = calloc((size_t)s->ops.count + 1, sizeof *kernels);
  aot_status_t status = births && kernels && sn_births(s, births) == 0
                            ? AOT_OK
                            : kit_no_memory(&u->host, ctx, NO_MEMORY, aot_no_node(), "for the verdicts");
  for (uint32_t o = 1; o < s->ops.count && status == AOT_OK; o++) kernels[o] = rk_find(aot_snap_text(s, ops[o].name));
  for (uint32_t i = 1; i < s->nodes.count && status == AOT_OK; i++) {
    custom_error_t error;
    if (u->host.cancelled(&u->host, ctx)) {
      status = AOT_E_CANCELLED;
      break;
    }
    const rk_kernel_t *kernel = kernels[nodes[i].op];
    const char *why = lw_refusal(s, i, kernel, births[i], &world, &error);
    if (!why && !births[i] && bc_is_written_out(s, &nodes[i])) why = "it runs faster written out";
    aot_verdict_t v = {.struct_size = sizeof v, .accepted = why == NULL, .node = {nodes[i].id}};
    if (why) v.reason = aot_str(why);
    status = sink->put(sink, &v);
  }
  free(births);
  free(kernels);
  return status;
}

/* ---- compile and load ---- */

static aot_status_t open_cache(backend_cpu_unit_t *u, aot_ctx_t *ctx) {
  const aot_ext_env_t *env = extension(u, AOT_EXT_ENV);
  lw_error_t e = {.node = AOT_NO_ID};
  if (u->has_cache) return AOT_OK;
  const char *dir = env ? env->cache_dir(env, ctx) : NULL;
  aot_status_t status = bc_cache_init(&u->cache, dir, u->compiler, &e);
  if (status != AOT_OK) return error_out(u, ctx, &e, status);
  u->has_cache = 1;
  return AOT_OK;
}

/* Of this machine, not of the program: reported when it is loaded. */
static aot_status_t report_machine(const backend_cpu_unit_t *u, aot_ctx_t *ctx) {
  const aot_ext_report_t *r = extension(u, AOT_EXT_REPORT);
  char onednn[240];
  if (!r) return AOT_OK;
  bc_dnn_describe(onednn, sizeof onednn);
  AOT_TRY(r->text(r, ctx, aot_str("onednn"), aot_str(onednn)));
  return r->text(r, ctx, aot_str("blas-kernels"), aot_str(bl_library()->openblas_get_corename()));
}

static aot_status_t report(const backend_cpu_unit_t *u, aot_ctx_t *ctx, const bc_program_t *p) {
  const aot_ext_report_t *r = extension(u, AOT_EXT_REPORT);
  bc_program_stats_t s = bc_program_stats(p);
  /* clang-format off */
  const struct { const char *name; double value; const char *unit; } rows[] = {
      {"kernels", s.n_steps, ""},         {"generated-functions", s.n_functions, ""}, {"generated-calls", s.n_groups,
          "calls"},
      {"loop-bytes", (double)s.loop_nbytes, "bytes"},
      {"cache-hits", s.code.n_hits, ""},  {"compile-ms", s.code.compile_ms, "ms"},    {"arena-bytes",
          (double)s.arena_nbytes, "bytes"},
      {"fallback-nodes", s.n_fallback, "nodes"}};
  /* clang-format on */
  for (size_t k = 0; r && k < sizeof rows / sizeof rows[0]; k++)
    AOT_TRY(r->number(r, ctx, aot_str(rows[k].name), rows[k].value, aot_str(rows[k].unit)));
  return r ? custom_report(bc_program_custom(p), r, ctx) : AOT_OK;
}

/* A warning is given once: by compile, or by load when the artifact comes from an earlier compile. */
static aot_status_t make_program(backend_cpu_unit_t *u, aot_ctx_t *ctx, const aot_snapshot_t *s, bc_program_t **out) {
  lw_error_t e = {.node = AOT_NO_ID}, warning = {.node = AOT_NO_ID};
  AOT_TRY(open_cache(u, ctx));
  const custom_world_t world = world_of(u, ctx);
  aot_status_t status = bc_program_create(s, &world, &u->cache, u->threads, out, &warning, &e);
  if (status != AOT_OK) return error_out(u, ctx, &e, status);
  if (warning.text[0] && !u->has_warned) tell(u, ctx, AOT_SEVERITY_WARNING, &warning, AOT_OK);
  u->has_warned |= warning.text[0] != 0;
  return AOT_OK;
}

static void forget_compiled(backend_cpu_unit_t *u) {
  bc_program_destroy(u->compiled);
  free(u->compiled_from);
  u->compiled = NULL;
  u->compiled_from = NULL;
}

/* The program that this unit has compiled from the very same snapshot, once; *own: that, too. */
static bc_program_t *take_compiled(backend_cpu_unit_t *u, const aot_snapshot_t *s, void **own) {
  const aot_snapshot_t *from = u->compiled_from;
  if (!u->compiled || from->nbytes != s->nbytes || memcmp(from, s, (size_t)s->nbytes) != 0) return NULL;
  bc_program_t *program = u->compiled;
  free(*own);
  *own = u->compiled_from;
  u->compiled = NULL;
  u->compiled_from = NULL;
  return program;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  backend_cpu_unit_t *u = b->head.self;
  const aot_snapshot_t *s = NULL;
  forget_compiled(u);
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  u->compiled_from = malloc((size_t)s->nbytes);
  if (!u->compiled_from) return kit_no_memory(&u->host, ctx, NO_MEMORY, aot_no_node(), "for the program");
  memcpy(u->compiled_from, s, (size_t)s->nbytes);
  AOT_TRY(make_program(u, ctx, u->compiled_from, &u->compiled));
  AOT_TRY(report(u, ctx, u->compiled));
  return lw_write_artifact(s, ARTIFACT_MAGIC, sink);
}

/* ---- aot.memory/1 ---- */

static aot_status_t plan_memory(const aot_ext_memory_t *m, aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *given,
                                uint64_t n_given, const aot_memory_plan_t **out) {
  backend_cpu_unit_t *u = m->head.self;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s = NULL;
  lw_error_t e = {.node = AOT_NO_ID}, ignored;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  AOT_TRY(open_cache(u, ctx));
  const int compiles = bc_code_available(&u->cache, &ignored) == AOT_OK;
  const lw_machine_t machine = bc_planning_machine(bc_blas_threads(u->threads), NULL, compiles);
  const aot_status_t status = lw_tell_memory(s, &world, &machine, given, n_given, &u->rows, &e);
  if (status != AOT_OK) return error_out(u, ctx, &e, status);
  *out = &u->rows.plan;
  return AOT_OK;
}

/* ---- aot.cost/1 ---- */

static aot_status_t cost_machine(const aot_ext_cost_t *c, aot_ctx_t *ctx, aot_cost_machine_t *out) {
  const aot_cost_machine_t full = {.struct_size = sizeof full, .max_fused = LW_MAX_GROUP, .alignment = LW_ALIGN};
  (void)c, (void)ctx;
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static aot_status_t cost_nodes(const aot_ext_cost_t *c, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               const int64_t *symbols, uint64_t n_symbols, const aot_cost_sink_t *sink) {
  backend_cpu_unit_t *u = c->head.self;
  const aot_snapshot_t *s = NULL;
  int64_t *dims = NULL;
  nc_costs_t costs = {0};
  lw_error_t e = {.node = AOT_NO_ID}, ignored;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  AOT_TRY(open_cache(u, ctx));
  const custom_program_t no_kernels = {0}; /* kernels of plugins have no work space that is known */
  const int compiles = bc_code_available(&u->cache, &ignored) == AOT_OK;
  const lw_machine_t machine = bc_planning_machine(bc_blas_threads(u->threads), &no_kernels, compiles);
  lw_fail(&e, AOT_OK, "no-cost", "no cost can be told at these sizes");
  aot_status_t status = nc_dims(s, symbols, n_symbols, &dims);
  if (status == AOT_OK && nc_init(&costs, s, dims) != 0) status = AOT_E_EXHAUSTED;
  if (status == AOT_OK) status = lw_lowering_costs(s, dims, &machine, compiles, &costs, &e);
  if (status == AOT_OK) status = nc_put(&costs, s, graph.id, dims, sink);
  nc_deinit(&costs);
  free(dims);
  return status == AOT_OK ? AOT_OK : error_out(u, ctx, &e, status);
}

/* ---- executables ---- */

static aot_status_t run(void *self, const hc_run_t *what) {
  const exe_t *x = self;
  lw_error_t error = {.node = AOT_NO_ID};
  const aot_status_t status = bc_program_run(x->program, what, &error);
  /* by the host: no memory for an output */
  if (status != AOT_OK && error.code && strcmp(error.code, "told") == 0) return status;
  return status == AOT_OK ? AOT_OK : error_out(x->unit, what->ctx, &error, status);
}

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  const exe_t *x = e->head.self;
  lw_error_t error = {.node = AOT_NO_ID};
  aot_exe_plan_t full = {.struct_size = sizeof full, .alignment = LW_ALIGN};
  const aot_status_t status = bc_program_arena(x->program, graph, &full.arena.nbytes, &error);
  if (status != AOT_OK) return error_out(x->unit, ctx, &error, status);
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static aot_status_t stats(const aot_exe_t *e, aot_exe_stats_t *out) {
  const exe_t *x = e->head.self;
  bc_program_stats_t s = bc_program_stats(x->program);
  aot_exe_stats_t full = {sizeof full, s.n_steps,      s.arena_nbytes, s.n_runs ? s.live_nbytes : 0,
                          s.n_runs,    s.copied_nbytes};
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static aot_status_t profile_start(const aot_ext_profile_t *e) {
  const exe_t *x = e->head.self;
  bc_program_profile_start(x->program);
  return AOT_OK;
}

static aot_status_t check_nan_start(const aot_ext_check_nan_t *e) {
  const exe_t *x = e->head.self;
  bc_program_watch(x->program);
  return AOT_OK;
}

static aot_status_t profile_read(const aot_ext_profile_t *e, aot_profile_t *out) {
  const exe_t *x = e->head.self;
  aot_profile_t full = {.struct_size = sizeof full, .row_stride = sizeof(aot_profile_row_t)};
  AOT_TRY(bc_program_profile(x->program, &full.rows, &full.n_rows));
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static const void *exe_ext(const aot_table_t *e, const char *id) {
  const exe_t *x = e->self;
  if (strcmp(id, AOT_EXT_CHECK_NAN) == 0) return &x->check_nan;
  return strcmp(id, AOT_EXT_PROFILE) == 0 ? &x->profile : NULL;
}

static void exe_destroy(const aot_table_t *e) {
  exe_t *x = e->self;
  bc_program_destroy(x->program);
  free(x->own);
  free(x);
}

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  backend_cpu_unit_t *u = b->head.self;
  const aot_snapshot_t *s = NULL;
  lw_error_t e = {.node = AOT_NO_ID};
  exe_t *x = calloc(1, sizeof *x);
  if (!x) return kit_no_memory(&u->host, ctx, NO_MEMORY, aot_no_node(), "for the executable");
  aot_status_t status =
      hc_exe_init(&x->exe, device, run, x) ? AOT_OK : lw_fail(&e, AOT_E_UNIMPLEMENTED, "device", HC_NO_DEVICE);
  if (status == AOT_OK) status = lw_read_artifact(bytes, nbytes, ARTIFACT_MAGIC, ID, &s, &x->own, &e);
  if (status != AOT_OK) error_out(u, ctx, &e, status);
  else x->program = take_compiled(u, s, &x->own);
  if (status == AOT_OK && !x->program) status = make_program(u, ctx, s, &x->program);
  if (status == AOT_OK) status = report_machine(u, ctx);
  if (status != AOT_OK) {
    bc_program_destroy(x->program);
    free(x->own);
    free(x);
    return status;
  }
  x->unit = u;
  x->exe.table.head.flags = AOT_EXE_OPEN_OUTPUTS;
  x->exe.table.plan = plan;
  x->exe.table.stats = stats;
  x->exe.table.head.destroy = exe_destroy;
  x->exe.table.head.get_ext = exe_ext;
  x->check_nan =
      (aot_ext_check_nan_t){.head = {.struct_size = sizeof x->check_nan, .self = x}, .start = check_nan_start};
  x->profile = (aot_ext_profile_t){
      .head = {.struct_size = sizeof x->profile, .self = x}, .start = profile_start, .read = profile_read};
  *out = &x->exe.table;
  return AOT_OK;
}

/* ---- the unit ---- */

static void destroy(const aot_table_t *b) {
  backend_cpu_unit_t *u = b->self;
  forget_compiled(u);
  if (u->has_cache) bc_cache_deinit(&u->cache);
  mr_deinit(&u->rows);
  free(u->compiler);
  free(u->names);
  free(u);
}

static const void *get_ext(const aot_table_t *b, const char *id) {
  const backend_cpu_unit_t *u = b->self;
  if (strcmp(id, AOT_EXT_MEMORY) == 0) return &u->memory;
  if (strcmp(id, AOT_EXT_COST) == 0) return &u->cost;
  return strcmp(id, AOT_EXT_COVERAGE) == 0 && u->coverage.n_ops ? &u->coverage : NULL;
}

/* Before anything else takes the address space. */
static aot_status_t need_blas(const backend_cpu_unit_t *u, aot_ctx_t *ctx) {
  lw_error_t e = {.node = AOT_NO_ID};
  const char *failure = bl_library()->failure;
  return failure[0] ? error_out(u, ctx, &e, lw_fail(&e, AOT_E_UNAVAILABLE, "no-blas", "%s", failure)) : AOT_OK;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  backend_cpu_unit_t *u = calloc(1, sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  aot_status_t status = aot_import(&u->host, sizeof u->host, host);
  if (status == AOT_OK) status = need_blas(u, ctx);
  u->threads = opts->values[0].i;
  u->compiler = calloc(1, (size_t)opts->values[1].s.size + 1);
  u->names = calloc((size_t)rk_count() + LW_N_REGION_OPS, sizeof *u->names);
  if (!u->compiler || !u->names) status = AOT_E_EXHAUSTED;
  if (status != AOT_OK) {
    free(u->compiler);
    free(u->names);
    free(u);
    return status;
  }
  memcpy(u->compiler, opts->values[1].s.data, (size_t)opts->values[1].s.size);
  for (uint32_t i = 0; i < rk_count(); i++) u->names[i] = rk_name(rk_at(i));
  for (uint32_t i = 0; i < LW_N_REGION_OPS; i++) u->names[rk_count() + i] = lw_region_op(i);
  u->coverage = (aot_ext_coverage_t){sizeof u->coverage, 0, u->names, rk_count() + LW_N_REGION_OPS};
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

/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("threads"),
     .help = AOT_STR_INIT("threads of matrix products and loops; 0: one a processor"), .preset = {.i = 0}, .min = 0,
     .max = 1024},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .name = AOT_STR_INIT("compiler"),
     .help = AOT_STR_INIT("the C compiler for generated loops: a name in PATH, or a path"),
     .preset = {.s = AOT_STR_INIT("cc")}},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_LOWERED),
    .refuses = AOT_NAMES(AOT_PROP_JOINT),
};

AOT_PLUGIN_ONE("backend/2", ID, VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
