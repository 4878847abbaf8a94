/* What the files that print CUDA C share. Functions print what their names say, into p->out; variables are those of
 * loop_gen_cuda.c's head. */
#ifndef LP_CUDA_PRINTER_H
#define LP_CUDA_PRINTER_H

#include "loop_print.h"

#define CU_UNROLL "#pragma unroll\n"

typedef struct cu_printer {
  lp_text_t *out;
  const lp_loop_t *l;
  const lp_gpu_t *g;
  const char *index; /* the type of indices */
  lp_pass_t pass;
  uint32_t nowhere; /* an instruction that is false of all elements of the vector, counted from 1; 0: none is known */
  int is_whole;     /* the vector is none that has fewer elements */
} cu_printer_t;

/* ---- kernels of each kind ---- */

void cu_print_rows(cu_printer_t *p, const char *name);
void cu_print_columns(cu_printer_t *p, const char *name);
/* Stores by index tensors: all kernels. */
void cu_print_places(cu_printer_t *p, const char *name);
/* The second kernel, where there is one. */
void cu_print_end(cu_printer_t *p, const char *name);

/* ---- accesses ---- */

uint32_t cu_n_accesses(const lp_loop_t *l);
int64_t cu_inner_stride(const lp_loop_t *l, uint32_t k);
/* Of a dimension, as a divisor: never 0. */
int64_t cu_size(const lp_loop_t *l, int32_t d);
/* Made 16 bytes at a time, or what a vector has? */
int cu_is_vector(const cu_printer_t *p, uint32_t k);
uint64_t cu_vector_bytes(const cu_printer_t *p, uint32_t k);
/* A load that passes through an array of registers? */
int cu_has_array(const cu_printer_t *p, uint32_t k);
/* Are its indices those of the whole row? Then their place is found before it. */
int cu_is_row_of_indices(const lp_loop_t *l, uint32_t k);
/* Does the last vector have fewer elements? */
int cu_has_tail(const cu_printer_t *p);
void cu_print_times(lp_text_t *out, const char *what, int64_t stride);
/* What a dimension adds to a place. */
void cu_print_term(const cu_printer_t *p, uint32_t k, int32_t d, const char *index, const char *joint);
/* Its place from the row on; index: of the element, or of the vector. */
void cu_print_place(const cu_printer_t *p, uint32_t k, const char *index);
/* The element's place in an array: of one vector, or of all that a thread holds. */
void cu_print_slot(const cu_printer_t *p, int is_held, int of_element);
void cu_print_element_loop(const cu_printer_t *p);
void cu_print_array(const cu_printer_t *p, uint32_t k, int is_held);
/* From memory into the load's array. */
void cu_print_take(const cu_printer_t *p, uint32_t k);
/* The type that the elements of draws are counted in. */
const char *cu_counter(const cu_printer_t *p);
void cu_print_draw(const cu_printer_t *p, uint32_t k);
/* Halves that lie in its array as words of two. */
int cu_has_pairs(const cu_printer_t *p, uint32_t k);
/* The load's value, from its array or from memory. */
void cu_print_load(const cu_printer_t *p, uint32_t k, int from_array);
void cu_print_store(const cu_printer_t *p, uint32_t k);
/* From the store's vector to memory. */
void cu_print_give(const cu_printer_t *p, uint32_t k);

/* ---- elements ---- */

/* What is done to the vector at i, in p->pass. */
void cu_print_vector(const cu_printer_t *p);
/* The sum across rows that element j belongs to: a register, or its place in scratch memory. */
void cu_print_across_slot(const cu_printer_t *p, uint32_t k);

/* ---- what stands around them ---- */

void cu_print_head(const cu_printer_t *p, const char *name, const char *ending);
/* Indices of the first n dimensions. */
void cu_print_outer_indices(const cu_printer_t *p, int32_t n, const char *from);
/* To where the first n of these indices lead. */
void cu_print_row_pointer(const cu_printer_t *p, uint32_t k, int32_t n);
void cu_print_pointers(const cu_printer_t *p, int32_t n, const char *from);
/* Loads of what does not change within what a block takes. */
void cu_print_constants(const cu_printer_t *p);
void cu_print_accumulators(const cu_printer_t *p);
/* Where the partial results of a reduction lie. */
void cu_print_scratch(const cu_printer_t *p, uint32_t k);
/* The partial result of a part, but for which result it is: "] " ends it. */
void cu_print_partial(const cu_printer_t *p, uint32_t k);
/* Teams of a block that is larger than a warp's teams are. */
uint32_t cu_n_teams(const cu_printer_t *p);
/* The values of the pass's reductions, joined over the team; into scratch memory where they are parts. */
void cu_print_joined(const cu_printer_t *p, uint32_t team);
void cu_print_row_insts(const cu_printer_t *p, uint32_t pass);
void cu_print_row_stores(const cu_printer_t *p);
/* The last line: was an index out of range? */
void cu_print_wrong(const cu_printer_t *p);

/* ---- columns ---- */

/* Sums of `across` columns by `down` threads each: they go to shared memory, and half joins half. */
void cu_print_joined_columns(const cu_printer_t *p, uint32_t across, uint32_t down);
/* The values of a column: its reductions, what follows from them, and its stores. */
void cu_print_column_values(const cu_printer_t *p);

#endif
