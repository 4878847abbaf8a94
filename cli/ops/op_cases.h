/* Recorded calls of single operators, run through a backend.
 *
 * A file of cases (JSON, docs/PIPELINE.md) names operators, arguments and results; the tensors are in a safetensors
 * file next to it. Each case becomes a program of one node whose tensor arguments are user inputs. What the opset says
 * of the memory that results share is compared, then it runs forward through the backend alone; one with recorded
 * gradients is built again and runs through the stages that make a backward graph.
 *
 * Nothing is left out: a case that cannot run is a failure with its reason, a result that need not agree is listed with
 * its own. Complaints of plugins are withheld from the terminal, the first becomes the reason. */
#ifndef AOTH_OP_CASES_H
#define AOTH_OP_CASES_H

#include <config/pipeline.h>

#define AOTH_CASE_PASSED 0
#define AOTH_CASE_ABSENT 1 /* gradients: none were recorded */
#define AOTH_CASE_LISTED 2 /* differs, as a line of exceptions.txt says it may (op_case_exceptions.h) */
/* this and those after it: failures. The file's fault: a tensor that is not there, .. */
#define AOTH_CASE_MALFORMED 3
#define AOTH_CASE_UNKNOWN 4       /* no opset has the operator */
#define AOTH_CASE_ARGUMENTS 5     /* the opset refuses the arguments */
#define AOTH_CASE_NO_DERIVATIVE 6 /* a stage before the backend fails */
#define AOTH_CASE_REFUSED 7       /* the backend does not take it */
#define AOTH_CASE_RUN 8           /* it fails when run */
#define AOTH_CASE_TYPE 9          /* another dtype or other sizes than recorded */
#define AOTH_CASE_DIFFERS 10      /* numbers outside tolerance */
/* a result shares memory with another argument than recorded, by what the opset says */
#define AOTH_CASE_SHARES 11
#define AOTH_CASE_FURTHER 12 /* further from what float64 says than the recorded result (tolerance.h) */
#define AOTH_N_CASE_VERDICTS 13
const char *aoth_case_verdict(int verdict); /* "passed", "refused by the backend", .. */

/* How one direction of one case went. */
typedef struct aoth_case_part {
  int verdict;   /* AOTH_CASE_* */
  double error;  /* largest |got - recorded| over the largest |recorded|; of halves the distance from float64 */
  char why[400]; /* of a failure, of a listed exception */
} aoth_case_part_t;

/* Numbers that the backend reports in nodes or calls: in which way what ran. */
#define AOTH_CASE_WAYS 8
typedef struct aoth_case_ways {
  const char *names[AOTH_CASE_WAYS]; /* the session's */
  double counts[AOTH_CASE_WAYS];
  uint32_t n;
} aoth_case_ways_t;
void aoth_case_ways_add(aoth_case_ways_t *w, const char *name,
                        double count); /* those past AOTH_CASE_WAYS are left out */

typedef struct aoth_case_result {
  const char *id, *op; /* the file's; live until close */
  aoth_case_part_t forward, gradients;
  aoth_case_ways_t ways; /* of both */
} aoth_case_result_t;

typedef struct aoth_op_cases aoth_op_cases_t;

/* data NULL: data.safetensors next to `path`. exceptions.txt next to `path`, if there is one, is read too. Trouble with
 * the files is reported to sink. */
aot_status_t aoth_op_cases_open(const char *path, const char *data, aoth_sink_t *sink, aoth_op_cases_t **out);
void aoth_op_cases_close(aoth_op_cases_t *c); /* NULL is fine */
uint32_t aoth_op_cases_count(const aoth_op_cases_t *c);
const char *aoth_op_cases_op(const aoth_op_cases_t *c, uint32_t i); /* "" when the case names none */

/* The resolved stages that cases run through. */
typedef struct aoth_case_stages {
  const aoth_stage_t *functional; /* before all others for operators that write an argument */
  const aoth_stage_t *gradient;   /* n_gradient stages, to a forward and a backward graph */
  uint32_t n_gradient;
  const aoth_stage_t *backend;
} aoth_case_stages_t;

/* Run case i. The session's program and executable are replaced; opsets must be open. */
void aoth_op_cases_run(const aoth_op_cases_t *c, uint32_t i, aoth_session_t *s, const aoth_case_stages_t *stages,
                       aoth_case_result_t *out);

/* How a call with changed arguments (op_case_mutate.h) went. Crashes are no answer: they end the process. */
#define AOTH_MUTANT_RAN 0
#define AOTH_MUTANT_REFUSED 1 /* with an error that says why */
#define AOTH_MUTANT_LARGE 2   /* not run: more than AOTH_MUTANT_NUMEL elements in some value */
#define AOTH_MUTANT_BAD 3     /* without a word, or by a plugin that misbehaves */
#define AOTH_N_MUTANT_ENDS 4
#define AOTH_MUTANT_NUMEL (1 << 22)

typedef struct aoth_mutant {
  char id[64]; /* of the case, "~", number */
  int end;     /* AOTH_MUTANT_* */
  char why[400];
} aoth_mutant_t;

/* Run case i, changed in the way that seed and number say. With recorded gradients, often the backward graph as well.
 * program NULL, or a file that gets the program's text before it runs. */
void aoth_op_cases_run_mutant(const aoth_op_cases_t *c, uint32_t i, uint64_t seed, uint32_t number, aoth_session_t *s,
                              const aoth_case_stages_t *stages, FILE *program, aoth_mutant_t *out);

#endif
