/* Rules of backends: what their executables do next to the right thing once. */
#include <sdk/conform/conform_tried_exe.h>

#include <aot/inline.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- 606: used often ---- */

static int use_once(aoth_trial_t *t, void *self) {
  aoth_tried_exe_t x;
  aoth_tried_call_t c;
  (void)self;
  return aoth_tried_load(t, NULL, &x) && aoth_tried_bind(&x, 1, &c) && aoth_tried_submit(&x, &c) &&
         aoth_tried_submit(&x, &c) && aoth_tried_wait_all(&x) && aoth_tried_unbind(&x, &c) && aoth_tried_drop(&x);
}

/* A load whose session memory is freed, too. */
static int use_in_own_session(aoth_trial_t *t, void *self) {
  aoth_session_t *s = t->s;
  kit_arena_t *arena = s->arena, *own = kit_arena_create();
  if (!own) return 0;
  s->arena = s->ctx.session = s->report.arena = own;
  s->about = NULL;
  const int ok = use_once(t, self);
  s->arena = s->ctx.session = s->report.arena = arena;
  s->about = NULL;
  kit_arena_destroy(own);
  return ok;
}

void aoth_rule_run_often(aoth_trial_t *t) {
  if (!aoth_trial_is_first(t) || !aoth_tried_compile(t) || !use_once(t, NULL)) return;
  aoth_trial_leaves_nothing(t, use_in_own_session, NULL);
}

/* ---- 607: several calls ---- */

/* What a call computes that is alone. */
static int compute_alone(aoth_tried_exe_t *x, uint32_t seed, aoth_tried_call_t *c) {
  return aoth_tried_bind(x, seed, c) && aoth_tried_submit(x, c) && aoth_tried_wait_all(x) && aoth_tried_fetch(x, c);
}

void aoth_rule_calls(aoth_trial_t *t) {
  aoth_tried_exe_t x;
  aoth_tried_call_t alone[2], a, b;
  if (!aoth_trial_is_first(t) || !aoth_tried_compile(t) || !aoth_tried_load(t, NULL, &x)) return;
  for (uint32_t i = 0; i < 2; i++)
    if (!compute_alone(&x, i + 1, &alone[i])) return;
  if (!aoth_tried_bind(&x, 1, &a) || !aoth_tried_bind(&x, 2, &b)) return;
  for (uint32_t i = 0; i < 3; i++) /* three of each are under way at once */
    if (!aoth_tried_submit(&x, &a) || !aoth_tried_submit(&x, &b)) return;
  if (!aoth_tried_wait_all(&x) || !aoth_tried_fetch(&x, &a) || !aoth_tried_fetch(&x, &b)) return;
  if (!aoth_tried_same_outputs(&x, &a, &alone[0],
                               "one of two bound calls, both submitted three times before any was waited for") ||
      !aoth_tried_same_outputs(&x, &b, &alone[1], "the other of two bound calls"))
    return;
  if (!aoth_tried_unbind(&x, &a) || !aoth_tried_submit(&x, &b) || !aoth_tried_wait_all(&x) || !aoth_tried_fetch(&x, &b))
    return;
  aoth_tried_same_outputs(&x, &b, &alone[1], "a call that is submitted after another was unbound");
}

/* ---- 608: several executables ---- */

#define N_THREADS 4u
#define N_RUNS 100u

typedef struct runner {
  aoth_tried_exe_t x;
  aoth_tried_call_t wanted, call;
  aoth_trial_t own;
  pthread_t id;
} runner_t;

static void *run_often(void *self) {
  runner_t *r = self;
  for (uint32_t i = 0; i < N_RUNS; i++)
    if (!aoth_tried_submit(&r->x, &r->call) || !aoth_tried_wait_all(&r->x) || !aoth_tried_fetch(&r->x, &r->call) ||
        !aoth_tried_same_outputs(&r->x, &r->call, &r->wanted,
                                 "one of four executables that run in threads of their own"))
      break;
  return NULL;
}

void aoth_rule_executables(aoth_trial_t *t) {
  static runner_t r[N_THREADS]; /* one trial a process */
  if (!aoth_trial_is_first(t) || !aoth_tried_compile(t)) return;
  for (uint32_t i = 0; i < N_THREADS; i++) {
    if (!aoth_tried_load(t, NULL, &r[i].x) || !compute_alone(&r[i].x, i, &r[i].wanted) ||
        !aoth_tried_bind(&r[i].x, i, &r[i].call))
      return;
    r[i].own = *t;
    r[i].x.t = &r[i].own;
  }
  for (uint32_t i = 0; i < N_THREADS; i++)
    if (pthread_create(&r[i].id, NULL, run_often, &r[i]) != 0) abort();
  for (uint32_t i = 0; i < N_THREADS; i++) pthread_join(r[i].id, NULL);
  for (uint32_t i = 0; i < N_THREADS && t->end == AOTH_CONFORM_PASSED; i++)
    if (r[i].own.end != AOTH_CONFORM_PASSED) aoth_trial_end(t, r[i].own.end, "%s", r[i].own.why);
}

/* ---- 609: work before it fails ---- */

static aot_status_t AOT_CALL fail_work(void *self, aot_status_t before) {
  (void)self;
  return before == AOT_OK ? AOT_E_RANGE : before;
}

void aoth_rule_failed_before(aoth_trial_t *t) {
  aoth_tried_exe_t x;
  aoth_tried_call_t alone, c;
  if (!aoth_trial_is_first(t) || !aoth_tried_compile(t) || !aoth_tried_load(t, NULL, &x) ||
      !compute_alone(&x, 3, &alone) || !aoth_tried_bind(&x, 3, &c))
    return;
  const aot_ext_host_work_t *work = aot_ext(&x.device->head, AOT_EXT_HOST_WORK);
  if (!work || work->enqueue(work, &x.ctx, x.queue, fail_work, NULL) != AOT_OK) {
    aoth_trial_end(t, AOTH_CONFORM_NOT, "no work that fails can be put on the device's queue");
    return;
  }
  if (!aoth_tried_submit(&x, &c)) return;
  const aot_status_t status =
      x.device->wait_host(x.device, &x.ctx, (aot_point_t){x.line, x.raised}, UINT64_C(10000000000));
  if (status != AOT_E_RANGE) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED,
                   "work before a submission failed with status %d; the submission's signal is reached with status %d",
                   (int)AOT_E_RANGE, (int)status);
    return;
  }
  if (!aoth_tried_submit(&x, &c) || !aoth_tried_wait_all(&x) || !aoth_tried_fetch(&x, &c)) return;
  aoth_tried_same_outputs(&x, &c, &alone, "a call that is submitted again after work before it has failed");
}

/* ---- 610: waits and signals ---- */

/* The submission follows a point of the host's while another queue writes its inputs; a third one reads its
 * outputs as soon as its signal is there. */
void aoth_rule_waits(aoth_trial_t *t) {
  aoth_tried_exe_t x;
  aoth_tried_call_t alone, c;
  aot_queue_t *writer, *reader;
  aot_timeline_t *gate, *written;
  aoth_stage_t device;
  if (!aoth_trial_is_first(t) || !aoth_trial_device(t, &device) || !aoth_tried_compile(t) ||
      !aoth_tried_load(t, &device, &x) || !compute_alone(&x, 5, &alone) || !aoth_tried_bind(&x, 6, &c))
    return;
  const aot_device_t *d = x.device;
  if (!aoth_tried_exe_went(&x, d->queue_create(d, &x.ctx, AOT_QUEUE_COPY, &writer), "queue_create") ||
      !aoth_tried_exe_went(&x, d->queue_create(d, &x.ctx, AOT_QUEUE_COPY, &reader), "queue_create") ||
      !aoth_tried_exe_went(&x, d->timeline_create(d, &x.ctx, &gate), "timeline_create") ||
      !aoth_tried_exe_went(&x, d->timeline_create(d, &x.ctx, &written), "timeline_create"))
    return;
  if (!aoth_tried_submit(&x, &c) || !aoth_tried_wait_all(&x)) return; /* of the old inputs */
  if (!aoth_tried_submit_behind(&x, &c, (aot_point_t){gate, 1})) return;
  const uint64_t done = x.raised;
  if (!aoth_tried_refill(&x, &c, 5, writer) ||
      !aoth_tried_exe_went(&x, d->signal(d, &x.ctx, writer, (aot_point_t){written, 1}), "signal") ||
      !aoth_tried_exe_went(&x, d->wait_host(d, &x.ctx, (aot_point_t){written, 1}, UINT64_C(10000000000)), "wait_host"))
    return;
  if (d->value(d, x.line) >= done) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "a submission has signalled before what it waits for was reached");
    return;
  }
  if (!aoth_tried_exe_went(&x, d->signal_host(d, &x.ctx, (aot_point_t){gate, 1}), "signal_host") ||
      !aoth_tried_fetch_by(&x, &c, reader, done))
    return;
  aoth_tried_same_outputs(&x, &c, &alone, "a call that waits for its inputs, read by another queue behind its signal");
}
