/* Steps of equal work as one: no step loses what it needs, and no more memory is alive than before. */
#include "kit/lowering/lower.h"
#include "kit/model/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a schedule by hand ---- */

enum { MOST_MEMBERS = 64 };
typedef struct work { /* payload of a step: its number, or the numbers of those that it was joined from */
  uint32_t n, steps[MOST_MEMBERS];
} work_t;

static aot_status_t join(lw_build_t *b, const lw_step_t *const *steps, uint32_t n, lw_step_t *out) {
  work_t *w = lw_pool_alloc(b->pool, sizeof *w);
  assert_true(w && n > 1 && n <= MOST_MEMBERS);
  for (uint32_t k = 0; k < n; k++) {
    const work_t *member = steps[k]->payload;
    assert_int_equal(steps[k]->joins, steps[0]->joins);
    w->steps[w->n++] = member->steps[0];
  }
  out->payload = w;
  return AOT_OK;
}

typedef struct fixture {
  lw_target_t target;
  lw_machine_t machine;
  lw_schedule_t s;
  lw_error_t error;
  lw_build_t b;
} fixture_t;

static void begin(fixture_t *w) {
  memset(w, 0, sizeof *w);
  w->target.join = join;
  w->machine.target = &w->target;
  w->b = (lw_build_t){.out = &w->s, .machine = &w->machine, .pool = &w->s.pool, .error = &w->error};
}

static void end(fixture_t *w) { lw_schedule_deinit(&w->s); }

static lw_tensor_t memory(fixture_t *w, int32_t kind, int64_t nbytes) {
  lw_tensor_t t;
  assert_int_equal(lw_scratch(&w->b, (uint64_t)nbytes, &t), AOT_OK);
  w->s.storages[t.storage].kind = kind;
  return t;
}

static void step(fixture_t *w, uint64_t joins, uint32_t most) {
  work_t *p;
  assert_int_equal(lw_add_step(&w->b, NULL, "step", sizeof *p, &p), AOT_OK);
  p->n = 1;
  p->steps[0] = w->s.n_steps - 1;
  w->s.steps[w->s.n_steps - 1].joins = joins;
  w->s.steps[w->s.n_steps - 1].most_joined = most;
}

/* A step that writes `to` of what `from` has. */
static void make(fixture_t *w, uint64_t joins, const lw_tensor_t *to, const lw_tensor_t *from) {
  step(w, joins, UINT32_MAX);
  lw_use_read_only(&w->b, from, 0);
  lw_use(&w->b, to);
}

static void run(fixture_t *w) {
  assert_int_equal(lw_plan_memory(&w->b), AOT_OK);
  const uint64_t before = w->s.arena_nbytes;
  assert_int_equal(lw_join_steps(&w->b), AOT_OK);
  assert_true(w->s.arena_nbytes <= before);
}

static void expect(const fixture_t *w, const char *order) {
  char text[256] = "", *at = text;
  for (uint32_t t = 0; t < w->s.n_steps; t++) {
    const work_t *p = w->s.steps[t].payload;
    *at++ = t ? ' ' : '|';
    for (uint32_t k = 0; k < p->n; k++) *at++ = (char)('a' + p->steps[k]);
  }
  *at = 0;
  assert_string_equal(text + 1, order);
}

/* ---- memory that is taken over ---- */

/* A step that writes `to` over `from`, element on element. */
static void make_onto(fixture_t *w, const lw_tensor_t *to, const lw_tensor_t *from) {
  step(w, 0, UINT32_MAX);
  lw_use_inplace_of(&w->b, from, 0, to->storage);
  lw_use(&w->b, to);
}

static void what_is_read_last_gives_its_memory(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  lw_tensor_t x[7];
  for (int k = 0; k < 7; k++) x[k] = memory(&w, LW_ARENA, k == 3 ? 128 : 1024);
  const lw_tensor_t input = memory(&w, LW_INPUT, 1024);
  make(&w, 0, &x[0], &input);
  make_onto(&w, &x[1], &x[0]); /* x0 is read later */
  make_onto(&w, &x[2], &x[1]);
  make_onto(&w, &x[3], &x[2]); /* of another size */
  make(&w, 0, &x[4], &x[0]);   /* not element on element */
  make_onto(&w, &x[5], &x[4]);
  lw_use_read_only(&w.b, &x[4], 0); /* and read otherwise, too */
  make_onto(&w, &x[6], &x[5]);
  assert_int_equal(lw_plan_memory(&w.b), AOT_OK);
  const uint32_t taken[] = {LW_NONE, LW_NONE, x[1].storage, LW_NONE, LW_NONE, LW_NONE, x[5].storage};
  for (int k = 0; k < 7; k++) assert_int_equal(w.s.storages[x[k].storage].taken, taken[k]);
  assert_int_equal(w.s.storages[x[2].storage].at, w.s.storages[x[1].storage].at);
  assert_int_equal(w.s.storages[x[6].storage].at, w.s.storages[x[5].storage].at);
  assert_int_not_equal(w.s.storages[x[5].storage].at, w.s.storages[x[4].storage].at);
  assert_int_equal(w.s.arena_nbytes, 2048 + 128); /* x0, x1 with x2, x3 */
  end(&w);
}

/* ---- what joins ---- */

static void steps_of_one_kind_run_where_the_last_stood(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  const lw_tensor_t x = memory(&w, LW_INPUT, 64);
  lw_tensor_t y[5];
  for (int k = 0; k < 5; k++) y[k] = memory(&w, LW_OUTPUT, 64);
  make(&w, 7, &y[0], &x);
  make(&w, 0, &y[1], &x);
  make(&w, 7, &y[2], &x);
  make(&w, 8, &y[3], &x);
  make(&w, 7, &y[4], &x);
  run(&w);
  expect(&w, "b d ace");
  assert_int_equal(w.s.storages[x.storage].first, 0);
  assert_int_equal(w.s.storages[x.storage].last, 2);
  assert_int_equal(w.s.storages[y[0].storage].first, 2);
  end(&w);
}

static void a_set_runs_before_what_needs_it(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  const lw_tensor_t x = memory(&w, LW_INPUT, 64);
  lw_tensor_t y[6];
  for (int k = 0; k < 6; k++) y[k] = memory(&w, LW_OUTPUT, 64);
  make(&w, 7, &y[0], &x);
  make(&w, 7, &y[1], &x);
  make(&w, 7, &y[2], &y[1]); /* a member that reads a member's result begins a set of its own */
  make(&w, 0, &y[3], &y[2]);
  make(&w, 7, &y[4], &x);
  make(&w, 0, &x, &y[3]); /* and so does writing what one reads */
  make(&w, 7, &y[5], &x);
  run(&w);
  expect(&w, "ab c d e f g");
  end(&w);
}

static void an_output_in_an_input_is_the_inputs_memory(void **state) {
  fixture_t w;
  uint32_t home[1] = {0};
  lw_port_t in[1], out[1];
  (void)state;
  begin(&w);
  const lw_tensor_t parameter = memory(&w, LW_INPUT, 64), updated = memory(&w, LW_OUTPUT, 64);
  const lw_tensor_t y = memory(&w, LW_OUTPUT, 64), z = memory(&w, LW_OUTPUT, 64);
  w.b.home = home;
  w.s.inputs = in, w.s.outputs = out;
  w.s.n_inputs = w.s.n_outputs = 1;
  in[0].type = parameter, out[0].type = updated;
  make(&w, 7, &y, &parameter);
  make(&w, 0, &updated, &parameter);
  make(&w, 7, &z, &y);
  run(&w);
  expect(&w, "a b c");
  end(&w);
}

static void sets_have_as_many_members_as_they_may(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  for (int k = 0; k < 7; k++) {
    const lw_tensor_t y = memory(&w, LW_OUTPUT, 64);
    step(&w, 7, 3);
    lw_use(&w.b, &y);
  }
  run(&w);
  expect(&w, "abc def g");
  end(&w);
}

static void where_steps_jump_nothing_moves(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  const lw_tensor_t x = memory(&w, LW_INPUT, 64), y = memory(&w, LW_OUTPUT, 64), z = memory(&w, LW_OUTPUT, 64);
  make(&w, 7, &y, &x);
  make(&w, 7, &z, &x);
  w.s.stays_in_order = 1;
  run(&w);
  expect(&w, "a b");
  end(&w);
}

/* A backward that frees one activation a layer, and makes a gradient twice as large, which its update reads. */
static void what_waits_never_takes_more_than_the_peak(void **state) {
  enum { N = 6 };
  fixture_t w;
  lw_tensor_t kept[N];
  (void)state;
  begin(&w);
  const lw_tensor_t x = memory(&w, LW_INPUT, 64);
  for (int k = 0; k < N; k++) {
    kept[k] = memory(&w, LW_ARENA, 64);
    make(&w, 0, &kept[k], &x);
  }
  for (int k = N - 1; k >= 0; k--) {
    const lw_tensor_t gradient = memory(&w, LW_ARENA, 128), updated = memory(&w, LW_OUTPUT, 128);
    make(&w, 0, &gradient, &kept[k]);
    make(&w, 7, &updated, &gradient);
  }
  run(&w);
  /* updates are h, j, l, n, p, r */
  expect(&w, "a b c d e f g h i k jl m o q npr");
  end(&w);
}

/* ---- what runs early ---- */

/* A forward whose products read weights that are cast before, each right where it is needed. */
static void casts_of_weights_run_where_the_first_stood(void **state) {
  enum { N = 4 };
  fixture_t w;
  (void)state;
  begin(&w);
  w.target.runs_early = 1;
  lw_tensor_t x = memory(&w, LW_INPUT, 1024);
  for (int k = 0; k < N; k++) {
    const lw_tensor_t weight = memory(&w, LW_INPUT, 128), cast = memory(&w, LW_ARENA, 64),
                      y = memory(&w, LW_ARENA, 1024);
    make(&w, 7, &cast, &weight);
    make(&w, 0, &y, &x);
    lw_use_read_only(&w.b, &cast, 0);
    x = y;
  }
  const lw_tensor_t scores = memory(&w, LW_ARENA, 4096); /* the peak, next to which there is room for them */
  make(&w, 0, &scores, &x);
  run(&w);
  expect(&w, "aceg b d f h i");
  end(&w);
}

static void what_runs_early_never_takes_more_than_the_peak(void **state) {
  enum { N = 4 };
  fixture_t w;
  (void)state;
  begin(&w);
  w.target.runs_early = 1;
  const lw_tensor_t x = memory(&w, LW_INPUT, 64), y = memory(&w, LW_OUTPUT, 64);
  for (int k = 0; k < N; k++) {
    const lw_tensor_t cast = memory(&w, LW_ARENA, 64), other = memory(&w, LW_ARENA, k == 2 ? 128 : 64);
    make(&w, 7, &cast, &x);
    make(&w, 0, &other, &cast);
    make(&w, 0, &y, &other);
  }
  run(&w);
  expect(&w, "ad b c e f g h i j k l"); /* 192 are alive at h: two casts next to b, none next to h */
  end(&w);
}

static void what_was_written_or_used_before_does_not_run_early(void **state) {
  fixture_t w;
  (void)state;
  begin(&w);
  w.target.runs_early = 1;
  const lw_tensor_t x = memory(&w, LW_INPUT, 64), parameter = memory(&w, LW_INPUT, 64);
  lw_tensor_t y[5];
  for (int k = 0; k < 5; k++) y[k] = memory(&w, LW_OUTPUT, 64);
  make(&w, 7, &y[0], &x);
  make(&w, 0, &parameter, &y[0]); /* an update */
  make(&w, 7, &y[1], &parameter);
  make(&w, 0, &y[4], &y[1]);
  make(&w, 7, &y[0], &x); /* over what is read no more */
  make(&w, 0, &y[2], &y[0]);
  make(&w, 7, &y[3], &x);
  make(&w, 0, &y[4], &y[3]);
  run(&w);
  expect(&w, "ag b c d e f h");
  end(&w);
}

/* ---- any order ---- */

static uint32_t next_random(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

typedef struct touch {
  uint32_t storage, writes;
} touch_t;
enum { STEPS = 60, STORAGES = 40, TOUCHES = 3, KINDS = 4 };

static uint64_t most_alive(const lw_schedule_t *s) {
  mp_buffer_t buffers[STORAGES];
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n_storages; i++)
    if (s->storages[i].kind == LW_ARENA && s->storages[i].first != LW_NONE)
      buffers[n++] = (mp_buffer_t){s->storages[i].nbytes, s->storages[i].first, s->storages[i].last, 0};
  return mp_lower_bound(buffers, n, LW_ALIGN);
}

static void check_order(const fixture_t *w, touch_t touches[STEPS][TOUCHES]) {
  uint32_t place[STEPS], n = 0;
  for (uint32_t t = 0; t < w->s.n_steps; t++) {
    const work_t *p = w->s.steps[t].payload;
    for (uint32_t k = 0; k < p->n; k++, n++) place[p->steps[k]] = t;
  }
  assert_int_equal(n, STEPS);
  for (uint32_t later = 0; later < STEPS; later++)
    for (uint32_t before = 0; before < later; before++)
      for (int i = 0; i < TOUCHES * TOUCHES; i++) {
        const touch_t *a = &touches[before][i / TOUCHES], *b = &touches[later][i % TOUCHES];
        if (a->storage == b->storage && (a->writes || b->writes)) assert_true(place[before] < place[later]);
      }
}

static void order_holds_whatever_steps_touch(void **state) {
  uint32_t seed = 5, n_joined = 0;
  (void)state;
  for (int round = 0; round < 400; round++) {
    touch_t touches[STEPS][TOUCHES];
    lw_tensor_t t[STORAGES];
    fixture_t w;
    begin(&w);
    w.target.runs_early = round % 2;
    for (int i = 0; i < STORAGES; i++) t[i] = memory(&w, next_random(&seed) % 4 ? LW_ARENA : LW_INPUT, 64);
    for (int k = 0; k < STEPS; k++) {
      step(&w, next_random(&seed) % KINDS, 2 + next_random(&seed) % 20);
      for (int i = 0; i < TOUCHES; i++) {
        touch_t *touch = &touches[k][i];
        *touch = (touch_t){next_random(&seed) % STORAGES, next_random(&seed) % 6 == 0};
        if (touch->writes) lw_use(&w.b, &t[touch->storage]);
        else lw_use_read_only(&w.b, &t[touch->storage], 0);
      }
    }
    const uint64_t before = most_alive(&w.s);
    run(&w);
    assert_true(most_alive(&w.s) <= before);
    check_order(&w, touches);
    n_joined += STEPS - w.s.n_steps;
    end(&w);
  }
  assert_true(n_joined > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_read_last_gives_its_memory),
      cmocka_unit_test(steps_of_one_kind_run_where_the_last_stood),
      cmocka_unit_test(a_set_runs_before_what_needs_it),
      cmocka_unit_test(an_output_in_an_input_is_the_inputs_memory),
      cmocka_unit_test(sets_have_as_many_members_as_they_may),
      cmocka_unit_test(where_steps_jump_nothing_moves),
      cmocka_unit_test(what_waits_never_takes_more_than_the_peak),
      cmocka_unit_test(casts_of_weights_run_where_the_first_stood),
      cmocka_unit_test(what_runs_early_never_takes_more_than_the_peak),
      cmocka_unit_test(what_was_written_or_used_before_does_not_run_early),
      cmocka_unit_test(order_holds_whatever_steps_touch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
