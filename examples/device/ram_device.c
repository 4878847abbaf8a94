/* A device on the machine's memory: what a driver for hardware provides, in one file.
 *
 *     memory      a block per buffer, counted against the option `memory`
 *     queue       a thread that runs items in order
 *     timeline    a number that only grows, and the ranges of its points that failed work reached
 *
 * One mutex guards all state, and one condition variable reports every change. Items run without the mutex. Failed
 * work: later items of the queue are skipped up to the next signal, which raises its timeline all the same and records
 * the status (aot/device.h). Every function but destroy may be called from any thread. */
#include <aot/describe.h>
#include <aot/device.h>
#include <aot/inline.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ID "example.ram-device"
#define HELP "device on the machine's memory: a thread per queue"
#define ALIGN 64u /* of buffers, and of their headers; bytes */

typedef enum kind { MOVE, FILL, WAIT, SIGNAL, WORK } kind_t;

/* An item of a queue. A signal of failed work becomes the timeline's record of the failure: nothing is allocated
 * then. */
typedef struct item {
  struct item *next;
  kind_t kind;
  aot_ctx_t *ctx; /* borrowed until the item is done */
  void *to;
  const void *from;
  uint64_t nbytes;
  uint8_t byte;
  aot_point_t point;
  aot_host_work_t work;
  void *self;
  uint64_t failed_from; /* SIGNAL: points above this one, up to point.value, .. */
  aot_status_t failed;  /* .. were reached by work that failed so */
} item_t;

typedef struct unit unit_t;

struct aot_queue {
  aot_queue_t *next;
  unit_t *unit;
  pthread_t thread;
  item_t *first, **end;
  aot_status_t failed; /* since the last signal */
  int is_closing;
};

struct aot_timeline {
  aot_timeline_t *next;
  uint64_t value;
  item_t *failures; /* signals of failed work, the last first */
};

/* Before each buffer's bytes. */
typedef struct block {
  struct block *next, **at;
  uint64_t nbytes;
} block_t;

struct unit {
  aot_device_t table;
  aot_ext_host_work_t host_work;
  aot_host_t host;
  uint64_t capacity, used; /* bytes */
  pthread_mutex_t lock;
  pthread_cond_t changed; /* an item was added, a timeline was raised, a queue is closing */
  aot_queue_t *queues;
  aot_timeline_t *timelines;
  block_t *blocks;
};

static unit_t *of(const aot_device_t *d) { return d->head.self; }

static aot_status_t fail(unit_t *u, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const aot_diag_t d = {
      .struct_size = sizeof d,
      .severity = AOT_SEVERITY_ERROR,
      .code = aot_str(code),
      .message = aot_str(text),
      .node = aot_no_node(),
      .value = aot_no_value(),
  };
  u->host.diag(&u->host, ctx, &d);
  return status;
}

static aot_status_t no_memory(unit_t *u, aot_ctx_t *ctx, uint64_t nbytes, uint64_t n_free) {
  return fail(u, ctx, AOT_E_EXHAUSTED, ID ".memory", "device " ID " cannot allocate %llu bytes; %llu bytes are free",
              (unsigned long long)nbytes, (unsigned long long)n_free);
}

static aot_status_t no_host_memory(unit_t *u, aot_ctx_t *ctx, const char *what) {
  return fail(u, ctx, AOT_E_EXHAUSTED, ID ".memory", "the host has no memory for %s", what);
}

/* ---- memory ---- */

static uint64_t machine_nbytes(void) { return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE); }

static uint64_t n_free(const unit_t *u) { return u->capacity - u->used; }

static aot_status_t info(const aot_device_t *d, aot_device_info_t *out) {
  unit_t *u = of(d);
  const uint32_t size = out->struct_size;
  aot_device_info_t full = {
      .struct_size = size, .name = AOT_STR_INIT(ID), .architecture = AOT_STR_INIT("ram"), .alignment = ALIGN};
  pthread_mutex_lock(&u->lock);
  full.total_nbytes = u->capacity;
  full.free_nbytes = n_free(u);
  pthread_mutex_unlock(&u->lock);
  memcpy(out, &full, size < sizeof full ? size : sizeof full); /* a plugin that is older than this one has less room */
  return AOT_OK;
}

static aot_status_t alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, aot_buffer_t *out) {
  unit_t *u = of(d);
  void *memory = NULL;
  pthread_mutex_lock(&u->lock);
  const uint64_t left = n_free(u);
  const int fits = nbytes <= left;
  if (fits && posix_memalign(&memory, ALIGN, ALIGN + (size_t)nbytes) == 0) {
    block_t *b = memory;
    *b = (block_t){.next = u->blocks, .at = &u->blocks, .nbytes = nbytes};
    if (b->next) b->next->at = &b->next;
    u->blocks = b;
    u->used += nbytes;
  } else memory = NULL;
  pthread_mutex_unlock(&u->lock);
  if (!memory) return no_memory(u, ctx, nbytes, left);
  *out = (aot_buffer_t){(uint64_t)(uintptr_t)memory + ALIGN, nbytes};
  return AOT_OK;
}

static aot_status_t release(const aot_device_t *d, aot_ctx_t *ctx, aot_buffer_t whole) {
  unit_t *u = of(d);
  block_t *b = (block_t *)(uintptr_t)(whole.address - ALIGN);
  const int is_whole = b->nbytes == whole.nbytes;
  if (!is_whole)
    return fail(u, ctx, AOT_E_INVALID, ID ".free", "free of %llu bytes of a buffer that has %llu bytes",
                (unsigned long long)whole.nbytes, (unsigned long long)b->nbytes);
  pthread_mutex_lock(&u->lock);
  *b->at = b->next;
  if (b->next) b->next->at = b->at;
  u->used -= b->nbytes;
  pthread_mutex_unlock(&u->lock);
  free(b);
  return AOT_OK;
}

static aot_status_t host_alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, void **out) {
  *out = NULL;
  if (nbytes <= machine_nbytes() && posix_memalign(out, ALIGN, (size_t)nbytes + ALIGN) == 0) return AOT_OK;
  return no_host_memory(of(d), ctx, "a pinned buffer");
}

static aot_status_t host_free(const aot_device_t *d, aot_ctx_t *ctx, void *memory, uint64_t nbytes) {
  (void)d, (void)ctx, (void)nbytes;
  free(memory);
  return AOT_OK;
}

/* ---- timelines: all of it under the lock ---- */

/* 0: the timeline is as high already. failure: the signal of work that failed, which the timeline then owns; or
 * NULL. */
static int raise_to(unit_t *u, aot_point_t point, item_t *failure) {
  aot_timeline_t *t = point.timeline;
  if (point.value <= t->value) return 0;
  if (failure) {
    failure->failed_from = t->value;
    failure->next = t->failures;
    t->failures = failure;
  }
  t->value = point.value;
  pthread_cond_broadcast(&u->changed);
  return 1;
}

/* Of a point that was reached. */
static aot_status_t status_of(aot_point_t point) {
  for (const item_t *f = point.timeline->failures; f; f = f->next)
    if (point.value > f->failed_from && point.value <= f->point.value) return f->failed;
  return AOT_OK;
}

static aot_status_t not_higher(unit_t *u, aot_ctx_t *ctx, uint64_t value) {
  return fail(u, ctx, AOT_E_INVALID, ID ".signal", "a signal of %llu: its timeline has reached that value already",
              (unsigned long long)value);
}

/* ---- queues ---- */

/* Called with the lock, which is released while the item runs. */
static void do_item(aot_queue_t *q, item_t *i) {
  unit_t *u = q->unit;
  item_t *failure = NULL;
  if (i->kind == WAIT) {
    while (i->point.timeline->value < i->point.value && !q->is_closing) pthread_cond_wait(&u->changed, &u->lock);
    if (q->failed == AOT_OK) q->failed = status_of(i->point);
  } else if (i->kind == SIGNAL) {
    i->failed = q->failed;
    failure = q->failed != AOT_OK ? i : NULL;
    q->failed = AOT_OK;
    if (!raise_to(u, i->point, failure)) {
      failure = NULL;
      not_higher(u, i->ctx, i->point.value);
    }
  } else {
    const aot_status_t before = q->failed;
    pthread_mutex_unlock(&u->lock);
    if (i->kind == WORK) q->failed = i->work(i->self, before);
    else if (before == AOT_OK && i->nbytes && i->kind == MOVE) memcpy(i->to, i->from, (size_t)i->nbytes);
    else if (before == AOT_OK && i->nbytes) memset(i->to, i->byte, (size_t)i->nbytes);
    pthread_mutex_lock(&u->lock);
  }
  if (!failure) free(i);
}

/* Runs until the queue is closed. What is left on it then is not done: work is called with AOT_E_CANCELLED. */
static void *run_queue(void *self) {
  aot_queue_t *q = self;
  unit_t *u = q->unit;
  pthread_mutex_lock(&u->lock);
  for (;;) {
    while (!q->first && !q->is_closing) pthread_cond_wait(&u->changed, &u->lock);
    if (!q->first) break;
    item_t *i = q->first;
    if (!(q->first = i->next)) q->end = &q->first;
    if (q->is_closing && q->failed == AOT_OK) q->failed = AOT_E_CANCELLED;
    if (!q->is_closing || i->kind == WORK) do_item(q, i);
    else free(i);
  }
  pthread_mutex_unlock(&u->lock);
  return NULL;
}

static aot_status_t queue_create(const aot_device_t *d, aot_ctx_t *ctx, int32_t kind, aot_queue_t **out) {
  unit_t *u = of(d);
  aot_queue_t *q = calloc(1, sizeof *q);
  (void)kind;
  *out = NULL;
  if (q) {
    q->unit = u;
    q->end = &q->first;
  }
  if (!q || pthread_create(&q->thread, NULL, run_queue, q) != 0) {
    free(q);
    return no_host_memory(u, ctx, "a queue and its thread");
  }
  pthread_mutex_lock(&u->lock);
  q->next = u->queues;
  u->queues = q;
  pthread_mutex_unlock(&u->lock);
  *out = q;
  return AOT_OK;
}

static aot_status_t queue_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q) {
  unit_t *u = of(d);
  aot_queue_t **at = &u->queues;
  (void)ctx;
  pthread_mutex_lock(&u->lock);
  while (*at != q) at = &(*at)->next;
  *at = q->next;
  q->is_closing = 1;
  pthread_cond_broadcast(&u->changed);
  pthread_mutex_unlock(&u->lock);
  pthread_join(q->thread, NULL);
  free(q);
  return AOT_OK;
}

static aot_status_t timeline_create(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t **out) {
  unit_t *u = of(d);
  *out = calloc(1, sizeof **out);
  if (!*out) return no_host_memory(u, ctx, "a timeline");
  pthread_mutex_lock(&u->lock);
  (*out)->next = u->timelines;
  u->timelines = *out;
  pthread_mutex_unlock(&u->lock);
  return AOT_OK;
}

static aot_status_t timeline_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t *t) {
  unit_t *u = of(d);
  aot_timeline_t **at = &u->timelines;
  (void)ctx;
  pthread_mutex_lock(&u->lock);
  while (*at != t) at = &(*at)->next;
  *at = t->next;
  pthread_mutex_unlock(&u->lock);
  for (item_t *f = t->failures, *next; f; f = next) {
    next = f->next;
    free(f);
  }
  free(t);
  return AOT_OK;
}

/* ---- items ---- */

static aot_status_t put(unit_t *u, aot_queue_t *q, const item_t *what) {
  item_t *i = malloc(sizeof *i);
  if (!i) return no_host_memory(u, what->ctx, "an item of a queue");
  *i = *what;
  pthread_mutex_lock(&u->lock);
  *q->end = i;
  q->end = &i->next;
  pthread_cond_broadcast(&u->changed);
  pthread_mutex_unlock(&u->lock);
  return AOT_OK;
}

static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

static aot_status_t put_move(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, void *to, const void *from,
                             uint64_t nbytes) {
  const item_t i = {.kind = MOVE, .ctx = ctx, .to = to, .from = from, .nbytes = nbytes};
  return put(of(d), q, &i);
}

static aot_status_t put_write(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to,
                              const void *from) {
  return put_move(d, ctx, q, at(to.address), from, to.nbytes);
}

static aot_status_t put_read(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, void *to, aot_buffer_t from) {
  return put_move(d, ctx, q, to, at(from.address), from.nbytes);
}

static aot_status_t put_copy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint64_t from) {
  return put_move(d, ctx, q, at(to.address), at(from), to.nbytes);
}

static aot_status_t put_fill(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint8_t byte) {
  const item_t i = {.kind = FILL, .ctx = ctx, .to = at(to.address), .nbytes = to.nbytes, .byte = byte};
  return put(of(d), q, &i);
}

static aot_status_t put_wait(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  const item_t i = {.kind = WAIT, .ctx = ctx, .point = point};
  return put(of(d), q, &i);
}

static aot_status_t put_signal(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  const item_t i = {.kind = SIGNAL, .ctx = ctx, .point = point};
  unit_t *u = of(d);
  pthread_mutex_lock(&u->lock);
  const int is_higher = point.value > point.timeline->value;
  pthread_mutex_unlock(&u->lock);
  return is_higher ? put(u, q, &i) : not_higher(u, ctx, point.value);
}

/* Called once whatever happens, also if the queue has no memory for it. */
static aot_status_t put_work(const aot_ext_host_work_t *x, aot_ctx_t *ctx, aot_queue_t *q, aot_host_work_t work,
                             void *self) {
  const item_t i = {.kind = WORK, .ctx = ctx, .work = work, .self = self};
  const aot_status_t status = put(x->head.self, q, &i);
  if (status != AOT_OK) work(self, status);
  return status;
}

/* ---- the host's side of timelines ---- */

static aot_status_t signal_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point) {
  unit_t *u = of(d);
  pthread_mutex_lock(&u->lock);
  const int is_higher = raise_to(u, point, NULL);
  pthread_mutex_unlock(&u->lock);
  return is_higher ? AOT_OK : not_higher(u, ctx, point.value);
}

static struct timespec deadline(uint64_t timeout_ns) {
  struct timespec t;
  const uint64_t most = UINT64_C(1000000000) * 1000000000u; /* 31 years: larger than any wait, and no overflow */
  if (timeout_ns > most) timeout_ns = most;
  clock_gettime(CLOCK_MONOTONIC, &t);
  timeout_ns += (uint64_t)t.tv_nsec;
  t.tv_sec += (time_t)(timeout_ns / 1000000000u);
  t.tv_nsec = (long)(timeout_ns % 1000000000u);
  return t;
}

static aot_status_t wait_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point, uint64_t timeout_ns) {
  unit_t *u = of(d);
  const struct timespec until = deadline(timeout_ns);
  int is_late = 0;
  pthread_mutex_lock(&u->lock);
  while (point.timeline->value < point.value && !is_late)
    is_late = pthread_cond_timedwait(&u->changed, &u->lock, &until) != 0;
  const uint64_t value = point.timeline->value;
  const aot_status_t status = value >= point.value ? status_of(point) : AOT_E_UNAVAILABLE;
  pthread_mutex_unlock(&u->lock);
  if (value >= point.value) return status; /* failed work has reported its error itself */
  return fail(u, ctx, status, ID ".timeout", "waited %.3f s for value %llu of a timeline, which is at %llu",
              (double)timeout_ns / 1e9, (unsigned long long)point.value, (unsigned long long)value);
}

static uint64_t value(const aot_device_t *d, aot_timeline_t *t) {
  unit_t *u = of(d);
  pthread_mutex_lock(&u->lock);
  const uint64_t now = t->value;
  pthread_mutex_unlock(&u->lock);
  return now;
}

/* ---- the unit ---- */

/* A host that gives up leaves queues, timelines and buffers. */
static void destroy(const aot_table_t *d) {
  unit_t *u = d->self;
  while (u->queues) queue_destroy(&u->table, NULL, u->queues);
  while (u->timelines) timeline_destroy(&u->table, NULL, u->timelines);
  for (block_t *b = u->blocks, *next; b; b = next) {
    next = b->next;
    free(b);
  }
  pthread_cond_destroy(&u->changed);
  pthread_mutex_destroy(&u->lock);
  free(u);
}

static const void *get_ext(const aot_table_t *d, const char *id) {
  const unit_t *u = d->self;
  return strcmp(id, AOT_EXT_HOST_WORK) == 0 ? &u->host_work : NULL;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts, const aot_table_t **out) {
  pthread_condattr_t clock;
  unit_t *u = calloc(1, sizeof *u);
  (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  const aot_status_t status = aot_import(&u->host, sizeof u->host, host);
  if (status != AOT_OK) {
    free(u);
    return status;
  }
  u->capacity = opts->values[0].i ? (uint64_t)opts->values[0].i : machine_nbytes();
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&u->changed, &clock);
  pthread_condattr_destroy(&clock);
  pthread_mutex_init(&u->lock, NULL);
  u->host_work = (aot_ext_host_work_t){.head = {.struct_size = sizeof u->host_work, .self = u}, .enqueue = put_work};
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
  *out = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .max = 1e15,
     .name = AOT_STR_INIT("memory"), .help = AOT_STR_INIT("capacity in bytes; 0: the machine's")},
};
/* clang-format on */

AOT_PLUGIN_ONE("device/1", ID, "1.0", "example", "Apache-2.0", HELP, create, AOT_OPTIONS(options));
