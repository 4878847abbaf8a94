/* Rules of communicators: ranks that say something else, go, are late, or request what cannot be
 * (aot/communicator.h). */
#include <sdk/conform/conform_ranks.h>

#include <aot/inline.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/* ---- 805 ---- */

/* What rank 1 says, and the others. */
static const struct difference {
  const char *about;
  aot_collective_t own, other;
  uint64_t own_to, own_from, other_to, other_from;
} differences[] = {
    {"a barrier and a gather", {.kind = AOT_COLLECTIVE_BARRIER}, {.kind = AOT_COLLECTIVE_ALL_GATHER}, 0, 0, 48, 16},
    {"gathers of 8 and of 16 bytes",
     {.kind = AOT_COLLECTIVE_ALL_GATHER},
     {.kind = AOT_COLLECTIVE_ALL_GATHER},
     24,
     8,
     48,
     16},
    {"sums of 2 and of 4 numbers",
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     8,
     8,
     16,
     16},
    {"a sum and a product",
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_PRODUCT, .dtype = AOT_F32},
     16,
     16,
     16,
     16},
    {"sums of f32 and of f64",
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F64},
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     16,
     16,
     16,
     16},
    {"broadcasts of two roots",
     {.kind = AOT_COLLECTIVE_BROADCAST, .root = 1},
     {.kind = AOT_COLLECTIVE_BROADCAST},
     16,
     16,
     16,
     16},
};
#define N_DIFFERENCES (sizeof differences / sizeof *differences)

static void say_something_else(aoth_rank_t *r) {
  const struct difference *d = r->what;
  double from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8];
  if (!aoth_rank_join(r)) return;
  const aot_status_t status = r->rank == 1
                                  ? aoth_rank_collect(r, r->group, d->own, to, d->own_to, from, d->own_from)
                                  : aoth_rank_collect(r, r->group, d->other, to, d->other_to, from, d->other_from);
  if (status != AOT_OK && status != AOT_E_CONTRACT && status != AOT_E_UNAVAILABLE)
    aoth_rank_fail(r, "ranks that differ answer status %d", (int)status);
  if (aoth_rank_was_refused(r, status, "what ranks say that is not the same")) aoth_rank_group_has_failed(r, NULL);
  aoth_rank_leave(r);
}

void aoth_rule_differences(aoth_trial_t *t) {
  if (t->number >= N_DIFFERENCES) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "%s, by 3 ranks", differences[t->number].about);
  aoth_ranks_run(t, 3, 0, say_something_else, &differences[t->number]);
}

/* ---- 806 ---- */

static const char reason[] = "its disk is full";

static void rest(uint64_t ns) { nanosleep(&(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)}, NULL); }

static void leave_early(aoth_rank_t *r) { aoth_rank_leave(r); }
static void give_up(aoth_rank_t *r) {
  r->f->abort(r->c, r->group, aot_str(reason));
  rest(r->patience_ns); /* until the others know */
  aoth_rank_leave(r);
}
static void come_late(aoth_rank_t *r) {
  rest(2 * r->patience_ns);
  aoth_rank_leave(r);
}
static void die(aoth_rank_t *r) {
  if (r->f->head.flags & AOT_COMMUNICATOR_CONCURRENT) aoth_rank_leave(r); /* a thread cannot: as the first */
  else _exit(0);
}

/* What rank 1 does once all have joined, while the others continue. */
static const struct parting {
  const char *about, *named;
  void (*act)(aoth_rank_t *r);
} partings[] = {
    {"rank 1 of 3 leaves", "1", leave_early},
    {"rank 1 of 3 aborts", reason, give_up},
    {"rank 1 of 3 is late", "1", come_late},
    {"rank 1 of 3 dies", "1", die},
};
#define N_PARTINGS (sizeof partings / sizeof *partings)

static void part(aoth_rank_t *r) {
  const struct parting *p = r->what;
  if (!aoth_rank_join(r)) return;
  if (r->rank == 1) {
    p->act(r);
    return;
  }
  if (aoth_rank_was_refused(r, aoth_rank_barrier(r, r->group), "a barrier with a rank that is gone"))
    aoth_rank_group_has_failed(r, p->named);
  aoth_rank_leave(r);
}

static void join_without(aoth_rank_t *r) {
  r->n_ranks = 3;
  if (!aoth_rank_join(r)) {
    if (r->t.end == AOTH_CONFORM_REFUSED) r->t.end = AOTH_CONFORM_PASSED;
    return;
  }
  aoth_rank_was_refused(r, aoth_rank_barrier(r, r->group), "a barrier with a rank that has never come");
  aoth_rank_leave(r);
}

/* Long enough for ranks that are there, and for this trial. */
static uint64_t short_patience(const aoth_trial_t *t) {
  const uint64_t limit = (uint64_t)(t->c->line->timeout / 8 * 1e9);
  return limit < SECOND ? limit : SECOND;
}

void aoth_rule_ranks_gone(aoth_trial_t *t) {
  if (t->number < N_PARTINGS) {
    aoth_trial_about(t, "%s", partings[t->number].about);
    aoth_ranks_run(t, 3, short_patience(t), part, &partings[t->number]);
  } else if (t->number == N_PARTINGS) {
    aoth_trial_about(t, "the third of 3 ranks does not come");
    aoth_ranks_run(t, 2, short_patience(t), join_without, NULL);
  } else {
    aoth_trial_none(t);
  }
}

/* ---- 807 ---- */

/* Its status: of join, else of a barrier. */
static void say_rank(aoth_rank_t *r, uint32_t rank, uint32_t n_ranks) {
  r->rank = rank;
  r->n_ranks = n_ranks;
  if (!aoth_rank_join(r)) {
    if (r->t.end == AOTH_CONFORM_REFUSED) r->t.end = AOTH_CONFORM_PASSED;
    return;
  }
  r->status = aoth_rank_barrier(r, r->group);
  aoth_rank_leave(r);
}
static void be_past_the_last(aoth_rank_t *r) { say_rank(r, 2, 2); }
static void be_of_two_worlds(aoth_rank_t *r) { say_rank(r, r->rank, 2 + r->rank); }
static void be_the_same(aoth_rank_t *r) { say_rank(r, 0, 2); }

static const struct mistake {
  const char *about;
  void (*act)(aoth_rank_t *r);
  uint32_t n, wrong; /* ranks; the one that may not continue */
} mistakes[] = {
    {"rank 2 of 2", be_past_the_last, 1, 0},
    {"rank 0 of 2 and rank 1 of 3", be_of_two_worlds, 2, 1},
    {"rank 0 of 2, twice", be_the_same, 2, 2},
};

void aoth_rule_wrong_ranks(aoth_trial_t *t) {
  if (t->number >= sizeof mistakes / sizeof *mistakes) {
    aoth_trial_none(t);
    return;
  }
  const struct mistake *m = &mistakes[t->number];
  aoth_trial_about(t, "%s", m->about);
  const aoth_rank_t *ranks = aoth_ranks_run(t, m->n, short_patience(t), m->act, NULL);
  if (!ranks || t->end != AOTH_CONFORM_PASSED) return;
  const int went_on =
      m->wrong < m->n ? ranks[m->wrong].status == AOT_OK : ranks[0].status == AOT_OK && ranks[1].status == AOT_OK;
  if (went_on) aoth_trial_end(t, AOTH_CONFORM_FAILED, "they join, and a barrier goes on");
}

/* ---- 808 ---- */

static const uint64_t three_bytes[] = {3};
static const struct misuse {
  const char *about;
  aot_collective_t c;
  uint64_t to, from;
} misuses[] = {
    {"a gather into another size", {.kind = AOT_COLLECTIVE_ALL_GATHER}, 12, 8},
    {"a sum into another size", {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32}, 12, 8},
    {"a reduce_scatter into another size",
     {.kind = AOT_COLLECTIVE_REDUCE_SCATTER, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     12,
     8},
    {"a broadcast of a root that there is not", {.kind = AOT_COLLECTIVE_BROADCAST, .root = 1}, 8, 8},
    {"an exchange of other pieces than there are",
     {.kind = AOT_COLLECTIVE_ALL_TO_ALL, .send = three_bytes, .receive = three_bytes},
     8,
     8},
    {"a reduction of a kind that there is not",
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = 99, .dtype = AOT_F32},
     8,
     8},
    {"a collective of a kind that there is not", {.kind = 99}, 8, 8},
};
#define N_MISUSES (sizeof misuses / sizeof *misuses)

static void misuse(aoth_rank_t *r) {
  const struct misuse *m = r->what;
  double from[2] = {0, 0}, to[2];
  if (!aoth_rank_join(r)) return;
  if (aoth_rank_was_refused(r, aoth_rank_collect(r, r->group, m->c, to, m->to, from, m->from), m->about))
    aoth_rank_group_has_failed(r, NULL);
  aoth_rank_leave(r);
}

void aoth_rule_wrong_sizes(aoth_trial_t *t) {
  if (t->number >= N_MISUSES) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "%s", misuses[t->number].about);
  aoth_ranks_run(t, 1, 0, misuse, &misuses[t->number]);
}
