#include "gpu_exe.h"

#include "gpu_attention.h"
#include "gpu_call.h"
#include "gpu_clock.h"
#include "gpu_conv.h"
#include "gpu_errors.h"
#include "device_properties.h"
#include "gpu_libraries.h"
#include "gpu_parts.h"
#include "stream_sync.h"
#include "plan_cache_disk.h"
#include "plan_cache.h"
#include <aot/ext/env.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gc_exe_t *of(const aot_exe_t *e) { return e->head.self; }

/* What a wait or the host's own has said is not said again. */
static aot_status_t tell(const gc_exe_t *e, aot_ctx_t *ctx, aot_status_t status, const lw_error_t *error) {
  if (error->code && strcmp(error->code, "told") == 0) return status;
  return gc_tell(&e->host, ctx, status, error);
}

/* ---- aot.profile/1 ---- */

static aot_status_t profile_start(const aot_ext_profile_t *x) {
  gc_calls_profile_start(x->head.self);
  return AOT_OK;
}

static aot_status_t profile_read(const aot_ext_profile_t *x, aot_profile_t *out) {
  gc_exe_t *e = x->head.self;
  if (!gc_calls_profile_read(e)) return AOT_E_EXHAUSTED;
  const aot_profile_t full = {
      .struct_size = sizeof full, .row_stride = sizeof(aot_profile_row_t), .rows = e->rows.rows, .n_rows = e->rows.n};
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

/* ---- aot.check-nan/1 ---- */

static aot_status_t check_nan_start(const aot_ext_check_nan_t *x) {
  gc_exe_t *e = x->head.self;
  e->is_watched = 1;
  gc_call_destroy(e->planned);
  e->planned = NULL;
  return AOT_OK;
}

/* ---- graphs ---- */

static aot_status_t find_graph(const gc_exe_t *e, const aot_graph_at_t *at, uint32_t *out, lw_error_t *error) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(e->s, aot_snap_graph_t, graphs);
  uint32_t number = at->number;
  if (at->n_symbols < e->s->symbols.count)
    return lw_fail(error, AOT_E_INVALID, "bad-symbols", "%llu symbol values for %u symbols",
                   (unsigned long long)at->n_symbols, e->s->symbols.count);
  for (uint32_t i = 1; i < e->s->graphs.count; i++)
    if (g[i].kind == at->kind && at->kind != AOT_GRAPH_REGION && number-- == 0) {
      *out = i;
      return AOT_OK;
    }
  return lw_fail(error, AOT_E_NOT_FOUND, "no-graph", "the program has no graph of kind %d", at->kind);
}

/* ---- the table ---- */

/* A graph that is cut has its memory from itself, when it runs. */
static int is_cut(const gc_exe_t *e, uint32_t graph) { return e->cut.n_parts_of[graph] > 0; }

static aot_status_t plan(const aot_exe_t *x, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  gc_exe_t *e = of(x);
  uint32_t row = 0;
  lw_error_t error = {.node = AOT_NO_ID};
  aot_exe_plan_t full = {.struct_size = out->struct_size, .alignment = LW_ALIGN};
  e->ctx = ctx;
  e->device->driver.ctx_set_current(e->device->context);
  aot_status_t status = find_graph(e, graph, &row, &error);
  if (status == AOT_OK && !is_cut(e, row)) {
    if (!gc_call_is_for(e->planned, row, graph->symbols, LW_ALIGN)) {
      gc_call_destroy(e->planned);
      status = gc_call_create(e, row, graph->symbols, LW_ALIGN, &e->planned, &error);
    }
    if (status == AOT_OK) full.arena.nbytes = e->planned->schedule.arena_nbytes;
  }
  if (status != AOT_OK) return tell(e, ctx, status, &error);
  memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
  return AOT_OK;
}

static aot_status_t bind_whole(gc_exe_t *e, uint32_t graph, const aot_binding_t *binding, gc_call_t **out,
                               lw_error_t *error) {
  const uint32_t align = gc_alignment_of_ports(binding->outputs, binding->n_outputs,
                                               gc_alignment_of_ports(binding->inputs, binding->n_inputs, LW_ALIGN));
  if (gc_call_is_for(e->planned, graph, binding->graph.symbols, align)) {
    *out = e->planned;
    e->planned = NULL;
  } else {
    AOT_TRY(gc_call_create(e, graph, binding->graph.symbols, align, out, error));
  }
  return gc_call_bind(*out, binding->arena, binding->inputs, binding->n_inputs, binding->outputs, binding->n_outputs,
                      error);
}

static void unbind(const aot_exe_t *x, aot_bound_t *b) {
  (void)x;
  gc_call_destroy(b->call);
  free(b);
}

static aot_status_t bind(const aot_exe_t *x, aot_ctx_t *ctx, const aot_binding_t *binding, aot_bound_t **out) {
  gc_exe_t *e = of(x);
  lw_error_t error = {.node = AOT_NO_ID};
  aot_bound_t *b = calloc(1, sizeof *b);
  e->ctx = ctx;
  e->device->driver.ctx_set_current(e->device->context);
  aot_status_t status = b ? AOT_OK : lw_no_memory(&error, "for a call");
  if (status == AOT_OK) status = find_graph(e, &binding->graph, &b->graph, &error);
  if (status == AOT_OK) b->binding = *binding;
  if (status == AOT_OK && !is_cut(e, b->graph)) status = bind_whole(e, b->graph, binding, &b->call, &error);
  if (status == AOT_OK) {
    *out = b;
    return AOT_OK;
  }
  if (b) unbind(x, b);
  return tell(e, ctx, status, &error);
}

static aot_status_t submit(const aot_exe_t *x, aot_ctx_t *ctx, aot_bound_t *b, const aot_submission_t *s) {
  gc_exe_t *e = of(x);
  const aot_device_t *d = &e->device->table;
  lw_error_t error = {.node = AOT_NO_ID};
  e->ctx = ctx;
  e->device->driver.ctx_set_current(e->device->context);
  aot_status_t status = b->call ? gc_call_prepare(b->call, &error) : AOT_OK;
  if (status != AOT_OK) return tell(e, ctx, status, &error);
  for (uint64_t k = 0; k < s->n_waits; k++) AOT_TRY(d->wait(d, ctx, s->queue, s->waits[k]));
  status = b->call ? gc_call_run(b->call, ctx, s->queue, &error) : gc_parts_run(e, b, ctx, s, &error);
  if (status != AOT_OK) return tell(e, ctx, status, &error);
  for (uint64_t k = 0; k < s->n_signals; k++) AOT_TRY(d->signal(d, ctx, s->queue, s->signals[k]));
  e->n_runs++;
  return AOT_OK;
}

static aot_status_t stats(const aot_exe_t *x, aot_exe_stats_t *out) {
  const gc_exe_t *e = of(x);
  const aot_exe_stats_t full = {
      .struct_size = out->struct_size,
      .n_kernels = e->n_steps,
      .arena_nbytes = e->arena_nbytes,
      .peak_nbytes = e->n_runs ? e->live_nbytes : 0,
      .n_runs = e->n_runs,
      .copied_nbytes = e->copied_nbytes,
  };
  memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
  return AOT_OK;
}

static const void *get_ext(const aot_table_t *t, const char *id) {
  const gc_exe_t *e = t->self;
  if (strcmp(id, AOT_EXT_CHECK_NAN) == 0) return &e->check_nan;
  return strcmp(id, AOT_EXT_PROFILE) == 0 ? &e->profile : NULL;
}

static void destroy(const aot_table_t *t) {
  gc_exe_t *e = t->self;
  gc_call_destroy(e->planned);
  gc_parts_deinit(e);
  gc_exe_settle_deinit(e);
  free(e->past.rows);
  free(e->rows.rows);
  if (e->code.driver) gc_code_deinit(&e->code);
  gc_algorithms_deinit(&e->algorithms);
  gc_cublaslt_close(&e->cublaslt);
  gc_dnn_forget_plans(&e->cudnn);
  gc_cudnn_close(&e->cudnn);
  custom_program_deinit(&e->custom);
  lw_cut_deinit(&e->cut);
  free(e->n_on_host);
  free(e->n_counted);
  free(e->own);
  free(e);
}

/* ---- loading ---- */

const char *gc_cudnn_folder(const aot_host_t *host, aot_ctx_t *ctx) {
  const aot_ext_env_t *env = aot_ext(&host->head, AOT_EXT_ENV);
  return env ? env->get(env, ctx, "AOT_CUDNN") : NULL;
}

/* The cache's folder; NULL: none. */
static const char *cache_folder(const gc_exe_t *e, aot_ctx_t *ctx) {
  const aot_ext_env_t *env = aot_ext(&e->host.head, AOT_EXT_ENV);
  return env ? env->cache_dir(env, ctx) : NULL;
}

/* Has the program what may be cuDNN's? */
static int wants_cudnn(const aot_snapshot_t *s) {
  const lw_lowering_table_t *const tables[] = {&gc_lowerings_attention, &gc_lowerings_conv};
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  for (uint32_t o = 1; o < s->ops.count; o++)
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
      if (lw_lowering_in(tables[t], aot_snap_text(s, ops[o].name))) return 1;
  return 0;
}

/* gc_algorithms_t */
static int go_on(void *self, const char *text, int is_for_all) {
  const gc_exe_t *e = self;
  const int32_t severity = is_for_all ? AOT_SEVERITY_WARNING : AOT_SEVERITY_INFO;
  if (text) gc_say(&e->host, e->ctx, severity, "backend-cuda.algorithms", text);
  return !e->host.cancelled(&e->host, e->ctx);
}

static aot_status_t open_libraries(gc_exe_t *e, aot_ctx_t *ctx, const char *nvrtc_folder, lw_error_t *error) {
  const gc_driver_t *cu = &e->device->driver;
  const double begin = gc_now_ms();
  const gc_libraries_t libraries = {&e->nvrtc, &e->cublaslt, wants_cudnn(e->s) ? &e->cudnn : NULL, nvrtc_folder};
  char why[256];
  const char *code;
  if (gc_libraries_open(&libraries, e->device, ctx, &code, why, sizeof why))
    return lw_fail(error, AOT_E_UNAVAILABLE, code, "%s", why);
  e->libraries_ms = gc_now_ms() - begin;
  const gc_facts_t facts = gc_facts_of(cu, e->device->ordinal);
  e->machine = facts.machine;
  e->limits = facts.rates;
  const char *cache = cache_folder(e, ctx);
  gc_code_init(&e->code, cu, &e->nvrtc, (int)e->machine.arch, cache);
  e->wants_cudnn = libraries.cudnn && gc_cudnn_ready(&e->cudnn);
  if (e->wants_cudnn) gc_plans_keep_in(&e->cudnn, cache, e->device->name);
  gc_algorithms_init(&e->algorithms, cu, &e->cublaslt, e->device->setup, cache, e->device->name, e->choices.algorithms);
  e->algorithms.go_on = go_on;
  e->algorithms.listener = e;
  return AOT_OK;
}

aot_status_t gc_exe_create(const aot_host_t *host, aot_ctx_t *ctx, const custom_world_t *world, gc_device_t *device,
                           const aot_snapshot_t *s, void *own, const gc_choices_t *choices, gc_exe_t **out) {
  gc_exe_t *e = calloc(1, sizeof *e);
  lw_error_t error = {.node = AOT_NO_ID};
  custom_error_t why;
  if (!e) return AOT_E_EXHAUSTED;
  e->host = *host;
  e->device = device;
  e->own = own;
  e->choices = *choices;
  e->cudnn.folder = gc_cudnn_folder(host, ctx);
  e->is_synchronous = getenv("AOT_CUDA_SYNC") && strcmp(getenv("AOT_CUDA_SYNC"), "0") != 0;
  e->table = (aot_exe_t){
      .head = {.struct_size = sizeof e->table,
               .flags = AOT_EXE_OPEN_OUTPUTS,
               .self = e,
               .destroy = destroy,
               .get_ext = get_ext},
      .plan = plan,
      .bind = bind,
      .submit = submit,
      .unbind = unbind,
      .stats = stats,
  };
  e->check_nan =
      (aot_ext_check_nan_t){.head = {.struct_size = sizeof e->check_nan, .self = e}, .start = check_nan_start};
  e->profile = (aot_ext_profile_t){
      .head = {.struct_size = sizeof e->profile, .self = e}, .start = profile_start, .read = profile_read};
  const aot_status_t cut = lw_cut_init(&e->cut, s);
  e->s = e->cut.s;
  e->parts = calloc((size_t)e->s->graphs.count * GC_MAX_FORMS, sizeof *e->parts);
  e->n_on_host = calloc((size_t)s->ops.count + 1, sizeof *e->n_on_host);
  e->n_counted = calloc((size_t)s->ops.count + 1, sizeof *e->n_counted);
  aot_status_t status = cut == AOT_OK && e->parts && e->n_on_host && e->n_counted
                            ? open_libraries(e, ctx, getenv("AOT_NVRTC"), &error)
                            : lw_no_memory(&error, "for a program");
  if (status == AOT_OK && (status = custom_prepare(world, s, &e->custom, &why)) != AOT_OK) {
    error.node = why.node;
    lw_fail(&error, status, "no-kernel", "%s", why.text);
  }
  if (status != AOT_OK) {
    tell(e, ctx, status, &error);
    destroy(&e->table.head);
    return status;
  }
  *out = e;
  return AOT_OK;
}

/* What the load reports, of all graphs. */
typedef struct totals {
  uint32_t steps, fallback, groups, products, dnn, waits;
  uint64_t moved;
} totals_t;

static void count(totals_t *t, const gc_exe_t *e) {
  t->steps += e->n_steps, t->fallback += e->n_fallback, t->groups += e->n_groups, t->products += e->n_products;
  t->dnn += e->n_dnn, t->waits += e->n_waits, t->moved += e->loop_nbytes;
}

/* A part is lowered for what it asks to be compiled: the hints of sizes that nothing knows yet may contradict each
 * other. Its birth runs on the host. */
static void prepare_part(gc_exe_t *e, const lw_part_t *part, const int64_t *hints, totals_t *t) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(e->s, aot_snap_node_t, nodes);
  lw_error_t ignored = {.node = AOT_NO_ID};
  gc_call_t *call;
  if (gc_call_create(e, part->graph, hints, LW_ALIGN, &call, &ignored) == AOT_OK) count(t, e);
  gc_call_destroy(call);
  if (part->birth == AOT_NO_ID) return;
  e->n_on_host[nodes[part->birth].op]++;
  t->fallback++;
  t->waits++;
}

static aot_status_t prepare_graph(gc_exe_t *e, uint32_t graph, const int64_t *hints, totals_t *t, lw_error_t *error) {
  for (uint32_t k = 0; k < e->cut.n_parts_of[graph]; k++)
    prepare_part(e, &e->cut.parts[e->cut.first_part[graph] + k], hints, t);
  if (is_cut(e, graph)) return AOT_OK;
  gc_call_destroy(e->planned);
  AOT_TRY(gc_call_create(e, graph, hints, LW_ALIGN, &e->planned, error));
  count(t, e);
  return AOT_OK;
}

aot_status_t gc_exe_prepare(gc_exe_t *e, aot_ctx_t *ctx) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(e->s, aot_snap_graph_t, graphs);
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(e->s, aot_snap_symbol_t, symbols);
  int64_t *hints = calloc((size_t)e->s->symbols.count + 1, sizeof *hints);
  totals_t t = {0};
  lw_error_t error = {.node = AOT_NO_ID};
  aot_status_t status = hints ? AOT_OK : AOT_E_EXHAUSTED;
  e->ctx = ctx;
  for (uint32_t i = 0; hints && i < e->s->symbols.count; i++) hints[i] = symbols[i].hint;
  for (uint32_t i = 1; i < e->s->graphs.count && status == AOT_OK; i++)
    if (g[i].kind != AOT_GRAPH_REGION) status = prepare_graph(e, i, hints, &t, &error);
  e->n_steps = t.steps, e->n_fallback = t.fallback, e->n_groups = t.groups, e->n_products = t.products;
  e->n_dnn = t.dnn, e->n_waits = t.waits;
  e->loop_nbytes = t.moved;
  free(hints);
  return status == AOT_OK ? AOT_OK : tell(e, ctx, status, &error);
}
