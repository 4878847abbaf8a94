#include <device/guards.h>

#include <device/host_device.h>
#include <ir/program.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct row {
  char *data;
  uint64_t nbytes;
  char *begin, *end; /* pages between the guards */
} row_t;

struct aoth_guards {
  row_t *rows; /* by address */
  size_t n, capacity, page;
};

aoth_guards_t *aoth_guards_create(void) {
  aoth_guards_t *g = calloc(1, sizeof *g);
  if (g) g->page = (size_t)sysconf(_SC_PAGESIZE);
  return g;
}

static void unmap(const aoth_guards_t *g, const row_t *r) {
  munmap(r->begin - g->page, (size_t)(r->end - r->begin) + 2 * g->page);
}

void aoth_guards_destroy(aoth_guards_t *g) {
  if (!g) return;
  for (size_t i = 0; i < g->n; i++) unmap(g, &g->rows[i]);
  free(g->rows);
  free(g);
}

/* ---- poison ---- */

static char poison_at(const char *at) { return (uintptr_t)at & 1 ? 0x7f : (char)0xff; }

static void poison(char *begin, const char *end) {
  for (char *at = begin; at < end; at++) *at = poison_at(at);
}

static char *first_written(char *begin, const char *end) {
  while (begin < end && *begin == poison_at(begin)) begin++;
  return begin;
}

/* ---- buffers ---- */

/* How many begin at or before the address. */
static size_t rows_before(const aoth_guards_t *g, const char *address) {
  size_t low = 0, high = g->n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if ((uintptr_t)g->rows[middle].data <= (uintptr_t)address) low = middle + 1;
    else high = middle;
  }
  return low;
}

static const row_t *find(const aoth_guards_t *g, const void *address) {
  const size_t n = rows_before(g, address);
  const row_t *r = n ? &g->rows[n - 1] : NULL;
  return r && (uintptr_t)address - (uintptr_t)r->data <= r->nbytes ? r : NULL;
}

int aoth_guards_alloc(aoth_guards_t *g, uint64_t nbytes, aot_buffer_t *out) {
  const size_t aligned = (size_t)(nbytes + AOTH_HOST_ALIGN - 1) / AOTH_HOST_ALIGN * AOTH_HOST_ALIGN;
  const size_t body = (aligned + g->page) / g->page * g->page; /* also of nothing, a page */
  if (nbytes > SIZE_MAX / 4) return 0;
  if (g->n == g->capacity) {
    const size_t capacity = g->capacity ? 2 * g->capacity : 64;
    row_t *rows = realloc(g->rows, capacity * sizeof *rows);
    if (!rows) return 0;
    g->rows = rows;
    g->capacity = capacity;
  }
  char *map = mmap(NULL, body + 2 * g->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return 0;
  row_t r = {.nbytes = nbytes, .begin = map + g->page, .end = map + g->page + body};
  r.data = r.end - aligned;
  if (mprotect(r.begin, body, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, body + 2 * g->page);
    return 0;
  }
  poison(r.begin, r.end);
  const size_t at = rows_before(g, r.data);
  memmove(g->rows + at + 1, g->rows + at, (g->n - at) * sizeof *g->rows);
  g->rows[at] = r;
  g->n++;
  *out = (aot_buffer_t){(uintptr_t)r.data, nbytes};
  return 1;
}

void aoth_guards_free(aoth_guards_t *g, aot_buffer_t whole) {
  const size_t at = rows_before(g, (const char *)(uintptr_t)whole.address) - 1;
  unmap(g, &g->rows[at]);
  g->n--;
  memmove(g->rows + at, g->rows + at + 1, (g->n - at) * sizeof *g->rows);
}

void aoth_guards_poison(const aoth_guards_t *g, aot_buffer_t whole) {
  const row_t *r = find(g, (const void *)(uintptr_t)whole.address);
  poison(r->begin, r->end);
}

/* ---- around a call ---- */

static void protect(const row_t *r, int protection) { mprotect(r->begin, (size_t)(r->end - r->begin), protection); }

void aoth_guards_close(const aoth_guards_t *g, const aot_binding_t *b) {
  for (uint64_t i = 0; i < b->n_inputs; i++) {
    const row_t *r = find(g, b->inputs[i].data);
    if (r) protect(r, PROT_READ);
  }
  for (uint64_t i = 0; i < b->n_outputs; i++) {
    const row_t *r = find(g, b->outputs[i].data);
    if (r) protect(r, PROT_READ | PROT_WRITE);
  }
}

static aot_status_t tell(aot_ctx_t *ctx, const char *doing, const char *what, int64_t port, uint64_t nbytes,
                         int64_t at) {
  char name[64];
  if (port < 0) snprintf(name, sizeof name, "%s", what);
  else snprintf(name, sizeof name, "%s %lld", what, (long long)port);
  if (at < 0)
    return aoth_report_error(ctx, AOT_E_CONTRACT, "run.overrun",
                             "%s wrote %lld bytes before the beginning of its %s of %llu bytes", doing, (long long)-at,
                             name, (unsigned long long)nbytes);
  return aoth_report_error(ctx, AOT_E_CONTRACT, "run.overrun", "%s wrote to byte %lld of its %s of %llu bytes", doing,
                           (long long)at, name, (unsigned long long)nbytes);
}

/* The poison behind an output that is a part of a buffer: its place was rounded up, and a red zone follows. */
static aot_status_t check_zone(const aoth_guards_t *g, aot_ctx_t *ctx, const aot_tensor_t *t, uint64_t port,
                               const char *doing) {
  const row_t *r = t->rank < 0 ? NULL : find(g, t->data);
  char *end = (char *)t->data + t->nbytes;
  if (!r || !t->nbytes || end >= r->data + r->nbytes) return AOT_OK; /* what ends with its buffer is checked with it */
  const uint64_t zone = (AOTH_HOST_ALIGN - t->nbytes % AOTH_HOST_ALIGN) % AOTH_HOST_ALIGN + AOTH_RED_ZONE;
  char *written = first_written(end, end + zone);
  if (written == end + zone) return AOT_OK;
  poison(end, end + zone);
  return tell(ctx, doing, "output", (int64_t)port, t->nbytes, written - (char *)t->data);
}

/* What a buffer is to the call. */
static aot_status_t tell_buffer(aot_ctx_t *ctx, const aot_binding_t *b, const char *doing, const row_t *r, int64_t at) {
  const void *data = r->data;
  if ((uintptr_t)data == b->arena.address) return tell(ctx, doing, "arena", -1, r->nbytes, at);
  for (uint64_t i = 0; i < b->n_outputs; i++)
    if (b->outputs[i].data == data) return tell(ctx, doing, "output", (int64_t)i, r->nbytes, at);
  for (uint64_t i = 0; i < b->n_inputs; i++)
    if (b->inputs[i].data == data) return tell(ctx, doing, "input", (int64_t)i, r->nbytes, at);
  return tell(ctx, doing, "block of ports", -1, r->nbytes, at);
}

aot_status_t aoth_guards_check(const aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *b, const char *doing) {
  aot_status_t status = AOT_OK, found;
  for (size_t i = 0; i < g->n; i++) {
    const row_t *r = &g->rows[i];
    char *tail = r->data + r->nbytes;
    protect(r, PROT_READ | PROT_WRITE);
    const char *after = first_written(tail, r->end), *before = first_written(r->begin, r->data);
    if (after == r->end && before == r->data) continue;
    found = tell_buffer(ctx, b, doing, r, (after < r->end ? after : before) - r->data);
    poison(tail, r->end);
    poison(r->begin, r->data);
    if (status == AOT_OK) status = found;
  }
  for (uint64_t i = 0; i < b->n_outputs; i++) {
    found = check_zone(g, ctx, &b->outputs[i], i, doing);
    if (status == AOT_OK) status = found;
  }
  return status;
}
