/* The state of a run: storages, slots, frames. Internal to the interpreter. */
#ifndef REF_STATE_H
#define REF_STATE_H

#include "kit/model/rows.h"
#include "kit/graph/snap_check.h"
#include "ref_exec.h"
#include "ref_region.h"
#include <aot/inline.h>

/* Memory that slots share. Storages that are not owned belong to the caller (inputs and outputs). */
typedef struct rf_storage {
  void *data;
  uint64_t nbytes;
  uint32_t refs;
  int32_t owned;
  uint64_t row; /* of a rehearsal's memory plan; UINT64_MAX: none */
} rf_storage_t;

/* The value of a value row. Symbolic ints and the like are 0-dim tensors. */
typedef struct rf_slot {
  rk_tensor_t t;         /* dtype 0: None */
  rf_storage_t *storage; /* NULL: empty or None */
  uint32_t uses;         /* operand slots and outputs still to read it */
  int32_t port;          /* output port whose buffer it should be computed into, -1: none */
} rf_slot_t;

typedef struct rf_graph {
  uint32_t value_begin, n_values; /* rows of its values are together */
  uint32_t *uses;                 /* of each value */
  int32_t *port;                  /* of each value: the output it can be computed into */
} rf_graph_t;

struct rf_program {
  const aot_snapshot_t *s;
  void *copy;                  /* of the block, when the caller's bytes are misaligned */
  const rk_kernel_t **kernels; /* of each operator row; NULL: none */
  int *regions;                /* RF_* of each operator row */
  rf_graph_t *graphs;
  custom_program_t custom; /* nodes that plugins' kernels run */
  uint32_t max_args, max_operands, max_ints, max_results;
  uint32_t n_kernels;
  int is_watched; /* results are looked at (aot.check-nan/1) */
};

#define RF_MAX_DEPTH 64 /* regions in regions */

typedef struct rf_frame {
  uint32_t graph;       /* row */
  uint32_t next;        /* node row to run */
  uint32_t caller;      /* node row of the region operator; AOT_NO_ID: the graph itself */
  rf_slot_t *slots;     /* of the graph's values */
  uint32_t branch;      /* of a rehearsed cond: which of the two */
  struct rf_loop *loop; /* that runs here, its steps in the frame above; NULL: none */
} rf_frame_t;

/* A run that computes nothing, for its memory alone: storages come and go as ever, and are written down
 * (ref_rehearsal.c). */
typedef struct rf_rehearsal {
  mr_rows_t *rows;
  uint64_t begin;    /* of the graph, on the axis */
  uint32_t *written; /* by output port: step that writes it first; UINT32_MAX: none yet */
} rf_rehearsal_t;

typedef struct rf_state {
  const rf_program_t *p;
  const aot_tensor_t *outputs; /* of the outermost graph */
  int64_t *dims;               /* value of each expression; SN_NO_VALUE: not known yet */
  int64_t *symbols;            /* own copy: data-dependent ones are set on the way; SN_NO_VALUE before */
  uint64_t n_symbols;
  const aot_output_sink_t *sink; /* of open outputs; NULL: every output has its buffer */
  const rf_printer_t *printer;   /* NULL: nothing is printed */
  rf_frame_t frames[RF_MAX_DEPTH];
  uint32_t depth;
  /* scratch of the running node */
  rk_arg_t *args;
  rk_tensor_t *results, *views;
  const rk_tensor_t **tensors;
  int64_t *ints;
  int *open; /* by result of the running node: it has sizes that only the run reports */
  uint64_t now_nbytes, peak_nbytes, copied_nbytes;
  rf_rehearsal_t *rehearsal; /* NULL: a real run */
  rf_error_t *error;
} rf_state_t;

aot_status_t rf_fail(rf_state_t *st, aot_status_t status, uint32_t node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* storages */
rf_storage_t *rf_storage_create(rf_state_t *st, uint64_t nbytes); /* zeroed; NULL: no memory */
rf_storage_t *rf_storage_borrow(void *data, uint64_t nbytes);     /* NULL: no memory */
void rf_storage_release(rf_state_t *st, rf_storage_t *storage);   /* NULL is fine */

/* ref_rehearsal.c: memory of a rehearsal, which nothing writes, and its rows. */
void *rf_rehearse_memory(uint64_t nbytes); /* reads as zeros and takes no memory; NULL: no addresses left */
void rf_rehearse_give(void *memory, uint64_t nbytes);
void rf_rehearse_step(rf_state_t *st, uint32_t node);
void rf_rehearse_begin(rf_state_t *st, rf_storage_t *storage);
void rf_rehearse_end(rf_state_t *st, const rf_storage_t *storage);
void rf_rehearse_value(rf_state_t *st, const rf_storage_t *storage, uint32_t value); /* row: what it was made for */
void rf_rehearse_output(rf_state_t *st, uint32_t port);                              /* is written now */
/* ref_exec.c: run one graph, a row, in a state that is set up but for its scratch; then all that the run held is
 * returned. */
aot_status_t rf_run_graph(rf_state_t *st, uint32_t graph, const aot_tensor_t *inputs, const int64_t *symbols);

/* ref_frames.c: the stack of frames. */
struct rf_loop { /* ref_loop.c */
  uint32_t node;
  uint32_t cond, body; /* graphs; scan has no cond */
  uint32_t n_carries, n_xs, n_operands;
  uint32_t *operands; /* of the node, as rf_region_operands gives them */
  int64_t *numbers;
  rf_slot_t *carries;
  int64_t step, n_steps; /* n_steps: of a scan */
  int is_scan, decides;  /* decides: the condition runs */
};
typedef struct rf_loop rf_loop_t;
aot_status_t rf_push(rf_state_t *st, uint32_t graph, uint32_t caller);
void rf_pop(rf_state_t *st);
void rf_loop_destroy(rf_state_t *st, rf_loop_t *l); /* NULL is fine */
void rf_finish_node(rf_state_t *st, rf_frame_t *f, uint32_t node);
aot_status_t rf_truth(rf_state_t *st, const rf_slot_t *slot, uint32_t node, int *out);
aot_status_t rf_number_slot(rf_state_t *st, uint32_t node, int64_t number, rf_slot_t *slot);

/* ref_call.c: regions on the stack. */
/* a region operator: a frame is pushed, or its loop has no step */
aot_status_t rf_enter(rf_state_t *st, uint32_t node);
aot_status_t rf_leave(rf_state_t *st); /* the topmost frame is done */

/* ref_loop.c */
aot_status_t rf_loop_enter(rf_state_t *st, uint32_t node);
aot_status_t rf_loop_leave(rf_state_t *st, rf_loop_t *l); /* the topmost frame, a step or a condition, is done */

static inline const aot_snap_graph_t *rf_graph_row(const rf_state_t *st, const rf_frame_t *f) {
  return &AOT_SNAP_ROWS(st->p->s, aot_snap_graph_t, graphs)[f->graph];
}
static inline rf_slot_t *rf_slot_of(const rf_state_t *st, const rf_frame_t *f, uint32_t value) {
  return &f->slots[value - st->p->graphs[f->graph].value_begin];
}

/* slots */
void rf_slot_share(rf_slot_t *slot, const rk_tensor_t *t, rf_storage_t *storage); /* one more reference */
void rf_slot_clear(rf_state_t *st, rf_slot_t *slot);
void rf_slot_used(rf_state_t *st, rf_slot_t *slot); /* one use is over; the last one clears the slot */

/* The declared type of a value with this run's sizes: strides too. A value that is no tensor is 0-dim. A size that
 * hangs on a symbol without a value is RF_OPEN, and the strides are not to be read then; out_open NULL: that is an
 * error. */
#define RF_OPEN (-1)
aot_status_t rf_declared(rf_state_t *st, const aot_snap_value_t *v, uint32_t node, rk_tensor_t *out, int *out_open);

/* ref_learn.c: what a node's results report about symbols. Symbols without a value get theirs, ranges are checked,
 * expressions are worked out again, and every declared size must be the actual one. */
aot_status_t rf_learn(rf_state_t *st, rf_frame_t *f, uint32_t node);
/* Where a kernel with open results puts one (rk_caller_t.place); self is an rf_placing_t. */
typedef struct rf_placing {
  rf_state_t *st;
  rf_frame_t *frame;
  uint32_t node;
} rf_placing_t;
aot_status_t rf_place_open(void *self, uint32_t result, int32_t rank, const int64_t *sizes, rk_error_t *error);

/* ref_node.c: compute a node that is no region, into the frame's slots. */
aot_status_t rf_run_node(rf_state_t *st, rf_frame_t *f, uint32_t node);
/* AOT_E_RANGE: it has made a NaN or an infinity. Its operands are still there. */
aot_status_t rf_look(rf_state_t *st, rf_frame_t *f, uint32_t node);

#endif
