#include <device/bound_calls.h>

#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/program.h>
#include <stdlib.h>
#include <string.h>

void aoth_bound_calls_init(aoth_bound_calls_t *b, aoth_queue_t *queue, const aot_exe_t *exe,
                           const aot_exe_t *exe_self) {
  *b = (aoth_bound_calls_t){.queue = queue, .exe = exe, .exe_self = exe_self};
}

static void forget(aoth_bound_calls_t *b, aoth_bound_call_t *row) {
  AOT_ASSERT(!row->call || row->copy);
  if (row->call) b->exe->unbind(b->exe_self, row->call);
  free(row->copy);
  *row = (aoth_bound_call_t){0};
}

/* Nothing of them is under way: a failure of what was is the answer, when they are gone. */
static aot_status_t forget_all(aoth_bound_calls_t *b) {
  const aot_status_t status = aoth_queue_idle(b->queue);
  for (int k = 0; k < AOTH_MAX_BOUND; k++) forget(b, &b->rows[k]);
  const aot_status_t freed = b->arena.address ? aoth_queue_free(b->queue, b->arena) : AOT_OK;
  b->arena = (aot_buffer_t){0};
  return status != AOT_OK ? status : freed;
}

aot_status_t aoth_bound_calls_deinit(aoth_bound_calls_t *b) {
  const aot_status_t status = b->queue ? forget_all(b) : AOT_OK;
  *b = (aoth_bound_calls_t){.queue = b->queue};
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

static int same_binding(aoth_bound_calls_t *calls, const aot_binding_t *a, const aot_binding_t *b) {
  calls->n_compared += b->n_inputs + b->n_outputs;
  return a->graph.kind == b->graph.kind && a->graph.number == b->graph.number && a->n_inputs == b->n_inputs &&
         a->n_outputs == b->n_outputs && a->graph.n_symbols == b->graph.n_symbols &&
         (a->graph.n_symbols == 0 ||
          memcmp(a->graph.symbols, b->graph.symbols, (size_t)a->graph.n_symbols * sizeof(int64_t)) == 0) &&
         same_tensors(a->outputs, b->outputs, a->n_outputs) && /* seldom two calls' */
         same_tensors(a->inputs, b->inputs, a->n_inputs);
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
  AOT_ASSERT(dims + n_symbols == (int64_t *)(void *)(tensors + n_tensors) + n_dims);
  if (n_symbols) memcpy(dims, what->graph.symbols, n_symbols * sizeof *dims);
  row->copy = tensors;
  row->binding = *what;
  row->binding.inputs = tensors;
  row->binding.outputs = tensors + what->n_inputs;
  row->binding.graph.symbols = dims;
  return 1;
}

/* ---- what is wrong with a binding ---- */

typedef struct range { /* memory of a port, or the arena */
  uint64_t begin, end;
  const char *what; /* "input" */
  uint64_t port;
  int is_written;
} range_t;

static int by_place(const void *a, const void *b) {
  const range_t *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return x->is_written - y->is_written;
}

/* Bytes that the geometry reaches. */
static uint64_t reach_of(const aot_tensor_t *t) {
  int64_t last = t->offset;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->sizes[d] == 0) return 0;
    last += (t->sizes[d] - 1) * t->strides[d];
  }
  return (uint64_t)(last + 1) * aot_dtype_size(t->dtype);
}

static aot_status_t add_ranges(const aoth_bound_calls_t *b, const aot_tensor_t *tensors, uint64_t n_tensors,
                               int are_outputs, range_t *ranges, uint64_t *n) {
  for (uint64_t i = 0; i < n_tensors; i++) {
    const aot_tensor_t *t = &tensors[i];
    const range_t r = {(uintptr_t)t->data, (uintptr_t)t->data + t->nbytes, are_outputs ? "output" : "input", i,
                       are_outputs};
    if (!r.begin || t->rank < 0) continue; /* none, or open */
    if (reach_of(t) > t->nbytes)
      return aoth_report_error(b->queue->ctx, AOT_E_INVALID, "run.binding",
                               "%s %llu of %s has %llu bytes of memory, and reaches %llu", r.what,
                               (unsigned long long)i, b->queue->doing, (unsigned long long)t->nbytes,
                               (unsigned long long)reach_of(t));
    if (t->nbytes) ranges[(*n)++] = r;
  }
  return AOT_OK;
}

/* Step graphs: an output with exactly the range of an input is a donated input; merge both into one written range. */
static uint64_t join_homes(range_t *ranges, uint64_t n) {
  uint64_t n_left = 0;
  for (uint64_t i = 0; i < n; i++) {
    range_t *last = n_left ? &ranges[n_left - 1] : NULL;
    if (last && !last->is_written && ranges[i].is_written && last->begin == ranges[i].begin &&
        last->end == ranges[i].end)
      last->is_written = 1;
    else ranges[n_left++] = ranges[i];
  }
  return n_left;
}

/* What is written shares memory with nothing that may yet be read, or is written as well. */
static aot_status_t check_overlaps(const aoth_bound_calls_t *b, const range_t *ranges, uint64_t n) {
  const range_t *any = NULL, *written = NULL; /* of those so far, the ones that reach furthest */
  for (uint64_t i = 0; i < n; i++) {
    const range_t *r = &ranges[i], *other = r->is_written ? any : written;
    AOT_ASSERT(i == 0 || ranges[i - 1].begin <= r->begin);
    if (other && other->end > r->begin)
      return aoth_report_error(b->queue->ctx, AOT_E_INVALID, "run.binding",
                               "%s %llu of %s overlaps its %s %llu; one of them is written while the other is live",
                               r->what, (unsigned long long)r->port, b->queue->doing, other->what,
                               (unsigned long long)other->port);
    if (!any || r->end > any->end) any = r;
    if (r->is_written && (!written || r->end > written->end)) written = r;
  }
  return AOT_OK;
}

static aot_status_t check_binding(const aoth_bound_calls_t *b, const aot_binding_t *what) {
  range_t *ranges = malloc((size_t)(what->n_inputs + what->n_outputs + 1) * sizeof *ranges);
  uint64_t n = 0;
  if (!ranges) return aoth_report_error(b->queue->ctx, AOT_E_EXHAUSTED, "run.memory", "no memory to look at a binding");
  aot_status_t status = add_ranges(b, what->inputs, what->n_inputs, 0, ranges, &n);
  if (status == AOT_OK) status = add_ranges(b, what->outputs, what->n_outputs, 1, ranges, &n);
  if (b->arena.nbytes) ranges[n++] = (range_t){b->arena.address, b->arena.address + b->arena.nbytes, "arena", 0, 1};
  qsort(ranges, (size_t)n, sizeof *ranges, by_place);
  if (what->graph.kind == AOT_GRAPH_STEP) n = join_homes(ranges, n);
  if (status == AOT_OK) status = check_overlaps(b, ranges, n);
  free(ranges);
  return status;
}

/* ---- binding ---- */

/* One arena for all calls, which run one after the other. A larger one comes instead of it: what was bound to the
 * old one goes. */
static aot_status_t need_arena(aoth_bound_calls_t *b, const aot_graph_at_t *graph) {
  aot_exe_plan_t plan = {.struct_size = sizeof plan};
  AOT_TRY(b->exe->plan(b->exe_self, b->queue->ctx, graph, &plan));
  if (plan.alignment > b->queue->alignment)
    return aoth_report_error(
        b->queue->ctx, AOT_E_UNIMPLEMENTED, "run.alignment",
        "the arena is to begin at a multiple of %llu bytes; the device's buffers begin at multiples of %u",
        (unsigned long long)plan.alignment, b->queue->alignment);
  if (plan.arena.nbytes <= b->arena.nbytes) return AOT_OK;
  AOT_TRY(forget_all(b));
  AOT_ASSERT(!b->arena.address);
  const aot_status_t status = aoth_queue_alloc(b->queue, plan.arena.nbytes, &b->arena);
  if (status != AOT_OK)
    aoth_sink_report(b->queue->ctx->sink, AOT_SEVERITY_NOTE, NULL, "run.memory", "the arena of %s takes %llu bytes",
                     b->queue->doing, (unsigned long long)plan.arena.nbytes);
  return status;
}

static aot_status_t bind_row(aoth_bound_calls_t *b, const aot_binding_t *what, aoth_bound_call_t *row) {
  aot_ctx_t *ctx = b->queue->ctx;
  AOT_ASSERT(!row->call && !row->copy);
  if (!keep_binding(row, what))
    return aoth_report_error(ctx, AOT_E_EXHAUSTED, "run.memory", "no memory to bind a call");
  row->binding.arena = b->arena;
  row->number = ++b->queue->n_bound;
  b->n_bound++;
  return b->exe->bind(b->exe_self, ctx, &row->binding, &row->call);
}

/* NULL: it has made room. With guards a number is not believed. */
static aoth_bound_call_t *find_known(aoth_bound_calls_t *b, uint64_t number) {
  for (int k = 0; k < AOTH_MAX_BOUND && number && !b->queue->guards; k++)
    if (b->rows[k].call && b->rows[k].number == number) return &b->rows[k];
  return NULL;
}

static aot_status_t bind(aoth_bound_calls_t *b, const aot_binding_t *what, uint64_t known, aoth_bound_call_t **out) {
  if ((*out = find_known(b, known))) return AOT_OK;
  aoth_bound_call_t *oldest = &b->rows[0];
  for (int k = 0; k < AOTH_MAX_BOUND; k++) {
    aoth_bound_call_t *row = &b->rows[k];
    *out = row;
    if (row->call && same_binding(b, &row->binding, what)) return AOT_OK;
    if (row->last_used < oldest->last_used) oldest = row;
  }
  AOT_TRY(need_arena(b, &what->graph));
  AOT_TRY(check_binding(b, what));
  *out = oldest;
  if (oldest->call) AOT_TRY(aoth_queue_idle(b->queue));
  forget(b, oldest);
  const aot_status_t status = bind_row(b, what, oldest);
  if (status == AOT_OK) return AOT_OK;
  oldest->call = NULL;
  forget(b, oldest);
  return status;
}

/* ---- running ---- */

static const char *graph_name(int32_t kind) {
  switch (kind) {
    case AOT_GRAPH_FORWARD: return "the forward graph";
    case AOT_GRAPH_BACKWARD: return "the backward graph";
    case AOT_GRAPH_UPDATE: return "the optimizer's graph";
    case AOT_GRAPH_STEP: return "the step graph";
    default: return "a graph";
  }
}

/* Whatever fails on the way, the queue has passed all of it afterwards: nothing of the host's is used any more. */
aot_status_t aoth_bound_calls_run(aoth_bound_calls_t *b, const aot_binding_t *what, int64_t *symbols,
                                  const aot_output_sink_t *open, uint64_t *known) {
  aoth_queue_t *q = b->queue;
  aoth_bound_call_t *row;
  if (!b->exe) return aoth_report_error(q->ctx, AOT_E_PRECONDITION, "run.gone", "the executable of the call is gone");
  q->doing = graph_name(what->graph.kind);
  AOT_TRY(bind(b, what, known ? *known : 0, &row));
  AOT_ASSERT(row->number > 0 && row->number <= q->n_bound && row->last_used <= b->clock);
  if (known) *known = row->number;
  row->last_used = ++b->clock;
  aot_point_t done;
  AOT_TRY(aoth_queue_next(q, &done));
  const aot_submission_t submission = {
      .struct_size = sizeof submission,
      .queue = q->queue,
      .signals = &done,
      .n_signals = 1,
      .symbols = symbols,
      .n_symbols = row->binding.graph.n_symbols,
      .open = open,
  };
  if (q->guards) aoth_guards_close(q->guards, &row->binding);
  aot_status_t status = b->exe->submit(b->exe_self, q->ctx, row->call, &submission);
  if (status != AOT_OK) aoth_queue_left_out(q, status);
  else aoth_queue_passed(q);
  const int is_over = status == AOT_OK && (open || q->device->value(q->device, q->timeline) >= done.value);
  if (is_over) status = aoth_queue_wait(q, done.value);
  const aot_status_t guarded =
      q->guards ? aoth_guards_check(q->guards, q->ctx, &row->binding, q->doing, status == AOT_OK && is_over) : AOT_OK;
  return status != AOT_OK ? status : guarded;
}
