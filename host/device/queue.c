#include <device/queue.h>

#include <aot/assert.h>
#include <device/host_device.h>
#include <ir/program.h>
#include <stdlib.h>
#include <string.h>

static aot_status_t init(aoth_queue_t *q, aot_ctx_t *ctx, const aot_device_t *device, int32_t kind) {
  aot_device_info_t info = {.struct_size = sizeof info};
  *q = (aoth_queue_t){.device = device, .ctx = ctx};
  AOT_TRY(device->info(device, &info));
  q->is_shared = (info.flags & AOT_DEVICE_HOST_VISIBLE) != 0;
  q->alignment = info.alignment;
  q->patience_ns = device == aoth_host_device() ? UINT64_C(60) * 1000000000u : UINT64_MAX; /* it is done at once */
  AOT_TRY(device->queue_create(device, ctx, kind, &q->queue));
  return device->timeline_create(device, ctx, &q->timeline);
}

aot_status_t aoth_queue_init(aoth_queue_t *q, aot_ctx_t *ctx, const aot_device_t *device) {
  return init(q, ctx, device, AOT_QUEUE_COMPUTE);
}

aot_status_t aoth_queue_validate(aoth_queue_t *q) {
  q->guards = aoth_guards_create();
  return q->guards ? AOT_OK : aoth_report_error(q->ctx, AOT_E_EXHAUSTED, "device.memory", "no memory for guards");
}

static aot_status_t deinit(const aoth_queue_t *q) {
  const aot_device_t *d = q->device;
  const aot_status_t queue = q->queue ? d->queue_destroy(d, q->ctx, q->queue) : AOT_OK;
  const aot_status_t timeline = q->timeline ? d->timeline_destroy(d, q->ctx, q->timeline) : AOT_OK;
  return queue != AOT_OK ? queue : timeline;
}

aot_status_t aoth_queue_deinit(aoth_queue_t *q) {
  const aot_status_t feed = q->feed ? deinit(q->feed) : AOT_OK, status = deinit(q);
  free(q->feed);
  aoth_guards_destroy(q->guards);
  *q = (aoth_queue_t){0};
  return status != AOT_OK ? status : feed;
}

/* ---- calls ---- */

typedef struct outer_call {
  aoth_queue_t *q;
  aoth_queue_fn fn;
  void *arg;
} outer_call_t;

/* An error diagnostic and status OK contradict each other, but for errors of queued work, which the wait for it
 * answers: while work is queued, errors are set aside until then (do_wait). */
static aot_status_t do_outer(void *arg) {
  const outer_call_t *c = arg;
  aoth_queue_t *q = c->q;
  q->n_contradictions = 0;
  const aot_status_t status = c->fn(c->arg);
  AOT_ASSERT(q->ctx->n_diags >= q->n_contradictions);
  const uint32_t n_new = q->ctx->n_diags - q->n_contradictions;
  if (status != AOT_OK) {
    q->n_unjudged = 0;
  } else if (n_new && (q->done < q->height || q->has_more)) {
    q->ctx->n_diags = q->n_contradictions;
    if (!q->first) q->n_unjudged += n_new; /* of several devices the call's own queue waits for all */
    q->judged_at = aoth_queue_end(q);
  }
  return status;
}

aot_status_t aoth_queue_call(aoth_queue_t *q, aoth_queue_fn fn, void *arg) {
  outer_call_t c = {q, fn, arg};
  const int is_outside = q->call && !q->is_inside;
  if (is_outside) q->is_inside = 1;
  const aot_status_t status = is_outside ? q->call(q->self, do_outer, &c) : fn(arg);
  if (is_outside) q->is_inside = 0;
  if (status == AOT_E_DATA_LOSS) q->is_lost = 1;
  return status;
}

/* ---- what is queried of the device ---- */

typedef struct task {
  aoth_queue_t *q;
  aoth_queue_fn move;
  uint64_t nbytes;
  aot_buffer_t buffer;
  uint64_t from;
  const void *source;
  void *target;
} task_t;

static aot_status_t do_alloc(void *arg) {
  task_t *t = arg;
  aoth_guards_t *guards = t->q->guards;
  if (guards && aoth_guards_alloc(guards, t->nbytes, &t->buffer)) return AOT_OK;
  if (guards)
    return aoth_report_error(t->q->ctx, AOT_E_EXHAUSTED, "device.memory", "no memory for %llu bytes between guards",
                             (unsigned long long)t->nbytes);
  return t->q->device->alloc(t->q->device, t->q->ctx, t->nbytes, &t->buffer);
}

static aot_status_t do_free(void *arg) {
  const task_t *t = arg;
  return t->q->device->free(t->q->device, t->q->ctx, t->buffer);
}

static aot_status_t do_host_alloc(void *arg) {
  task_t *t = arg;
  return t->q->device->host_alloc(t->q->device, t->q->ctx, t->nbytes, &t->target);
}

static aot_status_t do_host_free(void *arg) {
  const task_t *t = arg;
  return t->q->device->host_free(t->q->device, t->q->ctx, t->target, t->nbytes);
}

static aot_status_t do_write(void *arg) {
  const task_t *t = arg;
  return t->q->device->write(t->q->device, t->q->ctx, t->q->queue, t->buffer, t->source);
}

static aot_status_t do_read(void *arg) {
  const task_t *t = arg;
  return t->q->device->read(t->q->device, t->q->ctx, t->q->queue, t->target, t->buffer);
}

static aot_status_t do_copy(void *arg) {
  const task_t *t = arg;
  return t->q->device->copy(t->q->device, t->q->ctx, t->q->queue, t->buffer, t->from);
}

static aot_status_t do_zero(void *arg) {
  const task_t *t = arg;
  return t->q->device->fill(t->q->device, t->q->ctx, t->q->queue, t->buffer, 0);
}

aot_status_t aoth_queue_alloc(aoth_queue_t *q, uint64_t nbytes, aot_buffer_t *out) {
  task_t t = {.q = q, .nbytes = nbytes};
  AOT_TRY(aoth_queue_call(q, do_alloc, &t));
  *out = t.buffer;
  return AOT_OK;
}

aot_status_t aoth_queue_free(aoth_queue_t *q, aot_buffer_t whole) {
  if (q->guards) {
    aoth_guards_free(q->guards, whole);
    return AOT_OK;
  }
  task_t t = {.q = q, .buffer = whole};
  return aoth_queue_call(q, do_free, &t);
}

aot_status_t aoth_queue_host_alloc(aoth_queue_t *q, uint64_t nbytes, void **out) {
  task_t t = {.q = q, .nbytes = nbytes};
  AOT_TRY(aoth_queue_call(q, do_host_alloc, &t));
  *out = t.target;
  return AOT_OK;
}

aot_status_t aoth_queue_host_free(aoth_queue_t *q, void *memory, uint64_t nbytes) {
  task_t t = {.q = q, .target = memory, .nbytes = nbytes};
  return aoth_queue_call(q, do_host_free, &t);
}

static aot_point_t point_at(const aoth_queue_t *q, uint64_t height) { return (aot_point_t){q->timeline, height}; }

/* The first item after a point waits for it, which costs nothing on the same queue: so a failure before it is one
 * of all after it. */
static aot_status_t begin(aoth_queue_t *q) {
  if (q->is_lost)
    return aoth_report_error(q->ctx, AOT_E_DATA_LOSS, "device.lost", "device lost; its memory contents are gone");
  if (q->has_more) return AOT_OK;
  AOT_ASSERT(q->done <= q->height);
  if (q->host_driven) AOT_TRY(q->run_host_side(q->lanes));
  q->has_more = 1;
  if (q->done < q->height) return q->device->wait(q->device, q->ctx, q->queue, point_at(q, q->height));
  q->n_errors = aoth_sink_count(q->ctx->sink, AOT_SEVERITY_ERROR);
  return AOT_OK;
}

static aot_status_t do_move(void *arg) {
  task_t *t = arg;
  AOT_TRY(begin(t->q));
  return t->move(t);
}

static aot_status_t move(aoth_queue_t *q, aoth_queue_fn fn, task_t t) {
  t.q = q;
  t.move = fn;
  return aoth_queue_call(q, do_move, &t);
}

static void count(aoth_queue_t *q, uint64_t nbytes) { (q->first ? q->first : q)->n_copied += nbytes; }
static int is_at_rest(const aoth_queue_t *q) { return q->done == q->height && !q->has_more; }
static void *shared(uint64_t address) { return (void *)(uintptr_t)address; }

aot_status_t aoth_queue_write(aoth_queue_t *q, aot_buffer_t to, const void *from) {
  if (!q->is_shared) count(q, to.nbytes);
  if (!q->is_shared || !is_at_rest(q)) return move(q, do_write, (task_t){.buffer = to, .source = from});
  if (to.nbytes) memcpy(shared(to.address), from, (size_t)to.nbytes);
  return AOT_OK;
}

aot_status_t aoth_queue_read(aoth_queue_t *q, void *to, aot_buffer_t from) {
  if (!q->is_shared) count(q, from.nbytes);
  if (!q->is_shared || !is_at_rest(q)) return move(q, do_read, (task_t){.buffer = from, .target = to});
  if (from.nbytes) memcpy(to, shared(from.address), (size_t)from.nbytes);
  return AOT_OK;
}

aot_status_t aoth_queue_copy(aoth_queue_t *q, aot_buffer_t to, uint64_t from) {
  if (!q->is_shared || !is_at_rest(q)) return move(q, do_copy, (task_t){.buffer = to, .from = from});
  if (to.nbytes) memcpy(shared(to.address), shared(from), (size_t)to.nbytes);
  return AOT_OK;
}

aot_status_t aoth_queue_zero(aoth_queue_t *q, aot_buffer_t to) {
  if (!q->is_shared || !is_at_rest(q)) return move(q, do_zero, (task_t){.buffer = to});
  if (to.nbytes) memset(shared(to.address), 0, (size_t)to.nbytes);
  return AOT_OK;
}

/* ---- points ---- */

aot_status_t aoth_queue_next(aoth_queue_t *q, aot_point_t *out) {
  *out = point_at(q, q->height + 1);
  return begin(q);
}

void aoth_queue_passed(aoth_queue_t *q) {
  q->height++;
  q->has_more = 0;
}

static aot_status_t do_mark(void *arg) {
  const task_t *t = arg;
  aoth_queue_t *q = t->q;
  AOT_TRY(q->device->signal(q->device, q->ctx, q->queue, point_at(q, q->height + 1)));
  aoth_queue_passed(q);
  return AOT_OK;
}

aot_status_t aoth_queue_mark(aoth_queue_t *q) {
  task_t t = {.q = q};
  return q->has_more ? aoth_queue_call(q, do_mark, &t) : AOT_OK;
}

/* ---- waiting ---- */

typedef struct waiter {
  aoth_queue_t *q;
  uint64_t height;
} waiter_t;

/* The point, once the host has done what queues may wait for. */
static aot_status_t reach(aoth_queue_t *q, uint64_t height) {
  const aot_status_t behind = q->run_host_side ? q->run_host_side(q->lanes) : AOT_OK;
  const aot_status_t status = q->device->wait_host(q->device, q->ctx, point_at(q, height), q->patience_ns);
  return status != AOT_OK ? status : behind;
}

/* Recovers from a failure: skips all queued work up to a new last point, then drains this queue and its feed. */
static void go_on(aoth_queue_t *q, aot_status_t status) {
  const aot_device_t *d = q->device;
  const aot_point_t last = point_at(q, q->height + 1);
  const int is_lost = status == AOT_E_DATA_LOSS && /* or another device of the call's is */
                      (!q->run_host_side || d->wait_host(d, q->ctx, point_at(q, q->done), 0) == status);
  if (!is_lost && d->signal(d, q->ctx, q->queue, last) == AOT_OK) {
    reach(q, last.value);
    if (q->feed) aoth_queue_idle(q->feed);
  }
  q->done = q->height = last.value;
  q->has_more = 0;
}

void aoth_queue_left_out(aoth_queue_t *q, aot_status_t status) {
  q->height++; /* it may have raised its point all the same */
  go_on(q, status);
}

/* Work that fails reports it, which may have been within an earlier call. */
static aot_status_t do_wait(void *arg) {
  const waiter_t *w = arg;
  aoth_queue_t *q = w->q;
  AOT_ASSERT(q->done < w->height && w->height <= q->height);
  const aot_status_t status = reach(q, w->height);
  if (status == AOT_OK) {
    q->done = w->height;
    if (q->n_unjudged && w->height >= q->judged_at) {
      q->ctx->n_diags += q->n_unjudged;
      q->n_contradictions += q->n_unjudged;
      q->n_unjudged = 0;
    }
    return AOT_OK;
  }
  q->n_unjudged = 0;
  if (aoth_sink_count(q->ctx->sink, AOT_SEVERITY_ERROR) > q->n_errors) q->ctx->n_diags++;
  if (q->doing) aoth_sink_report(q->ctx->sink, AOT_SEVERITY_NOTE, NULL, "run.graph", "while %s ran", q->doing);
  go_on(q, status);
  return status;
}

uint64_t aoth_queue_end(const aoth_queue_t *q) { return q->height + (q->has_more != 0); }

aot_status_t aoth_queue_wait(aoth_queue_t *q, uint64_t height) {
  waiter_t w = {q, height};
  if (q->is_lost) return AOT_E_DATA_LOSS;
  AOT_ASSERT(height <= aoth_queue_end(q));
  if (height > q->height) AOT_TRY(aoth_queue_mark(q));
  return q->done >= height ? AOT_OK : aoth_queue_call(q, do_wait, &w);
}

aot_status_t aoth_queue_idle(aoth_queue_t *q) { return q->is_lost ? AOT_OK : aoth_queue_wait(q, aoth_queue_end(q)); }

/* ---- ahead of the queue ---- */

/* Of several devices' work the host does some when it waits: it cannot wait for what is ahead alone. */
int aoth_queue_is_busy(const aoth_queue_t *q) { return !q->run_host_side && q->done < q->height; }

typedef struct ahead_task {
  aoth_queue_t *q;
  aot_buffer_t to;
  const void *from;
  aoth_ahead_t *a;
} ahead_task_t;

static aot_status_t have_feed(aoth_queue_t *q) {
  if (q->feed) return AOT_OK;
  q->feed = calloc(1, sizeof *q->feed);
  if (!q->feed) return aoth_report_error(q->ctx, AOT_E_EXHAUSTED, "device.memory", "no memory for a queue");
  return init(q->feed, q->ctx, q->device, AOT_QUEUE_COPY);
}

/*     feed     wait(taken by the last call)  write between  signal(written)
 *     queue    .. the last call ..                                             wait(written)  copy from between */
static aot_status_t do_write_ahead(void *arg) {
  const ahead_task_t *t = arg;
  aoth_queue_t *q = t->q;
  const aot_device_t *d = q->device;
  AOT_ASSERT(t->to.nbytes <= t->a->between.nbytes);
  AOT_TRY(have_feed(q));
  aoth_queue_t *f = q->feed;
  AOT_TRY(begin(f));
  if (t->a->taken > q->done) AOT_TRY(d->wait(d, q->ctx, f->queue, point_at(q, t->a->taken)));
  AOT_TRY(d->write(d, q->ctx, f->queue, (aot_buffer_t){t->a->between.address, t->to.nbytes}, t->from));
  AOT_TRY(aoth_queue_mark(f));
  t->a->written = f->height;
  AOT_TRY(begin(q));
  AOT_TRY(d->wait(d, q->ctx, q->queue, point_at(f, t->a->written)));
  AOT_TRY(d->copy(d, q->ctx, q->queue, t->to, t->a->between.address));
  t->a->taken = aoth_queue_end(q);
  return AOT_OK;
}

aot_status_t aoth_queue_write_ahead(aoth_queue_t *q, aot_buffer_t to, const void *from, aoth_ahead_t *a) {
  ahead_task_t t = {q, to, from, a};
  count(q, to.nbytes);
  return aoth_queue_call(q, do_write_ahead, &t);
}

static aot_status_t do_wait_ahead(void *arg) {
  const waiter_t *w = arg;
  return aoth_queue_wait(w->q->feed, w->height);
}

aot_status_t aoth_queue_wait_ahead(aoth_queue_t *q, const aoth_ahead_t *a) {
  waiter_t w = {q, a->written};
  if (q->is_lost) return AOT_E_DATA_LOSS;
  return q->feed && a->written > q->feed->done ? aoth_queue_call(q, do_wait_ahead, &w) : AOT_OK;
}
