/* A pipeline file, and the session that runs it.
 *
 *     aoth_session_create            finds plugins, opens none
 *     aoth_pipeline_load             file, includes, variables, --set -> typed pipeline   (run section: run.h part
 *                                                                                         below)
 *     aoth_pipeline_check            units, options, contracts: every complaint, runs nothing
 *     aoth_pipeline_import           model file -> program
 *     aoth_pipeline_run_stages       passes, partition, [optimizer], backend -> executable
 *     aoth_session_run_exe           one call of one graph, in a crash frame
 *
 * Statuses: AOT_OK; AOTH_E_PLUGIN when a plugin failed (reported in full, exit 3); anything else is wrong input,
 * reported as well (exit 2). aoth_exit_code() maps them. A session serves one thread. */
#ifndef AOTH_PIPELINE_H
#define AOTH_PIPELINE_H

#include <aot/backend.h>
#include <aot/ext/check_nan.h>
#include <aot/ext/profile.h>
#include <aot/option.h>
#include <aot/partition.h>
#include <aot/status.h>
#include <base/exit_status.h>
#include <base/sink.h>
#include <ir/program.h>
#include <base/clock.h>
#include <config/yaml.h>

/* ---- the pipeline file ---- */

typedef struct aoth_unit aoth_unit_t; /* registry.h: a unit found on the search path */

/* Where a stage runs. */
#define AOTH_ISOLATE_UNSAID 0
#define AOTH_ISOLATE_NONE 1   /* in this process */
#define AOTH_ISOLATE_WORKER 2 /* in one of its own (worker.h) */

/* One use of a unit with its options: a stage, or the optimizer. */
typedef struct aoth_stage {
  const char *use;         /* unit id; NULL: none */
  const char *name;        /* `as:`, else the unit id */
  uint32_t number;         /* 1-based position in the pipeline; 0: not one of its stages */
  uint32_t lane;           /* of a backend: its device among the session's (devices.h), filled when they are taken */
  aoth_where_t where;      /* of the unit id */
  const aoth_yaml_t *at;   /* where `where` is in the tree; NULL: not from a file */
  const aoth_yaml_t *with; /* options as written; NULL: none */
  const aoth_unit_t *unit; /* filled by check */
  aot_opts_t opts;         /* filled by check: typed, defaults filled in */
  int32_t isolate;         /* AOTH_ISOLATE_* */
  const char *sha256;      /* that its plugin's file must have; NULL: any */
  const aoth_yaml_t *where_sha256;
  double timeout; /* seconds that it may take, in a worker; 0: as many as it likes */
  /* of a backend: where it runs, use NULL: on the host; NULL: where the run does */
  struct aoth_stage *device;
} aoth_stage_t;

#define AOTH_DATA_NONE 0
#define AOTH_DATA_RANDOM 1      /* made up from the leaves' types and the seed */
#define AOTH_DATA_SAFETENSORS 2 /* keys input.K */
#define AOTH_DATA_TOKENS 3      /* a flat file of token numbers; batches of windows */

/* Where the user inputs of a call come from. */
typedef struct aoth_data_spec {
  int32_t kind;       /* AOTH_DATA_* */
  int32_t dtype;      /* TOKENS: type of the numbers in the file (AOT_U8, AOT_U16, AOT_I32, ..) */
  const char *path;   /* SAFETENSORS, TOKENS: resolved path */
  int64_t batch;      /* TOKENS: windows a batch; 0: as the model's inputs say */
  int64_t block;      /* TOKENS: tokens a window; 0: as the model's inputs say */
  uint32_t inputs[2]; /* TOKENS: the user inputs that take the tokens, and the tokens after them */
  aoth_where_t where;
} aoth_data_spec_t;

#define AOTH_SCHEDULE_CONSTANT 0
#define AOTH_SCHEDULE_LINEAR 1 /* from lr down to min-lr at the last step */
#define AOTH_SCHEDULE_COSINE 2 /* half a cosine from lr to min-lr at the last step */

#define AOTH_STEP_ONE_GRAPH 0
#define AOTH_STEP_THREE_GRAPHS 1
#define AOTH_SCALE_NONE 0
#define AOTH_SCALE_DYNAMIC 1  /* grows and falls as torch.amp.GradScaler has it */
#define AOTH_SCALE_CONSTANT 2 /* stays; a step whose gradients are not finite is not accepted */
typedef struct aoth_loss_scale {
  int32_t kind;           /* AOTH_SCALE_* */
  double first;           /* 0: none */
  double growth, backoff; /* factors; 1 for CONSTANT */
  int64_t interval;       /* finite steps in a row before it grows */
} aoth_loss_scale_t;

#define AOTH_PRECISION_F32 0 /* as the model has it */
#define AOTH_PRECISION_BF16 1
#define AOTH_PRECISION_F16 2
typedef struct aoth_train_spec {
  int present; /* the file has run.train */
  int64_t steps;
  aoth_stage_t optimizer; /* run.train.optimizer with optimizer-with */
  int32_t step;           /* AOTH_STEP_* */
  int is_step_said;       /* by the file, not by default */
  int64_t accumulate;     /* micro steps to a step */
  double clip_norm;       /* 0: gradients are not clipped */
  /* that makes one graph of the step; no unit where it is not wanted, or not there and not requested */
  aoth_stage_t stitch;
  aoth_loss_scale_t loss_scale;
  int check_finite;      /* a gradient that is not finite ends the run */
  int32_t precision;     /* AOTH_PRECISION_* */
  aoth_stage_t autocast; /* that casts for it; no unit where nothing is requested */
  uint32_t autocast_at;  /* filled by check: it runs before the stage of this number, counted from 0 */
  double lr, min_lr;
  int32_t schedule; /* AOTH_SCHEDULE_* */
  int64_t warmup;   /* steps of linear growth from 0 to lr, before the schedule */
  aoth_data_spec_t data;
  int64_t seed;
  int64_t log_every;           /* 0: never */
  int64_t loss;                /* number of the user output that is minimised */
  const char *checkpoint_path; /* NULL: none */
  int64_t checkpoint_every;    /* steps; 0: only at the end */
  const char *resume;          /* NULL: none */
  aoth_where_t where, where_optimizer, where_step, where_loss, where_checkpoint, where_resume;
} aoth_train_spec_t;

typedef struct aoth_run_spec {
  int present;             /* the file has run: */
  aoth_data_spec_t inputs; /* one-shot runs, and train when it has no data of its own */
  const char *outputs;     /* NULL: not written */
  int64_t seed;
  aoth_stage_t device;     /* run.device with device-with; use NULL: the host */
  aoth_stage_t ranks;      /* run.ranks with ranks-with: the communicator; use NULL: there is one rank */
  uint32_t alias_patterns; /* programs compiled for inputs that share memory, at most */
  aoth_where_t where, where_outputs;
  aoth_train_spec_t train;
} aoth_run_spec_t;

/* What the host adds a unit for by itself (default_units.h). */
enum {
  AOTH_UNIT_OPTIMIZER,
  AOTH_UNIT_PRECISION,
  AOTH_UNIT_STEP,
  AOTH_UNIT_SEVERAL_BACKENDS,
  AOTH_UNIT_OPERATORS,
  AOTH_N_DEFAULT_UNITS
};

/* By AOTH_UNIT_*. */
typedef struct aoth_default_units {
  const char *ids[AOTH_N_DEFAULT_UNITS];
  const aoth_yaml_t *at[AOTH_N_DEFAULT_UNITS]; /* in the pipeline; NULL: the built-in row */
  aoth_where_t where[AOTH_N_DEFAULT_UNITS];    /* of `at` */
} aoth_default_units_t;

typedef struct aoth_pipeline {
  kit_arena_t *arena; /* owns all of it */
  const char *path;   /* the file, as given */
  const char **files; /* n_files: it and those that it includes, as opened */
  uint32_t n_files;
  aoth_yaml_t *tree;      /* everything merged, variables filled in */
  aoth_stage_t importer;  /* use: its unit id, "ir" for the textual form; NULL: code that recognises the file */
  const char *model_path; /* resolved; NULL: none given */
  aot_str_t model_bytes;  /* what is there in memory, the caller's; data NULL: the file is read */
  aoth_where_t where_model;
  const char **opsets; /* n_opsets unit ids; 0: every opset found */
  aoth_where_t *where_opsets;
  uint32_t n_opsets;
  const aoth_yaml_t **operators; /* n_operators schema texts */
  uint32_t n_operators;
  uint32_t n_stages;
  aoth_stage_t *stages;
  /* before several backends: the stage of the list that says so, or made up; no unit: there is one backend, or none */
  aoth_stage_t assign;
  aoth_default_units_t default_units;
  aoth_run_spec_t run;
} aoth_pipeline_t;

/* What the command line, or a user of the library, lays over the file. Paths given here are relative to the current
 * folder; those in a pipeline file to that file. */
typedef struct aoth_overrides {
  const char *const *sets; /* n_sets texts "run.train.steps=5" */
  uint32_t n_sets;
  const char *model;     /* --model; NULL: the file's */
  aot_str_t text;        /* the pipeline itself, read instead of the file at its path; data NULL: that is read */
  aot_str_t model_bytes; /* of `model`, likewise; borrowed as long as the pipeline is */
  const char *inputs;    /* --inputs: a path or "random"; NULL: the file's */
  const char *outputs;   /* --outputs; NULL: the file's */
  const char *seed;      /* --seed: of everything that is drawn, training included; NULL: the file's */
} aoth_overrides_t;

/* Read, merge, substitute, type. All complaints go to the sink in one go. overrides may be NULL. */
aot_status_t aoth_pipeline_load(const char *path, const aoth_overrides_t *overrides, aoth_sink_t *sink,
                                aoth_pipeline_t **out);
void aoth_pipeline_destroy(aoth_pipeline_t *p); /* NULL is fine */

typedef struct aoth_session aoth_session_t;
/* Units, options, contracts; fills stage->unit and stage->opts. Opens the plugins that the pipeline names, creates
 * none. */
aot_status_t aoth_pipeline_check(aoth_session_t *s, aoth_pipeline_t *p);
/* The pipeline with every default filled in, as YAML that loads back to the same. After check. */
void aoth_pipeline_print(const aoth_pipeline_t *p, kit_text_t *out);

/* ---- the session ---- */

/* Somebody who looks on while stages run. */
typedef struct aoth_watch {
  void *self;
  /* A partitioner chose a cut, and it names what is there; the program still has its joint graph. NULL: nothing is
   * done. */
  void (*cut)(void *self, aoth_session_t *s, const aoth_stage_t *stage, const aot_cut_t *cut);
  /* A pass or partition has edited the program, every check agrees, and its journal is open. Else than AOT_OK: the
   * stage has failed, and aoth_contract_violation has reported how. NULL, likewise. */
  aot_status_t (*edited)(void *self, aoth_session_t *s, const aoth_stage_t *stage);
  /* 0: that backend is not to have the node though it takes it. NULL: it has what it takes. */
  int (*takes)(void *self, const aoth_stage_t *backend, aot_node_t node);
  uint64_t spent_ns; /* in there; records leave it out */
} aoth_watch_t;

typedef struct aoth_session_config {
  aoth_sink_t *sink;              /* borrowed */
  const char *const *plugin_dirs; /* --plugin-dir, searched first */
  uint32_t n_plugin_dirs;
  uint32_t verbose;              /* 1: -v */
  const char *const *dump_after; /* stage names; with dump_dir and none named: all */
  uint32_t n_dump_after;
  uint32_t check_replay; /* 1: replay_check.h */
  int32_t isolate;       /* AOTH_ISOLATE_*, of stages that say nothing */
  double timeout;        /* likewise */
  const char *lock;      /* file of digests of the plugins that may be opened; NULL: any may */
  const char *keys;      /* file of public keys, of which one must have signed them (signature.h); NULL: any may */
  /* of plugins that are not the host's own, before they are opened (registry.h); NULL: none */
  const char *(*vet_plugin)(const char *path, kit_arena_t *arena);
  uint32_t no_cache;      /* 1: the compile cache is neither asked nor filled */
  const char *dump_dir;   /* NULL: dumps go to stdout */
  const char *bundle_dir; /* parent is made; NULL: no bundle is left */
  /* with bundle_dir: writes the bundle of a stage or run that failed; notes what goes to these backends, before it does
   * */
  void (*write_bundle)(aoth_session_t *s, const aoth_stage_t *stage, const char *journal);
  void (*note_lowering)(aoth_session_t *s, const aoth_stage_t *const *backends, uint32_t n, const aoth_stage_t *assign);
  /* Each stage, once it has run; args: JSON members. NULL: none */
  void (*span)(void *self, const char *category, const char *name, uint64_t begin_ns, const char *args);
  void *span_self;
  aoth_watch_t *watch; /* borrowed; NULL: nobody */
} aoth_session_config_t;

/* A number that a unit reported about itself (aot.report/1), or a text. */
typedef struct aoth_number {
  const char *name, *unit;
  const char *text; /* NULL: a number */
  double value;
} aoth_number_t;

/* What one unit did. */
typedef struct aoth_record {
  const char *unit, *name, *plugin, *version;
  uint32_t number; /* of the stage; 0: importer, optimizer */
  uint32_t n_numbers;
  uint32_t is_cached; /* it did so when the cache entry was made; ms is 0 */
  double ms;
  uint64_t nodes_before, nodes_after, edits;
  uint64_t peak_bytes; /* most memory that the process has held so far */
  const aoth_number_t *numbers;
} aoth_record_t;

/* Reads the notes on the search path. NULL: no memory. */
aoth_session_t *aoth_session_create(const aoth_session_config_t *config);
/* Units, program, arenas; plugins stay mapped. */
void aoth_session_destroy(aoth_session_t *s);

/* What the session compiles, now or from now on, is to stop: units hear it (host->cancelled), and it answers
 * AOT_E_CANCELLED, reported. 1: something is being compiled. [any-thread], and in a signal handler. */
int aoth_session_cancel(aoth_session_t *s);

/* Model -> program: opens the opsets, runs the importer, verifies. The program belongs to the session. */
aot_status_t aoth_pipeline_import(aoth_session_t *s, const aoth_pipeline_t *p);
/* The same without a pipeline. import_id NULL: code that recognises the file, the textual form by its suffix .ir.
 * Places may be NULL. */
aot_status_t aoth_session_import(aoth_session_t *s, const char *import_id, const aoth_where_t *where_import,
                                 const char *path, const aoth_where_t *where_model);
/* Every opset found, for lists of what there is. One that cannot be opened, or ends the process when it is (each is
 * opened in a child first), is left out with a warning. For commands: a process with other threads is not to be
 * forked. */
aot_status_t aoth_session_open_every_opset(aoth_session_t *s);

/* run p->run.train.optimizer right before the backend, or at the end, and p->run.train.autocast, if requested */
#define AOTH_STAGES_OPTIMIZER 1u
#define AOTH_STAGES_NO_BACKEND 2u /* stop before the backend */
#define AOTH_STAGES_STITCH 4u     /* run p->run.train.stitch, if there is such a unit, after the optimizer */
/* Run the checked stages over the session's program. Stops at the first that fails. */
aot_status_t aoth_pipeline_run_stages(aoth_session_t *s, const aoth_pipeline_t *p, uint32_t flags);
/* Run one more unit (pass, partition or backend); the stage must have been resolved by check or by
 * aoth_stage_resolve. */
aot_status_t aoth_session_run_stage(aoth_session_t *s, const aoth_stage_t *stage);
/* The same with several, in order. What they ask of the pipeline's backend (aot.memory/1) the one among them
 * answers. */
aot_status_t aoth_session_run_list(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n_stages);
/* Several backends in order of preference, the program divided among them by the stage `assign`. */
aot_status_t aoth_session_run_backends(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n_stages,
                                       const aoth_stage_t *assign);
/* Find the unit of stage->use, open its plugin, type its options. `kinds`: allowed unit kinds, space-separated. */
aot_status_t aoth_stage_resolve(aoth_session_t *s, aoth_stage_t *stage, const char *kinds, kit_arena_t *arena);

aot_prog_t *aoth_session_prog(aoth_session_t *s);  /* NULL before import */
int aoth_session_crashed(const aoth_session_t *s); /* did the last call die, in a worker? */
aot_ctx_t *aoth_session_ctx(aoth_session_t *s);    /* of the calls that follow; scratch as the last call left it */
aoth_sink_t *aoth_session_sink(aoth_session_t *s);
aoth_ops_t *aoth_session_ops(aoth_session_t *s);                /* operators of the opened opsets */
struct aoth_registry *aoth_session_registry(aoth_session_t *s); /* registry.h */
uint32_t aoth_session_records(aoth_session_t *s,
                              const aoth_record_t **out); /* importer first; borrowed until the next call */

/* Which of several compiled programs (compile.h) aoth_session_prog, _exe and _run_exe mean. O(1). */
void aoth_session_select(aoth_session_t *s, uint32_t program);

/* What one of several backends runs, and what it left to others, by operator. */
typedef struct aoth_refusal {
  const char *op, *reason; /* of the first such node */
  uint32_t n_nodes;
} aoth_refusal_t;
typedef struct aoth_share {
  const char *backend; /* as the pipeline names it */
  const char *device;  /* that it runs on; NULL: where the run does */
  uint32_t n_nodes, n_parts;
  const aoth_refusal_t *refusals;
  uint32_t n_refusals;
} aoth_share_t;
/* 0: one backend runs all. Borrowed as long as the program. */
uint32_t aoth_session_shares(const aoth_session_t *s, const aoth_share_t **out);

/* The executable that the backend stage left; NULL: the pipeline had none. Members are imported by copy. */
const aot_exe_t *aoth_session_exe(aoth_session_t *s);
uint64_t aoth_session_artifact_nbytes(aoth_session_t *s);
/* The session's queue on its device, once there is an executable. */
struct aoth_queue;
struct aoth_queue *aoth_session_queue(aoth_session_t *s);
/* Who writes down what a run was given, should it fail, into the file that is named. NULL: nothing. */
typedef aot_status_t (*aoth_keep_call_t)(void *self, const char *path, aoth_sink_t *sink);
void aoth_session_keep_calls(aoth_session_t *s, aoth_keep_call_t keep, void *self);
/* One call of one graph, on memory of the device, in a crash frame: bound unless it is so already, and put on the
 * queue; what of it fails later is reported by who waits. symbols: what->graph.n_symbols, in and out
 * (aot_submission_t), borrowed until it is done. open NULL: no output is open; else it waits itself. A failure is
 * reported: the backend's own status when it is the inputs' or the model's (an index out of range, a failed assertion)
 * or a limit, else AOTH_E_PLUGIN. AOT_E_UNIMPLEMENTED: an output is open, and the executable does not know such. */
aot_status_t aoth_session_run_exe(aoth_session_t *s, const aot_binding_t *what, int64_t *symbols,
                                  const aot_output_sink_t *open, uint64_t *known);
/* What has gone to and from the device so far; on the host nothing has to. */
typedef struct aoth_traffic {
  uint64_t n_calls, nbytes;
  uint64_t moved_nbytes; /* from device to device, within calls */
  const char *device;    /* the session's unit; NULL: the host */
} aoth_traffic_t;
aoth_traffic_t aoth_session_traffic(const aoth_session_t *s);

/* The queue of the device that a leaf of that compiled program lives on, where it is not the session's; NULL: it is. */
struct aoth_queue *aoth_session_leaf_home(aoth_session_t *s, const aot_prog_t *prog, uint32_t leaf);
/* What a leaf of the selected program holds, as a number that grows with each change. */
void aoth_session_leaf_is(aoth_session_t *s, uint32_t leaf, uint64_t version);
int aoth_session_has_several(
    const aoth_session_t *s); /* backends, which may have copies of leaves on several devices */

aot_status_t aoth_session_exe_stats(aoth_session_t *s, aot_exe_stats_t *out);
/* The executable's steps timed from here on, and what was timed (aot.profile/1). AOT_E_UNIMPLEMENTED, reported: its
 * backend does not. out->rows: borrowed until the next call of the executable. */
aot_status_t aoth_session_profile_start(aoth_session_t *s);
aot_status_t aoth_session_profile(aoth_session_t *s, aot_profile_t *out);
/* Before anything runs: the executable looks for the first NaN (aot.check-nan/1). AOT_E_UNIMPLEMENTED, reported: it
 * cannot. */
aot_status_t aoth_session_check_nan(aoth_session_t *s);

/* ---- summaries shared by commands ---- */
struct json_t;
struct json_t *aoth_records_json(aoth_session_t *s); /* the "stages" array of --json; a new reference */

#endif
