/* Memory of a device that the host cannot touch (the unit strict): what is taken there and back, and when; calls on it,
 * and what failures leave. The executable is the test's own: it adds 1 to every byte of its input, into its output. */
#include "session_world.h"
#include <device/input_staging.h>

#include <device/host_device.h>
#include <device/mirrored_buffer.h>
#include <sandbox/call.h>
#include <compiler/devices.h>
#include <sandbox/session.h>
#include <trainer/loss_ring.h>

typedef struct adder { /* an executable */
  aot_exe_t table;
  const aot_device_t *device;
  int n_bound, n_works, n_failed, submit_fails, work_fails, forgets_to_signal;
  int64_t n_past, arena_at; /* writes that far past its output; at that byte of the arena, if not 0 */
  uint64_t n_left;          /* bytes at the end of its output that it leaves as they are */
  int writes_input;
  uint64_t arena_nbytes, alignment;
} adder_t;

struct aot_bound {
  adder_t *adder;
  aot_tensor_t in, out;
  aot_buffer_t arena;
  aot_ctx_t *ctx; /* of its last submission */
  int64_t *symbols;
  const aot_output_sink_t *open;
};

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  const adder_t *a = e->head.self;
  (void)ctx, (void)graph;
  out->arena.nbytes = a->arena_nbytes;
  out->alignment = a->alignment;
  return AOT_OK;
}

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *b, aot_bound_t **out) {
  adder_t *a = e->head.self;
  *out = malloc(sizeof **out);
  **out = (aot_bound_t){.adder = a, .in = b->inputs[0], .out = b->outputs[0], .arena = b->arena, .ctx = ctx};
  a->n_bound++;
  return AOT_OK;
}

static void unbind(const aot_exe_t *e, aot_bound_t *call) {
  adder_t *a = e->head.self;
  a->n_bound--;
  free(call);
}

static aot_status_t work(void *self, aot_status_t before) {
  const aot_bound_t *b = self;
  b->adder->n_works++;
  if (before != AOT_OK) return before;
  b->adder->n_failed += b->adder->work_fails;
  if (b->adder->work_fails) return aoth_report_error(b->ctx, AOT_E_RANGE, "test.work", "the work fails");
  aot_tensor_t out = b->out;
  if (b->open) AOT_TRY(b->open->allocate(b->open, 0, b->symbols, 1, &out));
  for (uint64_t i = 0; i + b->adder->n_left < b->in.nbytes; i++)
    ((char *)out.data)[i] = (char)(((const char *)b->in.data)[i] + 1);
  for (int64_t i = 0; i < b->adder->n_past; i++) ((char *)out.data)[(int64_t)out.nbytes + i] = 1;
  if (b->adder->arena_at) ((char *)(uintptr_t)b->arena.address)[b->adder->arena_at] = 1;
  if (b->adder->writes_input) *(char *)b->in.data = 1;
  if (b->symbols) b->symbols[0] = 7;
  return AOT_OK;
}

static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *call, const aot_submission_t *s) {
  adder_t *a = e->head.self;
  const aot_device_t *d = a->device;
  const aot_ext_host_work_t *host_work = aot_ext(&d->head, AOT_EXT_HOST_WORK);
  call->ctx = ctx;
  call->symbols = s->symbols;
  call->open = s->open;
  for (uint64_t i = 0; i < s->n_waits; i++) AOT_TRY(d->wait(d, ctx, s->queue, s->waits[i]));
  AOT_TRY(host_work->enqueue(host_work, ctx, s->queue, work, call));
  if (a->submit_fails) return aoth_report_error(ctx, AOT_E_UNAVAILABLE, "test.submit", "the submission fails half-way");
  for (uint64_t i = 0; i < s->n_signals && !a->forgets_to_signal; i++)
    AOT_TRY(d->signal(d, ctx, s->queue, s->signals[i]));
  return AOT_OK;
}

/* ---- a session's device, and calls on it ---- */

typedef struct calls {
  aoth_queue_t *queue;
  adder_t adder;
  aoth_bound_calls_t bound;
} calls_t;

static void use_adder(calls_t *c, fixture_t *w) {
  c->adder = (adder_t){
      .table =
          {
              .head = {.struct_size = sizeof c->adder.table, .self = &c->adder},
              .plan = plan,
              .bind = bind,
              .submit = submit,
              .unbind = unbind,
          },
      .device = w->session->device,
      .arena_nbytes = 8,
  };
  aoth_bound_calls_init(&c->bound, c->queue, &c->adder.table, &c->adder.table);
}

static void begin(calls_t *c, fixture_t *w) {
  aoth_stage_t device = {.use = "strict", .name = "strict"};
  *c = (calls_t){.queue = aoth_session_queue(w->session)};
  assert_int_equal(aoth_stage_of_unit(w->session, "strict", "device/1", NULL, &device), AOT_OK);
  assert_int_equal(aoth_session_take_device(w->session, &device), AOT_OK);
  assert_int_equal(aoth_session_make_queue(w->session), AOT_OK);
  use_adder(c, w);
}

static void end(calls_t *c) {
  assert_int_equal(aoth_bound_calls_deinit(&c->bound), AOT_OK);
  assert_int_equal(c->adder.n_bound, 0);
  assert_int_equal(aoth_queue_deinit(c->queue), AOT_OK); /* it has nothing left on it */
}

static aot_tensor_t bytes(const aoth_mirrored_buffer_t *r, uint64_t n) {
  return (aot_tensor_t){.data = (void *)(uintptr_t)r->buffer.address, .nbytes = n, .dtype = AOT_U8};
}

/* What a step does around a call. */
static aot_status_t run(calls_t *c, aoth_mirrored_buffer_t *in, aoth_mirrored_buffer_t *out) {
  AOT_TRY(aoth_resident_need(in, c->queue));
  AOT_TRY(aoth_resident_own(out, c->queue));
  const int64_t size = (int64_t)out->nbytes, stride = 1;
  const aot_tensor_t input = bytes(in, in->nbytes);
  aot_tensor_t output = bytes(out, out->nbytes);
  output.rank = 1;
  output.sizes = &size;
  output.strides = &stride;
  const aot_binding_t what = {
      .struct_size = sizeof what,
      .graph = {.struct_size = sizeof what.graph, .kind = AOT_GRAPH_FORWARD},
      .inputs = &input,
      .n_inputs = 1,
      .outputs = &output,
      .n_outputs = 1,
  };
  AOT_TRY(aoth_bound_calls_run(&c->bound, &what, NULL, NULL, NULL));
  aoth_resident_written(out, c->queue);
  return AOT_OK;
}

static void holds(calls_t *c, aoth_mirrored_buffer_t *r, const char *text) {
  const void *host;
  assert_int_equal(aoth_resident_read(r, c->queue, &host), AOT_OK);
  assert_memory_equal(host, text, strlen(text));
}

static void put(calls_t *c, aoth_mirrored_buffer_t *r, const char *text) {
  void *host;
  assert_int_equal(aoth_resident_edit(r, c->queue, 0, &host), AOT_OK);
  memcpy(host, text, strlen(text));
}

/* What comes from a file is written once; what calls compute stays until it is requested, and is then read once. */
static void contents_move_when_they_are_wanted(void **state) {
  calls_t c;
  static const char file[] = "abc";
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_of(file, 3), b = aoth_resident_zeros(3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(run(&c, &a, &b), AOT_OK);
    assert_int_equal(run(&c, &b, &a), AOT_OK);
  }
  assert_int_equal(c.queue->n_copied, 3);
  assert_int_equal(c.bound.n_bound, 2);
  holds(&c, &a, "ghi");
  holds(&c, &a, "ghi");
  assert_int_equal(c.queue->n_copied, 6);
  put(&c, &a, "xyz");
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  holds(&c, &b, "yz{");
  assert_int_equal(c.queue->n_copied, 12);
  assert_string_equal(file, "abc");
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  end(&c);
}

static void zeros_are_made_where_they_are_wanted(void **state) {
  calls_t c;
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_zeros(2), b = aoth_resident_zeros(2);
  const void *host;
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  assert_int_equal(c.queue->n_copied, 0);
  holds(&c, &b, "\1\1");
  put(&c, &b, "pq");
  aoth_resident_clear(&b, c.queue);
  assert_int_equal(aoth_resident_read(&b, c.queue, &host), AOT_OK);
  assert_memory_equal(host, "\0\0", 2);
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  end(&c);
}

static void parts_are_copied_on_the_device(void **state) {
  calls_t c;
  aot_buffer_t block;
  begin(&c, *state);
  assert_int_equal(aoth_queue_alloc(c.queue, 128, &block), AOT_OK);
  aoth_mirrored_buffer_t a = aoth_resident_of("abcdef", 6), part = aoth_resident_part(c.queue, block, 64, 6);
  put(&c, &part, "------");
  assert_int_equal(aoth_resident_copy(&part, &a, 2, 3, c.queue), AOT_OK);
  holds(&c, &part, "--cde-");
  assert_int_equal(c.queue->n_copied, 6 + 6 + 6);
  assert_int_equal(aoth_resident_resize(&a, c.queue, 4), AOT_OK); /* keeps its buffer */
  assert_int_equal(a.buffer.nbytes, 6);
  assert_int_equal(aoth_resident_resize(&a, c.queue, 7), AOT_OK);
  assert_int_equal(a.buffer.nbytes, 7);
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&part, c.queue), AOT_OK);
  assert_int_equal(aoth_queue_free(c.queue, block), AOT_OK);
  end(&c);
}

/* Two submissions, one after the other, before the host waits: what it writes for the second must not be seen by
 * the first. */
static void the_host_waits_for_memory_in_use(void **state) {
  calls_t c;
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_zeros(3), b = aoth_resident_zeros(3), d = aoth_resident_zeros(3);
  put(&c, &a, "abc");
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  put(&c, &a, "klm");
  assert_int_equal(run(&c, &a, &d), AOT_OK);
  holds(&c, &b, "bcd");
  holds(&c, &d, "lmn");
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&d, c.queue), AOT_OK);
  end(&c);
}

/* What the host gives for a call is on the device while an earlier one cannot continue; and what it gives next does not
 * come before that call has taken it. */
static void inputs_are_fed_ahead(void **state) {
  calls_t c;
  aot_timeline_t *hold;
  begin(&c, *state);
  const aot_device_t *device = c.queue->device;
  aot_buffer_t together;
  aoth_input_staging_t fed = {.host = NULL};
  assert_int_equal(aoth_queue_alloc(c.queue, 8, &together), AOT_OK);
  assert_int_equal(aoth_fed_init(&fed, c.queue, together), AOT_OK);
  aoth_mirrored_buffer_t a = aoth_resident_part(c.queue, together, 0, 3),
                         e = aoth_resident_part(c.queue, together, 5, 3);
  aoth_mirrored_buffer_t b = aoth_resident_zeros(3), d = aoth_resident_zeros(3);
  aoth_fed_add(&fed, &a);
  aoth_fed_add(&fed, &e);
  put(&c, &e, "123");
  put(&c, &a, "abc");
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  assert_int_equal(run(&c, &b, &d), AOT_OK);
  assert_int_equal(device->timeline_create(device, c.queue->ctx, &hold), AOT_OK);
  assert_int_equal(device->wait(device, c.queue->ctx, c.queue->queue, (aot_point_t){hold, 1}), AOT_OK);
  assert_int_equal(run(&c, &b, &d), AOT_OK);
  put(&c, &a, "klm");
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  assert_int_equal(aoth_queue_wait_ahead(c.queue, &fed.ahead), AOT_OK);
  assert_true(c.adder.n_works < 3);
  assert_int_equal(device->value(device, c.queue->feed->timeline), 1);
  put(&c, &a, "xyz");
  assert_int_equal(run(&c, &a, &d), AOT_OK);
  for (int k = 0; k < 20; k++) device->value(device, c.queue->feed->timeline); /* each lets something continue */
  assert_int_equal(device->value(device, c.queue->feed->timeline), 1);
  assert_int_equal(device->signal_host(device, c.queue->ctx, (aot_point_t){hold, 1}), AOT_OK);
  holds(&c, &b, "lmn");
  holds(&c, &d, "yz{");
  assert_int_equal(c.queue->n_copied, 3 * 8 + 2 * 3);
  assert_int_equal(e.valid, AOTH_ON_HOST | AOTH_ON_DEVICE); /* it went with the other */
  assert_int_equal(run(&c, &e, &d), AOT_OK);
  holds(&c, &d, "234");
  assert_int_equal(run(&c, &a, &e), AOT_OK); /* now the device alone has it: the other goes by itself */
  put(&c, &a, "pqr");
  assert_int_equal(aoth_fed_is_whole(&fed), 0);
  assert_int_equal(run(&c, &a, &d), AOT_OK);
  holds(&c, &d, "qrs");
  holds(&c, &e, "yz{");
  c.adder.work_fails = 1;
  assert_int_equal(run(&c, &b, &d), AOT_OK);
  put(&c, &a, "abc");
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  assert_int_equal(aoth_queue_idle(c.queue), AOT_E_RANGE);
  c.adder.work_fails = 0;
  put(&c, &a, "efg"); /* nothing of the failure is left */
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  holds(&c, &b, "fgh");
  assert_int_equal(device->timeline_destroy(device, c.queue->ctx, hold), AOT_OK);
  assert_int_equal(aoth_fed_free(&fed, c.queue), AOT_OK);
  assert_null(a.host);
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&e, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&d, c.queue), AOT_OK);
  assert_int_equal(aoth_queue_free(c.queue, together), AOT_OK);
  end(&c);
}

/* Three submissions are put on the queue before the first runs; looking at the first's result lets the others be. */
static void losses_come_while_later_work_is_under_way(void **state) {
  calls_t c;
  aoth_loss_ring_t ring;
  double loss;
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_of("abc", 3), b = aoth_resident_zeros(3);
  aoth_tensor_t t = aoth_tensor_scalar(NULL, AOT_U8);
  t.resident = &b;
  assert_int_equal(aoth_loss_ring_init(&ring, c.queue, 3), AOT_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(run(&c, i & 1 ? &b : &a, i & 1 ? &a : &b), AOT_OK);
    t.resident = i & 1 ? &a : &b;
    assert_int_equal(aoth_loss_ring_put(&ring, &t), AOT_OK);
  }
  assert_true(c.adder.n_works < 3);
  assert_false(aoth_loss_ring_has(&ring, 1));
  assert_int_equal(aoth_loss_ring_take(&ring, &loss), AOT_OK);
  assert_true(loss == 'b');
  assert_int_equal(c.adder.n_works, 2); /* the point after its loss is the next submission's */
  assert_false(aoth_loss_ring_has(&ring, 2));
  assert_int_equal(aoth_loss_ring_take(&ring, &loss), AOT_OK);
  assert_true(loss == 'c');
  assert_int_equal(aoth_loss_ring_take(&ring, &loss), AOT_OK);
  assert_true(loss == 'd');
  c.adder.work_fails = 1;
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  t.resident = &b;
  assert_int_equal(aoth_loss_ring_put(&ring, &t), AOT_OK);
  assert_int_equal(aoth_loss_ring_take(&ring, &loss), AOT_E_RANGE);
  assert_int_equal(aoth_loss_ring_deinit(&ring), AOT_OK);
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  end(&c);
}

/* The host has an arena where the device's buffers begin, and nowhere else. */
static void an_arena_is_aligned_as_buffers_are(void **state) {
  calls_t c;
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_of("abc", 3), b = aoth_resident_zeros(3);
  c.adder.alignment = c.queue->alignment;
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  c.adder.alignment *= 2;
  assert_int_equal(run(&c, &b, &a), AOT_E_UNIMPLEMENTED);
  holds(&c, &b, "bcd");
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  end(&c);
}

/* A larger arena comes instead of the one that calls are bound to. */
static void arenas_grow(void **state) {
  calls_t c;
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_of("abc", 3), b = aoth_resident_zeros(3), d = aoth_resident_zeros(3);
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  c.adder.arena_nbytes = 100; /* is requested with the next binding */
  assert_int_equal(run(&c, &a, &d), AOT_OK);
  holds(&c, &d, "bcd");
  assert_int_equal(c.bound.arena.nbytes, 100);
  assert_int_equal(c.adder.n_bound, 1);
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&d, c.queue), AOT_OK);
  end(&c);
}

static void failures_leave_nothing_behind(void **state) {
  calls_t c;
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_of("abc", 3), b = aoth_resident_zeros(3);
  c.adder.work_fails = 1;
  assert_int_equal(run(&c, &a, &b), AOT_OK); /* it is on the queue .. */
  assert_int_equal(run(&c, &b, &a), AOT_OK); /* .. and so is what needs it, which is left out */
  assert_int_equal(aoth_queue_idle(c.queue), AOT_E_RANGE);
  assert_int_equal(c.adder.n_failed, 1);
  assert_int_equal(aoth_queue_idle(c.queue), AOT_OK);
  c.adder.work_fails = 0;
  c.adder.submit_fails = 1;
  assert_int_equal(run(&c, &a, &b), AOT_E_UNAVAILABLE);
  assert_int_equal(c.adder.n_works, 3); /* what was put there is over */
  c.adder.submit_fails = 0;
  put(&c, &a, "abc");
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  holds(&c, &b, "bcd");
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  end(&c);
}

/* ---- what is reported ---- */

static void says(const fixture_t *w, const char *what) {
  if (!strstr(aoth_sink_text(w->sink), what)) fail_msg("no \"%s\" in: %s", what, aoth_sink_text(w->sink));
}

static void a_point_that_nobody_raises_is_named(void **state) {
  calls_t c;
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_of("abc", 3), b = aoth_resident_zeros(3);
  c.adder.forgets_to_signal = 1;
  assert_int_equal(run(&c, &a, &b), AOT_OK);
  assert_int_equal(aoth_queue_idle(c.queue), AOT_E_UNAVAILABLE);
  says(*state, "timeline 1 is at 1, and nobody raises it any more to 2");
  says(*state, "while the forward graph ran");
  c.adder.forgets_to_signal = 0;
  assert_int_equal(run(&c, &a, &b), AOT_OK); /* the queue continues */
  holds(&c, &b, "bcd");
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  end(&c);
}

static void on_the_host_patience_ends(void **state) {
  fixture_t *w = *state;
  aoth_queue_t q;
  assert_int_equal(aoth_queue_init(&q, aoth_session_ctx(w->session), aoth_host_device()), AOT_OK);
  q.patience_ns = 1000000;
  q.height = 1; /* a submission that has raised nothing */
  assert_int_equal(aoth_queue_idle(&q), AOT_E_UNAVAILABLE);
  says(w, "waiting for timeline value 1, current value 0");
  assert_int_equal(aoth_queue_deinit(&q), AOT_OK);
}

static aot_status_t run_on(calls_t *c, int32_t kind, const aot_tensor_t *inputs, uint64_t n_inputs,
                           const aot_tensor_t *output) {
  const aot_binding_t what = {.struct_size = sizeof what,
                              .graph = {.struct_size = sizeof what.graph, .kind = kind},
                              .inputs = inputs,
                              .n_inputs = n_inputs,
                              .outputs = output,
                              .n_outputs = 1};
  AOT_TRY(aoth_bound_calls_run(&c->bound, &what, NULL, NULL, NULL));
  return aoth_queue_idle(c->queue);
}

/* Memory that is too small, outputs over what is read: reported before anything runs. */
static void bindings_that_cannot_be_are_refused(void **state) {
  calls_t c;
  aot_buffer_t memory;
  int64_t sizes[1] = {5}, strides[1] = {1};
  begin(&c, *state);
  assert_int_equal(aoth_queue_alloc(c.queue, 128, &memory), AOT_OK);
  const aoth_mirrored_buffer_t a = aoth_resident_part(c.queue, memory, 0, 4),
                               a_half = aoth_resident_part(c.queue, memory, 2, 4);
  const aoth_mirrored_buffer_t b = aoth_resident_part(c.queue, memory, 64, 4);
  const aot_tensor_t in = bytes(&a, 4), same = bytes(&a, 4), half = bytes(&a_half, 4), apart = bytes(&b, 4);
  const aot_tensor_t twice[2] = {in, in}, both[2] = {in, apart};
  aot_tensor_t small = apart;
  small.rank = 1;
  small.sizes = sizes;
  small.strides = strides;
  assert_int_equal(run_on(&c, AOT_GRAPH_FORWARD, &in, 1, &small), AOT_E_INVALID);
  says(*state, "output 0 of the forward graph has 4 bytes of memory, and reaches 5");
  assert_int_equal(run_on(&c, AOT_GRAPH_FORWARD, &in, 1, &same), AOT_E_INVALID);
  says(*state, "output 0 of the forward graph overlaps its input 0");
  assert_int_equal(run_on(&c, AOT_GRAPH_STEP, &in, 1, &half), AOT_E_INVALID);
  says(*state, "output 0 of the step graph overlaps its input 0");
  assert_int_equal(run_on(&c, AOT_GRAPH_STEP, twice, 2, &same), AOT_E_INVALID); /* the other input may yet be read */
  assert_int_equal(c.adder.n_bound, 0);
  assert_int_equal(run_on(&c, AOT_GRAPH_STEP, both, 2, &same), AOT_OK); /* in the place of its input */
  assert_int_equal(run_on(&c, AOT_GRAPH_FORWARD, twice, 2, &apart), AOT_OK);
  assert_int_equal(aoth_bound_calls_deinit(&c.bound), AOT_OK);
  assert_int_equal(run_on(&c, AOT_GRAPH_FORWARD, &in, 1, &apart), AOT_E_PRECONDITION);
  says(*state, "the executable of the call is gone");
  assert_int_equal(aoth_queue_free(c.queue, memory), AOT_OK);
  end(&c);
}

/* ---- AOT_VALIDATE=1 ---- */

static void begin_guarded(calls_t *c, fixture_t *w) {
  setenv("AOT_VALIDATE", "1", 1);
  *c = (calls_t){.queue = aoth_session_queue(w->session)};
  assert_int_equal(aoth_session_make_queue(w->session), AOT_OK);
  unsetenv("AOT_VALIDATE");
  assert_non_null(c->queue->guards);
  use_adder(c, w);
}

/* A port in a block, one with memory of its own, the arena: after each and before it. */
static void overruns_are_told(void **state) {
  static const struct {
    int64_t n_past, arena_at;
    int is_part;
    const char *says;
  } rows[] = {
      {1, 0, 1, "out-of-bounds write by the forward graph: byte 4 of its output 0 of 4 bytes"},
      {70, 0, 1, "out-of-bounds write by the forward graph: byte 4 of its output 0 of 4 bytes"},
      {1, 0, 0, "out-of-bounds write by the forward graph: byte 4 of its output 0 of 4 bytes"},
      {0, 8, 0, "out-of-bounds write by the forward graph: byte 8 of its arena of 8 bytes"},
      {0, -3, 0, "the forward graph wrote 3 bytes before the beginning of its arena of 8 bytes"},
      {0, 7, 1, NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    calls_t c;
    aot_buffer_t block;
    begin_guarded(&c, *state);
    assert_int_equal(aoth_queue_alloc(c.queue, 4 * 64, &block), AOT_OK);
    aoth_mirrored_buffer_t a = aoth_resident_of("abcd", 4), b = aoth_resident_zeros(4);
    if (rows[i].is_part) b = aoth_resident_part(c.queue, block, 0, 4);
    c.adder.n_past = rows[i].n_past;
    c.adder.arena_at = rows[i].arena_at;
    assert_int_equal(run(&c, &a, &b), rows[i].says ? AOT_E_CONTRACT : AOT_OK);
    if (rows[i].says) says(*state, rows[i].says);
    c.adder.n_past = c.adder.arena_at = 0;
    assert_int_equal(run(&c, &a, &b), AOT_OK); /* reported once: what was written is mended */
    holds(&c, &b, "bcde");
    assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
    assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
    assert_int_equal(aoth_queue_free(c.queue, block), AOT_OK);
    end(&c);
  }
}

/* What an earlier call has left there is no excuse. */
static void what_is_left_unwritten_is_told(void **state) {
  calls_t c;
  begin_guarded(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_of("abcdefghijklmnop", 16), b = aoth_resident_zeros(16);
  for (int round = 0; round < 2; round++) {
    c.adder.n_left = 0;
    assert_int_equal(run(&c, &a, &b), AOT_OK);
    holds(&c, &b, "bcdefghijklmnopq");
    c.adder.n_left = 9;
    assert_int_equal(run(&c, &a, &b), AOT_E_CONTRACT);
    says(*state, "the forward graph left 9 elements of its output 0 unwritten, the first is 7");
  }
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&b, c.queue), AOT_OK);
  end(&c);
}

static void write_input(fixture_t *w) {
  calls_t c;
  void *host;
  begin_guarded(&c, w);
  aoth_mirrored_buffer_t a = aoth_resident_zeros(4), b = aoth_resident_zeros(4);
  assert_int_equal(aoth_resident_edit(&a, c.queue, 0, &host), AOT_OK);
  c.adder.writes_input = 1;
  run(&c, &a, &b);
}

static void write_far(fixture_t *w) {
  calls_t c;
  begin_guarded(&c, w);
  aoth_mirrored_buffer_t a = aoth_resident_zeros(4), b = aoth_resident_zeros(4);
  c.adder.n_past = 200;
  run(&c, &a, &b);
}

static void what_is_only_read_cannot_be_written(void **state) {
  char said[4096];
  assert_int_equal(end_of(write_input, *state, said, sizeof said), 1000 + SIGSEGV);
  assert_int_equal(end_of(write_far, *state, said, sizeof said), 1000 + SIGSEGV);
}

/* ---- open outputs ---- */

typedef struct opened {
  calls_t *calls;
  aoth_mirrored_buffer_t memory;
} opened_t;

static aot_status_t allocate(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols, uint64_t n,
                             aot_tensor_t *out) {
  opened_t *o = sink->head.self;
  (void)output, (void)symbols, (void)n;
  AOT_TRY(aoth_resident_resize(&o->memory, o->calls->queue, 3));
  *out = bytes(&o->memory, 3);
  return AOT_OK;
}

static void open_outputs_have_memory_in_the_middle_of_work(void **state) {
  calls_t c;
  opened_t o = {.calls = &c};
  const aot_output_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &o}, .allocate = allocate};
  const aot_tensor_t output = {.rank = AOT_RANK_OPEN};
  int64_t symbol = AOT_SYMBOL_UNKNOWN;
  begin(&c, *state);
  aoth_mirrored_buffer_t a = aoth_resident_of("abc", 3);
  assert_int_equal(aoth_resident_need(&a, c.queue), AOT_OK);
  const aot_tensor_t input = bytes(&a, 3);
  const aot_binding_t what = {
      .struct_size = sizeof what,
      .graph = {.struct_size = sizeof what.graph, .kind = AOT_GRAPH_FORWARD},
      .inputs = &input,
      .n_inputs = 1,
      .outputs = &output,
      .n_outputs = 1,
  };
  for (int i = 0; i < 2; i++) {
    assert_int_equal(aoth_bound_calls_run(&c.bound, &what, &symbol, &sink, NULL), AOT_OK);
    aoth_resident_written(&o.memory, c.queue);
    holds(&c, &o.memory, "bcd");
  }
  assert_int_equal(symbol, 7);
  c.adder.work_fails = 1;
  assert_int_equal(aoth_bound_calls_run(&c.bound, &what, &symbol, &sink, NULL), AOT_E_RANGE);
  assert_int_equal(aoth_resident_free(&a, c.queue), AOT_OK);
  assert_int_equal(aoth_resident_free(&o.memory, c.queue), AOT_OK);
  end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(contents_move_when_they_are_wanted, setup, teardown),
      cmocka_unit_test_setup_teardown(zeros_are_made_where_they_are_wanted, setup, teardown),
      cmocka_unit_test_setup_teardown(parts_are_copied_on_the_device, setup, teardown),
      cmocka_unit_test_setup_teardown(the_host_waits_for_memory_in_use, setup, teardown),
      cmocka_unit_test_setup_teardown(inputs_are_fed_ahead, setup, teardown),
      cmocka_unit_test_setup_teardown(losses_come_while_later_work_is_under_way, setup, teardown),
      cmocka_unit_test_setup_teardown(an_arena_is_aligned_as_buffers_are, setup, teardown),
      cmocka_unit_test_setup_teardown(arenas_grow, setup, teardown),
      cmocka_unit_test_setup_teardown(failures_leave_nothing_behind, setup, teardown),
      cmocka_unit_test_setup_teardown(a_point_that_nobody_raises_is_named, setup, teardown),
      cmocka_unit_test_setup_teardown(on_the_host_patience_ends, setup, teardown),
      cmocka_unit_test_setup_teardown(bindings_that_cannot_be_are_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(overruns_are_told, setup, teardown),
      cmocka_unit_test_setup_teardown(what_is_left_unwritten_is_told, setup, teardown),
      cmocka_unit_test_setup_teardown(what_is_only_read_cannot_be_written, setup, teardown),
      cmocka_unit_test_setup_teardown(open_outputs_have_memory_in_the_middle_of_work, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
