/* Loop IR: a group of pointwise operators and reductions as one loop nest over strided memory.
 *
 *     for every index of the space: load operands, run instructions in order, store results
 *
 * Rows: where a loop has reductions, the innermost dimension is the row that they run over, and an instruction's value
 * is a number of each element or of the whole row (what reductions give, and what follows from them alone). The row is
 * gone through in passes: what needs a reduction's result is in a later pass than the reduction. Values that a
 * later pass needs are computed again there, or are stored in memory for a row where that is cheaper (lp_schedule).
 *
 *     for every row: pass 0: m = max(x) | pass 1: e = exp(x - m), s = sum(e), e is stored | r = 1 / s | pass 2: y = e *
 *     r
 *
 * An instruction is a row of the operator table (loop_ops.c): a template of the expression in the language that C and
 * CUDA C share. An access is a tensor in the space: a stride a dimension, 0 where it is broadcast. Sizes and strides
 * are arguments of the generated function; what is generated depends on dtypes, expressions, the number of dimensions,
 * and whether an access steps by 0, 1 or something else through the innermost dimension. So equal layers of a model
 * share one function.
 *
 * A draw (explicit randomness) is an access without memory: a piece of the innermost dimension at a time, its numbers
 * are put into a buffer on the stack, by a function that the caller names. So the text has no generator in it, and
 * dropout is one loop.
 *
 * A load may have more to say about its place: index tensors, whose numbers count along dimensions of what it reads (an
 * embedding's rows), and bounds, outside of which it reads a number or what another load has (padding, the gradient of
 * a slice). An index that is out of range reads element 0, and the function says so; its caller looks for it then.
 *
 * A store may have index tensors, too. Dimensions along which only these count, so that places may meet, are `reduced`:
 * their indices are gone through in order, and those next to them are what runs in parallel.
 *
 * Sums across rows (weight and bias gradients) go next to the passes: every row adds its elements to one accumulator a
 * column.
 *
 * lp_simplify drops dimensions of size 1, puts the first store's fastest dimension innermost and merges dimensions that
 * all accesses step through evenly: most groups become one flat loop. */
#ifndef LP_LOOP_H
#define LP_LOOP_H

#include <aot/base.h>

#define LP_ARGS 8   /* arguments of an operator */
#define LP_STEPS 10 /* instructions that an operator is at most */
#define LP_INSTS 512
#define LP_INDICES 4 /* index tensors of a load */
#define LP_NONE UINT32_MAX

/* Where an instruction's argument comes from. */
#define LP_ABSENT 0
#define LP_LOAD 1  /* access number `index` */
#define LP_INST 2  /* instruction number `index` */
#define LP_FLOAT 3 /* `f`: a number, weak in promotion */
#define LP_INT 4   /* `i` */
#define LP_BOOL 5  /* `i` */
#define LP_DRAWN 6 /* access number `index`, which is a draw: as it is, in the access's own type */
typedef struct lp_arg {
  int32_t kind;
  uint32_t index;
  double f;
  int64_t i;
} lp_arg_t;

/* What becomes of an instruction's values. Sums are used in lanes (loop_prelude.c): their order depends on the length
 * of the row and on nothing else, so neither on what shares the loop nor on threads. */
#define LP_EACH 0 /* each represents itself */
#define LP_SUM 1  /* those of a row become one; floats are added in double */
#define LP_PROD 2
#define LP_MAX 3 /* NaN where one is */
#define LP_MIN 4
#define LP_LOG_ADD 5 /* scans: the logarithm of a sum of exponentials */
/* Those of a column become one sum, next to the rows; of values of rows one number in all. A loop that is run by parts
 * leaves as many sums as parts, in float64: what stores it is given other memory for each. No instruction reads it. */
#define LP_ACROSS 6

typedef struct lp_inst {
  const char *text; /* template, chosen by lp_choose */
  /* dtype it is computed in: AOT_F32, AOT_F64, AOT_I64 or AOT_BOOL; a half: in float, of operands rounded to it */
  int32_t compute;
  int32_t dtype;                     /* of its result */
  uint32_t n_args;                   /* LP_STEPS more where it is one of an operator's several instructions */
  lp_arg_t args[LP_ARGS + LP_STEPS]; /* then the instructions of the same operator before it, %0, %1, .. */
  int32_t reduce;                    /* LP_EACH, or how the values of a row become one */
  int32_t scan;                      /* LP_EACH, or how each becomes one with all before it in its row */
  int32_t of_row;                    /* by lp_schedule: one value a row (LP_ACROSS: of such); */
  uint32_t pass;                     /* the first in which it can be computed, or after which its row is known; */
  uint32_t keep;                     /* the row buffer that later passes read it from, counted from 1 */
} lp_inst_t;

typedef struct lp_index {
  uint32_t load;        /* the access that has the index, of an integer dtype; it stands before */
  int64_t stride, size; /* of what it counts: elements apart, and how many there are */
  int32_t wraps;        /* a negative one counts from the end */
} lp_index_t;

typedef struct lp_access {
  int32_t dtype;
  uint32_t inst;                 /* stores: the instruction whose result is stored */
  int64_t strides[AOT_MAX_RANK]; /* elements */
  int32_t of_row;                /* stores: one element a row */
  int32_t draws;         /* loads: it reads no memory, but the random numbers of the elements that its strides count */
  uint32_t seed, offset; /* of a draw: accesses of one number */
  int32_t counts;        /* loads: it reads no memory, but has its place: an int64 */
  int32_t adds;          /* stores: to what is there, and not in its place */
  uint32_t n_indices;    /* what is added to its place */
  lp_index_t indices[LP_INDICES];
  /* Loads, by dimensions as bits: begin <= index < end is inside, and the index counts from `begin`; 0 in others. What
   * is read outside: a number, or LP_LOAD: what an access before this one has. */
  uint32_t bounded;
  int64_t begin[AOT_MAX_RANK], end[AOT_MAX_RANK];
  lp_arg_t outside;
  int32_t moves;  /* loads, by lp_schedule: it changes along the innermost dimension */
  uint32_t align; /* bytes that its pointer is known to be a multiple of; 0: an element's */
} lp_access_t;

/* What the pointer of a draw points at. fill: elements first, first + step, .., n of them, into `out`
 * (kit/random/philox.h). */
typedef struct lp_draw {
  void (*fill)(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);
  uint64_t draw; /* added to the offset */
} lp_draw_t;

/* How a loop runs on a GPU: by lp_gpu_schedule, from sizes, strides and alignment. */
#define LP_GPU_POINTS 1  /* a thread takes neighbours of the innermost dimension */
#define LP_GPU_ROWS 2    /* a team of threads takes a row: a warp, or a block */
#define LP_GPU_COLUMNS 3 /* a block takes neighbouring columns, some rows at a time */
#define LP_GPU_PLACES 4  /* a store by index tensors, next to columns (loop_gen_cuda_places.c) */
enum { LP_GPU_SEGMENT = 16 /* sorted places that a thread goes through */ };
typedef struct lp_gpu {
  int32_t kind; /* 0: there is no schedule */
  int32_t wide; /* indices need 64 bits */
  uint32_t blocks, threads;
  uint32_t team;   /* threads of a row; of columns those side by side */
  uint32_t vector; /* elements that a thread takes at once */
  /* Vectors of its row that a thread holds in registers, from the first pass to the last; 0: it reads them in every
   * pass. Of columns and of sorted places: rows that it reads before it computes; 0: places are not sorted, but gone
   * through in the order of rows. */
  uint32_t chunks;
  /* Parts that reductions are made in; several: each leaves its result in scratch memory. Of places: parts of the
   * sorted ones, of a segment for each team of a block. */
  uint32_t splits;
  uint32_t parts; /* of sums across rows: how many are left in scratch memory; 0: there are no such sums */
  /* Of flat points (one dimension, no indices, no bounds): the kernel runs over as many tensors of several sizes, which
   * a table reports; lp_gpu_schedule has 1, others may have up to lp_gpu_most_tensors. 0: sizes are constants of the
   * text */
  uint32_t tensors;
  /* Rows of a team that are in shared memory, or on their way there, the one that it is at among them; 0: rows do not
   * pass through shared memory, and a team takes one row unless it has sums across rows. */
  uint32_t stages;
  uint32_t bulk;      /* rows are copied whole, by one thread (sm_90), and not by each thread its vectors */
  uint32_t shared;    /* bytes of it that a block is launched with */
  uint32_t residents; /* blocks that a multiprocessor is to have at once; 0: as many as there is room for */
  int32_t coarse;     /* all elements that are read are halves: functions may be as coarse as floats a few bits short */
} lp_gpu_t;

/* What a schedule has to know of a GPU. */
typedef struct lp_gpu_machine {
  uint32_t arch; /* compute capability: 90 */
  uint32_t n_processors;
  uint32_t block_shared,
      processor_shared; /* the most bytes of shared memory: of a block, of a multiprocessor's blocks */
} lp_gpu_machine_t;
extern const lp_gpu_machine_t lp_gpu_h100; /* where no device is at hand: texts of tests, and to look at */

typedef struct lp_loop {
  int32_t rank;
  int64_t sizes[AOT_MAX_RANK];
  lp_access_t *accesses; /* loads, then stores */
  uint32_t n_loads, n_stores;
  lp_inst_t *insts;
  uint32_t n_insts;
  int in_place;      /* a store may be at the address of a load, element on element */
  uint32_t reduced;  /* dimensions that reductions, or stores by index tensors, run over, as bits; 0: there are none */
  uint32_t n_passes; /* by lp_schedule */
  int columns;       /* by lp_schedule: rows lie across memory, and are summed side by side */
  uint32_t n_kept;   /* row buffers: pointers that follow those of the accesses, each of a row's length */
  lp_gpu_t gpu;
} lp_loop_t;

/* ---- operators (loop_ops.c) ---- */
typedef struct lp_op lp_op_t;
const lp_op_t *lp_op_find(aot_str_t full_name); /* NULL: not pointwise, or not known here; binary search */
/* What the arguments of a call are, as far as choosing needs it. */
typedef struct lp_operand {
  int32_t kind;        /* LP_ABSENT, LP_LOAD (any tensor), LP_FLOAT, LP_INT, LP_BOOL */
  int32_t dtype, rank; /* tensors */
  double number;       /* others */
} lp_operand_t;
/* Template and computing dtype of a call whose result has dtype `result`; word: the string argument. NULL: not
 * supported in this form (dtype, mode). on_gpu: halves are computed as PyTorch's kernels for CUDA do. */
const char *lp_choose(const lp_op_t *op, const lp_operand_t *operands, uint32_t n_operands, aot_str_t word,
                      int32_t result, int on_gpu, int32_t *out_compute);
int lp_dtype_supported(int32_t dtype);
/* Operators that draw: arguments 0, 1, 2 are seed, offset and draw number; the list of ints that the template reads
 * represents the drawn numbers. Their dtype for a result of dtype `result`, and what fills them in; 0: the operator
 * does not draw. */
int32_t lp_op_draws(const lp_op_t *op, int32_t result, lp_draw_t *out);
/* The argument position that represents the number of the result's element, in row-major order. -1: none does. */
int32_t lp_op_counts(const lp_op_t *op);

/* ---- operators with rows (row_ops.c) ---- */
/* Where an operator says which dimensions of its first argument are the row. */
#define LP_ROW_DIM 1   /* argument `dims_at`: one dimension, or a list; none: all */
#define LP_ROW_TAIL 2  /* as many of the last ones as the list at `dims_at` has */
#define LP_ROW_WHOLE 3 /* all */
#define LP_ROW_LAST 4  /* the last one */
/* dtypes of a step */
#define LP_T_WORK 1   /* float32 for halves, int64 for integers, else that of the first argument */
#define LP_T_WIDE 2   /* double; of integers int64 */
#define LP_T_RESULT 3 /* as declared */
#define LP_T_WHOLE 4  /* int64 */
#define LP_T_TRUTH 5  /* bool */
/* What a result is. */
#define LP_GIVES_LIKE 0 /* of the first argument's dtype; of a half also float32 */
#define LP_GIVES_WHOLE 1
#define LP_GIVES_TRUTH 2
/* What an operator takes of integers. */
#define LP_INTS_NONE 0
#define LP_INTS_LIKE 1 /* the result is of the same dtype */
#define LP_INTS_WIDE 2 /* it is an int64 */
#define LP_SCAN 256    /* + how: each value with all before it */
typedef struct lp_step {
  int32_t reduce;         /* LP_EACH, LP_SUM, .., or LP_SCAN + LP_SUM, .. */
  int32_t compute, dtype; /* LP_T_* */
  const char *text;
} lp_step_t;
typedef struct lp_row_op {
  const char *name;
  uint32_t need, without; /* argument positions, as bits, that must be there or absent */
  int32_t dims, dims_at;
  uint32_t n_steps, n_results;
  lp_step_t steps[LP_STEPS];
  uint8_t results[3]; /* the steps that give them */
  uint8_t gives[3];   /* LP_GIVES_* */
  int32_t ints;
  uint32_t preset_at; /* an argument that reads as `preset` where it is absent; 0: none */
  double preset;
  uint32_t of; /* the argument whose rows they are */
  /* An argument of classes, one a row, which are checked before; then h is a number: one through how many rows count
   * where the loss is their mean, else one. 0: none. */
  uint32_t class_at;
} lp_row_op_t;
const lp_row_op_t *lp_row_op_find(aot_str_t full_name); /* the first row of that name; NULL: none */
/* The row of that name that takes these arguments in this form. NULL: none does. */
const lp_row_op_t *lp_row_op_choose(const lp_row_op_t *op, const lp_operand_t *operands, uint32_t n_operands);
/* Is dtype what result r of the operator is for a first argument of dtype x? Others, that a cast comes before, are the
 * reference kernels'. */
/* The row of sums over rows that are contiguous, as sums across the others. NULL: op is no such sum. */
const lp_row_op_t *lp_row_op_across(const lp_row_op_t *op);
int lp_row_op_gives(const lp_row_op_t *op, uint32_t r, int32_t x, int32_t dtype);
/* LP_T_* as a dtype. work: the dtype of the operator's first argument, in registers; result: as declared. */
int32_t lp_step_dtype(int32_t which, int32_t work, int32_t result);

/* ---- templates (loop_template.c) ---- */
#define LP_TK_TEXT 1     /* as it stands */
#define LP_TK_ARG 2      /* argument `index` */
#define LP_TK_STEP 3     /* the operator's instruction `index` */
#define LP_TK_CALL 4     /* the name of a helper, before its parenthesis */
#define LP_TK_CONSTANT 5 /* T, before its parenthesis */
#define LP_TK_LENGTH 6
#define LP_TK_PLACE 7 /* the element's number within its row: an int64 */
typedef struct lp_token {
  int32_t kind;
  uint32_t index;
  const char *text;
  uint32_t size;
} lp_token_t;
int lp_token(const char **at, lp_token_t *out); /* 0: the end */
int lp_reads(const char *text, int32_t kind, uint32_t index);

/* ---- cost, against an addition (loop_cost.c) ---- */
uint32_t lp_text_cost(const char *text); /* of computing it once */
/* 0: there is no row of it in scalar.def. */
uint32_t lp_function_cost(const char *name, uint32_t size);

/* ---- equal instructions (loop_equal.c) ---- */
/* Become one. */
void lp_join_equal(lp_loop_t *loop);

/* ---- shape (loop_build.c) ---- */
/* With reductions, the row becomes the innermost dimensions, and one or more stand around it. 0: a row of several
 * dimensions has what goes along one only: draws, bounds, scans; or it has AOT_MAX_RANK, so that none fits
 * around it. */
int lp_simplify(lp_loop_t *loop);
/* The row's dimensions are those from this one on: what is reduced and does not merge into one are several, gone
 * through in their order. Without reductions the innermost one is the row. */
int32_t lp_row(const lp_loop_t *loop);
int64_t lp_length(const lp_loop_t *loop); /* elements of a row */
/* The numbers that the function takes as `s`: strides by access, then what loads have more: of each index stride and
 * size, of each bounded dimension begin and end. */
uint32_t lp_n_numbers(const lp_loop_t *loop);
void lp_numbers(const lp_loop_t *loop, int64_t *out);
int lp_has_indices(const lp_loop_t *loop);
/* Passes, and what is withheld from one to another (loop_passes.c). */
void lp_schedule(lp_loop_t *loop);
int lp_reduces_row(const lp_inst_t *inst);
/* By instruction: is it computed within the row in this pass? */
void lp_pass_members(const lp_loop_t *loop, uint32_t pass, uint8_t out[LP_INSTS]);
uint32_t lp_store_pass(const lp_loop_t *loop, uint32_t store);
/* Values in registers: halves are floats that are rounded to them. */
int32_t lp_value_dtype(int32_t dtype);
uint64_t lp_keep_size(const lp_loop_t *loop, uint32_t keep); /* bytes an element of a row buffer */

/* ---- C (loop_gen_c.c) ---- */
typedef struct lp_text {
  char *data; /* terminated; owned */
  uint64_t size, capacity;
  int failed; /* no memory */
} lp_text_t;
void lp_text_add(lp_text_t *t, const char *data, uint64_t size);
void lp_print(lp_text_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lp_text_deinit(lp_text_t *t);

/* What every generated unit starts with: includes and helper functions, and those of draws. */
void lp_prelude_add(lp_text_t *t);
/* The function
 *     void NAME(char *const *p, const int64_t *n, const int64_t *s, int64_t begin, int64_t end)
 * with pointers to the first element of every access, to its row buffers and, where loads have indices, to an int64
 * that is set when one is out of range; with the sizes, lp_numbers, and the part of dimension 0 to run. A loop of rank
 * 0 is run as one of rank 1 and size 1 (lp_simplify leaves it so). */
void lp_gen_c(const lp_loop_t *loop, const char *name, lp_text_t *out);

/* ---- GPUs (loop_gpu.c, loop_gen_cuda.c) ---- */
enum { LP_GPU_MOST_POINTERS = 480 }; /* parameters of a kernel are 4 KiB at most */
/* lp_schedule, and the schedule for a GPU. Sums that lp_schedule's loop takes in double,
 * though it reads floats, are used in float from then on: the loop is not for C any more. 0: not for GPUs. */
int lp_gpu_schedule(lp_loop_t *loop, const lp_gpu_machine_t *m);
/* Of a loop that has been scheduled, with other threads, team, vector, splits, stages, bulk, of columns other chunks,
 * and where teams continue from row to row with other blocks, in loop.gpu: the rest of the schedule. 0: that does not
 * fit the loop. */
int lp_gpu_fit(lp_loop_t *loop, const lp_gpu_machine_t *m);
uint64_t lp_gpu_scratch(const lp_loop_t *loop); /* bytes, for what kernels leave for the next; 0: one kernel is all */
void lp_prelude_cuda_add(lp_text_t *t);
/* The kernel NAME, to run with gpu.blocks blocks of gpu.threads threads and gpu.shared bytes of shared memory; where
 * there is one, NAME_begin before it, with lp_gpu_begin_blocks() of LP_GPU_BEGIN_THREADS, between them NAME_merge, with
 * lp_gpu_merge_blocks() of as many, and NAME_end after it, with lp_gpu_end_blocks() of LP_GPU_END_THREADS. All take one
 * structure of lp_gpu_n_pointers pointers: to the first element of every access (of a draw: its number as an integer),
 * where lp_gpu_word says; where accesses have indices, to an int64 that is set when one is out of range; to the scratch
 * memory, where there is some, 16-byte aligned. */
enum { LP_GPU_BEGIN_THREADS = 512, LP_GPU_END_THREADS = 256 };
int lp_gpu_has_begin(const lp_loop_t *loop);
/* Its blocks; of pieces: each sorts one, else the only one all. */
uint32_t lp_gpu_begin_blocks(const lp_loop_t *loop);
enum { LP_GPU_PIECE = 1024 }; /* rows whose places are sorted in shared memory */
int lp_gpu_has_pieces(const lp_loop_t *loop);
int lp_gpu_has_merge(const lp_loop_t *loop);
uint32_t lp_gpu_merge_blocks(const lp_loop_t *loop);
int lp_gpu_has_end(const lp_loop_t *loop);
uint32_t lp_gpu_n_pointers(const lp_loop_t *loop);
uint32_t lp_gpu_end_blocks(const lp_loop_t *loop);
/* Of a loop with tensors: pointers of loads without a stride are first, once for all; then for each tensor
 * lp_gpu_row_words: two numbers, its size and its first block, which grow from tensor to tensor (of those that are not
 * there: LP_GPU_NO_BLOCK), and its pointers. A text goes for all sizes that are multiples of gpu.vector, or for all. */
#define LP_GPU_NO_BLOCK INT32_MAX
enum { LP_GPU_SIZE = 0, LP_GPU_FIRST_BLOCK = 1, LP_GPU_NUMBERS = 2 };
uint32_t lp_gpu_shared_words(const lp_loop_t *loop);
uint32_t lp_gpu_row_words(const lp_loop_t *loop);
uint32_t lp_gpu_most_tensors(const lp_loop_t *loop);
/* Where the pointer of an access is: of the first tensor. */
uint32_t lp_gpu_word(const lp_loop_t *loop, uint32_t access);
void lp_gen_cuda(const lp_loop_t *loop, const char *name, lp_text_t *out);

/* ---- the loop itself as text (loop_form.c) ---- */
typedef struct lp_parsed {
  lp_loop_t loop;
  char *text; /* its templates are in */
} lp_parsed_t;
void lp_print_loop(const lp_loop_t *loop, lp_text_t *out);
/* A number of the text without comments: of what is computed from what, sizes and strides, and not of its schedule. It
 * is the same on every machine and in every run. 0: no memory. */
uint64_t lp_hash(const lp_loop_t *loop);
/* 0, or the number of the line that is wrong; LP_NONE: no memory. lp_parsed_deinit is due in any case. */
uint32_t lp_parse(const char *text, lp_parsed_t *out);
void lp_parsed_deinit(lp_parsed_t *p);

#endif
