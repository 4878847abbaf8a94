/* What does a program in the middle of a pipeline compute? It is completed by stages that are trusted (functionalize,
 * rng, partition-default, as far as its properties say that they are still wanted), compiled by a reference backend and
 * run once on made-up inputs, all of it in a child: the session stays as it is, and a program that crashes is an answer
 * like any other. Equal questions get equal numbers: draws of the model begin at the same seed. */
#ifndef AOTH_ORACLE_H
#define AOTH_ORACLE_H

#include <config/pipeline.h>
#include <trainer/tensors/safetensors.h>

#define AOTH_ORACLE_BACKEND "backend-ref"

typedef struct aoth_oracle {
  aoth_session_t *session;
  const aoth_run_spec_t *run; /* whose inputs; NULL: made up */
  const char *backend;        /* unit id */
  const aoth_stage_t *stages; /* n_stages resolved ones that compile it instead, after it was completed */
  uint32_t n_stages;
  const aoth_stage_t *assign; /* divides the program among them; NULL: each does all */
  const aoth_stage_t *device; /* resolved: where the first of them runs; NULL: on the host */
  uint32_t n_steps;           /* steps on inputs of their own, the last one's results count, none is timed; 0: one */
  int is_guarded;             /* as with AOT_VALIDATE=1 */
  const char *keep, *load;    /* the artifact of one stage: written to this file; read from it, not compiled. NULL */
  double timeout;             /* seconds an answer */
  char folder[448];           /* for results on their way; "": none */
} aoth_oracle_t;

#define AOTH_ORACLE_RAN 0
#define AOTH_ORACLE_UNFIT 1   /* prepare said no: there is no such program */
#define AOTH_ORACLE_REFUSED 2 /* it cannot be completed, or not be run; why */
#define AOTH_ORACLE_CRASHED 3 /* or has hung; why */
typedef struct aoth_oracle_answer {
  int end;            /* AOTH_ORACLE_* */
  char why[512];      /* one line, where it has not run */
  aoth_st_t *results; /* by the keys of step.h; NULL: it has not run */
  double ms;          /* of a step, the best of five; 0: nothing queried, n_stages being 0 */
  uint64_t peak;      /* bytes of intermediate values, as the backend counts them */
  uint64_t n_nodes;   /* that the first of the stages runs */
  /* REFUSED: by a failure that is none of the program's, or of the machine's; by a backend that had accepted all
   * nodes */
  int is_fault, is_late;
  int is_at_run;       /* REFUSED: by a run whose data or program it calls wrong */
  aot_status_t status; /* that it was refused with */
} aoth_oracle_answer_t;

/* What makes the session's program the one that is queried about, in the child. Else than AOT_OK: AOTH_ORACLE_UNFIT. */
typedef aot_status_t (*aoth_oracle_prepare_t)(void *self, aoth_session_t *s);

/* Units looked up, a folder made. Complains. */
aot_status_t aoth_oracle_init(aoth_oracle_t *o, aoth_session_t *s, const aoth_run_spec_t *run, const char *backend);
void aoth_oracle_deinit(aoth_oracle_t *o);
/* prepare NULL: the program as it is. */
void aoth_oracle_ask(aoth_oracle_t *o, aoth_oracle_prepare_t prepare, void *self, aoth_oracle_answer_t *out);
void aoth_oracle_answer_deinit(aoth_oracle_answer_t *a);

/* While a stage's journal is open (aoth_watch_t.edited): the program before it; and with all its edits, self being the
 * const aoth_stage_t. */
aot_status_t aoth_oracle_as_it_was(void *self, aoth_session_t *s);
aot_status_t aoth_oracle_as_it_is(void *self, aoth_session_t *s);
/* In any child of a session: nothing looks on, nothing is dumped, complaints go to this sink, programs run on the
 * host. */
void aoth_session_alone(aoth_session_t *s, aoth_sink_t *sink);
/* By how much two runs of the program may differ, its dtypes being what they are. */
double aoth_program_tolerance(aot_prog_t *p);

#endif
