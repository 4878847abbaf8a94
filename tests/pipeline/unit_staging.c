/* Calls on a device whose memory the host cannot touch (the unit strict): what is taken there and back, and what
 * failures leave. The executable is the test's own: it adds 1 to every byte of its input, into its output. */
#include "session_world.h"

#include <pipeline/call.h>
#include <pipeline/devices.h>
#include <pipeline/session.h>

typedef struct adder { /* an executable, with one bound call */
  aot_exe_t table;
  const aot_device_t *device;
  aot_binding_t bound;
  aot_tensor_t in, out;
  aot_ctx_t *ctx;
  int64_t *symbols;
  const aot_output_sink_t *open;
  int n_bound, n_works, submit_fails, work_fails;
  uint64_t arena_nbytes;
} adder_t;

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  const adder_t *a = e->head.self;
  (void)ctx, (void)graph;
  out->arena.nbytes = a->arena_nbytes;
  return AOT_OK;
}

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *b, aot_bound_t **out) {
  adder_t *a = e->head.self;
  (void)ctx;
  a->n_bound++;
  a->bound = *b;
  a->in = b->inputs[0];
  a->out = b->outputs[0];
  *out = (aot_bound_t *)(void *)a;
  return AOT_OK;
}

static void unbind(const aot_exe_t *e, aot_bound_t *call) {
  adder_t *a = e->head.self;
  (void)call;
  a->n_bound--;
}

static aot_status_t work(void *self, aot_status_t before) {
  adder_t *a = self;
  a->n_works++;
  if (before != AOT_OK) return before;
  if (a->work_fails) return aoth_report_error(a->ctx, AOT_E_RANGE, "test.work", "the work fails");
  aot_tensor_t out = a->out;
  if (a->open) AOT_TRY(a->open->allocate(a->open, 0, a->symbols, 1, &out));
  for (uint64_t i = 0; i < a->in.nbytes; i++) ((char *)out.data)[i] = (char)(((const char *)a->in.data)[i] + 1);
  if (a->symbols) a->symbols[0] = 7;
  return AOT_OK;
}

static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *call, const aot_submission_t *s) {
  adder_t *a = e->head.self;
  const aot_device_t *d = a->device;
  const aot_ext_host_work_t *host_work = aot_ext(&d->head, AOT_EXT_HOST_WORK);
  (void)call;
  a->ctx = ctx;
  a->symbols = s->symbols;
  a->open = s->open;
  for (uint64_t i = 0; i < s->n_waits; i++) AOT_TRY(d->wait(d, ctx, s->queue, s->waits[i]));
  AOT_TRY(host_work->enqueue(host_work, ctx, s->queue, work, a));
  if (a->submit_fails) return aoth_report_error(ctx, AOT_E_UNAVAILABLE, "test.submit", "the submission fails half-way");
  for (uint64_t i = 0; i < s->n_signals; i++) AOT_TRY(d->signal(d, ctx, s->queue, s->signals[i]));
  return AOT_OK;
}

/* ---- a session's device, and calls on it ---- */

typedef struct calls {
  world_t *w;
  aot_ctx_t *ctx;
  adder_t adder;
  aoth_bound_calls_t bound;
} calls_t;

static void begin(calls_t *c, world_t *w) {
  aoth_stage_t device = {.use = "strict", .name = "strict"};
  *c = (calls_t){.w = w, .ctx = aoth_session_ctx(w->session)};
  assert_int_equal(aoth_stage_of_unit(w->session, "strict", "device/1", NULL, &device), AOT_OK);
  assert_int_equal(aoth_session_take_device(w->session, &device), AOT_OK);
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
  assert_int_equal(aoth_bound_calls_init(&c->bound, c->ctx, w->session->device, &c->adder.table, &c->adder.table),
                   AOT_OK);
}

static void end(calls_t *c) {
  assert_int_equal(aoth_bound_calls_deinit(&c->bound, c->ctx), AOT_OK); /* no queue has anything left on it */
  assert_int_equal(c->adder.n_bound, 0);
}

static aot_tensor_t bytes(void *data, uint64_t n) { return (aot_tensor_t){.data = data, .nbytes = n, .dtype = AOT_U8}; }

static aot_status_t run(calls_t *c, aot_tensor_t in, aot_tensor_t out, int64_t *symbols,
                        const aot_output_sink_t *open) {
  const aot_binding_t what = {
      .struct_size = sizeof what,
      .graph = {.struct_size = sizeof what.graph, .kind = AOT_GRAPH_FORWARD},
      .inputs = &in,
      .n_inputs = 1,
      .outputs = &out,
      .n_outputs = 1,
  };
  return aoth_bound_calls_run(&c->bound, c->ctx, &what, symbols, open);
}

static void results_come_back(void **state) {
  calls_t c;
  char in[3] = "abc", out[3] = "---";
  begin(&c, *state);
  for (int i = 0; i < 3; i++) assert_int_equal(run(&c, bytes(in, 3), bytes(out, 3), NULL, NULL), AOT_OK);
  assert_memory_equal(out, "bcd", 3);
  assert_int_equal(c.bound.n_copied, 3 * 6);
  assert_int_equal(c.bound.n_bound, 1);
  in[0] = 'x';
  c.adder.arena_nbytes = 100; /* is asked for with the next binding */
  assert_int_equal(run(&c, bytes(in, 1), bytes(out, 3), NULL, NULL), AOT_OK);
  assert_int_equal(out[0], 'y');
  assert_int_equal(c.bound.arena.nbytes, 100);
  assert_int_equal(c.adder.n_bound, 1);
  end(&c);
}

static void tensors_that_share_memory_share_a_buffer(void **state) {
  calls_t c;
  char memory[8] = "abcdefg";
  begin(&c, *state);
  assert_int_equal(run(&c, bytes(memory, 4), bytes(memory + 2, 4), NULL, NULL), AOT_OK);
  assert_ptr_equal((char *)c.adder.in.data + 2, c.adder.out.data);
  assert_memory_equal(memory, "abbccdg", 7); /* what was written first is read afterwards */
  assert_int_equal(c.bound.n_copied, 2 * 6);
  end(&c);
}

static void failures_leave_nothing_behind(void **state) {
  calls_t c;
  char in[3] = "abc", out[3] = "---";
  begin(&c, *state);
  c.adder.work_fails = 1;
  assert_int_equal(run(&c, bytes(in, 3), bytes(out, 3), NULL, NULL), AOT_E_RANGE);
  assert_memory_equal(out, "---", 3);
  c.adder.work_fails = 0;
  c.adder.submit_fails = 1;
  assert_int_equal(run(&c, bytes(in, 3), bytes(out, 3), NULL, NULL), AOT_E_UNAVAILABLE);
  assert_int_equal(c.adder.n_works, 2); /* what was put there is over */
  assert_memory_equal(out, "---", 3);
  c.adder.submit_fails = 0;
  assert_int_equal(run(&c, bytes(in, 3), bytes(out, 3), NULL, NULL), AOT_OK);
  assert_memory_equal(out, "bcd", 3);
  end(&c);
}

static char opened[4];

static aot_status_t allocate(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols, uint64_t n,
                             aot_tensor_t *out) {
  (void)sink, (void)output, (void)symbols, (void)n;
  *out = bytes(opened, 3);
  return AOT_OK;
}

static void open_outputs_come_back(void **state) {
  const aot_output_sink_t sink = {.head = {.struct_size = sizeof sink}, .allocate = allocate};
  calls_t c;
  char in[3] = "abc";
  int64_t symbol = AOT_SYMBOL_UNKNOWN;
  begin(&c, *state);
  for (int i = 0; i < 2; i++) {
    memset(opened, '-', sizeof opened);
    assert_int_equal(run(&c, bytes(in, 3), (aot_tensor_t){.rank = AOT_RANK_OPEN}, &symbol, &sink), AOT_OK);
    assert_memory_equal(opened, "bcd-", 4);
  }
  assert_int_equal(symbol, 7);
  c.adder.work_fails = 1;
  assert_int_equal(run(&c, bytes(in, 3), (aot_tensor_t){.rank = AOT_RANK_OPEN}, &symbol, &sink), AOT_E_RANGE);
  end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(results_come_back, setup, teardown),
      cmocka_unit_test_setup_teardown(tensors_that_share_memory_share_a_buffer, setup, teardown),
      cmocka_unit_test_setup_teardown(failures_leave_nothing_behind, setup, teardown),
      cmocka_unit_test_setup_teardown(open_outputs_come_back, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
