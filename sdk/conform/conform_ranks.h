/* Ranks of a communicator that are tried together, each with a unit of its own:
 *
 *     AOT_COMMUNICATOR_CONCURRENT     threads of the trial's process
 *     else                            processes, forked before any of them has a group
 *
 * What a rank finds is in memory that all of them see. */
#ifndef AOTH_CONFORM_RANKS_H
#define AOTH_CONFORM_RANKS_H

#include <aot/communicator.h>
#include <sandbox/call.h>
#include <sdk/conform/conform_trial.h>

#define AOTH_MOST_RANKS 4u

typedef struct aoth_rank {
  aoth_trial_t t;         /* what comes of this rank: end, why */
  uint32_t rank, n_ranks; /* as join says them */
  uint64_t patience_ns;
  const aot_communicator_t *f, *c; /* the unit's functions, and what they are handed: itself */
  aoth_instance_t unit;
  kit_arena_t *arena;
  aot_ctx_t ctx; /* of the calls: hears what they report; over its own arena */
  aot_group_t *group;
  uint32_t n_joined; /* groups so far: each has its place, and all ranks count alike */
  char place[64];
  const void *what;    /* the rule's own */
  aot_status_t status; /* the same: for code that looks at all ranks in the end */
} aoth_rank_t;

typedef void (*aoth_rank_act_t)(aoth_rank_t *r);

/* `act` by n ranks; the trial ends as the worst of them. patience_ns 0: as long as the trial has. The ranks as they
 * ended, in memory that goes with the trial's process; NULL: none has begun, and the trial has ended. */
const aoth_rank_t *aoth_ranks_run(aoth_trial_t *t, uint32_t n, uint64_t patience_ns, aoth_rank_act_t act,
                                  const void *what);

/* The same by 1 to 4 ranks, a trial each. 0: there is no further one. */
int aoth_ranks_run_worlds(aoth_trial_t *t, aoth_rank_act_t act, const char *about);

/* For `act`. Each answers 0 when the rank's trial has ended: refused by a status of refusal that is reported, else
 * failed. */
int aoth_rank_join(aoth_rank_t *r); /* at the next place */
int aoth_rank_went(aoth_rank_t *r, aot_status_t status, const char *doing);
int aoth_rank_was_refused(aoth_rank_t *r, aot_status_t status, const char *doing); /* it is to be, with a diagnostic */
int aoth_rank_group_is_well(aoth_rank_t *r, aot_group_t *g);                       /* it has not failed */
/* The rank's group has failed: it says so, with a sentence in which `named` stands (NULL: anything), and goes no
 * further. */
int aoth_rank_group_has_failed(aoth_rank_t *r, const char *named);
void aoth_rank_fail(aoth_rank_t *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void aoth_rank_leave(aoth_rank_t *r);
void aoth_rank_hear(aoth_rank_t *r); /* from here on nothing has been reported */
/* A collective of the host's memory; `what` has its kind, and what belongs to that. */
aot_status_t aoth_rank_collect(aoth_rank_t *r, aot_group_t *g, aot_collective_t what, void *to, uint64_t to_nbytes,
                               const void *from, uint64_t from_nbytes);
aot_status_t aoth_rank_barrier(aoth_rank_t *r, aot_group_t *g);

#endif
