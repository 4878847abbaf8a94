/* aothost conform: a plugin against a hostile host, rule by rule (conform_rules.def, docs/CONFORM.md).
 *
 *     conform.c             units, rules, trials; the report
 *     conform_trial.[ch]    what trials share: a program for a unit, a stage run and judged
 *     conform_host.[ch]     the host table with a function that fails
 *     conform_programs.[ch] the programs: files of the SDK
 *     conform_unit.c        rules of every unit          conform_stage.c   rules over programs
 *     conform_backend_run.[ch], conform_tried_exe.[ch]    a backend that is run by whole pipelines, and an executable
 *     by its table conform_partition.c, conform_opset.c, conform_kernels.c, conform_backend.c, conform_executable.c,
 *     conform_device.c, conform_communicator.c, conform_import.c      rules of those kinds; of devices also
 *     conform_device_memory.c, conform_queues.c, conform_host_work.c,
 *                           of communicators conform_collectives.c, conform_ranks_wrong.c
 *     conform_calls.[ch]    calls of operators that nothing has to write
 *     conform_tried_device.[ch]    a device, its calls judged
 *     conform_ranks.[ch]    ranks as threads, or as processes
 *
 * Every trial is a child process with a time limit (child.h): a crash or an endless loop is a row of the report. */
#ifndef AOTH_CONFORM_H
#define AOTH_CONFORM_H

#include <jansson.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <sdk/conform/conform_programs.h>

#define AOTH_CONFORM_PASSED 0
#define AOTH_CONFORM_FAILED 1
#define AOTH_CONFORM_REFUSED 2   /* the unit said that it does not take this, and why */
#define AOTH_CONFORM_NOT 3       /* not applicable: there is nothing to try */
#define AOTH_CONFORM_UNREACHED 4 /* of a rule: one that it builds on has failed */
#define AOTH_CONFORM_NO_TRIAL 5  /* of a trial: there is none of this number */

typedef struct aoth_conform_texts {
  const char *const *items; /* n, borrowed */
  uint32_t n;
} aoth_conform_texts_t;

/* What is queried on the command line. */
typedef struct aoth_conform_line {
  const char *plugin; /* a file, or the id of a unit: its plugin's file */
  const char *kind, *unit;
  uint32_t rule;                        /* 0: all */
  int64_t trial;                        /* -1: all, until one fails */
  double timeout;                       /* seconds a trial */
  aoth_conform_texts_t withs, programs; /* programs: files of the user's */
  const char *json_path;                /* NULL, or "-": the report goes to standard error */
  int is_quiet, is_verbose;
} aoth_conform_line_t;

typedef struct aoth_conform {
  const aoth_conform_line_t *line;
  aoth_session_t *s;
  aoth_plugin_t *plugin;
  kit_arena_t *arena;
  aoth_conform_programs_t programs;
  const char *broken[8]; /* n_broken classes of programs in which the unit that is tried has failed */
  uint32_t n_broken;
  struct aoth_trial *shared; /* of the trial that continues: child and parent see it */
  uint32_t n_rules[5];       /* by AOTH_CONFORM_*, over all units */
  json_t *units; /* {unit, kind, rules: [{rule, name, verdict, trials, passed, refused, why, trial, about, again}]} */
} aoth_conform_t;

/* AOT_OK: the report is in n_rules and units, and printed unless quiet. Else reported: usage, input. */
aot_status_t aoth_conform_run(aoth_conform_t *c, aoth_session_t *s, const aoth_conform_line_t *line);
void aoth_conform_deinit(aoth_conform_t *c);

#endif
