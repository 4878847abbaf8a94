/* The ranks that run a pipeline, and what the host asks of them: to meet, to hand each other rows of numbers, to report
 * each other when one goes no further. Whether they are the same: rank_consistency.h. What programs hand to each other
 * is the business of kernels (aot/ext/ranks.h). */
#ifndef AOTH_RUN_RANKS_H
#define AOTH_RUN_RANKS_H

#include <aot/ext/ranks.h>
#include <sandbox/session.h>

/* Meets the others by run.ranks, unless that was done, or the pipeline names no communicator. */
aot_status_t aoth_session_join(aoth_session_t *s, const aoth_pipeline_t *p);
/* This rank goes no further: once nothing of it is under way, and it leaves, the others receive its first error. */
void aoth_session_give_up(aoth_session_t *s);
void aoth_session_leave(aoth_session_t *s);

uint32_t aoth_session_rank(const aoth_session_t *s);
uint32_t aoth_session_n_ranks(const aoth_session_t *s); /* 1: there is no other */
/* Every rank's row of nbytes, in the order of ranks, for all of them. */
aot_status_t aoth_session_gather(aoth_session_t *s, const void *row, uint64_t nbytes, void *out, const char *what);
/* What this rank has handed over and been handed; zeros where there is no other. */
aot_group_info_t aoth_session_traffic_of_ranks(const aoth_session_t *s);
/* Nanoseconds in which nodes waited for other ranks, as far as their kernels know. */
uint64_t aoth_session_waited_for_ranks(const aoth_session_t *s);

/* Whether the ranks are well, as far as this one knows: what queues do fails without a caller. Says what is not. s may
 * be NULL: there is no other. */
aot_status_t aoth_session_ranks_well(aoth_session_t *s);

/* In how many parts leaves are that are shared out; rank r has part r modulo them. */
uint32_t aoth_session_n_parts(const aoth_session_t *s);

/* Where this rank begins to draw random numbers, of a run that begins at 0. */
int64_t aoth_session_first_draw(const aoth_session_t *s);

/* aot.ranks/1 */
aot_status_t aoth_ranks_get(const aot_ctx_t *ctx, aot_run_ranks_t *out);
void aoth_ranks_draws(aot_ctx_t *ctx, uint64_t n);
void aoth_ranks_parts(aot_ctx_t *ctx, uint32_t n);

#endif
