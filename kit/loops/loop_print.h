/* What the printers of C and of CUDA C print alike: types, the expression of an instruction, the value that is stored;
 * and what of a loop belongs to a pass. In their text x0, x1, .. are loads, v0, v1, .. instructions, `length` is the
 * length of a row, `place` an element's number in it; halves are floats there. */
#ifndef LP_LOOP_PRINT_H
#define LP_LOOP_PRINT_H

#include "loop.h"

const char *lp_c_type(int32_t dtype);     /* in memory */
const char *lp_value_type(int32_t dtype); /* in registers */
const char *lp_half_name(int32_t dtype);  /* NULL: it is none */
const char *lp_suffix(int32_t compute);   /* of helpers that compute in it */
int lp_is_float(int32_t dtype);

/* Conversions of f16 and bf16 in C. */
void lp_halves_add(lp_text_t *t);

/* What a load has besides strides: the number of the first of it (lp_numbers); where it has indices, "const int64_t j1
 * = ..;", the elements that they add to its place, which sets `wrong`; "const int in1 = ..;" where it has bounds of
 * outer dimensions; whether an element is inside of all (by the variables of the inner dimension, and of a column's
 * row); what it reads outside. Bounds are variables b1_0, e1_0. */
uint32_t lp_first_number(const lp_loop_t *l, uint32_t load);
void lp_print_indices(lp_text_t *out, const lp_loop_t *l, uint32_t load, int are_constants);
void lp_print_row_bounds(lp_text_t *out, const lp_loop_t *l, uint32_t load);
void lp_print_is_inside(lp_text_t *out, const lp_loop_t *l, uint32_t load, const char *inner, const char *row);
void lp_print_outside(lp_text_t *out, const lp_loop_t *l, uint32_t load);

/* The instruction's expression, of the variables above. */
void lp_print_template(lp_text_t *out, const lp_loop_t *l, const lp_inst_t *inst);
/* The variable and what its value is rounded to; after that stands "(value);". */
void lp_print_value(lp_text_t *out, const lp_loop_t *l, uint32_t inst);
/* Both, of an instruction that is no reduction. */
void lp_print_inst(lp_text_t *out, const lp_loop_t *l, uint32_t inst);
/* What a store puts into memory. */
void lp_print_stored(lp_text_t *out, const lp_loop_t *l, uint32_t store);

/* Reductions: "sum"; the macro that joins two values; what joins to nothing. */
const char *lp_reduction_name(int32_t reduce);
const char *lp_join_name(int32_t reduce);
const char *lp_first_value(const lp_inst_t *inst);

/* What one pass does: loads and instructions within the row, and what of it comes from row buffers. */
typedef struct lp_pass {
  uint32_t number;
  uint8_t insts[LP_INSTS];
  uint8_t loads[LP_INSTS * LP_ARGS], kept[LP_INSTS];
  int n_draws, in_pieces, has_place, has_scan,
      is_serial; /* is_serial: scans, stores by index: elements in their order */
} lp_pass_t;
void lp_find_pass(const lp_loop_t *l, uint32_t number, lp_pass_t *out);
/* Of what has one value a row there is nothing to do within it; but for a reduction, which then takes that value in. */
int lp_is_element(const lp_inst_t *inst);
/* Is the instruction needed in a later pass by one that is computed there? */
int lp_is_needed_later(const lp_loop_t *l, uint32_t inst);
int32_t lp_inner(const lp_loop_t *l);                  /* the dimension whose elements stand side by side */
void lp_swap_dims(lp_loop_t *l, int32_t a, int32_t b); /* but for what l->reduced says (loop_build.c) */
/* Does the load change within the innermost loop? */
int lp_moves(const lp_loop_t *l, uint32_t load);

/* Of a schedule for GPUs. Does the load change within what a block takes? Is it in registers before it is needed? Is
 * the access made by vectors? */
int lp_gpu_moves(const lp_loop_t *l, uint32_t load);
int lp_is_held(const lp_loop_t *l, uint32_t load);
int lp_gpu_is_vector(const lp_loop_t *l, uint32_t access);
/* The type that a reduction adds in; where its partial results begin in scratch memory, in bytes: of each of the
 * results, or columns, lp_gpu_results of them, as many as there are parts. */
int32_t lp_gpu_lane(const lp_inst_t *inst);
uint64_t lp_gpu_partial(const lp_loop_t *l, uint32_t inst);
uint64_t lp_gpu_results(const lp_loop_t *l);
/* Do teams continue from row to row? Does the load pass through shared memory? Where it is in a stage, and the bytes of
 * one (load: how many there are). */
int lp_gpu_goes_on(const lp_loop_t *l);
int lp_gpu_is_staged(const lp_loop_t *l, uint32_t load);
uint64_t lp_gpu_staged_at(const lp_loop_t *l, uint32_t load);
int lp_gpu_joins_teams(const lp_loop_t *l); /* are sums across rows joined by a block before they are a part? */
/* Of places: bytes of the numbers of rows, of which scratch memory begins with four; is the store made by vectors when
 * it adds a sum? */
uint64_t lp_gpu_sorted(const lp_loop_t *l);
int lp_gpu_adds_vectors(const lp_loop_t *l);

#endif
