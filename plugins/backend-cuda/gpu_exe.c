#include "gpu_exe.h"

#include "common/lowering/ports.h"
#include "gpu_attention.h"
#include "gpu_clock.h"
#include "gpu_conv.h"
#include "gpu_errors.h"
#include "gpu_facts.h"
#include "gpu_libraries.h"
#include "kept_plans.h"
#include <aot/ext/env.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A graph at certain sizes, and, once it is bound, on certain memory. */
struct aot_bound {
  gc_exe_t *exe;
  uint32_t graph; /* snapshot row */
  int64_t *symbols;
  uint32_t align; /* of the ports, as it was assumed */
  lw_schedule_t schedule;
  char **base, **staged; /* by storage */
  gc_run_t run;
  uint64_t staging_nbytes;
  uint32_t n_checks;
  int64_t *numbers;        /* pinned: integers that outputs are, by output */
  aot_buffer_t *number_at; /* and where they go; 0 bytes: nowhere */
  gc_graph_exec_t graph_exec;
  gc_times_t times;
  struct aot_bound *next; /* that is profiled */
  gc_result_t result;
  int cublas, dnn; /* what the libraries answered last */
};

static gc_exe_t *of(const aot_exe_t *e) { return e->head.self; }

static aot_status_t tell(const gc_exe_t *e, aot_ctx_t *ctx, aot_status_t status, const lw_error_t *error) {
  return gc_tell(&e->host, ctx, status, error);
}

/* ---- a bound call ---- */

static void free_pinned(const gc_exe_t *e, void *memory) {
  if (memory) e->device->driver.mem_free_host(memory);
}

static void *pinned(const gc_exe_t *e, uint64_t nbytes) {
  void *memory = NULL;
  if (e->device->driver.mem_host_alloc(&memory, nbytes ? nbytes : 1,
                                       GC_HOST_MEMORY_PORTABLE | GC_HOST_MEMORY_DEVICE_MAP))
    return NULL;
  return memset(memory, 0, nbytes ? nbytes : 1);
}

/* ---- times of steps (gpu_profile.h) ---- */

static gc_result_t start_times(struct aot_bound *b) {
  gc_exe_t *e = b->exe;
  if (b->times.events) {
    gc_times_take(&b->times, &e->device->driver, &b->schedule);
    return GC_SUCCESS;
  }
  b->next = e->bound;
  e->bound = b;
  return gc_times_init(&b->times, &e->device->driver, b->schedule.n_steps);
}

static void end_times(struct aot_bound *b) {
  gc_exe_t *e = b->exe;
  struct aot_bound **at = &e->bound;
  while (*at && *at != b) at = &(*at)->next;
  if (!*at) return;
  *at = b->next;
  gc_times_take(&b->times, &e->device->driver, &b->schedule);
  gc_times_deinit(&b->times, &e->device->driver);
  gc_rows_add(&e->past, &b->schedule, &e->limits);
}

static aot_status_t profile_start(const aot_ext_profile_t *x) {
  gc_exe_t *e = x->head.self;
  e->device->driver.ctx_set_current(e->device->context);
  for (struct aot_bound *b = e->bound; b; b = b->next) {
    gc_times_take(&b->times, &e->device->driver, &b->schedule);
    lw_times_clear(&b->schedule);
  }
  e->past.n = 0;
  e->is_profiled = 1;
  return AOT_OK;
}

static aot_status_t profile_read(const aot_ext_profile_t *x, aot_profile_t *out) {
  gc_exe_t *e = x->head.self;
  int has_memory = 1;
  e->device->driver.ctx_set_current(e->device->context);
  e->rows.n = 0;
  for (struct aot_bound *b = e->bound; b && has_memory; b = b->next) {
    gc_times_take(&b->times, &e->device->driver, &b->schedule);
    has_memory = gc_rows_add(&e->rows, &b->schedule, &e->limits);
  }
  if (has_memory) has_memory = gc_rows_copy(&e->rows, &e->past);
  if (!has_memory) return AOT_E_EXHAUSTED;
  const aot_profile_t full = {
      .struct_size = sizeof full, .row_stride = sizeof(aot_profile_row_t), .rows = e->rows.rows, .n_rows = e->rows.n};
  aot_export(out, &full, sizeof full);
  return AOT_OK;
}

static void bound_destroy(struct aot_bound *b) {
  if (!b) return;
  const gc_exe_t *e = b->exe;
  e->device->driver.ctx_set_current(e->device->context);
  end_times(b);
  if (b->graph_exec) e->device->driver.graph_exec_destroy(b->graph_exec);
  lw_schedule_deinit(&b->schedule);
  free_pinned(e, b->run.staging);
  free_pinned(e, b->run.checks);
  free_pinned(e, b->numbers);
  free(b->symbols);
  free(b->base);
  free(b->staged);
  free(b->number_at);
  free(b);
}

static void on_fault(void *self, aot_status_t status, const lw_error_t *error) {
  const struct aot_bound *b = self;
  gc_device_fault(b->exe->device, status, "backend-cuda.kernel-failed", error->text, error->node);
}

static aot_status_t compile_kernels(struct aot_bound *b, lw_error_t *error) {
  char why[300];
  gc_want_kernels(&b->schedule);
  if (gc_code_compile(&b->exe->code, why, sizeof why) == 0) return AOT_OK;
  return lw_fail(error, AOT_E_INTERNAL, "compile", "%s", why);
}

static aot_status_t lower_once(struct aot_bound *b, gc_lowering_t *l, lw_error_t *error) {
  gc_exe_t *e = b->exe;
  const double begin = gc_now_ms();
  memset(e->n_counted, 0, ((size_t)e->s->ops.count + 1) * sizeof *e->n_counted);
  *l = (gc_lowering_t){
      .code = &e->code,
      .cublaslt = &e->cublaslt,
      .algorithms = &e->algorithms,
      .machine = e->machine,
      .align = b->align,
      .n_on_host = e->n_counted,
      .cudnn = &e->cudnn,
  };
  const lw_machine_t machine = {.target = &gc_gpu, .n_threads = 1, .custom = &e->custom, .self = l};
  const aot_status_t status =
      lw_schedule_init(&b->schedule, e->s, b->graph, b->symbols, e->s->symbols.count, &machine, error);
  e->lowering_ms += gc_now_ms() - begin;
  return status;
}

/* The schedule was made as if cuDNN had all plans, which tells those that are to be made; beside them the kernels are
 * compiled. Then it is made once more, with what cuDNN takes. */
static aot_status_t make_plans(struct aot_bound *b, gc_lowering_t *l, lw_error_t *error) {
  gc_exe_t *e = b->exe;
  const double begin = gc_now_ms();
  gc_plans_making_t *making = gc_plans_begin(&e->cudnn, &e->device->driver, e->device->context);
  const aot_status_t status = compile_kernels(b, error);
  gc_plans_end(making);
  e->plans_ms += gc_now_ms() - begin;
  AOT_TRY(status);
  lw_schedule_deinit(&b->schedule);
  return lower_once(b, l, error);
}

static aot_status_t lower(struct aot_bound *b, lw_error_t *error) {
  gc_exe_t *e = b->exe;
  gc_lowering_t l;
  e->cudnn.is_gathering = e->wants_cudnn;
  const aot_status_t status = lower_once(b, &l, error);
  e->cudnn.is_gathering = 0;
  AOT_TRY(status);
  if (e->cudnn.n_waiting) AOT_TRY(make_plans(b, &l, error));
  for (uint32_t o = 0; o <= e->s->ops.count; o++) e->n_on_host[o] += e->n_counted[o];
  AOT_TRY(compile_kernels(b, error));
  b->staging_nbytes = l.staging_nbytes;
  b->n_checks = l.n_checks;
  e->n_steps = b->schedule.n_steps;
  e->n_fallback = b->schedule.n_fallback;
  e->n_groups = b->schedule.n_groups;
  e->loop_nbytes = b->schedule.loop_nbytes;
  e->n_products = l.n_products;
  e->n_dnn = l.n_dnn;
  e->copied_nbytes = b->schedule.copied_nbytes;
  if (b->schedule.arena_nbytes > e->arena_nbytes) e->arena_nbytes = b->schedule.arena_nbytes;
  if (b->schedule.live_nbytes > e->live_nbytes) e->live_nbytes = b->schedule.live_nbytes;
  return AOT_OK;
}

static aot_status_t bound_create(gc_exe_t *e, uint32_t graph, const int64_t *symbols, uint32_t align,
                                 struct aot_bound **out, lw_error_t *error) {
  struct aot_bound *b = calloc(1, sizeof *b);
  const size_t n = e->s->symbols.count;
  aot_status_t status = b ? AOT_OK : AOT_E_EXHAUSTED;
  if (b) {
    b->exe = e;
    b->graph = graph;
    b->align = align;
    b->symbols = calloc(n + 1, sizeof *b->symbols);
    if (b->symbols && n) memcpy(b->symbols, symbols, n * sizeof *symbols);
    status = b->symbols ? lower(b, error) : AOT_E_EXHAUSTED;
  }
  if (status == AOT_E_EXHAUSTED && !error->text[0]) lw_fail(error, status, "no-memory", "no memory for a call");
  if (status == AOT_OK) *out = b;
  else bound_destroy(b);
  return status;
}

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

static int is_lowered_for(const struct aot_bound *b, uint32_t graph, const int64_t *symbols, uint32_t align) {
  return b && b->graph == graph && b->align <= align &&
         memcmp(b->symbols, symbols, b->exe->s->symbols.count * sizeof *symbols) == 0;
}

/* ---- the table ---- */

static aot_status_t plan(const aot_exe_t *x, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  gc_exe_t *e = of(x);
  uint32_t row = 0;
  lw_error_t error = {.node = AOT_NO_ID};
  e->device->driver.ctx_set_current(e->device->context);
  aot_status_t status = find_graph(e, graph, &row, &error);
  if (status == AOT_OK && !is_lowered_for(e->planned, row, graph->symbols, LW_ALIGN)) {
    bound_destroy(e->planned);
    e->planned = NULL;
    status = bound_create(e, row, graph->symbols, LW_ALIGN, &e->planned, &error);
  }
  if (status != AOT_OK) return tell(e, ctx, status, &error);
  const aot_exe_plan_t full = {
      .struct_size = out->struct_size, .arena = {.nbytes = e->planned->schedule.arena_nbytes}, .alignment = LW_ALIGN};
  memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
  return AOT_OK;
}

static uint32_t alignment_of(const aot_tensor_t *tensors, uint64_t n, uint32_t align) {
  for (uint64_t i = 0; i < n; i++)
    while (tensors[i].data && (uintptr_t)tensors[i].data % align) align /= 2;
  return align;
}

/* Integers at the boundary are known without running anything: a dtype's bytes, to be copied to the output. */
static void number_bytes(const lw_port_t *port, int32_t dtype, int64_t *out) {
  const double number = (double)port->number;
  *out = 0;
  if (dtype == AOT_I64) *out = port->number;
  else if (dtype == AOT_BOOL) *(char *)out = port->number != 0;
  else if (dtype == AOT_F64) memcpy(out, &number, sizeof number);
}

static void place_numbers(struct aot_bound *b, const aot_tensor_t *outputs) {
  for (uint32_t o = 0; o < b->schedule.n_outputs; o++) {
    const aot_tensor_t *t = &outputs[o];
    const lw_port_t *port = &b->schedule.outputs[o];
    const uint64_t nbytes = t->data ? aot_dtype_size(t->dtype) : 0;
    if (port->kind != AOT_TYPE_SYMINT && port->kind != AOT_TYPE_SYMBOOL) continue;
    if (nbytes) number_bytes(port, t->dtype, &b->numbers[o]);
    b->number_at[o] = (aot_buffer_t){(uint64_t)(uintptr_t)t->data + (uint64_t)t->offset * nbytes, nbytes};
  }
}

static aot_status_t set_memory(struct aot_bound *b, const aot_binding_t *binding, lw_error_t *error) {
  const lw_schedule_t *s = &b->schedule;
  char *arena = (char *)(uintptr_t)binding->arena.address;
  if (binding->arena.nbytes < s->arena_nbytes)
    return lw_fail(error, AOT_E_INVALID, "bad-call", "an arena of %llu bytes, and %llu are needed",
                   (unsigned long long)binding->arena.nbytes, (unsigned long long)s->arena_nbytes);
  if (binding->n_inputs != s->n_inputs || binding->n_outputs != s->n_outputs)
    return lw_fail(error, AOT_E_INVALID, "bad-call", "%llu inputs and %llu outputs for a graph with %u and %u",
                   (unsigned long long)binding->n_inputs, (unsigned long long)binding->n_outputs, s->n_inputs,
                   s->n_outputs);
  b->base = calloc((size_t)s->n_storages + 1, sizeof *b->base);
  b->staged = calloc((size_t)s->n_storages + 1, sizeof *b->staged);
  b->run.staging = pinned(b->exe, b->staging_nbytes);
  b->run.checks = pinned(b->exe, b->n_checks * sizeof(int64_t));
  b->numbers = pinned(b->exe, s->n_outputs * sizeof(int64_t));
  b->number_at = calloc((size_t)s->n_outputs + 1, sizeof *b->number_at);
  if (!b->base || !b->staged || !b->run.staging || !b->run.checks || !b->numbers || !b->number_at)
    return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no host memory of %llu bytes for a call",
                   (unsigned long long)b->staging_nbytes);
  for (uint32_t i = 0; i < s->n_storages; i++) b->base[i] = arena ? arena + s->storages[i].at : NULL;
  place_numbers(b, binding->outputs);
  AOT_TRY(lw_bind_ports(s->inputs, s->n_inputs, binding->inputs, "input", b->base, error));
  return lw_bind_ports(s->outputs, s->n_outputs, binding->outputs, "output", b->base, error);
}

static aot_status_t bind(const aot_exe_t *x, aot_ctx_t *ctx, const aot_binding_t *binding, aot_bound_t **out) {
  gc_exe_t *e = of(x);
  uint32_t row = 0;
  lw_error_t error = {.node = AOT_NO_ID};
  struct aot_bound *b = NULL;
  e->device->driver.ctx_set_current(e->device->context);
  aot_status_t status = find_graph(e, &binding->graph, &row, &error);
  uint32_t align = alignment_of(binding->inputs, binding->n_inputs, LW_ALIGN);
  align = alignment_of(binding->outputs, binding->n_outputs, align);
  if (status == AOT_OK && is_lowered_for(e->planned, row, binding->graph.symbols, align)) {
    b = e->planned;
    e->planned = NULL;
  } else if (status == AOT_OK) {
    status = bound_create(e, row, binding->graph.symbols, align, &b, &error);
  }
  if (status == AOT_OK) {
    b->run.driver = &e->device->driver;
    b->run.staged = NULL;
    b->run.result = &b->result;
    b->run.cublas = &b->cublas;
    b->run.dnn = &b->dnn;
    b->run.fault = on_fault;
    b->run.self = b;
    status = set_memory(b, binding, &error);
    b->run.staged = b->staged;
  }
  if (status == AOT_OK) {
    *out = b;
    return AOT_OK;
  }
  bound_destroy(b);
  return tell(e, ctx, status, &error);
}

static void check_on_host(void *self) {
  const struct aot_bound *b = self;
  lw_error_t error = {.node = AOT_NO_ID};
  const aot_status_t status = gc_check_indices(&b->schedule, b->run.checks, &error);
  if (status != AOT_OK) gc_device_fault(b->exe->device, status, "backend-cuda.bad-index", error.text, error.node);
}

/* step: NULL: none of the schedule's. An error that takes the device with it is told here, with the step. */
static aot_status_t explain(const struct aot_bound *b, const lw_step_t *step, lw_error_t *error) {
  gc_device_t *d = b->exe->device;
  char buffer[384];
  error->node = step ? step->node : AOT_NO_ID;
  if (b->cublas)
    return lw_fail(error, AOT_E_INTERNAL, "cublas", "cuBLASLt refuses a matrix product: status %d", b->cublas);
  if (b->dnn) {
    gc_cudnn_failed(&b->exe->cudnn, b->dnn, "a graph of operations", buffer, sizeof buffer);
    return lw_fail(error, AOT_E_INTERNAL, "cudnn", "%s", buffer);
  }
  const int is_lost = gc_device_lost(d, b->result, 1);
  gc_driver_error(&d->driver, b->result, buffer, sizeof buffer);
  return lw_fail(error, is_lost ? AOT_E_DATA_LOSS : AOT_E_INTERNAL, is_lost ? "lost" : "driver", "%s%s%s%s",
                 step ? gc_step_name(step) : "a call", ": ", buffer, is_lost ? "; the device is lost" : "");
}

/* All steps, on the stream. */
static aot_status_t run_steps(struct aot_bound *b, gc_stream_t stream, lw_error_t *error) {
  const gc_driver_t *cu = &b->exe->device->driver;
  const lw_schedule_t *s = &b->schedule;
  uint32_t next = 0;
  const lw_frame_t frame = {.base = b->base, .error = error, .next = &next, .self = &b->run};
  b->run.stream = stream;
  b->cublas = b->dnn = 0;
  for (uint32_t o = 0; o < s->n_outputs; o++)
    if (b->number_at[o].nbytes && (b->result = cu->memcpy_to_device(b->number_at[o].address, &b->numbers[o],
                                                                    b->number_at[o].nbytes, stream)) != GC_SUCCESS)
      return explain(b, NULL, error);
  if ((b->result = gc_times_begin(&b->times, cu, stream)) != GC_SUCCESS) return explain(b, NULL, error);
  while (next < s->n_steps) {
    if ((b->result = gc_times_mark(&b->times, cu, next)) != GC_SUCCESS) return explain(b, NULL, error);
    const lw_step_t *step = &s->steps[next++];
    aot_status_t status = step->run(&frame, step->payload);
    if (status == AOT_OK && b->exe->is_synchronous && (b->result = cu->stream_synchronize(stream)) != GC_SUCCESS)
      status = AOT_E_INTERNAL;
    if (status != AOT_OK) return explain(b, step, error);
  }
  if ((b->result = gc_times_mark(&b->times, cu, s->n_steps)) != GC_SUCCESS) return explain(b, NULL, error);
  if (b->n_checks && (b->result = cu->launch_host_func(stream, check_on_host, b)) != GC_SUCCESS)
    return explain(b, NULL, error);
  return AOT_OK;
}

static aot_status_t capture(struct aot_bound *b, lw_error_t *error) {
  const gc_device_t *d = b->exe->device;
  gc_graph_t graph = NULL;
  b->result = d->driver.stream_begin_capture(d->setup, GC_CAPTURE_THREAD_LOCAL);
  if (b->result != GC_SUCCESS) return explain(b, NULL, error);
  const aot_status_t status = run_steps(b, d->setup, error);
  const gc_result_t ended = d->driver.stream_end_capture(d->setup, &graph);
  if (status == AOT_OK) b->result = ended;
  if (status == AOT_OK && ended == GC_SUCCESS) b->result = d->driver.graph_instantiate(&b->graph_exec, graph, 0);
  if (graph) d->driver.graph_destroy(graph);
  if (status != AOT_OK) return status;
  return b->result == GC_SUCCESS ? AOT_OK : explain(b, NULL, error);
}

static aot_status_t submit(const aot_exe_t *x, aot_ctx_t *ctx, aot_bound_t *b, const aot_submission_t *s) {
  gc_exe_t *e = of(x);
  const aot_device_t *d = &e->device->table;
  lw_error_t error = {.node = AOT_NO_ID};
  aot_status_t status = AOT_OK;
  e->device->driver.ctx_set_current(e->device->context);
  const int is_by_steps = e->is_synchronous || e->is_profiled;
  if (!b->graph_exec && !is_by_steps) status = capture(b, &error);
  if (e->is_profiled && (b->result = start_times(b)) != GC_SUCCESS) status = explain(b, NULL, &error);
  if (status != AOT_OK) return tell(e, ctx, status, &error);
  for (uint64_t k = 0; k < s->n_waits; k++) AOT_TRY(d->wait(d, ctx, s->queue, s->waits[k]));
  const gc_stream_t stream = gc_queue_stream(s->queue);
  if (is_by_steps) status = run_steps(b, stream, &error);
  else if ((b->result = e->device->driver.graph_launch(b->graph_exec, stream)) != GC_SUCCESS)
    status = explain(b, NULL, &error);
  if (status != AOT_OK) return tell(e, ctx, status, &error);
  for (uint64_t k = 0; k < s->n_signals; k++) AOT_TRY(d->signal(d, ctx, s->queue, s->signals[k]));
  e->n_runs++;
  return AOT_OK;
}

static void unbind(const aot_exe_t *x, aot_bound_t *b) {
  (void)x;
  bound_destroy(b);
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
  return strcmp(id, AOT_EXT_PROFILE) == 0 ? &e->profile : NULL;
}

static void destroy(const aot_table_t *t) {
  gc_exe_t *e = t->self;
  bound_destroy(e->planned);
  free(e->past.rows);
  free(e->rows.rows);
  if (e->code.driver) gc_code_deinit(&e->code);
  gc_algorithms_deinit(&e->algorithms);
  gc_cublaslt_close(&e->cublaslt);
  gc_cudnn_close(&e->cudnn);
  cu_program_deinit(&e->custom);
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
      for (uint32_t r = 0; r < tables[t]->n_rows; r++)
        if (aot_str_eq(aot_snap_text(s, ops[o].name), aot_str(tables[t]->rows[r].op))) return 1;
  return 0;
}

static aot_status_t open_libraries(gc_exe_t *e, aot_ctx_t *ctx, const char *nvrtc_folder, int are_timed,
                                   lw_error_t *error) {
  const gc_driver_t *cu = &e->device->driver;
  const double begin = gc_now_ms();
  const gc_libraries_t libraries = {&e->nvrtc, &e->cublaslt, wants_cudnn(e->s) ? &e->cudnn : NULL, nvrtc_folder};
  char why[256];
  const char *code;
  if (gc_libraries_open(&libraries, cu, e->device->context, &code, why, sizeof why))
    return lw_fail(error, AOT_E_UNAVAILABLE, code, "%s", why);
  e->libraries_ms = gc_now_ms() - begin;
  const gc_facts_t facts = gc_facts_of(cu, e->device->ordinal);
  e->machine = facts.machine;
  e->limits = facts.rates;
  const char *cache = cache_folder(e, ctx);
  gc_code_init(&e->code, cu, &e->nvrtc, (int)e->machine.arch, cache);
  e->wants_cudnn = libraries.cudnn && gc_cudnn_ready(&e->cudnn);
  if (e->wants_cudnn) gc_plans_keep_in(&e->cudnn, cache, e->device->name);
  gc_algorithms_init(&e->algorithms, cu, &e->cublaslt, e->device->setup, cache, e->device->name, are_timed);
  return AOT_OK;
}

aot_status_t gc_exe_create(const aot_host_t *host, aot_ctx_t *ctx, const cu_world_t *world, gc_device_t *device,
                           const aot_snapshot_t *s, void *own, int are_timed, gc_exe_t **out) {
  gc_exe_t *e = calloc(1, sizeof *e);
  lw_error_t error = {.node = AOT_NO_ID};
  cu_error_t why;
  if (!e) return AOT_E_EXHAUSTED;
  e->host = *host;
  e->device = device;
  e->s = s;
  e->own = own;
  e->cudnn.folder = gc_cudnn_folder(host, ctx);
  e->is_synchronous = getenv("AOT_CUDA_SYNC") && strcmp(getenv("AOT_CUDA_SYNC"), "0") != 0;
  e->table = (aot_exe_t){
      .head = {.struct_size = sizeof e->table, .self = e, .destroy = destroy, .get_ext = get_ext},
      .plan = plan,
      .bind = bind,
      .submit = submit,
      .unbind = unbind,
      .stats = stats,
  };
  e->profile = (aot_ext_profile_t){
      .head = {.struct_size = sizeof e->profile, .self = e}, .start = profile_start, .read = profile_read};
  e->n_on_host = calloc((size_t)s->ops.count + 1, sizeof *e->n_on_host);
  e->n_counted = calloc((size_t)s->ops.count + 1, sizeof *e->n_counted);
  aot_status_t status = e->n_on_host && e->n_counted
                            ? open_libraries(e, ctx, getenv("AOT_NVRTC"), are_timed, &error)
                            : lw_fail(&error, AOT_E_EXHAUSTED, "no-memory", "no memory for a program");
  if (status == AOT_OK && (status = cu_prepare(world, s, &e->custom, &why)) != AOT_OK) {
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

aot_status_t gc_exe_prepare(gc_exe_t *e, aot_ctx_t *ctx) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(e->s, aot_snap_graph_t, graphs);
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(e->s, aot_snap_symbol_t, symbols);
  int64_t *hints = calloc((size_t)e->s->symbols.count + 1, sizeof *hints);
  uint32_t steps = 0, fallback = 0, groups = 0, products = 0, dnn = 0;
  uint64_t moved = 0;
  lw_error_t error = {.node = AOT_NO_ID};
  aot_status_t status = hints ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t i = 0; hints && i < e->s->symbols.count; i++) hints[i] = symbols[i].hint;
  for (uint32_t i = 1; i < e->s->graphs.count && status == AOT_OK; i++) {
    if (g[i].kind == AOT_GRAPH_REGION) continue;
    bound_destroy(e->planned);
    e->planned = NULL;
    status = bound_create(e, i, hints, LW_ALIGN, &e->planned, &error);
    steps += e->n_steps, fallback += e->n_fallback, groups += e->n_groups, products += e->n_products, dnn += e->n_dnn;
    moved += e->loop_nbytes;
  }
  e->n_steps = steps, e->n_fallback = fallback, e->n_groups = groups, e->n_products = products;
  e->n_dnn = dnn;
  e->loop_nbytes = moved;
  free(hints);
  return status == AOT_OK ? AOT_OK : tell(e, ctx, status, &error);
}
