/* backend-cuda as a backend: what it takes, the artifact, loading. */
#include "gpu_backend.h"

#include "cudnn/attention_graphs.h"
#include "kit/lowering/artifact.h"
#include "kit/lowering/attention_call.h"
#include "kit/lowering/lower.h"
#include "kit/lowering/refusals.h"
#include "gpu_attention.h"
#include "gpu_errors.h"
#include "gpu_exe.h"
#include "gpu_planning.h"
#include "host_fallbacks.h"
#include "kit/graph/snap_births.h"
#include <aot/ext/coverage.h>
#include <aot/ext/kernels.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARTIFACT_MAGIC 0x55504741u /* "AGPU" */

typedef struct gpu_backend_unit {
  aot_backend_t table;
  aot_host_t host;
  aot_ext_coverage_t coverage;
  aot_str_t *names; /* of the operators that it handles */
  gc_choices_t choices;
  int64_t widest_attention; /* that cuDNN takes; -1: not asked yet */
  gc_planning_t planning;
} gpu_backend_unit_t;

static const void *extension(const gpu_backend_unit_t *u, const char *id) { return aot_ext(&u->host.head, id); }

static custom_world_t world_of(const gpu_backend_unit_t *u, aot_ctx_t *ctx) {
  return (custom_world_t){.lookup = extension(u, AOT_EXT_KERNEL_LOOKUP), .ctx = ctx, .has_queues = 1};
}

/* ---- query ---- */

/* Operators whose parts are generated kernels and products, and which by themselves would run on the host: attention,
 * where it is not accepted whole; and these, which are a loop in some forms: of one class a row, without weights and
 * smoothing, as one number. */
static const struct {
  const char *name;
  uint32_t classes; /* argument; weight, reduction, the class to ignore and smoothing follow it */
} losses[] = {
    {"aten.cross_entropy_loss.default", 1},
    {"aot.cross_entropy_loss_backward.default", 2},
};

static const aot_snap_value_t *operand(const aot_snapshot_t *s, const aot_snap_arg_t *arg) {
  return arg->kind == AOT_ARG_VALUE ? AOT_SNAP_ROWS(s, aot_snap_value_t, values) + arg->i : NULL;
}

static int is_loss_in_parts(const aot_snapshot_t *s, const aot_snap_node_t *node, aot_str_t op) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
    const uint32_t k = losses[i].classes;
    if (!aot_str_eq(op, aot_str(losses[i].name))) continue;
    const aot_snap_value_t *scores = node->n_args > k ? operand(s, &args[k - 1]) : NULL;
    const aot_snap_value_t *classes = node->n_args > k ? operand(s, &args[k]) : NULL;
    if (!scores || !classes || scores->rank != 2 || classes->rank != 1 || classes->dtype != AOT_I64) return 1;
    if (node->n_args > k + 1 && args[k + 1].kind != AOT_ARG_NONE) return 1;
    if (node->n_args > k + 2 && args[k + 2].kind == AOT_ARG_INT && args[k + 2].i == 0) return 1;
    return node->n_args > k + 4 && args[k + 4].kind == AOT_ARG_FLOAT && args[k + 4].i != 0;
  }
  return 0;
}

static int is_whole(gpu_backend_unit_t *u, aot_ctx_t *ctx, const aot_snapshot_t *s, const aot_snap_node_t *node) {
  if (u->widest_attention < 0) u->widest_attention = gc_attention_widest(gc_cudnn_folder(&u->host, ctx));
  return gc_attention_is_whole(s, node, u->widest_attention);
}

static const char *refusal(gpu_backend_unit_t *u, const aot_snapshot_t *s, uint32_t i, const custom_world_t *world,
                           int is_birth, custom_error_t *error) {
  const aot_snap_node_t *node = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + i;
  const aot_str_t name = aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].name);
  if ((lw_is_attention(name) && !is_whole(u, world->ctx, s, node)) || is_loss_in_parts(s, node, name))
    return "its parts run on the GPU; as a whole it would run on the host";
  return lw_refusal(s, i, rk_find(name), is_birth, world, error);
}

/* Its parts, where it has some, would run better: on the GPU; or as one graph, a loop of a known length. */
static int is_better_apart(const aot_snapshot_t *s, uint32_t i) {
  const aot_snap_node_t *node = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + i;
  const aot_str_t name = aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].name);
  if (aot_str_eq(name, aot_str("higher_order.scan"))) return 1;
  return !lw_only_numbers(s, node) && rk_find(name) && !lw_has_lowering(&gc_gpu, name);
}

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  gpu_backend_unit_t *u = b->head.self;
  const custom_world_t world = world_of(u, ctx);
  const aot_snapshot_t *s = NULL;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  uint8_t *births = calloc((size_t)s->nodes.count + 1, 1);
  lw_error_t none = {.node = AOT_NO_ID};
  aot_status_t status = births && sn_births(s, births) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
  if (status != AOT_OK) {
    lw_fail(&none, status, "no-memory", "no memory for the verdicts");
    gc_tell(&u->host, ctx, status, &none);
  }
  for (uint32_t i = 1; i < s->nodes.count && status == AOT_OK; i++) {
    custom_error_t error;
    const char *why = refusal(u, s, i, &world, births[i], &error);
    aot_verdict_t v = {.struct_size = sizeof v, .accepted = 1, .node = {nodes[i].id}};
    if (why) v.accepted = 0, v.reason = aot_str(why);
    else if (!births[i] && is_better_apart(s, i)) v.accepted = 2;
    status = sink->put(sink, &v);
  }
  free(births);
  return status;
}

/* ---- compile and load ---- */

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  const gpu_backend_unit_t *u = b->head.self;
  const aot_snapshot_t *s = NULL;
  (void)ctx;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  return lw_write_artifact(s, ARTIFACT_MAGIC, sink);
}

static aot_status_t report(const gpu_backend_unit_t *u, aot_ctx_t *ctx, const gc_exe_t *e) {
  const aot_ext_report_t *r = extension(u, AOT_EXT_REPORT);
  const struct {
    const char *name;
    double value;
    const char *unit;
  } rows[] = {
      {"kernels", e->n_steps, ""},
      {"generated-functions", e->code.n_found + e->code.n_compiled, ""},
      {"generated-calls", e->n_groups, "calls"},
      {"loop-bytes", (double)e->loop_nbytes, "bytes"},
      {"cache-hits", e->code.n_found, ""},
      {"compiled-functions", e->code.n_compiled, ""},
      {"libraries-ms", e->libraries_ms, "ms"},
      {"lowerings", e->n_lowered, ""},
      {"lowering-ms", e->lowering_ms, "ms"},
      {"algorithms-ms", e->algorithms.ms, "ms"},
      {"plans-ms", e->plans_ms, "ms"},
      {"compile-ms", e->code.compile_ms, "ms"},
      {"kept-plans", e->cudnn.n_kept, ""},
      {"made-plans", e->cudnn.n_made, ""},
      {"products", e->n_products, "calls"},
      {"row-chunks", e->n_chunks, ""},
      {"residual-products", e->n_residuals, ""},
      {"timed-products", e->algorithms.n_timed, ""},
      {"cudnn-calls", e->n_dnn, "calls"},
      {"host-fallbacks", e->n_fallback, "nodes"},
      {"waits", e->n_waits, ""},
      {"started-collectives", e->n_started, ""},
      {"arena-bytes", (double)e->arena_nbytes, "bytes"},
  };
  for (size_t k = 0; r && k < sizeof rows / sizeof *rows; k++)
    AOT_TRY(r->number(r, ctx, aot_str(rows[k].name), rows[k].value, aot_str(rows[k].unit)));
  return gc_tell_fallbacks(e, r, ctx);
}

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  const gpu_backend_unit_t *u = b->head.self;
  const custom_world_t world = world_of(u, ctx);
  gc_device_t *g = (gc_device_t *)(uintptr_t)aot_ext(&device->head, GC_EXT_DEVICE);
  const aot_snapshot_t *s = NULL;
  void *own = NULL;
  lw_error_t e = {.node = AOT_NO_ID};
  gc_exe_t *exe = NULL;
  aot_status_t status =
      g ? AOT_OK : lw_fail(&e, AOT_E_UNIMPLEMENTED, "device", "it runs on the device `cuda` (run: {device: cuda})");
  if (status == AOT_OK) status = lw_read_artifact(bytes, nbytes, ARTIFACT_MAGIC, "backend-cuda", &s, &own, &e);
  if (status != AOT_OK) return gc_tell(&u->host, ctx, status, &e);
  status = gc_exe_create(&u->host, ctx, &world, g, s, own, &u->choices, &exe);
  if (status == AOT_OK) status = gc_exe_prepare(exe, ctx);
  if (status == AOT_OK) status = report(u, ctx, exe);
  if (status == AOT_OK) *out = &exe->table;
  else if (exe) exe->table.head.destroy(&exe->table.head);
  return status;
}

static void destroy(const aot_table_t *b) {
  gpu_backend_unit_t *u = b->self;
  gc_planning_deinit(&u->planning);
  free(u->names);
  free(u);
}

static const void *get_ext(const aot_table_t *b, const char *id) {
  const gpu_backend_unit_t *u = b->self;
  if (strcmp(id, AOT_EXT_MEMORY) == 0) return &u->planning.memory;
  if (strcmp(id, AOT_EXT_COST) == 0) return &u->planning.cost;
  return strcmp(id, AOT_EXT_COVERAGE) == 0 ? &u->coverage : NULL;
}

/* Those that have a kernel, but for what runs in parts; branches and loops. */
static void list_names(gpu_backend_unit_t *u) {
  for (uint32_t i = 0; i < rk_count(); i++)
    if (!lw_is_attention(rk_name(rk_at(i)))) u->names[u->coverage.n_ops++] = rk_name(rk_at(i));
  for (uint32_t i = 0; i < LW_N_REGION_OPS; i++) u->names[u->coverage.n_ops++] = lw_region_op(i);
  u->coverage.struct_size = sizeof u->coverage;
  u->coverage.ops = u->names;
}

aot_status_t gc_backend_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                               const aot_table_t **out_table) {
  gpu_backend_unit_t *u = calloc(1, sizeof *u);
  (void)self, (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  aot_status_t status = aot_import(&u->host, sizeof u->host, host);
  u->names = calloc((size_t)rk_count() + LW_N_REGION_OPS, sizeof *u->names);
  if (status == AOT_OK && !u->names) status = AOT_E_EXHAUSTED;
  if (status != AOT_OK) {
    free(u->names);
    free(u);
    return status;
  }
  list_names(u);
  u->choices = gc_choices_of(opts);
  gc_planning_init(&u->planning, &u->host, &u->choices);
  u->widest_attention = -1;
  u->table = (aot_backend_t){
      .head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out_table = &u->table.head;
  return AOT_OK;
}
