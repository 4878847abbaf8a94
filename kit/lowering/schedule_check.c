#include "schedule_check.h"

#include "kit/base/vector.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <stdlib.h>
#include <string.h>

/* ---- a map of memory: ranges that do not overlap, in order, each with the storage that was written there last ---- */

typedef struct range {
  uint64_t begin, end;
  uint32_t storage;
} range_t;

typedef struct map {
  range_t *at;
  size_t n;
  uint64_t capacity;
} map_t;

/* The first range that ends after `address`. */
static size_t find(const map_t *m, uint64_t address) {
  size_t low = 0, high = m->n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (m->at[middle].end <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* n of the ranges from `at` on are replaced. 0: no memory. */
static int replace(map_t *m, size_t at, size_t n, const range_t *by, size_t n_by) {
  const size_t n_now = m->n - n + n_by;
  range_t *grown = kit_grow64(m->at, &m->capacity, n_now, sizeof *grown);
  if (!grown) return 0;
  m->at = grown;
  if (m->n > at + n) memmove(&m->at[at + n_by], &m->at[at + n], (m->n - at - n) * sizeof *m->at);
  memcpy(&m->at[at], by, n_by * sizeof *by);
  m->n = n_now;
  AOT_ASSERT(at == 0 || m->at[at - 1].end <= m->at[at].begin); /* in order, and none overlaps */
  AOT_ASSERT(at + n_by == m->n || m->at[at + n_by - 1].end <= m->at[at + n_by].begin);
  return 1;
}

/* [begin, end) is the storage's, joined to neighbours that are its, too. */
static int put(map_t *m, range_t range) {
  AOT_ASSERT(range.begin < range.end);
  size_t first = find(m, range.begin), last;
  range_t by[3];
  size_t n = 0;
  if (first > 0 && m->at[first - 1].end == range.begin && m->at[first - 1].storage == range.storage)
    range.begin = m->at[--first].begin;
  for (last = first; last < m->n && m->at[last].begin < range.end; last++)
    if (m->at[last].storage == range.storage && m->at[last].end > range.end) range.end = m->at[last].end;
  if (last < m->n && m->at[last].begin == range.end && m->at[last].storage == range.storage)
    range.end = m->at[last++].end;
  if (last > first && m->at[first].begin < range.begin) {
    if (m->at[first].storage == range.storage) range.begin = m->at[first].begin;
    else by[n++] = (range_t){m->at[first].begin, range.begin, m->at[first].storage};
  }
  by[n++] = range;
  if (last > first && m->at[last - 1].end > range.end)
    by[n++] = (range_t){range.end, m->at[last - 1].end, m->at[last - 1].storage};
  return replace(m, first, last - first, by, n);
}

/* ---- where storages lie: the arena, and each port after it; an output that is donated an input's memory in that
 * ---- */

typedef struct check {
  lw_build_t *b;
  uint64_t *base;      /* by storage */
  uint32_t *read_in;   /* by storage: the step that read it last, LW_NONE */
  uint32_t *in_memory; /* by storage: the one whose memory it may take in the step that reads that; LW_NONE */
  map_t map;
} check_t;

static uint64_t aligned(uint64_t n) { return (n + LW_ALIGN - 1) / LW_ALIGN * LW_ALIGN; }

static void place(check_t *c) {
  const lw_schedule_t *s = c->b->out;
  uint64_t at = aligned(s->arena_nbytes);
  for (uint32_t i = 0; i < s->n_storages; i++) {
    const int is_arena = s->storages[i].kind == LW_ARENA;
    c->base[i] = is_arena ? s->storages[i].at : at;
    if (!is_arena) at += aligned(s->storages[i].nbytes) + LW_ALIGN;
    c->read_in[i] = LW_NONE;
    c->in_memory[i] = is_arena ? s->storages[i].taken : LW_NONE;
  }
  for (uint32_t o = 0; c->b->home && o < s->n_outputs; o++) {
    if (c->b->home[o] == LW_NONE) continue;
    const uint32_t out = s->outputs[o].type.storage, in = s->inputs[c->b->home[o]].type.storage;
    if (out == LW_NONE || in == LW_NONE || out == in) continue;
    c->base[out] = c->base[in];
    c->in_memory[out] = in;
  }
}

/* ---- uses ---- */

static aot_status_t tell(check_t *c, const lw_used_t *u, const char *what, uint64_t address) {
  const lw_schedule_t *s = c->b->out;
  const lw_step_t *step = u->step < s->n_steps ? &s->steps[u->step] : NULL;
  c->b->error->node = step ? step->node : AOT_NO_ID;
  return lw_fail(c->b->error, AOT_E_INTERNAL, "schedule",
                 "step %u of %u (%s) %s: byte %llu of storage %u, which was made for value %%%u", u->step, s->n_steps,
                 step ? step->kernel : "the outputs", what, (unsigned long long)(address - c->base[u->storage]),
                 u->storage, s->storages[u->storage].value);
}

static aot_status_t read_bytes(check_t *c, const lw_used_t *u) {
  uint64_t at = c->base[u->storage] + (uint64_t)u->begin;
  const uint64_t end = c->base[u->storage] + (uint64_t)u->end;
  const uint64_t hole = (uint64_t)c->b->machine->target->row_nbytes; /* the most between two rows that lie apart */
  c->read_in[u->storage] = u->step;
  for (size_t k = find(&c->map, at); at < end;) {
    const range_t *r = k < c->map.n ? &c->map.at[k] : NULL;
    const int is_written = r && r->begin <= at;
    const uint64_t until = !r ? end : is_written ? r->end : r->begin;
    const int is_hole = until < end && until - at < hole;
    if (!is_written && !is_hole) return tell(c, u, "reads what no step has written", at);
    if (is_written && r->storage != u->storage && !is_hole)
      return tell(c, u, "reads what another storage has overwritten", at);
    at = until;
    k += (size_t)is_written;
  }
  return AOT_OK;
}

static aot_status_t write_bytes(check_t *c, const lw_used_t *u) {
  const uint64_t begin = c->base[u->storage] + (uint64_t)u->begin, end = c->base[u->storage] + (uint64_t)u->end;
  AOT_ASSERT(begin <= end && u->storage < c->b->out->n_storages);
  if (begin == end) return AOT_OK;
  for (size_t k = find(&c->map, begin); k < c->map.n && c->map.at[k].begin < end; k++) {
    const uint32_t other = c->map.at[k].storage;
    if (other != u->storage && c->read_in[other] == u->step && c->in_memory[u->storage] != other)
      return tell(c, u, "writes over what it reads", c->map.at[k].begin > begin ? c->map.at[k].begin : begin);
  }
  return put(&c->map, (range_t){begin, end, u->storage}) ? AOT_OK : lw_no_memory(c->b->error, "to check a schedule");
}

static aot_status_t check_steps(check_t *c) {
  const lw_schedule_t *s = c->b->out;
  for (uint32_t at = 0, end; at < s->n_used; at = end) {
    const uint32_t step = s->used[at].step;
    if (step >= s->n_steps) return tell(c, &s->used[at], "is not in the list", c->base[s->used[at].storage]);
    if (at && s->used[at - 1].step > step)
      return tell(c, &s->used[at], "is recorded after a later step", c->base[s->used[at].storage]);
    for (end = at; end < s->n_used && s->used[end].step == step; end++)
      if (s->used[end].is_read_only || s->used[end].is_update) AOT_TRY(read_bytes(c, &s->used[end]));
    for (uint32_t k = at; k < end; k++)
      if (!s->used[k].is_read_only) AOT_TRY(write_bytes(c, &s->used[k]));
  }
  return AOT_OK;
}

static aot_status_t check_outputs(check_t *c) {
  const lw_schedule_t *s = c->b->out;
  for (uint32_t o = 0; o < s->n_outputs; o++) {
    const lw_tensor_t *t = &s->outputs[o].type;
    if (!t->dtype || t->storage == LW_NONE || lw_numel(t) == 0) continue;
    const int64_t size = (int64_t)aot_dtype_size(t->dtype);
    const lw_used_t all = {
        .step = s->n_steps, .storage = t->storage, .begin = t->offset * size, .end = (int64_t)lw_extent(t)};
    AOT_TRY(read_bytes(c, &all));
  }
  return AOT_OK;
}

static aot_status_t check(check_t *c) {
  const lw_schedule_t *s = c->b->out;
  place(c);
  for (uint32_t i = 0; i < s->n_storages; i++)
    if (s->storages[i].kind == LW_INPUT && s->storages[i].nbytes &&
        !put(&c->map, (range_t){c->base[i], c->base[i] + s->storages[i].nbytes, i}))
      return lw_no_memory(c->b->error, "to check a schedule");
  AOT_TRY(check_steps(c));
  return check_outputs(c);
}

aot_status_t lw_check_schedule(lw_build_t *b) {
  const size_t n = (size_t)b->out->n_storages + 1;
  check_t c = {b, calloc(n, sizeof *c.base), calloc(n, sizeof *c.read_in), calloc(n, sizeof *c.in_memory), {0}};
  const aot_status_t status =
      c.base && c.read_in && c.in_memory ? check(&c) : lw_no_memory(c.b->error, "to check a schedule");
  free(c.base);
  free(c.read_in);
  free(c.in_memory);
  free(c.map.at);
  return status;
}
