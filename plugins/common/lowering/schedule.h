/* A graph of a snapshot, at given values of its symbols, as a flat list of steps over storages.
 *
 * A storage is a piece of memory: an input, an output, or a part of the arena. A tensor is a geometry over a storage;
 * view operators become tensors and no steps. A step is a function and a payload that names its operands as (storage,
 * byte): the frame of a run says where storages lie. Lowering walks the nodes once:
 *
 *     node --view?--> tensor          group of pointwise nodes --> one generated loop
 *          --table--> BLAS, attention, ..           all others --> reference kernel
 *
 * Steps and payloads live in the schedule's pool; nothing is allocated while they run (reference kernels excepted).
 * Storages live from the step that first touches them to the last; mp_plan gives them their place in the arena.
 * O(nodes + operands). */
#ifndef BC_SCHEDULE_H
#define BC_SCHEDULE_H

#include "common/custom/custom.h"
#include "common/kernels/rk.h"
#include "common/snapshot/snap_check.h"
#include <aot/snapshot.h>
#include <aot/status.h>
#include <stddef.h>

#define BC_NONE UINT32_MAX
#define BC_ALIGN 64u
#define BC_MAX_GROUP 64u /* nodes of one generated loop */

typedef struct bc_error {
  char text[400];
  const char *code; /* last part of the diagnostic's code */
  const char *hint;
  uint32_t node; /* id, AOT_NO_ID: none */
} bc_error_t;

/* ---- memory that lives as long as a schedule ---- */
typedef struct bc_pool {
  struct bc_pool_block *blocks;
  struct bc_pool_owned *owned; /* what is destroyed with it */
} bc_pool_t;
void *bc_pool_alloc(bc_pool_t *p, uint64_t nbytes); /* zeroed, 16-byte aligned; NULL: none left */
void bc_pool_deinit(bc_pool_t *p);

/* ---- tensors and storages ---- */
typedef struct bc_tensor {
  int32_t dtype; /* 0: no tensor */
  int32_t rank;
  uint32_t storage;
  int64_t offset; /* elements */
  int64_t sizes[AOT_MAX_RANK], strides[AOT_MAX_RANK];
} bc_tensor_t;

typedef struct bc_ref { /* where a step finds a tensor's first element */
  uint32_t storage;
  int64_t at; /* bytes */
} bc_ref_t;

#define BC_INPUT 1
#define BC_OUTPUT 2
#define BC_ARENA 3
typedef struct bc_storage {
  int32_t kind;
  uint32_t index; /* port */
  uint64_t nbytes;
  uint32_t first, last; /* steps, BC_NONE: never touched */
  uint32_t last_apart;  /* the last that reads it otherwise than element on element with all it writes; BC_NONE: none */
  uint32_t value;       /* id of the value that it was made for; AOT_NO_ID: none of the program's */
  uint64_t at;          /* in the arena */
} bc_storage_t;

/* ---- steps ---- */
typedef struct bc_frame {
  char *const *base; /* by storage */
  bc_error_t *error;
  struct bc_workers *workers; /* NULL: none */
  uint32_t *next;             /* the step to run after this one; a jump sets it */
  const void *self;           /* the target's own */
} bc_frame_t;
typedef aot_status_t (*bc_run_fn)(const bc_frame_t *f, void *payload);
typedef struct bc_step {
  bc_run_fn run;
  void *payload;
  uint32_t node;       /* id, for messages */
  const char *kernel;  /* run's name */
  uint64_t nbytes;     /* of its operands and results */
  uint64_t n_runs, ns; /* timed (aot.profile/1) */
} bc_step_t;

static inline char *bc_at(const bc_frame_t *f, bc_ref_t r) { return f->base[r.storage] + r.at; }
static inline float *bc_f32(const bc_frame_t *f, bc_ref_t r) { return (float *)(void *)bc_at(f, r); }
static inline float *bc_f32_or_null(const bc_frame_t *f, bc_ref_t r) {
  return r.storage == BC_NONE ? NULL : bc_f32(f, r);
}
aot_status_t bc_fail(bc_error_t *e, aot_status_t status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

typedef struct bc_port {
  bc_tensor_t type; /* geometry as declared; storage names the port's storage */
  int32_t kind;     /* AOT_TYPE_* */
  int64_t number;   /* SYMINT */
} bc_port_t;

typedef struct bc_schedule {
  bc_pool_t pool;
  bc_step_t *steps;
  uint32_t n_steps, step_capacity;
  bc_storage_t *storages;
  uint32_t n_storages, storage_capacity;
  bc_port_t *inputs, *outputs;
  uint32_t n_inputs, n_outputs;
  uint64_t arena_nbytes, live_nbytes; /* planned; most alive at one step */
  uint64_t copied_nbytes;             /* of a step's outputs that could not be computed where they are to lie */
  uint32_t n_fallback;                /* nodes run by reference kernels */
  uint32_t n_groups;                  /* generated loops that are called */
} bc_schedule_t;

/* What a schedule is made for: the number of threads, and where generated functions come from. Functions are told by
 * the place of their address, which is filled before the schedule runs (functions.h). find: that of the name, or NULL when it
 * is not known; then add() gets its source, and answers with a place, or with NULL: the group is run node by node. */
typedef void (*bc_loop_fn)(char *const *pointers, const int64_t *sizes, const int64_t *strides, int64_t begin,
                           int64_t end);
struct bc_target;
typedef struct bc_machine {
  const struct bc_target *target; /* lower.h */
  int32_t n_threads;              /* at least 1 */
  const cu_program_t *custom;     /* nodes that plugins' kernels run; borrowed as long as the schedule */
  void *self;
  const bc_loop_fn *(*find)(void *self, const char *name);
  aot_status_t (*add)(void *self, const char *name, const char *text, uint64_t nbytes, const bc_loop_fn **out);
} bc_machine_t;

/* Build the schedule of the graph at snapshot row `graph`. Owns its memory until bc_schedule_deinit, which is also due
 * after a failure. */
aot_status_t bc_schedule_init(bc_schedule_t *out, const aot_snapshot_t *s, uint32_t graph, const int64_t *symbols,
                              uint64_t n_symbols, const bc_machine_t *machine, bc_error_t *error);
void bc_schedule_deinit(bc_schedule_t *s);

#endif
