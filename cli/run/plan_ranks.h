/* What a step of so many ranks would take, by the stages of a pipeline: each number of ranks is compiled up to the
 * backend, and what `fsdp` and `overlap` report is stored. Nothing runs. */
#ifndef AOTH_PLAN_RANKS_H
#define AOTH_PLAN_RANKS_H

#include "kit/base/text.h"
#include <cli/base/cli.h>

enum { AOTH_PLAN_MOST_COLLECTIVES = 9 };

/* What comes to the first rank, which has the largest shares, by collectives of a kind with one group of ranks. */
typedef struct aoth_plan_collectives {
  char kind[16], group[16]; /* "gather", "scatter", "reduce"; "world", "rows", "columns" */
  uint64_t n, nbytes;
} aoth_plan_collectives_t;

/* Bytes are those of one rank. What is held at once is each number's own highest point of the step; all of it is in
 * the arena. */
typedef struct aoth_rank_plan {
  const char *mode; /* of the stage fsdp; NULL: as the pipeline says */
  uint32_t n_ranks;
  double step_s, communication_s, exposed_s;                /* of a step; exposed: in which nothing is computed */
  uint64_t parameter_nbytes, state_nbytes, buffer_nbytes;   /* all of which it holds between steps */
  uint64_t gathered_nbytes, gradient_nbytes, active_nbytes; /* at once */
  uint64_t arena_nbytes;                                    /* that a step needs in addition to what is held */
  aoth_plan_collectives_t collectives[AOTH_PLAN_MOST_COLLECTIVES];
  uint32_t n_collectives;
} aoth_rank_plan_t;

static inline uint64_t aoth_plan_leaf_nbytes(const aoth_rank_plan_t *r) {
  return r->parameter_nbytes + r->state_nbytes + r->buffer_nbytes;
}

typedef struct aoth_rank_plans {
  aoth_rank_plan_t *rows;
  uint32_t n;
  uint64_t memory_nbytes; /* that a rank of the machine has; 0: not said */
  const char *machine;    /* its name; NULL: not said */
} aoth_rank_plans_t;

/* counts: numbers of ranks. modes: of the stage fsdp, with commas, "shard,hybrid:8": a mesh with rows of 8, of those
 * numbers that they divide; NULL: the pipeline's. machine: a file of settings of the stage overlap, and `name` and
 * `memory`; NULL: none. Complaints go to the sink. out->rows: freed by the caller; texts are in the arena. */
aot_status_t aoth_plan_ranks(aoth_cli_t *cli, const char *pipeline, const char *modes, const char *machine,
                             const uint32_t *counts, uint32_t n, kit_arena_t *arena, aoth_rank_plans_t *out);

/* Step time and memory over the number of ranks, as an <svg> element. */
void aoth_plan_svg(const aoth_rank_plans_t *p, kit_text_t *out);

#endif
