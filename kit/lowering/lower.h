/* What lowering functions are written with: operands and arguments of the node at hand, new tensors, new steps. */
#ifndef LW_LOWER_H
#define LW_LOWER_H

#include "schedule.h"
#include <aot/inline.h>

typedef struct lw_value {
  int32_t kind; /* AOT_TYPE_* */
  lw_tensor_t t;
  int64_t number; /* SYMINT, SYMBOOL */
} lw_value_t;

/* What an operator of the snapshot is here, looked up once for all its nodes. */
struct lp_op;
struct lp_row_op;
struct lw_build;
typedef struct lw_product_sum lw_product_sum_t;
typedef struct lw_residual lw_residual_t;
typedef struct lw_op {
  aot_status_t (*lower)(struct lw_build *b); /* NULL: no lowering of its own */
  const rk_kernel_t *kernel;                 /* NULL: none */
  const struct lp_op *loop;                  /* NULL: not pointwise */
  const struct lp_row_op *rows;              /* NULL: reduces no rows that loops know */
  int read, write;                           /* group_read.h; 0: it does more than that, or not as loops do */
  int goes_by_strides;                       /* lw_lowering_table_t */
} lw_op_t;

typedef struct lw_build {
  lw_schedule_t *out;
  const aot_snapshot_t *s;
  const aot_snap_graph_t *graph;
  const aot_snap_node_t *node; /* the node being lowered */
  const lw_op_t *ops;          /* by ops row */
  int64_t *exprs;              /* values of the shape environment's expressions */
  lw_value_t *values;          /* by value row, less value_begin */
  uint32_t value_begin, n_values;
  const uint32_t *group; /* by node of the graph: last member of its group */
  /* Nodes that groups compute for themselves although others make them, too: of the group whose last member is node i
   * copies[copies_begin[i]] to before copies[copies_begin[i + 1]], in order (duplicate_producers.c) */
  const uint32_t *copies_begin, *copies;
  uint8_t *regions; /* by node of the graph: its part in a sum of regions (accumulate_slice_grads.c) */
  /* by node of the graph: the sum of products that it is a part of (accumulate_gemms.c), NULL: of none; or no table */
  lw_product_sum_t **product_sums;
  /* by node of the graph: the product onto a float tensor that it is a part of (gemm_epilogue.c), NULL: of none; or
   * no table */
  lw_residual_t **residuals;
  /* by value, as values: where it is to be made, a part of what joins it to others (concat_in_place.c), or with rows
   * that lie apart (row_pitch.c); NULL: anywhere */
  lw_tensor_t **places;
  /* by node of the graph: LW_SPARED_*, a copy or a draw that is not made; NULL: none is */
  uint8_t *elided;
  struct lw_chunks *chunks; /* chains that may be lowered in chunks of rows (row_tiling.h); NULL: none is looked for */
  int makes_chunks;         /* they are */
  lw_tensor_t **class_numbers; /* by node of the graph: lw_target_t.classes of it, if it is there; NULL: no table */
  uint32_t *n_uses; /* by value, as values: operands and outputs that read it from memory or within its group */
  /* by output of a step: the input in whose memory it is to lie; LW_NONE: none. NULL: no step */
  uint32_t *home;
  /* by value, as values: the home, counted from 1, of the output that is this value; 0: none */
  uint32_t *donated_input;
  /* Kernels of the program may write into what they read: those of plugins, but for collectives'. Then each tensor
   * has its own memory, is read in graph order, and nothing is assumed of its contents between reads */
  int has_inplace_custom_kernels;
  const lw_machine_t *machine;
  lw_pool_t *pool; /* the schedule's */
  lw_error_t *error;
  uint32_t depth, n_regions; /* regions that are being lowered, and that have been */
  struct lw_form **forms;    /* by value, as values, of the graph forms_in (affine_values.h); NULL: none yet */
  const aot_snap_graph_t *forms_in;
} lw_build_t;

static inline int64_t lw_dim(const lw_build_t *b, int64_t dim) { return sn_dim(dim, b->exprs); }

/* A lowering trusts no declared type: where operands and results do not fit each other it declines, and the reference
 * kernel says what is wrong. AOT_OK: done, every result is bound. LW_DECLINED: not in this form; the reference kernel
 * takes it. Anything else is a failure with its text in b->error. A caller that continues after LW_DECLINED has opened
 * a transaction (transaction.h), which drops what was added before. */
#define LW_DECLINED (-1)
#define LW_SPLIT (-2)
typedef aot_status_t (*lw_lower_fn)(lw_build_t *b);
typedef struct lw_lowering {
  const char *op;
  lw_lower_fn lower;
} lw_lowering_t;
typedef struct lw_lowering_table {
  const lw_lowering_t *rows;
  uint32_t n_rows;
  int (*has)(aot_str_t op); /* instead of rows: operators that `lower` lowers */
  lw_lower_fn lower;
  int goes_by_strides; /* operands are read however they lie: nothing needs to copy them first */
} lw_lowering_table_t;
#define LW_TABLE(table)                                                                                                \
  { .rows = table, .n_rows = (uint32_t)(sizeof(table) / sizeof(table)[0]) }
lw_lower_fn lw_lowering_in(const lw_lowering_table_t *table, aot_str_t op); /* NULL: it has none */
/* Every target's: products.c, concat.c, accumulate_slice_grads.c, elide_copies.c. */
extern const lw_lowering_table_t lw_lowerings_products, lw_lowerings_joins, lw_lowerings_regions, lw_lowerings_spared;
/* Of targets that have a `jump`: region_branches.c, region_loops.c. */
extern const lw_lowering_table_t lw_lowerings_branches, lw_lowerings_loops;

/* What a machine takes, as far as it decides what shares a loop (find_groups.c). */
typedef struct lw_costs {
  double bytes_a_ns;       /* read or written */
  double step_ns;          /* to begin one */
  double row_ns;           /* to begin and end a reduction over a row */
  double ops_a_ns;         /* additions of floats, of all threads, in a loop */
  int64_t row_elements;    /* the longest row that is near from pass to pass */
  int64_t thread_elements; /* that one thread goes through while others are woken for them */
  int merges_apart;        /* groups that others are between merge, which moves steps, and holds memory for longer */
} lw_costs_t;

/* What a machine brings: lowerings of its own, and the steps that every graph needs. */
struct lw_group;
typedef struct lw_target {
  const lw_lowering_table_t *const *tables;
  uint32_t n_tables;
  lw_costs_t costs;
  /* c = alpha * x @ y + beta * addend (NULL: none), c contiguous, or its rows apart where there are row_nbytes, of x's
   * dtype, or of f16 or bf16 float where there are chunks of rows; ranks are equal and at least 2, batch sizes agree,
   * sizes and products of those of a matrix fit into 32 bits, the addend broadcasts; f32, f64, halves. Operands are
   * copied when they must be. */
  aot_status_t (*product)(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *addend,
                          const lw_tensor_t *c, double alpha, double beta);
  /* c = x @ y + bias (NULL: none) + addend: x and y halves, as above; c, addend and bias float, c and addend dense and
   * of the same sizes, bias an element a column, side by side. Where lw_machine_t.adds_residuals */
  aot_status_t (*product_onto)(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *bias,
                               const lw_tensor_t *addend, const lw_tensor_t *c);
  /* The group as a loop, simplified: a step, after lw_store_results (group_loop.h). LW_DECLINED: there is
   * no function for it, and its members run one by one */
  aot_status_t (*loop)(lw_build_t *b, struct lw_group *g);
  /* A node that nothing else takes: by its reference kernel, or by a plugin's, one of the two; the other is NULL */
  aot_status_t (*kernel)(lw_build_t *b, const rk_kernel_t *kernel, const custom_node_t *custom, rk_arg_t *args);
  /* dst = src, of the same sizes; converts. In a loop: with each of its rounds the tensors lie dst_step and src_step
   * elements further. rounds: that are over when the step runs; NULL: no loop */
  aot_status_t (*copy)(lw_build_t *b, const lw_tensor_t *dst, int64_t dst_step, const lw_tensor_t *src,
                       int64_t src_step, const int64_t *rounds);
  aot_status_t (*zero)(lw_build_t *b, const lw_tensor_t *dst); /* contiguous */
  /* dst += src; f32, f64, f16, bf16 */
  aot_status_t (*add)(lw_build_t *b, const lw_tensor_t *dst, const lw_tensor_t *src);
  /* Checks that the node's argument k has classes below n_classes, or the one to ignore, before steps that are added
   * later run. out: a float64 then, one through the number of rows that count where the loss is to be their mean, else
   * 1. NULL: losses of classes run by their kernels */
  aot_status_t (*classes)(lw_build_t *b, uint32_t k, int64_t n_classes, lw_tensor_t *out);
  /* Bytes that lw_machine_t.self begins with which lowerings change: what one that declines leaves as it was
   * (transaction.h). 0: none */
  uint64_t self_nbytes;
  /* Forgets what it keeps of a lowering in lw_machine_t.self: the graph is lowered again. NULL: it keeps nothing */
  void (*begin_anew)(void *self, const aot_snapshot_t *s);
  /* Before nodes are lowered: the operand of the node at hand, a value, that its lowering draws for itself
   * (fuse_rng.h), and does not read if nothing makes it then; LW_NONE: none. NULL: no node's does */
  uint32_t (*draws)(lw_build_t *b);
  lw_run_fn jump; /* runs an lw_jump_t (region_steps.h) */
  /* Rows of large matrices begin at multiples of so many bytes, where only loops and products make and read them; 0:
   * they are contiguous */
  int64_t row_nbytes;
  int goes_onto;  /* its loops may write what they read, element on element (lw_use_inplace_of) */
  int on_gpu;     /* it computes as PyTorch's kernels for CUDA do, where those differ from the CPU's (lp_choose) */
  int has_across; /* its loops have sums across rows (lw_is_across); 0: operators that need them run by their kernels */
  /* n steps of equal lw_step_t.joins, which do not need each other, as one: its run, payload and kernel; the rest of
   * *out is there. NULL: steps run alone */
  aot_status_t (*join)(lw_build_t *b, const lw_step_t *const *steps, uint32_t n, lw_step_t *out);
  /* joined steps that need no other run where their first stood: to begin steps costs more than caches give */
  int runs_early;
} lw_target_t;
aot_status_t lw_find_ops(lw_build_t *b); /* b->ops */
/* Has the target anything for operators of that name but their kernels? Views need no more. */
int lw_has_lowering(const lw_target_t *target, aot_str_t op);
static inline const lw_op_t *lw_op(const lw_build_t *b) { return &b->ops[b->node->op]; }

/* ---- the node's arguments and operands ---- */
const aot_snap_arg_t *lw_arg(const lw_build_t *b, uint32_t k); /* a NONE argument past the end */
int64_t lw_arg_int(const lw_build_t *b, uint32_t k, int64_t preset);
double lw_arg_float(const lw_build_t *b, uint32_t k, double preset);
/* a number counts as a list of one */
uint32_t lw_arg_ints(const lw_build_t *b, uint32_t k, int64_t *out, uint32_t capacity);
const lw_tensor_t *lw_arg_tensor(const lw_build_t *b, uint32_t k); /* NULL: absent or no tensor */
uint32_t lw_arg_row(const lw_build_t *b, uint32_t k);              /* of the value; AOT_NO_ID: it is none */
/* As its type has it; what was lowered may lie otherwise by now. */
int64_t lw_declared_stride(const lw_build_t *b, uint32_t row, int32_t d);
/* The node of the graph that defines the value. LW_NONE: it comes from outside, as an input of a segment does, which
 * another segment's node defines (dynamic_segments.h) */
uint32_t lw_node_of(const lw_build_t *b, uint32_t row);
int lw_is_sum(const lw_build_t *b); /* x + y, neither multiplied by a number */
lw_value_t *lw_value(const lw_build_t *b, uint32_t row);
/* Were both made by nodes of one operator with the same numbers? *a and *b become the operands that differ, one of each
 * at most; equal values where none do. */
int lw_are_alike(const lw_build_t *build, uint32_t *a, uint32_t *b);
/* Do two values of the graph hold the same, because nodes that are alike made them of the same values? Chains alone. */
int lw_is_same_chain(const lw_build_t *b, uint32_t row, uint32_t other);
const lw_tensor_t *lw_type(const lw_build_t *b, uint32_t result); /* the node's result as declared; dtype 0: none */

/* ---- tensors ---- */
int64_t lw_numel(const lw_tensor_t *t);
int lw_same_sizes(const lw_tensor_t *a, const lw_tensor_t *b);
int lw_is_contiguous(const lw_tensor_t *t);
/* of the element of that number, counted in elements from the first */
int64_t lw_place(const lw_tensor_t *t, int64_t element);
void lw_make_contiguous(lw_tensor_t *t); /* strides, offset 0 */
/* t seen with `sizes`, broadcast. 0: it does not broadcast. */
int lw_expanded(const lw_tensor_t *t, int32_t rank, const int64_t *sizes, lw_tensor_t *out);
uint64_t lw_extent(const lw_tensor_t *t);                         /* bytes of storage that it needs */
int lw_same_geometry(const lw_tensor_t *a, const lw_tensor_t *b); /* sizes, strides (where a size is not 1), offset */
rk_tensor_t lw_rk_tensor(const lw_build_t *b, const lw_tensor_t *t); /* without data */

/* ---- memory: failures are remembered in *status, so that a lowering checks once ---- */
aot_status_t lw_new_tensor(lw_build_t *b, lw_tensor_t *t);           /* gives t's geometry a storage in the arena */
aot_status_t lw_result(lw_build_t *b, uint32_t k, lw_tensor_t *out); /* with the declared strides; binds it */
aot_status_t lw_result_dense(lw_build_t *b, uint32_t k, lw_tensor_t *out); /* contiguous; binds it */
void lw_result_geometry(lw_tensor_t *t);                                   /* what lw_result makes of a declared type */
void lw_bind(lw_build_t *b, uint32_t k, const lw_tensor_t *t);
/* Where the node's result k is to lie, for lowerings that write by strides: they bind it. NULL: anywhere. */
const lw_tensor_t *lw_place_of(const lw_build_t *b, uint32_t k);
aot_status_t lw_scratch(lw_build_t *b, uint64_t nbytes, lw_tensor_t *out);         /* bytes */
aot_status_t lw_contiguous(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out); /* t itself, or a copy */
/* Ends with the schedule, also after a failure here. */
aot_status_t lw_own(lw_build_t *b, void *what, void (*destroy)(void *what));

/* ---- steps: every lw_use belongs to the step that was added last ---- */
aot_status_t lw_add_step(lw_build_t *b, lw_run_fn run, const char *kernel, uint64_t payload_size, void *out_payload);
#define LW_STEP(b, run, payload) AOT_TRY(lw_add_step(b, run, #run, sizeof *(payload), &(payload)))
/* What the step writes. NULL: a reference to nothing. */
lw_ref_t lw_use(lw_build_t *b, const lw_tensor_t *t);
/* What it reads and writes: sums in place, elements by index. */
lw_ref_t lw_use_update(lw_build_t *b, const lw_tensor_t *t);
/* The same of a tensor that the step writes nothing of; is_in_place: whose elements it reads before it writes those of
 * the same index elsewhere, so that this may be the same memory. */
lw_ref_t lw_use_read_only(lw_build_t *b, const lw_tensor_t *t, int is_in_place);
static inline lw_ref_t lw_use_read(lw_build_t *b, const lw_tensor_t *t) { return lw_use_read_only(b, t, 0); }
/* The same; onto: what is written so, which may take over the memory if nothing reads it later. LW_NONE: nothing is. */
lw_ref_t lw_use_inplace_of(lw_build_t *b, const lw_tensor_t *t, int is_in_place, uint32_t inplace_of);
/* Work space: bytes that are no operands'. */
lw_ref_t lw_use_scratch(lw_build_t *b, const lw_tensor_t *t);
void lw_count_flops(lw_build_t *b, double flops, int32_t dtype);
/* What the step that was added last does hangs on the run (lw_step_t). */
void lw_depends_on_run(lw_build_t *b);
/* The step that was added last is a generated loop, whose uses are all reported. */
void lw_count_loop(lw_build_t *b);
static inline aot_status_t lw_copy(lw_build_t *b, const lw_tensor_t *dst, const lw_tensor_t *src) {
  return b->machine->target->copy(b, dst, 0, src, 0, NULL);
}
static inline aot_status_t lw_copy_moving(lw_build_t *b, const lw_tensor_t *dst, int64_t dst_step,
                                          const lw_tensor_t *src, int64_t src_step, const int64_t *rounds) {
  return b->machine->target->copy(b, dst, dst_step, src, src_step, rounds);
}
static inline aot_status_t lw_fill_zero(lw_build_t *b, const lw_tensor_t *dst) {
  return b->machine->target->zero(b, dst);
}

/* ---- what no lowering takes (kernel_args.c, views.c) ---- */
/* The node's arguments for a reference kernel, in pool memory; tensors have no data. */
aot_status_t lw_rk_args(lw_build_t *b, rk_arg_t **out);
aot_status_t lw_lower_rest(lw_build_t *b);                                /* a view, or the target's kernel */
aot_status_t lw_lower_custom(lw_build_t *b, const custom_node_t *custom); /* a plugin's kernel */

/* ---- graphs (schedule.c): b->graph is to be lowered; the caller frees b->values ---- */
aot_status_t lw_open_graph(lw_build_t *b);  /* b->values, checked, and their uses */
aot_status_t lw_bind_inputs(lw_build_t *b); /* to storages of the ports */
aot_status_t lw_lower_nodes(lw_build_t *b); /* once inputs are bound */
aot_status_t lw_plan_memory(lw_build_t *b); /* places in the arena (arena_places.c) */

/* ---- sums of regions (accumulate_slice_grads.c) ---- */
aot_status_t lw_find_regions(lw_build_t *b);              /* b->regions; before groups are found */
int lw_is_region_sum(const lw_build_t *b, uint32_t node); /* or a part of one */

/* ---- sums of products (accumulate_gemms.c) ---- */
aot_status_t lw_find_product_sums(lw_build_t *b);          /* b->product_sums; before groups are found */
int lw_is_product_sum(const lw_build_t *b, uint32_t node); /* or a part of one */
aot_status_t lw_lower_product_sum(lw_build_t *b);          /* the node at hand, which is one or a part */

/* ---- products (products.c) ---- */
static inline int lw_is_half(const lw_tensor_t *t) { return t->dtype == AOT_BF16 || t->dtype == AOT_F16; }
/* c = x @ y, of a dtype that targets multiply, with sizes that they count? */
int lw_is_product(const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *c);
typedef struct lw_product { /* alpha * x @ y + beta * addend */
  lw_tensor_t x, y;
  uint32_t addend_at; /* argument; LW_NONE: there is none */
  double alpha, beta;
  int is_folded; /* all dimensions of x and of the result but the last become one */
} lw_product_t;
int lw_read_product(const lw_build_t *b, lw_product_t *out);  /* the node at hand; 0: it is none in this form */
aot_status_t lw_fold_product(lw_build_t *b, lw_product_t *p); /* p->x with two dimensions, if it is folded */

/* ---- products onto float tensors (gemm_epilogue.c) ---- */
aot_status_t lw_find_residuals(lw_build_t *b);          /* b->residuals; after sums of regions and of products */
int lw_is_residual(const lw_build_t *b, uint32_t node); /* or a part of one */
aot_status_t lw_lower_residual(lw_build_t *b);          /* the node at hand, which is one or a part */

/* ---- joined steps (horizontal_fusion.c) ---- */
aot_status_t lw_join_steps(lw_build_t *b); /* once memory is planned, which it plans again */

/* ---- copies and draws that are not made (elide_copies.c, fuse_rng.c) ---- */
enum { LW_SPARED_COPY = 1, LW_SPARED_DRAW };
aot_status_t lw_find_spared(lw_build_t *b); /* b->spared; before groups are found */
aot_status_t lw_find_drawn(lw_build_t *b);  /* after it: more of them, and b->n_uses without what is not read then */
int lw_is_spared(const lw_build_t *b, uint32_t node);

/* ---- views (views.c) ---- */
/* All of its one operand's elements, by strides? */
int lw_is_plain_view(const lw_build_t *b);
/* What the view that is the node at hand sees of its operand, if that lies so. 0: no strides express it. */
int lw_see(lw_build_t *b, const lw_tensor_t *operand, lw_tensor_t *out);

/* ---- tensors that are made where a join has them (concat_in_place.c), or with rows further apart (row_pitch.c)
 * ---- */
aot_status_t lw_find_places(lw_build_t *b);  /* b->places; once groups are found */
aot_status_t lw_find_pitches(lw_build_t *b); /* more of them */

/* ---- groups (find_groups.c, duplicate_producers.c) ---- */
/* By node of the graph: the last node of its group, LW_NONE: it is no loop; by last node, and by node that is no loop:
 * the place in the order that they run in, below the number of nodes. */
aot_status_t lw_find_groups(lw_build_t *b, uint32_t *out_group, uint32_t *out_position);
int lw_is_collective(const lw_build_t *b, uint32_t node); /* snapshot row */
/* out: by node, FU_FIRST of the forward, FU_REMAT of the backward and alike to one of those, 0 all others
 * (remat_barrier.c). */
aot_status_t lw_find_again(const lw_build_t *b, uint8_t *out);
struct fu_values;
/* b->copies, and b->n_uses without what is read from registers then. */
aot_status_t lw_find_copies(lw_build_t *b, const struct fu_values *values);
/* By node: a number for the space that it shares loops in, LW_NONE: it shares none. Groups are more than that: of nodes
 * that reduce different rows of one space those of the first count here, and none that must have in memory what another
 * node of its space makes. */
aot_status_t lw_find_spaces(lw_build_t *b, uint32_t *out_space);

#endif
