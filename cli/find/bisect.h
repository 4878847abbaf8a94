/* aothost bisect: the stage, the edit of its journal, the option or the node, at which a pipeline goes wrong.
 *
 *     bisect.c           stage by stage
 *     bisect_ask.c       what is wrong with an answer
 *     bisect_edits.c     halving over the prefixes of a journal
 *     bisect_options.c   which option of the stage it takes
 *     bisect_nodes.c     which node a backend runs wrong
 *
 * A program goes wrong when it computes something else than before (backend-ref, or whatever --good names), no longer
 * runs there, or, with a bound, when the pipeline's own backend takes more time or memory for it. */
#ifndef AOTH_BISECT_H
#define AOTH_BISECT_H

#include <jansson.h>
#include <trainer/trial/differences.h>
#include <trainer/trial/oracle.h>

#define AOTH_BY_STAGE 1
#define AOTH_BY_EDIT 2
#define AOTH_BY_NODE 3
#define AOTH_BY_OPTION 4

typedef struct aoth_bisect {
  aoth_watch_t watch; /* that the session is to have */
  aoth_oracle_t oracle;
  int by;                    /* AOTH_BY_* */
  double max_ms;             /* 0: none */
  uint64_t max_peak;         /* bytes; 0: none */
  aoth_oracle_answer_t good; /* of the program as the last good stage left it */
  int has_good;
  double tolerance;     /* of the program that is being looked at */
  uint32_t n_asked;     /* programs that ran */
  json_t *found;        /* NULL: nothing has gone wrong; keys: docs/FIND.md */
  json_t *not_compared; /* stages, each with why */
} aoth_bisect_t;

void aoth_bisect_init(aoth_bisect_t *b);
/* Once the session knows its pipeline. good: unit id of a backend. */
aot_status_t aoth_bisect_begin(aoth_bisect_t *b, aoth_session_t *s, const aoth_pipeline_t *p, const char *good);
/* The stages after the passes, when none of those was wrong: the pipeline's own backend. */
aot_status_t aoth_bisect_backend(aoth_bisect_t *b, aoth_session_t *s, const aoth_pipeline_t *p);
void aoth_bisect_print(const aoth_bisect_t *b, FILE *out);
void aoth_bisect_deinit(aoth_bisect_t *b);

/* ---- inside ---- */

/* One question, and whether its answer is wrong: NULL: it is right, or there is no such program (unfit); else
 * "results", "crash", "refusal", "time" or "memory", and a sentence. */
const char *aoth_bisect_ask(aoth_bisect_t *b, aoth_oracle_prepare_t prepare, void *self, int *out_unfit, char *why,
                            size_t size);
/* "time", "memory" or NULL, as above. */
const char *aoth_bisect_bound(const aoth_bisect_t *b, const aoth_oracle_answer_t *a, char *why, size_t size);
/* Each while the stage's journal is open. Adds to b->found. */
void aoth_bisect_edits(aoth_bisect_t *b, aoth_session_t *s, const aoth_stage_t *stage);
void aoth_bisect_options(aoth_bisect_t *b, aoth_session_t *s, const aoth_stage_t *stage);
/* Adds "node", as text, and "from", where it comes from in the model. */
void aoth_bisect_tell_node(json_t *found, aot_prog_t *p, aot_node_t node);
/* Of a program that precedes its backend. */
void aoth_bisect_nodes(aoth_bisect_t *b, aoth_session_t *s, const aoth_stage_t *backend);

#endif
