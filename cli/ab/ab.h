/* aothost ab: the pieces of the comparison, for the files ab_*.c.
 *
 *     ab_arms.c      NAME=UNIT:OPTION=VALUE,.. -> arms
 *     child.h        a process an arm: it can crash or hang and be no more than lost
 *     ab_worker.c    what such a process does: check, compile, step, keep results, report
 *     ab_choice.c    a partitioner's choice, as JSON
 *     ab_memory.c    the memory that a program takes: queried there, drawn here
 *     ab_measure.c   the rounds A B C A B C .., and what their times say
 *     ab_results.c   outputs and gradients of the arms, element by element
 *     ab_table.c, ab_json.c, ab_page.c, ab_times_plot.c   the report: terminal, --json, --html */
#ifndef AOTH_AB_H
#define AOTH_AB_H

#include <trainer/trial/child.h>
#include <cli/base/cli.h>
#include <cli/inspect/memory_view.h>

#include <jansson.h>
#include <config/pipeline.h>
#include <trainer/tensors/compare.h>
#include <trainer/tensors/safetensors.h>
#include <cli/base/statistics.h>

#define AOTH_AB_MOST_ARMS 16u
#define AOTH_AB_MOST_PROCESSES 64u
#define AOTH_AB_LEAST_COMPILES 3u /* of an arm: a median with an interval */

/* ---- arms ---- */

/* One of the things compared: a unit with options in the place of the stage. Texts are the arena's. */
typedef struct aoth_ab_arm {
  const char *text;   /* as written */
  const char *name;   /* what the report calls it: NAME=, else the text */
  const char *use;    /* unit id; NULL: the pipeline's own stage, to whose options `withs` are added */
  const char **withs; /* n_withs texts OPTION=VALUE */
  uint32_t n_withs;
} aoth_ab_arm_t;

/* "tight=partition-mincut:objective=memory,budget=0.5", "partition-default", ".:budget=0.3". Complains of bad text. */
aot_status_t aoth_ab_arm_parse(const char *text, kit_arena_t *arena, aoth_sink_t *sink, aoth_ab_arm_t *out);
/* Names that are there twice get numbers, " (2)". */
aot_status_t aoth_ab_arms_name(aoth_ab_arm_t *arms, uint32_t n, kit_arena_t *arena, aoth_sink_t *sink);

/* ---- processes ---- */

#define AOTH_AB_CHECK 1   /* load the pipeline with the arm in its place; units, options, contracts */
#define AOTH_AB_COMPILE 2 /* model to executable */
#define AOTH_AB_STEP 3    /* number: of the step */
#define AOTH_AB_KEEP 4    /* results of the last step to a file */
#define AOTH_AB_FINISH 5  /* memory and statistics */
#define AOTH_AB_MEMORY 6  /* what its units say of the program's memory */
#define AOTH_AB_ISOLATE 7 /* the arm's stage runs in a worker */

/* ---- in the process of an arm ---- */

typedef struct aoth_ab_job {
  aoth_cli_t *cli;
  const aoth_overrides_t *overrides;
  const aoth_ab_arm_t *arm;
  uint32_t stage; /* index of the stage that the arm replaces */
  int64_t seed;
  int has_seed;                  /* else the pipeline's */
  char cache[512];               /* a folder of the arm's own: none finds code that another has compiled */
  char dumps[512], bundles[512]; /* --dump-dir and --bundle-dir with the arm's number; "": not given */
} aoth_ab_job_t;

void aoth_ab_serve(void *job, int fd); /* an aoth_child_serve_t; job: aoth_ab_job_t */

/* The cut as JSON: {joint, saved: [row], recomputed: [row], recomputed_nodes, _heavy, _bytes, _flops,
 * recompute_cost}; while the joint graph is there. */
json_t *aoth_ab_choice_json(aot_prog_t *p, const aot_cut_t *cut);
/* Adds "simulated" and "planned" (numbers of the partitioner's and the backend's aot.memory/1, where they offer it)
 * and "views". */
aot_status_t aoth_ab_tell_memory(aoth_session_t *s, const aoth_pipeline_t *p, json_t *answer);
/* {values, bytes, held_bytes} of a partitioned program; NULL: it is none. */
json_t *aoth_ab_saved_json(aot_prog_t *p);

/* ---- the comparison ---- */

typedef struct aoth_ab_arm_run {
  aoth_ab_arm_t arm;
  aoth_child_t worker;
  json_t *about, *compiled, *memory, *finished; /* answers; NULL: not come to */
  double *forward_ms, *backward_ms, *step_ms;   /* [process * n_steps + round] */
  double *stage_ms, *compile_ms;                /* [n_compiled]: to compile, this stage alone; all, with cold caches */
  uint32_t n_compiled;
  aoth_interval_t stage, compile;                 /* medians of these */
  aoth_interval_t step, forward, backward, ratio; /* ratio: to the baseline's step */
  int verdict;                                    /* on it: -1 faster, +1 slower, 0 none */
  aoth_st_t *results[2];                          /* of the first and the last step; NULL: none */
  struct aoth_ab_agreement {                      /* with the reference */
    uint32_t n_keys, n_equal, n_close;            /* equal bit for bit; within tolerance */
    double max_abs, max_rel;
    char worst[256]; /* key of max_abs, or of what is missing; "": all equal */
  } outputs, gradients;
  int differs; /* from the reference, beyond tolerance */
} aoth_ab_arm_run_t;

typedef struct aoth_ab {
  aoth_cli_t *cli;
  const aoth_pipeline_t *pipeline;
  uint32_t stage;
  aoth_ab_arm_run_t *arms;
  uint32_t n_arms;
  int64_t seed;
  uint32_t n_processes, n_steps, n_warmup; /* requested: processes an arm, rounds in each, rounds before those */
  uint32_t n_done, n_rounds;               /* processes that went through, and rounds of the one that continues */
  double rtol, atol, timeout;              /* timeout: seconds */
  double level;                            /* of the intervals against the baseline: 0.95, shared among them */
  int64_t baseline, reference; /* arms; -1: none. Times are against the baseline, results against the reference */
  int interrupted;
  int is_isolated;  /* the arms' stage runs in a worker, of all of them */
  char folder[448]; /* for results on their way, and caches; "": none */
} aoth_ab_t;

int aoth_ab_alive(const aoth_ab_arm_run_t *a);                          /* not lost */
int aoth_ab_has_times(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a); /* ab_table.c: it was measured */
void aoth_ab_step_rounds(aoth_ab_t *ab); /* of process n_done: warm-up, rounds, results kept of the first */
aoth_sample_t aoth_ab_sample(const aoth_ab_t *ab, const double *times);
void aoth_ab_weigh_compiles(aoth_ab_t *ab);
void aoth_ab_weigh_times(aoth_ab_t *ab); /* intervals and verdicts */
void aoth_ab_compare_results(aoth_ab_t *ab);
/* a living line; on a tty */
void aoth_ab_progress(const aoth_ab_t *ab, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the report ---- */

const char *aoth_ab_outcome(const aoth_ab_arm_run_t *a); /* "ok", "differs", "failed", "crashed", "hung" */
/* Choices that differ, largest first: list of {value, id, op, type, bytes, module, source, saved_by: [arm],
 * recomputed_by: [arm]}. */
json_t *aoth_ab_differences(const aoth_ab_t *ab);
/* what all arms have alike, of the first that got there; NULL: none did */
const json_t *aoth_ab_common(const aoth_ab_t *ab, const char *key);
json_t *aoth_ab_json(const aoth_ab_t *ab, json_t *differences);
/* A view an arm that reports its memory, the backend's before the partitioner's; room for n_arms. Texts are the
 * answers'. */
aot_status_t aoth_ab_views(const aoth_ab_t *ab, kit_arena_t *arena, aoth_memory_view_t *out, uint32_t *out_n);
/* The rows of the table: a cell's text, 0 when it says nothing. */
uint32_t aoth_ab_n_rows(void);
const char *aoth_ab_row_label(uint32_t row);
int aoth_ab_row(const aoth_ab_t *ab, uint32_t row, uint32_t arm, char *out, size_t size);
void aoth_ab_print(const aoth_ab_t *ab, const json_t *differences, FILE *out);
/* an <svg>: each round's step time, medians and intervals */
void aoth_ab_plot_times(const aoth_ab_t *ab, kit_text_t *out);
/* One file, with all it needs. Complains. */
aot_status_t aoth_ab_write_page(const aoth_ab_t *ab, const json_t *differences, const char *path);

#endif
