/* Inside of aoth_session_t, for the files of host/compiler that run things. */
#ifndef AOTH_SESSION_H
#define AOTH_SESSION_H

#include <aot/backend.h>
#include <aot/communicator.h>
#include <aot/ext/model_operators.h>
#include <aot/import.h>
#include <aot/opset.h>
#include <aot/partition.h>
#include <aot/pass.h>
#include <base/file.h>
#include <device/bound_calls.h>
#include <device/multi_queue.h>
#include <process/crash.h>
#include <sandbox/record.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <stdatomic.h>
#include <sys/types.h>

/* A unit that was created. Its functions are called with `self` first, through the imported copy. */
typedef struct aoth_instance {
  const aoth_unit_t *unit; /* NULL: none */
  const void *self;
  union { /* by the kind of the unit */
    aot_table_t head;
    aot_pass_t pass;
    aot_partition_t partition;
    aot_backend_t backend;
    aot_opset_t opset;
    aot_import_t import;
    aot_device_t device;
    aot_communicator_t communicator;
  } table;
} aoth_instance_t;

/* An opened model file: mapped, or the caller's bytes, and the importer that is to read it (unit NULL: the text
 * form). */
typedef struct aoth_model {
  aoth_stage_t stage;
  aot_file_t file;
  const aoth_where_t *where; /* that names it; NULL: none */
  uint64_t begin_ns;         /* when opening began */
} aoth_model_t;

/* How the last call into a unit ended. */
#define AOTH_CALL_OK 0
#define AOTH_CALL_TOLD 1   /* non-zero status, with a diagnostic */
#define AOTH_CALL_SILENT 2 /* non-zero status, no diagnostic: misbehaviour */
#define AOTH_CALL_CRASHED                                                                                              \
  3 /* a signal or exit: seen by the thread that reports it, and by code that waits for a worker */
#define AOTH_CALL_BROKE 4 /* the program or the contract was broken: misbehaviour */

/* An executable that a backend has loaded: its table, imported; what its functions are called with. */
typedef struct aoth_loaded {
  const aot_exe_t *self;
  aot_exe_t exe;
} aoth_loaded_t;
typedef struct aoth_several aoth_several_t; /* several_backends.h */
typedef struct aoth_worker aoth_worker_t;   /* worker.h */

/* A device that backends of the pipeline run on next to the session's. */
typedef struct aoth_other_device {
  struct aoth_other_device *next;
  const char *name; /* unit and options, as text */
  const aot_device_t *device;
  aoth_instance_t unit;
  aoth_queue_t queue;
} aoth_other_device_t;

/* The ranks that run the pipeline, of which the session is one (run_ranks.h). */
typedef struct aoth_ranks {
  aoth_instance_t unit; /* no unit: there is no other */
  aot_group_t *group;   /* of all */
  uint32_t rank, n;     /* n 0: not joined */
  uint64_t n_draws;     /* of random numbers, by a call of the program on one rank */
  uint32_t n_parts;     /* of a leaf that is shared out; 0: as many as ranks */
  uint64_t program;     /* digest of the program as it was compiled, of whomever */
  const char *model;    /* a line that reports the model's file from others; NULL: none was opened */
  int gives_up;         /* the run has failed here, which the others are informed */
} aoth_ranks_t;

/* A program, and what the backend left of it. */
typedef struct aoth_program {
  aot_prog_t *prog;
  aoth_stage_t backend_stage;
  aoth_instance_t backend;
  void *artifact;
  uint64_t artifact_nbytes, artifact_capacity; /* capacity 0: borrowed */
  const aot_exe_t *exe_self;
  aot_exe_t exe;
  aoth_bound_calls_t calls;
  aoth_several_t *several; /* NULL: one backend runs all of it; else backend has no unit */
  void (*drop_several)(aoth_several_t *v);
} aoth_program_t;

struct aoth_session {
  aoth_session_config_t config;
  kit_arena_t *arena, *scratch;
  aoth_registry_t *registry;
  aoth_ops_t *ops;
  const aot_device_t *device; /* where executables run: the host, or the unit's */
  aoth_instance_t device_unit;
  aoth_queue_t queue;          /* on it, of all programs; made with the first executable */
  aoth_other_device_t *others; /* in order: lanes 1, 2, .. */
  aoth_multi_queue_t lanes;    /* the queues of all of them, of programs that several backends run */
  aoth_ranks_t ranks;
  aoth_program_t now; /* the program that is being compiled or runs; ctx.prog is its prog */
  aot_ctx_t ctx;
  aoth_report_t report;                     /* of the unit that is being called */
  struct aoth_kernel_guards *kernel_guards; /* AOT_VALIDATE=1, else NULL */
  aoth_instance_t *opsets;
  uint32_t n_opsets, opset_capacity;
  aoth_map_t *maps; /* model files that the program may point into */
  uint32_t n_maps, map_capacity;
  aoth_record_t *records;
  uint32_t n_records, record_capacity;
  uint32_t n_dumps;
  aoth_env_read_t *env; /* what units read of the environment, each variable once */
  uint32_t n_env, env_capacity;
  struct aoth_cache_outcome *cache; /* of the last compile (compiler/compile.h); in the session's arena */
  const char *cache_why_not;        /* a unit's reason against keeping its result; NULL: none had one */
  /* how the last call ended */
  int32_t outcome;    /* AOTH_CALL_* */
  uint32_t last_node; /* that the last call touched; ctx.last_node moves on when the host looks itself */
  aot_status_t status;
  const char *failed_doing; /* of the last call that failed: "compile"; NULL: none has */
  const aoth_unit_t *failed_unit;
  aoth_crash_t crash;
  atomic_int cancelled;    /* what is compiled is to stop (cancel.h) */
  atomic_uint n_compiling; /* calls of aoth_compiling_begin without their end */
  uint32_t has_journal;    /* open ones, of this session's making */
  pid_t past_worker;       /* one that is ending by itself; 0: none */
  aoth_worker_t *worker;   /* this process is one (worker.h); NULL: it is not */
  /* a worker's, to code that waits */
  void (*tell_crash)(aoth_session_t *s, const aoth_stage_t *stage, const aoth_crash_t *crash, const char *doing);
  /* with config.bundle_dir: the program as it went to the backends, and those, as a pipeline's stages */
  kit_text_t lowered, backends;
  aoth_keep_call_t keep_call; /* NULL: none */
  void *keeper;
  aot_str_t *declared; /* schema texts that operators were made of */
  uint32_t n_declared, declared_capacity;
  const char *about; /* last words for the call below, withheld from the call before when it is the same */
  const char *about_doing;
  const aoth_unit_t *about_unit;
  /* n_programs, 0 while there is one only; the row of the selected one is out of date: it is `now` */
  aoth_program_t *programs;
  uint32_t n_programs, program_capacity, selected;
};

#endif
