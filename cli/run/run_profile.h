/* aothost run --profile: where the time of a run goes, by kernel and operator, and the slowest steps one by one. */
#ifndef AOTH_RUN_PROFILE_H
#define AOTH_RUN_PROFILE_H

#include "kit/base/arena.h"
#include "kit/base/text.h"
#include <config/pipeline.h>
#include <trainer/trace.h>

/* Steps that do the same: one kernel, for one operator; or a single step. */
typedef struct aoth_profile_line {
  const char *kernel, *op, *type, *module; /* of a single step; type and module are "" where several are summed */
  uint64_t n_steps, n_runs;
  double ms;                 /* all runs together */
  double nbytes, flops;      /* of all runs, as the backend counts them */
  double limit_ms;           /* that the machine needs at the least, all runs; 0: not known */
  uint64_t last_at, last_ns; /* of a single step: its last run, on the clock of aoth_now_ns; 0: not known */
} aoth_profile_line_t;

typedef struct aoth_profile_view {
  uint64_t n_runs;                             /* of the graph, as often as the step that ran least */
  uint64_t n_left_out;                         /* first runs, which are not in here */
  double ms, limit_ms;                         /* all steps, all runs */
  aoth_profile_line_t *sums, *modules, *steps; /* by kernel and operator; by module; one by one */
  uint64_t n_sums, n_modules, n_steps;         /* slowest first */
} aoth_profile_view_t;

/* Everything is in the arena. A failure is reported. */
aot_status_t aoth_profile_read(aoth_session_t *s, kit_arena_t *arena, aoth_profile_view_t *out);
void aoth_profile_print(const aoth_profile_view_t *v, FILE *out);
struct json_t;
struct json_t *aoth_profile_json(const aoth_profile_view_t *v); /* a new reference */
/* A page of its own: the tables, and the last run as a picture. AOT_E_EXHAUSTED. */
aot_status_t aoth_profile_html(const aoth_profile_view_t *v, const char *what, kit_text_t *out);
void aoth_profile_trace(const aoth_profile_view_t *v, aoth_trace_t *t); /* the last run, in the device's lane */

#endif
