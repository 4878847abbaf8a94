/* Inside of aoth_session_t, for the files of host/pipeline that run things: session.c (life, import), call.c (calls
 * into units), stage.c (one stage), backend_stage.c (backends), bundle.c (what is left of a failure), check.c, and what
 * stands below under the names of their files. */
#ifndef AOTH_SESSION_H
#define AOTH_SESSION_H

#include <aot/ext/model_operators.h>
#include <aot/backend.h>
#include <aot/import.h>
#include <aot/opset.h>
#include <aot/partition.h>
#include <aot/pass.h>
#include <base/file.h>
#include <device/bound_calls.h>
#include <pipeline/compile.h>
#include <pipeline/crash.h>
#include <pipeline/record.h>
#include <pipeline/registry.h>

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
#define AOTH_CALL_TOLD 1    /* non-zero status, with a diagnostic */
#define AOTH_CALL_SILENT 2  /* non-zero status, no diagnostic: misbehaviour */
#define AOTH_CALL_CRASHED 3 /* a signal or exit: only the thread that tells of it sees this */
#define AOTH_CALL_BROKE 4   /* the program or the contract was broken: misbehaviour */

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
} aoth_program_t;

struct aoth_session {
  aoth_session_config_t config;
  aoth_arena_t *arena, *scratch;
  aoth_registry_t *registry;
  aoth_ops_t *ops;
  const aot_device_t *device; /* where executables run: the host, or the unit's */
  aoth_instance_t device_unit;
  aoth_program_t now; /* the program that is being compiled or runs; ctx.prog is its prog */
  aot_ctx_t ctx;
  aoth_report_t report; /* of the unit that is being called */
  aoth_instance_t *opsets;
  uint32_t n_opsets, opset_capacity;
  aoth_map_t *maps; /* model files that the program may point into */
  uint32_t n_maps, map_capacity;
  aoth_record_t *records;
  uint32_t n_records, record_capacity;
  uint32_t n_dumps;
  aoth_env_read_t *env; /* what units read of the environment, each variable once */
  uint32_t n_env, env_capacity;
  aoth_cache_outcome_t cache;
  const char *cache_why_not; /* a unit's reason against keeping its result; NULL: none had one */
  /* how the last call ended */
  int32_t outcome;    /* AOTH_CALL_* */
  uint32_t last_node; /* that the last call touched; ctx.last_node moves on when the host looks itself */
  aot_status_t status;
  aoth_crash_t crash;
  uint32_t has_journal; /* open ones, of this session's making */
  const char *about;    /* last words for the call below, kept from the call before when it is the same */
  const char *about_doing;
  const aoth_unit_t *about_unit;
  /* n_programs, 0 while there is one only; the row of the selected one is out of date: it is `now` */
  aoth_program_t *programs;
  uint32_t n_programs, program_capacity, selected;
};

/* ---- extension.c ---- */
/* An extension that the unit offers by its table, imported by copy. AOT_E_NOT_FOUND: it offers none; AOT_E_TOO_NEW. */
aot_status_t aoth_instance_extension(const aoth_instance_t *i, const char *id, void *out, uint32_t size);

/* ---- session.c ---- */
/* Opsets, model file, importer: everything that reading needs. The map belongs to the session. */
aot_status_t aoth_pipeline_open_model(aoth_session_t *s, const aoth_pipeline_t *p, aoth_model_t *out);
/* an empty one takes the place of the last */
aot_status_t aoth_session_new_program(aoth_session_t *s, const aoth_model_t *model);
aot_status_t aoth_session_read_model(aoth_session_t *s, aoth_model_t *model);

/* ---- operators_section.c ---- */
/* The operators of a pipeline's `operators:` section, made by the opset that offers aot.declare/1. */
aot_status_t aoth_session_declare(aoth_session_t *s, const aoth_yaml_t *const *texts, uint32_t n_texts);
/* The operators that the model file brings, as far as the session does not know them. */
aot_status_t aoth_session_declare_found(aoth_session_t *s, const aoth_model_t *model);

/* ---- model_operators.c ---- */
/* Into the sink: the schemas that a model file brings, the namespaces of the operators in it. *out_told 0: its importer
 * cannot tell. A text program (no importer) has no schemas, and is not to be asked for namespaces
 * (aoth_text_namespaces). */
aot_status_t aoth_model_schemas(aoth_session_t *s, const aoth_model_t *model, const aot_schema_sink_t *sink);
aot_status_t aoth_model_namespaces(aoth_session_t *s, const aoth_model_t *model, const aot_schema_sink_t *sink,
                                   int *out_told);

/* ---- opsets.c ---- */
/* unless it is open */
aot_status_t aoth_session_open_opset(aoth_session_t *s, const char *id, const aoth_where_t *where);
/* Those whose operators the model, the texts of a pipeline's `operators:` or the stages have, by what they claim
 * (aot/note.h). */
aot_status_t aoth_session_open_needed(aoth_session_t *s, const aoth_model_t *model, const aoth_yaml_t *const *texts,
                                      uint32_t n_texts);

/* ---- several programs: programs.c ---- */
/* A session begins with program 0. A new one is empty and selected; it is compiled like the first. */
aot_status_t aoth_session_add_program(aoth_session_t *s, uint32_t *out);
/* the selected one, which is the newest and not the first; select another */
void aoth_session_drop_program(aoth_session_t *s);
void aoth_session_drop_programs(aoth_session_t *s); /* all, at the end */

/* ---- call.c ---- */
/* Room for one more row of a session array; the old rows stay behind in the arena. NULL: no memory. */
void *aoth_session_room(aoth_session_t *s, void *rows, uint32_t n, uint32_t *capacity, size_t row_size);
typedef aot_status_t (*aoth_call_fn)(void *arg);
/* One call into a unit in a crash frame, with a fresh scratch arena. `doing`: "run", "compile", for messages. Trouble
 * is told; s->outcome says how it ended. */
aot_status_t aoth_call(aoth_session_t *s, const aoth_stage_t *stage, const char *doing, aoth_call_fn fn, void *arg);
/* After a call that did not end well, or broke something (message given by the caller): undoes open journals, writes
 * the bundle if one was asked for. Answers AOTH_E_PLUGIN, or the unit's own status where it told what it does not
 * take. */
aot_status_t aoth_session_fail(aoth_session_t *s, const aoth_stage_t *stage);
aot_status_t aoth_misbehaved(aoth_session_t *s, const aoth_stage_t *stage, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
aot_status_t aoth_instance_create(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *out);
/* The same where no stage is at stake: a failure leaves no bundle, and journals as they are. */
aot_status_t aoth_instance_try(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *out);
void aoth_instance_destroy(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *instance);
void aoth_table_destroy(aoth_session_t *s, const aoth_stage_t *stage, const aot_table_t *table); /* of any kind */
aot_status_t aoth_session_journal_begin(aoth_session_t *s);
void aoth_session_journal_commit(aoth_session_t *s);
/* A stage that stands for a unit the pipeline does not list: importer, opset. Options at their defaults. */
aot_status_t aoth_stage_of_unit(aoth_session_t *s, const char *id, const char *kinds, const aoth_where_t *where,
                                aoth_stage_t *out);

/* ---- stage.c ---- */
uint64_t aoth_count_nodes(aot_prog_t *p);
uint32_t aoth_properties_after(const aoth_unit_t *unit, uint32_t before);
/* Contract and verifier over the open journal, then commit with the new properties; or AOTH_CALL_BROKE. */
aot_status_t aoth_stage_check_memory(aoth_session_t *s, const aoth_stage_t *stage); /* was every edit of it made? */
aot_status_t aoth_stage_finish(aoth_session_t *s, const aoth_stage_t *stage);
/* needs and refuses against `properties`; complains at the stage with the units that could help. */
aot_status_t aoth_contract_check(aoth_session_t *s, const aoth_stage_t *stage, uint32_t properties);
void aoth_session_record(aoth_session_t *s, const aoth_stage_t *stage, uint64_t begin_ns, uint64_t before,
                         uint64_t edits);

/* ---- decompose.c ---- */
/* The node's opset puts simpler nodes in its place. *out_done 0: it has no decomposition. Memory: arena. */
aot_status_t aoth_decompose_node(aoth_session_t *s, const aoth_stage_t *stage, aoth_arena_t *arena, aot_node_t node,
                                 int *out_done);

/* ---- partition_stage.c ---- */
/* *out_joint: what was divided, for the check of the halves; destroyed by the caller, also after a failure. */
struct aoth_joint_record;
aot_status_t aoth_stage_divide(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *unit,
                               struct aoth_joint_record **out_joint);

/* ---- backend_stage.c ---- */
aot_status_t aoth_stage_lower(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *backend,
                              uint64_t *out_edits);
void aoth_session_exe_drop(aoth_session_t *s);
/* The executable of an artifact that outlives the session's use of it (a cache entry). stage: of a backend. */
aot_status_t aoth_session_load_artifact(aoth_session_t *s, const aoth_stage_t *stage, const void *artifact,
                                        uint64_t nbytes);

/* ---- devices.c ---- */
/* From here on executables are loaded on the pipeline's device, made if it is not. use NULL: the host. */
aot_status_t aoth_session_take_device(aoth_session_t *s, const aoth_stage_t *device);

/* ---- bundle.c ---- */
void aoth_bundle_write(aoth_session_t *s, const aoth_stage_t *stage, const char *journal);

#endif
