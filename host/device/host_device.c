#include <device/host_device.h>

#include <aot/assert.h>
#include <device/work_thread.h>
#include <ir/program.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#define PATIENCE_NS (UINT64_C(60) * 1000000000u) /* of a queue that waits for another thread */

struct aot_queue {
  aot_status_t failed; /* since the last signal */
  aoth_work_thread_t
      *thread; /* of a queue of collectives, which wait for other ranks; NULL: the submitting thread does it */
};

struct aot_timeline {
  pthread_mutex_t lock;
  pthread_cond_t raised;
  uint64_t value;
  uint64_t failed_value; /* the last point that was reached by a failure; 0: none */
  aot_status_t failed;
};

static aot_status_t allocation_failed(aot_ctx_t *ctx, uint64_t nbytes) {
  struct sysinfo machine;
  const unsigned long long left = sysinfo(&machine) == 0 ? (unsigned long long)machine.freeram * machine.mem_unit : 0;
  return aoth_report_error(ctx, AOT_E_EXHAUSTED, "device.memory", "no memory for %llu bytes; %llu are free on the host",
                           (unsigned long long)nbytes, left);
}

static aot_status_t info(const aot_device_t *d, aot_device_info_t *out) {
  struct sysinfo machine;
  const uint32_t size = out->struct_size;
  aot_device_info_t full = {
      .struct_size = size, .flags = AOT_DEVICE_HOST_VISIBLE, .name = {"host", 4}, .alignment = AOTH_HOST_ALIGN};
  (void)d;
#if defined(__x86_64__)
  full.architecture = (aot_str_t){"x86-64", 6};
#elif defined(__aarch64__)
  full.architecture = (aot_str_t){"aarch64", 7};
#endif
  if (sysinfo(&machine) == 0) {
    full.total_nbytes = (uint64_t)machine.totalram * machine.mem_unit;
    full.free_nbytes = (uint64_t)machine.freeram * machine.mem_unit;
  }
  memcpy(out, &full, size < sizeof full ? size : sizeof full);
  return AOT_OK;
}

/* ---- memory ---- */

static aot_status_t host_alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, void **out) {
  (void)d;
  *out = NULL;
  if (nbytes < SIZE_MAX / 2 && posix_memalign(out, AOTH_HOST_ALIGN, (size_t)nbytes + AOTH_HOST_ALIGN) == 0)
    return AOT_OK;
  return allocation_failed(ctx, nbytes);
}

static aot_status_t host_free(const aot_device_t *d, aot_ctx_t *ctx, void *memory, uint64_t nbytes) {
  (void)d, (void)ctx, (void)nbytes;
  free(memory);
  return AOT_OK;
}

static aot_status_t alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, aot_buffer_t *out) {
  void *memory;
  AOT_TRY(host_alloc(d, ctx, nbytes, &memory));
  *out = (aot_buffer_t){(uint64_t)(uintptr_t)memory, nbytes};
  return AOT_OK;
}

static aot_status_t release(const aot_device_t *d, aot_ctx_t *ctx, aot_buffer_t whole) {
  return host_free(d, ctx, (void *)(uintptr_t)whole.address, whole.nbytes);
}

/* ---- queues and timelines ---- */

static aot_status_t queue_create(const aot_device_t *d, aot_ctx_t *ctx, int32_t kind, aot_queue_t **out) {
  aot_queue_t *q = calloc(1, sizeof *q);
  (void)d;
  *out = NULL;
  if (!q) return allocation_failed(ctx, sizeof *q);
  if (kind == AOT_QUEUE_COLLECTIVE && !(q->thread = aoth_work_thread_create())) {
    free(q);
    return aoth_report_error(ctx, AOT_E_EXHAUSTED, "device.memory", "no thread for a queue of collectives");
  }
  *out = q;
  return AOT_OK;
}

static aot_status_t queue_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q) {
  (void)d, (void)ctx;
  if (q->thread) aoth_work_thread_destroy(q->thread);
  free(q);
  return AOT_OK;
}

static aot_status_t timeline_create(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t **out) {
  pthread_condattr_t attributes;
  (void)d;
  *out = calloc(1, sizeof **out);
  if (!*out) return allocation_failed(ctx, sizeof **out);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&(*out)->lock, NULL);
  pthread_cond_init(&(*out)->raised, &attributes);
  pthread_condattr_destroy(&attributes);
  return AOT_OK;
}

static aot_status_t timeline_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t *t) {
  (void)d, (void)ctx;
  pthread_cond_destroy(&t->raised);
  pthread_mutex_destroy(&t->lock);
  free(t);
  return AOT_OK;
}

static aot_status_t raise_to(aot_ctx_t *ctx, aot_point_t point, aot_status_t status) {
  aot_timeline_t *t = point.timeline;
  pthread_mutex_lock(&t->lock);
  const int is_higher = point.value > t->value;
  if (is_higher) t->value = point.value;
  if (is_higher && status != AOT_OK) {
    t->failed_value = point.value;
    t->failed = status;
  }
  pthread_cond_broadcast(&t->raised);
  pthread_mutex_unlock(&t->lock);
  return is_higher ? AOT_OK
                   : aoth_report_error(ctx, AOT_E_INVALID, "device.timeline",
                                       "a timeline is to be raised to a number that it has passed");
}

static aot_status_t signal_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point) {
  (void)d;
  return raise_to(ctx, point, AOT_OK);
}

static aot_status_t wait_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point, uint64_t timeout_ns) {
  aot_timeline_t *t = point.timeline;
  struct timespec until;
  int late = 0;
  (void)d;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += (time_t)(timeout_ns / 1000000000u > 1000000000u ? 1000000000u : timeout_ns / 1000000000u);
  until.tv_nsec += (long)(timeout_ns % 1000000000u);
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  AOT_ASSERT(until.tv_nsec >= 0 && until.tv_nsec < 1000000000);
  pthread_mutex_lock(&t->lock);
  while (t->value < point.value && !late) late = pthread_cond_timedwait(&t->raised, &t->lock, &until) != 0;
  const uint64_t reached = t->value;
  AOT_ASSERT(t->failed_value <= t->value);
  const aot_status_t status = t->failed_value == point.value ? t->failed : AOT_OK;
  pthread_mutex_unlock(&t->lock);
  if (reached >= point.value) return status;
  return aoth_report_error(ctx, AOT_E_UNAVAILABLE, "device.timeout",
                           "timeout after %.1f s: waiting for timeline value %llu, current value %llu",
                           (double)timeout_ns / 1e9, (unsigned long long)point.value, (unsigned long long)reached);
}

static uint64_t value(const aot_device_t *d, aot_timeline_t *t) {
  (void)d;
  pthread_mutex_lock(&t->lock);
  const uint64_t reached = t->value;
  pthread_mutex_unlock(&t->lock);
  return reached;
}

/* ---- work ---- */

static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

static aot_status_t put(aot_queue_t *q, aot_ctx_t *ctx, aot_host_work_t work, void *self) {
  if (!q->thread) q->failed = work(self, q->failed);
  else if (!aoth_work_thread_put(q->thread, work, self)) return allocation_failed(ctx, sizeof work);
  return AOT_OK;
}

/* What a queue with a thread does later. */
typedef struct late {
  aot_ctx_t *ctx;
  aot_point_t point;
  void *to;
  const void *from; /* NULL: bytes are filled */
  uint64_t nbytes;
  uint8_t byte;
} late_t;

static aot_status_t do_move(void *self, aot_status_t before) {
  const late_t *l = self;
  if (before == AOT_OK && l->nbytes && l->from) memmove(l->to, l->from, (size_t)l->nbytes);
  if (before == AOT_OK && l->nbytes && !l->from) memset(l->to, l->byte, (size_t)l->nbytes);
  return before;
}

static aot_status_t do_wait(void *self, aot_status_t before) {
  const late_t *l = self;
  const aot_status_t status = wait_host(NULL, l->ctx, l->point, PATIENCE_NS);
  return before == AOT_OK ? status : before;
}

static aot_status_t do_signal(void *self, aot_status_t before) {
  const late_t *l = self;
  raise_to(l->ctx, l->point, before);
  return AOT_OK;
}

typedef struct kept {
  aot_host_work_t work;
  late_t late;
} kept_t;

static aot_status_t do_kept(void *self, aot_status_t before) {
  kept_t *k = self;
  const aot_status_t status = k->work(&k->late, before);
  free(k);
  return status;
}

static aot_status_t put_late(aot_queue_t *q, aot_host_work_t work, late_t late) {
  kept_t *k = q->thread ? malloc(sizeof *k) : NULL;
  if (!q->thread) return put(q, late.ctx, work, &late);
  if (!k) return allocation_failed(late.ctx, sizeof *k);
  *k = (kept_t){work, late};
  const aot_status_t status = put(q, late.ctx, do_kept, k);
  if (status != AOT_OK) free(k);
  return status;
}

static aot_status_t write_to(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, const void *from) {
  (void)d;
  return put_late(q, do_move, (late_t){.ctx = ctx, .to = at(to.address), .from = from, .nbytes = to.nbytes});
}

static aot_status_t read_from(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, void *to, aot_buffer_t from) {
  (void)d;
  return put_late(q, do_move, (late_t){.ctx = ctx, .to = to, .from = at(from.address), .nbytes = from.nbytes});
}

static aot_status_t copy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint64_t from) {
  return write_to(d, ctx, q, to, at(from));
}

static aot_status_t fill(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint8_t byte) {
  (void)d;
  return put_late(q, do_move, (late_t){.ctx = ctx, .to = at(to.address), .nbytes = to.nbytes, .byte = byte});
}

static aot_status_t queue_wait(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  (void)d;
  return put_late(q, do_wait, (late_t){.ctx = ctx, .point = point});
}

static aot_status_t queue_signal(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  (void)d;
  if (q->thread) return put_late(q, do_signal, (late_t){.ctx = ctx, .point = point});
  const aot_status_t failed = q->failed;
  q->failed = AOT_OK;
  return raise_to(ctx, point, failed);
}

/* Calls `work` exactly once: from the queue, or immediately with the error if it cannot be enqueued. */
static aot_status_t enqueue(const aot_ext_host_work_t *x, aot_ctx_t *ctx, aot_queue_t *q, aot_host_work_t work,
                            void *self) {
  (void)x;
  const aot_status_t status = put(q, ctx, work, self);
  if (status != AOT_OK) work(self, status);
  return status;
}

/* ---- the table ---- */

static void destroy(const aot_table_t *d) { (void)d; }

static const void *get_ext(const aot_table_t *d, const char *id) {
  static const aot_ext_host_work_t host_work = {.head = {.struct_size = sizeof host_work}, .enqueue = enqueue};
  (void)d;
  return strcmp(id, AOT_EXT_HOST_WORK) == 0 ? &host_work : NULL;
}

const aot_device_t *aoth_host_device(void) {
  static const aot_device_t device = {
      .head = {.struct_size = sizeof device, .destroy = destroy, .get_ext = get_ext},
      .info = info,
      .alloc = alloc,
      .free = release,
      .host_alloc = host_alloc,
      .host_free = host_free,
      .queue_create = queue_create,
      .queue_destroy = queue_destroy,
      .timeline_create = timeline_create,
      .timeline_destroy = timeline_destroy,
      .write = write_to,
      .read = read_from,
      .copy = copy,
      .fill = fill,
      .wait = queue_wait,
      .signal = queue_signal,
      .signal_host = signal_host,
      .wait_host = wait_host,
      .value = value,
  };
  return &device;
}
