#include "strict_device.h"
#include "strict_run.h"

#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sd_device_t *of(const aot_device_t *d) { return d->head.self; }

/* Of those that the option gives it. */
static uint64_t free_nbytes(const sd_device_t *s) {
  return s->options.memory > s->memory.nbytes ? s->options.memory - s->memory.nbytes : 0;
}

static aot_status_t info(const aot_device_t *d, aot_device_info_t *out) {
  aot_device_info_t full = {.struct_size = out->struct_size, .name = AOT_STR_INIT("strict"), .alignment = SD_ALIGN};
  sd_device_t *s = of(d);
  pthread_mutex_lock(&s->lock);
  full.total_nbytes = s->options.memory;
  full.free_nbytes = free_nbytes(s);
  pthread_mutex_unlock(&s->lock);
#if defined(__x86_64__)
  full.architecture = aot_str("x86-64");
#elif defined(__aarch64__)
  full.architecture = aot_str("aarch64");
#endif
  memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
  return AOT_OK;
}

/* ---- memory ---- */

static aot_status_t alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, aot_buffer_t *out) {
  sd_device_t *s = of(d);
  char *data;
  pthread_mutex_lock(&s->lock);
  const int is_lost = s->is_lost;
  const uint64_t left = free_nbytes(s);
  const int has_room = !s->options.memory || nbytes <= left;
  const int ok = !is_lost && has_room && sd_memory_alloc(&s->memory, nbytes, &data);
  pthread_mutex_unlock(&s->lock);
  if (is_lost) return sd_lost(s, ctx);
  if (!has_room)
    return sd_fail(s, ctx, AOT_E_EXHAUSTED, "strict.memory",
                   "device strict has no memory for %llu bytes: %llu of its %llu are free", (unsigned long long)nbytes,
                   (unsigned long long)left, (unsigned long long)s->options.memory);
  if (!ok) return sd_no_memory(s, ctx, nbytes);
  *out = (aot_buffer_t){(uint64_t)(uintptr_t)data, nbytes};
  return AOT_OK;
}

static int touches(const sd_buffer_t *b, uint64_t address, uint64_t nbytes) {
  const uint64_t begin = (uint64_t)(uintptr_t)b->data;
  return nbytes && address < begin + b->nbytes && begin < address + nbytes;
}

/* Items that move memory; what work of the host's touches is not known. */
static size_t n_items_on(const sd_device_t *s, const sd_buffer_t *b) {
  size_t n = 0;
  for (size_t i = 0; i < s->queues.n_queues; i++) {
    const aot_queue_t *q = s->queues.queues[i];
    for (size_t k = q->head; k < q->end; k++) {
      const sd_item_t *item = &q->items[k];
      n += touches(b, item->to, item->nbytes) || touches(b, item->from, item->nbytes);
    }
  }
  return n;
}

static aot_status_t release(const aot_device_t *d, aot_ctx_t *ctx, aot_buffer_t whole) {
  sd_device_t *s = of(d);
  aot_status_t status = AOT_OK;
  pthread_mutex_lock(&s->lock);
  const sd_buffer_t *b = sd_memory_find(&s->memory, whole.address, whole.nbytes);
  const int is_whole = b && (uint64_t)(uintptr_t)b->data == whole.address && b->nbytes == whole.nbytes;
  const size_t n_items = is_whole ? n_items_on(s, b) : 0;
  if (is_whole && !n_items) sd_memory_free(&s->memory, b);
  pthread_mutex_unlock(&s->lock);
  if (!is_whole)
    status = sd_fail(s, ctx, AOT_E_INVALID, "strict.free",
                     "what is to be freed, %llu bytes at 0x%llx, is no buffer of the device: it was never had from it, "
                     "or is freed already",
                     (unsigned long long)whole.nbytes, (unsigned long long)whole.address);
  if (n_items)
    status = sd_fail(s, ctx, AOT_E_PRECONDITION, "strict.free",
                     "a buffer of %llu bytes is to be freed, and items on queues still use it: %llu",
                     (unsigned long long)whole.nbytes, (unsigned long long)n_items);
  return status;
}

static aot_status_t host_alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, void **out) {
  *out = NULL;
  if (nbytes >= SIZE_MAX / 2 || posix_memalign(out, SD_ALIGN, (size_t)nbytes + SD_ALIGN) != 0)
    return sd_no_memory(of(d), ctx, nbytes);
  sd_poison(*out, nbytes);
  return AOT_OK;
}

static aot_status_t host_free(const aot_device_t *d, aot_ctx_t *ctx, void *memory, uint64_t nbytes) {
  (void)d, (void)ctx, (void)nbytes;
  free(memory);
  return AOT_OK;
}

/* ---- queues and timelines ---- */

static aot_status_t queue_create(const aot_device_t *d, aot_ctx_t *ctx, int32_t kind, aot_queue_t **out) {
  sd_device_t *s = of(d);
  pthread_mutex_lock(&s->lock);
  *out = sd_queue_create(&s->queues, kind);
  pthread_mutex_unlock(&s->lock);
  return *out ? AOT_OK : sd_no_memory(s, ctx, sizeof **out);
}

static aot_status_t check_queue(sd_device_t *s, aot_ctx_t *ctx, const aot_queue_t *q) {
  pthread_mutex_lock(&s->lock);
  const int is_mine = sd_has_queue(&s->queues, q);
  pthread_mutex_unlock(&s->lock);
  return is_mine ? AOT_OK : sd_fail(s, ctx, AOT_E_INVALID, "strict.queue", "what is named is no queue of the device");
}

static aot_status_t check_timeline(sd_device_t *s, aot_ctx_t *ctx, const aot_timeline_t *t) {
  pthread_mutex_lock(&s->lock);
  const int is_mine = sd_has_timeline(&s->queues, t);
  pthread_mutex_unlock(&s->lock);
  return is_mine ? AOT_OK
                 : sd_fail(s, ctx, AOT_E_INVALID, "strict.timeline", "what is named is no timeline of the device");
}

/* Whatever still is on it is left out; work of the host's lets go of what it holds. */
static size_t drop_items(aot_queue_t *q) {
  const size_t n = q->end - q->head;
  while (q->head < q->end) {
    const sd_item_t item = sd_queue_take(q);
    if (item.kind == SD_WORK) item.work(item.self, AOT_E_CANCELLED);
  }
  return n;
}

static aot_status_t queue_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q) {
  sd_device_t *s = of(d);
  AOT_TRY(check_queue(s, ctx, q));
  const uint32_t number = q->number;
  const size_t n = drop_items(q);
  pthread_mutex_lock(&s->lock);
  sd_queue_destroy(&s->queues, q);
  const int is_lost = s->is_lost;
  pthread_mutex_unlock(&s->lock);
  if (n == 0 || is_lost) return AOT_OK;
  return sd_fail(s, ctx, AOT_E_PRECONDITION, "strict.queue", "queue %u was destroyed with items on it: %llu", number,
                 (unsigned long long)n);
}

static aot_status_t timeline_create(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t **out) {
  sd_device_t *s = of(d);
  pthread_mutex_lock(&s->lock);
  *out = sd_timeline_create(&s->queues);
  pthread_mutex_unlock(&s->lock);
  return *out ? AOT_OK : sd_no_memory(s, ctx, sizeof **out);
}

static int is_of(const sd_item_t *i, const aot_timeline_t *t) {
  return (i->kind == SD_WAIT || i->kind == SD_SIGNAL) && i->point.timeline == t;
}

/* Number of a queue with an item that waits for the timeline or raises it; 0: none. */
static uint32_t user_of(const sd_queues_t *queues, const aot_timeline_t *t) {
  for (size_t i = 0; i < queues->n_queues; i++) {
    const aot_queue_t *q = queues->queues[i];
    for (size_t k = q->head; k < q->end; k++)
      if (is_of(&q->items[k], t)) return q->number;
  }
  return 0;
}

static aot_status_t timeline_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t *t) {
  sd_device_t *s = of(d);
  AOT_TRY(check_timeline(s, ctx, t));
  const uint32_t number = t->number;
  pthread_mutex_lock(&s->lock);
  const uint32_t user = user_of(&s->queues, t);
  if (!user) sd_timeline_destroy(&s->queues, t);
  pthread_mutex_unlock(&s->lock);
  if (!user) return AOT_OK;
  return sd_fail(s, ctx, AOT_E_PRECONDITION, "strict.timeline",
                 "timeline %u is to be destroyed, and queue %u waits for it or raises it", number, user);
}

/* ---- putting work on a queue ---- */

static aot_status_t put(sd_device_t *s, aot_queue_t *q, const sd_item_t *item) {
  AOT_TRY(check_queue(s, item->ctx, q));
  pthread_mutex_lock(&s->lock);
  const int is_lost = s->is_lost, ok = !is_lost && sd_queue_put(q, item);
  pthread_mutex_unlock(&s->lock);
  if (is_lost) return sd_lost(s, item->ctx);
  return ok ? AOT_OK : sd_no_memory(s, item->ctx, sizeof *item);
}

/* Is the range within one buffer? */
static aot_status_t check_range(sd_device_t *s, aot_ctx_t *ctx, const char *what, uint64_t address, uint64_t nbytes) {
  pthread_mutex_lock(&s->lock);
  const sd_buffer_t *b = sd_memory_before(&s->memory, address);
  const sd_buffer_t near = b ? *b : (sd_buffer_t){0};
  const int ok = sd_memory_find(&s->memory, address, nbytes) != NULL;
  pthread_mutex_unlock(&s->lock);
  if (ok) return AOT_OK;
  const uint64_t at = address - (uint64_t)(uintptr_t)near.data;
  if (near.data && at <= near.nbytes)
    return sd_fail(s, ctx, AOT_E_RANGE, "strict.range",
                   "%s of %llu bytes, from byte %llu of a buffer of %llu bytes, goes past its end", what,
                   (unsigned long long)nbytes, (unsigned long long)at, (unsigned long long)near.nbytes);
  return sd_fail(s, ctx, AOT_E_RANGE, "strict.range", "%s of %llu bytes at 0x%llx is in no buffer of the device", what,
                 (unsigned long long)nbytes, (unsigned long long)address);
}

static aot_status_t put_write(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to,
                              const void *from) {
  const uint64_t host = (uint64_t)(uintptr_t)from;
  const sd_item_t item = {.kind = SD_WRITE, .ctx = ctx, .to = to.address, .from = host, .nbytes = to.nbytes};
  AOT_TRY(check_range(of(d), ctx, "a write", to.address, to.nbytes));
  return put(of(d), q, &item);
}

static aot_status_t put_read(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, void *to, aot_buffer_t from) {
  const uint64_t host = (uint64_t)(uintptr_t)to;
  const sd_item_t item = {.kind = SD_READ, .ctx = ctx, .to = host, .from = from.address, .nbytes = from.nbytes};
  AOT_TRY(check_range(of(d), ctx, "a read", from.address, from.nbytes));
  return put(of(d), q, &item);
}

static aot_status_t put_copy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint64_t from) {
  const sd_item_t item = {.kind = SD_COPY, .ctx = ctx, .to = to.address, .from = from, .nbytes = to.nbytes};
  AOT_TRY(check_range(of(d), ctx, "a copy to a range", to.address, to.nbytes));
  AOT_TRY(check_range(of(d), ctx, "a copy from a range", from, to.nbytes));
  if (to.address < from + to.nbytes && from < to.address + to.nbytes && to.nbytes)
    return sd_fail(of(d), ctx, AOT_E_INVALID, "strict.range", "a copy of %llu bytes between ranges that overlap",
                   (unsigned long long)to.nbytes);
  return put(of(d), q, &item);
}

static aot_status_t put_fill(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint8_t byte) {
  const sd_item_t item = {.kind = SD_FILL, .ctx = ctx, .to = to.address, .nbytes = to.nbytes, .byte = byte};
  AOT_TRY(check_range(of(d), ctx, "a fill", to.address, to.nbytes));
  return put(of(d), q, &item);
}

static aot_status_t put_wait(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  const sd_item_t item = {.kind = SD_WAIT, .ctx = ctx, .point = point};
  AOT_TRY(check_timeline(of(d), ctx, point.timeline));
  return put(of(d), q, &item);
}

/* How high the timeline is at least when the queue has come to its end. */
static uint64_t height_at_end(const aot_queue_t *q, const aot_timeline_t *t) {
  uint64_t height = t->value;
  for (size_t k = q->head; k < q->end; k++)
    if (is_of(&q->items[k], t) && q->items[k].point.value > height) height = q->items[k].point.value;
  return height;
}

static aot_status_t put_signal(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  sd_device_t *s = of(d);
  const sd_item_t item = {.kind = SD_SIGNAL, .ctx = ctx, .point = point};
  AOT_TRY(check_queue(s, ctx, q));
  AOT_TRY(check_timeline(s, ctx, point.timeline));
  pthread_mutex_lock(&s->lock);
  const uint64_t height = height_at_end(q, point.timeline);
  pthread_mutex_unlock(&s->lock);
  return point.value > height ? put(s, q, &item) : sd_not_higher(s, ctx, "a signal", point, height);
}

static aot_status_t enqueue(const aot_ext_host_work_t *x, aot_ctx_t *ctx, aot_queue_t *q, aot_host_work_t work,
                            void *self) {
  const sd_item_t item = {.kind = SD_WORK, .ctx = ctx, .work = work, .self = self};
  const aot_status_t status = put(x->head.self, q, &item);
  if (status != AOT_OK) work(self, status);
  return status;
}

/* ---- the host's side ---- */

static aot_status_t signal_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point) {
  sd_device_t *s = of(d);
  AOT_TRY(check_timeline(s, ctx, point.timeline));
  pthread_mutex_lock(&s->lock);
  const aot_status_t status = sd_raise(s, ctx, "the host", point, AOT_OK);
  pthread_mutex_unlock(&s->lock);
  return status;
}

static struct timespec after(uint64_t timeout_ns) {
  struct timespec until;
  const uint64_t most = UINT64_C(1000000000) * 1000000000u;
  clock_gettime(CLOCK_MONOTONIC, &until);
  if (timeout_ns > most) timeout_ns = most;
  timeout_ns += (uint64_t)until.tv_nsec;
  until.tv_sec += (time_t)(timeout_ns / 1000000000u);
  until.tv_nsec = (long)(timeout_ns % 1000000000u);
  return until;
}

static int is_past(const struct timespec *until) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

/* What stands still, and for what it waits: read under the lock. */
static void tell_unreached(const sd_device_t *s, aot_ctx_t *ctx, aot_point_t point, int is_late) {
  char text[512];
  const char *why = is_late ? "was not raised in time to" : "nobody raises it any more to";
  int n = snprintf(text, sizeof text, "timeline %u is at %llu, and %s %llu", point.timeline->number,
                   (unsigned long long)point.timeline->value, why, (unsigned long long)point.value);
  for (size_t i = 0; i < s->queues.n_queues && n > 0 && n < (int)sizeof text; i++) {
    const aot_queue_t *q = s->queues.queues[i];
    const sd_item_t *first = q->head < q->end ? &q->items[q->head] : NULL;
    if (!first || first->kind != SD_WAIT || first->point.timeline->value >= first->point.value) continue;
    n += snprintf(text + n, sizeof text - (size_t)n, "; queue %u waits for %llu of timeline %u, which is at %llu",
                  q->number, (unsigned long long)first->point.value, first->point.timeline->number,
                  (unsigned long long)first->point.timeline->value);
  }
  sd_fail(s, ctx, AOT_E_UNAVAILABLE, "strict.wait", "%s", text);
}

/* Queues continue here. A wait without a limit for what no queue can raise would have no end: it fails at once,
 * whatever threads there are. */
static aot_status_t wait_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point, uint64_t timeout_ns) {
  sd_device_t *s = of(d);
  const struct timespec until = after(timeout_ns);
  AOT_TRY(check_timeline(s, ctx, point.timeline));
  pthread_mutex_lock(&s->lock);
  const int is_own_work = s->is_running && pthread_equal(s->runner, pthread_self());
  int is_late = 0, is_stuck = is_own_work;
  while (point.timeline->value < point.value && !is_late && !is_stuck) {
    if (!s->is_running && sd_run_one(s)) is_late = point.timeline->value < point.value && is_past(&until);
    else if (!s->is_running && timeout_ns == UINT64_MAX) is_stuck = 1;
    else is_late = pthread_cond_timedwait(&s->changed, &s->lock, &until) != 0;
  }
  const int is_reached = point.timeline->value >= point.value;
  uint64_t n_ahead = is_reached && s->options.ahead ? sd_queues_random(&s->queues) % (s->options.ahead + 1) : 0;
  while (n_ahead-- && !s->is_running && !s->is_lost && sd_run_one(s)) continue;
  while (s->is_lost && !s->is_running && sd_run_one(s)) continue; /* nothing is left over */
  const aot_status_t status = s->is_lost   ? AOT_E_DATA_LOSS
                              : is_reached ? sd_timeline_status(point.timeline, point.value)
                                           : AOT_E_UNAVAILABLE;
  if (!is_reached && !s->is_lost) tell_unreached(s, ctx, point, is_late);
  pthread_mutex_unlock(&s->lock);
  return status;
}

/* Code that asks again and again sees the queues continue. */
static uint64_t value(const aot_device_t *d, aot_timeline_t *t) {
  sd_device_t *s = of(d);
  pthread_mutex_lock(&s->lock);
  if (!s->is_running) sd_run_one(s);
  const uint64_t reached = t->value;
  pthread_mutex_unlock(&s->lock);
  return reached;
}

/* ---- the table ---- */

static void destroy(const aot_table_t *d) {
  sd_device_t *s = d->self;
  for (size_t i = 0; i < s->queues.n_queues; i++) drop_items(s->queues.queues[i]);
  sd_queues_deinit(&s->queues);
  sd_memory_deinit(&s->memory);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

static const void *get_ext(const aot_table_t *d, const char *id) {
  const sd_device_t *s = d->self;
  return s->options.takes_host_work && strcmp(id, AOT_EXT_HOST_WORK) == 0 ? &s->host_work : NULL;
}

sd_device_t *sd_device_create(const aot_host_t *host, const sd_options_t *options) {
  sd_device_t *s = calloc(1, sizeof *s);
  pthread_condattr_t attributes;
  if (!s) return NULL;
  s->host = *host;
  s->options = *options;
  s->table = (aot_device_t){
      .head = {.struct_size = sizeof s->table, .self = s, .destroy = destroy, .get_ext = get_ext},
      .info = info,
      .alloc = alloc,
      .free = release,
      .host_alloc = host_alloc,
      .host_free = host_free,
      .queue_create = queue_create,
      .queue_destroy = queue_destroy,
      .timeline_create = timeline_create,
      .timeline_destroy = timeline_destroy,
      .write = put_write,
      .read = put_read,
      .copy = put_copy,
      .fill = put_fill,
      .wait = put_wait,
      .signal = put_signal,
      .signal_host = signal_host,
      .wait_host = wait_host,
      .value = value,
  };
  s->host_work = (aot_ext_host_work_t){.head = {.struct_size = sizeof s->host_work, .self = s}, .enqueue = enqueue};
  sd_memory_init(&s->memory);
  sd_queues_init(&s->queues, options->seed);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  return s;
}
