/* Loop IR: a group of pointwise operators as one loop nest over strided memory.
 *
 *     for every index of the space: load operands, run instructions in order, store results
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
 * lp_simplify drops dimensions of size 1, puts the first store's fastest dimension innermost and merges dimensions that
 * all accesses step through evenly: most groups become one flat loop. */
#ifndef LP_LOOP_H
#define LP_LOOP_H

#include <aot/base.h>

#define LP_ARGS 8 /* arguments of an operator */
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

typedef struct lp_inst {
  const char *text; /* template, chosen by lp_choose */
  int32_t compute;  /* dtype it is computed in: AOT_F32, AOT_F64, AOT_I64 or AOT_BOOL */
  int32_t dtype;    /* of its result */
  uint32_t n_args;
  lp_arg_t args[LP_ARGS];
} lp_inst_t;

typedef struct lp_access {
  int32_t dtype;
  uint32_t inst;                 /* stores: the instruction whose result is stored */
  int64_t strides[AOT_MAX_RANK]; /* elements */
  int32_t draws;         /* loads: it reads no memory, but the random numbers of the elements that its strides count */
  uint32_t seed, offset; /* of a draw: accesses of one number */
} lp_access_t;

/* What the pointer of a draw points at. fill: elements first, first + step, .., n of them, into `out`
 * (common/random/philox.h). */
typedef struct lp_draw {
  void (*fill)(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);
  uint64_t draw; /* added to the offset */
} lp_draw_t;

typedef struct lp_loop {
  int32_t rank;
  int64_t sizes[AOT_MAX_RANK];
  lp_access_t *accesses; /* loads, then stores */
  uint32_t n_loads, n_stores;
  lp_inst_t *insts;
  uint32_t n_insts;
  int in_place; /* a store may lie where a load does, element on element */
} lp_loop_t;

/* ---- operators (loop_ops.c) ---- */
typedef struct lp_op lp_op_t;
const lp_op_t *lp_op_find(aot_str_t full_name); /* NULL: not pointwise, or not known here; binary search */
/* What the arguments of a call are, as far as choosing needs it. */
typedef struct lp_operand {
  int32_t kind;        /* LP_ABSENT, LP_LOAD (any tensor), LP_FLOAT, LP_INT, LP_BOOL */
  int32_t dtype, rank; /* tensors */
} lp_operand_t;
/* Template and computing dtype of a call whose result has dtype `result`; word: the string argument. NULL: not
 * supported in this form (dtype, mode). */
const char *lp_choose(const lp_op_t *op, const lp_operand_t *operands, uint32_t n_operands, aot_str_t word,
                      int32_t result, int32_t *out_compute);
int lp_dtype_supported(int32_t dtype);
/* Operators that draw: arguments 0, 1, 2 are seed, offset and draw number; the list of ints that the template reads
 * stands for the drawn numbers. Their dtype for a result of dtype `result`, and what fills them in; 0: the operator
 * does not draw. */
int32_t lp_op_draws(const lp_op_t *op, int32_t result, lp_draw_t *out);

/* ---- shape (loop_build.c) ---- */
void lp_simplify(lp_loop_t *loop);

/* ---- text (loop_gen_c.c) ---- */
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
 * with pointers to the first element of every access, the sizes, accesses * rank strides in elements, and the part of
 * dimension 0 to run. A loop of rank 0 is run as one of rank 1 and size 1 (lp_simplify leaves it so). */
void lp_gen_c(const lp_loop_t *loop, const char *name, lp_text_t *out);

#endif
