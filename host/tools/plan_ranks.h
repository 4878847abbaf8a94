/* What a step of so many ranks would take, by the stages of a pipeline: each number of ranks is compiled up to the
 * backend, and what `fsdp` and `overlap` report is kept. Nothing runs. */
#ifndef AOTH_PLAN_RANKS_H
#define AOTH_PLAN_RANKS_H

#include <base/text.h>
#include <tools/cli.h>

typedef struct aoth_rank_plan {
  uint32_t n_ranks;
  double step_s, communication_s, exposed_s; /* of a step; exposed: in which nothing is computed */
  uint64_t leaf_nbytes, arena_nbytes;        /* of one rank: parameters, states and buffers; what a step needs beside */
} aoth_rank_plan_t;

typedef struct aoth_rank_plans {
  aoth_rank_plan_t *rows;
  uint32_t n;
  uint64_t memory_nbytes; /* that a rank of the machine has; 0: not said */
  const char *machine;    /* its name; NULL: not said */
} aoth_rank_plans_t;

/* counts: numbers of ranks. machine: a file of settings of the stage overlap, and `name` and `memory`; NULL: none. Complaints go to
 * the sink. out->rows: freed by the caller; texts lie in the arena. */
aot_status_t aoth_plan_ranks(aoth_cli_t *cli, const char *pipeline, const char *machine, const uint32_t *counts,
                             uint32_t n, aoth_arena_t *arena, aoth_rank_plans_t *out);

/* Step time and memory over the number of ranks, as an <svg> element. */
void aoth_plan_svg(const aoth_rank_plans_t *p, aoth_text_t *out);

#endif
