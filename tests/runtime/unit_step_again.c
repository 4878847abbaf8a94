/* A step that is the last one again looks at what belongs to the call alone: inputs, scalars, the loss. Whatever moves
 * a parameter or a state between two steps is seen all the same: each scene is played twice, once by a step that looks
 * at everything each time, on the host and on a device whose memory the host cannot touch.
 *
 * The executable is the test's own, over N parameters w and states m:
 *
 *     step    loss = sum of x + seed + offset + sum of m;  m += w + sum of x;  w -= lr * m;  offset += 1
 *     apply   w *= 1 - lr */
#include "tiny_opset.h"

#include "strict_device.h"
#include <aot/inline.h>
#include <device/bound_calls.h>
#include <device/host_device.h>
#include <step/step.h>
#include <trainer/checkpoint.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_SCALARS = 4, N_RESULTS = 2, MAX_PORTS = 2 * 300 + N_SCALARS };
enum { FRESH_OF_STEP = N_SCALARS + N_RESULTS, FRESH_OF_APPLY = 1 };

/* ---- the executable ---- */

typedef struct trainer {
  aot_exe_t table;
  const aot_device_t *device;
  int n_bound, fails;          /* the next submission does */
  uint64_t arena_nbytes_apply; /* more than a step's: binding it first throws out what was bound */
} trainer_t;

struct aot_bound {
  trainer_t *trainer;
  aot_ctx_t *ctx;
  uint32_t number;
  uint64_t n_in;
  int64_t numel;
  char *in[MAX_PORTS], *out[MAX_PORTS];
};

static aot_status_t plan(const aot_exe_t *e, aot_ctx_t *ctx, const aot_graph_at_t *graph, aot_exe_plan_t *out) {
  const trainer_t *t = e->head.self;
  (void)ctx;
  out->arena.nbytes = graph->number ? t->arena_nbytes_apply : 64;
  return AOT_OK;
}

static aot_status_t bind(const aot_exe_t *e, aot_ctx_t *ctx, const aot_binding_t *b, aot_bound_t **out) {
  trainer_t *t = e->head.self;
  *out = malloc(sizeof **out);
  **out = (aot_bound_t){.trainer = t, .ctx = ctx, .number = b->graph.number, .n_in = b->n_inputs};
  if (!b->graph.number) (*out)->numel = b->inputs[3].sizes[0] * 3;
  for (uint64_t i = 0; i < b->n_inputs; i++) (*out)->in[i] = b->inputs[i].data;
  for (uint64_t i = 0; i < b->n_outputs; i++) (*out)->out[i] = b->outputs[i].data;
  t->n_bound++;
  return AOT_OK;
}

static void unbind(const aot_exe_t *e, aot_bound_t *call) {
  (void)e;
  free(call);
}

static void step(const aot_bound_t *b) {
  const double lr = *(const double *)(void *)b->in[0];
  const int64_t seed = *(const int64_t *)(void *)b->in[1], offset = *(const int64_t *)(void *)b->in[2];
  const float *x = (const float *)(void *)b->in[3];
  float sum = 0, loss = (float)(seed + offset);
  for (int64_t i = 0; i < b->numel; i++) sum += x[i];
  for (uint64_t i = N_SCALARS, o = N_RESULTS; i < b->n_in; i += 2, o += 2) {
    float *w = (float *)(void *)b->out[o], *m = (float *)(void *)b->out[o + 1];
    assert_ptr_equal(b->in[i], w);
    assert_ptr_equal(b->in[i + 1], m);
    for (int k = 0; k < 3; k++) {
      loss += m[k];
      m[k] = m[k] / 2 + w[k] + sum;
      w[k] -= (float)lr * m[k];
    }
  }
  *(float *)(void *)b->out[0] = loss + sum;
  *(int64_t *)(void *)b->out[1] = offset + 1;
}

static void apply(const aot_bound_t *b) {
  const double lr = *(const double *)(void *)b->in[0];
  for (uint64_t i = 1; i < b->n_in; i++)
    for (int k = 0; k < 3; k++) ((float *)(void *)b->out[i - 1])[k] *= 1 - (float)lr;
}

static aot_status_t work(void *self, aot_status_t before) {
  const aot_bound_t *b = self;
  if (before != AOT_OK) return before;
  if (b->number) apply(b);
  else step(b);
  return AOT_OK;
}

static aot_status_t submit(const aot_exe_t *e, aot_ctx_t *ctx, aot_bound_t *call, const aot_submission_t *s) {
  trainer_t *t = e->head.self;
  const aot_device_t *d = t->device;
  const aot_ext_host_work_t *host_work = aot_ext(&d->head, AOT_EXT_HOST_WORK);
  if (!call->number) assert_int_equal(s->symbols[0] * 3, call->numel); /* it was bound for these sizes */
  if (t->fails) return t->fails = 0, aoth_report_error(ctx, AOT_E_UNAVAILABLE, "test.submit", "it fails");
  for (uint64_t i = 0; i < s->n_waits; i++) AOT_TRY(d->wait(d, ctx, s->queue, s->waits[i]));
  AOT_TRY(host_work->enqueue(host_work, ctx, s->queue, work, call));
  for (uint64_t i = 0; i < s->n_signals; i++) AOT_TRY(d->signal(d, ctx, s->queue, s->signals[i]));
  return AOT_OK;
}

/* ---- a step over it ---- */

typedef struct scene {
  fixture_t world;
  sd_device_t *strict; /* NULL: the host */
  aoth_queue_t queue;
  trainer_t trainer;
  aoth_bound_calls_t bound;
  aoth_step_t *step;
  int looks_always;
  uint32_t n;
  float x[8 * 3];
  double lr;
  float lent[3 * 64] __attribute__((aligned(AOTH_ALIGN)));
  char path[64];
} scene_t;

static aot_status_t AOT_CALL say(const aot_host_t *h, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)h, (void)ctx;
  fail_msg("%.*s", (int)d->message.size, d->message.data);
  return AOT_OK;
}

static aot_status_t run(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                        uint64_t *known) {
  scene_t *s = self;
  return aoth_bound_calls_run(&s->bound, what, symbols, open, known);
}

static char *program_text(uint32_t n) {
  kit_text_t t = {0};
  kit_text_z(&t, "aot 1\nproperties imported functional\nsymbol s0 in [1, 8] hint 2\n"
                 "leaf 0 user_input 0 \"x\" : f32[s0, 3]\n");
  for (uint32_t k = 0; k < n; k++)
    kit_text_f(&t,
               "leaf %u parameter \"w%u\" : f32[3] grad data \"0000803f0000004000004040\"\n"
               "leaf %u state \"m%u\" : f32[3]\n",
               2 * k + 1, k, 2 * k + 2, k);
  for (uint32_t k = 1; k <= 2 * n; k++) kit_text_f(&t, "rule copy_back %u\n", k);
  kit_text_z(&t, "graph @step step {\n  in %lr = hyper 0 : f64[]\n  in %seed = seed 0 : i64[]\n"
                 "  in %at = offset 0 : i64[]\n  in %x = user_input 0 : f32[s0, 3]\n");
  for (uint32_t k = 0; k < n; k++)
    kit_text_f(&t, "  in %%w%u = parameter %u : f32[3]\n  in %%m%u = state %u : f32[3]\n", k, 2 * k + 1, k, 2 * k + 2);
  kit_text_z(&t, "  %loss : f32[] = tiny.add.Tensor %x, %w0\n  %at1 : i64[] = tiny.add.Tensor %at, %seed\n");
  for (uint32_t k = 0; k < n; k++)
    kit_text_f(&t, "  %%v%u : f32[3] = tiny.add.Tensor %%w%u, %%lr\n  %%n%u : f32[3] = tiny.add.Tensor %%m%u, %%w%u\n",
               k, k, k, k, k);
  kit_text_z(&t, "  out loss 0 = %loss\n  out offset 0 = %at1\n");
  for (uint32_t k = 0; k < n; k++)
    kit_text_f(&t, "  out update %u = %%v%u\n  out update %u = %%n%u\n", 2 * k + 1, k, 2 * k + 2, k);
  kit_text_z(&t, "}\ngraph @apply step {\n  in %lr = hyper 0 : f64[]\n");
  for (uint32_t k = 0; k < n; k++) kit_text_f(&t, "  in %%w%u = parameter %u : f32[3]\n", k, 2 * k + 1);
  for (uint32_t k = 0; k < n; k++) kit_text_f(&t, "  %%v%u : f32[3] = tiny.add.Tensor %%w%u, %%lr\n", k, k);
  for (uint32_t k = 0; k < n; k++) kit_text_f(&t, "  out update %u = %%v%u\n", 2 * k + 1, k);
  kit_text_z(&t, "}\n");
  assert_false(t.failed);
  return t.data;
}

static void begin(scene_t *s, uint32_t n, int is_strict, int looks_always) {
  static const aot_host_t host = {.head = {.struct_size = sizeof host}, .diag = say};
  *s = (scene_t){.looks_always = looks_always, .n = n, .lr = 0.125};
  world_init(&s->world);
  char *text = program_text(n);
  if (world_parse(&s->world, text) != AOT_OK) fail_msg("%s", aoth_sink_text(s->world.sink));
  free(text);
  if (is_strict) s->strict = sd_device_create(&host, &(sd_options_t){.seed = 5, .takes_host_work = 1});
  const aot_device_t *device = is_strict ? &s->strict->table : aoth_host_device();
  assert_int_equal(aoth_queue_init(&s->queue, &s->world.ctx, device), AOT_OK);
  s->trainer = (trainer_t){
      .table =
          {
              .head = {.struct_size = sizeof s->trainer.table, .self = &s->trainer},
              .plan = plan,
              .bind = bind,
              .submit = submit,
              .unbind = unbind,
          },
      .device = device,
      .arena_nbytes_apply = 64,
  };
  aoth_bound_calls_init(&s->bound, &s->queue, &s->trainer.table, &s->trainer.table);
  const aoth_exec_t exec = {.self = s, .queue = &s->queue, .run = run};
  if (aoth_step_create(s->world.p, &exec, s->world.sink, &s->step) != AOT_OK)
    fail_msg("%s", aoth_sink_text(s->world.sink));
  aoth_step_seed(s->step, 3, 0);
  strcpy(s->path, "/tmp/step_again_XXXXXX");
  const int file = mkstemp(s->path);
  assert_true(file >= 0);
  close(file);
  for (int i = 0; i < 24; i++) s->x[i] = (float)(i + 1) / 32;
}

static void end(scene_t *s) {
  assert_int_equal(aoth_bound_calls_deinit(&s->bound), AOT_OK);
  aoth_step_destroy(s->step);
  assert_int_equal(aoth_queue_deinit(&s->queue), AOT_OK);
  if (s->strict) s->strict->table.head.destroy(&s->strict->table.head);
  world_deinit(&s->world);
  unlink(s->path);
}

static void well(scene_t *s, aot_status_t status) {
  if (status != AOT_OK) fail_msg("%d: %s", (int)status, aoth_sink_text(s->world.sink));
}

static aoth_tensor_t batch(scene_t *s, int64_t rows) {
  return aoth_tensor_make(s->x, AOT_F32, 2, (int64_t[]){rows, 3});
}

static void whole(scene_t *s, int64_t rows) {
  aoth_tensor_t x = batch(s, rows);
  if (s->looks_always) s->queue.n_stirs++;
  s->x[0] += 0.25f; /* each step has other inputs */
  well(s, aoth_step_whole(s->step, rows ? &x : NULL, rows != 0, s->lr));
}

static void apply_step(scene_t *s) {
  if (s->looks_always) s->queue.n_stirs++;
  well(s, aoth_step_apply(s->step, s->lr));
}

static const float *floats(scene_t *s, const char *key) {
  static aoth_tensor_t t;
  if (!aoth_step_get(s->step, key, &t)) fail_msg("there is no %s", key);
  return (const float *)t.data + t.offset;
}

static aot_status_t same_leaf(void *self, const char *key, const aoth_tensor_t *t) {
  assert_memory_equal(floats(self, key), t->data, t->nbytes);
  return AOT_OK;
}

static void same_leaves(scene_t *a, scene_t *b) {
  assert_int_equal(aoth_step_keys(a->step, AOTH_KEYS_LEAVES, same_leaf, b), AOT_OK);
  assert_int_equal(aoth_step_offset(a->step), aoth_step_offset(b->step));
}

/* ---- what may come between two steps ---- */

static void nothing(scene_t *s) { (void)s; }
static void read_a_parameter(scene_t *s) { floats(s, "param.w1"); }
static void another_rate(scene_t *s) { s->lr = 0.5; }
static void another_seed(scene_t *s) { aoth_step_seed(s->step, 9, 40); }
static void another_size(scene_t *s) { whole(s, 5); }
/* another binding at the same addresses */
static void a_size_in_the_same_places(scene_t *s) { whole(s, 1); }
static void inputs_of_the_last(scene_t *s) { whole(s, 0); }
static void an_apply(scene_t *s) { apply_step(s); }
static void begin_again(scene_t *s) { well(s, aoth_step_reset(s->step)); }

static void set(scene_t *s, const char *key) {
  float numbers[3] = {7, 8, 9};
  const aoth_tensor_t t = aoth_tensor_make(numbers, AOT_F32, 1, (int64_t[]){3});
  well(s, aoth_step_set(s->step, key, &t));
}
static void set_a_parameter(scene_t *s) { set(s, "param.w1"); }
static void set_a_state(scene_t *s) { set(s, "state.m2"); }

static void save(scene_t *s) {
  const aoth_checkpoint_ranks_t alone = {.n = 1};
  aoth_checkpoint_t at = {.optimizer = "test"};
  aoth_random_seed(&at.random, 1);
  well(s, aoth_checkpoint_save(s->path, s->step, &alone, &at, s->world.sink));
}
static void resume_from_a_file(scene_t *s) {
  const aoth_checkpoint_ranks_t alone = {.n = 1};
  aoth_checkpoint_t at = {.optimizer = "test"};
  save(s);
  whole(s, 2);
  whole(s, 2);
  well(s, aoth_checkpoint_load(s->path, s->step, &alone, &at, s->world.sink));
}

static void bind_a_parameter(scene_t *s, uint32_t row) {
  float *at = s->lent + (size_t)row * AOTH_ALIGN / sizeof *s->lent;
  const aoth_tensor_t t = aoth_tensor_make(at, AOT_F32, 1, (int64_t[]){3});
  for (int i = 0; i < 3; i++) at[i] = (float)(row + 1);
  well(s, aoth_step_lend_leaf(s->step, "param.w1", &t));
}
static void a_bound_parameter(scene_t *s) { bind_a_parameter(s, 0); }
static void a_parameter_bound_for_a_while(scene_t *s) {
  bind_a_parameter(s, 1);
  whole(s, 2);
  whole(s, 2);
  well(s, aoth_step_lend_leaf(s->step, "param.w1", NULL));
}
/* more places than calls stay bound */
static void many_places(scene_t *s) {
  for (int k = 0; k < AOTH_MAX_BOUND + 3; k++) {
    bind_a_parameter(s, (uint32_t)(k % 12));
    whole(s, 1 + k % 8);
  }
}

static void a_bound_input(scene_t *s) {
  const aoth_tensor_t t = batch(s, 2);
  well(s, aoth_step_lend(s->step, "input.0", &t));
}
static void a_bound_loss(scene_t *s) {
  const aoth_tensor_t t = aoth_tensor_make(s->lent, AOT_F32, 0, NULL);
  well(s, aoth_step_lend(s->step, "output.0", &t));
}

static void another_call(scene_t *s) {
  uint32_t call;
  well(s, aoth_step_open_call(s->step, &call));
  well(s, aoth_step_enter(s->step, call));
  whole(s, 3);
  whole(s, 3);
  well(s, aoth_step_enter(s->step, 0));
  aoth_step_close_call(s->step, call);
}

static void a_step_that_fails(scene_t *s) {
  const aoth_tensor_t x = batch(s, 2);
  s->trainer.fails = 1;
  assert_int_equal(aoth_step_whole(s->step, &x, 1, s->lr), AOT_E_UNAVAILABLE);
}

/* What was bound to the old arena goes. */
static void a_larger_arena(scene_t *s) {
  s->trainer.arena_nbytes_apply = 4096;
  apply_step(s);
}

static void somebody_looks_at_it(scene_t *s) {
  aoth_tensor_t t;
  assert_int_equal(aoth_step_export_leaf(s->step, "param.w1", &t), s->queue.is_shared);
}

static void play(scene_t *s, void (*between)(scene_t *s), int applies, float *losses) {
  for (int i = 0; i < 8; i++) {
    if (i == 4) between(s);
    whole(s, 2);
    losses[i] = *floats(s, "output.0");
    if (applies) apply_step(s);
  }
}

static void whatever_moves_is_seen(void **state) {
  (void)state;
  static void (*const scenes[])(scene_t *) = {
      nothing,
      a_size_in_the_same_places,
      read_a_parameter,
      another_rate,
      another_seed,
      another_size,
      an_apply,
      begin_again,
      inputs_of_the_last,
      set_a_parameter,
      set_a_state,
      a_bound_input,
      a_bound_loss,
      resume_from_a_file,
      a_bound_parameter,
      a_parameter_bound_for_a_while,
      many_places,
      another_call,
      a_step_that_fails,
      a_larger_arena,
      somebody_looks_at_it,
  };
  for (size_t k = 0; k < 4 * sizeof scenes / sizeof *scenes; k++) {
    void (*const between)(scene_t *) = scenes[k / 4];
    const int is_strict = k & 1, applies = k >> 1 & 1;
    scene_t again, always;
    float now[8], wanted[8];
    begin(&again, 4, is_strict, 0);
    begin(&always, 4, is_strict, 1);
    play(&again, between, applies, now);
    play(&always, between, applies, wanted);
    if (memcmp(now, wanted, sizeof now) != 0) fail_msg("the losses of scene %zu differ", k);
    same_leaves(&again, &always);
    assert_true(aoth_step_looked_at(again.step) < aoth_step_looked_at(always.step));
    end(&again);
    end(&always);
  }
}

/* What a step has to look at is the same whether there are 2 parameters or 300. */
static void looks_at_what_belongs_to_the_call(void **state) {
  (void)state;
  static const uint32_t sizes[] = {2, 300};
  for (int k = 0; k < 4; k++) {
    scene_t s;
    begin(&s, sizes[k & 1], k >> 1, 0);
    whole(&s, 2);
    apply_step(&s);
    assert_int_equal(aoth_step_looked_at(s.step), FRESH_OF_STEP + FRESH_OF_APPLY + 6 * s.n);
    whole(&s, 2); /* leaves are where this one finds them */
    apply_step(&s);
    const uint64_t n_looked_at = aoth_step_looked_at(s.step), n_compared = s.bound.n_compared;
    for (int i = 1; i <= 5; i++) {
      s.lr /= 2;
      whole(&s, i == 3 ? 0 : 2);
      floats(&s, "output.0");
      apply_step(&s);
      assert_int_equal(aoth_step_looked_at(s.step) - n_looked_at, i * (FRESH_OF_STEP + FRESH_OF_APPLY));
    }
    assert_int_equal(s.bound.n_compared, n_compared);
    set_a_parameter(&s);
    whole(&s, 2);
    assert_true(aoth_step_looked_at(s.step) - n_looked_at > 4 * s.n);
    end(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whatever_moves_is_seen),
      cmocka_unit_test(looks_at_what_belongs_to_the_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
