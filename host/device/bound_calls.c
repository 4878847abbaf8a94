#include <device/bound_calls.h>

#include <ir/program.h>
#include <stdlib.h>
#include <string.h>

aot_status_t aoth_bound_calls_init(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_device_t *device,
                                   const aot_exe_t *exe, const aot_exe_t *exe_self) {
  aot_device_info_t info = {.struct_size = sizeof info};
  *b = (aoth_bound_calls_t){.device = device, .exe = exe, .exe_self = exe_self};
  AOT_TRY(device->info(device, &info));
  if (!(info.flags & AOT_DEVICE_HOST_VISIBLE)) AOT_TRY(device->queue_create(device, ctx, AOT_QUEUE_COPY, &b->copies));
  AOT_TRY(device->queue_create(device, ctx, AOT_QUEUE_COMPUTE, &b->queue));
  return device->timeline_create(device, ctx, &b->timeline);
}

static aot_status_t first_of(aot_status_t a, aot_status_t b) { return a != AOT_OK ? a : b; }

static aot_status_t forget(aoth_bound_calls_t *b, aot_ctx_t *ctx, aoth_bound_call_t *row) {
  if (row->call) b->exe->unbind(b->exe_self, row->call);
  const aot_status_t status = aoth_staging_deinit(&row->staging, ctx, b->device);
  free(row->copy);
  *row = (aoth_bound_call_t){0};
  return status;
}

static aot_status_t forget_all(aoth_bound_calls_t *b, aot_ctx_t *ctx) {
  aot_status_t status = AOT_OK;
  for (int k = 0; k < AOTH_MAX_BOUND; k++) status = first_of(status, forget(b, ctx, &b->rows[k]));
  if (b->arena.address) status = first_of(status, b->device->free(b->device, ctx, b->arena));
  b->arena = (aot_buffer_t){0};
  return status;
}

aot_status_t aoth_bound_calls_deinit(aoth_bound_calls_t *b, aot_ctx_t *ctx) {
  const aot_device_t *d = b->device;
  if (!d) return AOT_OK;
  aot_status_t status = forget_all(b, ctx);
  if (b->queue) status = first_of(status, d->queue_destroy(d, ctx, b->queue));
  if (b->copies) status = first_of(status, d->queue_destroy(d, ctx, b->copies));
  if (b->timeline) status = first_of(status, d->timeline_destroy(d, ctx, b->timeline));
  *b = (aoth_bound_calls_t){0};
  return status;
}

/* ---- equal bindings ---- */

static int same_tensors(const aot_tensor_t *a, const aot_tensor_t *b, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    if (a[i].data != b[i].data || a[i].nbytes != b[i].nbytes || a[i].dtype != b[i].dtype || a[i].rank != b[i].rank ||
        a[i].offset != b[i].offset)
      return 0;
    const size_t size = a[i].rank > 0 ? (size_t)a[i].rank * sizeof(int64_t) : 0;
    if (size && (memcmp(a[i].sizes, b[i].sizes, size) != 0 || memcmp(a[i].strides, b[i].strides, size) != 0)) return 0;
  }
  return 1;
}

static int same_binding(const aot_binding_t *a, const aot_binding_t *b) {
  return a->graph.kind == b->graph.kind && a->graph.number == b->graph.number && a->n_inputs == b->n_inputs &&
         a->n_outputs == b->n_outputs && a->graph.n_symbols == b->graph.n_symbols &&
         (a->graph.n_symbols == 0 ||
          memcmp(a->graph.symbols, b->graph.symbols, (size_t)a->graph.n_symbols * sizeof(int64_t)) == 0) &&
         same_tensors(a->inputs, b->inputs, a->n_inputs) && same_tensors(a->outputs, b->outputs, a->n_outputs);
}

static size_t count_dims(const aot_tensor_t *t, uint64_t n) {
  size_t count = 0;
  for (uint64_t i = 0; i < n; i++) count += t[i].rank > 0 ? 2 * (size_t)t[i].rank : 0;
  return count;
}

static int64_t *copy_tensors(aot_tensor_t *to, const aot_tensor_t *from, uint64_t n, int64_t *dims) {
  for (uint64_t i = 0; i < n; i++) {
    const size_t rank = from[i].rank > 0 ? (size_t)from[i].rank : 0;
    to[i] = from[i];
    if (rank) {
      to[i].sizes = memcpy(dims, from[i].sizes, rank * sizeof *dims);
      to[i].strides = memcpy(dims + rank, from[i].strides, rank * sizeof *dims);
    }
    dims += 2 * rank;
  }
  return dims;
}

static int keep_binding(aoth_bound_call_t *row, const aot_binding_t *what) {
  const size_t n_tensors = (size_t)(what->n_inputs + what->n_outputs), n_symbols = (size_t)what->graph.n_symbols;
  const size_t n_dims =
      count_dims(what->inputs, what->n_inputs) + count_dims(what->outputs, what->n_outputs) + n_symbols;
  aot_tensor_t *tensors = malloc(n_tensors * sizeof *tensors + (n_dims + 1) * sizeof(int64_t));
  if (!tensors) return 0;
  int64_t *dims = copy_tensors(tensors, what->inputs, what->n_inputs, (int64_t *)(void *)(tensors + n_tensors));
  dims = copy_tensors(tensors + what->n_inputs, what->outputs, what->n_outputs, dims);
  if (n_symbols) memcpy(dims, what->graph.symbols, n_symbols * sizeof *dims);
  row->copy = tensors;
  row->binding = *what;
  row->binding.inputs = tensors;
  row->binding.outputs = tensors + what->n_inputs;
  row->binding.graph.symbols = dims;
  return 1;
}

/* ---- binding ---- */

/* One arena for all calls, which run one after the other. A larger one comes instead of it: what was bound to the
 * old one goes. */
static aot_status_t need_arena(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_graph_at_t *graph) {
  aot_exe_plan_t plan = {.struct_size = sizeof plan};
  AOT_TRY(b->exe->plan(b->exe_self, ctx, graph, &plan));
  if (plan.arena.nbytes <= b->arena.nbytes) return AOT_OK;
  AOT_TRY(forget_all(b, ctx));
  return b->device->alloc(b->device, ctx, plan.arena.nbytes, &b->arena);
}

static aot_status_t bind_row(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_binding_t *what, aoth_bound_call_t *row) {
  const aot_binding_t *binding = &row->binding;
  if (!keep_binding(row, what))
    return aoth_report_error(ctx, AOT_E_EXHAUSTED, "run.memory", "no memory to bind a call");
  row->binding.arena = b->arena;
  if (b->copies) {
    AOT_TRY(aoth_staging_init(&row->staging, ctx, b->device, &row->binding));
    binding = &row->staging.binding;
  }
  b->n_bound++;
  return b->exe->bind(b->exe_self, ctx, binding, &row->call);
}

static aot_status_t bind(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_binding_t *what, aoth_bound_call_t **out) {
  aoth_bound_call_t *oldest = &b->rows[0];
  for (int k = 0; k < AOTH_MAX_BOUND; k++) {
    aoth_bound_call_t *row = &b->rows[k];
    *out = row;
    if (row->call && same_binding(&row->binding, what)) return AOT_OK;
    if (row->last_used < oldest->last_used) oldest = row;
  }
  AOT_TRY(need_arena(b, ctx, &what->graph));
  *out = oldest;
  AOT_TRY(forget(b, ctx, oldest));
  const aot_status_t status = bind_row(b, ctx, what, oldest);
  if (status != AOT_OK) {
    oldest->call = NULL;
    forget(b, ctx, oldest);
  }
  return status;
}

/* ---- running ---- */

typedef struct run {
  aoth_bound_calls_t *b;
  aot_ctx_t *ctx;
  aoth_bound_call_t *row;
  int64_t *symbols;
  const aot_output_sink_t *open;
} run_t;

static aot_status_t submit(const run_t *r, const aot_point_t *wait, aot_point_t done) {
  const aot_submission_t submission = {
      .struct_size = sizeof submission,
      .queue = r->b->queue,
      .waits = wait,
      .n_waits = wait != NULL,
      .signals = &done,
      .n_signals = 1,
      .symbols = r->symbols,
      .n_symbols = r->row->binding.graph.n_symbols,
      .open = r->open,
  };
  return r->b->exe->submit(r->b->exe_self, r->ctx, r->row->call, &submission);
}

/* Inputs to the device, the call behind them, outputs back behind the call; open ones are known when it is done. */
static aot_status_t put_staged(const run_t *r, aot_point_t written, aot_point_t done) {
  aoth_bound_calls_t *b = r->b;
  const aot_device_t *d = b->device;
  AOT_TRY(aoth_staging_write(&r->row->staging, r->ctx, d, b->copies, &b->n_copied));
  AOT_TRY(d->signal(d, r->ctx, b->copies, written));
  AOT_TRY(submit(r, &written, done));
  if (r->open) AOT_TRY(d->wait_host(d, r->ctx, done, UINT64_MAX));
  AOT_TRY(d->wait(d, r->ctx, b->copies, done));
  return aoth_staging_read(&r->row->staging, r->ctx, d, b->copies, &b->n_copied);
}

/* Whatever fails on the way, both queues have passed all of it afterwards: nothing of the host's is used any more. */
static aot_status_t run_staged(run_t *r) {
  aoth_bound_calls_t *b = r->b;
  const aot_device_t *d = b->device;
  aoth_staged_sink_t staged = {&r->row->staging, r->ctx, d, r->open};
  const aot_output_sink_t open = aoth_staged_sink(&staged);
  if (r->open) r->open = &open;
  aot_timeline_t *t = b->timeline;
  const aot_point_t written = {t, b->height + 1}, done = {t, b->height + 2}, stopped = {t, b->height + 3},
                    read = {t, b->height + 4};
  b->height = read.value;
  const aot_status_t status = put_staged(r, written, done);
  if (status != AOT_OK) {
    AOT_TRY(d->signal(d, r->ctx, b->queue, stopped));
    AOT_TRY(d->wait(d, r->ctx, b->copies, stopped));
  }
  AOT_TRY(d->signal(d, r->ctx, b->copies, read));
  return first_of(status, d->wait_host(d, r->ctx, read, UINT64_MAX));
}

static aot_status_t run_in_place(const run_t *r) {
  aoth_bound_calls_t *b = r->b;
  const aot_point_t done = {b->timeline, ++b->height};
  AOT_TRY(submit(r, NULL, done));
  return b->device->wait_host(b->device, r->ctx, done, UINT64_MAX);
}

aot_status_t aoth_bound_calls_run(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_binding_t *what, int64_t *symbols,
                                  const aot_output_sink_t *open) {
  run_t r = {.b = b, .ctx = ctx, .symbols = symbols, .open = open};
  AOT_TRY(bind(b, ctx, what, &r.row));
  r.row->last_used = ++b->clock;
  return b->copies ? run_staged(&r) : run_in_place(&r);
}
