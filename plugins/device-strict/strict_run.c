#include "strict_run.h"

#include <string.h>

static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

static aot_status_t cannot_open(const sd_device_t *s, aot_ctx_t *ctx) {
  return sd_fail(s, ctx, AOT_E_EXHAUSTED, "strict.open",
                 "the system does not change the protection of the device's memory");
}

/* Opens the buffer of each range, a moment before and after. */
static aot_status_t move(sd_device_t *s, const sd_item_t *i) {
  const sd_buffer_t *to = i->kind == SD_READ ? NULL : sd_memory_find(&s->memory, i->to, i->nbytes);
  const sd_buffer_t *from =
      i->kind == SD_READ || i->kind == SD_COPY ? sd_memory_find(&s->memory, i->from, i->nbytes) : NULL;
  if ((to && !sd_buffer_open(to, 1)) || (from && !sd_buffer_open(from, 1))) return cannot_open(s, i->ctx);
  if (i->nbytes && i->kind == SD_FILL) memset(at(i->to), i->byte, (size_t)i->nbytes);
  else if (i->nbytes) memcpy(at(i->to), at(i->from), (size_t)i->nbytes);
  if ((to && !sd_buffer_open(to, 0)) || (from && !sd_buffer_open(from, 0))) return cannot_open(s, i->ctx);
  return AOT_OK;
}

static aot_status_t tell_overrun(const sd_device_t *s, aot_ctx_t *ctx, const sd_buffer_t *b, int64_t where) {
  if (where < 0)
    return sd_fail(s, ctx, AOT_E_RANGE, "strict.overrun",
                   "work wrote %lld bytes before the beginning of a buffer of %llu bytes", (long long)-where,
                   (unsigned long long)b->nbytes);
  return sd_fail(s, ctx, AOT_E_RANGE, "strict.overrun", "work wrote to byte %lld of a buffer of %llu bytes",
                 (long long)where, (unsigned long long)b->nbytes);
}

/* The lock is open while the work runs, so that it can have memory. */
static aot_status_t do_work(sd_device_t *s, const sd_item_t *i, aot_status_t before) {
  int64_t where;
  if (!sd_memory_open(&s->memory, 1) && before == AOT_OK) before = cannot_open(s, i->ctx);
  s->is_running = 1;
  s->runner = pthread_self();
  pthread_mutex_unlock(&s->lock);
  aot_status_t status = i->work(i->self, before);
  pthread_mutex_lock(&s->lock);
  s->is_running = 0;
  const sd_buffer_t *overrun = sd_memory_overrun(&s->memory, &where);
  if (overrun) {
    const aot_status_t wrong = tell_overrun(s, i->ctx, overrun, where);
    if (status == AOT_OK) status = wrong;
  }
  if (!sd_memory_open(&s->memory, 0) && status == AOT_OK) status = cannot_open(s, i->ctx);
  pthread_cond_broadcast(&s->changed);
  return status;
}

aot_status_t sd_raise(sd_device_t *s, aot_ctx_t *ctx, const char *who, aot_point_t point, aot_status_t status) {
  const uint64_t was = point.timeline->value;
  if (!sd_timeline_raise(point.timeline, point.value, status))
    return point.value <= was ? sd_not_higher(s, ctx, who, point, was) : sd_no_memory(s, ctx, sizeof(sd_failure_t));
  pthread_cond_broadcast(&s->changed);
  return AOT_OK;
}

/* From here on nothing is done: work lets go of what it holds, and code that waits has the failure. */
static void lose(sd_device_t *s, const sd_item_t *i, const aot_queue_t *q) {
  s->is_lost = 1;
  sd_fail(s, i->ctx, AOT_E_DATA_LOSS, "strict.lost", "device strict was lost when call %llu was to begin, on queue %u",
          (unsigned long long)s->n_works, q->number);
}

int sd_run_one(sd_device_t *s) {
  aot_queue_t *q = s->is_lost ? sd_queues_any(&s->queues) : sd_queues_pick(&s->queues);
  if (!q) return 0;
  const sd_item_t i = sd_queue_take(q);
  if (i.kind == SD_WORK && ++s->n_works == s->options.lose_at) lose(s, &i, q);
  const aot_status_t before = s->is_lost ? AOT_E_DATA_LOSS : q->failed;
  if (i.kind == SD_SIGNAL && s->is_lost) sd_timeline_raise(i.point.timeline, i.point.value, before);
  else if (i.kind == SD_SIGNAL) q->failed = sd_raise(s, i.ctx, "a queue", i.point, before);
  else if (i.kind == SD_WORK) q->failed = do_work(s, &i, before);
  else if (before == AOT_OK)
    q->failed = i.kind == SD_WAIT ? sd_timeline_status(i.point.timeline, i.point.value) : move(s, &i);
  return 1;
}
