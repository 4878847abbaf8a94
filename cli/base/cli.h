/* Command lines: one option table a command, the common flags, and what they set up. */
#ifndef AOTH_CLI_H
#define AOTH_CLI_H

#include <base/sink.h>
#include <config/pipeline.h>
#include <stdint.h>
#include <trainer/interrupt.h>
#include <trainer/trace.h>

/* One flag of a command. Values land in *text (the last one counts) or in `list`. */
typedef struct aoth_texts { /* a growing list of borrowed texts; zero-initialise */
  const char **items;
  uint32_t n, capacity;
} aoth_texts_t;
typedef struct aoth_flag {
  const char *name;   /* "--model" */
  const char *letter; /* "-o" or NULL */
  const char *value;  /* "F": takes a value, shown in the help; NULL: a switch */
  const char *ending; /* of a switch: it takes the next argument as its value, too, where that ends so; NULL: none */
  const char *help;   /* one sentence */
  int *set;           /* switches: counted up */
  const char **text;  /* values */
  aoth_texts_t *list; /* values that may repeat, in order; wins over text */
  int writes;         /* the value is a file that the command writes */
  int with_name; /* the flag's name goes into the list before each value: flags whose order among each other counts */
} aoth_flag_t;

/* The flags that every command has. */
typedef struct aoth_common {
  int verbose, quiet, time;
  int check_replay; /* opt's own flag sets it */
  int no_cache;     /* of the commands that compile to run; their own flag sets it */
  aoth_texts_t plugin_dirs, sets, dump_after;
  const char *dump_dir, *trace_path, *json_path, *bundle_dir, *isolate, *timeout, *lock, *keys;
} aoth_common_t;

/* The caller wants to know a command's flags instead of running it: completion. */
typedef struct aoth_flag_listener {
  void (*hear)(struct aoth_flag_listener *self, const aoth_flag_t *flags,
               uint32_t n); /* twice: own ones, common ones */
} aoth_flag_listener_t;

typedef struct aoth_command {
  const char *name;    /* "run" */
  const char *usage;   /* "run PIPELINE [options]" */
  const char *summary; /* one line for `aothost --help` */
  const char *text;    /* what it does, in a paragraph or three; examples */
  int (*main)(const struct aoth_command *self, int argc, char **argv); /* argv[0] is the command's name; exit status */
  aoth_flag_listener_t *listener; /* in a copy of the command: main hands it the flags, and does nothing else */
} aoth_command_t;

/* What a command's main works with: the parsed line and the objects made from the common flags. */
typedef struct aoth_cli {
  const aoth_command_t *command;
  aoth_common_t common;
  const char **positional; /* n_positional of them; room for all of the line */
  uint32_t n_positional;
  aoth_texts_t outputs;       /* the flags that write a file, each before its path */
  aoth_sink_t *sink;          /* to stderr */
  aoth_trace_t *trace;        /* NULL: none */
  aoth_session_t *session;    /* NULL until aoth_cli_session */
  aoth_watch_t *watch;        /* that the session is to have; NULL: none */
  aoth_interrupt_t interrupt; /* queries the session to stop what it compiles, as long as there is one */
} aoth_cli_t;

#define AOTH_CLI_GO (-1)
#define AOTH_CLI_ANY UINT32_MAX /* positional arguments: as many as there are */
/* Parse argv (flags may be anywhere; `--` ends them; --name=value works) against the command's flags and the common
 * ones. Answers AOTH_CLI_GO, or the exit status when there is nothing left to do (--help printed, bad usage reported).
 * flags: n_flags rows; min, max: how many positional arguments. Always call aoth_cli_deinit afterwards. */
int aoth_cli_init(aoth_cli_t *cli, const aoth_command_t *command, int argc, char **argv, const aoth_flag_t *flags,
                  uint32_t n_flags, uint32_t min, uint32_t max);
aoth_session_t *aoth_cli_session(aoth_cli_t *cli); /* made on the first call; NULL: no memory, reported */
/* Load and check the pipeline with --set and the overrides (sets of `overrides` are filled in here). */
aot_status_t aoth_cli_pipeline(aoth_cli_t *cli, const char *path, aoth_overrides_t *overrides, aoth_pipeline_t **out);
/* The stages of a list of --use and --with flags (with_name), in order: units found, options typed. Every --with
 * belongs to the --use before it. All complaints before anything runs. */
aot_status_t aoth_cli_stages(aoth_cli_t *cli, const aoth_texts_t *uses, kit_arena_t *arena, aoth_stage_t **out,
                             uint32_t *out_n);
/* Write the --json result (when requested): "-" is stdout. Steals nothing. */
aot_status_t aoth_cli_json(aoth_cli_t *cli, struct json_t *value);
/* Prints --time, writes the trace, frees all; answers `code` or, when writing failed, 2; AOTH_EXIT_INTERRUPTED in place
 * of a failure that is no plugin's, where Ctrl-C asked to stop. */
int aoth_cli_deinit(aoth_cli_t *cli, int code);

#endif
