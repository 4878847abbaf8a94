/* Rules of devices as wholes: what they tell of themselves, threads, their end. */
#include <tools/conform_tried_device.h>

#include <pthread.h>
#include <stdlib.h>

/* ---- 701: what it tells of itself ---- */

static void describes_itself(aoth_tried_t *d) {
  aot_device_info_t info = {.struct_size = sizeof info}, shorter = {.struct_size = 16, .ordinal = 77, .alignment = 77};
  if (!aoth_tried_went(d, d->f->info(d->self, &info), "info") ||
      !aoth_tried_went(d, d->f->info(d->self, &shorter), "info"))
    return;
  if (info.struct_size != sizeof info) aoth_tried_fail(d, "info", "changes struct_size");
  if (!info.alignment || info.alignment & (info.alignment - 1))
    aoth_tried_fail(d, "info", "has an alignment that is no power of two");
  if (!info.name.size) aoth_tried_fail(d, "info", "has no name");
  if (info.free_nbytes > info.total_nbytes && info.total_nbytes)
    aoth_tried_fail(d, "info", "has more free bytes than there are");
  if (shorter.ordinal != 77 || shorter.alignment != 77)
    aoth_tried_fail(d, "info", "writes behind the end of a shorter struct");
}

void aoth_rule_information(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {{"info, and into a shorter struct", describes_itself}};
  aoth_tried_run(t, steps, 1);
}

/* ---- 708: threads ---- */

#define N_THREADS 4u

/* Buffers of its own, each round. */
static void write_and_read(aoth_tried_t *d, uint32_t n_rounds, uint32_t seed) {
  uint8_t from[1000], to[1000];
  aot_buffer_t b, c;
  for (uint32_t i = 0; i < n_rounds; i++) {
    aoth_tried_make_bytes(from, sizeof from, seed * 7 + i);
    if (!aoth_tried_alloc(d, sizeof from, &b) || !aoth_tried_alloc(d, sizeof from, &c) ||
        !aoth_tried_write(d, d->one, b, from) || !aoth_tried_copy(d, d->one, c, b.address) ||
        !aoth_tried_read(d, d->one, to, c) || !aoth_tried_finish(d, d->one) ||
        !aoth_tried_is_same(d, to, from, sizeof from, "what a thread wrote and read") || !aoth_tried_free(d, b) ||
        !aoth_tried_free(d, c))
      return;
  }
}

typedef struct thread {
  aoth_tried_t d;
  aoth_trial_t own; /* so that what goes wrong is told of each alone */
  uint32_t number;
  pthread_t id;
} thread_t;

static void *use_in_thread(void *self) {
  thread_t *th = self;
  if (aoth_tried_make_queues(&th->d)) write_and_read(&th->d, 50, th->number);
  return NULL;
}

static void is_used_by_threads(aoth_tried_t *d) {
  thread_t threads[N_THREADS];
  for (uint32_t i = 0; i < N_THREADS; i++) {
    threads[i] = (thread_t){.d = *d, .own = *d->t, .number = i};
    threads[i].d.t = &threads[i].own;
    threads[i].d.arena = NULL;
    aoth_tried_hear(&threads[i].d);
    if (pthread_create(&threads[i].id, NULL, use_in_thread, &threads[i]) != 0) abort();
  }
  for (uint32_t i = 0; i < N_THREADS; i++) pthread_join(threads[i].id, NULL);
  for (uint32_t i = 0; i < N_THREADS && d->t->end == AOTH_CONFORM_PASSED; i++) {
    if (threads[i].own.end != AOTH_CONFORM_PASSED)
      aoth_trial_end(d->t, threads[i].own.end, "thread %u of %u: %s", i, N_THREADS, threads[i].own.why);
    else aoth_tried_drop_queues(&threads[i].d);
  }
}

void aoth_rule_threads(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {
      {"four threads, each with queues and buffers of its own", is_used_by_threads}};
  aoth_tried_run(t, steps, 1);
}

/* ---- 709, 710: its end ---- */

/* What the host leaves behind when it gives up. */
void aoth_rule_left_behind(aoth_trial_t *t) {
  aoth_instance_t unit;
  aoth_tried_t d;
  aot_buffer_t b;
  void *own;
  if (t->number > 1) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, t->number ? "work that nobody has waited for"
                                : "queues, a timeline and memory that are still there");
  if (!aoth_tried_begin(t, &unit, &d) || !aoth_tried_make_queues(&d) || !aoth_tried_alloc(&d, 100, &b)) return;
  if (!aoth_tried_host_alloc(&d, 100, &own) || !aoth_tried_fill(&d, d.one, b, 1) || !aoth_tried_finish(&d, d.one))
    return;
  for (uint32_t i = 0; t->number && i < 10; i++)
    if (!aoth_tried_fill(&d, d.two, b, (uint8_t)i) || !aoth_tried_signal(&d, d.two, ++d.raised)) return;
  aoth_instance_destroy(t->s, t->stage, &unit);
}

/* Queues, a timeline, buffers, moves, and all given back. */
static int use_once(aoth_trial_t *t, void *self) {
  aoth_tried_t *d = self;
  d->raised = 0;
  if (aoth_tried_make_queues(d)) write_and_read(d, 3, 1);
  if (t->end == AOTH_CONFORM_PASSED) aoth_tried_drop_queues(d);
  return t->end == AOTH_CONFORM_PASSED;
}

void aoth_rule_used_often(aoth_trial_t *t) {
  aoth_instance_t unit;
  aoth_tried_t d;
  if (!aoth_trial_is_first(t) || !aoth_tried_begin(t, &unit, &d)) return;
  aoth_trial_leaves_nothing(t, use_once, &d);
}
