#include "shared_memory.h"

#include <stdlib.h>

typedef struct gc_range { /* addresses that are the device's until it ends */
  gc_address_t address;
  uint64_t nbytes;
  struct gc_range *next;
} gc_range_t;

static gc_memory_wish_t wish(const gc_shared_memory_t *m) {
  return (gc_memory_wish_t){.type = GC_MEMORY_PINNED,
                            .handle_types = GC_MEMORY_BY_FILE_DESCRIPTOR,
                            .location = {GC_LOCATION_DEVICE, m->ordinal}};
}

static int is_whole(const gc_driver_t *d) {
  return d->mem_granularity && d->mem_create && d->mem_release && d->mem_address_reserve && d->mem_address_free &&
         d->mem_map && d->mem_unmap && d->mem_set_access;
}

void gc_shared_memory_init(gc_shared_memory_t *m, const gc_driver_t *driver, gc_ordinal_t ordinal) {
  size_t granularity = 0;
  *m = (gc_shared_memory_t){.driver = driver, .ordinal = ordinal};
  pthread_mutex_init(&m->lock, NULL);
  const gc_memory_wish_t page = wish(m);
  if (is_whole(driver) && driver->mem_granularity(&granularity, &page, GC_GRANULARITY_RECOMMENDED) == GC_SUCCESS)
    m->granularity = granularity;
}

static void drop(gc_shared_memory_t *m, gc_range_t *all, int is_lost) {
  for (gc_range_t *r = all, *next; r; r = next) {
    next = r->next;
    if (!is_lost) m->driver->mem_address_free(r->address, (size_t)r->nbytes);
    free(r);
  }
}

void gc_shared_memory_deinit(gc_shared_memory_t *m, int is_lost) {
  drop(m, m->gone, is_lost);
  drop(m, m->mapped, 1);
  pthread_mutex_destroy(&m->lock);
}

/* Pages at addresses that are there. The mapping keeps the pages, the handle need not. */
static gc_result_t fill(const gc_shared_memory_t *m, const gc_range_t *r) {
  const gc_driver_t *d = m->driver;
  const gc_memory_wish_t pages = wish(m);
  const gc_access_t access = {{GC_LOCATION_DEVICE, m->ordinal}, GC_ACCESS_READ_WRITE};
  gc_memory_t memory;
  gc_result_t result = d->mem_create(&memory, (size_t)r->nbytes, &pages, 0);
  if (result != GC_SUCCESS) return result;
  result = d->mem_map(r->address, (size_t)r->nbytes, 0, memory, 0);
  d->mem_release(memory);
  if (result != GC_SUCCESS) return result;
  result = d->mem_set_access(r->address, (size_t)r->nbytes, &access, 1);
  if (result != GC_SUCCESS) d->mem_unmap(r->address, (size_t)r->nbytes);
  return result;
}

int gc_shared_memory_get(gc_shared_memory_t *m, uint64_t nbytes, gc_address_t *out) {
  const gc_driver_t *d = m->driver;
  if (!m->granularity || nbytes < m->granularity || nbytes > UINT64_MAX - m->granularity) return 0;
  gc_range_t *r = malloc(sizeof *r);
  if (!r) return 0;
  *r = (gc_range_t){.nbytes = (nbytes + m->granularity - 1) / m->granularity * m->granularity};
  if (d->mem_address_reserve(&r->address, (size_t)r->nbytes, (size_t)m->granularity, 0, 0) != GC_SUCCESS)
    return free(r), 0;
  if (fill(m, r) != GC_SUCCESS) {
    d->mem_address_free(r->address, (size_t)r->nbytes); /* nothing has seen them */
    return free(r), 0;
  }
  *out = r->address;
  pthread_mutex_lock(&m->lock);
  r->next = m->mapped;
  m->mapped = r;
  pthread_mutex_unlock(&m->lock);
  return 1;
}

int gc_shared_memory_give_back(gc_shared_memory_t *m, gc_address_t address, gc_result_t *out) {
  pthread_mutex_lock(&m->lock);
  gc_range_t **at = &m->mapped;
  while (*at && (*at)->address != address) at = &(*at)->next;
  gc_range_t *r = *at;
  if (r) {
    *at = r->next;
    r->next = m->gone;
    m->gone = r;
  }
  pthread_mutex_unlock(&m->lock);
  if (!r) return 0;
  *out = m->driver->mem_unmap(r->address, (size_t)r->nbytes);
  return 1;
}
