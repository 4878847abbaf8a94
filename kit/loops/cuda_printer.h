/* What the files that print CUDA C share. Functions print what their names say, into p->out; variables are those of
 * loop_gen_cuda.c's head. */
#ifndef LP_CUDA_PRINTER_H
#define LP_CUDA_PRINTER_H

#include "loop_print.h"

#define CUDA_UNROLL "#pragma unroll\n"

typedef struct cuda_printer {
  lp_text_t *out;
  const lp_loop_t *l;
  const lp_gpu_t *g;
  const char *index; /* the type of indices */
  lp_pass_t pass;
  uint32_t nowhere; /* an instruction that is false of all elements of the vector, counted from 1; 0: none is known */
  int is_whole;     /* the vector is none that has fewer elements */
} cuda_printer_t;

/* ---- kernels of each kind ---- */

void cuda_print_rows(cuda_printer_t *p, const char *name);
void cuda_print_columns(cuda_printer_t *p, const char *name);
/* Stores by index tensors: all kernels. */
void cuda_print_places(cuda_printer_t *p, const char *name);
/* The second kernel, where there is one. */
void cuda_print_end(cuda_printer_t *p, const char *name);

/* ---- accesses ---- */

uint32_t cuda_n_accesses(const lp_loop_t *l);
int64_t cuda_inner_stride(const lp_loop_t *l, uint32_t k);
/* Of a dimension, as a divisor: never 0. */
int64_t cuda_size(const lp_loop_t *l, int32_t d);
/* Made 16 bytes at a time, or what a vector has? */
int cuda_is_vector(const cuda_printer_t *p, uint32_t k);
uint64_t cuda_vector_bytes(const cuda_printer_t *p, uint32_t k);
/* A load that passes through an array of registers? */
int cuda_has_array(const cuda_printer_t *p, uint32_t k);
/* Are its indices those of the whole row? Then their place is found before it. */
int cuda_is_row_of_indices(const lp_loop_t *l, uint32_t k);
/* Does the last vector have fewer elements? */
int cuda_has_tail(const cuda_printer_t *p);
void cuda_print_times(lp_text_t *out, const char *what, int64_t stride);
/* What a dimension adds to a place. */
void cuda_print_term(const cuda_printer_t *p, uint32_t k, int32_t d, const char *index, const char *joint);
/* Its place from the row on; index: of the element, or of the vector. */
void cuda_print_place(const cuda_printer_t *p, uint32_t k, const char *index);
/* The element's place in an array: of one vector, or of all that a thread holds. */
void cuda_print_slot(const cuda_printer_t *p, int is_held, int of_element);
void cuda_print_element_loop(const cuda_printer_t *p);
void cuda_print_array(const cuda_printer_t *p, uint32_t k, int is_held);
/* From memory into the load's array. */
void cuda_print_take(const cuda_printer_t *p, uint32_t k);
/* The type that the elements of draws are counted in. */
const char *cuda_counter(const cuda_printer_t *p);
void cuda_print_draw(const cuda_printer_t *p, uint32_t k);
/* Halves that are in its array as words of two. */
int cuda_has_pairs(const cuda_printer_t *p, uint32_t k);
/* The load's value, from its array or from memory. */
void cuda_print_load(const cuda_printer_t *p, uint32_t k, int from_array);
void cuda_print_store(const cuda_printer_t *p, uint32_t k);
/* From the store's vector to memory. */
void cuda_print_give(const cuda_printer_t *p, uint32_t k);

/* ---- elements ---- */

/* What is done to the vector at i, in p->pass. */
void cuda_print_vector(const cuda_printer_t *p);
/* The sum across rows that element j belongs to: a register, or its place in scratch memory. */
void cuda_print_across_slot(const cuda_printer_t *p, uint32_t k);

/* ---- what stands around them ---- */

void cuda_print_head(const cuda_printer_t *p, const char *name, const char *ending);
/* Indices of the first n dimensions. */
void cuda_print_outer_indices(const cuda_printer_t *p, int32_t n, const char *from);
/* To where the first n of these indices lead. */
void cuda_print_row_pointer(const cuda_printer_t *p, uint32_t k, int32_t n);
void cuda_print_pointers(const cuda_printer_t *p, int32_t n, const char *from);
/* Loads of what does not change within what a block takes. */
void cuda_print_constants(const cuda_printer_t *p);
void cuda_print_accumulators(const cuda_printer_t *p);
/* Where the partial results of a reduction lie. */
void cuda_print_scratch(const cuda_printer_t *p, uint32_t k);
/* The partial result of a part, but for which result it is: "] " ends it. */
void cuda_print_partial(const cuda_printer_t *p, uint32_t k);
/* Teams of a block that is larger than a warp's teams are. */
uint32_t cuda_n_teams(const cuda_printer_t *p);
/* The values of the pass's reductions, joined over the team; into scratch memory where they are parts. */
void cuda_print_joined(const cuda_printer_t *p, uint32_t team);
void cuda_print_row_insts(const cuda_printer_t *p, uint32_t pass);
void cuda_print_row_stores(const cuda_printer_t *p);
/* The last line: was an index out of range? */
void cuda_print_wrong(const cuda_printer_t *p);

/* ---- columns ---- */

/* Sums of `across` columns by `down` threads each: they go to shared memory, and half joins half. */
void cuda_print_joined_columns(const cuda_printer_t *p, uint32_t across, uint32_t down);
/* The values of a column: its reductions, what follows from them, and its stores. */
void cuda_print_column_values(const cuda_printer_t *p);

#endif
