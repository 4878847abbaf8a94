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
#ifndef LW_SCHEDULE_H
#define LW_SCHEDULE_H

#include "kit/custom/custom.h"
#include "kit/reference/rk.h"
#include "kit/graph/snap_check.h"
#include <aot/snapshot.h>
#include <aot/status.h>
#include <stddef.h>

#define LW_NONE UINT32_MAX
#define LW_ALIGN 64u
#define LW_MAX_GROUP 64u /* nodes of one generated loop */

typedef struct lw_error {
  char text[400];
  const char *code; /* last part of the diagnostic's code */
  const char *hint;
  uint32_t node; /* id, AOT_NO_ID: none */
} lw_error_t;

/* ---- memory that lives as long as a schedule ---- */
typedef struct lw_pool {
  struct lw_pool_block *blocks;
  struct lw_pool_owned *owned; /* what is destroyed with it */
} lw_pool_t;
void *lw_pool_alloc(lw_pool_t *p, uint64_t nbytes); /* zeroed, 16-byte aligned; NULL: none left */
void lw_pool_deinit(lw_pool_t *p);

/* ---- tensors and storages ---- */
typedef struct lw_tensor {
  int32_t dtype; /* 0: no tensor */
  int32_t rank;
  uint32_t storage;
  int64_t offset; /* elements */
  int64_t sizes[AOT_MAX_RANK], strides[AOT_MAX_RANK];
} lw_tensor_t;

typedef struct lw_ref { /* where a step finds a tensor's first element */
  uint32_t storage;
  int64_t at; /* bytes */
} lw_ref_t;

#define LW_INPUT 1
#define LW_OUTPUT 2
#define LW_ARENA 3
typedef struct lw_storage {
  int32_t kind;
  uint32_t index; /* port */
  uint64_t nbytes;
  uint32_t first, last; /* steps, LW_NONE: never touched */
  uint32_t last_apart;  /* the last that reads it otherwise than element on element with all it writes; LW_NONE: none */
  uint32_t value;       /* id of the value that it was made for; AOT_NO_ID: none of the program's */
  uint32_t taken;       /* the storage whose memory it takes over in the step that reads it last; LW_NONE: none */
  uint64_t at;          /* in the arena */
} lw_storage_t;

/* ---- steps ---- */
typedef struct lw_frame {
  char *const *base; /* by storage */
  lw_error_t *error;
  struct bc_workers *workers; /* NULL: none */
  uint32_t *next;             /* the step to run after this one; a jump sets it */
  const void *self;           /* the target's own */
} lw_frame_t;
typedef aot_status_t (*lw_run_fn)(const lw_frame_t *f, void *payload);
typedef struct lw_step {
  lw_run_fn run;
  void *payload;
  uint32_t node;                         /* id, for messages */
  const char *kernel;                    /* run's name */
  uint64_t nbytes;                       /* of its operands and results */
  uint64_t flops;                        /* multiplications and additions, of products and the like .. */
  int32_t flops_dtype;                   /* .. in this dtype */
  uint64_t n_runs, ns, last_at, last_ns; /* timed (step_times.h) */
  /* Steps of the same number do the same to other memory: they may run as one, but not more than so many
   * (horizontal_fusion.c). 0: it runs alone */
  uint64_t joins;
  uint32_t most_joined;
  int32_t depends_on_run; /* a jump, or what moves from round to round of a loop: nothing that is recorded holds it */
} lw_step_t;

typedef struct lw_used { /* in the order of steps */
  uint32_t step, storage;
  int32_t is_read_only, is_update; /* update: written after it was read */
  int64_t begin, end;              /* bytes of the storage from the first element to the last */
  uint32_t inplace_of; /* a storage that may be at the address of this one, written element on element; LW_NONE: none */
  uint64_t nbytes;     /* that are counted for it */
} lw_used_t;

static inline char *lw_at(const lw_frame_t *f, lw_ref_t r) { return f->base[r.storage] + r.at; }
static inline float *lw_f32(const lw_frame_t *f, lw_ref_t r) { return (float *)(void *)lw_at(f, r); }
static inline float *lw_f32_or_null(const lw_frame_t *f, lw_ref_t r) {
  return r.storage == LW_NONE ? NULL : lw_f32(f, r);
}
aot_status_t lw_fail(lw_error_t *e, aot_status_t status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* AOT_E_EXHAUSTED, code "no-memory"; what follows "no memory": "for the schedule" */
aot_status_t lw_no_memory(lw_error_t *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct lw_port {
  lw_tensor_t type; /* geometry as declared; storage names the port's storage */
  int32_t kind;     /* AOT_TYPE_* */
  int64_t number;   /* SYMINT */
} lw_port_t;

typedef struct lw_undo {
  char *bytes;
  uint64_t size, capacity;
  uint32_t n_open, n_storages; /* transactions; storages that were there before the innermost began */
} lw_undo_t;

typedef struct lw_schedule {
  lw_pool_t pool;
  lw_step_t *steps;
  uint32_t n_steps, step_capacity;
  lw_used_t *used; /* what steps touch */
  uint32_t n_used, used_capacity;
  int stays_in_order; /* no step changes its place: there are jumps, or results are watched */
  lw_storage_t *storages;
  uint32_t n_storages, storage_capacity;
  lw_port_t *inputs, *outputs;
  uint32_t n_inputs, n_outputs;
  uint64_t arena_nbytes, live_nbytes; /* planned; most alive at one step */
  uint64_t copied_nbytes;             /* of a step's outputs that could not be computed where they are to lie */
  uint32_t n_fallback;                /* nodes run by reference kernels */
  uint32_t n_groups;                  /* generated loops that are called */
  uint64_t loop_nbytes;               /* that they read and write */
  uint32_t n_chunks;                  /* of rows (row_tiling.h) */
  uint32_t n_residuals;               /* products onto float tensors (gemm_epilogue.c) */
  uint64_t n_timed, n_left_out;       /* runs (step_times.h) */
  int is_incomplete;                  /* there was no memory for a record of what steps use or change: it fails */
  lw_undo_t undo;                     /* of open transactions (transaction.h) */
  struct lw_watch *watch;             /* observed_values.h; NULL: it is not watched */
} lw_schedule_t;

/* What a schedule is made for: the number of threads, and where generated functions come from. Functions are reported
 * by the place of their address, which is filled before the schedule runs (functions.h). find: that of the name, or
 * NULL when it is not known; then add() gets its source, and answers with a place, or with NULL: the group is run node
 * by node. */
typedef void (*lw_loop_fn)(char *const *pointers, const int64_t *sizes, const int64_t *strides, int64_t begin,
                           int64_t end);
struct lw_target;
typedef struct lw_machine {
  const struct lw_target *target; /* lower.h */
  int32_t n_threads;              /* at least 1 */
  const custom_program_t *custom; /* nodes that plugins' kernels run; borrowed as long as the schedule */
  int is_watched;                 /* every node by itself, and its results are looked at (observed_values.h) */
  void *self;
  const lw_loop_fn *(*find)(void *self, const char *name);
  aot_status_t (*add)(void *self, const char *name, const char *text, uint64_t nbytes, const lw_loop_fn **out);
  uint64_t chunk_nbytes; /* of larger results, rows are made and used in chunks of so much (row_tiling.h); 0: never */
  int adds_residuals;    /* products of f16 or bf16 may be made onto what they are added to (gemm_epilogue.c) */
} lw_machine_t;

/* Build the schedule of the graph at snapshot row `graph`. Owns its memory until lw_schedule_deinit, which is also due
 * after a failure. */
aot_status_t lw_schedule_init(lw_schedule_t *out, const aot_snapshot_t *s, uint32_t graph, const int64_t *symbols,
                              uint64_t n_symbols, const lw_machine_t *machine, lw_error_t *error);
void lw_schedule_deinit(lw_schedule_t *s);

#endif
