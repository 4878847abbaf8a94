/* Rules of communicators: how ranks meet, divide and part (aot/communicator.h). */
#include <sdk/conform/conform_ranks.h>

#include <aot/inline.h>

/* ---- 801 ---- */

static int has_place(aoth_rank_t *r, aot_group_t *g, uint32_t rank, uint32_t n) {
  aot_group_info_t info = {.struct_size = sizeof info};
  if (!aoth_rank_went(r, r->f->info(r->c, g, &info), "info")) return 0;
  if (info.rank == rank && info.n_ranks == n) return 1;
  aoth_rank_fail(r, "info says rank %u of %u, not %u of %u", info.rank, info.n_ranks, rank, n);
  return 0;
}

static void join_once(aoth_rank_t *r) {
  if (!aoth_rank_join(r)) return;
  if (has_place(r, r->group, r->rank, r->n_ranks) && aoth_rank_went(r, aoth_rank_barrier(r, r->group), "barrier"))
    aoth_rank_group_is_well(r, r->group);
  aoth_rank_leave(r);
}

static void join_again(aoth_rank_t *r) {
  for (int i = 0; i < 3 && r->t.end == AOTH_CONFORM_PASSED; i++) join_once(r);
}

/* A world that is refused, as by what a launcher has begun with another, need not be tried again. */
void aoth_rule_joins(aoth_trial_t *t) {
  if (aoth_ranks_run_worlds(t, join_once, "join, barrier, leave")) {
    if (t->end == AOTH_CONFORM_REFUSED && !t->n_refused_ranks) t->n_refused_ranks = t->number + 1;
    return;
  }
  if (t->number > AOTH_MOST_RANKS) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "join and leave three times by 2 ranks");
  aoth_ranks_run(t, 2, 0, join_again, NULL);
}

/* ---- 804 ---- */

/* Who of the ranks has this colour: `mine` in the order of ranks turned. */
static uint32_t ranks_of(uint32_t colour, uint32_t n_colours, uint32_t n, uint32_t *out) {
  uint32_t n_out = 0;
  for (uint32_t k = n; k-- > 0;)
    if (k % n_colours == colour) out[n_out++] = k;
  return n_out;
}

static int split_by(aoth_rank_t *r, uint32_t n_colours) {
  uint32_t members[AOTH_MOST_RANKS], all[AOTH_MOST_RANKS] = {0}, place = 0;
  const uint32_t colour = r->rank % n_colours, n = ranks_of(colour, n_colours, r->n_ranks, members);
  aot_group_t *part = NULL;
  while (members[place] != r->rank) place++;
  const aot_status_t status = r->f->split(r->c, &r->ctx, r->group, colour, r->n_ranks - r->rank, &part);
  if (!aoth_rank_went(r, status, "split")) return 0;
  const aot_collective_t gather = {.kind = AOT_COLLECTIVE_ALL_GATHER};
  if (has_place(r, part, place, n) &&
      aoth_rank_went(r, aoth_rank_collect(r, part, gather, all, 4 * n, &r->rank, 4), "all_gather of a part"))
    for (uint32_t k = 0; k < n; k++)
      if (all[k] != members[k])
        aoth_rank_fail(r, "rank %u of a part of %u is rank %u of the whole, not %u", k, n, all[k], members[k]);
  if (r->t.end == AOTH_CONFORM_PASSED &&
      aoth_rank_went(r, aoth_rank_barrier(r, r->group), "barrier of the whole beside its parts"))
    aoth_rank_went(r, aoth_rank_barrier(r, part), "barrier of a part");
  r->f->leave(r->c, part);
  return r->t.end == AOTH_CONFORM_PASSED;
}

static void split_up(aoth_rank_t *r) {
  if (!aoth_rank_join(r)) return;
  if (split_by(r, 2) && split_by(r, 1) && split_by(r, r->n_ranks) &&
      aoth_rank_went(r, aoth_rank_barrier(r, r->group), "barrier once its parts are left"))
    aoth_rank_group_is_well(r, r->group);
  aoth_rank_leave(r);
}

void aoth_rule_groups(aoth_trial_t *t) {
  if (!aoth_ranks_run_worlds(t, split_up, "a group split in two, in one, in all")) aoth_trial_none(t);
}

/* ---- 810 ---- */

static int join_gather_leave(aoth_trial_t *t, void *self) {
  aoth_rank_t *r = self;
  uint32_t own = 7, all = 0;
  (void)t;
  if (!aoth_rank_join(r)) return 0;
  const aot_collective_t gather = {.kind = AOT_COLLECTIVE_ALL_GATHER};
  const int ok = aoth_rank_went(r, aoth_rank_collect(r, r->group, gather, &all, 4, &own, 4), "all_gather");
  aoth_rank_leave(r);
  return ok;
}

static void join_often(aoth_rank_t *r) { aoth_trial_leaves_nothing(&r->t, join_gather_leave, r); }

void aoth_rule_joined_often(aoth_trial_t *t) {
  if (aoth_trial_is_first(t)) aoth_ranks_run(t, 1, 0, join_often, NULL);
}
