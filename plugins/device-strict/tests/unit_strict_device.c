/* The strict device by its table, as a host sees it. */
#include "strict_device.h"

#include <aot/inline.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char told[1024]; /* the last diagnostic */

static aot_status_t AOT_CALL diag(const aot_host_t *host, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)host, (void)ctx;
  snprintf(told, sizeof told, "%.*s [%.*s]", (int)d->message.size, d->message.data, (int)d->code.size, d->code.data);
  return AOT_OK;
}

typedef struct fixture {
  const aot_device_t *d;
  const aot_ext_host_work_t *work;
  aot_queue_t *one, *two;
  aot_timeline_t *t;
} fixture_t;

static fixture_t *begin_with(const sd_options_t *options) {
  const aot_host_t host = {.head = {.struct_size = sizeof host}, .diag = diag};
  fixture_t *w = calloc(1, sizeof *w);
  w->d = &sd_device_create(&host, options)->table;
  w->work = aot_ext(&w->d->head, AOT_EXT_HOST_WORK);
  told[0] = 0;
  assert_int_equal(w->d->queue_create(w->d, NULL, AOT_QUEUE_COPY, &w->one), AOT_OK);
  assert_int_equal(w->d->queue_create(w->d, NULL, AOT_QUEUE_COMPUTE, &w->two), AOT_OK);
  assert_int_equal(w->d->timeline_create(w->d, NULL, &w->t), AOT_OK);
  return w;
}

static fixture_t *begin(uint64_t seed) { return begin_with(&(sd_options_t){.seed = seed, .takes_host_work = 1}); }

static void end(fixture_t *w) {
  w->d->head.destroy(&w->d->head);
  free(w);
}

static aot_buffer_t alloc(fixture_t *w, uint64_t nbytes) {
  aot_buffer_t b;
  assert_int_equal(w->d->alloc(w->d, NULL, nbytes, &b), AOT_OK);
  assert_int_equal(b.nbytes, nbytes);
  assert_int_equal(b.address % SD_ALIGN, 0);
  return b;
}

static aot_point_t at(const fixture_t *w, uint64_t value) { return (aot_point_t){w->t, value}; }
static aot_status_t wait_for(fixture_t *w, uint64_t value) {
  return w->d->wait_host(w->d, NULL, at(w, value), UINT64_MAX);
}

/* ---- order ---- */

static void queues_run_in_order_and_late(void **state) {
  fixture_t *w = begin(1);
  const aot_buffer_t b = alloc(w, 100), c = alloc(w, 100);
  char from[100], to[100] = {0};
  (void)state;
  memset(from, 'a', sizeof from);
  assert_int_equal(w->d->write(w->d, NULL, w->one, b, from), AOT_OK);
  assert_int_equal(w->d->signal(w->d, NULL, w->one, at(w, 1)), AOT_OK);
  assert_int_equal(w->d->wait(w->d, NULL, w->two, at(w, 1)), AOT_OK);
  assert_int_equal(w->d->copy(w->d, NULL, w->two, c, b.address), AOT_OK);
  assert_int_equal(w->d->fill(w->d, NULL, w->two, (aot_buffer_t){c.address + 90, 10}, 'z'), AOT_OK);
  assert_int_equal(w->d->read(w->d, NULL, w->two, to, c), AOT_OK);
  assert_int_equal(w->d->signal(w->d, NULL, w->two, at(w, 2)), AOT_OK);
  memset(from, 'b', sizeof from); /* the host's memory is borrowed: what runs late sees it */
  assert_int_equal(to[0], 0);
  assert_int_equal(wait_for(w, 2), AOT_OK);
  assert_int_equal(to[0], 'b');
  assert_int_equal(to[89], 'b');
  assert_int_equal(to[90], 'z');
  assert_int_equal(w->d->value(w->d, w->t), 2);
  assert_int_equal(w->d->free(w->d, NULL, b), AOT_OK);
  assert_int_equal(w->d->free(w->d, NULL, c), AOT_OK);
  end(w);
}

/* A copy that should have waited for the write: with some seeds it comes first, and finds poison. */
static void a_missing_wait_shows_as_poison(void **state) {
  int n_poison = 0, n_right = 0;
  (void)state;
  for (uint64_t seed = 0; seed < 32; seed++) {
    fixture_t *w = begin(seed);
    const aot_buffer_t b = alloc(w, sizeof(float));
    float from = 3, to = 0;
    int64_t index;
    w->d->write(w->d, NULL, w->one, b, &from);
    w->d->signal(w->d, NULL, w->one, at(w, 1));
    w->d->read(w->d, NULL, w->two, &to, b);
    assert_int_equal(wait_for(w, 1), AOT_OK);
    while (w->two->head < w->two->end) w->d->value(w->d, w->t);
    n_poison += isnan(to);
    n_right += to == 3;
    sd_poison(&index, sizeof index);
    assert_true(index > INT64_C(1) << 60);
    end(w);
  }
  assert_true(n_poison > 0);
  assert_true(n_right > 0);
  assert_int_equal(n_poison + n_right, 32);
}

static void a_wait_that_nobody_ends_fails_at_once(void **state) {
  fixture_t *w = begin(0);
  aot_timeline_t *other;
  (void)state;
  assert_int_equal(w->d->timeline_create(w->d, NULL, &other), AOT_OK);
  assert_int_equal(w->d->signal_host(w->d, NULL, at(w, 3)), AOT_OK);
  assert_int_equal(wait_for(w, 5), AOT_E_UNAVAILABLE);
  assert_string_equal(told, "timeline 1 is at 3, and nobody raises it any more to 5 [strict.wait]");
  assert_int_equal(w->d->wait(w->d, NULL, w->two, (aot_point_t){other, 7}), AOT_OK);
  assert_int_equal(w->d->signal(w->d, NULL, w->two, at(w, 5)), AOT_OK);
  assert_int_equal(wait_for(w, 5), AOT_E_UNAVAILABLE);
  assert_string_equal(
      told, "timeline 1 is at 3, and nobody raises it any more to 5; queue 2 waits for 7 of timeline 2, which is at 0 "
            "[strict.wait]");
  /* a millisecond for another thread */
  assert_int_equal(w->d->wait_host(w->d, NULL, at(w, 5), 1000000), AOT_E_UNAVAILABLE);
  assert_non_null(strstr(told, "was not raised in time to 5"));
  assert_int_equal(w->d->signal_host(w->d, NULL, (aot_point_t){other, 7}), AOT_OK);
  assert_int_equal(wait_for(w, 5), AOT_OK);
  end(w);
}

static void *raise_later(void *self) {
  fixture_t *w = self;
  usleep(20000);
  assert_int_equal(w->d->signal_host(w->d, NULL, at(w, 1)), AOT_OK);
  return (void *)(intptr_t)w->d->wait_host(w->d, NULL, at(w, 2), UINT64_C(60) * 1000000000u);
}

/* Another thread raises what a queue waits for; both threads let the queue continue. */
static void a_wait_with_a_limit_waits_for_other_threads(void **state) {
  fixture_t *w = begin(0);
  pthread_t other;
  void *answer;
  (void)state;
  assert_int_equal(w->d->wait(w->d, NULL, w->one, at(w, 1)), AOT_OK);
  assert_int_equal(w->d->signal(w->d, NULL, w->one, at(w, 2)), AOT_OK);
  assert_int_equal(pthread_create(&other, NULL, raise_later, w), 0);
  assert_int_equal(w->d->wait_host(w->d, NULL, at(w, 2), UINT64_C(60) * 1000000000u), AOT_OK);
  assert_int_equal(pthread_join(other, &answer), 0);
  assert_int_equal((intptr_t)answer, AOT_OK);
  end(w);
}

/* ---- failures ---- */

typedef struct step {
  fixture_t *w;
  aot_status_t answer, before;
  int n_calls;
  aot_buffer_t touched, had;
} step_t;

static aot_status_t AOT_CALL do_step(void *self, aot_status_t before) {
  step_t *s = self;
  s->n_calls++;
  s->before = before;
  if (before != AOT_OK) return before;
  if (s->touched.nbytes) memset((void *)(uintptr_t)s->touched.address, 'w', (size_t)s->touched.nbytes);
  if (s->had.nbytes) { /* memory that work has while it runs is its own at once */
    assert_int_equal(s->w->d->alloc(s->w->d, NULL, s->had.nbytes, &s->had), AOT_OK);
    memset((void *)(uintptr_t)s->had.address, 'h', (size_t)s->had.nbytes);
  }
  return s->answer;
}

static aot_status_t enqueue(fixture_t *w, aot_queue_t *q, step_t *s) {
  return w->work->enqueue(w->work, NULL, q, do_step, s);
}

static void a_failure_goes_to_whoever_waits_for_it(void **state) {
  fixture_t *w = begin(4);
  step_t fails = {.w = w, .answer = AOT_E_RANGE}, left_out = {.w = w}, after = {.w = w}, behind = {.w = w};
  const aot_buffer_t b = alloc(w, 8);
  char to = 0;
  (void)state;
  enqueue(w, w->one, &fails);
  enqueue(w, w->one, &left_out);
  w->d->read(w->d, NULL, w->one, &to, (aot_buffer_t){b.address, 1});
  w->d->signal(w->d, NULL, w->one, at(w, 2));
  enqueue(w, w->one, &after);
  w->d->signal(w->d, NULL, w->one, at(w, 3));
  w->d->wait(w->d, NULL, w->two, at(w, 2));
  enqueue(w, w->two, &behind);
  w->d->signal(w->d, NULL, w->two, at(w, 4));
  assert_int_equal(wait_for(w, 4), AOT_E_RANGE);
  assert_int_equal(left_out.n_calls, 1);
  assert_int_equal(left_out.before, AOT_E_RANGE);
  assert_int_equal(behind.before, AOT_E_RANGE);
  assert_int_equal(to, 0);
  assert_int_equal(after.n_calls, 1); /* the queue continues after the signal */
  assert_int_equal(after.before, AOT_OK);
  assert_int_equal(wait_for(w, 1), AOT_E_RANGE); /* reached by the signal of 2 */
  assert_int_equal(wait_for(w, 2), AOT_E_RANGE);
  assert_int_equal(wait_for(w, 3), AOT_OK);
  end(w);
}

static void a_signal_that_is_not_higher_is_told(void **state) {
  fixture_t *w = begin(0);
  (void)state;
  assert_int_equal(w->d->signal(w->d, NULL, w->one, at(w, 2)), AOT_OK);
  assert_int_equal(w->d->signal(w->d, NULL, w->one, at(w, 2)), AOT_E_INVALID);
  assert_string_equal(told,
                      "a signal raises timeline 1 to 2, which is not higher than 2, where it is then [strict.signal]");
  assert_int_equal(w->d->signal_host(w->d, NULL, at(w, 3)), AOT_OK); /* before the queue comes to its 2 */
  told[0] = 0;
  while (w->one->head < w->one->end) w->d->value(w->d, w->t);
  assert_string_equal(told,
                      "a queue raises timeline 1 to 2, which is not higher than 3, where it is then [strict.signal]");
  assert_int_equal(w->d->signal_host(w->d, NULL, at(w, 3)), AOT_E_INVALID);
  end(w);
}

/* ---- memory ---- */

/* Does the process die of what `touch` does to the memory? */
static int traps(char *where) {
  const pid_t child = fork();
  int status;
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL); /* cmocka continues with the next test */
    signal(SIGBUS, SIG_DFL);
    *(volatile char *)where = 1;
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static aot_status_t AOT_CALL probe(void *self, aot_status_t before) {
  const aot_buffer_t *b = self;
  char *data = (char *)(uintptr_t)b->address;
  assert_false(traps(data));
  assert_false(traps(data + b->nbytes - 1));
  assert_true(traps(data + 4096)); /* 4096 bytes end at the guard page */
  assert_true(traps(data - 1));
  return before;
}

static void the_host_cannot_touch_it(void **state) {
  fixture_t *w = begin(0);
  aot_buffer_t b = alloc(w, 4096);
  (void)state;
  assert_true(traps((char *)(uintptr_t)b.address));
  w->work->enqueue(w->work, NULL, w->one, probe, &b);
  w->d->signal(w->d, NULL, w->one, at(w, 1));
  assert_int_equal(wait_for(w, 1), AOT_OK);
  assert_true(traps((char *)(uintptr_t)b.address));
  assert_int_equal(w->d->free(w->d, NULL, b), AOT_OK);
  assert_true(traps((char *)(uintptr_t)b.address));
  end(w);
}

static void work_that_writes_beside_its_buffers_fails(void **state) {
  fixture_t *w = begin(0);
  const aot_buffer_t b = alloc(w, 100);
  step_t past = {.w = w, .touched = {b.address, 101}}, before = {.w = w, .touched = {b.address - 2, 4}};
  step_t right = {.w = w, .touched = b};
  (void)state;
  enqueue(w, w->one, &past);
  w->d->signal(w->d, NULL, w->one, at(w, 1));
  assert_int_equal(wait_for(w, 1), AOT_E_RANGE);
  assert_string_equal(told, "work wrote to byte 100 of a buffer of 100 bytes [strict.overrun]");
  enqueue(w, w->one, &before);
  w->d->signal(w->d, NULL, w->one, at(w, 2));
  assert_int_equal(wait_for(w, 2), AOT_E_RANGE);
  assert_string_equal(told, "work wrote 2 bytes before the beginning of a buffer of 100 bytes [strict.overrun]");
  enqueue(w, w->one, &right);
  w->d->signal(w->d, NULL, w->one, at(w, 3));
  assert_int_equal(wait_for(w, 3), AOT_OK);
  end(w);
}

static void memory_had_during_work_is_open_in_it(void **state) {
  fixture_t *w = begin(0);
  step_t has = {.w = w, .had = {0, 5000}};
  char to[5000];
  (void)state;
  enqueue(w, w->one, &has);
  w->d->signal(w->d, NULL, w->one, at(w, 1));
  assert_int_equal(wait_for(w, 1), AOT_OK);
  assert_true(traps((char *)(uintptr_t)has.had.address));
  w->d->read(w->d, NULL, w->one, to, has.had);
  w->d->signal(w->d, NULL, w->one, at(w, 2));
  assert_int_equal(wait_for(w, 2), AOT_OK);
  assert_int_equal(to[4999], 'h');
  end(w);
}

static void memory_ends_where_the_option_says(void **state) {
  fixture_t *w = begin_with(&(sd_options_t){.takes_host_work = 1, .memory = 100});
  aot_device_info_t info = {.struct_size = sizeof info};
  const aot_buffer_t b = alloc(w, 60);
  aot_buffer_t more;
  (void)state;
  assert_int_equal(w->d->info(w->d, &info), AOT_OK);
  assert_int_equal(info.total_nbytes, 100);
  assert_int_equal(info.free_nbytes, 40);
  assert_int_equal(w->d->alloc(w->d, NULL, 41, &more), AOT_E_EXHAUSTED);
  assert_string_equal(told, "device strict has no memory for 41 bytes: 40 of its 100 are free [strict.memory]");
  assert_int_equal(w->d->free(w->d, NULL, b), AOT_OK);
  assert_int_equal(w->d->alloc(w->d, NULL, 100, &more), AOT_OK);
  end(w);
}

/* The second call is not begun; what is after it lets go, on both queues, and every point fails. */
static void a_device_that_is_lost_fails_every_point(void **state) {
  fixture_t *w = begin_with(&(sd_options_t){.takes_host_work = 1, .lose_at = 2});
  const aot_buffer_t b = alloc(w, 8);
  step_t first = {.w = w, .touched = b}, second = first, third = first;
  char to[8] = "-";
  (void)state;
  enqueue(w, w->one, &first);
  w->d->signal(w->d, NULL, w->one, at(w, 1));
  enqueue(w, w->one, &second);
  w->d->signal(w->d, NULL, w->one, at(w, 2));
  w->d->wait(w->d, NULL, w->two, at(w, 2));
  w->d->read(w->d, NULL, w->two, to, b);
  enqueue(w, w->two, &third);
  w->d->signal(w->d, NULL, w->two, at(w, 3));
  assert_int_equal(wait_for(w, 1), AOT_OK);
  assert_int_equal(wait_for(w, 3), AOT_E_DATA_LOSS);
  assert_string_equal(told, "device strict was lost when call 2 was to begin, on queue 1 [strict.lost]");
  assert_int_equal(second.before, AOT_E_DATA_LOSS);
  assert_int_equal(third.before, AOT_E_DATA_LOSS);
  assert_int_equal(to[0], '-');
  assert_int_equal(wait_for(w, 1), AOT_E_DATA_LOSS);
  assert_int_equal(w->d->read(w->d, NULL, w->two, to, b), AOT_E_DATA_LOSS);
  assert_string_equal(told, "device strict is lost: what was on it is gone [strict.lost]");
  assert_int_equal(w->d->alloc(w->d, NULL, 1, &(aot_buffer_t){0, 0}), AOT_E_DATA_LOSS);
  assert_int_equal(w->d->free(w->d, NULL, b), AOT_OK);
  assert_int_equal(w->d->queue_destroy(w->d, NULL, w->one), AOT_OK); /* nothing is left on it */
  end(w);
}

static void bad_use_is_told(void **state) {
  fixture_t *w = begin(0);
  const aot_buffer_t b = alloc(w, 10);
  aot_device_info_t info = {.struct_size = sizeof info};
  char bytes[16] = {0};
  (void)state;
  assert_int_equal(w->d->info(w->d, &info), AOT_OK);
  assert_int_equal(info.flags & AOT_DEVICE_HOST_VISIBLE, 0);
  assert_int_equal(w->d->write(w->d, NULL, w->one, (aot_buffer_t){b.address + 4, 7}, bytes), AOT_E_RANGE);
  assert_string_equal(told,
                      "a write of 7 bytes, from byte 4 of a buffer of 10 bytes, goes past its end [strict.range]");
  assert_int_equal(w->d->read(w->d, NULL, w->one, bytes, (aot_buffer_t){64, 4}), AOT_E_RANGE);
  assert_string_equal(told, "a read of 4 bytes at 0x40 is in no buffer of the device [strict.range]");
  assert_int_equal(w->d->copy(w->d, NULL, w->one, (aot_buffer_t){b.address, 6}, b.address + 4), AOT_E_INVALID);
  assert_int_equal(w->d->free(w->d, NULL, (aot_buffer_t){b.address, 9}), AOT_E_INVALID);
  assert_non_null(strstr(told, "is no buffer of the device"));
  assert_int_equal(w->d->fill(w->d, NULL, w->one, b, 0), AOT_OK);
  assert_int_equal(w->d->free(w->d, NULL, b), AOT_E_PRECONDITION);
  assert_string_equal(told, "a buffer of 10 bytes is to be freed, and items on queues still use it: 1 [strict.free]");
  assert_int_equal(w->d->signal(w->d, NULL, w->one, at(w, 1)), AOT_OK);
  assert_int_equal(w->d->timeline_destroy(w->d, NULL, w->t), AOT_E_PRECONDITION);
  assert_int_equal(wait_for(w, 1), AOT_OK);
  assert_int_equal(w->d->free(w->d, NULL, b), AOT_OK);
  assert_int_equal(w->d->free(w->d, NULL, b), AOT_E_INVALID);
  assert_int_equal(w->d->alloc(w->d, NULL, UINT64_MAX / 2, &(aot_buffer_t){0, 0}), AOT_E_EXHAUSTED);
  end(w);
}

static void work_left_on_a_queue_lets_go(void **state) {
  fixture_t *w = begin(0);
  step_t left = {.w = w}, last = {.w = w};
  (void)state;
  enqueue(w, w->one, &left);
  assert_int_equal(w->d->queue_destroy(w->d, NULL, w->one), AOT_E_PRECONDITION);
  assert_string_equal(told, "queue 1 was destroyed with items on it: 1 [strict.queue]");
  assert_int_equal(left.n_calls, 1);
  assert_int_equal(left.before, AOT_E_CANCELLED);
  assert_int_equal(enqueue(w, w->one, &last), AOT_E_INVALID); /* called all the same */
  assert_int_equal(last.n_calls, 1);
  enqueue(w, w->two, &last);
  end(w);
  assert_int_equal(last.n_calls, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(queues_run_in_order_and_late),
      cmocka_unit_test(a_missing_wait_shows_as_poison),
      cmocka_unit_test(a_wait_that_nobody_ends_fails_at_once),
      cmocka_unit_test(a_wait_with_a_limit_waits_for_other_threads),
      cmocka_unit_test(a_failure_goes_to_whoever_waits_for_it),
      cmocka_unit_test(a_signal_that_is_not_higher_is_told),
      cmocka_unit_test(the_host_cannot_touch_it),
      cmocka_unit_test(work_that_writes_beside_its_buffers_fails),
      cmocka_unit_test(memory_had_during_work_is_open_in_it),
      cmocka_unit_test(memory_ends_where_the_option_says),
      cmocka_unit_test(a_device_that_is_lost_fails_every_point),
      cmocka_unit_test(bad_use_is_told),
      cmocka_unit_test(work_left_on_a_queue_lets_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
