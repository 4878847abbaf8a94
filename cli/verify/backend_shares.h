/* How many nodes of the compiled program each backend runs: of one, all of them; of several, what they accepted. */
#ifndef AOTH_BACKEND_SHARES_H
#define AOTH_BACKEND_SHARES_H

#include <config/pipeline.h>
#include <stdio.h>

typedef struct aoth_backend_shares {
  aoth_share_t one;       /* where at points if there is one backend */
  const aoth_share_t *at; /* in the order of the pipeline; borrowed as long as the program */
  uint32_t n;             /* 0: the pipeline has no backend */
} aoth_backend_shares_t;

/* After compiling. O(nodes). */
void aoth_backend_shares(aoth_session_t *s, const aoth_pipeline_t *p, aoth_backend_shares_t *out);
/* A line; verbose: what each leaves to the others, and why. */
void aoth_backend_shares_print(const aoth_backend_shares_t *b, int verbose, FILE *out);
struct json_t *aoth_backend_shares_json(const aoth_backend_shares_t *b); /* NULL: there is no backend */
/* The backend that the pipeline prefers runs nothing, and the others run something. */
int aoth_backend_is_idle(const aoth_backend_shares_t *b);

#endif
