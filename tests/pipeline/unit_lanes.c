/* Queues of two devices that the host cannot touch, and one on the host: what crosses from one to another keeps its
 * order, failures with it; and without crossings the order is another, so that these tests can fail. */
#include "session_world.h"

#include <device/host_device.h>
#include <device/multi_queue.h>
#include <sandbox/call.h>
#include <config/options.h>
#include <sandbox/session.h>

enum { N_LANES = 3, HOST = 2, N_WORKS = 6 };

typedef struct lanes_world {
  aoth_instance_t units[HOST];
  aoth_queue_t queues[N_LANES];
  aoth_multi_queue_t lanes;
  aot_ctx_t *ctx;
  char order[16]; /* of works, as they were done: "ABCD" */
  size_t n_done;
  int failing; /* the work of this number fails; -1: none does */
} lanes_world_t;

/* One work, on its way through a queue. */
typedef struct report_slot {
  lanes_world_t *w;
  uint32_t number, lane;
} crash_report_t;

static aot_status_t done(void *self, aot_status_t before) {
  crash_report_t *l = self;
  lanes_world_t *w = l->w;
  const uint32_t number = l->number;
  free(l);
  if (before != AOT_OK) return before;
  if ((int)number == w->failing) return aoth_report_error(w->ctx, AOT_E_RANGE, "test.work", "work %u fails", number);
  w->order[w->n_done++] = (char)('A' + number);
  return AOT_OK;
}

static aot_status_t enqueue(void *self, uint32_t number) {
  crash_report_t *l = self;
  const aoth_lane_t *lane = &l->w->lanes.lane[l->lane];
  (void)number;
  return lane->host_work->enqueue(lane->host_work, l->w->ctx, lane->queue->queue, done, l);
}

static void put(lanes_world_t *w, uint32_t lane, uint32_t number) {
  crash_report_t *l = malloc(sizeof *l);
  *l = (crash_report_t){w, number, lane};
  assert_int_equal(aoth_lanes_put(&w->lanes, lane, enqueue, l, number), AOT_OK);
}

static void begin(lanes_world_t *w, fixture_t *world, int64_t seed, int host_is_first) {
  aoth_session_t *s = world->session;
  *w = (lanes_world_t){.ctx = &s->ctx, .failing = -1};
  for (uint32_t i = 0; i < HOST; i++) {
    aoth_stage_t device = {.use = "strict", .name = "strict"};
    assert_int_equal(aoth_stage_of_unit(s, "strict", "device/1", NULL, &device), AOT_OK);
    aoth_option_set(&device, "seed", (aot_opt_value_t){.i = seed + i});
    aoth_option_set(&device, "ahead", (aot_opt_value_t){.i = 4});
    assert_int_equal(aoth_instance_create(s, &device, &w->units[i]), AOT_OK);
    assert_int_equal(aoth_queue_init(&w->queues[i], w->ctx, w->units[i].self), AOT_OK);
  }
  assert_int_equal(aoth_queue_init(&w->queues[HOST], w->ctx, aoth_host_device()), AOT_OK);
  for (uint32_t i = 0; i < N_LANES; i++)
    assert_int_equal(aoth_lanes_add(&w->lanes, w->ctx, &w->queues[host_is_first ? N_LANES - 1 - i : i]), AOT_OK);
}

static void end(lanes_world_t *w, fixture_t *world) {
  for (uint32_t i = 0; i < N_LANES; i++) assert_int_equal(aoth_queue_idle(&w->queues[i]), AOT_OK);
  aoth_lanes_deinit(&w->lanes);
  for (uint32_t i = 0; i < N_LANES; i++) assert_int_equal(aoth_queue_deinit(&w->queues[i]), AOT_OK);
  for (uint32_t i = 0; i < HOST; i++) aoth_instance_destroy(world->session, NULL, &w->units[i]);
}

/* A call: one work after the other, on lanes 0, 1, 2, 0, 1, 2. */
static aot_status_t call(lanes_world_t *w, int crosses) {
  aoth_queue_t *first = w->lanes.lane[0].queue;
  aot_point_t point;
  memset(w->order, 0, sizeof w->order);
  w->n_done = 0;
  AOT_TRY(aoth_queue_next(first, &point));
  assert_int_equal(aoth_lanes_begin(&w->lanes, 7), AOT_OK);
  for (uint32_t i = 0; i < N_WORKS; i++) {
    if (i && crosses) assert_int_equal(aoth_lanes_cross(&w->lanes, (i - 1) % N_LANES, i % N_LANES), AOT_OK);
    put(w, i % N_LANES, i);
  }
  assert_int_equal(aoth_lanes_end(&w->lanes, 7, AOT_OK), AOT_OK);
  assert_int_equal(first->device->signal(first->device, w->ctx, first->queue, point), AOT_OK);
  aoth_queue_passed(first);
  return aoth_queue_wait(first, point.value);
}

static void what_crosses_keeps_its_order(void **state) {
  int n_others = 0;
  for (int host_is_first = 0; host_is_first < 2; host_is_first++)
    for (int64_t seed = 0; seed < 8; seed++) {
      lanes_world_t w;
      begin(&w, *state, seed, host_is_first);
      for (int k = 0; k < 3; k++) {
        assert_int_equal(call(&w, 1), AOT_OK);
        assert_string_equal(w.order, "ABCDEF");
      }
      assert_int_equal(call(&w, 0), AOT_OK); /* all of it is done all the same .. */
      assert_int_equal(strlen(w.order), N_WORKS);
      n_others += strcmp(w.order, "ABCDEF") != 0;
      end(&w, *state);
    }
  assert_true(n_others > 0); /* .. but in another order */
}

static void failures_cross_and_end_with_the_call(void **state) {
  for (int host_is_first = 0; host_is_first < 2; host_is_first++)
    for (int failing = 0; failing < N_WORKS; failing++) {
      lanes_world_t w;
      begin(&w, *state, failing, host_is_first);
      w.failing = failing;
      assert_int_equal(call(&w, 1), AOT_E_RANGE);
      char before[N_WORKS + 1] = "ABCDEF";
      before[failing] = '\0';
      assert_string_equal(w.order, before); /* what follows it was left out, on every lane */
      w.failing = -1;
      assert_int_equal(call(&w, 1), AOT_OK);
      assert_string_equal(w.order, "ABCDEF");
      end(&w, *state);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_crosses_keeps_its_order, setup, teardown),
      cmocka_unit_test_setup_teardown(failures_cross_and_end_with_the_call, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
