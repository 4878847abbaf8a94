/* Rules of devices: the order that queues keep, and timelines, by which they wait for each other and the host for
 * them. */
#include <sdk/conform/conform_tried_device.h>

#include <pthread.h>
#include <time.h>

#define MILLISECOND UINT64_C(1000000)

/* ---- 704: order ---- */

#define N_ROUNDS 64u

static void keeps_order(aoth_tried_t *d) {
  uint8_t to[N_ROUNDS], wanted[N_ROUNDS];
  aot_buffer_t one, all;
  if (!aoth_tried_alloc(d, 1, &one) || !aoth_tried_alloc(d, N_ROUNDS, &all)) return;
  for (uint32_t i = 0; i < N_ROUNDS; i++) {
    wanted[i] = (uint8_t)(i + 1);
    if (!aoth_tried_fill(d, d->one, one, wanted[i]) ||
        !aoth_tried_copy(d, d->one, aoth_tried_part(all, i, 1), one.address))
      return;
  }
  if (aoth_tried_read(d, d->one, to, all) && aoth_tried_finish(d, d->one) &&
      aoth_tried_is_same(d, to, wanted, N_ROUNDS, "what a queue did in turn") && aoth_tried_free(d, one))
    aoth_tried_free(d, all);
}

/* One queue writes a byte, the other takes it; all of the second is put before any of the first. */
static void waits_across_queues(aoth_tried_t *d) {
  uint8_t to[N_ROUNDS], wanted[N_ROUNDS];
  aot_buffer_t one, all;
  if (!aoth_tried_alloc(d, 1, &one) || !aoth_tried_alloc(d, N_ROUNDS, &all) || !aoth_tried_fill(d, d->one, one, 255) ||
      !aoth_tried_finish(d, d->one))
    return;
  const uint64_t first = d->raised;
  for (uint32_t i = 0; i < N_ROUNDS; i++)
    if (!aoth_tried_wait(d, d->two, first + 2 * i + 1) ||
        !aoth_tried_copy(d, d->two, aoth_tried_part(all, i, 1), one.address) ||
        !aoth_tried_signal(d, d->two, first + 2 * i + 2))
      return;
  for (uint32_t i = 0; i < N_ROUNDS; i++) {
    wanted[i] = (uint8_t)(i + 1);
    if (!aoth_tried_wait(d, d->one, first + 2 * i) || !aoth_tried_fill(d, d->one, one, wanted[i]) ||
        !aoth_tried_signal(d, d->one, first + 2 * i + 1))
      return;
  }
  d->raised = first + 2 * N_ROUNDS;
  if (aoth_tried_reaches(d, d->raised) && aoth_tried_read(d, d->two, to, all) && aoth_tried_finish(d, d->two) &&
      aoth_tried_is_same(d, to, wanted, N_ROUNDS, "what one queue took from the other") && aoth_tried_free(d, one))
    aoth_tried_free(d, all);
}

/* The host's memory is read when the queue comes to it. */
static void waits_for_the_host(aoth_tried_t *d) {
  uint8_t to[8] = {0};
  void *from;
  aot_buffer_t b;
  if (!aoth_tried_alloc(d, 8, &b) || !aoth_tried_host_alloc(d, 8, &from)) return;
  aoth_tried_make_bytes(from, 8, 1);
  if (!aoth_tried_wait(d, d->one, 1) || !aoth_tried_write(d, d->one, b, from) || !aoth_tried_signal(d, d->one, 2) ||
      !aoth_tried_wait(d, d->two, 2) || !aoth_tried_read(d, d->two, to, b) || !aoth_tried_signal(d, d->two, 3))
    return;
  aoth_tried_make_bytes(from, 8, 2);
  d->raised = 3;
  if (aoth_tried_went(d, aoth_tried_signal_host(d, 1), "signal_host") && aoth_tried_reaches(d, 3) &&
      aoth_tried_is_same(d, to, from, 8, "what was written behind a wait for the host") && aoth_tried_free(d, b))
    aoth_tried_host_free(d, from, 8);
}

static void has_queues_of_all_kinds(aoth_tried_t *d) {
  static const int32_t kinds[] = {AOT_QUEUE_COMPUTE, AOT_QUEUE_COPY, AOT_QUEUE_COLLECTIVE};
  uint8_t from[100], to[100];
  aot_buffer_t b;
  aot_queue_t *q;
  if (!aoth_tried_alloc(d, sizeof from, &b)) return;
  for (uint32_t i = 0; i < 3; i++) {
    aoth_tried_make_bytes(from, sizeof from, i);
    if (!aoth_tried_went(d, d->f->queue_create(d->self, &d->ctx, kinds[i], &q), "queue_create") ||
        !aoth_tried_write(d, q, b, from) || !aoth_tried_read(d, q, to, b) || !aoth_tried_finish(d, q) ||
        !aoth_tried_is_same(d, to, from, sizeof from, "what went by a queue of its own") ||
        !aoth_tried_went(d, d->f->queue_destroy(d->self, &d->ctx, q), "queue_destroy"))
      return;
  }
  aoth_tried_free(d, b);
}

void aoth_rule_order(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {
      {"128 items of one queue", keeps_order},
      {"two queues that wait for each other, waits put before their signals", waits_across_queues},
      {"queues that wait for the host", waits_for_the_host},
      {"a queue of each kind", has_queues_of_all_kinds}};
  aoth_tried_run(t, steps, 4);
}

/* ---- 705: timelines ---- */

static int is_value(aoth_tried_t *d, uint64_t wanted) {
  const uint64_t value = d->f->value(d->self, d->line);
  if (value != wanted)
    aoth_trial_end(d->t, AOTH_CONFORM_FAILED, "a timeline stands at %llu, not at %llu", (unsigned long long)value,
                   (unsigned long long)wanted);
  return value == wanted;
}

static void begins_at_zero(aoth_tried_t *d) {
  if (is_value(d, 0) && aoth_tried_went(d, aoth_tried_wait_host(d, 0, 0), "wait_host for what is reached")) {
    if (aoth_tried_went(d, aoth_tried_signal_host(d, 7), "signal_host") && is_value(d, 7) && aoth_tried_reaches(d, 5) &&
        aoth_tried_reaches(d, 7))
      aoth_tried_went(d, aoth_tried_wait_host(d, 7, UINT64_MAX), "wait_host without a limit for what is reached");
  }
}

static void limits_waits(aoth_tried_t *d) {
  static const uint64_t limits[] = {0, MILLISECOND, 50 * MILLISECOND};
  for (uint32_t i = 0; i < 3; i++)
    if (!aoth_tried_was_refused(d, aoth_tried_wait_host(d, 1, limits[i]), AOT_E_UNAVAILABLE,
                                "wait_host for what nobody raises"))
      return;
  if (aoth_tried_went(d, aoth_tried_signal_host(d, 1), "signal_host")) aoth_tried_reaches(d, 1);
}

static void goes_up_alone(aoth_tried_t *d) {
  if (!aoth_tried_went(d, aoth_tried_signal_host(d, 5), "signal_host")) return;
  if (!aoth_tried_was_refused(d, aoth_tried_signal_host(d, 5), 0, "signal_host to where a timeline stands")) return;
  if (!aoth_tried_was_refused(d, aoth_tried_signal_host(d, 3), 0, "signal_host to where a timeline has passed") ||
      !is_value(d, 5))
    return;
  const aot_status_t status = d->f->signal(d->self, &d->ctx, d->one, (aot_point_t){d->line, 4});
  if (!aoth_tried_was_refused(d, status, 0, "signal of what a timeline has passed")) return;
  d->raised = 5;
  if (aoth_tried_finish(d, d->one)) is_value(d, 6);
}

static void leaps(aoth_tried_t *d) {
  d->raised = UINT64_C(1) << 40;
  if (aoth_tried_wait(d, d->two, 3) && aoth_tried_signal(d, d->two, (UINT64_C(1) << 41) - 1) &&
      aoth_tried_finish(d, d->one) && aoth_tried_reaches(d, (UINT64_C(1) << 41) - 1))
    is_value(d, (UINT64_C(1) << 41) - 1);
}

static void *raise_later(void *self) {
  aoth_tried_t *d = self;
  const struct timespec moment = {0, 20 * (long)MILLISECOND};
  nanosleep(&moment, NULL);
  aoth_tried_signal_host(d, 1);
  return NULL;
}

/* Two threads, each with a context of its own. */
static void another_thread_raises(aoth_tried_t *d) {
  aoth_tried_t other = *d;
  pthread_t thread;
  other.arena = NULL;
  aoth_tried_hear(&other);
  if (!aoth_tried_wait(d, d->one, 1) || !aoth_tried_signal(d, d->one, 2) ||
      pthread_create(&thread, NULL, raise_later, &other) != 0)
    return;
  aoth_tried_reaches(d, 2);
  pthread_join(thread, NULL);
}

void aoth_rule_timelines(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {{"a new timeline, and one that the host raises", begins_at_zero},
                                            {"waits with limits of 0 to 50 milliseconds", limits_waits},
                                            {"signals that are not higher", goes_up_alone},
                                            {"values of 41 bits", leaps},
                                            {"a wait that another thread ends", another_thread_raises}};
  aoth_tried_run(t, steps, 5);
}
