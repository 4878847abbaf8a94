#include "cuda_device.h"

#include "kit/base/errors.h"
#include "kit/ranks/launcher.h"
#include <aot/inline.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The driver and its libraries take some hundred MB: more than this part of a device is another process's. */
enum { OTHERS = 8 };

enum { STANDS_BEHIND = 4 }; /* timelines; a queue of a step knows two: its own, and that of what feeds it */

struct aot_queue {
  gc_stream_t stream;
  aot_queue_t *next;
  uint32_t number; /* from 1, for messages */
  /* points that it has raised itself, or has waited for: what is put there now comes after them anyway */
  struct {
    uint32_t timeline; /* its number; 0: none yet */
    uint64_t value;
  } behind[STANDS_BEHIND];
  uint32_t n_behind; /* put there so far, one over the other */
};

struct aot_timeline {
  _Atomic uint64_t *word; /* pinned; its address is the device's, too */
  uint32_t number;
};

static gc_device_t *of(const aot_device_t *d) { return d->head.self; }

/* ---- errors ---- */

static aot_status_t fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code,
                         const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const aot_diag_t diag = kit_diag(AOT_SEVERITY_ERROR, code, text);
  return kit_report(host, ctx, status, &diag);
}

/* A kernel that traps, or memory that fails, takes the context with it: every later call has the same error. */
static int is_fatal(gc_result_t error) { return error >= 700 || error == GC_ERROR_ECC; }

static aot_status_t tell_lost(gc_device_t *g, aot_ctx_t *ctx) {
  char buffer[192];
  pthread_mutex_lock(&g->lock);
  const int is_told = g->is_lost_told;
  g->is_lost_told = 1;
  pthread_mutex_unlock(&g->lock);
  if (is_told) return AOT_E_DATA_LOSS;
  return fail(&g->host, ctx, AOT_E_DATA_LOSS, "cuda.lost",
              "CUDA device %d (%s) lost, its memory contents are gone: %s; %s", g->ordinal, g->name,
              gc_driver_error(&g->driver, g->lost, buffer, sizeof buffer),
              g->lost == GC_ERROR_ECC
                  ? "uncorrectable memory error (ECC): resume from a checkpoint; use another device if it recurs"
                  : "rerun with AOT_CUDA_SYNC=1 to identify the step");
}

int gc_device_lost(gc_device_t *g, gc_result_t error, int told) {
  if (!is_fatal(error)) return 0;
  pthread_mutex_lock(&g->lock);
  if (g->lost == GC_SUCCESS) g->lost = error;
  g->is_lost_told |= told;
  pthread_mutex_unlock(&g->lock);
  return 1;
}

static int is_lost(gc_device_t *g) {
  pthread_mutex_lock(&g->lock);
  const int lost = g->lost != GC_SUCCESS;
  pthread_mutex_unlock(&g->lock);
  return lost;
}

static aot_status_t check(gc_device_t *g, aot_ctx_t *ctx, gc_result_t result, const char *what) {
  char buffer[192];
  if (result == GC_SUCCESS) return AOT_OK;
  gc_device_lost(g, result, 0);
  if (is_lost(g)) return tell_lost(g, ctx);
  return fail(&g->host, ctx, AOT_E_INTERNAL, "cuda.driver", "device cuda %d (%s): %s: %s", g->ordinal, g->name, what,
              gc_driver_error(&g->driver, result, buffer, sizeof buffer));
}

/* ---- the context ---- */

static void *open_context(void *self) {
  gc_device_t *g = self;
  g->opened = g->driver.primary_ctx_retain(&g->context, g->ordinal);
  if (g->opened != GC_SUCCESS) return g->context = NULL;
  g->opened = g->driver.ctx_set_current(g->context);
  if (g->opened == GC_SUCCESS) g->opened = g->driver.stream_create(&g->setup, GC_STREAM_NON_BLOCKING, 0);
  g->setup_queue->stream = g->setup;
  return NULL;
}

static void begin_to_open(gc_device_t *g) {
  g->is_opening = pthread_create(&g->opener, NULL, open_context, g) == 0;
  if (g->is_opening) return;
  open_context(g);
  atomic_store(&g->is_open, 1);
}

/* Is there a context? */
static int wait_until_open(gc_device_t *g) {
  if (atomic_load(&g->is_open)) return g->opened == GC_SUCCESS;
  pthread_mutex_lock(&g->open_lock);
  if (g->is_opening) pthread_join(g->opener, NULL);
  g->is_opening = 0;
  atomic_store(&g->is_open, 1);
  pthread_mutex_unlock(&g->open_lock);
  return g->opened == GC_SUCCESS;
}

/* Each call comes from any thread, and the driver keeps the context by thread. */
aot_status_t gc_device_enter(gc_device_t *g, aot_ctx_t *ctx) {
  if (!wait_until_open(g)) return check(g, ctx, g->opened, "no context can be made");
  if (is_lost(g)) return tell_lost(g, ctx);
  return check(g, ctx, g->driver.ctx_set_current(g->context), "the context cannot be set");
}

void gc_device_fault(gc_device_t *g, aot_status_t status, const char *code, const char *text, uint32_t node) {
  pthread_mutex_lock(&g->fault_lock);
  if (g->fault.status == AOT_OK) {
    g->fault.status = status;
    g->fault.node = node;
    snprintf(g->fault.code, sizeof g->fault.code, "%s", code);
    snprintf(g->fault.text, sizeof g->fault.text, "%s", text);
  }
  pthread_mutex_unlock(&g->fault_lock);
}

void gc_device_look_at(gc_device_t *g, gc_lookout_t *l) {
  pthread_mutex_lock(&g->lock);
  l->next = g->lookouts;
  g->lookouts = l;
  pthread_mutex_unlock(&g->lock);
}

void gc_device_look_away(gc_device_t *g, gc_lookout_t *l) {
  pthread_mutex_lock(&g->lock);
  gc_lookout_t **at = &g->lookouts;
  while (*at && *at != l) at = &(*at)->next;
  if (*at) {
    l->look(l->self);
    *at = l->next;
  }
  pthread_mutex_unlock(&g->lock);
}

/* Steps that are under way after the point may have failed as well: the first that is seen is reported. */
static aot_status_t tell_fault(gc_device_t *g, aot_ctx_t *ctx) {
  pthread_mutex_lock(&g->lock);
  for (const gc_lookout_t *l = g->lookouts; l; l = l->next) l->look(l->self);
  pthread_mutex_unlock(&g->lock);
  pthread_mutex_lock(&g->fault_lock);
  const aot_status_t status = g->fault.status;
  char code[sizeof g->fault.code], text[sizeof g->fault.text];
  memcpy(code, g->fault.code, sizeof code);
  memcpy(text, g->fault.text, sizeof text);
  const uint32_t node = g->fault.node;
  g->fault.status = AOT_OK;
  pthread_mutex_unlock(&g->fault_lock);
  if (status == AOT_OK) return AOT_OK;
  aot_diag_t diag = kit_diag(AOT_SEVERITY_ERROR, code, text);
  diag.node.id = node;
  return kit_report(&g->host, ctx, status, &diag);
}

/* ---- what it is ---- */

static aot_status_t info(const aot_device_t *d, aot_device_info_t *out) {
  gc_device_t *g = of(d);
  size_t free_nbytes = 0, total_nbytes = 0;
  if (wait_until_open(g) && !is_lost(g) && g->driver.ctx_set_current(g->context) == GC_SUCCESS)
    g->driver.mem_get_info(&free_nbytes, &total_nbytes);
  const aot_device_info_t full = {
      .struct_size = out->struct_size,
      .name = aot_str(g->name),
      .architecture = aot_str(g->architecture),
      .ordinal = (uint32_t)g->ordinal,
      .alignment = 256,
      .total_nbytes = total_nbytes,
      .free_nbytes = free_nbytes,
  };
  memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
  return AOT_OK;
}

/* ---- memory ---- */

static int has_neighbours(const gc_device_t *g, aot_ctx_t *ctx) {
  const int64_t local = rn_told_by_launcher(&g->host, ctx, RN_LOCAL_RANKS);
  return (local < 0 ? rn_told_by_launcher(&g->host, ctx, RN_RANKS) : local) > 1;
}

static gc_result_t get_memory(gc_device_t *g, uint64_t nbytes, gc_address_t *out) {
  if (g->is_shared && gc_shared_memory_get(&g->shared, nbytes, out)) return GC_SUCCESS;
  return g->driver.mem_alloc(out, nbytes ? nbytes : 1); /* which has the error, if there is no memory */
}

static gc_result_t give_memory_back(gc_device_t *g, gc_address_t address) {
  gc_result_t result;
  return gc_shared_memory_give_back(&g->shared, address, &result) ? result : g->driver.mem_free(address);
}

static aot_status_t alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, aot_buffer_t *out) {
  gc_device_t *g = of(d);
  gc_address_t address = 0;
  size_t free_nbytes = 0, total_nbytes = 0;
  AOT_TRY(gc_device_enter(g, ctx));
  const gc_result_t result = get_memory(g, nbytes, &address);
  if (result == GC_ERROR_OUT_OF_MEMORY) {
    g->driver.mem_get_info(&free_nbytes, &total_nbytes);
    const uint64_t others = total_nbytes - free_nbytes - atomic_load(&g->own_nbytes);
    return fail(
        &g->host, ctx, AOT_E_EXHAUSTED, "cuda.memory",
        "device cuda %d (%s) has no memory for %llu bytes: %llu of its %llu are free, %llu are this program's%s",
        g->ordinal, g->name, (unsigned long long)nbytes, (unsigned long long)free_nbytes,
        (unsigned long long)total_nbytes, (unsigned long long)atomic_load(&g->own_nbytes),
        others > total_nbytes / OTHERS ? "; another process has much of the rest" : "");
  }
  AOT_TRY(check(g, ctx, result, "memory cannot be had"));
  *out = (aot_buffer_t){address, nbytes};
  atomic_fetch_add(&g->own_nbytes, nbytes);
  return AOT_OK;
}

static aot_status_t release(const aot_device_t *d, aot_ctx_t *ctx, aot_buffer_t whole) {
  gc_device_t *g = of(d);
  if (is_lost(g)) return AOT_OK; /* it went with the context */
  atomic_fetch_sub(&g->own_nbytes, whole.nbytes);
  AOT_TRY(gc_device_enter(g, ctx));
  return check(g, ctx, give_memory_back(g, whole.address), "memory cannot be freed");
}

static aot_status_t host_alloc(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, void **out) {
  gc_device_t *g = of(d);
  *out = NULL;
  AOT_TRY(gc_device_enter(g, ctx));
  const gc_result_t result =
      g->driver.mem_host_alloc(out, nbytes ? nbytes : 1, GC_HOST_MEMORY_PORTABLE | GC_HOST_MEMORY_DEVICE_MAP);
  if (result == GC_ERROR_OUT_OF_MEMORY)
    return fail(&g->host, ctx, AOT_E_EXHAUSTED, "cuda.memory", "the host has no pinned memory of %llu bytes",
                (unsigned long long)nbytes);
  return check(g, ctx, result, "pinned memory cannot be had");
}

static aot_status_t host_free(const aot_device_t *d, aot_ctx_t *ctx, void *memory, uint64_t nbytes) {
  gc_device_t *g = of(d);
  (void)nbytes;
  if (!memory || is_lost(g)) return AOT_OK;
  AOT_TRY(gc_device_enter(g, ctx));
  return check(g, ctx, g->driver.mem_free_host(memory), "pinned memory cannot be freed");
}

/* ---- queues and timelines ---- */

/* Blocks of a collective come before those of kernels that wait for a multiprocessor, too: it is as late as its last
 * rank, and on every other the blocks that it has wait where kernels could run. */
static aot_status_t make_queue(gc_device_t *g, aot_ctx_t *ctx, int32_t kind, aot_queue_t **out) {
  const int priority = kind == AOT_QUEUE_COLLECTIVE ? INT_MIN : 0;
  aot_queue_t *q = calloc(1, sizeof *q);
  if (!q) return kit_no_memory(&g->host, ctx, "no-memory", aot_no_node(), "for a queue");
  aot_status_t status = gc_device_enter(g, ctx);
  if (status == AOT_OK)
    status =
        check(g, ctx, g->driver.stream_create(&q->stream, GC_STREAM_NON_BLOCKING, priority), "a stream cannot be made");
  if (status == AOT_OK) *out = q;
  else free(q);
  return status;
}

static aot_status_t queue_create(const aot_device_t *d, aot_ctx_t *ctx, int32_t kind, aot_queue_t **out) {
  gc_device_t *g = of(d);
  AOT_TRY(make_queue(g, ctx, kind, out)); /* the driver finds the copy engines itself */
  pthread_mutex_lock(&g->lock);
  (*out)->number = ++g->n_queues_made;
  (*out)->next = g->queues;
  g->queues = *out;
  pthread_mutex_unlock(&g->lock);
  return AOT_OK;
}

aot_queue_t *gc_device_collectives(gc_device_t *g, aot_ctx_t *ctx) {
  aot_queue_t *made = NULL;
  pthread_mutex_lock(&g->lock);
  aot_queue_t *q = g->collectives;
  pthread_mutex_unlock(&g->lock);
  if (q || make_queue(g, ctx, AOT_QUEUE_COLLECTIVE, &made) != AOT_OK) return q;
  pthread_mutex_lock(&g->lock);
  if (!g->collectives) g->collectives = made;
  q = g->collectives;
  pthread_mutex_unlock(&g->lock);
  if (q == made) return q;
  g->driver.stream_destroy(made->stream);
  free(made);
  return q;
}

static aot_status_t queue_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q) {
  gc_device_t *g = of(d);
  pthread_mutex_lock(&g->lock);
  aot_queue_t **at = &g->queues;
  while (*at != q && *at) at = &(*at)->next;
  if (*at) *at = q->next;
  pthread_mutex_unlock(&g->lock);
  const gc_stream_t stream = q->stream;
  free(q);
  if (is_lost(g)) return AOT_OK;
  AOT_TRY(gc_device_enter(g, ctx));
  return check(g, ctx, g->driver.stream_destroy(stream), "a stream cannot be destroyed");
}

static aot_status_t timeline_create(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t **out) {
  gc_device_t *g = of(d);
  aot_timeline_t *t = calloc(1, sizeof *t);
  void *word = NULL;
  if (!t) return kit_no_memory(&g->host, ctx, "no-memory", aot_no_node(), "for a timeline");
  const aot_status_t status = host_alloc(d, ctx, sizeof *t->word, &word);
  if (status != AOT_OK) {
    free(t);
    return status;
  }
  t->word = word;
  atomic_init(t->word, 0);
  pthread_mutex_lock(&g->lock);
  t->number = ++g->n_timelines_made;
  pthread_mutex_unlock(&g->lock);
  *out = t;
  return AOT_OK;
}

static aot_status_t timeline_destroy(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t *t) {
  const aot_status_t status = host_free(d, ctx, (void *)t->word, sizeof *t->word);
  free(t);
  return status;
}

gc_stream_t gc_queue_stream(const aot_queue_t *q) { return q->stream; }

static gc_address_t address_of(const aot_timeline_t *t) { return (gc_address_t)(uintptr_t)t->word; }

/* ---- work on a queue ---- */

static aot_status_t put_write(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to,
                              const void *from) {
  gc_device_t *g = of(d);
  AOT_TRY(gc_device_enter(g, ctx));
  if (!to.nbytes) return AOT_OK;
  return check(g, ctx, g->driver.memcpy_to_device(to.address, from, to.nbytes, q->stream), "a write is refused");
}

static aot_status_t put_read(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, void *to, aot_buffer_t from) {
  gc_device_t *g = of(d);
  AOT_TRY(gc_device_enter(g, ctx));
  if (!from.nbytes) return AOT_OK;
  return check(g, ctx, g->driver.memcpy_to_host(to, from.address, from.nbytes, q->stream), "a read is refused");
}

static aot_status_t put_copy(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint64_t from) {
  gc_device_t *g = of(d);
  AOT_TRY(gc_device_enter(g, ctx));
  if (!to.nbytes) return AOT_OK;
  return check(g, ctx, g->driver.memcpy_on_device(to.address, from, to.nbytes, q->stream), "a copy is refused");
}

static aot_status_t put_fill(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to, uint8_t byte) {
  gc_device_t *g = of(d);
  AOT_TRY(gc_device_enter(g, ctx));
  if (!to.nbytes) return AOT_OK;
  return check(g, ctx, g->driver.memset_bytes(to.address, byte, to.nbytes, q->stream), "a fill is refused");
}

/* A timeline only grows, so the highest of its points is all that counts. */
static void note_behind(gc_device_t *g, aot_queue_t *q, aot_point_t point) {
  uint32_t k = 0;
  pthread_mutex_lock(&g->lock);
  while (k < STANDS_BEHIND && q->behind[k].timeline != point.timeline->number) k++;
  if (k == STANDS_BEHIND) {
    k = q->n_behind++ % STANDS_BEHIND;
    q->behind[k].value = 0;
  }
  q->behind[k].timeline = point.timeline->number;
  if (point.value > q->behind[k].value) q->behind[k].value = point.value;
  pthread_mutex_unlock(&g->lock);
}

static int stands_behind(gc_device_t *g, const aot_queue_t *q, aot_point_t point) {
  int does = 0;
  pthread_mutex_lock(&g->lock);
  for (uint32_t k = 0; k < STANDS_BEHIND; k++)
    does |= q->behind[k].timeline == point.timeline->number && q->behind[k].value >= point.value;
  pthread_mutex_unlock(&g->lock);
  return does;
}

static aot_status_t put_wait(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  gc_device_t *g = of(d);
  if (stands_behind(g, q, point)) return is_lost(g) ? tell_lost(g, ctx) : AOT_OK;
  AOT_TRY(gc_device_enter(g, ctx));
  AOT_TRY(check(g, ctx, g->driver.stream_wait_value(q->stream, address_of(point.timeline), point.value, GC_WAIT_GEQ),
                "a wait is refused"));
  note_behind(g, q, point);
  return AOT_OK;
}

static aot_status_t check_higher(gc_device_t *g, aot_ctx_t *ctx, aot_point_t point) {
  const uint64_t value = atomic_load_explicit(point.timeline->word, memory_order_acquire);
  if (point.value > value) return AOT_OK;
  return fail(&g->host, ctx, AOT_E_INVALID, "cuda.signal", "timeline %u is to be raised to %llu, and is at %llu",
              point.timeline->number, (unsigned long long)point.value, (unsigned long long)value);
}

static aot_status_t put_signal(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  gc_device_t *g = of(d);
  AOT_TRY(gc_device_enter(g, ctx));
  AOT_TRY(check_higher(g, ctx, point));
  AOT_TRY(check(g, ctx, g->driver.stream_write_value(q->stream, address_of(point.timeline), point.value, 0),
                "a signal is refused"));
  note_behind(g, q, point);
  return AOT_OK;
}

/* ---- the host's side ---- */

static aot_status_t signal_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point) {
  gc_device_t *g = of(d);
  if (is_lost(g)) return tell_lost(g, ctx);
  AOT_TRY(check_higher(g, ctx, point));
  atomic_store_explicit(point.timeline->word, point.value, memory_order_release);
  return AOT_OK;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* How many queues still have work; an error of any of them is the device's. */
static uint32_t n_busy(gc_device_t *g) {
  uint32_t n = 0;
  gc_result_t error = GC_SUCCESS;
  pthread_mutex_lock(&g->lock);
  for (const aot_queue_t *q = g->queues; q; q = q->next) {
    const gc_result_t result = g->driver.stream_query(q->stream);
    if (result == GC_ERROR_NOT_READY) n++;
    else if (result != GC_SUCCESS) error = result;
  }
  pthread_mutex_unlock(&g->lock);
  gc_device_lost(g, error, 0);
  return n;
}

/* A step takes milliseconds and a wait should cost none of them: the word is read without a pause for SPIN_NS, then
 * with longer and longer ones. From then on the driver is queried every ASK_NS whether the device still lives. A wait
 * without a limit for what no queue can raise any more ends after IDLE_NS in which no queue had work: another thread of
 * the host may be about to raise it. One for work that does not end gives the device up: whatever queries the driver
 * for more would wait for that work, too. */
enum { SPIN_NS = 50000, ASK_NS = 2000000 };
#define IDLE_NS (UINT64_C(60) * 1000000000u)

typedef struct waiter {
  aot_point_t point;
  uint64_t begin, asked, busy; /* since when; the driver was queried last; a queue had work last */
  uint32_t n_busy;             /* queues with work, then */
} waiter_t;

static aot_status_t give_up(gc_device_t *g, aot_ctx_t *ctx, const waiter_t *w, uint64_t now, int hangs) {
  if (hangs) gc_device_lost(g, GC_ERROR_LAUNCH_TIMEOUT, 1);
  return fail(&g->host, ctx, hangs ? AOT_E_DATA_LOSS : AOT_E_UNAVAILABLE, "cuda.wait",
              "device cuda %d (%s): timeline %u is at %llu and was not raised to %llu within %.1f s; queues with work: "
              "%u%s",
              g->ordinal, g->name, w->point.timeline->number, (unsigned long long)atomic_load(w->point.timeline->word),
              (unsigned long long)w->point.value, (double)(now - w->begin) * 1e-9, w->n_busy,
              hangs ? "; the device is given up" : "");
}

static aot_status_t wait_host(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point, uint64_t timeout_ns) {
  gc_device_t *g = of(d);
  const uint64_t begin = now_ns();
  const uint64_t first = timeout_ns < SPIN_NS ? timeout_ns : SPIN_NS;
  waiter_t w = {.point = point, .begin = begin, .asked = begin + first - ASK_NS, .busy = begin};
  uint64_t pause_ns = 5000;
  while (atomic_load_explicit(point.timeline->word, memory_order_acquire) < point.value) {
    const uint64_t now = now_ns();
    if (now - w.asked >= ASK_NS) {
      w.asked = now;
      AOT_TRY(gc_device_enter(g, ctx));
      w.n_busy = n_busy(g);
      if (w.n_busy) w.busy = now;
      if (is_lost(g)) return tell_lost(g, ctx);
    }
    if (now - begin >= timeout_ns || now - w.busy >= IDLE_NS) return give_up(g, ctx, &w, now, 0);
    if (now - begin >= g->patience_ns && w.n_busy) return give_up(g, ctx, &w, now, 1);
    if (now - begin < SPIN_NS) continue;
    nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
    if (pause_ns < 200000) pause_ns += pause_ns / 4;
  }
  return is_lost(g) ? tell_lost(g, ctx) : tell_fault(g, ctx);
}

static uint64_t value(const aot_device_t *d, aot_timeline_t *t) {
  (void)d;
  return atomic_load_explicit(t->word, memory_order_acquire);
}

/* ---- the table ---- */

static void destroy(const aot_table_t *d) {
  gc_device_t *g = d->self;
  wait_until_open(g);
  while (g->queues) queue_destroy(&g->table, NULL, g->queues);
  if (g->setup && !is_lost(g)) g->driver.stream_destroy(g->setup);
  if (g->collectives && !is_lost(g)) g->driver.stream_destroy(g->collectives->stream);
  free(g->collectives);
  free(g->setup_queue);
  gc_shared_memory_deinit(&g->shared, is_lost(g));
  if (g->context && g->lost != GC_ERROR_LAUNCH_TIMEOUT) /* it would wait for the work */
    g->driver.primary_ctx_release(g->ordinal);
  pthread_mutex_destroy(&g->open_lock);
  pthread_mutex_destroy(&g->lock);
  pthread_mutex_destroy(&g->fault_lock);
  free(g);
}

static aot_status_t open_device(gc_device_t *g, aot_ctx_t *ctx, int ordinal) {
  char why[256];
  int count = 0, major = 0, minor = 0;
  gc_driver_t *const cu = &g->driver;
  if (gc_driver_open(cu, why, sizeof why)) return fail(&g->host, ctx, AOT_E_UNAVAILABLE, "cuda.no-driver", "%s", why);
  AOT_TRY(check(g, ctx, cu->device_get_count(&count), "devices cannot be counted"));
  if (ordinal < 0) ordinal = rn_device_of_rank(&g->host, ctx, count);
  if (ordinal >= count)
    return fail(&g->host, ctx, AOT_E_NOT_FOUND, "cuda.no-device",
                "there is no device cuda %d: the driver has %d, counted from 0", ordinal, count);
  AOT_TRY(check(g, ctx, cu->device_get(&g->ordinal, ordinal), "the device cannot be had"));
  AOT_TRY(check(g, ctx, cu->device_get_name(g->name, sizeof g->name, g->ordinal), "it has no name"));
  AOT_TRY(check(g, ctx, cu->device_get_attribute(&major, GC_CAPABILITY_MAJOR, g->ordinal), "it has no architecture"));
  AOT_TRY(check(g, ctx, cu->device_get_attribute(&minor, GC_CAPABILITY_MINOR, g->ordinal), "it has no architecture"));
  snprintf(g->architecture, sizeof g->architecture, "sm_%d%d", major, minor);
  g->setup_queue = calloc(1, sizeof *g->setup_queue);
  if (!g->setup_queue) return kit_no_memory(&g->host, ctx, "no-memory", aot_no_node(), "for a queue");
  gc_shared_memory_init(&g->shared, cu, g->ordinal);
  g->is_shared = has_neighbours(g, ctx);
  begin_to_open(g);
  return AOT_OK;
}

/* ---- streams, for units that know CUDA ---- */

aot_queue_t *gc_stream_queue(gc_device_t *g, gc_stream_t stream) {
  if (stream == g->setup) return g->setup_queue;
  pthread_mutex_lock(&g->lock);
  aot_queue_t *q = g->queues;
  while (q && q->stream != stream) q = q->next;
  pthread_mutex_unlock(&g->lock);
  return q;
}

static aot_status_t enter_stream(const aot_ext_stream_t *x, aot_ctx_t *ctx) {
  return gc_device_enter(x->head.self, ctx);
}

static void *stream_of(const aot_ext_stream_t *x, const aot_queue_t *q) {
  (void)x;
  return q->stream;
}

/* Pinned memory has the same address for the device (cuMemHostAlloc, mapped). */
static aot_status_t mark(const aot_ext_stream_t *x, aot_ctx_t *ctx, aot_queue_t *q, uint64_t *word, uint64_t value) {
  gc_device_t *g = x->head.self;
  return check(g, ctx, g->driver.stream_write_value(q->stream, (gc_address_t)(uintptr_t)word, value, 0),
               "a word cannot be written from a queue");
}

static const void *get_ext(const aot_table_t *d, const char *id) {
  if (strcmp(id, AOT_EXT_STREAM) == 0) return &((gc_device_t *)d->self)->stream;
  return strcmp(id, GC_EXT_DEVICE) == 0 ? d->self : NULL;
}

gc_device_t *gc_device_create(const aot_host_t *host, aot_ctx_t *ctx, int ordinal, int64_t patience_s,
                              aot_status_t *out_status) {
  gc_device_t *g = calloc(1, sizeof *g);
  if (!g) {
    *out_status = kit_no_memory(host, ctx, "no-memory", aot_no_node(), "for the device");
    return NULL;
  }
  g->host = *host;
  g->patience_ns = (uint64_t)patience_s * 1000000000u;
  g->stream = (aot_ext_stream_t){.head = {.struct_size = sizeof g->stream, .self = g},
                                 .runtime = aot_str("cuda"),
                                 .enter = enter_stream,
                                 .stream = stream_of,
                                 .mark = mark};
  g->table = (aot_device_t){
      .head = {.struct_size = sizeof g->table, .self = g, .destroy = destroy, .get_ext = get_ext},
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
  pthread_mutex_init(&g->lock, NULL);
  pthread_mutex_init(&g->fault_lock, NULL);
  pthread_mutex_init(&g->open_lock, NULL);
  *out_status = open_device(g, ctx, ordinal);
  if (*out_status == AOT_OK) return g;
  pthread_mutex_destroy(&g->lock);
  pthread_mutex_destroy(&g->fault_lock);
  pthread_mutex_destroy(&g->open_lock);
  free(g->setup_queue);
  free(g);
  return NULL;
}
