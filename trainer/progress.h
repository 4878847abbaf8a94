/* What a training run shows while it runs: on a terminal one living line, in a pipe (and for good on the terminal) a
 * line every log-every steps. Rates are of the steps since the line before. */
#ifndef AOTH_PROGRESS_H
#define AOTH_PROGRESS_H

#include <stdint.h>
#include <stdio.h>

typedef struct aoth_progress {
  FILE *out;         /* NULL: show nothing */
  int live;          /* out is a terminal */
  int64_t steps;     /* of the whole run */
  int64_t log_every; /* 0: no lines */
  uint64_t items;    /* per step */
  const char *unit;  /* "tokens" */
  /* private */
  uint64_t began_ns, line_ns, live_ns;
  int64_t first, line_step;
} aoth_progress_t;

void aoth_progress_begin(aoth_progress_t *p, int64_t first_step, uint64_t now_ns); /* steps already done */
/* Step number `done` (counted from 1) is complete. */
void aoth_progress_step(aoth_progress_t *p, int64_t done, double loss, double lr, uint64_t now_ns);
void aoth_progress_end(aoth_progress_t *p); /* wipes the living line */
/* "1m 05s", "2h 03m"; at least 12 bytes */
void aoth_progress_duration(double seconds, char *out, size_t size);

#endif
