/* Steps that do the same to different memory become one: the updates of all parameters, casts of weights, siblings. A
 * step of training ends with a short loop for each of hundreds of tensors, and beginning one costs more than its work.
 *
 *     s1 | product | s2 | product | s3        -->       product | product | s1 s2 s3        they wait
 *                                             or        s1 s2 s3 | product | product        they run early
 *
 * One sweep keeps sets of steps that wait, one set for each kind of work. A step joins the set of its kind and waits
 * with it, until something needs what a member writes, or writes what one reads: then the set is complete. It runs
 * where its last member stood. Members do not need each other: one that would have completed the set before it joined.
 *
 * Steps that need only what exists at the start, as casts of weights do, have what needs them right after them, so
 * they would not wait for long. A sweep before that one lets them run early, all of a set where its first member stood,
 * where the target finds that better (runs_early). What they write then lives from there on: a set is complete when
 * that would be more than the peak.
 *
 * What waiting members read for the last time lives on while they wait (gradients, mostly). A set is complete, too,
 * when that would be more than the most that is alive at one step without any waiting. With a stack of equal layers
 * that leaves few sets: they grow as the backward frees what the forward has stored. Where the arena is larger all the
 * same, because its gaps are others, less may wait, or nothing: so memory is no worse.
 *
 * Horizontal fusion, as it is called elsewhere: Li, Zheng, Pekhimenko, Long: Automatic Horizontal Fusion for GPU
 * Kernels, CGO 2022. O(steps + operands). */
#include "lower.h"

#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPEN = 32 }; /* sets that wait */
#define SEVERAL (LW_NONE - 1)

typedef struct set {
  uint64_t joins;
  uint32_t last, n, most; /* its last member, and how many it has and may have */
  uint32_t place;         /* the member where it runs: the first, or the last */
  uint64_t held;          /* it waits: bytes that live on because it does */
  uint64_t alive;         /* it runs early: the most that is alive at a step between its place and the one at hand */
  int is_open;
} set_t;

typedef struct fusion_state {
  lw_schedule_t *s;
  uint32_t *memory;          /* by storage: the storage whose memory it is in */
  uint32_t *writer, *reader; /* by memory: the set with a member that writes it, that reads it; LW_NONE, SEVERAL */
  uint8_t *is_held;          /* by storage: a set that waits keeps it alive */
  uint8_t *is_used;          /* by memory: READ or WRITTEN by a step that was before */
  uint64_t *live;            /* by step: bytes of the arena */
  uint64_t most, held;
  uint32_t *set, *previous; /* by step: its set, and the member before it */
  uint32_t *order;          /* by step: its number afterwards */
  set_t *sets;
  uint32_t n_sets, open[MOST_OPEN], n_open;
} fusion_state_t;

enum { READ = 1, WRITTEN = 2 };

/* ---- memory ---- */

static uint64_t arena_bytes(const lw_storage_t *s) {
  return s->kind == LW_ARENA && s->first != LW_NONE ? (s->nbytes + LW_ALIGN - 1) / LW_ALIGN * LW_ALIGN : 0;
}

static void find_live(fusion_state_t *j) {
  const lw_schedule_t *s = j->s;
  for (uint32_t i = 0; i < s->n_storages; i++) {
    const uint64_t nbytes = arena_bytes(&s->storages[i]);
    if (!nbytes) continue;
    AOT_ASSERT(s->storages[i].first <= s->storages[i].last && s->storages[i].last < s->n_steps);
    j->live[s->storages[i].first] += nbytes;
    j->live[s->storages[i].last + 1] -= nbytes;
  }
  for (uint32_t t = 0; t < s->n_steps; t++) {
    if (t > 0) j->live[t] += j->live[t - 1];
    if (j->live[t] > j->most) j->most = j->live[t];
  }
}

/* An output in the place of an input has the input's memory. */
static void find_memory(fusion_state_t *j, const lw_build_t *b) {
  const lw_schedule_t *s = j->s;
  for (uint32_t i = 0; i < s->n_storages; i++) j->memory[i] = i;
  for (uint32_t o = 0; b->home && o < s->n_outputs; o++) {
    if (b->home[o] == LW_NONE) continue;
    const uint32_t out = s->outputs[o].type.storage, in = s->inputs[b->home[o]].type.storage;
    if (out != LW_NONE && in != LW_NONE) j->memory[out] = in;
  }
}

/* ---- sets ---- */

static int is_open(const fusion_state_t *j, uint32_t set) { return set < SEVERAL && j->sets[set].is_open; }

static void complete(fusion_state_t *j, uint32_t set) {
  if (!is_open(j, set)) return;
  AOT_ASSERT(j->n_open > 0 && j->held >= j->sets[set].held);
  j->sets[set].is_open = 0;
  j->held -= j->sets[set].held;
  uint32_t at = 0;
  while (j->open[at] != set) at++;
  AOT_ASSERT(at < j->n_open);
  memmove(&j->open[at], &j->open[at + 1], (--j->n_open - at) * sizeof *j->open);
  if (!j->n_open) j->held = 0; /* what several held */
}

static void complete_all(fusion_state_t *j) {
  while (j->n_open) complete(j, j->open[j->n_open - 1]);
}

/* Sets that must run before a step that uses this. */
static void settle(fusion_state_t *j, const lw_used_t *u) {
  const uint32_t m = j->memory[u->storage];
  complete(j, j->writer[m]);
  if (u->is_read_only) return;
  if (j->reader[m] == SEVERAL) complete_all(j);
  else complete(j, j->reader[m]);
}

/* What is to live at this step does not fit in addition to what waits. */
static void make_room(fusion_state_t *j, uint32_t step) {
  while (j->held && j->live[step] + j->held > j->most) {
    uint32_t largest = j->open[0];
    for (uint32_t k = 1; k < j->n_open; k++)
      if (j->sets[j->open[k]].held > j->sets[largest].held) largest = j->open[k];
    complete(j, largest);
  }
}

/* The set that waits for steps of this kind, a new one where there is none. What has waited longest makes place. */
static uint32_t set_for(fusion_state_t *j, const lw_step_t *step) {
  for (uint32_t k = 0; k < j->n_open; k++) {
    const uint32_t set = j->open[k];
    if (j->sets[set].joins != step->joins) continue;
    memmove(&j->open[k], &j->open[k + 1], (j->n_open - k - 1) * sizeof *j->open);
    return j->open[j->n_open - 1] = set;
  }
  if (j->n_open == MOST_OPEN) complete(j, j->open[0]);
  AOT_ASSERT(j->n_open < MOST_OPEN && j->n_sets < j->s->n_steps); /* a set has a step */
  j->sets[j->n_sets] =
      (set_t){.joins = step->joins, .last = LW_NONE, .place = LW_NONE, .most = step->most_joined, .is_open = 1};
  j->open[j->n_open++] = j->n_sets;
  return j->n_sets++;
}

static void mark(fusion_state_t *j, const lw_used_t *u, uint32_t set) {
  const uint32_t m = j->memory[u->storage], reader = j->reader[m];
  if (!u->is_read_only) j->writer[m] = set;
  else if (reader == LW_NONE || reader == set || (reader != SEVERAL && !is_open(j, reader))) j->reader[m] = set;
  else j->reader[m] = SEVERAL;
}

/* After its last step something lives as long as sets wait that use it. Where several do, until none waits. */
static void hold(fusion_state_t *j, const lw_used_t *u) {
  const lw_storage_t *s = &j->s->storages[u->storage];
  const uint32_t m = j->memory[u->storage], set = is_open(j, j->writer[m]) ? j->writer[m] : j->reader[m];
  const uint64_t nbytes = arena_bytes(s);
  if (!nbytes || s->last != u->step || j->is_held[u->storage] || !(set == SEVERAL ? j->n_open > 0 : is_open(j, set)))
    return;
  j->is_held[u->storage] = 1;
  j->held += nbytes;
  if (set != SEVERAL) j->sets[set].held += nbytes;
}

static void add(fusion_state_t *j, uint32_t k, uint32_t step) {
  set_t *set = &j->sets[k];
  AOT_ASSERT(set->is_open && (set->last == LW_NONE || set->last < step));
  j->set[step] = k;
  j->previous[step] = set->last;
  set->last = step;
  set->n++;
  if (set->n == set->most) complete(j, k);
}

static uint32_t n_joined(const fusion_state_t *j) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < j->n_sets; k++) n += j->sets[k].n - 1;
  return n;
}

static void find_waiting(fusion_state_t *j) {
  const lw_schedule_t *s = j->s;
  const lw_used_t *at = s->used, *used_end = s->used + s->n_used;
  for (uint32_t step = 0; step < s->n_steps; step++) {
    const lw_used_t *begin = at;
    while (at < used_end && at->step == step) at++;
    for (const lw_used_t *u = begin; u < at; u++) settle(j, u);
    make_room(j, step);
    if (s->steps[step].joins) {
      const uint32_t set = set_for(j, &s->steps[step]);
      for (const lw_used_t *u = begin; u < at; u++) mark(j, u, set);
      j->sets[set].place = step;
      add(j, set, step);
    }
    for (const lw_used_t *u = begin; u < at; u++) hold(j, u);
  }
}

/* ---- sets that run early ---- */

/* Nothing that was before it wrote what it reads, or used what it writes. */
static int needs_no_step(const fusion_state_t *j, const lw_used_t *begin, const lw_used_t *end) {
  for (const lw_used_t *u = begin; u < end; u++)
    if (j->is_used[j->memory[u->storage]] & (u->is_read_only ? WRITTEN : READ | WRITTEN)) return 0;
  return 1;
}

/* So many bytes live from the set's place on, and so in part of the time that older sets look back on. */
static void live_from(fusion_state_t *j, uint32_t set, uint64_t nbytes) {
  const uint64_t alive = j->sets[set].alive + nbytes;
  for (uint32_t k = 0; k < j->n_open; k++) {
    set_t *other = &j->sets[j->open[k]];
    if (other->place >= j->sets[set].place) other->alive += nbytes;
    else if (other->alive < alive) other->alive = alive;
  }
}

static void join_early(fusion_state_t *j, uint32_t step, uint64_t nbytes) {
  uint32_t set = set_for(j, &j->s->steps[step]);
  if (j->sets[set].n && j->sets[set].alive + nbytes > j->most) {
    complete(j, set);
    set = set_for(j, &j->s->steps[step]);
  }
  if (!j->sets[set].n) j->sets[set].place = step;
  else live_from(j, set, nbytes);
  add(j, set, step);
}

static void find_early(fusion_state_t *j) {
  const lw_schedule_t *s = j->s;
  const lw_used_t *at = s->used, *used_end = s->used + s->n_used;
  for (uint32_t step = 0; step < s->n_steps; step++) {
    const lw_used_t *begin = at;
    uint64_t nbytes = 0; /* that begin to live with it */
    for (; at < used_end && at->step == step; at++)
      if (s->storages[at->storage].first == step && !at->is_read_only) nbytes += arena_bytes(&s->storages[at->storage]);
    if (s->steps[step].joins && needs_no_step(j, begin, at)) join_early(j, step, nbytes);
    for (uint32_t k = 0; k < j->n_open; k++)
      if (j->sets[j->open[k]].alive < j->live[step]) j->sets[j->open[k]].alive = j->live[step];
    for (const lw_used_t *u = begin; u < at; u++) j->is_used[j->memory[u->storage]] |= u->is_read_only ? READ : WRITTEN;
  }
}

/* ---- the new list ---- */

static int is_place(const fusion_state_t *j, uint32_t step) {
  return j->set[step] == LW_NONE || j->sets[j->set[step]].place == step;
}

static void number(fusion_state_t *j) {
  const uint32_t n_steps = j->s->n_steps;
  uint32_t n = 0;
  for (uint32_t t = 0; t < n_steps; t++)
    if (is_place(j, t)) j->order[t] = n++;
  AOT_ASSERT(n + n_joined(j) == n_steps); /* a set has one place */
  for (uint32_t t = 0; t < n_steps; t++)
    if (!is_place(j, t)) j->order[t] = j->order[j->sets[j->set[t]].place];
}

static void set_lifetimes(const fusion_state_t *j) {
  const lw_schedule_t *s = j->s;
  for (uint32_t k = 0; k < s->n_used; k++) s->storages[s->used[k].storage].first = LW_NONE;
  for (uint32_t k = 0; k < s->n_used; k++) {
    lw_storage_t *storage = &s->storages[s->used[k].storage];
    const uint32_t at = j->order[s->used[k].step];
    if (storage->first == LW_NONE) storage->first = storage->last = at;
    if (at < storage->first) storage->first = at;
    if (at > storage->last) storage->last = at;
  }
}

/* Places for the new order. *out: they take no more than those of the old one; else those are stored. */
static aot_status_t plan(fusion_state_t *j, lw_build_t *b, int *out) {
  lw_schedule_t *s = j->s;
  const uint64_t arena_nbytes = s->arena_nbytes, live_nbytes = s->live_nbytes;
  const size_t nbytes = s->n_storages * sizeof *s->storages;
  lw_storage_t *before = malloc(nbytes + 1);
  if (!before) return lw_no_memory(b->error, "for steps that are joined");
  if (nbytes) memcpy(before, s->storages, nbytes);
  number(j);
  set_lifetimes(j);
  const aot_status_t status = lw_plan_memory(b);
  *out = status == AOT_OK && s->arena_nbytes <= arena_nbytes;
  if (!*out) {
    if (nbytes) memcpy(s->storages, before, nbytes);
    s->arena_nbytes = arena_nbytes;
    s->live_nbytes = live_nbytes;
  }
  free(before);
  return status;
}

/* The members of a set, in their order. */
static aot_status_t join(fusion_state_t *j, lw_build_t *b, const lw_step_t *steps, const set_t *set,
                         const lw_step_t **members, lw_step_t *out) {
  const uint32_t n = set->n;
  *out = steps[set->place];
  out->joins = 0;
  out->nbytes = 0;
  for (uint32_t k = n, m = set->last; k > 0; m = j->previous[m]) {
    members[--k] = &steps[m];
    out->nbytes += steps[m].nbytes;
  }
  b->out->n_groups -= n - 1;
  return b->machine->target->join(b, members, n, out);
}

static aot_status_t put_in_order(fusion_state_t *j, lw_build_t *b) {
  lw_schedule_t *s = j->s;
  const uint32_t n = s->n_steps;
  lw_step_t *steps = malloc(n * sizeof *steps); /* as they were */
  const lw_step_t **members = malloc(n * sizeof *members);
  aot_status_t status = steps && members ? AOT_OK : lw_no_memory(b->error, "for steps that are joined");
  if (status == AOT_OK) memcpy(steps, s->steps, n * sizeof *steps);
  for (uint32_t t = 0; t < n && status == AOT_OK; t++) {
    if (!is_place(j, t)) continue;
    lw_step_t *out = &s->steps[j->order[t]];
    s->n_steps = j->order[t] + 1;
    const set_t *set = j->set[t] == LW_NONE ? NULL : &j->sets[j->set[t]];
    if (set && set->n > 1) status = join(j, b, steps, set, members, out);
    else *out = steps[t];
  }
  free(steps);
  free(members);
  return status;
}

/* What steps use, by their new numbers: those of a set are together. */
static aot_status_t put_used_in_order(const fusion_state_t *j, lw_build_t *b) {
  lw_schedule_t *s = j->s;
  lw_used_t *before = malloc(((size_t)s->n_used + 1) * sizeof *before);
  uint32_t *at = calloc((size_t)s->n_steps + 2, sizeof *at); /* by step: where its next one comes */
  const int is_there = before && at;
  if (is_there) {
    memcpy(before, s->used, s->n_used * sizeof *before);
    for (uint32_t k = 0; k < s->n_used; k++) at[j->order[before[k].step] + 1]++;
    for (uint32_t t = 0; t < s->n_steps; t++) at[t + 1] += at[t];
    for (uint32_t k = 0; k < s->n_used; k++) {
      const uint32_t step = j->order[before[k].step];
      lw_used_t *u = &s->used[at[step]++];
      *u = before[k];
      u->step = step;
    }
  }
  free(before);
  free(at);
  return is_there ? AOT_OK : lw_no_memory(b->error, "for steps that are joined");
}

/* ---- attempts ---- */

static int allocate(fusion_state_t *j) {
  const size_t n_steps = (size_t)j->s->n_steps + 2, n_storages = (size_t)j->s->n_storages + 1;
  j->memory = malloc(3 * n_storages * sizeof *j->memory);
  j->is_held = calloc(2 * n_storages, 1);
  j->live = calloc(n_steps, sizeof *j->live);
  j->set = malloc(3 * n_steps * sizeof *j->set);
  j->sets = malloc(n_steps * sizeof *j->sets);
  if (!j->memory || !j->is_held || !j->live || !j->set || !j->sets) return 0;
  j->writer = j->memory + n_storages;
  j->reader = j->memory + 2 * n_storages;
  j->is_used = j->is_held + n_storages;
  j->previous = j->set + n_steps;
  j->order = j->set + 2 * n_steps;
  memset(j->memory, 0xFF, 3 * n_storages * sizeof *j->memory); /* LW_NONE */
  memset(j->set, 0xFF, 3 * n_steps * sizeof *j->set);
  return 1;
}

/* With so many eighths of the peak. *out_done: there is nothing more to try. */
static aot_status_t attempt(lw_build_t *b, void (*find)(fusion_state_t *), uint64_t eighths, int *out_done) {
  fusion_state_t j = {.s = b->out};
  aot_status_t status = allocate(&j) ? AOT_OK : lw_no_memory(b->error, "for steps that are joined");
  *out_done = 1;
  if (status == AOT_OK) {
    find_memory(&j, b);
    find_live(&j);
    j.most = j.most / 8 * eighths;
    find(&j);
    if (n_joined(&j)) {
      status = plan(&j, b, out_done);
      if (status == AOT_OK && *out_done) status = put_in_order(&j, b);
      if (status == AOT_OK && *out_done) status = put_used_in_order(&j, b);
    }
  }
  free(j.memory);
  free(j.is_held);
  free(j.live);
  free(j.set);
  free(j.sets);
  return status;
}

static aot_status_t join_found(lw_build_t *b, void (*find)(fusion_state_t *)) {
  int is_done = 0;
  for (uint64_t eighths = 8; eighths > 5 && !is_done; eighths--) AOT_TRY(attempt(b, find, eighths, &is_done));
  return AOT_OK;
}

aot_status_t lw_join_steps(lw_build_t *b) {
  const lw_target_t *target = b->machine->target;
  if (!target->join || b->out->stays_in_order || !b->out->n_steps) return AOT_OK;
  if (target->runs_early) AOT_TRY(join_found(b, find_early));
  return join_found(b, find_waiting);
}
