/* device-strict with a function that is wrong. */
#include "wrong_units.h"

#include <aot/inline.h>
#include <strict_device.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct wrong_device {
  aot_device_t table; /* its address is what calls come with; self: the strict device's, for functions that are right */
  aot_ext_host_work_t host_work;
  const aot_device_t *strict;
  fault_t fault;
  int n_queues;
  aot_buffer_t last; /* that was had, by whichever thread */
} wrong_device_t;

static wrong_device_t *of(const aot_device_t *d) { return (wrong_device_t *)(uintptr_t)d; }

static aot_status_t odd_alignment(const aot_device_t *d, aot_device_info_t *out) {
  const aot_status_t status = of(d)->strict->info(of(d)->strict, out);
  if (out->struct_size >= sizeof *out) out->alignment = 3;
  return status;
}

static aot_status_t alloc_anything(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, aot_buffer_t *out) {
  const aot_device_t *strict = of(d)->strict;
  AOT_TRY(strict->alloc(strict, ctx, nbytes >> 40 ? 64 : nbytes, out));
  out->nbytes = nbytes;
  return AOT_OK;
}

static aot_status_t alloc_for_one(const aot_device_t *d, aot_ctx_t *ctx, uint64_t nbytes, aot_buffer_t *out) {
  wrong_device_t *w = of(d);
  AOT_TRY(w->strict->alloc(w->strict, ctx, nbytes, &w->last));
  usleep(50);
  *out = w->last;
  return AOT_OK;
}

static aot_status_t read_short(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, void *to, aot_buffer_t from) {
  const aot_device_t *strict = of(d)->strict;
  if (from.nbytes > 64) from.nbytes--;
  return strict->read(strict, ctx, q, to, from);
}

static aot_status_t wait_not(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point) {
  (void)d, (void)ctx, (void)q, (void)point;
  return AOT_OK;
}

static aot_status_t signal_back(const aot_device_t *d, aot_ctx_t *ctx, aot_point_t point) {
  const aot_device_t *strict = of(d)->strict;
  if (point.value <= strict->value(strict, point.timeline)) return AOT_OK;
  return strict->signal_host(strict, ctx, point);
}

static aot_status_t timeline_stays(const aot_device_t *d, aot_ctx_t *ctx, aot_timeline_t *t) {
  (void)d, (void)ctx, (void)t;
  return AOT_OK;
}

static aot_status_t count_queue(const aot_device_t *d, aot_ctx_t *ctx, int32_t kind, aot_queue_t **out) {
  of(d)->n_queues++;
  return of(d)->strict->queue_create(of(d)->strict, ctx, kind, out);
}

static aot_status_t count_queue_off(const aot_device_t *d, aot_ctx_t *ctx, aot_queue_t *q) {
  of(d)->n_queues--;
  return of(d)->strict->queue_destroy(of(d)->strict, ctx, q);
}

static void destroy(const aot_table_t *t) {
  wrong_device_t *w = (wrong_device_t *)(uintptr_t)t;
  if (w->n_queues) abort();
  w->strict->head.destroy(&w->strict->head);
  free(w);
}

/* ---- work of the host's ---- */

typedef struct wrapped {
  aot_host_work_t work;
  void *self;
  fault_t fault;
} wrapped_t;

static aot_status_t work_wrongly(void *self, aot_status_t before) {
  const wrapped_t w = *(wrapped_t *)self;
  free(self);
  const aot_status_t status = w.work(w.self, before);
  if (w.fault == FAULT_device_work_twice) return w.work(w.self, before);
  return w.fault == FAULT_device_failure_lost ? AOT_OK : status;
}

static aot_status_t enqueue(const aot_ext_host_work_t *x, aot_ctx_t *ctx, aot_queue_t *q, aot_host_work_t work,
                            void *self) {
  const wrong_device_t *w = x->head.self;
  const aot_ext_host_work_t *strict = aot_ext(&w->strict->head, AOT_EXT_HOST_WORK);
  wrapped_t *wrapped = malloc(sizeof *wrapped);
  if (!wrapped) return AOT_E_EXHAUSTED;
  *wrapped = (wrapped_t){work, self, w->fault};
  return strict->enqueue(strict, ctx, q, work_wrongly, wrapped);
}

static const void *get_ext(const aot_table_t *t, const char *id) {
  const wrong_device_t *w = (const wrong_device_t *)(uintptr_t)t;
  const int is_wrapped = w->fault == FAULT_device_work_twice || w->fault == FAULT_device_failure_lost;
  if (is_wrapped && strcmp(id, AOT_EXT_HOST_WORK) == 0) return &w->host_work;
  return w->strict->head.get_ext(&w->strict->head, id);
}

const aot_table_t *wrong_device(const aot_host_t *host, fault_t fault) {
  wrong_device_t *w = calloc(1, sizeof *w);
  const sd_device_t *strict = w ? sd_device_create(host, &(sd_options_t){.takes_host_work = 1}) : NULL;
  if (!strict) {
    free(w);
    return NULL;
  }
  *w = (wrong_device_t){.table = strict->table, .strict = &strict->table, .fault = fault};
  w->host_work = (aot_ext_host_work_t){.head = {.struct_size = sizeof w->host_work, .self = w}, .enqueue = enqueue};
  w->table.head.destroy = destroy;
  w->table.head.get_ext = get_ext;
  if (fault == FAULT_device_alignment) w->table.info = odd_alignment;
  if (fault == FAULT_device_endless_memory) w->table.alloc = alloc_anything;
  if (fault == FAULT_device_short_read) w->table.read = read_short;
  if (fault == FAULT_device_waits_not) w->table.wait = wait_not;
  if (fault == FAULT_device_goes_back) w->table.signal_host = signal_back;
  if (fault == FAULT_device_one_thread) w->table.alloc = alloc_for_one;
  if (fault == FAULT_device_leaks) w->table.timeline_destroy = timeline_stays;
  if (fault == FAULT_device_ends_badly) {
    w->table.queue_create = count_queue;
    w->table.queue_destroy = count_queue_off;
  }
  return &w->table.head;
}
