/* Transactions of lowerings: what is dropped leaves no trace in any record, whatever nests in it. */
#include "kit/lowering/transaction.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a schedule by hand ---- */

typedef struct self {
  uint64_t n, begins; /* what lowerings change */
  uint64_t constant;
} self_t;

typedef struct fixture {
  lw_target_t target;
  lw_machine_t machine;
  lw_schedule_t s;
  lw_error_t error;
  self_t self;
  lw_value_t values[4];
  lw_build_t b;
} fixture_t;

static void begin(fixture_t *f) {
  memset(f, 0, sizeof *f);
  f->target.self_nbytes = offsetof(self_t, constant);
  f->machine.target = &f->target;
  f->machine.self = &f->self;
  f->b = (lw_build_t){
      .out = &f->s, .machine = &f->machine, .pool = &f->s.pool, .error = &f->error, .values = f->values, .n_values = 4};
  for (int k = 0; k < 4; k++) f->values[k].t.storage = LW_NONE;
}

static void end(fixture_t *f) { lw_schedule_deinit(&f->s); }

static lw_tensor_t memory(fixture_t *f, int64_t nbytes) {
  lw_tensor_t t;
  assert_int_equal(lw_scratch(&f->b, (uint64_t)nbytes, &t), AOT_OK);
  return t;
}

/* A step that writes `to` of what `from` has. */
static void step(fixture_t *f, const lw_tensor_t *to, const lw_tensor_t *from) {
  int *payload;
  assert_int_equal(lw_add_step(&f->b, NULL, "step", sizeof *payload, &payload), AOT_OK);
  lw_use_read_only(&f->b, from, 0);
  lw_use(&f->b, to);
}

/* ---- everything that a lowering may have done before it declines ---- */

/* Steps that read old storages and write new ones, values of the node, counters, what the target keeps. */
static aot_status_t work(fixture_t *f, aot_status_t status) {
  const lw_tensor_t made = memory(f, 640), again = memory(f, 64), old = {.dtype = AOT_U8, .storage = 0};
  step(f, &made, &old);
  step(f, &again, &made);
  step(f, &old, &again);
  lw_count_loop(&f->b);
  lw_depends_on_run(&f->b);
  f->s.n_fallback++;
  f->s.copied_nbytes += 7;
  f->b.node = (const aot_snap_node_t *)(const void *)f; /* only its address matters */
  lw_set_value(&f->b, &f->values[1], &made);
  lw_set_value(&f->b, &f->values[1], &again);
  lw_save(&f->b, &f->values[2].number, sizeof f->values[2].number);
  f->values[2].number = 5;
  f->self.n += 3;
  return status;
}

typedef struct record {
  lw_schedule_t s;
  lw_step_t steps[64];
  lw_used_t used[64];
  lw_storage_t storages[64];
  lw_value_t values[4];
  self_t self;
  const aot_snap_node_t *node;
} record_t;

static void take_record(const fixture_t *f, record_t *out) {
  memset(out, 0, sizeof *out);
  out->s = f->s;
  out->s.pool = (lw_pool_t){0}; /* it keeps what was allocated; arrays may have moved */
  out->s.undo = (lw_undo_t){0};
  out->s.steps = NULL, out->s.used = NULL, out->s.storages = NULL;
  out->s.step_capacity = out->s.used_capacity = out->s.storage_capacity = 0;
  assert_true(f->s.n_steps <= 64 && f->s.n_used <= 64 && f->s.n_storages <= 64);
  if (f->s.n_steps) memcpy(out->steps, f->s.steps, f->s.n_steps * sizeof *f->s.steps);
  if (f->s.n_used) memcpy(out->used, f->s.used, f->s.n_used * sizeof *f->s.used);
  if (f->s.n_storages) memcpy(out->storages, f->s.storages, f->s.n_storages * sizeof *f->s.storages);
  memcpy(out->values, f->values, sizeof out->values);
  out->self = f->self;
  out->node = f->b.node;
}

static void assert_same(const fixture_t *f, const record_t *before) {
  static record_t now;
  take_record(f, &now);
  assert_memory_equal(&now, before, sizeof now);
}

/* ---- tests ---- */

static void a_declined_lowering_leaves_no_trace(void **state) {
  static record_t before;
  const aot_status_t declines[] = {LW_DECLINED, LW_SPLIT};
  (void)state;
  for (int k = 0; k < 2; k++) {
    fixture_t f;
    lw_transaction_t t;
    begin(&f);
    const lw_tensor_t x = memory(&f, 64), y = memory(&f, 64);
    step(&f, &y, &x);
    take_record(&f, &before);
    lw_begin(&f.b, &t);
    assert_int_equal(lw_end(&f.b, &t, work(&f, declines[k])), declines[k]);
    assert_same(&f, &before);
    assert_int_equal(f.s.undo.size, 0);
    step(&f, &x, &y); /* and what comes after it is numbered as if it had not been */
    assert_int_equal(f.s.used[f.s.n_used - 1].step, 1);
    assert_int_equal(f.s.storages[x.storage].last, 1);
    end(&f);
  }
}

static void a_committed_lowering_stays(void **state) {
  static record_t without;
  fixture_t f, plain;
  lw_transaction_t t;
  (void)state;
  begin(&plain);
  memory(&plain, 64);
  work(&plain, AOT_OK);
  begin(&f);
  memory(&f, 64);
  lw_begin(&f.b, &t);
  assert_int_equal(lw_end(&f.b, &t, work(&f, AOT_OK)), AOT_OK);
  take_record(&plain, &without);
  for (uint32_t k = 0; k < f.s.n_steps; k++) without.steps[k].payload = f.s.steps[k].payload;
  without.node = f.b.node;
  assert_same(&f, &without);
  end(&plain);
  end(&f);
}

/* The inner one is done, the outer one declines after it; and the other way round. */
static void what_nests_is_dropped_with_what_it_is_in(void **state) {
  static record_t before, middle;
  fixture_t f;
  lw_transaction_t outer, inner;
  (void)state;
  begin(&f);
  memory(&f, 64);
  take_record(&f, &before);
  lw_begin(&f.b, &outer);
  work(&f, AOT_OK);
  take_record(&f, &middle);
  lw_begin(&f.b, &inner);
  assert_int_equal(lw_end(&f.b, &inner, work(&f, LW_DECLINED)), LW_DECLINED);
  assert_same(&f, &middle);
  lw_begin(&f.b, &inner);
  assert_int_equal(lw_end(&f.b, &inner, work(&f, AOT_OK)), AOT_OK);
  assert_int_equal(f.self.n, 6);
  assert_int_equal(lw_end(&f.b, &outer, LW_DECLINED), LW_DECLINED);
  assert_same(&f, &before);
  assert_int_equal(f.s.undo.n_open, 0);
  end(&f);
}

/* Values of a region are freed before the transaction around it ends. */
static void values_of_a_region_are_not_written_when_it_is_gone(void **state) {
  fixture_t f;
  lw_transaction_t outer, inner;
  (void)state;
  begin(&f);
  const lw_tensor_t x = memory(&f, 64);
  lw_begin(&f.b, &outer);
  const lw_build_t outside = f.b;
  lw_value_t *own = calloc(1, sizeof *own);
  assert_non_null(own);
  f.b.depth++;
  f.b.values = own;
  lw_begin(&f.b, &inner);
  lw_set_value(&f.b, own, &x);
  assert_int_equal(lw_end(&f.b, &inner, AOT_OK), AOT_OK);
  lw_begin(&f.b, &inner);
  lw_set_value(&f.b, own, &(lw_tensor_t){.rank = 2});
  assert_int_equal(lw_end(&f.b, &inner, LW_DECLINED), LW_DECLINED);
  assert_int_equal(own->t.rank, x.rank); /* while it is there it is restored */
  free(own);
  f.b = outside;
  assert_int_equal(lw_end(&f.b, &outer, LW_DECLINED), LW_DECLINED);
  end(&f);
}

/* The message names the node that failed, and the count that bounds damaged programs continues. */
static void a_failure_keeps_the_node_that_it_is_of(void **state) {
  const aot_snap_node_t *const wrong = (const aot_snap_node_t *)(const void *)&state;
  fixture_t f;
  lw_transaction_t t;
  begin(&f);
  memory(&f, 64);
  lw_begin(&f.b, &t);
  work(&f, AOT_OK);
  f.b.node = wrong;
  f.b.n_regions = 3;
  assert_int_equal(lw_end(&f.b, &t, AOT_E_RANGE), AOT_E_RANGE);
  assert_ptr_equal(f.b.node, wrong);
  assert_int_equal(f.b.n_regions, 3);
  assert_int_equal(f.s.n_steps, 0);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_declined_lowering_leaves_no_trace),
      cmocka_unit_test(a_committed_lowering_stays),
      cmocka_unit_test(what_nests_is_dropped_with_what_it_is_in),
      cmocka_unit_test(values_of_a_region_are_not_written_when_it_is_gone),
      cmocka_unit_test(a_failure_keeps_the_node_that_it_is_of),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
