/* Rules of devices: work of the host's in the order of their queues (aot.host-work/1), and what happens when it
 * fails. */
#include <sdk/conform/conform_tried_device.h>

#include <aot/inline.h>

#define N_ROUNDS 64u

/* ---- 706 ---- */

typedef struct work {
  uint64_t address; /* of a byte that it raises by one; 0: none */
  uint32_t n_calls;
  uint32_t number, *order; /* order: counts calls; number: what it was at */
  aot_status_t before, answer;
} work_t;

static aot_status_t AOT_CALL do_work(void *self, aot_status_t before) {
  work_t *w = self;
  w->n_calls++;
  w->before = before;
  if (w->order) w->number = (*w->order)++;
  if (before != AOT_OK) return before;
  if (w->address) ++*(uint8_t *)(uintptr_t)w->address;
  return w->answer;
}

static const aot_ext_host_work_t *host_work(aoth_tried_t *d) {
  const aot_ext_host_work_t *x = aot_ext(&d->self->head, AOT_EXT_HOST_WORK);
  if (!x) aoth_trial_end(d->t, AOTH_CONFORM_NOT, "it does not offer " AOT_EXT_HOST_WORK);
  return x;
}

static int put_work(aoth_tried_t *d, const aot_ext_host_work_t *x, aot_queue_t *q, work_t *w) {
  return aoth_tried_went(d, x->enqueue(x, &d->ctx, q, do_work, w), "enqueue of aot.host-work/1");
}

/* Fills, work on the byte, copies, in turn. */
static void works_in_order(aoth_tried_t *d) {
  const aot_ext_host_work_t *x = host_work(d);
  work_t works[N_ROUNDS] = {{0}};
  uint8_t to[N_ROUNDS], wanted[N_ROUNDS];
  uint32_t order = 0;
  aot_buffer_t one, all;
  if (!x || !aoth_tried_alloc(d, 1, &one) || !aoth_tried_alloc(d, N_ROUNDS, &all)) return;
  for (uint32_t i = 0; i < N_ROUNDS; i++) {
    works[i] = (work_t){.address = one.address, .order = &order, .before = AOT_E_INTERNAL};
    wanted[i] = (uint8_t)(2 * i + 1);
    if (!aoth_tried_fill(d, d->one, one, (uint8_t)(2 * i)) || !put_work(d, x, d->one, &works[i]) ||
        !aoth_tried_copy(d, d->one, aoth_tried_part(all, i, 1), one.address))
      return;
  }
  if (!aoth_tried_read(d, d->one, to, all) || !aoth_tried_finish(d, d->one)) return;
  for (uint32_t i = 0; i < N_ROUNDS; i++) {
    if (works[i].n_calls != 1) aoth_tried_fail(d, "work of the host's", "is not called once");
    if (works[i].number != i) aoth_tried_fail(d, "work of the host's", "is called out of its order");
    if (works[i].before != AOT_OK) aoth_tried_fail(d, "work of the host's", "is told of a failure that there was not");
  }
  if (d->t->end == AOTH_CONFORM_PASSED &&
      aoth_tried_is_same(d, to, wanted, N_ROUNDS, "what work of the host's did to buffers") && aoth_tried_free(d, one))
    aoth_tried_free(d, all);
}

void aoth_rule_host_work(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {{"fills, work and copies in turn", works_in_order}};
  aoth_tried_run(t, steps, 1);
}

/* ---- 707 ---- */

static int has_status(aoth_tried_t *d, aot_status_t status, aot_status_t wanted, const char *what) {
  aoth_tried_hear(d);
  if (status != wanted)
    aoth_trial_end(d->t, AOTH_CONFORM_FAILED, "%s: status %d in place of %d", what, (int)status, (int)wanted);
  return status == wanted;
}

/* fails, left out, read, signal 2; works, signal 3. The other queue waits for 2, works, and waits for 3 before it
 * signals 4: queues run in parallel, and a timeline only grows. */
static void fails_up_to_the_signal(aoth_tried_t *d) {
  const aot_ext_host_work_t *x = host_work(d);
  work_t fails = {.answer = AOT_E_RANGE}, left_out = {0}, behind = {0}, after = {0};
  uint8_t to[8] = {0};
  aot_buffer_t b;
  if (!x || !aoth_tried_alloc(d, 8, &b) || !aoth_tried_fill(d, d->one, b, 'a') || !aoth_tried_finish(d, d->one)) return;
  const int is_put = put_work(d, x, d->one, &fails) && put_work(d, x, d->one, &left_out) &&
                     aoth_tried_read(d, d->one, to, b) && aoth_tried_signal(d, d->one, 2) &&
                     put_work(d, x, d->one, &after) && aoth_tried_signal(d, d->one, 3) &&
                     aoth_tried_wait(d, d->two, 2) && put_work(d, x, d->two, &behind) &&
                     aoth_tried_wait(d, d->two, 3) && aoth_tried_signal(d, d->two, 4);
  if (!is_put) return;
  if (!has_status(d, aoth_tried_wait_host(d, 4, d->patience_ns), AOT_E_RANGE,
                  "a point behind a wait for work that failed") ||
      !has_status(d, aoth_tried_wait_host(d, 2, d->patience_ns), AOT_E_RANGE,
                  "the point that work failed on the way to") ||
      !has_status(d, aoth_tried_wait_host(d, 3, d->patience_ns), AOT_OK, "the next point of the queue"))
    return;
  if (left_out.n_calls != 1 || left_out.before != AOT_E_RANGE)
    aoth_tried_fail(d, "work behind work that failed", "is not told of it");
  if (behind.n_calls != 1 || behind.before != AOT_E_RANGE)
    aoth_tried_fail(d, "work behind a wait for it", "is not told of it");
  if (after.n_calls != 1 || after.before != AOT_OK)
    aoth_tried_fail(d, "work behind the next signal", "is left out, too");
  if (to[0]) aoth_tried_fail(d, "a read behind work that failed", "is done all the same");
  d->raised = 4;
  if (d->t->end == AOTH_CONFORM_PASSED && aoth_tried_read(d, d->one, to, b) && aoth_tried_finish(d, d->one))
    aoth_tried_free(d, b);
}

void aoth_rule_failures(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {
      {"work that fails, and what stands behind it on two queues", fails_up_to_the_signal}};
  aoth_tried_run(t, steps, 1);
}
