/* Rules of devices as wholes: what they report themselves, threads, their end. */
#include <sdk/conform/conform_tried_device.h>

#include <base/clock.h>
#include <pthread.h>
#include <stdlib.h>
#include <sdk/conform/conform_host.h>

/* ---- 701: what it reports itself ---- */

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
  aoth_trial_t own; /* so that what goes wrong is informed of each alone */
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

/* ---- one queue, and the device's memory, from several threads ---- */

#define N_PUT 400u
#define N_BETWEEN 16u                /* items that cost nothing, so that most of the time is spent on putting */
#define MOST_NS UINT64_C(2000000000) /* of rounds: a race shows when threads meet, which takes luck on a busy machine */
#define MOST_ROUNDS 60u

typedef struct putter {
  aoth_tried_t d;
  aoth_trial_t own;
  uint32_t number;
  aot_buffer_t all, one; /* `all`: of every thread, N_PUT bytes each */
  pthread_t id;
} putter_t;

/* A byte of the thread's own, filled and copied to its place, again and again: each item has to come, in the thread's
 * order. */
static void *put_often(void *self) {
  putter_t *p = self;
  aoth_tried_t *d = &p->d;
  for (uint32_t i = 0; i < N_PUT; i++) {
    const aot_buffer_t to = aoth_tried_part(p->all, p->number * N_PUT + i, 1);
    for (uint32_t k = 0; k < N_BETWEEN; k++)
      if (!aoth_tried_wait(d, d->one, 0)) return NULL;
    if (!aoth_tried_fill(d, d->one, p->one, (uint8_t)(p->number * 50 + i)) ||
        !aoth_tried_copy(d, d->one, to, p->one.address))
      break;
  }
  return NULL;
}

static void share_a_queue_once(aoth_tried_t *d) {
  static putter_t p[N_THREADS]; /* one trial a process */
  static uint8_t to[N_THREADS * N_PUT], wanted[N_THREADS * N_PUT];
  aot_buffer_t all;
  if (!aoth_tried_alloc(d, sizeof to, &all)) return;
  for (uint32_t i = 0; i < N_THREADS; i++) {
    p[i] = (putter_t){.d = *d, .own = *d->t, .number = i, .all = all};
    if (!aoth_tried_alloc(d, 1, &p[i].one)) return;
    p[i].d.t = &p[i].own;
    p[i].d.arena = NULL;
    aoth_tried_hear(&p[i].d);
    for (uint32_t k = 0; k < N_PUT; k++) wanted[i * N_PUT + k] = (uint8_t)(i * 50 + k);
  }
  for (uint32_t i = 0; i < N_THREADS; i++)
    if (pthread_create(&p[i].id, NULL, put_often, &p[i]) != 0) abort();
  for (uint32_t i = 0; i < N_THREADS; i++) pthread_join(p[i].id, NULL);
  for (uint32_t i = 0; i < N_THREADS; i++)
    if (p[i].own.end != AOTH_CONFORM_PASSED)
      aoth_trial_end(d->t, p[i].own.end, "thread %u of %u: %s", i, N_THREADS, p[i].own.why);
  if (d->t->end == AOTH_CONFORM_PASSED && aoth_tried_read(d, d->one, to, all) && aoth_tried_finish(d, d->one))
    aoth_tried_is_same(d, to, wanted, sizeof to, "what four threads put on one queue");
  for (uint32_t i = 0; i < N_THREADS && d->t->end == AOTH_CONFORM_PASSED; i++) aoth_tried_free(d, p[i].one);
  if (d->t->end == AOTH_CONFORM_PASSED) aoth_tried_free(d, all);
}

static void shares_a_queue(aoth_tried_t *d) {
  const uint64_t begin = aoth_now_ns();
  for (uint32_t i = 0; i < MOST_ROUNDS && d->t->end == AOTH_CONFORM_PASSED && aoth_now_ns() - begin < MOST_NS; i++)
    share_a_queue_once(d);
}

static void *alloc_often(void *self) {
  putter_t *p = self;
  aot_buffer_t b[16];
  for (uint32_t i = 0; i < N_PUT && p->own.end == AOTH_CONFORM_PASSED; i++) {
    for (uint32_t k = 0; k < 16; k++)
      if (!aoth_tried_alloc(&p->d, 64 + k, &b[k])) return NULL;
    for (uint32_t k = 0; k < 16; k++)
      if (!aoth_tried_free(&p->d, b[k])) return NULL;
  }
  return NULL;
}

static void shares_its_memory(aoth_tried_t *d) {
  static putter_t p[N_THREADS];
  for (uint32_t i = 0; i < N_THREADS; i++) {
    p[i] = (putter_t){.d = *d, .own = *d->t, .number = i};
    p[i].d.t = &p[i].own;
    p[i].d.arena = NULL;
    aoth_tried_hear(&p[i].d);
    if (pthread_create(&p[i].id, NULL, alloc_often, &p[i]) != 0) abort();
  }
  for (uint32_t i = 0; i < N_THREADS; i++) pthread_join(p[i].id, NULL);
  for (uint32_t i = 0; i < N_THREADS; i++)
    if (p[i].own.end != AOTH_CONFORM_PASSED)
      aoth_trial_end(d->t, p[i].own.end, "thread %u of %u: %s", i, N_THREADS, p[i].own.why);
}

void aoth_rule_threads(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {
      {"four threads, each with queues and buffers of its own", is_used_by_threads},
      {"four threads that put work on one queue", shares_a_queue},
      {"four threads that have and free buffers", shares_its_memory}};
  aoth_tried_run(t, steps, 3);
}

/* ---- 711: several devices ---- */

/* Two units at once: what one does is none of the other's. */
static void is_not_alone(aoth_tried_t *d) {
  aoth_instance_t unit;
  aoth_tried_t other;
  if (!aoth_tried_begin(d->t, &unit, &other) || !aoth_tried_make_queues(&other)) return;
  write_and_read(&other, 20, 3);
  write_and_read(d, 20, 4);
  if (d->t->end != AOTH_CONFORM_PASSED) return;
  aoth_tried_drop_queues(&other);
  aoth_instance_destroy(d->t->s, d->t->stage, &unit);
  write_and_read(d, 20, 5);
}

/* A host without memory: nothing that failed is there, and what is queried again goes well. */
static void does_without_memory(aoth_tried_t *d) {
  aot_buffer_t b;
  aot_queue_t *q;
  aot_timeline_t *line;
  for (uint32_t what = 0; what < 3; what++)
    for (uint64_t n = 0; n < 8; n++) {
      aoth_hostile_arm(AOTH_HOSTILE_ALLOC, n);
      const aot_status_t status = what == 0   ? d->f->alloc(d->self, &d->ctx, 100, &b)
                                  : what == 1 ? d->f->queue_create(d->self, &d->ctx, AOT_QUEUE_COPY, &q)
                                              : d->f->timeline_create(d->self, &d->ctx, &line);
      const int has_failed = aoth_hostile_has_failed();
      aoth_hostile_arm(0, 0);
      if (status != AOT_OK && !aoth_tried_was_refused(d, status, AOT_E_EXHAUSTED, "a call whose allocation fails"))
        return;
      if (status == AOT_OK && what == 0) aoth_tried_free(d, b);
      if (status == AOT_OK && what == 1) aoth_tried_went(d, d->f->queue_destroy(d->self, &d->ctx, q), "queue_destroy");
      if (status == AOT_OK && what == 2)
        aoth_tried_went(d, d->f->timeline_destroy(d->self, &d->ctx, line), "timeline_destroy");
      if (!has_failed) break;
    }
  if (d->t->end == AOTH_CONFORM_PASSED) write_and_read(d, 5, 6);
}

void aoth_rule_devices(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {{"two devices at once", is_not_alone},
                                            {"the host's memory fails", does_without_memory}};
  aoth_hostile_install(t->c->plugin, t->s->arena);
  aoth_tried_run(t, steps, 2);
}

/* ---- 709, 710: its end ---- */

/* What the host leaves after when it gives up. */
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

/* Queues, a timeline, buffers, moves, and all returned. */
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
