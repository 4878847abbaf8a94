#include <device/guards.h>

#include "kit/base/vector.h"
#include <aot/assert.h>
#include <device/guarded.h>
#include <device/host_device.h>
#include <ir/program.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct aoth_guards {
  aoth_guarded_t *rows; /* by address */
  size_t n;
  uint32_t capacity;
  const aot_binding_t *now; /* of the call that runs; NULL: none */
  aoth_input_digests_t whole, part;
  aot_status_t of_parts; /* of the call that runs: the first failure of one of its parts */
};

int aoth_guards_are_wanted(void) {
  const char *validate = getenv("AOT_VALIDATE");
  return validate && strcmp(validate, "1") == 0;
}

aoth_guards_t *aoth_guards_create(void) { return calloc(1, sizeof(aoth_guards_t)); }

void aoth_guards_destroy(aoth_guards_t *g) {
  if (!g) return;
  for (size_t i = 0; i < g->n; i++) aoth_guarded_unmap(&g->rows[i]);
  aoth_input_digests_deinit(&g->whole);
  aoth_input_digests_deinit(&g->part);
  free(g->rows);
  free(g);
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

static const aoth_guarded_t *find(const aoth_guards_t *g, const void *address) {
  const size_t n = rows_before(g, address);
  const aoth_guarded_t *r = n ? &g->rows[n - 1] : NULL;
  return r && (uintptr_t)address - (uintptr_t)r->data <= r->nbytes ? r : NULL;
}

/* Rows are in the order of their addresses, and share nothing. */
static int is_between_others(const aoth_guards_t *g, size_t row) {
  return (row == 0 || g->rows[row - 1].end <= g->rows[row].begin) &&
         (row + 1 == g->n || g->rows[row].end <= g->rows[row + 1].begin);
}

int aoth_guards_alloc(aoth_guards_t *g, uint64_t nbytes, aot_buffer_t *out) {
  aoth_guarded_t r;
  aoth_guarded_t *rows = kit_grow(g->rows, &g->capacity, g->n + 1, sizeof *rows);
  if (!rows) return 0;
  g->rows = rows;
  if (!aoth_guarded_map(nbytes, &r)) return 0;
  const size_t at = rows_before(g, r.data);
  memmove(g->rows + at + 1, g->rows + at, (g->n - at) * sizeof *g->rows);
  g->rows[at] = r;
  g->n++;
  AOT_ASSERT(is_between_others(g, at));
  *out = (aot_buffer_t){(uintptr_t)r.data, nbytes};
  return 1;
}

void aoth_guards_free(aoth_guards_t *g, aot_buffer_t whole) {
  const size_t at = rows_before(g, (const char *)(uintptr_t)whole.address) - 1;
  AOT_ASSERT(at < g->n && (uintptr_t)g->rows[at].data == whole.address);
  aoth_guarded_unmap(&g->rows[at]);
  g->n--;
  memmove(g->rows + at, g->rows + at + 1, (g->n - at) * sizeof *g->rows);
}

void aoth_guards_poison(const aoth_guards_t *g, aot_buffer_t whole) {
  const aoth_guarded_t *r = find(g, (const void *)(uintptr_t)whole.address);
  AOT_ASSERT(r);
  aoth_poison(r->begin, r->end);
}

/* ---- around a call ---- */

static void protect(const aoth_guarded_t *r, int protection) {
  mprotect(r->begin, (size_t)(r->end - r->begin), protection);
}

/* Does the call read what the output holds before it? */
static int is_read(const aot_binding_t *b, const aot_tensor_t *t) {
  const uintptr_t begin = (uintptr_t)t->data, end = begin + t->nbytes;
  for (uint64_t i = 0; i < b->n_inputs; i++) {
    const uintptr_t from = (uintptr_t)b->inputs[i].data;
    if (b->inputs[i].data && from < end && begin < from + b->inputs[i].nbytes) return 1;
  }
  return 0;
}

/* Outputs that are this call's alone, in memory of alloc. */
static int is_fresh(const aoth_guards_t *g, const aot_binding_t *b, const aot_tensor_t *t) {
  return t->data && t->rank >= 0 && t->nbytes && find(g, t->data) && !is_read(b, t);
}

void aoth_guards_close(aoth_guards_t *g, const aot_binding_t *b) {
  const aoth_guarded_t *arena = find(g, (const void *)(uintptr_t)b->arena.address);
  g->now = b;
  g->of_parts = AOT_OK;
  aoth_input_digests_take(&g->whole, b);
  if (arena && arena->data == (const char *)(uintptr_t)b->arena.address) aoth_poison(arena->begin, arena->end);
  for (uint64_t i = 0; i < b->n_outputs; i++) {
    const aot_tensor_t *t = &b->outputs[i];
    if (is_fresh(g, b, t)) aoth_poison(t->data, (char *)t->data + t->nbytes);
  }
  for (uint64_t i = 0; i < b->n_inputs; i++) {
    const aoth_guarded_t *r = find(g, b->inputs[i].data);
    if (r) protect(r, PROT_READ);
  }
  for (uint64_t i = 0; i < b->n_outputs; i++) {
    const aoth_guarded_t *r = find(g, b->outputs[i].data);
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
  return aoth_report_error(ctx, AOT_E_CONTRACT, "run.overrun",
                           "out-of-bounds write by %s: byte %lld of its %s of %llu bytes", doing, (long long)at, name,
                           (unsigned long long)nbytes);
}

/* Checks the padding and red zone after an output that is a sub-range of a buffer. */
static aot_status_t check_zone(const aoth_guards_t *g, aot_ctx_t *ctx, const aot_tensor_t *t, uint64_t port,
                               const char *doing) {
  const aoth_guarded_t *r = t->rank < 0 ? NULL : find(g, t->data);
  char *end = (char *)t->data + t->nbytes;
  if (!r || !t->nbytes || end >= r->data + r->nbytes) return AOT_OK; /* what ends with its buffer is checked with it */
  const uint64_t zone = (AOTH_HOST_ALIGN - t->nbytes % AOTH_HOST_ALIGN) % AOTH_HOST_ALIGN + AOTH_RED_ZONE;
  char *written = aoth_first_written(end, end + zone);
  if (written == end + zone) return AOT_OK;
  aoth_poison(end, end + zone);
  return tell(ctx, doing, "output", (int64_t)port, t->nbytes, written - (char *)t->data);
}

/* What a buffer is to the call. */
static aot_status_t tell_buffer(aot_ctx_t *ctx, const aot_binding_t *b, const char *doing, const aoth_guarded_t *r,
                                int64_t at) {
  const void *data = r->data;
  if ((uintptr_t)data == b->arena.address) return tell(ctx, doing, "arena", -1, r->nbytes, at);
  for (uint64_t i = 0; i < b->n_outputs; i++)
    if (b->outputs[i].data == data) return tell(ctx, doing, "output", (int64_t)i, r->nbytes, at);
  for (uint64_t i = 0; i < b->n_inputs; i++)
    if (b->inputs[i].data == data) return tell(ctx, doing, "input", (int64_t)i, r->nbytes, at);
  return tell(ctx, doing, "block of ports", -1, r->nbytes, at);
}

/* What it should have written. */
static aot_status_t check_whole(const aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *b, uint64_t port,
                                const char *doing) {
  const aot_tensor_t *t = &b->outputs[port];
  uint64_t first;
  const uint64_t n = is_fresh(g, b, t) ? aoth_unwritten(t, &first) : 0;
  if (!n) return AOT_OK;
  return aoth_report_error(ctx, AOT_E_CONTRACT, "run.unwritten",
                           "%s left %llu elements of its output %llu unwritten, the first is %llu", doing,
                           (unsigned long long)n, (unsigned long long)port, (unsigned long long)first);
}

int aoth_guards_where(const aoth_guards_t *g, uint64_t address, kit_text_t *out) {
  const aot_binding_t *b = g->now;
  for (size_t i = 0; b && i < g->n; i++) {
    const aoth_guarded_t *r = &g->rows[i];
    if (!aoth_guarded_where(r, address, out)) continue;
    for (uint64_t k = 0; k < b->n_outputs; k++)
      if (b->outputs[k].data == (void *)r->data) return kit_text_f(out, " output %llu", (unsigned long long)k), 1;
    for (uint64_t k = 0; k < b->n_inputs; k++)
      if (b->inputs[k].data == (void *)r->data)
        return kit_text_f(out, " input %llu, which is only read", (unsigned long long)k), 1;
    kit_text_z(out, b->arena.address == (uintptr_t)r->data ? " the arena" : " a block of ports");
    return 1;
  }
  return 0;
}

static aot_status_t check_inputs(const aoth_input_digests_t *d, aot_ctx_t *ctx, const aot_binding_t *b,
                                 const char *doing) {
  const uint64_t input = aoth_input_digests_changed(d, b);
  if (input == AOTH_NO_INPUT) return AOT_OK;
  return aoth_report_error(ctx, AOT_E_CONTRACT, "run.input-written",
                           "%s wrote to its input %llu of %llu bytes, which it may only read", doing,
                           (unsigned long long)input, (unsigned long long)b->inputs[input].nbytes);
}

void aoth_guards_part_begin(aoth_guards_t *g, const aot_binding_t *part) { aoth_input_digests_take(&g->part, part); }

aot_status_t aoth_guards_part_end(aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *part, const char *backend) {
  char doing[128];
  snprintf(doing, sizeof doing, "a part of the program that backend %.80s runs", backend);
  const aot_status_t status = check_inputs(&g->part, ctx, part, doing);
  if (g->of_parts == AOT_OK) g->of_parts = status;
  return status;
}

aot_status_t aoth_guards_check(aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *b, const char *doing,
                               int is_done) {
  aot_status_t status = g->of_parts, found;
  g->now = NULL;
  for (size_t i = 0; i < g->n; i++) {
    const aoth_guarded_t *r = &g->rows[i];
    char *tail = r->data + r->nbytes;
    protect(r, PROT_READ | PROT_WRITE);
    const char *after = aoth_first_written(tail, r->end), *before = aoth_first_written(r->begin, r->data);
    if (after == r->end && before == r->data) continue;
    found = tell_buffer(ctx, b, doing, r, (after < r->end ? after : before) - r->data);
    aoth_poison(tail, r->end);
    aoth_poison(r->begin, r->data);
    if (status == AOT_OK) status = found;
  }
  for (uint64_t i = 0; i < b->n_outputs; i++) {
    found = check_zone(g, ctx, &b->outputs[i], i, doing);
    if (found == AOT_OK && is_done) found = check_whole(g, ctx, b, i, doing);
    if (status == AOT_OK) status = found;
  }
  return status == AOT_OK ? check_inputs(&g->whole, ctx, b, doing) : status;
}
