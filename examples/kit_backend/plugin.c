/* A backend written with the kit: the plugin's boundary. Read it from the bottom: entry, create, query, compile, load.
 *
 *     query     kit/lowering/refusals: every operator that has a reference kernel, or a kernel of another plugin
 *     compile   the artifact is the program's snapshot
 *     load      program.h: a schedule per graph, the C functions of its loops
 *     run       the steps in order, as one item of host work on the device's queue */
#include "kit/graph/snap_births.h"
#include "kit/lowering/artifact.h"
#include "kit/lowering/planned_memory.h"
#include "kit/lowering/refusals.h"
#include "program.h"

#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/ext/coverage.h>
#include <aot/ext/env.h>
#include <aot/ext/memory.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "example.kit-backend"
#define HELP "CPU backend on the kit: fused loops as generated C, matrix products in double, a planned arena"
#define ARTIFACT_MAGIC 0x54494b42u /* "BKIT" */

typedef struct unit {
  aot_backend_t table;
  aot_host_t host;
  char *compiler;
  aot_ext_coverage_t coverage;
  aot_ext_memory_t memory;
  aot_str_t *names; /* of the operators that it supports */
  mr_rows_t rows;   /* of the last memory plan */
} unit_t;

typedef struct exe {
  hc_exe_t exe;
  const unit_t *unit;
  kb_program_t *program;
  void *own; /* a copy of bytes that were not aligned */
} exe_t;

static aot_status_t report_error(const unit_t *u, aot_ctx_t *ctx, const lw_error_t *e, aot_status_t status) {
  char code[96];
  snprintf(code, sizeof code, ID ".%s", e->code ? e->code : "failed");
  aot_diag_t d = {.struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR};
  d.code = aot_str(code);
  d.message = aot_str(e->text);
  if (e->hint) d.hint = aot_str(e->hint);
  d.node.id = e->node;
  d.value = aot_no_value();
  u->host.diag(&u->host, ctx, &d);
  return status;
}

static aot_status_t no_memory(const unit_t *u, aot_ctx_t *ctx, const char *what) {
  lw_error_t e = {.node = AOT_NO_ID};
  return report_error(u, ctx, &e, lw_fail(&e, AOT_E_EXHAUSTED, "no-memory", "no memory for %s", what));
}

static custom_world_t world_of(const unit_t *u, aot_ctx_t *ctx) {
  return (custom_world_t){.lookup = aot_ext(&u->host.head, AOT_EXT_KERNEL_LOOKUP), .ctx = ctx, .takes_starts = 1};
}

/* ---- query and compile ---- */

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const unit_t *u = b->head.self;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s = NULL;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  uint8_t *births = calloc((size_t)s->nodes.count + 1, 1);
  const rk_kernel_t **kernels = calloc((size_t)s->ops.count + 1, sizeof *kernels); /* by operator */
  aot_status_t status = births && kernels && sn_births(s, births) == 0 ? AOT_OK : no_memory(u, ctx, "the verdicts");
  for (uint32_t o = 1; o < s->ops.count && status == AOT_OK; o++) kernels[o] = rk_find(aot_snap_text(s, ops[o].name));
  for (uint32_t i = 1; i < s->nodes.count && status == AOT_OK; i++) {
    custom_error_t error;
    const char *why = births[i] ? "a size or number of its result is known only when it runs"
                                : lw_refusal(s, i, kernels[nodes[i].op], 0, &world, &error);
    aot_verdict_t v = {.struct_size = sizeof v, .accepted = !why, .node = {nodes[i].id}};
    if (why) v.reason = aot_str(why);
    status = u->host.cancelled(&u->host, ctx) ? AOT_E_CANCELLED : sink->put(sink, &v);
  }
  free(births);
  free(kernels);
  return status;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  const unit_t *u = b->head.self;
  const aot_snapshot_t *s = NULL;
  (void)ctx;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  return lw_write_artifact(s, ARTIFACT_MAGIC, sink);
}

/* aot.memory/1: what a run will allocate, for `aothost inspect --memory` and for partitioners. */
static aot_status_t plan_memory(const aot_ext_memory_t *m, aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *given,
                                uint64_t n_given, const aot_memory_plan_t **out) {
  unit_t *u = m->head.self;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s = NULL;
  lw_error_t e = {.node = AOT_NO_ID};
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  const lw_machine_t machine = kb_planning_machine(NULL);
  const aot_status_t status = lw_tell_memory(s, &world, &machine, given, n_given, &u->rows, &e);
  if (status != AOT_OK) return report_error(u, ctx, &e, status);
  *out = &u->rows.plan;
  return AOT_OK;
}

/* ---- executables ---- */

static aot_status_t run(void *self, const hc_run_t *what) {
  const exe_t *x = self;
  lw_error_t e = {.node = AOT_NO_ID};
  const aot_status_t status = kb_program_run(x->program, what, &e);
  return status == AOT_OK ? AOT_OK : report_error(x->unit, what->ctx, &e, status);
}

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  const exe_t *x = e->head.self;
  lw_error_t error = {.node = AOT_NO_ID};
  aot_exe_plan_t full = {.struct_size = sizeof full, .alignment = LW_ALIGN};
  const aot_status_t status = kb_program_arena(x->program, graph, &full.arena.nbytes, &error);
  if (status != AOT_OK) return report_error(x->unit, ctx, &error, status);
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static void exe_destroy(const aot_table_t *e) {
  exe_t *x = e->self;
  kb_program_destroy(x->program);
  free(x->own);
  free(x);
}

static aot_status_t report(const unit_t *u, aot_ctx_t *ctx, kb_program_t *p) {
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  const kb_stats_t s = kb_program_stats(p);
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("steps"), s.n_steps, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("generated-calls"), s.n_loops, aot_str("calls")));
  AOT_TRY(r->number(r, ctx, aot_str("generated-functions"), s.n_functions, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("fallback-nodes"), s.n_fallback, aot_str("nodes")));
  return r->number(r, ctx, aot_str("arena-bytes"), (double)s.arena_nbytes, aot_str("bytes"));
}

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  const unit_t *u = b->head.self;
  const aot_ext_env_t *env = aot_ext(&u->host.head, AOT_EXT_ENV);
  const char *cache = env ? env->cache_dir(env, ctx) : NULL;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s = NULL;
  lw_error_t e = {.node = AOT_NO_ID};
  exe_t *x = calloc(1, sizeof *x);
  if (!x) return no_memory(u, ctx, "the executable");
  aot_status_t status =
      hc_exe_init(&x->exe, device, run, x) ? AOT_OK : lw_fail(&e, AOT_E_UNIMPLEMENTED, "device", HC_NO_DEVICE);
  if (status == AOT_OK) status = lw_read_artifact(bytes, nbytes, ARTIFACT_MAGIC, ID, &s, &x->own, &e);
  if (status == AOT_OK) status = kb_program_create(s, &world, cache, u->compiler, &x->program, &e);
  if (status != AOT_OK) {
    report_error(u, ctx, &e, status);
    free(x->own);
    free(x);
    return status;
  }
  status = report(u, ctx, x->program);
  x->unit = u;
  x->exe.table.plan = plan;
  x->exe.table.head.destroy = exe_destroy;
  if (status == AOT_OK) *out = &x->exe.table;
  else exe_destroy(&x->exe.table.head);
  return status;
}

/* ---- the unit ---- */

static void destroy(const aot_table_t *b) {
  unit_t *u = b->self;
  mr_deinit(&u->rows);
  free(u->compiler);
  free(u->names);
  free(u);
}

static const void *get_ext(const aot_table_t *b, const char *id) {
  const unit_t *u = b->self;
  if (strcmp(id, AOT_EXT_MEMORY) == 0) return &u->memory;
  return strcmp(id, AOT_EXT_COVERAGE) == 0 ? &u->coverage : NULL;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts, const aot_table_t **out) {
  const aot_str_t compiler = opts->values[0].s;
  unit_t *u = calloc(1, sizeof *u);
  (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  aot_status_t status = aot_import(&u->host, sizeof u->host, host);
  u->compiler = calloc(1, (size_t)compiler.size + 1);
  u->names = calloc((size_t)rk_count() + LW_N_REGION_OPS, sizeof *u->names);
  if (!u->compiler || !u->names) status = AOT_E_EXHAUSTED;
  if (status != AOT_OK) {
    destroy(&(aot_table_t){.self = u});
    return status;
  }
  memcpy(u->compiler, compiler.data, (size_t)compiler.size);
  for (uint32_t i = 0; i < rk_count(); i++) u->names[i] = rk_name(rk_at(i));
  for (uint32_t i = 0; i < LW_N_REGION_OPS; i++) u->names[rk_count() + i] = lw_region_op(i);
  u->coverage =
      (aot_ext_coverage_t){.struct_size = sizeof u->coverage, .ops = u->names, .n_ops = rk_count() + LW_N_REGION_OPS};
  u->memory = (aot_ext_memory_t){.head = {.struct_size = sizeof u->memory, .self = u}, .plan = plan_memory};
  u->table = (aot_backend_t){
      .head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .name = AOT_STR_INIT("compiler"),
     .help = AOT_STR_INIT("C compiler for generated loops: a name in PATH, or a path"),
     .preset = {.s = AOT_STR_INIT("cc")}},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof contract,
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_LOWERED),
    .refuses = AOT_NAMES(AOT_PROP_JOINT),
};

AOT_PLUGIN_ONE("backend/2", ID, "1.0", "example", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
