/* Places in the arena for what steps write, by the steps that touch it first and last. */
#include "lower.h"

#include "kit/model/plan.h"
#include <aot/assert.h>
#include <stdlib.h>

static int is_placed(const lw_storage_t *s) { return s->kind == LW_ARENA && s->first != LW_NONE; }

/* A storage that begins where another ends, in a step of its own that writes it element on element over what it reads,
 * is in the other's memory. Each gives its memory to one, and takes it from one. */
static aot_status_t take_over(lw_build_t *b) {
  lw_schedule_t *s = b->out;
  uint8_t *is_given = calloc((size_t)s->n_storages + 1, 1);
  if (!is_given) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < s->n_storages; i++) s->storages[i].taken = LW_NONE;
  for (uint32_t at = 0, end; at < s->n_used; at = end) {
    for (end = at; end < s->n_used && s->used[end].step == s->used[at].step;) end++;
    AOT_ASSERT(at == 0 || s->used[at - 1].step < s->used[at].step);
    if (s->used[at].step >= s->n_steps || s->steps[s->used[at].step].joins) continue;
    for (uint32_t k = at; k < end; k++) {
      const uint32_t from = s->used[k].storage, inplace_of = s->used[k].inplace_of;
      if (inplace_of == LW_NONE || !is_placed(&s->storages[from]) || !is_placed(&s->storages[inplace_of])) continue;
      int fits = s->storages[inplace_of].taken == LW_NONE && !is_given[from] &&
                 s->storages[from].nbytes == s->storages[inplace_of].nbytes &&
                 s->storages[from].last == s->storages[inplace_of].first;
      for (uint32_t other = at; other < end; other++) /* all that the step does with it */
        fits &= s->used[other].storage != from || s->used[other].inplace_of == inplace_of;
      if (!fits) continue;
      AOT_ASSERT(inplace_of != from);
      s->storages[inplace_of].taken = from;
      is_given[from] = 1;
    }
  }
  free(is_given);
  return AOT_OK;
}

/* The first of those that are in one memory. */
static uint32_t first_of(const lw_schedule_t *s, uint32_t storage) {
  while (s->storages[storage].taken != LW_NONE) storage = s->storages[storage].taken;
  return storage;
}

aot_status_t lw_plan_memory(lw_build_t *b) {
  lw_schedule_t *s = b->out;
  if (s->is_incomplete) return lw_no_memory(b->error, "for the schedule");
  mp_buffer_t *buffers = malloc(((size_t)s->n_storages + 1) * sizeof *buffers);
  uint32_t *buffer = malloc(((size_t)s->n_storages + 1) * sizeof *buffer); /* by storage */
  uint32_t n = 0;
  aot_status_t status = buffers && buffer ? take_over(b) : lw_no_memory(b->error, "for the schedule");
  for (uint32_t i = 0; i < s->n_storages && status == AOT_OK; i++) {
    if (!is_placed(&s->storages[i]) || s->storages[i].taken != LW_NONE) continue;
    AOT_ASSERT(s->storages[i].first <= s->storages[i].last);
    buffer[i] = n;
    buffers[n++] = (mp_buffer_t){s->storages[i].nbytes, s->storages[i].first, s->storages[i].last, 0};
  }
  for (uint32_t i = 0; i < s->n_storages && status == AOT_OK; i++) {
    if (!is_placed(&s->storages[i]) || s->storages[i].taken == LW_NONE) continue;
    mp_buffer_t *whole = &buffers[buffer[i] = buffer[first_of(s, i)]];
    AOT_ASSERT(whole->first < s->storages[i].first); /* the memory had another before */
    if (s->storages[i].last > whole->last) whole->last = s->storages[i].last;
  }
  if (status == AOT_OK && mp_plan(buffers, n, LW_ALIGN, &s->arena_nbytes) != 0)
    status = lw_no_memory(b->error, "for the schedule");
  if (status == AOT_OK) s->live_nbytes = mp_lower_bound(buffers, n, LW_ALIGN);
  AOT_ASSERT(status != AOT_OK || s->live_nbytes <= s->arena_nbytes);
  for (uint32_t i = 0; i < s->n_storages && status == AOT_OK; i++)
    if (is_placed(&s->storages[i])) {
      s->storages[i].at = buffers[buffer[i]].offset;
      AOT_ASSERT(s->storages[i].at % LW_ALIGN == 0 && s->storages[i].at + s->storages[i].nbytes <= s->arena_nbytes);
    }
  free(buffers);
  free(buffer);
  return status;
}
