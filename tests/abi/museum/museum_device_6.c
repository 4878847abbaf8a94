/* Museum, ABI 1.6: a device. Memory of the host under addresses that are not the host's, queues that work at once. */
#include <aot/describe.h>
#include <aot/device.h>
#include <aot/inline.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define ID "museum.device-6"
#define HELP "a device whose queues work at once"
#define ALIGN 64u
#define PATIENCE_NS (UINT64_C(60) * 1000000000u)

struct aot_queue {
  aot_status_t failed; /* since the last signal */
};

struct aot_timeline {
  uint64_t value, failed_value;
  aot_status_t failed;
};

typedef struct unit {
  aot_device_t table;
  aot_ext_host_work_t work;
  aot_host_t host;
  pthread_mutex_t lock; /* of all timelines */
  pthread_cond_t raised;
} unit_t;

static aot_status_t tell(const unit_t *u, aot_ctx_t *ctx, aot_status_t status, const char *text) {
  const aot_diag_t d = {
      .struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR, .code = aot_str(ID ".failed"), .message = aot_str(text)};
  u->host.diag(&u->host, ctx, &d);
  return status;
}

static aot_status_t info(const aot_device_t *d, aot_device_info_t *out) {
  const aot_device_info_t full = {.struct_size = out->struct_size,
                                  .name = AOT_STR_INIT("museum"),
                                  .architecture = AOT_STR_INIT("x86-64"),
                                  .alignment = ALIGN};
  (void)d;
  memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
  return AOT_OK;
}

static aot_status_t host_alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, void **out) {
  *out = aligned_alloc(ALIGN, (size_t)(nbytes / ALIGN + 1) * ALIGN);
  return *out ? AOT_OK : tell(d->head.self, ctx, AOT_E_EXHAUSTED, "no memory");
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

static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

static aot_status_t release(const aot_device_t *d, aot_ctx_t *ctx, aot_buffer_t whole) {
  return host_free(d, ctx, at(whole.address), whole.nbytes);
}

static aot_status_t queue_create(const aot_device_t *d, aot_ctx_t *ctx, int32_t kind, aot_queue_t **out) {
  (void)kind;
  *out = calloc(1, sizeof **out);
  return *out ? AOT_OK : tell(d->head.self, ctx, AOT_E_EXHAUSTED, "no memory");
}

static aot_status_t queue_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q) {
  (void)d, (void)ctx;
  free(q);
  return AOT_OK;
}

static aot_status_t timeline_create(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t **out) {
  *out = calloc(1, sizeof **out);
  return *out ? AOT_OK : tell(d->head.self, ctx, AOT_E_EXHAUSTED, "no memory");
}

static aot_status_t timeline_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t *t) {
  (void)d, (void)ctx;
  free(t);
  return AOT_OK;
}

static aot_status_t raise_to(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point, aot_status_t failed) {
  unit_t *u = d->head.self;
  aot_timeline_t *t = point.timeline;
  pthread_mutex_lock(&u->lock);
  const int is_higher = point.value > t->value;
  if (is_higher) t->value = point.value;
  if (is_higher && failed != AOT_OK) {
    t->failed_value = point.value;
    t->failed = failed;
  }
  pthread_cond_broadcast(&u->raised);
  pthread_mutex_unlock(&u->lock);
  return is_higher ? AOT_OK : tell(u, ctx, AOT_E_INVALID, "a timeline has passed that point");
}

static aot_status_t signal_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point) {
  return raise_to(d, ctx, point, AOT_OK);
}

static aot_status_t wait_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point, uint64_t timeout_ns) {
  unit_t *u = d->head.self;
  aot_timeline_t *t = point.timeline;
  struct timespec until;
  int late = 0;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)(timeout_ns / 1000000000u > 3600 ? 3600 : timeout_ns / 1000000000u) + 1;
  pthread_mutex_lock(&u->lock);
  while (t->value < point.value && !late) late = pthread_cond_timedwait(&u->raised, &u->lock, &until) != 0;
  const int is_reached = t->value >= point.value;
  const aot_status_t status = t->failed_value == point.value ? t->failed : AOT_OK;
  pthread_mutex_unlock(&u->lock);
  return is_reached ? status : tell(u, ctx, AOT_E_UNAVAILABLE, "waited for a point that nobody reached");
}

static uint64_t value(const aot_device_t *d, aot_timeline_t *t) {
  unit_t *u = d->head.self;
  pthread_mutex_lock(&u->lock);
  const uint64_t reached = t->value;
  pthread_mutex_unlock(&u->lock);
  return reached;
}

static aot_status_t write_to(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, const void *from) {
  (void)d, (void)ctx;
  if (q->failed == AOT_OK && to.nbytes) memmove(at(to.address), from, (size_t)to.nbytes);
  return AOT_OK;
}

static aot_status_t read_from(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, void *to, aot_buffer_t from) {
  (void)d, (void)ctx;
  if (q->failed == AOT_OK && from.nbytes) memmove(to, at(from.address), (size_t)from.nbytes);
  return AOT_OK;
}

static aot_status_t copy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint64_t from) {
  return write_to(d, ctx, q, to, at(from));
}

static aot_status_t fill(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint8_t byte) {
  (void)d, (void)ctx;
  if (q->failed == AOT_OK && to.nbytes) memset(at(to.address), byte, (size_t)to.nbytes);
  return AOT_OK;
}

static aot_status_t queue_wait(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  const aot_status_t status = wait_host(d, ctx, point, PATIENCE_NS);
  if (q->failed == AOT_OK) q->failed = status;
  return AOT_OK;
}

static aot_status_t queue_signal(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  const aot_status_t failed = q->failed;
  q->failed = AOT_OK;
  return raise_to(d, ctx, point, failed);
}

static aot_status_t enqueue(const aot_ext_host_work_t *x, aot_ctx_t *ctx, aot_queue_t *q, aot_host_work_t work,
                            void *self) {
  (void)x, (void)ctx;
  q->failed = work(self, q->failed);
  return AOT_OK;
}

static const void *get_ext(const aot_table_t *d, const char *id) {
  const unit_t *u = d->self;
  return strcmp(id, AOT_EXT_HOST_WORK) == 0 ? &u->work : NULL;
}

static void destroy(const aot_table_t *d) {
  unit_t *u = d->self;
  pthread_cond_destroy(&u->raised);
  pthread_mutex_destroy(&u->lock);
  free(u);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = calloc(1, sizeof *u);
  (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  pthread_mutex_init(&u->lock, NULL);
  pthread_cond_init(&u->raised, NULL);
  u->work = (aot_ext_host_work_t){.head = {.struct_size = sizeof u->work, .self = u}, .enqueue = enqueue};
  u->table = (aot_device_t){
      .head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
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
  *out_table = &u->table.head;
  return AOT_OK;
}

AOT_PLUGIN_ONE("device/1", ID, "6.0", "museum", "Apache-2.0", HELP, create, .contract = NULL);
