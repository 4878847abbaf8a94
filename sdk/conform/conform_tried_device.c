#include <sdk/conform/conform_tried_device.h>

#include <trainer/trial/child.h>

#define MOST_NS UINT64_C(10000000000) /* that work of a few bytes is waited for */

/* ---- what calls answer ---- */

void aoth_tried_fail(aoth_tried_t *d, const char *doing, const char *why) {
  if (d->t->end == AOTH_CONFORM_PASSED) aoth_trial_end(d->t, AOTH_CONFORM_FAILED, "%s %s", doing, why);
}

void aoth_tried_hear(aoth_tried_t *d) { aoth_trial_hear(d->t, &d->arena, &d->ctx); }

int aoth_tried_went(aoth_tried_t *d, aot_status_t status, const char *doing) {
  char told[400];
  if (status == AOT_OK) return d->t->end == AOTH_CONFORM_PASSED;
  aoth_first_error(aoth_sink_text(d->ctx.sink), told, sizeof told);
  const int is_refused = *told && (status == AOT_E_EXHAUSTED || status == AOT_E_UNIMPLEMENTED);
  if (is_refused) aoth_trial_end(d->t, AOTH_CONFORM_REFUSED, "%s: %s", doing, told);
  else if (d->t->end == AOTH_CONFORM_PASSED)
    aoth_trial_end(d->t, AOTH_CONFORM_FAILED, "%s answers status %d: %s", doing, (int)status,
                   *told ? told : "and does not say why");
  return 0;
}

int aoth_tried_was_refused(aoth_tried_t *d, aot_status_t status, aot_status_t wanted, const char *doing) {
  const int is_told = d->ctx.n_diags > 0;
  aoth_tried_hear(d);
  if (status == AOT_OK) aoth_tried_fail(d, doing, "is not refused");
  else if (wanted ? status != wanted : !aoth_is_refusal(status)) {
    aoth_trial_end(d->t, AOTH_CONFORM_FAILED, "%s answers status %d in place of %s", doing, (int)status,
                   wanted == AOT_E_EXHAUSTED     ? "AOT_E_EXHAUSTED"
                   : wanted == AOT_E_UNAVAILABLE ? "AOT_E_UNAVAILABLE"
                                                 : "one of refusal");
  } else if (!is_told) aoth_tried_fail(d, doing, "is refused without a diagnostic");
  return d->t->end == AOTH_CONFORM_PASSED;
}

int aoth_tried_alloc(aoth_tried_t *d, uint64_t nbytes, aot_buffer_t *out) {
  return aoth_tried_went(d, d->f->alloc(d->self, &d->ctx, nbytes, out), "alloc");
}
int aoth_tried_free(aoth_tried_t *d, aot_buffer_t b) {
  return aoth_tried_went(d, d->f->free(d->self, &d->ctx, b), "free");
}
int aoth_tried_host_alloc(aoth_tried_t *d, uint64_t nbytes, void **out) {
  return aoth_tried_went(d, d->f->host_alloc(d->self, &d->ctx, nbytes, out), "host_alloc");
}
int aoth_tried_host_free(aoth_tried_t *d, void *p, uint64_t nbytes) {
  return aoth_tried_went(d, d->f->host_free(d->self, &d->ctx, p, nbytes), "host_free");
}
int aoth_tried_write(aoth_tried_t *d, aot_queue_t *q, aot_buffer_t to, const void *from) {
  return aoth_tried_went(d, d->f->write(d->self, &d->ctx, q, to, from), "write");
}
int aoth_tried_read(aoth_tried_t *d, aot_queue_t *q, void *to, aot_buffer_t from) {
  return aoth_tried_went(d, d->f->read(d->self, &d->ctx, q, to, from), "read");
}
int aoth_tried_copy(aoth_tried_t *d, aot_queue_t *q, aot_buffer_t to, uint64_t from) {
  return aoth_tried_went(d, d->f->copy(d->self, &d->ctx, q, to, from), "copy");
}
int aoth_tried_fill(aoth_tried_t *d, aot_queue_t *q, aot_buffer_t to, uint8_t byte) {
  return aoth_tried_went(d, d->f->fill(d->self, &d->ctx, q, to, byte), "fill");
}
int aoth_tried_wait(aoth_tried_t *d, aot_queue_t *q, uint64_t value) {
  return aoth_tried_went(d, d->f->wait(d->self, &d->ctx, q, (aot_point_t){d->line, value}), "wait");
}
int aoth_tried_signal(aoth_tried_t *d, aot_queue_t *q, uint64_t value) {
  return aoth_tried_went(d, d->f->signal(d->self, &d->ctx, q, (aot_point_t){d->line, value}), "signal");
}
aot_status_t aoth_tried_wait_host(aoth_tried_t *d, uint64_t value, uint64_t limit_ns) {
  return d->f->wait_host(d->self, &d->ctx, (aot_point_t){d->line, value}, limit_ns);
}
aot_status_t aoth_tried_signal_host(aoth_tried_t *d, uint64_t value) {
  return d->f->signal_host(d->self, &d->ctx, (aot_point_t){d->line, value});
}
int aoth_tried_reaches(aoth_tried_t *d, uint64_t value) {
  return aoth_tried_went(d, aoth_tried_wait_host(d, value, d->patience_ns), "wait_host");
}

int aoth_tried_finish(aoth_tried_t *d, aot_queue_t *q) {
  return aoth_tried_signal(d, q, ++d->raised) && aoth_tried_reaches(d, d->raised);
}

aot_buffer_t aoth_tried_part(aot_buffer_t b, uint64_t at, uint64_t nbytes) {
  return (aot_buffer_t){b.address + at, nbytes};
}

void aoth_tried_make_bytes(uint8_t *out, uint64_t n, uint32_t seed) {
  for (uint64_t i = 0; i < n; i++) out[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + seed * 101 + 1);
}

int aoth_tried_is_same(aoth_tried_t *d, const uint8_t *got, const uint8_t *wanted, uint64_t n, const char *what) {
  for (uint64_t i = 0; i < n; i++) {
    if (got[i] == wanted[i]) continue;
    aoth_trial_end(d->t, AOTH_CONFORM_FAILED, "%s: byte %llu of %llu is %u, not %u", what, (unsigned long long)i,
                   (unsigned long long)n, got[i], wanted[i]);
    return 0;
  }
  return 1;
}

/* ---- a trial ---- */

int aoth_tried_make_queues(aoth_tried_t *d) {
  return aoth_tried_went(d, d->f->queue_create(d->self, &d->ctx, AOT_QUEUE_COMPUTE, &d->one), "queue_create") &&
         aoth_tried_went(d, d->f->queue_create(d->self, &d->ctx, AOT_QUEUE_COPY, &d->two), "queue_create") &&
         aoth_tried_went(d, d->f->timeline_create(d->self, &d->ctx, &d->line), "timeline_create");
}

void aoth_tried_drop_queues(aoth_tried_t *d) {
  if (aoth_tried_went(d, d->f->queue_destroy(d->self, &d->ctx, d->one), "queue_destroy") &&
      aoth_tried_went(d, d->f->queue_destroy(d->self, &d->ctx, d->two), "queue_destroy"))
    aoth_tried_went(d, d->f->timeline_destroy(d->self, &d->ctx, d->line), "timeline_destroy");
}

int aoth_tried_begin(aoth_trial_t *t, aoth_instance_t *unit, aoth_tried_t *out) {
  if (!aoth_trial_judge(t, aoth_instance_try(t->s, t->stage, unit))) return 0;
  const double limit = t->c->line->timeout / 2 * 1e9; /* so that what hangs is reported before the trial is ended */
  *out = (aoth_tried_t){.t = t, .f = &unit->table.device, .self = unit->self};
  out->patience_ns = limit < (double)MOST_NS ? (uint64_t)limit : MOST_NS;
  aoth_tried_hear(out);
  return 1;
}

void aoth_tried_run(aoth_trial_t *t, const aoth_tried_step_t *steps, uint32_t n) {
  aoth_instance_t unit;
  aoth_tried_t d;
  if (t->number >= n) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "%s", steps[t->number].about);
  if (!aoth_tried_begin(t, &unit, &d)) return;
  if (aoth_tried_make_queues(&d)) steps[t->number].act(&d);
  if (t->end != AOTH_CONFORM_PASSED) return; /* work may be on its queues */
  aoth_tried_drop_queues(&d);
  aoth_instance_destroy(t->s, t->stage, &unit);
}
