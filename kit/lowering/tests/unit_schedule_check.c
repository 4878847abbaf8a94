/* The check of schedules: one that is right passes, and each way of being wrong is reported with its step. */
#include "kit/lowering/schedule_check.h"

#include <aot/graph.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
  lw_target_t target;
  lw_machine_t machine;
  lw_schedule_t s;
  lw_error_t error;
  lw_build_t b;
  lw_port_t inputs[1], outputs[1];
  lw_tensor_t in, out;
} fixture_t;

static lw_tensor_t memory(fixture_t *f, int32_t kind, int64_t nbytes) {
  lw_tensor_t t;
  assert_int_equal(lw_scratch(&f->b, (uint64_t)nbytes, &t), AOT_OK);
  f->s.storages[t.storage].kind = kind;
  return t;
}

/* An input and an output of 256 bytes. */
static void begin(fixture_t *f) {
  memset(f, 0, sizeof *f);
  f->machine.target = &f->target;
  f->b = (lw_build_t){.out = &f->s, .machine = &f->machine, .pool = &f->s.pool, .error = &f->error};
  f->in = memory(f, LW_INPUT, 256);
  f->out = memory(f, LW_OUTPUT, 256);
  f->inputs[0].type = f->in;
  f->outputs[0].type = f->out;
  f->s.inputs = f->inputs, f->s.n_inputs = 1;
  f->s.outputs = f->outputs, f->s.n_outputs = 1;
}

static void end(fixture_t *f) { lw_schedule_deinit(&f->s); }

static void step(fixture_t *f, const lw_tensor_t *to, const lw_tensor_t *from) {
  int *payload;
  assert_int_equal(lw_add_step(&f->b, NULL, "copy", sizeof *payload, &payload), AOT_OK);
  lw_use_read(&f->b, from);
  lw_use(&f->b, to);
}

static lw_tensor_t part(lw_tensor_t t, int64_t offset, int64_t nbytes) {
  t.offset += offset;
  t.sizes[0] = nbytes;
  return t;
}

static void expect_right(fixture_t *f) {
  if (lw_check_schedule(&f->b) != AOT_OK) fail_msg("%s", f->error.text);
}

static void expect_wrong(fixture_t *f, const char *what) {
  assert_int_equal(lw_check_schedule(&f->b), AOT_E_INTERNAL);
  if (!strstr(f->error.text, what)) fail_msg("'%s' does not say '%s'", f->error.text, what);
}

static void what_is_written_before_it_is_read_is_right(void **state) {
  fixture_t f;
  (void)state;
  begin(&f);
  const lw_tensor_t x = memory(&f, LW_ARENA, 256);
  const lw_tensor_t low = part(x, 0, 100), high = part(x, 100, 156), middle = part(x, 60, 80);
  const lw_tensor_t from_low = part(f.in, 0, 100), from_high = part(f.in, 100, 156);
  step(&f, &high, &from_high);
  step(&f, &low, &from_low);
  step(&f, &f.out, &middle); /* of both parts */
  step(&f, &f.out, &x);
  assert_int_equal(lw_plan_memory(&f.b), AOT_OK);
  expect_right(&f);
  end(&f);
}

/* A reader that ran before its writer, and one of bytes that no writer has. */
static void what_is_not_written_yet_is_reported(void **state) {
  fixture_t f;
  (void)state;
  begin(&f);
  const lw_tensor_t x = memory(&f, LW_ARENA, 256), y = memory(&f, LW_ARENA, 256);
  step(&f, &x, &f.in);
  step(&f, &f.out, &y);
  step(&f, &y, &x);
  assert_int_equal(lw_plan_memory(&f.b), AOT_OK);
  expect_wrong(&f, "step 1 of 3 (copy) reads what no step has written: byte 0 of storage 3");
  end(&f);

  begin(&f);
  const lw_tensor_t z = memory(&f, LW_ARENA, 256), low = part(z, 0, 255);
  step(&f, &low, &f.in);
  step(&f, &f.out, &z);
  assert_int_equal(lw_plan_memory(&f.b), AOT_OK);
  expect_wrong(&f, "byte 255 of storage 2");
  end(&f);
}

/* Places in the arena that were given out although what is there is read later. */
static void memory_that_is_taken_too_early_is_reported(void **state) {
  fixture_t f;
  (void)state;
  begin(&f);
  const lw_tensor_t x = memory(&f, LW_ARENA, 256), y = memory(&f, LW_ARENA, 256);
  step(&f, &x, &f.in);
  step(&f, &y, &f.in);
  step(&f, &f.out, &y);
  step(&f, &f.out, &x);
  assert_int_equal(lw_plan_memory(&f.b), AOT_OK);
  expect_right(&f);
  f.s.storages[y.storage].at = f.s.storages[x.storage].at + 64;
  expect_wrong(&f, "step 3 of 4 (copy) reads what another storage has overwritten: byte 64 of storage 2");
  end(&f);

  begin(&f);
  const lw_tensor_t from = memory(&f, LW_ARENA, 256), to = memory(&f, LW_ARENA, 256);
  step(&f, &from, &f.in);
  step(&f, &to, &from);
  step(&f, &f.out, &to);
  assert_int_equal(lw_plan_memory(&f.b), AOT_OK);
  f.s.storages[to.storage].at = f.s.storages[from.storage].at;
  expect_wrong(&f, "writes over what it reads");
  f.s.storages[to.storage].taken = from.storage; /* element on element: as was planned */
  expect_right(&f);
  end(&f);
}

/* A sum in place needs what it adds to. */
static void an_update_reads_what_it_writes(void **state) {
  fixture_t f;
  int *payload;
  (void)state;
  begin(&f);
  assert_int_equal(lw_add_step(&f.b, NULL, "add", sizeof *payload, &payload), AOT_OK);
  lw_use_update(&f.b, &f.out);
  expect_wrong(&f, "step 0 of 1 (add) reads what no step has written");
  end(&f);
}

static void an_output_that_nothing_writes_is_reported(void **state) {
  fixture_t f;
  (void)state;
  begin(&f);
  const lw_tensor_t half = part(f.out, 0, 128), from = part(f.in, 0, 128);
  step(&f, &half, &from);
  expect_wrong(&f, "the outputs) reads what no step has written: byte 128 of storage 1");
  end(&f);
}

/* What a declined lowering left over: uses of steps that are no more, before those that took their numbers. */
static void records_out_of_order_are_reported(void **state) {
  fixture_t f;
  (void)state;
  begin(&f);
  const lw_tensor_t x = memory(&f, LW_ARENA, 256);
  step(&f, &x, &f.in);
  step(&f, &x, &f.in);
  f.s.n_steps = 1;
  step(&f, &f.out, &x);
  assert_int_equal(lw_plan_memory(&f.b), AOT_OK);
  f.s.n_steps = 1;
  expect_wrong(&f, "is not in the list");
  f.s.n_steps = 2;
  f.s.used[0].step = 1;
  f.s.used[2].step = 0;
  expect_wrong(&f, "recorded after a later step");
  end(&f);
}

/* Random reads and writes of parts of one storage, against a byte map. */
static void ranges_are_as_a_map_of_bytes_has_them(void **state) {
  (void)state;
  srand(5);
  for (int round = 0; round < 400; round++) {
    fixture_t f;
    uint8_t is_written[256] = {0};
    int is_right = 1;
    begin(&f);
    const lw_tensor_t x = memory(&f, LW_ARENA, 256), whole = f.in;
    for (int k = 0; k < 12 && is_right; k++) {
      const int64_t at = rand() % 200, n = 1 + rand() % 56;
      const lw_tensor_t some = part(x, at, n), other = part(whole, at, n), to = part(f.out, at, n);
      const int reads = rand() % 4 == 0;
      if (reads) step(&f, &to, &some);
      else step(&f, &some, &other);
      for (int64_t i = at; i < at + n; i++) {
        is_right &= !reads || is_written[i];
        is_written[i] |= !reads;
      }
    }
    step(&f, &f.out, &f.in);
    assert_int_equal(lw_plan_memory(&f.b), AOT_OK);
    assert_int_equal(lw_check_schedule(&f.b), is_right ? AOT_OK : AOT_E_INTERNAL);
    end(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_before_it_is_read_is_right),
      cmocka_unit_test(what_is_not_written_yet_is_reported),
      cmocka_unit_test(memory_that_is_taken_too_early_is_reported),
      cmocka_unit_test(an_update_reads_what_it_writes),
      cmocka_unit_test(an_output_that_nothing_writes_is_reported),
      cmocka_unit_test(records_out_of_order_are_reported),
      cmocka_unit_test(ranges_are_as_a_map_of_bytes_has_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
