/* What the files that print CUDA C share (loop_gen_cuda.c, loop_gen_cuda_places.c, loop_gen_cuda_end.c). Functions print what their names
 * say, into p->out; variables are those of loop_gen_cuda.c's head. */
#ifndef LP_CUDA_PRINTER_H
#define LP_CUDA_PRINTER_H

#include "common/loops/loop_print.h"

typedef struct cu_printer {
  lp_text_t *out;
  const lp_loop_t *l;
  const lp_gpu_t *g;
  const char *index; /* the type of indices */
  lp_pass_t pass;
  uint32_t nowhere; /* an instruction that is false of all elements of the vector, counted from 1; 0: none is known */
} cu_printer_t;

uint32_t cu_n_accesses(const lp_loop_t *l);
int64_t cu_inner_stride(const lp_loop_t *l, uint32_t k);
void cu_print_times(lp_text_t *out, const char *what, int64_t stride);
void cu_print_accumulators(const cu_printer_t *p);
void cu_print_scratch(const cu_printer_t *p, uint32_t k);
void cu_print_partial(const cu_printer_t *p, uint32_t k);
void cu_print_joined(const cu_printer_t *p, uint32_t team);
void cu_print_head(const cu_printer_t *p, const char *name, const char *ending);
void cu_print_pointers(const cu_printer_t *p, int32_t n, const char *from);
void cu_print_constants(const cu_printer_t *p);
void cu_print_row_insts(const cu_printer_t *p, uint32_t pass);
void cu_print_row_stores(const cu_printer_t *p);
void cu_print_joined_columns(const cu_printer_t *p, uint32_t across, uint32_t down);
void cu_print_column_values(const cu_printer_t *p);

void cu_print_wrong(const cu_printer_t *p);
void cu_print_element_loop(const cu_printer_t *p);
void cu_print_place(const cu_printer_t *p, uint32_t k, const char *index);
void cu_print_load(const cu_printer_t *p, uint32_t k, int from_array);
void cu_print_vector(const cu_printer_t *p);

/* The second kernel, where there is one. */
void cu_print_end(cu_printer_t *p, const char *name);
/* Stores by index tensors: all kernels. */
void cu_print_places(cu_printer_t *p, const char *name);

#endif
