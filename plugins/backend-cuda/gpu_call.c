#include "gpu_call.h"

#include "kit/lowering/ports.h"
#include "kit/lowering/region_steps.h"
#include "kit/lowering/observed_values.h"
#include "gpu_clock.h"
#include "gpu_errors.h"
#include "stream_sync.h"
#include "plan_cache_disk.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* ---- pinned memory ---- */

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

static gc_result_t start_times(gc_call_t *c) {
  gc_exe_t *e = c->exe;
  if (c->times.is_on) {
    gc_times_take(&c->times, &e->device->driver, &c->schedule);
    return GC_SUCCESS;
  }
  c->next = e->profiled;
  e->profiled = c;
  gc_times_init(&c->times);
  return GC_SUCCESS;
}

static void end_times(gc_call_t *c) {
  gc_exe_t *e = c->exe;
  gc_call_t **at = &e->profiled;
  while (*at && *at != c) at = &(*at)->next;
  if (!*at) return;
  *at = c->next;
  gc_times_take(&c->times, &e->device->driver, &c->schedule);
  gc_times_deinit(&c->times, &e->device->driver);
  gc_rows_add(&e->past, &c->schedule, &e->limits);
}

void gc_calls_profile_start(gc_exe_t *e) {
  e->device->driver.ctx_set_current(e->device->context);
  for (gc_call_t *c = e->profiled; c; c = c->next) {
    gc_times_take(&c->times, &e->device->driver, &c->schedule);
    lw_times_clear(&c->schedule);
  }
  e->past.n = 0;
  e->is_profiled = 1;
}

int gc_calls_profile_read(gc_exe_t *e) {
  int has_memory = 1;
  e->device->driver.ctx_set_current(e->device->context);
  e->rows.n = 0;
  for (gc_call_t *c = e->profiled; c && has_memory; c = c->next) {
    gc_times_take(&c->times, &e->device->driver, &c->schedule);
    has_memory = gc_rows_add(&e->rows, &c->schedule, &e->limits);
  }
  return has_memory && gc_rows_copy(&e->rows, &e->past);
}

/* ---- a call at certain sizes ---- */

void gc_call_destroy(gc_call_t *c) {
  if (!c) return;
  const gc_exe_t *e = c->exe;
  e->device->driver.ctx_set_current(e->device->context);
  end_times(c);
  gc_device_look_away(e->device, &c->lookout);
  for (uint32_t k = 0; c->pieces && k < c->n_pieces; k++)
    if (c->pieces[k].exec) e->device->driver.graph_exec_destroy(c->pieces[k].exec);
  gc_beside_deinit(&c->beside);
  free(c->pieces);
  free(c->piece_at);
  lw_schedule_deinit(&c->schedule);
  free_pinned(e, c->run.staging);
  free_pinned(e, c->run.checks);
  free_pinned(e, c->run.decides);
  free_pinned(e, c->looked_at);
  free_pinned(e, c->numbers);
  free(c->symbols);
  free(c->base);
  free(c->staged);
  free(c->number_at);
  free(c);
}

static void on_fault(void *self, aot_status_t status, const lw_error_t *error) {
  const gc_call_t *c = self;
  gc_device_fault(c->exe->device, status, "backend-cuda.kernel-failed", error->text, error->node);
}

static aot_status_t lower_once(gc_call_t *c, gc_lowering_t *l, lw_error_t *error) {
  gc_exe_t *e = c->exe;
  const double begin = gc_now_ms();
  memset(e->n_counted, 0, ((size_t)e->s->ops.count + 1) * sizeof *e->n_counted);
  *l = (gc_lowering_t){
      .code = &e->code,
      .cublaslt = &e->cublaslt,
      .algorithms = &e->algorithms,
      .machine = e->machine,
      .align = c->align,
      .n_on_host = e->n_counted,
      .cudnn = &e->cudnn,
      .choices = &e->choices,
  };
  const lw_machine_t machine = {
      .target = &gc_gpu,
      .n_threads = 1,
      .custom = &e->custom,
      .is_watched = e->is_watched,
      .chunk_nbytes = e->choices.chunk_nbytes,
      .adds_residuals = e->choices.adds_residuals,
      .self = l,
  };
  const aot_status_t status =
      lw_schedule_init(&c->schedule, e->s, c->graph, c->symbols, e->s->symbols.count, &machine, error);
  e->lowering_ms += gc_now_ms() - begin;
  e->n_lowered++;
  return status;
}

static aot_status_t end_compiling(gc_call_t *c, gc_compiling_t *compiling, lw_error_t *error) {
  char why[300];
  if (gc_code_end(&c->exe->code, compiling, why, sizeof why) == 0) return AOT_OK;
  return lw_fail(error, AOT_E_INTERNAL, "compile", "%s", why);
}

/* Lowered as if cuDNN had all plans and cuBLASLt all algorithms; and what that wants is made: plans and kernels on
 * threads, and next to them, on a GPU that does nothing else, algorithms of products are chosen. */
static aot_status_t lower_and_make(gc_call_t *c, gc_lowering_t *l, int *out_is_right, lw_error_t *error) {
  gc_exe_t *e = c->exe;
  if (e->wants_cudnn) gc_plans_begin(&e->cudnn, &e->device->driver, e->device->context);
  e->algorithms.is_gathering = 1;
  aot_status_t status = lower_once(c, l, error);
  e->algorithms.is_gathering = 0;
  uint32_t n_other = 0;
  if (status == AOT_OK) {
    gc_want_kernels(&c->schedule);
    gc_compiling_t *compiling = gc_code_begin(&e->code);
    n_other = gc_algorithms_choose_waiting(&e->algorithms);
    status = end_compiling(c, compiling, error);
  }
  n_other += gc_plans_end(&e->cudnn, &e->plans_ms);
  *out_is_right = n_other == 0;
  return status;
}

/* again, where a plan is not made, or wants another workspace than was used, or cuBLASLt has no algorithm for a
 * form. */
static aot_status_t lower(gc_call_t *c, lw_error_t *error) {
  gc_exe_t *e = c->exe;
  gc_lowering_t l;
  int is_right = 1;
  AOT_TRY(lower_and_make(c, &l, &is_right, error));
  if (!is_right) {
    lw_schedule_deinit(&c->schedule);
    AOT_TRY(lower_once(c, &l, error));
    gc_want_kernels(&c->schedule);
    AOT_TRY(end_compiling(c, gc_code_begin(&e->code), error));
  }
  for (uint32_t o = 0; o <= e->s->ops.count; o++) e->n_on_host[o] += e->n_counted[o];
  c->staging_nbytes = l.staging_nbytes;
  c->n_checks = l.n_checks;
  c->n_beside = l.n_beside;
  e->n_steps = c->schedule.n_steps;
  e->n_fallback = c->schedule.n_fallback;
  e->n_groups = c->schedule.n_groups;
  e->n_chunks = c->schedule.n_chunks;
  e->n_residuals = c->schedule.n_residuals;
  e->loop_nbytes = c->schedule.loop_nbytes;
  e->n_products = l.n_products;
  e->n_dnn = l.n_dnn;
  e->n_started = l.n_started;
  e->copied_nbytes = c->schedule.copied_nbytes;
  if (c->schedule.arena_nbytes > e->arena_nbytes) e->arena_nbytes = c->schedule.arena_nbytes;
  if (c->schedule.live_nbytes > e->live_nbytes) e->live_nbytes = c->schedule.live_nbytes;
  return AOT_OK;
}

/* ---- pieces ---- */

static aot_status_t add_pieces(gc_call_t *c, lw_error_t *error) {
  const lw_schedule_t *s = &c->schedule;
  const size_t n = (size_t)s->n_steps + 1;
  uint8_t *begins = calloc(n + 1, 1); /* by step */
  c->pieces = calloc(n, sizeof *c->pieces);
  c->piece_at = calloc(n, sizeof *c->piece_at);
  const int has_memory = begins && c->pieces && c->piece_at;
  for (uint32_t i = 0; i < s->n_steps && has_memory; i++) {
    const lw_step_t *step = &s->steps[i];
    const uint32_t target = gc_jump_target(step);
    begins[i] |= (uint8_t)(step->depends_on_run != 0);
    begins[i + 1] |= (uint8_t)(step->depends_on_run != 0);
    if (target != LW_NONE) begins[target] = 1;
    c->n_waits += gc_jump_waits(step);
  }
  for (uint32_t i = 0; i < s->n_steps && has_memory; i++) {
    if (begins[i] || i == 0)
      c->pieces[c->n_pieces++] = (gc_piece_t){.begin = i, .depends_on_run = s->steps[i].depends_on_run};
    c->pieces[c->n_pieces - 1].end = i + 1;
    c->piece_at[i] = c->n_pieces - 1;
  }
  if (has_memory && !c->n_pieces) c->n_pieces = 1; /* of no step */
  free(begins);
  return has_memory ? AOT_OK : lw_no_memory(error, "for a call");
}

aot_status_t gc_call_create(gc_exe_t *e, uint32_t graph, const int64_t *symbols, uint32_t align, gc_call_t **out,
                            lw_error_t *error) {
  gc_call_t *c = calloc(1, sizeof *c);
  const size_t n = e->s->symbols.count;
  aot_status_t status = c ? AOT_OK : AOT_E_EXHAUSTED;
  *out = NULL;
  if (c) {
    c->exe = e;
    c->graph = graph;
    c->align = align;
    c->symbols = calloc(n + 1, sizeof *c->symbols);
    if (c->symbols && n) memcpy(c->symbols, symbols, n * sizeof *symbols);
    status = c->symbols ? lower(c, error) : AOT_E_EXHAUSTED;
  }
  if (status == AOT_OK) status = add_pieces(c, error);
  if (status == AOT_OK) e->n_waits = c->n_waits;
  if (status == AOT_E_EXHAUSTED && !error->text[0]) lw_fail(error, status, "no-memory", "no memory for a call");
  if (status == AOT_OK) *out = c;
  else gc_call_destroy(c);
  return status;
}

int gc_call_is_for(const gc_call_t *c, uint32_t graph, const int64_t *symbols, uint32_t align) {
  return c && c->graph == graph && c->align <= align &&
         memcmp(c->symbols, symbols, c->exe->s->symbols.count * sizeof *symbols) == 0;
}

/* ---- memory ---- */

/* Every wait does, so it is quick where nothing is wrong. */
static void look_at_checks(void *self) {
  const gc_call_t *c = self;
  lw_error_t error = {.node = AOT_NO_ID};
  uint32_t k = 0;
  while (k < c->n_checks && !atomic_load_explicit(&c->run.checks[k], memory_order_relaxed)) k++;
  if (k == c->n_checks) return;
  const aot_status_t status = gc_check_indices(&c->schedule, c->run.checks, &error);
  if (status != AOT_OK) gc_device_fault(c->exe->device, status, "backend-cuda.bad-index", error.text, error.node);
}

uint32_t gc_alignment_of_ports(const aot_tensor_t *tensors, uint64_t n, uint32_t align) {
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

static void place_numbers(gc_call_t *c, const aot_tensor_t *outputs) {
  for (uint32_t o = 0; o < c->schedule.n_outputs; o++) {
    const aot_tensor_t *t = &outputs[o];
    const lw_port_t *port = &c->schedule.outputs[o];
    const uint64_t nbytes = t->data ? aot_dtype_size(t->dtype) : 0;
    if (port->kind != AOT_TYPE_SYMINT && port->kind != AOT_TYPE_SYMBOOL) continue;
    if (nbytes) number_bytes(port, t->dtype, &c->numbers[o]);
    c->number_at[o] = (aot_buffer_t){(uint64_t)(uintptr_t)t->data + (uint64_t)t->offset * nbytes, nbytes};
  }
}

static aot_status_t need_host_memory(gc_call_t *c, lw_error_t *error) {
  const lw_schedule_t *s = &c->schedule;
  if (c->base) return AOT_OK;
  c->staged = calloc((size_t)s->n_storages + 1, sizeof *c->staged);
  c->run.staging = pinned(c->exe, c->staging_nbytes);
  c->run.checks = pinned(c->exe, c->n_checks * sizeof(int64_t));
  c->run.decides = pinned(c->exe, GC_DECIDES_NBYTES);
  c->numbers = pinned(c->exe, s->n_outputs * sizeof(int64_t));
  c->number_at = calloc((size_t)s->n_outputs + 1, sizeof *c->number_at);
  if (c->staged && c->run.staging && c->run.checks && c->run.decides && c->numbers && c->number_at)
    c->base = calloc((size_t)s->n_storages + 1, sizeof *c->base);
  if (c->base) {
    c->lookout = (gc_lookout_t){.look = look_at_checks, .self = c};
    if (c->n_checks) gc_device_look_at(c->exe->device, &c->lookout);
    return AOT_OK;
  }
  return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no host memory of %llu bytes for a call",
                 (unsigned long long)c->staging_nbytes);
}

static aot_status_t settle(void *self, lw_error_t *error) {
  const gc_call_t *c = self;
  return gc_exe_settle(c->exe, c->ctx, c->queue, error);
}

aot_status_t gc_call_bind(gc_call_t *c, aot_buffer_t arena, const aot_tensor_t *inputs, uint64_t n_inputs,
                          const aot_tensor_t *outputs, uint64_t n_outputs, lw_error_t *error) {
  const lw_schedule_t *s = &c->schedule;
  char *at = (char *)(uintptr_t)arena.address;
  if (arena.nbytes < s->arena_nbytes)
    return lw_fail(error, AOT_E_INVALID, "bad-call", "an arena of %llu bytes, and %llu are needed",
                   (unsigned long long)arena.nbytes, (unsigned long long)s->arena_nbytes);
  if (n_inputs != s->n_inputs || n_outputs != s->n_outputs)
    return lw_fail(error, AOT_E_INVALID, "bad-call", "%llu inputs and %llu outputs for a graph with %u and %u",
                   (unsigned long long)n_inputs, (unsigned long long)n_outputs, s->n_inputs, s->n_outputs);
  AOT_TRY(need_host_memory(c, error));
  if (c->n_beside && !c->beside.queue && gc_beside_init(&c->beside, c->exe->device, c->ctx, c->n_beside) != AOT_OK)
    return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no queue for collectives, or no events");
  c->run.driver = &c->exe->device->driver;
  c->run.device = c->exe->device;
  c->run.staged = c->staged;
  c->run.result = &c->result;
  c->run.beside = &c->beside;
  c->run.waits_at_once = c->exe->is_synchronous || c->exe->is_watched;
  c->run.cublas = &c->cublas;
  c->run.dnn = &c->dnn;
  c->run.fault = on_fault;
  c->run.settle = settle;
  c->run.self = c;
  for (uint32_t i = 0; i < s->n_storages; i++) c->base[i] = at ? at + s->storages[i].at : NULL;
  place_numbers(c, outputs);
  AOT_TRY(lw_bind_ports(s->inputs, s->n_inputs, inputs, "input", c->base, error));
  return lw_bind_ports(s->outputs, s->n_outputs, outputs, "output", c->base, error);
}

/* ---- a run ---- */

/* step: NULL: none of the schedule's. An error that takes the device with it is reported here, with the step. */
static aot_status_t explain(const gc_call_t *c, const lw_step_t *step, lw_error_t *error) {
  gc_device_t *d = c->exe->device;
  char buffer[384];
  error->node = step ? step->node : AOT_NO_ID;
  if (c->cublas)
    return lw_fail(error, AOT_E_INTERNAL, "cublas", "cuBLASLt refuses a matrix product: status %d", c->cublas);
  if (c->dnn) {
    gc_cudnn_failed(&c->exe->cudnn, c->dnn, "a graph of operations", buffer, sizeof buffer);
    return lw_fail(error, AOT_E_INTERNAL, "cudnn", "%s", buffer);
  }
  const int is_lost = gc_device_lost(d, c->result, 1);
  gc_driver_error(&d->driver, c->result, buffer, sizeof buffer);
  return lw_fail(error, is_lost ? AOT_E_DATA_LOSS : AOT_E_INTERNAL, is_lost ? "lost" : "driver", "%s%s%s%s",
                 step ? gc_step_name(step) : "a call", ": ", buffer, is_lost ? "; the device is lost" : "");
}

/* Reports a step that failed on a stream, unless a wait (gc_exe_settle) or a kernel on the queue has reported it. */
static aot_status_t step_failed(const gc_call_t *c, const lw_step_t *step, aot_status_t status, lw_error_t *error) {
  const int has_said = error->code && (strcmp(error->code, "told") == 0 || strcmp(error->code, "kernel-failed") == 0);
  return has_said ? status : explain(c, step, error);
}

static aot_status_t begin(gc_call_t *c, gc_stream_t stream, lw_error_t *error) {
  const gc_driver_t *cu = &c->exe->device->driver;
  c->run.stream = stream;
  c->cublas = c->dnn = 0;
  gc_beside_begin(&c->beside);
  for (uint32_t o = 0; o < c->schedule.n_outputs; o++)
    if (c->number_at[o].nbytes && (c->result = cu->memcpy_to_device(c->number_at[o].address, &c->numbers[o],
                                                                    c->number_at[o].nbytes, stream)) != GC_SUCCESS)
      return explain(c, NULL, error);
  c->result = gc_times_begin(&c->times, cu, stream);
  return c->result == GC_SUCCESS ? AOT_OK : explain(c, NULL, error);
}

static aot_status_t end(gc_call_t *c, lw_error_t *error) {
  const gc_driver_t *cu = &c->exe->device->driver;
  c->result = gc_times_end(&c->times, cu);
  return c->result == GC_SUCCESS ? AOT_OK : explain(c, NULL, error);
}

static aot_status_t read_storage(void *self, uint32_t storage, int64_t begin, int64_t end, const char **out,
                                 lw_error_t *error) {
  gc_call_t *c = self;
  const uint64_t nbytes = (uint64_t)(end - begin);
  const gc_address_t at = (gc_address_t)(uintptr_t)c->base[storage] + (gc_address_t)begin;
  if (nbytes > c->looked_at_nbytes) {
    free_pinned(c->exe, c->looked_at);
    c->looked_at = pinned(c->exe, nbytes);
    c->looked_at_nbytes = c->looked_at ? nbytes : 0;
    if (!c->looked_at) return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no host memory to look for NaNs");
  }
  c->result = c->exe->device->driver.memcpy_to_host(c->looked_at, at, nbytes, c->run.stream);
  if (c->result != GC_SUCCESS) return explain(c, NULL, error);
  *out = c->looked_at;
  return settle(c, error);
}

/* Steps from `first` on, until one ends before or goes past the range. *out_next: the one that is next. */
static aot_status_t run_steps(gc_call_t *c, gc_stream_t stream, uint32_t first, uint32_t end, uint32_t *out_next,
                              lw_error_t *error) {
  const gc_driver_t *cu = &c->exe->device->driver;
  const lw_frame_t frame = {.base = c->base, .error = error, .next = out_next, .self = &c->run};
  const lw_watcher_t watcher = {c, read_storage};
  c->run.stream = stream;
  *out_next = first;
  while (*out_next >= first && *out_next < end) {
    const uint32_t at = *out_next;
    const lw_step_t *step = &c->schedule.steps[at];
    AOT_TRY(lw_look_before(&c->schedule, at, &watcher, error));
    if ((c->result = gc_times_mark(&c->times, cu, *out_next)) != GC_SUCCESS) return explain(c, NULL, error);
    ++*out_next;
    aot_status_t status = step->run(&frame, step->payload);
    if (status == AOT_OK && c->exe->is_synchronous && (c->result = cu->stream_synchronize(stream)) != GC_SUCCESS)
      status = AOT_E_INTERNAL;
    if (status != AOT_OK) return step_failed(c, step, status, error);
    AOT_TRY(lw_look_after(&c->schedule, c->exe->s, at, &watcher, error));
  }
  return AOT_OK;
}

/* What continues next to the stream ends with what is captured, or with the call. */
static aot_status_t join(gc_call_t *c, gc_stream_t stream, lw_error_t *error) {
  c->result = gc_beside_join(&c->beside, stream);
  return c->result == GC_SUCCESS ? AOT_OK : explain(c, NULL, error);
}

/* Of a call that is one piece, with what precedes and after the steps. */
static aot_status_t put_piece(gc_call_t *c, const gc_piece_t *piece, gc_stream_t stream, lw_error_t *error) {
  uint32_t next;
  if (c->n_pieces == 1) AOT_TRY(begin(c, stream, error));
  AOT_TRY(run_steps(c, stream, piece->begin, piece->end, &next, error));
  AOT_TRY(join(c, stream, error));
  return c->n_pieces == 1 ? end(c, error) : AOT_OK;
}

static aot_status_t capture(gc_call_t *c, gc_piece_t *piece, lw_error_t *error) {
  const gc_device_t *d = c->exe->device;
  gc_graph_t graph = NULL;
  c->result = d->driver.stream_begin_capture(d->setup, GC_CAPTURE_THREAD_LOCAL);
  if (c->result != GC_SUCCESS) return explain(c, NULL, error);
  const aot_status_t status = put_piece(c, piece, d->setup, error);
  const gc_result_t ended = d->driver.stream_end_capture(d->setup, &graph);
  if (status == AOT_OK) c->result = ended;
  if (status == AOT_OK && ended == GC_SUCCESS)
    c->result = d->driver.graph_instantiate(&piece->exec, graph, GC_GRAPH_NODE_PRIORITIES);
  if (graph) d->driver.graph_destroy(graph);
  if (status != AOT_OK) return status;
  return c->result == GC_SUCCESS ? AOT_OK : explain(c, NULL, error);
}

static aot_status_t launch(gc_call_t *c, gc_piece_t *piece, gc_stream_t stream, lw_error_t *error) {
  if (!piece->exec) AOT_TRY(capture(c, piece, error));
  c->result = c->exe->device->driver.graph_launch(piece->exec, stream);
  return c->result == GC_SUCCESS ? AOT_OK : explain(c, NULL, error);
}

static aot_status_t run_pieces(gc_call_t *c, gc_stream_t stream, lw_error_t *error) {
  uint32_t next = 0;
  AOT_TRY(begin(c, stream, error));
  while (next < c->schedule.n_steps) {
    gc_piece_t *piece = &c->pieces[c->piece_at[next]];
    next = piece->end;
    if (piece->depends_on_run) AOT_TRY(run_steps(c, stream, piece->begin, piece->end, &next, error));
    else AOT_TRY(launch(c, piece, stream, error));
  }
  return end(c, error);
}

static int is_by_steps(const gc_call_t *c) {
  return c->is_by_steps || c->exe->is_synchronous || c->exe->is_profiled || c->exe->is_watched;
}

aot_status_t gc_call_prepare(gc_call_t *c, lw_error_t *error) {
  if (is_by_steps(c) || c->n_pieces > 1 || c->pieces[0].exec || c->pieces[0].depends_on_run) return AOT_OK;
  return capture(c, &c->pieces[0], error);
}

aot_status_t gc_call_run(gc_call_t *c, aot_ctx_t *ctx, aot_queue_t *queue, lw_error_t *error) {
  const gc_stream_t stream = gc_queue_stream(queue);
  uint32_t next;
  c->ctx = ctx;
  c->queue = queue;
  if (!is_by_steps(c) && c->n_pieces == 1 && !c->pieces[0].depends_on_run)
    return launch(c, &c->pieces[0], stream, error);
  if (!is_by_steps(c)) return run_pieces(c, stream, error);
  if (c->exe->is_profiled && (c->result = start_times(c)) != GC_SUCCESS) return explain(c, NULL, error);
  AOT_TRY(begin(c, stream, error));
  AOT_TRY(run_steps(c, stream, 0, c->schedule.n_steps, &next, error));
  AOT_TRY(join(c, stream, error));
  return end(c, error);
}
