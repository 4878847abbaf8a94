/* Collectives continue while their rank computes: under_way.h on a collective queue of the host's device, over a
 * communicator whose ranks are as late as the test wants. What runs in addition to what is reported by the order of
 * events. */
#include "under_way.h"

#include <aot/host_backend.h>
#include <aot/inline.h>
#include <device/host_device.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

enum { STARTED = 1, COMPUTED, COLLECTED, AWAITED };

typedef struct fixture {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int is_open; /* the other rank has come */
  int events[16];
  int n_events, fails;
  aot_collective_t c;
} fixture_t;

static void happens(fixture_t *w, int event) {
  pthread_mutex_lock(&w->lock);
  w->events[w->n_events++] = event;
  pthread_mutex_unlock(&w->lock);
}

/* Another rank has the same tensor as this one, and comes when the gate is open; nothing waits for ever. */
static aot_status_t AOT_CALL do_collect(void *self, aot_status_t before) {
  fixture_t *w = self;
  struct timespec end;
  int late = 0;
  if (before != AOT_OK) return before;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  pthread_mutex_lock(&w->lock);
  while (!w->is_open && !late) late = pthread_cond_timedwait(&w->changed, &w->lock, &end) != 0;
  w->events[w->n_events++] = COLLECTED;
  pthread_mutex_unlock(&w->lock);
  if (late || w->fails) return AOT_E_UNAVAILABLE;
  const char *from = (const char *)(uintptr_t)w->c.from.address;
  for (uint64_t at = 0; at + w->c.from.nbytes <= w->c.to.nbytes; at += w->c.from.nbytes)
    memcpy((char *)(uintptr_t)w->c.to.address + at, from, (size_t)w->c.from.nbytes);
  return AOT_OK;
}

static aot_status_t AOT_CALL collect(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *g,
                                     const aot_collective_t *what) {
  fixture_t *w = c->head.self;
  const aot_ext_host_work_t *work = aot_host_work(what->device);
  (void)g;
  w->c = *what;
  return work->enqueue(work, ctx, what->queue, do_collect, w);
}

static void make(fixture_t *w, aot_communicator_t *c, fs_under_way_t *u) {
  memset(w, 0, sizeof *w);
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->changed, NULL);
  *c = (aot_communicator_t){.head = {.struct_size = sizeof *c, .self = w}, .collect = collect};
  const aot_run_ranks_t ranks = {
      .struct_size = sizeof ranks, .n_ranks = 2, .communicator = c, .device = aoth_host_device()};
  fs_under_way_init(u, &ranks);
}

static void end(fixture_t *w, fs_under_way_t *u) {
  fs_under_way_deinit(u);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
}

static void open_gate(fixture_t *w) {
  pthread_mutex_lock(&w->lock);
  w->is_open = 1;
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

static const aot_collective_t gather = {
    .struct_size = sizeof gather, .kind = AOT_COLLECTIVE_ALL_GATHER, .dtype = AOT_I32};

/* The other rank comes only when this one has computed after its start: a collective that is done where it was started
 * would never be. */
static void goes_on_beside_what_is_computed(void **state) {
  (void)state;
  fixture_t w;
  aot_communicator_t c;
  fs_under_way_t u;
  const int32_t a[2] = {1, 2}, b[1] = {7};
  int32_t all_a[4] = {0}, all_b[2] = {0};
  const fs_part_t parts[] = {{a, all_a, sizeof a}, {b, all_b, sizeof b}};
  make(&w, &c, &u);
  assert_int_equal(fs_start(&u, NULL, 2, &gather, parts, 2), AOT_OK);
  happens(&w, STARTED);
  happens(&w, COMPUTED);
  open_gate(&w);
  assert_int_equal(fs_await(&u, all_a), AOT_OK);
  happens(&w, AWAITED);
  assert_int_equal(w.n_events, 4);
  for (int i = 0; i < 4; i++) assert_int_equal(w.events[i], STARTED + i);
  assert_int_equal(fs_await(&u, all_b), AOT_OK); /* went with it */
  assert_memory_equal(all_a, ((int32_t[]){1, 2, 1, 2}), sizeof all_a);
  assert_memory_equal(all_b, ((int32_t[]){7, 7}), sizeof all_b);
  assert_int_equal(fs_await(&u, all_b), AOT_E_NOT_FOUND);
  end(&w, &u);
}

/* What is started by hand ends before the memory may go, also when it fails. */
static void failures_are_told_to_who_waits(void **state) {
  (void)state;
  fixture_t w;
  aot_communicator_t c;
  fs_under_way_t u;
  const int32_t a[1] = {1};
  int32_t all[2] = {0};
  const fs_part_t part = {a, all, sizeof a};
  make(&w, &c, &u);
  w.fails = 1;
  assert_int_equal(fs_start(&u, NULL, 2, &gather, &part, 1), AOT_OK);
  open_gate(&w);
  assert_int_equal(fs_await(&u, all), AOT_E_UNAVAILABLE);
  w.fails = 0;
  assert_int_equal(fs_start(&u, NULL, 2, &gather, &part, 1), AOT_OK);
  assert_int_equal(fs_await_all(&u), AOT_OK); /* which takes nothing from who waits for it after */
  assert_int_equal(all[1], 1);
  assert_int_equal(fs_await(&u, all), AOT_OK);
  assert_int_equal(fs_start(&u, NULL, 2, &gather, &part, 1), AOT_OK);
  fs_settle(&u);
  assert_int_equal(fs_await(&u, all), AOT_E_NOT_FOUND);
  end(&w, &u);
}

/* As many tensors as a large model has parameters go together, twice over the same memory, and are waited for in the
 * order in which they went. Looking for each among all of them would take minutes. */
static void many_go_together(void **state) {
  (void)state;
  enum { N = 300000 };
  fixture_t w;
  aot_communicator_t c;
  fs_under_way_t u;
  int32_t *from = calloc(N, sizeof *from), *to = calloc(2 * N, sizeof *to);
  fs_part_t *parts = calloc(N, sizeof *parts);
  assert_true(from && to && parts);
  make(&w, &c, &u);
  for (int i = 0; i < N; i++) parts[i] = (fs_part_t){&from[i], &to[2 * i], i % 7 == 3 ? 0 : sizeof *from};
  open_gate(&w);
  for (int32_t turn = 1; turn <= 2; turn++) {
    for (int32_t i = 0; i < N; i++) from[i] = turn * i;
    assert_int_equal(fs_start(&u, NULL, 2, &gather, parts, N), AOT_OK);
    int n_wrong = 0;
    for (int32_t i = 0; i < N; i++) {
      const aot_status_t status = fs_await(&u, &to[2 * i]);
      n_wrong += status != (parts[i].nbytes ? AOT_OK : AOT_E_NOT_FOUND); /* nothing is waited for that has no bytes */
      if (parts[i].nbytes) n_wrong += to[2 * i] != turn * i || to[2 * i + 1] != turn * i;
    }
    assert_int_equal(n_wrong, 0);
    assert_int_equal(fs_await(&u, to), AOT_E_NOT_FOUND);
  }
  end(&w, &u);
  free(from);
  free(to);
  free(parts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(goes_on_beside_what_is_computed),
      cmocka_unit_test(failures_are_told_to_who_waits),
      cmocka_unit_test(many_go_together),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
